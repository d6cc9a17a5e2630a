//! What can be wrong with a recording, and what to do about it.

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be opened, read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The sounds cannot be scored.
    #[error(transparent)]
    Unscorable(#[from] crate::bss_eval::Unscorable),
}
