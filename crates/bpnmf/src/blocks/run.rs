//! A fit of blocks in one process: threads take blocks, so there is one block in memory for each.

use super::{BlockFit, BlockMeans, BlockSource, BlockStatistics, Round, Stage, Survey, sample_columns};
use crate::chains::Chains;
use crate::counts::Counts;
use crate::error::Error;
use crate::infer::{BlockKey, Local, Shared};
use crate::job::Job;
use crate::plan::Plan;
use crate::posterior::Posterior;
use crate::run::{Observer, StopReason};
use crate::workers::Workers;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Sees a fit of blocks. Where an answer is false the fit ends there, with [`Error::Ended`].
pub trait BlockObserver: Sync {
    /// Sees a chain of the sample.
    type Chain: Observer;

    /// Called as blocks are read for the first time: so many columns of all.
    fn read(&self, done: usize, all: usize) -> bool {
        let _ = (done, all);
        true
    }

    /// Called when the sample is there, before its chains.
    fn sampled(&self, sample: &Counts, survey: &Survey, job: &Job) -> bool {
        let _ = (sample, survey, job);
        true
    }

    /// Who sees a chain of the sample.
    fn chain(&self, chain: usize) -> Self::Chain;

    /// Called after every block of a round: so many sweeps of a column of all that there are in all rounds.
    fn worked(&self, round: &Round, done: usize, all: usize) -> bool {
        let _ = (round, done, all);
        true
    }
}

/// What a fit of blocks found.
pub struct Blocks {
    /// The chains on the sample, with their components and how sure their number is.
    pub chains: Chains,
    /// What ran them.
    pub job: Job,
    /// The columns that they were run on.
    pub sample: Counts,
    /// The fit to all blocks.
    pub fit: BlockFit,
    /// The model of all columns.
    pub posterior: Posterior,
    /// The data.
    pub survey: Survey,
}

impl Blocks {
    /// The chains on the sample with the model of all columns in place of that of the chain that stands for them, what ran them,
    /// and the sample. What the draws of the sample say about its own columns, the intervals of W and H S, is left out.
    pub fn into_chains(self) -> (Chains, Job, Counts) {
        let Self { mut chains, job, sample, fit, posterior, .. } = self;
        let order = fit.order();
        chains.recurrence = chains.recurrence.map(|found| order.iter().map(|&k| found[k]).collect());
        chains.intervals = None;
        let shown = chains.representative;
        chains.fits[shown].posterior = posterior;
        (chains, job, sample)
    }
}

/// Fits data of which only some blocks are in memory at a time: chains with their search on [a sample](sample_columns) of
/// `sample` columns, then [rounds](BlockFit::rounds) over all blocks. The result does not depend on the workers, nor on where
/// the blocks come from.
///
/// ```
/// use bpnmf::*;
/// struct Nobody;
/// impl BlockObserver for Nobody {
///     type Chain = fn(&TraceRow) -> bool;
///     fn chain(&self, _: usize) -> Self::Chain {
///         |_| true
///     }
/// }
/// let recipe = Recipe { features: 20, observations: 3000, components: 5, gamma: GammaReading::Scale };
/// let counts = recipe.draw(3)?.counts;
/// let plan = Plan { chains: Some(1), iterations: Some(10), ..Plan::default() };
/// let found = fit_blocks(&counts, &plan, 500, &Workers::new(2)?, &Nobody)?;
/// assert_eq!(found.posterior.observations, 3000);
/// assert_eq!(found.posterior.components(), found.chains.n_components);
/// # Ok::<(), Error>(())
/// ```
pub fn fit_blocks<O: BlockObserver>(
    source: &dyn BlockSource,
    plan: &Plan,
    sample: usize,
    workers: &Workers,
    observer: &O,
) -> Result<Blocks, Error> {
    let (survey, sample) = survey(source, sample, plan.seed, workers, observer)?;
    let (job, kept) = plan.job(&sample)?;
    if kept.is_some() {
        return Err(Error::BadBlock { reason: "counts cannot be held out of a fit of blocks".into() });
    }
    if !observer.sampled(&sample, &survey, &job) {
        return Err(Error::Ended);
    }
    let chains = job.run(&sample, workers, |_| None, |chain| observer.chain(chain))?;
    if chains.stop_reason() == StopReason::Interrupted {
        return Err(Error::Ended);
    }
    let observations = source.observations();
    let mut fit = BlockFit::begin(chains.fit(), &job.prior, &sample, observations, plan.seed);
    let mut means = BlockMeans::new(fit.components(), observations);
    let all: usize = fit.rounds().iter().map(|round| sweeps(round, observations)).sum();
    let done = AtomicUsize::new(0);
    while let Some(round) = fit.next_round().cloned() {
        let shared = fit.shared();
        let working = Working { source, seed: plan.seed, round: &round, shared: &shared, workers };
        let means_of = |local: &Local, block: usize, means: &mut BlockMeans| {
            if round.stage == Stage::Means {
                means.put(block, local);
            }
        };
        let statistics = working.all(&mut means, means_of, &|block| {
            let of_block = sweeps_of(&round, block, observations);
            let done = done.fetch_add(of_block, Ordering::Relaxed) + of_block;
            observer.worked(&round, done, all) && !workers.late()
        })?;
        fit.take(statistics)?;
    }
    let posterior = fit.posterior(means, &chains.fit().posterior);
    Ok(Blocks { chains, job, sample, fit, posterior, survey })
}

