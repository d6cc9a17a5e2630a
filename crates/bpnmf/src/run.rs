//! The one loop: engine, stop rule, trace, observers. It knows nothing of files or terminals.

use crate::checkpoint::{At, Checkpoint, Past, Standing};
use crate::counts::{Counts, Occupied};
use crate::diagnose::{HeldOut, PROBES, Probes, StopRule};
use crate::error::Error;
use crate::infer::{Batch, Engine, Jumped, State, Tiers};
use crate::noise::Noise;
use crate::posterior::{Counting, Passing, Posterior};
use crate::prior::CheckedPrior;
use crate::random::Key;
use crate::restore;
use crate::search::{self, Discovery, Resolution, Search, SearchStep, Stage, Watch};
use crate::workers::Workers;
use std::borrow::Cow;
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
    /// The search for the number of components that goes before; `None` to start as the engine does by itself. With a search,
    /// features and observations without a single count are set aside until the end: they do not change the answer, and 1 %
    /// of the columns is 1 % of those with counts. See [`Posterior`] for what they have there.
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
    /// How counts scatter about their rates: as the search found it, or as the engine was told.
    pub fn noise(&self) -> Noise {
        self.state.noise()
    }

    /// The same for people, in one sentence; `None` for data that were read more coarsely than they are, or are too smooth to
    /// be counts and were read as they are.
    pub fn noise_sentence(&self) -> Option<String> {
        let Some(discovery) = &self.discovery else { return Some(self.noise().sentence()) };
        if let Some(factor) = discovery.factor {
            return Some(format!(
                "Counts scatter with {factor:.1} times the variance of Poisson counts, whatever their rates."
            ));
        }
        match self.noise() {
            _ if discovery.coarsening < 1.0 => None,
            noise if !discovery.dispersion.is_smooth() => Some(noise.sentence()),
            Noise::Poisson => None,
            Noise::Scattered { alpha } => Some(format!(
                "The data are too smooth to be counts: no entry is read as if it were known to better than {:.0} % \
                 (alpha = {alpha:.0}).",
                100.0 / alpha.sqrt()
            )),
        }
    }

    /// The rows of the trace that count: those after the burn-in.
    pub fn kept(&self) -> &[TraceRow] {
        &self.trace[self.burn_in.min(self.trace.len())..]
    }

    /// Whether the number of components was given, not found.
    pub fn forced(&self) -> bool {
        self.discovery.as_ref().is_some_and(|discovery| discovery.forced.is_some())
    }

    /// The number of components in every row of the trace.
    ///
    /// Evidence is asked of the averages, not of single rows, so a row says how far the number has moved: all rows are
    /// shifted such that the median of those after the burn-in is [`Posterior::components`], the number that counts.
    pub fn numbers(&self) -> Vec<usize> {
        let found = self.posterior.components();
        if self.forced() || self.stop_reason == StopReason::NoCounts {
            return vec![found; self.trace.len()];
        }
        let mut active: Vec<usize> = self.kept().iter().map(|row| row.active).collect();
        active.sort_unstable();
        let median = active.get(active.len().saturating_sub(1) / 2).copied().unwrap_or(0);
        let shifted = |row: &TraceRow| (found + row.active).saturating_sub(median).max(found.min(1));
        self.trace.iter().map(shifted).collect()
    }

    /// The number of components when the data are read more coarsely, coarsest first; the last one is
    /// [`Posterior::components`]. Empty without a search, and if the number was given.
    pub fn resolution_path(&self) -> Vec<Resolution> {
        let Some(discovery) = self.discovery.as_ref().filter(|discovery| discovery.forced.is_none()) else {
            return Vec::new();
        };
        let mut path = discovery.path.clone();
        if let Some(last) = path.last_mut() {
            last.components = self.posterior.components();
        }
        path
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
    if options.iterations == 0 || options.iterations > u32::MAX as usize / 2 {
        let value = options.iterations as f64;
        return Err(Error::BadOption { name: "iterations", value, range: "between 1 and 2^31" });
    }
    engine.check(counts)?;
    let key = Key::new(options.seed);
    let start = Instant::now();
    let mut interrupted = false;
    if let Some(search) = &options.search {
        search.check(counts.features())?;
    }
    // Rows and columns without a count say nothing, and the search would take them for data: they come back at the end.
    let occupied = options.search.as_ref().and_then(|_| counts.occupied());
    let counts = occupied.map_or(counts, Occupied::counts);
    if let Some(checkpoint) = &checkpoint {
        checkpoint.check(engine, counts, options)?;
    }
    let (discovery, coarse, mut state, mut trace) = match checkpoint.map(|checkpoint| checkpoint.past) {
        Some(Past::Iterations { discovery, trace, state }) => {
            let coarse = discovery.as_ref().and_then(|discovery| search::counts_after(discovery, counts));
            (discovery, coarse, *state, trace)
        }
        begun => {
            let past = match begun {
                Some(Past::Search(journal)) => Some(journal),
                _ => None,
            };
            let found = match &options.search {
                Some(search) => {
                    let search = match (occupied, &search.guess) {
                        (Some(occupied), Some(guess)) => {
                            let guess = Some(occupied.select_features(guess));
                            Cow::Owned(Search { guess, ..search.clone() })
                        }
                        _ => Cow::Borrowed(search),
                    };
                    let (name, seed) = (engine.name(), options.seed);
                    let mut searching = Searching { engine: name, seed, observer, stopped: false };
                    let found = (counts.nonzeros() > 0)
                        .then(|| search.run_from(past, counts, prior, key, workers, &mut searching))
                        .transpose()?;
                    interrupted = searching.stopped || workers.ends() == Some(StopReason::Interrupted);
                    found
                }
                None => None,
            };
            match found {
                Some(found) => {
                    let state = engine.start(&found);
                    (Some(found.discovery), found.counts, state, Vec::new())
                }
                None => (None, None, engine.init(counts, prior, key), Vec::new()),
            }
        }
    };
    let coarsening = discovery.as_ref().map_or(1.0, |discovery| discovery.coarsening);
    let counts = coarse.as_ref().unwrap_or(counts);
    let prior = discovery.as_ref().map_or(prior, |discovery| &discovery.prior);
    let batch = Batch::all(counts);
    let probes = Probes::new(counts);
    let before = trace.last().map_or(0.0, |row| row.seconds);
    let mut objective: Vec<f64> = trace.iter().map(|row| row.log_joint).collect();
    let mut components: Vec<usize> = trace.iter().map(|row| row.active).collect();
    let over = |objective: &[f64], components: &[usize]| {
        let iteration = objective.len();
        let settled =
            |rule: StopRule| iteration >= engine.least_iterations() && rule.settled(objective, components);
        if iteration == 0 {
            None
        } else if counts.nonzeros() == 0 {
            Some(StopReason::NoCounts)
        } else if options.stop.is_some_and(settled) {
            Some(StopReason::Converged)
        } else {
            (iteration == options.iterations).then_some(StopReason::IterationLimit)
        }
    };
    let score = |held_out: &HeldOut, state: &State| match occupied {
        // What is held out may have counts where nothing was left to fit.
        Some(occupied) => {
            let (dictionary, activations) = restore::factors(state, occupied, prior);
            held_out.score_factors(&dictionary, &activations, coarsening, state.noise())
        }
        None => held_out.score(state, coarsening),
    };
    let mut ended = over(&objective, &components);
    while ended.is_none() {
        let info = engine.step(&mut state, &batch, prior, key, workers)?;
        let row = TraceRow {
            iteration: trace.len() + 1,
            active: info.active,
            on_anywhere: info.on_anywhere,
            sites_on: info.sites_on,
            log_likelihood: info.log_likelihood,
            log_joint: info.log_joint,
            activation: info.activation,
            reconstruction: probes.read(&state),
            held_out: options.held_out.as_ref().map(|held_out| score(held_out, &state)),
            tiers: info.tiers,
            jumped: info.jumped,
            seconds: before + start.elapsed().as_secs_f64(),
        };
        trace.push(row);
        objective.push(row.log_joint);
        components.push(row.active);
        let asked = !observer.step(&row);
        let cut = workers.ends();
        let late = cut == Some(StopReason::TimeBudget);
        ended = cut
            .or((asked || interrupted).then_some(StopReason::Interrupted))
            .or_else(|| over(&objective, &components));
        let standing = Standing {
            engine: engine.name(),
            seed: options.seed,
            at: At::Iteration { discovery: discovery.as_ref(), trace: &trace, state: &state },
            ended,
        };
        if !interrupted && !late && !observer.stands(&standing) {
            ended = ended.or(Some(StopReason::Interrupted));
        }
    }
    let slots = engine.slots(&state);
    let evidence = discovery.as_ref().map(|discovery| search::evidence(&slots, counts, discovery, workers));
    let most = options.search.as_ref().map_or(0, |search| search.passing);
    let passing = Passing { most, columns: occupied.map(Occupied::columns) };
    // Misfit of the noise makes components of few columns; where the noise is known they are what they seem.
    let rare = discovery.as_ref().is_some_and(|discovery| discovery.noise != Noise::Poisson);
    let least = discovery.as_ref().map_or(0, |discovery| discovery.rank);
    let counting = match (&evidence, discovery.as_ref().and_then(|discovery| discovery.forced)) {
        (Some(evidence), Some(wanted)) => Counting::Forced(wanted, evidence),
        (Some(evidence), None) => Counting::Evidence { evidence, passing, least, rare },
        (None, _) => Counting::Usage,
    };
    let mut posterior = Posterior::new(counts, &slots, counting, 1.0 / coarsening);
    drop(slots);
    if let Some(occupied) = occupied {
        posterior = restore::posterior(posterior, occupied, prior, 1.0 / coarsening);
        state = restore::state(&state, occupied, prior);
    }
    Ok(Fit {
        posterior,
        discovery,
        burn_in: engine.burn_in(trace.len()),
        trace,
        stop_reason: ended.expect("the loop ends with a reason"),
        seconds: before + start.elapsed().as_secs_f64(),
        state,
    })
}

/// Shows a search to an observer.
struct Searching<'a> {
    engine: &'static str,
    seed: u64,
    observer: &'a mut dyn Observer,
    stopped: bool,
}

impl Watch for Searching<'_> {
    fn step(&mut self, step: &SearchStep) -> bool {
        self.stopped |= !self.observer.search(step);
        !self.stopped
    }

    fn stands(&mut self, stage: &Stage<'_>) -> bool {
        let ended = stage.stopped.then_some(StopReason::Interrupted);
        let standing = Standing { engine: self.engine, seed: self.seed, at: At::Search(stage), ended };
        self.stopped |= !self.observer.stands(&standing);
        !self.stopped
    }
}
