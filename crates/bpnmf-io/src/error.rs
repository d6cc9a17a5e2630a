//! Everything that can be wrong with a file, each with its place and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// What is wrong with which file. The text is one sentence that starts with the path.
#[derive(Debug, thiserror::Error)]
#[error("{}: {fault}", path.display())]
#[non_exhaustive]
pub struct Error {
    /// The file, as it was named by the caller.
    pub path: PathBuf,
    /// What is wrong with it.
    pub fault: Fault,
}

impl Error {
    pub(crate) fn new(path: &Path, fault: Fault) -> Self {
        Self { path: path.to_owned(), fault }
    }
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing has this name.
    #[error("there is no such file")]
    Missing,
    /// The name is that of a folder.
    #[error("this is a folder: name a file inside it")]
    Folder,
    /// A folder to read from that is not one of 10x Genomics.
    #[error("this is a folder, and not one of 10x Genomics with matrix.mtx: name a file inside it")]
    OtherFolder,
    /// A folder of 10x Genomics lacks a file.
    #[error(
        "this folder has matrix.mtx but no {what}: the three files matrix.mtx, features.tsv and barcodes.tsv belong together"
    )]
    IncompleteFolder {
        /// The file.
        what: &'static str,
    },
    /// What is wrong with a file in a folder.
    #[error("{name}: {fault}")]
    InFolder {
        /// The file.
        name: String,
        /// What is wrong with it.
        fault: Box<Fault>,
    },
    /// Rows and columns were to be exchanged where there is nothing to choose.
    #[error("the file says itself what its observations are: leave out the wish to transpose it")]
    Transposed,
    /// An HDF5 file cannot be read.
    #[error("this is not a file as anndata or 10x Genomics write it: {reason}")]
    BadHdf5 {
        /// What is wrong with it.
        reason: String,
    },
    /// An HDF5 file of something else.
    #[error(
        "there is no matrix of counts in it, neither X as anndata writes it nor a matrix of 10x Genomics"
    )]
    NoMatrix,
    /// An h5ad file without X.
    #[error("there is no X in it{}", ask_for_layer(layers))]
    NoX {
        /// The layers that it has.
        layers: Vec<String>,
    },
    /// An h5ad file without the layer that was asked for.
    #[error("there is no layer {layer:?} in it{}", other_layers(layers))]
    NoLayer {
        /// What was asked for.
        layer: String,
        /// The layers that it has.
        layers: Vec<String>,
    },
    /// A device, a pipe or a socket.
    #[error("this is not a regular file: copy what it gives to a file first")]
    NotRegular,
    /// The system does not let us.
    #[error("permission denied: check who may {doing} it")]
    Denied {
        /// What was tried: "read" or "write".
        doing: &'static str,
    },
    /// The system said something else.
    #[error("could not {doing} it: {}", without_stop(reason))]
    Io {
        /// What was tried: "read" or "write".
        doing: &'static str,
        /// What the system said.
        reason: io::Error,
    },
    /// The file has no bytes.
    #[error("the file is empty (0 bytes): was it written to the end?")]
    NoBytes,
    /// The extension names no format we read.
    #[error("{}: use {ACCEPTED}", unknown_extension(.extension))]
    UnknownFormat {
        /// What follows the last dot, if there is one.
        extension: Option<String>,
    },
    /// The name is that of a sound.
    #[error("this is a recording, not a matrix: take it apart as one")]
    Recording,
    /// A row of a text table is longer or shorter than the first.
    #[error("line {line} has {cells} cells, line {first_line} has {expected}")]
    Ragged {
        /// The line, from 1.
        line: usize,
        /// How many cells it has.
        cells: usize,
        /// The line it is compared with.
        first_line: usize,
        /// How many cells that one has.
        expected: usize,
    },
    /// A cell of a text table is no number.
    #[error("line {line}, column {column} is {text:?}: {}", number_advice(*.column, .text))]
    NotANumber {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The text that stands there.
        text: String,
    },
    /// A cell of a text table has nothing in it.
    #[error("line {line}, column {column} is an empty cell: fill it in, or say that entries are missing")]
    EmptyCell {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// A line does not follow the rules of its format.
    #[error("line {line} {reason}")]
    BadLine {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A numpy array cannot be used.
    #[error("{}{reason}", array_place(.array))]
    BadArray {
        /// Its name, if it stands in an archive.
        array: Option<String>,
        /// What is wrong with it.
        reason: String,
    },
    /// The archive cannot be opened.
    #[error("this is not an archive of arrays as numpy.savez writes it: {reason}")]
    BadArchive {
        /// What is wrong with it.
        reason: String,
    },
    /// Several arrays, none of them called X.
    #[error("the archive holds {}: keep one of them, or name the matrix X", names.join(", "))]
    Ambiguous {
        /// The names of the arrays.
        names: Vec<String>,
    },
    /// A sparse matrix is almost only empty rows or columns.
    #[error("{count} {axis} for {entries} entries: remove the {axis} that are all zero")]
    MostlyEmpty {
        /// "rows" or "columns".
        axis: &'static str,
        /// How many the file claims.
        count: usize,
        /// How many entries it has.
        entries: usize,
    },
    /// The values do not fit in memory.
    #[error("its values need at least {bytes} bytes of memory, more than there is")]
    Memory {
        /// What was asked for.
        bytes: u128,
    },
    /// The values were read and cannot be counts; places are (row, column) of the file, from 0.
    #[error(transparent)]
    Counts(#[from] bpnmf::Error),
}

/// The formats, as error messages list them.
const ACCEPTED: &str =
    ".npy, .npz, .csv, .tsv, .txt, .mtx (the text formats also with .gz after it), .h5ad or .h5";

impl Fault {
    pub(crate) fn io(doing: &'static str, reason: io::Error) -> Self {
        match reason.kind() {
            io::ErrorKind::NotFound if doing == "read" => Fault::Missing,
            io::ErrorKind::PermissionDenied => Fault::Denied { doing },
            io::ErrorKind::IsADirectory => Fault::Folder,
            _ => Fault::Io { doing, reason },
        }
    }

    pub(crate) fn line(line: usize, reason: impl Into<String>) -> Self {
        Fault::BadLine { line, reason: reason.into() }
    }

    pub(crate) fn array(reason: impl Into<String>) -> Self {
        Fault::BadArray { array: None, reason: reason.into() }
    }

    /// A layer was asked for where there are none.
    pub(crate) fn layerless(layer: &str) -> Self {
        let reason = format!("layer {layer:?} was asked for, but only .h5ad files have layers");
        Fault::BadHdf5 { reason }
    }

    /// Names the file of a folder that a fault is about.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Fault::InFolder { name, fault: Box::new(self) }
    }

    /// Names the array of an archive that a fault is about.
    pub(crate) fn in_array(self, name: &str) -> Self {
        match self {
            Fault::BadArray { array: None, reason } => {
                Fault::BadArray { array: Some(name.to_owned()), reason }
            }
            other => other,
        }
    }
}

/// What the system said, without the full stop that some of its sentences carry.
fn without_stop(reason: &io::Error) -> String {
    reason.to_string().trim_end_matches('.').to_owned()
}

fn unknown_extension(extension: &Option<String>) -> String {
    match extension {
        Some(extension) => format!("files that end in .{extension} cannot be read"),
        None => "the name has no extension, so its format is not known".to_owned(),
    }
}

fn number_advice(column: usize, text: &str) -> &'static str {
    let missing = ["na", "n/a", "nan", "null", "none", "-", "."];
    match column {
        _ if missing.contains(&text.to_lowercase().as_str()) => {
            "cells must be numbers; if it was not observed, say that entries are missing"
        }
        1 => {
            "cells must be numbers; if the first column holds names, leave the first cell of the header empty"
        }
        _ => "cells must be numbers",
    }
}

