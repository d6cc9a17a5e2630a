//! Every format: what numpy and scipy wrote is read, and every kind of bad file is refused in one clear sentence.

mod blocks;
mod delimited;
mod files;
mod hdf5;
mod hostile;
mod mtx;
mod npy;
mod npz;
mod write;

use std::path::{Path, PathBuf};

use bpnmf::Counts;
use bpnmf_io::{ReadOptions, Table, read};

/// The matrix in most fixtures (see fixtures/make.py), row after row.
const DENSE: [[f64; 4]; 3] = [[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, 0.0, 0.0], [4.0, 0.0, 0.0, 5.0]];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A path for a file that a test writes; each test must use its own name.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("formats");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

/// The values of a matrix, row after row.
fn rows(counts: &Counts) -> Vec<Vec<f64>> {
    let mut rows = vec![vec![0.0; counts.observations()]; counts.features()];
    for t in 0..counts.observations() {
        for (f, value) in counts.column(t).positive() {
            rows[f][t] = value;
        }
    }
    rows
}

fn read_fixture(name: &str) -> Table {
    read(&fixture(name), &ReadOptions::default()).unwrap()
}

/// Reads a file with these bytes.
fn read_bytes(name: &str, bytes: impl AsRef<[u8]>) -> Table {
    let path = scratch(name);
    std::fs::write(&path, bytes).unwrap();
    read(&path, &ReadOptions::default()).unwrap()
}

/// The error for a path, after its path.
fn refusal_of(path: &Path) -> String {
    let text = read(path, &ReadOptions::default()).unwrap_err().to_string();
    let start = format!("{}: ", path.display());
    text.strip_prefix(&start).unwrap_or_else(|| panic!("{text:?} does not start with its path")).to_owned()
}

/// The error for a file with these bytes, after its path.
fn refusal(name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = scratch(name);
    std::fs::write(&path, bytes).unwrap();
    refusal_of(&path)
}
