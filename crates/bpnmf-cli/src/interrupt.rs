//! Ctrl-C: the first asks the run to end soon, the second ends the program.

use crate::failure::Failure;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

static REQUESTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// What must not be left when the program ends at once.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// From here on Ctrl-C (and what batch systems send to end a job) is a request.
pub(crate) fn listen() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::SeqCst) {
            for path in unfinished().iter() {
                // The run still writes: what it makes while this removes is met again.
                for _ in 0..20 {
                    if remove(path).is_ok() {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            process::exit(130);
        }
        if io::stderr().is_terminal() {
            eprintln!("\nstopping, and writing what there is; Ctrl-C again to stop at once");
        }
    })
    .map_err(|error| Failure::Other(format!("could not watch for Ctrl-C: {error}")))
}

/// Whether the run should end.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

/// What is set when the run should end, for those who look often.
pub(crate) fn request() -> Arc<AtomicBool> {
    REQUESTED.clone()
}

/// A file or folder to remove when the program ends at once.
pub(crate) fn remove_at_exit(path: &Path) {
    unfinished().push(path.to_owned());
}

/// No longer.
pub(crate) fn keep_at_exit(path: &Path) {
    unfinished().retain(|other| other != path);
}

/// Removes a file or a folder with all that is in it; one that is not there is as good as removed.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(about) if about.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}
