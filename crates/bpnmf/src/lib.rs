//! Beta process non-negative matrix factorization.
#[doc(hidden)]
pub mod bench;
mod counts;
mod error;
mod infer;
mod kernel;
mod posterior;
mod prior;
mod random;
mod special;
mod stats;
mod synth;
mod workers;

pub use counts::{Column, Counts};
pub use error::Error;
pub use infer::{Batch, Engine, Gibbs, Info, Init, Ssmf, State, Tiers};
pub use kernel::Simd;
pub use posterior::Posterior;
pub use prior::{CheckedPrior, Prior};
pub use random::{Key, Stream};
pub use synth::{GammaReading, Recipe, Synthetic};
pub use workers::Workers;
