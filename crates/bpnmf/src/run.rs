//! The one loop: engine, stop rule, trace, observers. It knows nothing of files or terminals.

use crate::counts::Counts;
use crate::diagnose::{HeldOut, PROBES, Probes, StopRule};
use crate::error::Error;
use crate::infer::{Batch, Engine, State, Tiers};
use crate::posterior::{Counting, Posterior};
use crate::prior::CheckedPrior;
use crate::random::Key;
use crate::search::{self, Discovery, Search, SearchStep};
use crate::workers::Workers;
use std::time::Instant;

/// How long to run and how to judge it.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The most iterations.
    pub iterations: usize,
    /// The seed of every random number.
    pub seed: u64,
    /// When to stop before that; `None` for never.
    pub stop: Option<StopRule>,
    /// Counts to score every iteration on.
    pub held_out: Option<HeldOut>,
    /// The search for the number of components that goes before; `None` to start as the engine does by itself.
    pub search: Option<Search>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { iterations: 200, seed: 0, stop: Some(StopRule::default()), held_out: None, search: None }
    }
}

/// One iteration, as the trace keeps it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct TraceRow {
    /// From 1.
    pub iteration: usize,
    /// Components on in at least 1 % of the columns.
    pub active: usize,
    /// Components on anywhere.
    pub on_anywhere: usize,
    /// Sites that are on.
    pub sites_on: u64,
    /// log p(X | W, H, S).
    pub log_likelihood: f64,
    /// log p(X, S, W, H), see [`crate::Info::log_joint`].
    pub log_joint: f64,
    /// The expected number of counts, see [`crate::Info::activation`].
    pub activation: f64,
    /// sum_k W_fk H_kt S_kt after the iteration at four entries of the matrix, the same for every run on it: positive
    /// ones at the 1/8, 3/8, 5/8 and 7/8 quantiles.
    pub reconstruction: [f64; PROBES],
    /// Held-out log-likelihood per entry, if asked for.
    pub held_out: Option<f64>,
    /// How the sites of the mask were decided.
    pub tiers: Tiers,
    /// Seconds since the start.
    pub seconds: f64,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The stop rule was met.
    Converged,
    /// The iterations were used up.
    IterationLimit,
    /// An observer asked for it.
    Interrupted,
    /// There is not a single count: nothing to infer.
    NoCounts,
}

impl StopReason {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::IterationLimit => "iteration limit",
            Self::Interrupted => "interrupted",
            Self::NoCounts => "no counts",
        }
    }
}

/// Sees every iteration.
pub trait Observer {
    /// Called after every iteration; `false` ends the run.
    fn step(&mut self, row: &TraceRow) -> bool;

    /// Called after every stage of a search; `false` ends the run.
    fn search(&mut self, step: &SearchStep) -> bool {
        let _ = step;
        true
    }
}

/// Any closure is an observer.
impl<F: FnMut(&TraceRow) -> bool> Observer for F {
    fn step(&mut self, row: &TraceRow) -> bool {
        self(row)
    }
}

/// What a run leaves behind.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Fit {
    /// The components.
    pub posterior: Posterior,
    /// One row an iteration.
    pub trace: Vec<TraceRow>,
    /// The rows at the beginning of the trace that say nothing about the result yet, see [`Engine::burn_in`].
    pub burn_in: usize,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// Seconds it took.
    pub seconds: f64,
    /// The state at the end.
    pub state: State,
    /// What the search before it found, if there was one.
    pub discovery: Option<Discovery>,
}

impl Fit {
    /// The number of components that count at a row of the trace.
    pub(crate) fn components_at(&self, row: &TraceRow) -> usize {
        match self.discovery.as_ref().and_then(|discovery| discovery.forced) {
            Some(wanted) => wanted,
            None => row.active.saturating_sub(self.posterior.surplus),
        }
    }
}

