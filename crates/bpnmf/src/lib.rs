//! Beta process non-negative matrix factorization: of how many components a matrix of counts is the sum, what they are, in
//! which observations each is present, and how sure that is.
//!
//! The model is that of Liang & Hoffman (2014): `X_ft ~ Poisson(sum_k W_fk H_kt S_kt)` with gamma priors on W and H and
//! a truncated beta process on the binary mask S, so that the data choose how many components are used.
//!
//! # From your numbers to the components
//!
//! [`Counts`] holds the matrix, features x observations. [`fit`] does the rest: it searches for the components, samples
//! several chains, and says what they have in common.
//!
//! ```
//! use bpnmf::{Counts, Plan, fit};
//!
//! // Five words in six short texts, text after text.
//! let texts: [[f64; 5]; 6] = [
//!     [21.0, 14.0, 9.0, 0.0, 0.0],
//!     [0.0, 0.0, 11.0, 17.0, 12.0],
//!     [17.0, 12.0, 6.0, 1.0, 0.0],
//!     [0.0, 1.0, 8.0, 13.0, 9.0],
//!     [9.0, 7.0, 9.0, 8.0, 6.0],
//!     [25.0, 15.0, 10.0, 0.0, 1.0],
//! ];
//! let counts = Counts::from_dense(5, 6, texts.concat())?;
//!
//! let chains = fit(&counts, &Plan { seed: 1, ..Plan::default() })?;
//! let model = &chains.fit().posterior;
//!
//! let (first, last) = chains.interval.expect("there are four chains");
//! assert!((first..=last).contains(&model.components()));
//! let weight = |f: usize, k: usize| model.dictionary[f * model.components() + k];
//! assert!(weight(0, 0) > 0.0);
//! # Ok::<(), bpnmf::Error>(())
//! ```
//!
//! Sparse matrices enter by [`Counts::from_sparse`], missing entries by [`Counts::from_dense_with_missing`], and arrays of
//! `ndarray` with the feature `ndarray`, by `Counts::try_from(array.view())`. Files, sound and pages are crates of their
//! own: `bpnmf-io`, `bpnmf-audio` and `bpnmf-report`.
//!
//! # What is where
//!
//! | to | use |
//! |---|---|
//! | hold the data | [`Counts`] |
//! | choose anything but the defaults: the number of components, the engine, the noise, the chains | [`Plan`], [`Prior`], [`Noise`] |
//! | fit in one call | [`fit`], which gives [`Chains`] |
//! | read the result | [`Posterior`] in [`Chains::fit`], [`Intervals`], [`Recurrence`] |
//! | find the components in new observations | [`Basis`], [`Projection`] |
//! | watch, stop, or resume a fit | [`Plan::job`], [`Job::run`] with an [`Observer`] and a [`Checkpoint`] |
//! | run one chain, or several of your own | [`run`], [`run_from`], [`Chains::run`] |
//! | choose an engine yourself | [`Gibbs`] (exact), [`Ssmf`] (Algorithm 1 of the paper), [`Map`] (mean field), [`NbProcess`] (another model), [`Engine`] |
//! | fit data that are larger than memory | [`fit_blocks`] with a [`BlockSource`] |
//! | make up data whose components are known | [`Recipe`] |
//!
//! # How it works
//!
//! [`Counts`] and a checked [`Prior`] enter [`run`], which calls one [`Engine`]'s `step` again and again; out comes a
//! [`Posterior`]. Engines: [`Gibbs`] (exact; for counts that scatter more than Poisson counts see [`Noise`]) and [`Ssmf`]
//! (Algorithm 1 of the paper). [`run_chains`] makes several runs and [`Chains`] says how many components they find together,
//! and how sure that is.
//!
//! Front ends use what lies above this: a [`Plan`] holds what somebody wishes, [`Plan::job`] checks it against the data and
//! fills it in, and the [`Job`] runs the chains and says what keeps them from being trusted.
//!
//! The same seed gives the same bits, whatever the threads, the instructions and the block size.

#[doc(hidden)]
pub mod bench;
mod blocks;
mod chains;
mod checkpoint;
mod counts;
mod diagnose;
mod error;
mod fit;
mod infer;
mod intervals;
mod job;
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
mod statistics;
mod suspicion;
mod synth;
mod workers;

pub use blocks::{
    BLOCK_OBSERVATIONS, BlockFit, BlockFound, BlockMeans, BlockObserver, BlockSource, BlockStatistics,
    Blocks, Round, SAMPLE, Stage, Survey, blocks_of, columns_of, fit_blocks, sample_columns,
};
pub use chains::{
    Chains, Convergence, Disagreement, MOST_CHAINS_UNTIL_SURE, chain_seed, run_chains, run_until_sure,
};
pub use checkpoint::{Checkpoint, Standing};
pub use counts::{Column, Counts};
pub use diagnose::{HeldOut, PROBES, StopRule, bulk_ess, r_hat};
pub use error::Error;
pub use fit::fit;
pub use infer::{
    AssignOptions, Assigned, Basis, Batch, BlockKey, Effort, Engine, Gibbs, Gradient, Info, Init, Jumped,
    Jumps, Local, Map, NbProcess, ProjectOptions, Projection, Shared, Ssmf, State, Tiers,
};
pub use intervals::Intervals;
pub use job::{Job, Warning};
pub use kernel::Simd;
pub use meanfield::nmf::nmf;
pub use noise::Noise;
pub use plan::{EngineKind, Instead, Plan, Preset, PriorWish, SsmfWish, WhosePrior, time_of};
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
