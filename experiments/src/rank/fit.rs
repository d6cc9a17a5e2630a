//! The two algorithms the experiments run: the one that finds K by itself, and the paper's as printed.

use bpnmf::{Counts, Observer, Plan, Preset, Settings, TraceRow, Workers};

/// What a fit found.
pub(crate) struct Found {
    /// K.
    pub(crate) components: usize,
    /// W, F x K by rows.
    pub(crate) dictionary: Vec<f32>,
    /// See [`bpnmf::Noise`]; `None` for Poisson.
    pub(crate) alpha: Option<f64>,
    /// Iterations that say nothing about the result yet.
    pub(crate) burn_in: usize,
    pub(crate) seconds: f64,
}

/// The default fit: what `bpnmf fit` does. `truncation` is the most components there may be; `None` leaves it to the algorithm.
pub(crate) fn auto(counts: &Counts, truncation: Option<usize>, seed: u64, workers: &Workers) -> Found {
    found(Plan { components: truncation, seed, ..Plan::default() }, counts, workers)
}

/// Algorithm 1 of the paper as printed, with its prior and 500 components to begin with.
pub(crate) fn literal(counts: &Counts, seed: u64, workers: &Workers) -> Found {
    let plan = Plan { preset: Preset::Paper, iterations: Some(100), stop: None, seed, ..Plan::default() };
    found(plan, counts, workers)
}

/// Any fit; the plan must be one that can run.
pub(crate) fn found(plan: Plan, counts: &Counts, workers: &Workers) -> Found {
    watched(plan, counts, workers, &mut |_: &TraceRow| true)
}

/// The same, seen by an observer.
pub(crate) fn watched(plan: Plan, counts: &Counts, workers: &Workers, observer: &mut dyn Observer) -> Found {
    let Settings { engine, prior, options } =
        plan.settings_for(counts).expect("the plans of experiments are sound");
    let fit = bpnmf::run(engine.as_ref(), counts, &prior, &options, workers, observer)
        .expect("what suits the plan can run");
    let (components, burn_in) = (fit.posterior.components(), fit.burn_in);
    let alpha = fit.discovery.and_then(|discovery| discovery.noise.alpha());
    Found { components, dictionary: fit.posterior.dictionary, alpha, burn_in, seconds: fit.seconds }
}
