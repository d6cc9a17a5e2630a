//! From a recording to counts, and from parts back to sounds. Knows nothing of inference, of tables or of the command line.

mod bss_eval;
mod error;
mod sound;

pub use bss_eval::{BssEval, Doubt, Scores, Unscorable, bss_eval};
pub use error::Error;
pub use sound::Sound;