fn ask_for_layer(layers: &[String]) -> String {
    match layers.first() {
        Some(first) => format!(
            ": the counts may be in a layer ({}), ask for one, as in --layer {first}",
            layers.join(", ")
        ),
        None => ": store the counts there".to_owned(),
    }
}

fn other_layers(layers: &[String]) -> String {
    match layers {
        [] => ": it has no layers, the counts may be in X".to_owned(),
        _ => format!(": it has {}", layers.join(", ")),
    }
}

fn array_place(array: &Option<String>) -> String {
    array.as_ref().map_or_else(String::new, |name| format!("array {name:?}: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Here, because a test that runs as root finds no file it may not read.
    #[test]
    fn what_the_system_refuses_is_told_in_our_words() {
        let text = |doing, kind: io::ErrorKind| {
            Error::new(Path::new("data.csv"), Fault::io(doing, kind.into())).to_string()
        };
        let denied = io::ErrorKind::PermissionDenied;
        assert_eq!(text("read", denied), "data.csv: permission denied: check who may read it");
        assert_eq!(text("write", denied), "data.csv: permission denied: check who may write it");
        assert_eq!(text("read", io::ErrorKind::NotFound), "data.csv: there is no such file");
        assert_eq!(text("read", io::ErrorKind::TimedOut), "data.csv: could not read it: timed out");
    }
}
