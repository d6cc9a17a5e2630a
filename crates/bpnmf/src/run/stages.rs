//! The three stages of a run: begin, which searches or takes a checkpoint up; sample, the only loop; conclude.

use super::{Fit, Observer, RunOptions, StopReason, TraceRow};
use crate::checkpoint::{At, Checkpoint, Past, Standing};
use crate::counts::{Counts, Occupied};
use crate::diagnose::{HeldOut, Probes};
use crate::error::Error;
use crate::infer::{Batch, Engine, Info, State};
use crate::noise::Noise;
use crate::posterior::{Counting, Passing, Posterior};
use crate::prior::CheckedPrior;
use crate::random::Key;
use crate::restore;
use crate::search::{self, Discovery, Found, Journal, Search, SearchStep, Stage, Watch};
use crate::workers::Workers;
use std::borrow::Cow;
use std::time::Instant;

/// A run that has begun.
pub(super) struct Run<'a> {
    engine: &'a dyn Engine,
    options: &'a RunOptions,
    workers: &'a Workers,
    key: Key,
    start: Instant,
    /// Seconds that the iterations before the checkpoint took.
    before: f64,
    /// What is sampled: rows and columns with counts, read as coarsely as the search decided.
    counts: Cow<'a, Counts>,
    /// Where these rows and columns stood, if others were set aside.
    occupied: Option<&'a Occupied>,
    /// As it was given, or learned.
    prior: CheckedPrior,
    discovery: Option<Discovery>,
    state: State,
    trace: Vec<TraceRow>,
    /// Somebody ended the search: one iteration follows.
    interrupted: bool,
}

impl<'a> Run<'a> {
    /// Checks the request, and searches or takes the checkpoint up.
    pub(super) fn begin(
        checkpoint: Option<Checkpoint>,
        engine: &'a dyn Engine,
        counts: &'a Counts,
        prior: &CheckedPrior,
        options: &'a RunOptions,
        workers: &'a Workers,
        observer: &mut dyn Observer,
    ) -> Result<Self, Error> {
        if options.iterations == 0 || options.iterations > u32::MAX as usize / 2 {
            let value = options.iterations as f64;
            return Err(Error::BadOption { name: "iterations", value, range: "between 1 and 2^31" });
        }
        engine.check(counts)?;
        let (key, start) = (Key::new(options.seed), Instant::now());
        if let Some(search) = &options.search {
            search.check(counts.features())?;
        }
        // Rows and columns without a count say nothing, and the search would take them for data: they come back at the end.
        let occupied = options.search.as_ref().and_then(|_| counts.occupied());
        let counts = occupied.map_or(counts, Occupied::counts);
        if let Some(checkpoint) = &checkpoint {
            checkpoint.check(engine, counts, options)?;
        }
        let begun = Begun { engine, counts, occupied, prior, options, workers, key };
        let (discovery, coarse, state, trace, interrupted) = match checkpoint
            .map(|checkpoint| checkpoint.past)
        {
            Some(Past::Iterations { discovery, trace, state }) => {
                let coarse = discovery.as_ref().and_then(|discovery| search::counts_after(discovery, counts));
                (discovery, coarse, *state, trace, false)
            }
            Some(Past::Search(journal)) => begun.start(Some(journal), observer)?,
            None => begun.start(None, observer)?,
        };
        let prior = discovery.as_ref().map_or(*prior, |discovery| discovery.prior);
        let counts = coarse.map_or(Cow::Borrowed(counts), Cow::Owned);
        let before = trace.last().map_or(0.0, |row| row.seconds);
        Ok(Self {
            engine,
            options,
            workers,
            key,
            start,
            before,
            counts,
            occupied,
            prior,
            discovery,
            state,
            trace,
            interrupted,
        })
    }

    /// Iterations, until there is a reason to stop.
    pub(super) fn sample(&mut self, observer: &mut dyn Observer) -> Result<StopReason, Error> {
        let probes = Probes::new(&self.counts);
        let mut objective: Vec<f64> = self.trace.iter().map(|row| row.log_joint).collect();
        let mut components: Vec<usize> = self.trace.iter().map(|row| row.active).collect();
        let mut ended = self.over(&objective, &components);
        loop {
            if let Some(reason) = ended {
                return Ok(reason);
            }
            let batch = Batch::all(&self.counts);
            let info = self.engine.step(&mut self.state, &batch, &self.prior, self.key, self.workers)?;
            let row = self.row(&info, &probes);
            self.trace.push(row);
            objective.push(row.log_joint);
            components.push(row.active);
            let asked = !observer.step(&row);
            let cut = self.workers.ends();
            let late = cut == Some(StopReason::TimeBudget);
            ended = cut
                .or((asked || self.interrupted).then_some(StopReason::Interrupted))
                .or_else(|| self.over(&objective, &components));
            let standing = Standing {
                engine: self.engine.name(),
                seed: self.options.seed,
                at: At::Iteration {
                    discovery: self.discovery.as_ref(),
                    trace: &self.trace,
                    state: &self.state,
                },
                ended,
            };
            if !self.interrupted && !late && !observer.stands(&standing) {
                ended = ended.or(Some(StopReason::Interrupted));
            }
        }
    }

