//! From a recording to counts, and from parts back to sounds. Knows nothing of inference, of tables or of the command line.

mod bss_eval;
mod decode;
mod error;
mod grouping;
mod levels;
pub mod notes;
mod overlap;
mod parts;
mod piece;
mod refine;
mod resample;
mod sound;
mod sources;
mod split;
mod stft;
pub mod wav;
mod wiener;

#[doc(hidden)]
pub use bss_eval::best_rows;
pub use bss_eval::{BssEval, Doubt, Scores, Unscorable, bss_eval};
#[doc(hidden)]
pub use decode::read_bytes;
pub use decode::{Channel, read, read_within};
pub use error::{Error, Fault};
pub use grouping::group;
pub use levels::{Levels, to_counts, to_units};
pub use parts::Parts;
pub use piece::{Note, Piece, piece};
pub use realfft::num_complex::Complex;
pub use resample::resample;
pub use sound::Sound;
pub use sources::{PickOne, pick_one, power_envelope};
pub use split::{Pieces, pick_all};
pub use stft::{Stft, default_window};
pub use wiener::Wiener;
