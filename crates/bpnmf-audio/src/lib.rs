//! From a recording to counts, and from parts back to sounds. Knows nothing of inference, of tables or of the command line.

mod error;
mod sound;

pub use error::Error;
pub use sound::Sound;