    /// Which slots are components, and all rows and columns again.
    pub(super) fn conclude(self, stop_reason: StopReason) -> Fit {
        let coarsening = self.coarsening();
        let Self { engine, options, workers, start, before, .. } = self;
        let Self { counts, occupied, prior, discovery, mut state, trace, .. } = self;
        let slots = engine.slots(&state);
        let evidence =
            discovery.as_ref().map(|discovery| search::evidence(&slots, &counts, discovery, workers));
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
        let mut posterior = Posterior::new(&counts, &slots, counting, 1.0 / coarsening);
        drop(slots);
        if let Some(occupied) = occupied {
            posterior = restore::posterior(posterior, occupied, &prior, 1.0 / coarsening);
            state = restore::state(&state, occupied, &prior);
        }
        let burn_in = engine.burn_in(trace.len());
        let seconds = before + start.elapsed().as_secs_f64();
        Fit { posterior, discovery, burn_in, trace, stop_reason, seconds, state }
    }

    /// The power of the likelihood.
    fn coarsening(&self) -> f64 {
        self.discovery.as_ref().map_or(1.0, |discovery| discovery.coarsening)
    }

    /// Why the run ends after these iterations, unless somebody ends it.
    fn over(&self, objective: &[f64], components: &[usize]) -> Option<StopReason> {
        let iteration = objective.len();
        let settled = || {
            let rule = self.options.stop.filter(|_| iteration >= self.engine.least_iterations());
            rule.is_some_and(|rule| rule.settled(objective, components))
        };
        if iteration == 0 {
            None
        } else if self.counts.nonzeros() == 0 {
            Some(StopReason::NoCounts)
        } else if settled() {
            Some(StopReason::Converged)
        } else {
            (iteration == self.options.iterations).then_some(StopReason::IterationLimit)
        }
    }

    /// The row of the trace after an iteration.
    fn row(&self, info: &Info, probes: &Probes) -> TraceRow {
        TraceRow {
            iteration: self.trace.len() + 1,
            active: info.active,
            on_anywhere: info.on_anywhere,
            sites_on: info.sites_on,
            log_likelihood: info.log_likelihood,
            log_joint: info.log_joint,
            activation: info.activation,
            reconstruction: probes.read(&self.state),
            held_out: self.options.held_out.as_ref().map(|held_out| self.score(held_out)),
            tiers: info.tiers,
            jumped: info.jumped,
            seconds: self.before + self.start.elapsed().as_secs_f64(),
        }
    }

    fn score(&self, held_out: &HeldOut) -> f64 {
        let (state, coarsening) = (&self.state, self.coarsening());
        match self.occupied {
            // What is held out may have counts where nothing was left to fit.
            Some(occupied) => {
                let (dictionary, activations) = restore::factors(state, occupied, &self.prior);
                held_out.score_factors(&dictionary, &activations, coarsening, state.noise())
            }
            None => held_out.score(state, coarsening),
        }
    }
}

/// What there is before the first iteration: what a search found, the counts it leaves if they are others, the state, no
/// row, and whether somebody ended the search.
type Started = (Option<Discovery>, Option<Counts>, State, Vec<TraceRow>, bool);

/// A run without a past, or with one that ends in its search.
struct Begun<'a> {
    engine: &'a dyn Engine,
    counts: &'a Counts,
    occupied: Option<&'a Occupied>,
    prior: &'a CheckedPrior,
    options: &'a RunOptions,
    workers: &'a Workers,
    key: Key,
}

impl Begun<'_> {
    /// Searches if the run has a search, and makes the first state.
    fn start(&self, past: Option<Journal>, observer: &mut dyn Observer) -> Result<Started, Error> {
        let Self { engine, counts, prior, key, .. } = *self;
        let search = self.options.search.as_ref();
        let (mut found, mut interrupted) = (None, false);
        if let Some(search) = search {
            if counts.nonzeros() > 0 {
                (found, interrupted) = self.search(search, past, observer)?;
            }
            interrupted |= self.workers.ends() == Some(StopReason::Interrupted);
        }
        Ok(match found {
            Some(found) => {
                let state = engine.start(&found);
                (Some(found.discovery), found.counts, state, Vec::new(), interrupted)
            }
            None => (None, None, engine.init(counts, prior, key), Vec::new(), interrupted),
        })
    }

    fn search(
        &self,
        search: &Search,
        past: Option<Journal>,
        observer: &mut dyn Observer,
    ) -> Result<(Option<Found>, bool), Error> {
        let Self { engine, counts, occupied, prior, options, workers, key } = *self;
        let search = match (occupied, &search.guess) {
            (Some(occupied), Some(guess)) => {
                let guess = Some(occupied.select_features(guess));
                Cow::Owned(Search { guess, ..search.clone() })
            }
            _ => Cow::Borrowed(search),
        };
        let mut searching = Searching { engine: engine.name(), seed: options.seed, observer, stopped: false };
        let found = search.run_from(past, counts, prior, key, workers, &mut searching)?;
        Ok((Some(found), searching.stopped))
    }
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
