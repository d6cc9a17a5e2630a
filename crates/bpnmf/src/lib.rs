//! Beta process non-negative matrix factorization.
mod counts;
mod error;
mod random;
mod special;

pub use counts::{Column, Counts};
pub use error::Error;
pub use random::{Key, Stream};
