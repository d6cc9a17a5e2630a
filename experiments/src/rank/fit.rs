//! The two algorithms the experiments run: the one that finds K by itself, and the paper's as printed.

use bpnmf::{Counts, Job, Observer, Plan, Preset, SearchStep, Standing, TraceRow, Workers};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

/// What a fit found.
pub(crate) struct Found {
    /// K.
    pub(crate) components: usize,
    /// The 90 % interval of K; `None` for one chain.
    pub(crate) interval: Option<(usize, usize)>,
    /// W, F x K by rows.
    pub(crate) dictionary: Vec<f32>,
    /// See [`bpnmf::Noise`]; `None` for Poisson.
    pub(crate) alpha: Option<f64>,
    /// Iterations that say nothing about the result yet.
    pub(crate) burn_in: usize,
    pub(crate) seconds: f64,
}

/// The default fit: what `bpnmf fit` does. `truncation` is the most components there may be, and `restarts` how often a search
/// starts again; `None` leaves it to the algorithm.
pub(crate) fn auto(
    counts: &Counts,
    truncation: Option<usize>,
    restarts: Option<usize>,
    seed: u64,
    workers: &Workers,
) -> Found {
    let mut job = job(&Plan { components: truncation, seed, ..Plan::default() }, counts);
    if let (Some(restarts), Some(search)) = (restarts, &mut job.options.search) {
        search.restarts = restarts;
    }
    done(&job, counts, workers, &mut |_: &TraceRow| true)
}

fn job(plan: &Plan, counts: &Counts) -> Job {
    plan.job(counts).expect("the plans of experiments are sound").0
}

/// Algorithm 1 of the paper as printed, with its prior and 500 components to begin with.
pub(crate) fn literal(counts: &Counts, seed: u64, workers: &Workers) -> Found {
    let plan = Plan { preset: Preset::Paper, iterations: Some(100), stop: None, seed, ..Plan::default() };
    found(&plan, counts, workers)
}

/// Any fit, with as many chains as the plan has; the plan must be one that can run.
pub(crate) fn found(plan: &Plan, counts: &Counts, workers: &Workers) -> Found {
    watched(plan, counts, workers, &mut |_: &TraceRow| true)
}

/// The same, the first chain seen by an observer.
pub(crate) fn watched(
    plan: &Plan,
    counts: &Counts,
    workers: &Workers,
    observer: &mut (dyn Observer + Send),
) -> Found {
    done(&job(plan, counts), counts, workers, observer)
}

fn done(job: &Job, counts: &Counts, workers: &Workers, observer: &mut (dyn Observer + Send)) -> Found {
    let start = Instant::now();
    let observer = Mutex::new(observer);
    let first = |chain: usize| First((chain == 0).then(|| observer.lock().expect("nobody else has it")));
    let chains = job.run(counts, workers, |_| None, first).expect("what suits the plan can run");
    let fit = chains.fit();
    Found {
        components: chains.n_components,
        interval: chains.interval,
        dictionary: fit.posterior.dictionary.clone(),
        alpha: fit.discovery.as_ref().and_then(|discovery| discovery.noise.alpha()),
        burn_in: chains.fits[0].burn_in,
        seconds: start.elapsed().as_secs_f64(),
    }
}

/// Shows the first chain to an observer, the others to nobody.
struct First<'a, 'o>(Option<MutexGuard<'a, &'o mut (dyn Observer + Send)>>);

impl Observer for First<'_, '_> {
    fn step(&mut self, row: &TraceRow) -> bool {
        self.0.as_mut().is_none_or(|observer| observer.step(row))
    }

    fn search(&mut self, step: &SearchStep) -> bool {
        self.0.as_mut().is_none_or(|observer| observer.search(step))
    }

    fn stands(&mut self, standing: &Standing<'_>) -> bool {
        self.0.as_mut().is_none_or(|observer| observer.stands(standing))
    }
}
