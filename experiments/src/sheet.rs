//! A file with a line for every fit. What was fitted stays in it when the run is killed.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file.
pub(crate) struct Sheet {
    path: PathBuf,
    file: File,
}

impl Sheet {
    /// A new file with this first line, in place of one that was there.
    pub(crate) fn create(path: &Path, head: &str) -> Result<Self, String> {
        let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut sheet = Self { path: path.into(), file };
        sheet.add(head)?;
        Ok(sheet)
    }

    /// One more line.
    pub(crate) fn add(&mut self, line: &str) -> Result<(), String> {
        writeln!(self.file, "{line}").map_err(|error| format!("{}: {error}", self.path.display()))
    }
}