/// Runs `engine` on `counts`.
///
/// ```
/// use bpnmf::*;
/// let synthetic = Recipe { features: 20, observations: 60, ..Default::default() }.draw(3)?;
/// let prior = Prior { components: 30, ..Default::default() }.check()?;
/// let engine = Gibbs { burn_in: 10, ..Default::default() };
/// let options = RunOptions { iterations: 20, ..Default::default() };
/// let fit = run(&engine, &synthetic.counts, &prior, &options, &Workers::serial(), &mut |_: &TraceRow| true)?;
/// assert_eq!(fit.posterior.dictionary.len(), 20 * fit.posterior.components());
/// # Ok::<(), Error>(())
/// ```
pub fn run(
    engine: &dyn Engine,
    counts: &Counts,
    prior: &CheckedPrior,
    options: &RunOptions,
    workers: &Workers,
    observer: &mut dyn Observer,
) -> Result<Fit, Error> {
    if options.iterations == 0 || options.iterations > u32::MAX as usize / 2 {
        let value = options.iterations as f64;
        return Err(Error::BadOption { name: "iterations", value, range: "between 1 and 2^31" });
    }
    engine.check(counts)?;
    let key = Key::new(options.seed);
    let start = Instant::now();
    let mut interrupted = false;
    let found = match &options.search {
        Some(search) => {
            search.check(counts.features())?;
            let mut watch = |step: &SearchStep| {
                interrupted |= !observer.search(step);
                !interrupted
            };
            (counts.nonzeros() > 0)
                .then(|| search.run(counts, prior, key, workers, &mut watch))
                .transpose()?
        }
        None => None,
    };
    let mut state = match &found {
        Some(found) => engine.start(found),
        None => engine.init(counts, prior, key),
    };
    let coarsening = found.as_ref().map_or(1.0, |found| found.discovery.coarsening);
    let counts = found.as_ref().and_then(|found| found.counts.as_ref()).unwrap_or(counts);
    let prior = found.as_ref().map_or(prior, |found| &found.discovery.prior);
    let mut trace: Vec<TraceRow> = Vec::new();
    let (mut objective, mut components) = (Vec::new(), Vec::new());
    let batch = Batch::all(counts);
    let probes = Probes::new(counts);
    let mut stop_reason = StopReason::IterationLimit;
    for iteration in 1..=options.iterations {
        let info = engine.step(&mut state, &batch, prior, key, workers)?;
        let row = TraceRow {
            iteration,
            active: info.active,
            on_anywhere: info.on_anywhere,
            sites_on: info.sites_on,
            log_likelihood: info.log_likelihood,
            log_joint: info.log_joint,
            activation: info.activation,
            reconstruction: probes.read(&state),
            held_out: options.held_out.as_ref().map(|held_out| held_out.score(&state, coarsening)),
            tiers: info.tiers,
            seconds: start.elapsed().as_secs_f64(),
        };
        trace.push(row);
        objective.push(row.log_joint);
        components.push(row.active);
        if !observer.step(&row) || interrupted {
            stop_reason = StopReason::Interrupted;
            break;
        }
        if counts.nonzeros() == 0 {
            stop_reason = StopReason::NoCounts;
            break;
        }
        let may_stop = iteration >= engine.least_iterations();
        if may_stop && options.stop.is_some_and(|rule| rule.settled(&objective, &components)) {
            stop_reason = StopReason::Converged;
            break;
        }
    }
    let slots = engine.slots(&state);
    let evidence = found.as_ref().map(|_| search::evidence(&slots, counts, prior, workers));
    let counting = match (&evidence, found.as_ref().and_then(|found| found.discovery.forced)) {
        (Some(evidence), Some(wanted)) => Counting::Forced(wanted, evidence),
        (Some(evidence), None) => Counting::Evidence(evidence),
        (None, _) => Counting::Usage,
    };
    let posterior = Posterior::new(counts, &slots, counting, 1.0 / coarsening);
    drop(slots);
    Ok(Fit {
        posterior,
        discovery: found.map(|found| found.discovery),
        burn_in: engine.burn_in(trace.len()),
        trace,
        stop_reason,
        seconds: start.elapsed().as_secs_f64(),
        state,
    })
}
