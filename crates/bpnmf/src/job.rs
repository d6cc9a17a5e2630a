//! What can run: a plan that was checked against its data and filled in. It runs the chains, says how much memory they need,
//! and judges what they found. Knows nothing of files or terminals.

use crate::chains::{Chains, Disagreement};
use crate::checkpoint::Checkpoint;
use crate::counts::Counts;
use crate::error::Error;
use crate::infer::Engine;
use crate::plan::Plan;
use crate::prior::CheckedPrior;
use crate::run::{Observer, RunOptions, run_from};
use crate::suspicion::Suspicion;
use crate::workers::Workers;
use std::fmt;

/// The most slots that a run after a search is expected to have: components that were found and a few more.
const SLOTS_AFTER_SEARCH: usize = 100;

/// Two parameters of q or two sums in double precision, averages, variances and states in single precision, and scratch:
/// measured.
const BYTES_A_SITE: usize = 52;

/// What a search has of every entry that is held: as it is, weighed, and what of its weight it lacks, in double precision,
/// and once in single precision.
const BYTES_A_SEARCHED_ENTRY: usize = 28;

/// A plan that can run on the counts it was made for; see [`Plan::job`].
///
/// ```
/// use bpnmf::*;
/// let counts = Recipe { features: 10, observations: 20, ..Default::default() }.draw(3)?.counts;
/// let (job, _) = Plan { chains: Some(2), iterations: Some(10), ..Default::default() }.job(&counts)?;
/// let watch = |_: usize| |_: &TraceRow| true;
/// let chains = job.run(&counts, &Workers::serial(), |_| None, watch)?;
/// assert_eq!(chains.fits.len(), 2);
/// for warning in job.warnings(&chains, &counts) {
///     eprintln!("warning: {warning}");
/// }
/// # Ok::<(), Error>(())
/// ```
pub struct Job {
    /// What was wished.
    pub plan: Plan,
    /// The engine.
    pub engine: Box<dyn Engine + Send>,
    /// The prior.
    pub prior: CheckedPrior,
    /// How long to run, the search before it, and what was held out.
    pub options: RunOptions,
    /// How many chains to run; [until they are sure](crate::run_until_sure) so many to begin with.
    pub chains: usize,
}

/// What keeps the result of a job from being trusted; it displays as a sentence.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// The chains do not agree.
    Disagreement(Disagreement),
    /// The number of components came within 10 % of a limit that was given.
    NearLimit {
        /// The most components there can be.
        most: usize,
    },
    /// So many components were found that the data are unlikely to be counts.
    Data(Suspicion),
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disagreement(disagreement) => disagreement.fmt(out),
            Self::NearLimit { most } => write!(
                out,
                "the number of components comes within 10 % of the most there can be, {most}: use a larger limit"
            ),
            Self::Data(suspicion) => suspicion.fmt(out),
        }
    }
}

impl Job {
    /// Whether the number of components was given, not to be found.
    pub fn forced(&self) -> bool {
        self.options.search.as_ref().is_some_and(|search| search.components.is_some())
    }

    /// Runs all chains on `counts`, those that are left to fit. A chain, counted from 0, goes on from its checkpoint
    /// `past(chain)` if it has one, and is seen by `observer(chain)`.
    pub fn run<O: Observer>(
        &self,
        counts: &Counts,
        workers: &Workers,
        past: impl Fn(usize) -> Option<Checkpoint> + Sync,
        observer: impl Fn(usize) -> O + Sync,
    ) -> Result<Chains, Error> {
        let start = |chain: usize, seed: u64, workers: &Workers| {
            let options = RunOptions { seed, ..self.options.clone() };
            let mut observer = observer(chain);
            run_from(past(chain), &*self.engine, counts, &self.prior, &options, workers, &mut observer)
        };
        Chains::run(self.chains, self.plan.until_sure, self.options.seed, workers, start)
    }

    /// The number of slots that every chain is expected to have.
    pub fn slots(&self) -> usize {
        let components = self.prior.components();
        match &self.options.search {
            Some(search) => components.min(SLOTS_AFTER_SEARCH.max(search.components.unwrap_or(0))),
            None => components,
        }
    }

    /// About how many bytes of memory the chains need beside the counts on so many threads: their states, and the copies that
    /// the searches make of what they read, of as many chains as run at a time.
    ///
    /// ```
    /// use bpnmf::{Counts, Plan, Preset};
    /// let counts = Counts::from_dense(10, 90, vec![1.0; 900])?;
    /// let paper = Plan { preset: Preset::Paper, components: Some(50), ..Default::default() }.job(&counts)?.0;
    /// assert_eq!(paper.bytes(&counts, 2), 52 * 50 * 100);
    /// let auto = Plan { components: Some(50), ..Default::default() }.job(&counts)?.0;
    /// assert_eq!(auto.bytes(&counts, 2), 4 * paper.bytes(&counts, 2) + 2 * 28 * 900);
    /// # Ok::<(), bpnmf::Error>(())
    /// ```
    pub fn bytes(&self, counts: &Counts, threads: usize) -> u64 {
        let (features, observations) = (counts.features(), counts.observations());
        let sites = self.slots().saturating_mul(features.saturating_add(observations));
        let states = sites.saturating_mul(BYTES_A_SITE).saturating_mul(self.chains);
        let searches = self.options.search.as_ref().map_or(0, |_| self.chains.min(threads.max(1)));
        let held = if counts.is_sparse() { counts.nonzeros() } else { features.saturating_mul(observations) };
        states.saturating_add(held.saturating_mul(BYTES_A_SEARCHED_ENTRY).saturating_mul(searches)) as u64
    }

    /// What keeps the result from being trusted. Nobody expects of chains that were cut short that they agree. What the data look
    /// like before a fit is [`Suspicion::of`].
    pub fn warnings(&self, chains: &Chains, counts: &Counts) -> Vec<Warning> {
        let whole = !chains.stop_reason().cut_short();
        let apart = chains.disagreement().filter(|_| whole).map(Warning::Disagreement);
        let most = self.prior.components();
        let grows = self.options.search.as_ref().is_some_and(|search| search.grows);
        let bound = whole && !self.forced() && !grows;
        let near = (bound && chains.near_truncation(most)).then_some(Warning::NearLimit { most });
        // Neither a number that was asked for nor that of the paper's algorithm says anything about the data.
        let judged = self.options.search.is_some() && !self.forced();
        let odd = judged.then(|| Suspicion::of_components(chains.n_components, counts)).flatten();
        apart.into_iter().chain(near).chain(odd.map(Warning::Data)).collect()
    }
}
