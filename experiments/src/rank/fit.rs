//! The two algorithms the experiment runs: the one that finds K by itself, and the paper's as printed.

use bpnmf::{Counts, Plan, Preset, Settings, TraceRow, Workers};

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
    found(Plan { components: truncation, seed, ..Plan::default() }, counts, workers)
}

/// Algorithm 1 of the paper as printed, with its prior and 500 components to begin with.
pub(super) fn literal(counts: &Counts, seed: u64, workers: &Workers) -> Found {
    let plan = Plan { preset: Preset::Paper, iterations: Some(100), stop: None, seed, ..Plan::default() };
    found(plan, counts, workers)
}

fn found(plan: Plan, counts: &Counts, workers: &Workers) -> Found {
    let Settings { engine, prior, options } = plan.settings_for(counts).expect("the plans above are sound");
    let fit = bpnmf::run(engine.as_ref(), counts, &prior, &options, workers, &mut |_: &TraceRow| true)
        .expect("whole counts suit every engine");
    let components = fit.posterior.components();
    Found { components, dictionary: fit.posterior.dictionary, seconds: fit.seconds }
}
