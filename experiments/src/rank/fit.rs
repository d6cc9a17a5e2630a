//! The two algorithms the experiment runs: the one that finds K by itself, and the paper's as printed.

use bpnmf::{Counts, Engine, Gibbs, Prior, RunOptions, Search, Ssmf, StopRule, TraceRow, Workers};

/// What a fit found.
pub(super) struct Found {
    /// K.
    pub(super) components: usize,
    /// W, F x K by rows.
    pub(super) dictionary: Vec<f32>,
    pub(super) seconds: f64,
}

/// The default fit: what `bpnmf fit` does. `truncation` is the most components there may be; `None` leaves it to the algorithm.
pub(super) fn auto(counts: &Counts, truncation: Option<usize>, seed: u64, workers: &Workers) -> Found {
    let default = Prior::default();
    let prior = Prior { components: truncation.unwrap_or(default.components), ..default };
    let engine = Gibbs { burn_in: 30, ..Gibbs::default() };
    plainly(&engine, counts, prior, Some(Search::default()), 100, seed, workers)
}

/// Algorithm 1 of the paper as printed, with its prior and 500 components to begin with.
pub(super) fn literal(counts: &Counts, seed: u64, workers: &Workers) -> Found {
    plainly(&Ssmf::default(), counts, Prior::default(), None, 100, seed, workers)
}

/// A run, with a search before it or an engine alone.
fn plainly(
    engine: &dyn Engine,
    counts: &Counts,
    prior: Prior,
    search: Option<Search>,
    iterations: usize,
    seed: u64,
    workers: &Workers,
) -> Found {
    let prior = prior.check().expect("the priors above are in range");
    let stop = search.as_ref().map(|_| StopRule::default());
    let options = RunOptions { iterations, seed, stop, search, ..RunOptions::default() };
    let fit = bpnmf::run(engine, counts, &prior, &options, workers, &mut |_: &TraceRow| true)
        .expect("whole counts suit every engine");
    let components = fit.posterior.components();
    Found { components, dictionary: fit.posterior.dictionary, seconds: fit.seconds }
}
