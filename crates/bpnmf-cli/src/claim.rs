//! A folder of results belongs to one run at a time. The claim is a lock on a hidden file, which the system takes back when
//! the process ends, however it ends.

use crate::failure::Failure;
use crate::interrupt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The file that is locked.
const LOCK: &str = ".bpnmf.lock";

/// The names of what a run leaves when it is killed while it writes its results.
const UNFINISHED: (&str, &str) = (".bpnmf-", ".tmp");

/// A folder that is ours until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    lock: PathBuf,
    /// Held for its lock.
    _file: File,
    /// Folders that were made for it, innermost first.
    made: Vec<PathBuf>,
}

impl Claim {
    /// Claims `folder`, which is made if it is not there, and removes what killed runs left unfinished in it.
    pub(crate) fn new(folder: &Path, failure: impl Fn(&io::Error) -> Failure) -> Result<Self, Failure> {
        let missing = |path: &&Path| !path.as_os_str().is_empty() && path.symlink_metadata().is_err();
        let made: Vec<PathBuf> = folder.ancestors().take_while(missing).map(Path::to_owned).collect();
        let lock = folder.join(LOCK);
        let claimed = fs::create_dir_all(folder).and_then(|()| locked(&lock));
        let file = match claimed {
            Ok(Some(file)) => file,
            Ok(None) => return Err(busy(folder)),
            Err(error) => {
                remove_folders(&made);
                return Err(failure(&error));
            }
        };
        interrupt::remove_at_exit(&lock);
        let (start, end) = UNFINISHED;
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_str().is_some_and(|name| name.starts_with(start) && name.ends_with(end)) {
                // What cannot be removed is hidden and harms nobody.
                let _ = interrupt::remove(&entry.path());
            }
        }
        Ok(Self { lock, _file: file, made })
    }

    /// Errors if another run has claimed `folder`; nothing is made.
    pub(crate) fn check_free(folder: &Path) -> Result<(), Failure> {
        let Ok(file) = File::open(folder.join(LOCK)) else {
            return Ok(());
        };
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Err(busy(folder)),
            _ => Ok(()),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.lock);
        interrupt::keep_at_exit(&self.lock);
        remove_folders(&self.made);
    }
}

/// Removes folders that are empty.
fn remove_folders(folders: &[PathBuf]) {
    for folder in folders {
        if fs::remove_dir(folder).is_err() {
            break;
        }
    }
}

/// The file `path`, locked; `None` if somebody else has locked it.
fn locked(path: &Path) -> io::Result<Option<File>> {
    loop {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            // A file system without locks: better a run without a claim than none.
            Err(TryLockError::Error(_)) => return Ok(Some(file)),
            Ok(()) => {}
        }
        // Its owner may have removed it between our opening and our locking it: then it is not the file others see.
        if same(&file, path) {
            return Ok(Some(file));
        }
    }
}

#[cfg(unix)]
fn same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(ours), Ok(theirs)) = (file.metadata(), path.metadata()) else {
        return false;
    };
    (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino())
}

#[cfg(not(unix))]
fn same(_: &File, path: &Path) -> bool {
    path.exists()
}

fn busy(folder: &Path) -> Failure {
    Failure::Request(format!(
        "another run is writing to {}: wait for it or choose another folder",
        folder.display()
    ))
}
