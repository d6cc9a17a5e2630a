//! Where the data of the experiments are. Knows nothing of what is in them.

use std::path::PathBuf;

/// The folder of data.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os("BPNMF_DATA").map_or_else(|| "../shared/data".into(), PathBuf::from)
}

/// A file of the folder of data, or what is said when it is not there.
pub(crate) fn data(name: &str) -> Result<PathBuf, PathBuf> {
    let path = folder().join(name);
    if path.is_file() { Ok(path) } else { Err(path) }
}
