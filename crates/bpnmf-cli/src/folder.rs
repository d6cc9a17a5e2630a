//! The folder results go to: looked at before the work, made after it. Knows no formats.

use crate::checkpoint::sync_folder;
use crate::claim::Claim;
use crate::failure::Failure;
use crate::interrupt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process;

/// A folder that takes results; it need not exist yet.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Errors if `path` already holds one of `names` (unless `force`). Nothing is created.
    pub(crate) fn unused(path: &Path, names: &[&str], force: bool) -> Result<Self, Failure> {
        let taken = names.iter().find(|name| path.join(name).symlink_metadata().is_ok());
        match taken {
            Some(name) if !force => Err(Failure::Request(format!(
                "{} already holds {name}: choose another folder or overwrite it with --force",
                path.display()
            ))),
            _ => Ok(Self { path: path.to_owned() }),
        }
    }

    /// Errors if nothing could be written, now rather than after hours of work. Nothing is left behind.
    pub(crate) fn check_writable(&self) -> Result<(), Failure> {
        let mut nearest = self.path.as_path();
        while nearest.symlink_metadata().is_err() {
            match nearest.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => nearest = parent,
                _ => {
                    nearest = Path::new(".");
                    break;
                }
            }
        }
        let probe = nearest.join(format!(".bpnmf-{}.tmp", process::id()));
        File::create(&probe).and_then(|_| fs::remove_file(&probe)).map_err(|error| self.failure(&error))
    }

    /// Makes the folder and claims it for one run. Errors if another run has it, or if it came to hold one of `names` since
    /// it was [looked at](Self::unused).
    pub(crate) fn claim(&self, names: &[&str], force: bool) -> Result<Claim, Failure> {
        let claim = Claim::new(&self.path, |error| self.failure(error))?;
        Self::unused(&self.path, names, force)?;
        Ok(claim)
    }

    /// Makes the folder.
    pub(crate) fn create(&self) -> Result<(), Failure> {
        fs::create_dir_all(&self.path).map_err(|error| self.failure(&error))
    }

    /// Where the file `name` goes.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Removes the file `name` if a former run left it.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Failure> {
        match fs::remove_file(self.file(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failure(&error)),
            _ => Ok(()),
        }
    }

    /// The folder `name` in it.
    pub(crate) fn inner(&self, name: &str) -> Self {
        Self { path: self.file(name) }
    }

    /// A place in it for results that shall appear all at once or not at all.
    pub(crate) fn staged(&self) -> Result<Staging, Failure> {
        let made = self.path.symlink_metadata().is_err();
        let staging = Staging { folder: self.inner(&format!(".bpnmf-{}.tmp", process::id())), made };
        interrupt::remove_at_exit(staging.folder.path());
        staging.folder.create()?;
        Ok(staging)
    }

    /// The folder as it was named.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the file `name` here from `other`; one that is not there is removed here, too.
    fn take(&self, other: &Self, name: &str) -> Result<(), Failure> {
        match fs::rename(other.file(name), self.file(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.remove(name),
            moved => moved.map_err(|error| self.failure(&error)),
        }
    }

    /// The names of the wav files in it; none if there is no such folder.
    fn sounds(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| name.ends_with(".wav")).collect()
    }

    fn failure(&self, error: &io::Error) -> Failure {
        let reason = match error.kind() {
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                "a file stands where a folder is needed".to_owned()
            }
            io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            _ => error.to_string(),
        };
        Failure::Other(format!(
            "cannot write to {}: {reason}; choose another --out folder",
            self.path.display()
        ))
    }
}

/// Results on their way into a folder. Dropped before they are [committed](Self::commit), they leave nothing.
#[derive(Debug)]
pub(crate) struct Staging {
    folder: Folder,
    /// The folder around it was made for it.
    made: bool,
}

impl Staging {
    /// Where to write to.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Moves all files to their places, the last of `files` at the very end: where it stands, the others are complete.
    /// Files of a former run go: all of `files`, and the wav files of `folders`.
    pub(crate) fn commit(mut self, target: &Folder, folders: &[&str], files: &[&str]) -> Result<(), Failure> {
        if let Some(last) = files.last() {
            target.remove(last)?;
        }
        for name in folders {
            let (from, to) = (self.folder.inner(name), target.inner(name));
            let sounds = from.sounds();
            for former in to.sounds().iter().filter(|former| !sounds.contains(former)) {
                to.remove(former)?;
            }
            if sounds.is_empty() {
                // What else is in it is somebody's.
                let _ = fs::remove_dir(&to.path);
                continue;
            }
            to.create()?;
            sounds.iter().try_for_each(|sound| to.take(&from, sound))?;
        }
        files.iter().try_for_each(|name| target.take(&self.folder, name))?;
        self.made = false;
        // The names of files that are on disk already; a system that cannot do it does it later.
        let _ = sync_folder(target.path());
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed is hidden and harms nobody.
        let _ = fs::remove_dir_all(&self.folder.path);
        interrupt::keep_at_exit(&self.folder.path);
        if let Some(target) = self.folder.path.parent().filter(|_| self.made) {
            let _ = fs::remove_dir(target);
        }
    }
}