/// Sweeps of columns in a round.
fn sweeps(round: &Round, observations: usize) -> usize {
    round.blocks.iter().map(|&block| sweeps_of(round, block, observations)).sum()
}

fn sweeps_of(round: &Round, block: usize, observations: usize) -> usize {
    super::columns_of(block, observations).len() * (round.effort.burn_in + round.effort.kept) as usize
}

/// A round that is being worked on.
struct Working<'a> {
    source: &'a dyn BlockSource,
    seed: u64,
    round: &'a Round,
    shared: &'a Shared,
    workers: &'a Workers,
}

impl Working<'_> {
    /// The sums over all its blocks. `take` is called with what every block gives; `go_on` after each.
    fn all<T: Send>(
        &self,
        into: &mut T,
        take: impl Fn(&Local, usize, &mut T) + Sync,
        go_on: &(dyn Fn(usize) -> bool + Sync),
    ) -> Result<BlockStatistics, Error> {
        let Self { source, seed, round, shared, workers } = *self;
        let empty = BlockStatistics::empty(shared.features(), shared.components(), 0, 0);
        let together = Mutex::new((empty, into));
        let ended = Mutex::new(false);
        let results = workers.map(round.blocks.iter().enumerate(), |(place, &block)| {
            if *lock(&ended) {
                return Ok(());
            }
            let counts = source.block(block)?;
            let key = BlockKey { seed, round: round.number, block, place };
            let means = round.stage == Stage::Means;
            let local = shared
                .local(&counts, key, round.effort, means, &workers.alone())
                .map_err(|error| placed(error, super::columns_of(block, source.observations()).start))?;
            let (statistics, into) = &mut *lock(&together);
            take(&local, block, into);
            statistics.add(local.statistics)?;
            *lock(&ended) |= !go_on(block);
            Ok(())
        });
        results.into_iter().collect::<Result<(), Error>>()?;
        if *lock(&ended) {
            return Err(Error::Ended);
        }
        Ok(together.into_inner().unwrap_or_else(PoisonError::into_inner).0)
    }
}

/// An error of some columns, the first of which is `first`, with the place that all columns have it at.
fn placed(mut error: Error, first: usize) -> Error {
    if let Error::NotWhole { observation, .. } = &mut error {
        *observation += first;
    }
    error
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads every block once: what there is, and the columns of the sample.
fn survey<O: BlockObserver>(
    source: &dyn BlockSource,
    size: usize,
    seed: u64,
    workers: &Workers,
    observer: &O,
) -> Result<(Survey, Counts), Error> {
    if size == 0 {
        return Err(Error::BadOption { name: "sample", value: 0.0, range: "at least 1" });
    }
    let observations = source.observations();
    let wanted = sample_columns(observations, size, seed);
    let (done, ended) = (AtomicUsize::new(0), Mutex::new(false));
    let pieces = workers.map(0..source.blocks(), |block| {
        if *lock(&ended) {
            return Ok((Survey::NOTHING, None));
        }
        let columns = super::columns_of(block, observations);
        let counts = source.block(block)?;
        let of_block =
            wanted.partition_point(|&t| t < columns.start)..wanted.partition_point(|&t| t < columns.end);
        let picked: Vec<usize> = wanted[of_block].iter().map(|&t| t - columns.start).collect();
        let sample = (!picked.is_empty()).then(|| counts.picked(&picked));
        let done = done.fetch_add(columns.len(), Ordering::Relaxed) + columns.len();
        *lock(&ended) |= !observer.read(done, observations) || workers.late();
        Ok((Survey::of(&counts), sample))
    });
    let pieces: Vec<(Survey, Option<Counts>)> = pieces.into_iter().collect::<Result<_, Error>>()?;
    if *lock(&ended) {
        return Err(Error::Ended);
    }
    let survey = pieces.iter().fold(Survey::NOTHING, |all, (next, _)| all.and(*next));
    let sample: Vec<Counts> = pieces.into_iter().filter_map(|(_, sample)| sample).collect();
    Ok((survey, Counts::joined(&sample)?))
}
