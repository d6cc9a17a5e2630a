//! What a run was asked for and what it read: enough to start it again from its checkpoint alone.

use super::hash::Hash;
use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A word of the command line: text, or bytes where it is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Word {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&OsStr> for Word {
    fn from(word: &OsStr) -> Self {
        match word.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(word.as_encoded_bytes().to_vec()),
        }
    }
}

impl Word {
    fn get(&self) -> OsString {
        match self {
            Self::Text(text) => text.into(),
            #[cfg(unix)]
            Self::Bytes(bytes) => std::os::unix::ffi::OsStringExt::from_vec(bytes.clone()),
            #[cfg(not(unix))]
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned().into(),
        }
    }
}

/// A file that a run read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Input {
    path: Word,
    bytes: u64,
    checksum: u64,
}

/// A run as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Job {
    version: String,
    arguments: Vec<Word>,
    directory: Word,
    inputs: Vec<Input>,
}

impl Job {
    /// The command line `arguments`, typed here, and the files it names. `None` if one of them is not a file that can be
    /// read again, as a pipe: such a run cannot go on later.
    pub(crate) fn new(arguments: &[OsString], inputs: &[&Path]) -> Result<Option<Self>, Failure> {
        let again = |path: &&Path| path.metadata().is_ok_and(|about| about.is_file());
        let Ok(directory) = std::env::current_dir() else {
            return Ok(None);
        };
        if !inputs.iter().all(again) {
            return Ok(None);
        }
        Ok(Some(Self {
            version: bpnmf::VERSION.to_owned(),
            arguments: arguments.iter().map(|word| word.as_os_str().into()).collect(),
            directory: directory.as_os_str().into(),
            inputs: inputs.iter().map(|path| read(path)).collect::<Result<_, _>>()?,
        }))
    }

    /// The command line.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        self.arguments.iter().map(Word::get).collect()
    }

    /// Where it was typed: its paths start there.
    pub(crate) fn directory(&self) -> PathBuf {
        self.directory.get().into()
    }

    /// Errors if another version made it.
    pub(crate) fn check_version(&self, place: &Path) -> Result<(), Failure> {
        if self.version == bpnmf::VERSION {
            return Ok(());
        }
        Err(Failure::Request(format!(
            "{} was begun by bpnmf {}, this is {}: go on with that version, or start again with --force",
            place.display(),
            self.version,
            bpnmf::VERSION
        )))
    }

    /// Errors if a file is not what it was.
    pub(crate) fn check_inputs(&self) -> Result<(), Failure> {
        for input in &self.inputs {
            let path = PathBuf::from(input.path.get());
            if read(&path)? != *input {
                return Err(Failure::Request(format!(
                    "{} is not the file that the run began with: bring that one back, or start again with --force",
                    path.display()
                )));
            }
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<Input, Failure> {
    let (bytes, checksum) = File::open(path).and_then(Hash::of).map_err(|error| {
        let what = match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file; the run began with it".to_owned(),
            _ => error.to_string(),
        };
        Failure::Request(format!("{}: {what}", path.display()))
    })?;
    Ok(Input { path: path.as_os_str().into(), bytes, checksum })
}

impl Job {
    /// A job without files, of any version: for tests.
    pub(super) fn of_version(version: &str) -> Self {
        let directory = Word::Text(String::new());
        Self { version: version.to_owned(), arguments: Vec::new(), directory, inputs: Vec::new() }
    }
}
