//! Beta process non-negative matrix factorization: what parts a matrix of counts is made of, how many there are, and
//! when each is on.
//!
//! The model is that of Liang & Hoffman (2014): `X_ft ~ Poisson(sum_k W_fk H_kt S_kt)` with gamma priors on W and H and
//! a truncated beta process on the binary mask S, so that the data choose how many components are used.
//!
//! [`Counts`] and a checked [`Prior`] enter [`run`], which calls one [`Engine`]'s `step` again and again; out comes a
//! [`Posterior`]. Engines: [`Gibbs`] (exact; for counts that scatter more than Poisson counts see [`Noise`]) and [`Ssmf`]
//! (Algorithm 1 of the paper). [`run_chains`] makes several runs and [`Chains`] says how many components they find together,
//! and how sure that is.
//!
//! The same seed gives the same bits, whatever the threads, the instructions and the block size.

#[doc(hidden)]
pub mod bench;
mod chains;
mod checkpoint;
mod counts;
mod diagnose;
mod error;
mod infer;
mod intervals;
mod kernel;
mod meanfield;
mod noise;
#[cfg(test)]
mod numbers_tests;
mod plan;
mod posterior;
mod prior;
mod random;
mod recurrence;
mod restore;
mod run;
mod search;
mod special;
mod stats;
mod suspicion;
mod synth;
mod workers;

pub use chains::{
    Chains, Convergence, Disagreement, MOST_CHAINS_UNTIL_SURE, chain_seed, run_chains, run_until_sure,
};
pub use checkpoint::{Checkpoint, Standing};
pub use counts::{Column, Counts};
pub use diagnose::{HeldOut, PROBES, StopRule, bulk_ess, r_hat};
pub use error::Error;
pub use infer::{
    AssignOptions, Assigned, Basis, Batch, Engine, Gibbs, Info, Init, Jumped, Jumps, ProjectOptions,
    Projection, Ssmf, State, Tiers,
};
pub use intervals::Intervals;
pub use kernel::Simd;
pub use meanfield::nmf::nmf;
pub use noise::Noise;
pub use plan::{EngineKind, Plan, Preset, Settings, time_of};
pub use posterior::Posterior;
pub use prior::{CheckedPrior, ComponentsPrior, Prior};
pub use random::{Key, Stream};
pub use recurrence::Recurrence;
pub use run::{Fit, Observer, RunOptions, StopReason, TraceRow, run, run_from};
pub use search::{Discovery, Dispersion, Resolution, Search, SearchStep, TYPICAL_ENTRY};
pub use suspicion::Suspicion;
pub use synth::{GammaReading, Recipe, Synthetic};
pub use workers::Workers;

/// The version of this library.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The README's example, so that it stays true.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
