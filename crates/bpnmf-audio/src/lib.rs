//! From a recording to counts, and from parts back to sounds. Knows nothing of inference, of tables or of the command line.

mod decode;
mod error;
mod overlap;
mod piece;
mod resample;
mod sound;
mod stft;
pub mod wav;

pub use decode::{Channel, read};
pub use error::{Error, Fault};
pub use piece::{Note, Piece, piece};
pub use realfft::num_complex::Complex;
pub use resample::resample;
pub use sound::Sound;
pub use stft::Stft;
