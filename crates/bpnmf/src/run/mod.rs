//! One run: begin, sample, conclude; with what it is asked for, what it shows, and what it leaves behind. It knows nothing of
//! files or terminals.

mod fit;
mod stages;

use crate::checkpoint::{Checkpoint, Standing};
use crate::counts::Counts;
use crate::diagnose::{HeldOut, PROBES, StopRule};
use crate::error::Error;
use crate::infer::{Engine, Jumped, Tiers};
use crate::prior::CheckedPrior;
use crate::search::{Search, SearchStep};
use crate::workers::Workers;
pub use fit::Fit;
use stages::Run;

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
    /// The search for the number of components that goes before; `None` to start as the engine does by itself. With a search,
    /// features and observations without a single count are set aside until the end: they do not change the answer, and 1 %
    /// of the columns is 1 % of those with counts. See [`crate::Posterior`] for what they have there.
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
    /// log p(X | W, H, S), see [`crate::Info::log_likelihood`].
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
    /// Moves between numbers of components.
    pub jumped: Jumped,
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
    /// The time was over, see [`Workers::with_deadline`].
    TimeBudget,
    /// Of several chains: they were sure, see [`crate::run_until_sure`].
    Sure,
    /// Of several chains: there were as many as there may be before they were sure.
    ChainLimit,
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
            Self::TimeBudget => "time budget",
            Self::Sure => "sure",
            Self::ChainLimit => "chain limit",
            Self::NoCounts => "no counts",
        }
    }

    /// Whether the run had more to do.
    pub(crate) fn cut_short(self) -> bool {
        matches!(self, Self::Interrupted | Self::TimeBudget)
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

    /// Called after every iteration, after [`Self::step`], and after every stage of a search: the place to keep a
    /// checkpoint. `false` ends the run. Not called after a search that was ended early: such a run cannot go on as if
    /// nothing had happened.
    fn stands(&mut self, standing: &Standing<'_>) -> bool {
        let _ = standing;
        true
    }
}

/// Any closure is an observer.
impl<F: FnMut(&TraceRow) -> bool> Observer for F {
    fn step(&mut self, row: &TraceRow) -> bool {
        self(row)
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
    run_from(None, engine, counts, prior, options, workers, observer)
}

/// Goes on from a checkpoint of the same run, if there is one: with the same arguments it ends with the same bits, but for
/// the seconds. A checkpoint of a run that was over ends at once.
///
/// ```
/// use bpnmf::*;
/// struct Keep(Vec<u8>);
/// impl Observer for Keep {
///     fn step(&mut self, row: &TraceRow) -> bool {
///         row.iteration < 7
///     }
///     fn stands(&mut self, standing: &Standing<'_>) -> bool {
///         self.0.clear();
///         standing.write(&mut self.0).is_ok()
///     }
/// }
/// let counts = Recipe { features: 20, observations: 60, ..Default::default() }.draw(3)?.counts;
/// let prior = Prior { components: 30, ..Default::default() }.check()?;
/// let (engine, workers) = (Gibbs { burn_in: 10, ..Default::default() }, Workers::serial());
/// let options = RunOptions { iterations: 20, ..Default::default() };
/// let mut keep = Keep(Vec::new());
/// let fit = run(&engine, &counts, &prior, &options, &workers, &mut keep)?;
/// assert_eq!((fit.stop_reason, fit.trace.len()), (StopReason::Interrupted, 7));
///
/// let checkpoint = Checkpoint::read(&keep.0)?;
/// let nobody = &mut |_: &TraceRow| true;
/// let resumed = run_from(Some(checkpoint), &engine, &counts, &prior, &options, &workers, nobody)?;
/// let unbroken = run(&engine, &counts, &prior, &options, &workers, nobody)?;
/// assert_eq!(resumed.posterior, unbroken.posterior);
/// # Ok::<(), Error>(())
/// ```
pub fn run_from(
    checkpoint: Option<Checkpoint>,
    engine: &dyn Engine,
    counts: &Counts,
    prior: &CheckedPrior,
    options: &RunOptions,
    workers: &Workers,
    observer: &mut dyn Observer,
) -> Result<Fit, Error> {
    let mut run = Run::begin(checkpoint, engine, counts, prior, options, workers, observer)?;
    let reason = run.sample(observer)?;
    Ok(run.conclude(reason))
}
