//! The folder results go to: looked at before the work, made after it. Knows no formats.

use crate::failure::Failure;
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

    /// The folder as it was named.
    pub(crate) fn path(&self) -> &Path {
        &self.path
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
