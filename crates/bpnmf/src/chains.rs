//! Several runs of one model: started side by side, and combined into what they say together about its size.

use crate::diagnose::{PROBES, bulk_ess, r_hat};
use crate::error::Error;
use crate::intervals::{Intervals, intervals};
use crate::random::Key;
use crate::recurrence::{Recurrence, pairs, recurrences};
use crate::run::{Fit, StopReason, TraceRow};
use crate::workers::Workers;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Rows of a chain that R-hat and ESS are taken from; of longer chains every second row, every third, ...
const MOST_ROWS: usize = 10_000;

/// Above this R-hat, chains have not come to agree.
const LARGEST_R_HAT: f64 = 1.05;

/// With fewer rows in a chain after a search, R-hat by itself is no reason to warn, see
/// [`Chains::disagreement`].
const ENOUGH_ROWS: usize = 100;

/// With fewer chains none are sure.
const LEAST_CHAINS_TO_BE_SURE: usize = 4;

/// The most chains that are made until they are sure.
pub const MOST_CHAINS_UNTIL_SURE: usize = 64;

/// A name and how a row tells the number.
type Quantity = (&'static str, fn(&TraceRow) -> f64);

/// What is watched in every chain beside the number of components: it does not depend on their order.
const QUANTITIES: [Quantity; 2 + PROBES] = [
    (LOG_JOINT, |row| row.log_joint),
    ("activation", |row| row.activation),
    ("reconstruction_1", |row| row.reconstruction[0]),
    ("reconstruction_2", |row| row.reconstruction[1]),
    ("reconstruction_3", |row| row.reconstruction[2]),
    ("reconstruction_4", |row| row.reconstruction[3]),
];

const LOG_JOINT: &str = "log_joint";
const COMPONENTS: &str = "components";

/// How well the chains agree about one quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Convergence {
    /// `log_joint`, `components`, `activation` or `reconstruction_1` to `_4`, see [`TraceRow`] and [`Fit::numbers`].
    pub name: &'static str,
    /// See [`crate::r_hat`]; it may be infinite. `None` for one chain.
    pub r_hat: Option<f64>,
    /// See [`crate::bulk_ess`].
    pub ess: Option<f64>,
}

/// Chains that do not agree; it displays as a sentence.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Disagreement {
    /// What they do not agree about: `components` or `log_joint`.
    pub name: &'static str,
    /// Above 1.05; it may be infinite.
    pub r_hat: f64,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let r_hat = if self.r_hat.is_finite() {
            format!("{:.3}, above {LARGEST_R_HAT}", self.r_hat)
        } else {
            "infinite, every chain keeps to a number of its own".to_owned()
        };
        if self.name == COMPONENTS {
            return write!(
                f,
                "the chains do not agree about the number of components (R-hat is {r_hat}): trust the interval rather \
                 than the number"
            );
        }
        write!(f, "the chains have not converged to the same model (R-hat of the log joint is {r_hat})")
    }
}

/// What several runs of one model on the same counts say together.
///
/// Only the rows after the burn-in count ([`Fit::kept`]), and rows of all chains weigh the same. A chain that was
/// interrupted with less than half the rows of the longest is left out. One chain does not say how sure its number is:
/// what only several can tell is `None`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Chains {
    /// The chains.
    pub fits: Vec<Fit>,
    /// The number of components of the model: of [`Self::fit`].
    pub n_components: usize,
    /// The numbers of components, first and last, between which 90 % of the rows are: at most 5 % are below and at most
    /// 5 % above; stretched to hold [`Self::n_components`] and, where counts are few, what singular values allow
    /// ([`crate::Discovery::range`]), on which all chains would agree all too easily. `None` for one chain, and if the number
    /// was given.
    pub interval: Option<(usize, usize)>,
    /// How frequent each number of components is ([`Fit::numbers`]), numbers increasing; frequencies add up to 1. `None`
    /// for one chain, and if the number was given.
    pub pmf: Option<Vec<(usize, f64)>>,
    /// How well the chains agree.
    pub convergence: Vec<Convergence>,
    /// The chain whose posterior stands for all of them: its number of components is the median of all rows, or the nearest to
    /// it that a chain has, and of those chains it has the largest mean log joint.
    pub representative: usize,
    /// For every component of the model: which chains have it. `None` for one chain.
    pub recurrence: Option<Vec<Recurrence>>,
    /// How far W and H S of the model are known: from the draws of all chains that have a component. `None` for engines whose
    /// states are not draws from the posterior, and for runs that ended before they had two.
    pub intervals: Option<Intervals>,
    /// Why there are no more chains, if they were made until they are sure, see [`run_until_sure`], or if there was no time for
    /// all of them.
    pub until_sure: Option<StopReason>,
}

impl Chains {
    /// Combines runs that differ in their seeds.
    ///
    /// ```
    /// use bpnmf::*;
    /// let counts = Recipe { features: 20, observations: 60, ..Default::default() }.draw(3)?.counts;
    /// let prior = Prior { components: 30, ..Default::default() }.check()?;
    /// let engine = Gibbs { burn_in: 10, init: Init::Scaled, ..Default::default() };
    /// let fits = run_chains(3, 1, &Workers::new(2)?, |_, seed, workers| {
    ///     let options = RunOptions { iterations: 20, seed, ..Default::default() };
    ///     run(&engine, &counts, &prior, &options, workers, &mut |_: &TraceRow| true)
    /// })?;
    /// let chains = Chains::new(fits)?;
    /// let (least, most) = chains.interval.expect("there are several");
    /// assert!((least..=most).contains(&chains.n_components));
    /// assert_eq!(chains.fit().posterior.components(), chains.n_components);
    /// assert_eq!(chains.fit().trace.len(), 20);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn new(fits: Vec<Fit>) -> Result<Self, Error> {
        let longest = fits.iter().map(|fit| fit.kept().len()).max().ok_or_else(|| bad_number(0))?;
        let whole = |fit: &Fit| !fit.stop_reason.cut_short() || 2 * fit.kept().len() >= longest;
        let used: Vec<&Fit> = fits.iter().filter(|fit| whole(fit)).collect();
        let numbers: Vec<Vec<usize>> = used.iter().map(|fit| kept_numbers(fit)).collect();
        let frequencies = frequencies(numbers.iter().flatten().copied());
        let shown = representative(&used, median(&frequencies)).ok_or_else(|| bad_number(0))?;
        let n_components = used[shown].posterior.components();
        let several = used.len() > 1;
        let found = several && !used[shown].forced();
        let model = &used[shown].posterior;
        let others = (0..used.len()).filter(|&chain| chain != shown).map(|chain| &used[chain].posterior);
        let others: Vec<_> = others.collect();
        let pairs: Vec<_> = others.iter().map(|other| pairs(model, other)).collect();
        let recurrence = several.then(|| recurrences(model, &others, &pairs));
        Ok(Self {
            n_components,
            interval: found.then(|| interval(&frequencies, ends(&used, n_components))),
            pmf: found.then(|| shares(&frequencies)),
            convergence: convergence(&used, &numbers),
            representative: (0..fits.len()).filter(|&chain| whole(&fits[chain])).nth(shown).unwrap_or(0),
            recurrence,
            intervals: intervals(model, &others, &pairs),
            until_sure: None,
            fits,
        })
    }

    /// The chain that stands for all of them.
    pub fn fit(&self) -> &Fit {
        &self.fits[self.representative]
    }

    /// Why they ended: that of the chain that is shown, unless one was cut short.
    pub fn stop_reason(&self) -> StopReason {
        let mut reasons = self.fits.iter().map(|fit| fit.stop_reason);
        let cut_short = reasons.clone().find(|reason| *reason == StopReason::Interrupted);
        let cut_short = cut_short.or_else(|| reasons.find(|reason| reason.cut_short()));
        cut_short.or(self.until_sure).unwrap_or(self.fit().stop_reason)
    }

    /// Runs `n` chains, or from `n` on [until they are sure](run_until_sure), and combines them.
    pub fn run(
        n: usize,
        until_sure: bool,
        seed: u64,
        workers: &Workers,
        start: impl Fn(usize, u64, &Workers) -> Result<Fit, Error> + Sync,
    ) -> Result<Self, Error> {
        if !until_sure {
            let fits = run_chains(n, seed, workers, start)?;
            // Chains that were never begun cannot say why.
            let cut = workers.ends().filter(|_| fits.len() < n);
            return Ok(Self { until_sure: cut, ..Self::new(fits)? });
        }
        let (fits, reason) = run_until_sure(n, seed, workers, start)?;
        Ok(Self { until_sure: Some(reason), ..Self::new(fits)? })
    }

    /// R-hat of the number of components; `None` for one chain, and if the number was given.
    pub fn r_hat(&self) -> Option<f64> {
        let quantity = self.convergence.iter().find(|quantity| quantity.name == COMPONENTS)?;
        quantity.r_hat.filter(|_| self.interval.is_some())
    }

    /// What the chains do not agree about, if there is something: the number of components or the log joint, whichever has
    /// the larger R-hat, if it is above 1.05.
    ///
    /// Chains after a search are short, and each has learned its own prior: with fewer than 100 rows in a chain R-hat is
    /// often above 1.05, that of the log joint nearly always, also where all chains have the same components. There the number
    /// of components counts only if the models of the chains have different numbers, and the log joint only if half of the
    /// chains or fewer have some component of the model, see [`Recurrence::is_doubtful`].
    pub fn disagreement(&self) -> Option<Disagreement> {
        let short = self.fit().discovery.is_some() && self.fit().kept().len() < ENOUGH_ROWS;
        let another = |fit: &Fit| fit.posterior.components() != self.n_components;
        let judged = |name: &str| match name {
            COMPONENTS => !short || self.fits.iter().any(another),
            LOG_JOINT => !short || !self.doubtful().is_empty(),
            _ => false,
        };
        let apart = |quantity: &Convergence| {
            let r_hat = quantity.r_hat.filter(|&r_hat| r_hat > LARGEST_R_HAT)?;
            judged(quantity.name).then_some(Disagreement { name: quantity.name, r_hat })
        };
        // Of equals the number of components.
        let by_size = |x: &Disagreement, y: &Disagreement| {
            x.r_hat.total_cmp(&y.r_hat).then((x.name == COMPONENTS).cmp(&(y.name == COMPONENTS)))
        };
        self.convergence.iter().filter_map(apart).max_by(by_size)
    }

    /// The components of the model that half of the chains or fewer have.
    pub fn doubtful(&self) -> Vec<usize> {
        let recurrence = self.recurrence.as_deref().unwrap_or(&[]);
        (0..recurrence.len()).filter(|&k| recurrence[k].is_doubtful()).collect()
    }

    /// Whether the number of components came within 10 % of the truncation level K.
    pub fn near_truncation(&self, components: usize) -> bool {
        let most = self.fits.iter().flat_map(Fit::kept).map(|row| row.active).max();
        most.is_some_and(|most| 10 * most as u128 >= 9 * components as u128)
    }
}

/// The seed of a chain: the first has the seed itself, so that more chains are the same run and others beside it.
pub fn chain_seed(seed: u64, chain: usize) -> u64 {
    if chain == 0 {
        return seed;
    }
    let [low, high] = Key::new(seed).derived(chain as u64).words();
    u64::from(high) << 32 | u64::from(low)
}

/// Runs `n` chains: `start(chain, its seed, its workers)`, chains counted from 0. They share the threads of `workers`,
/// as many chains at a time as there are threads. The result does not depend on the number of threads if that of
/// `start` does not.
///
/// An error of one chain is that of all; no other chain is started after it.
pub fn run_chains(
    n: usize,
    seed: u64,
    workers: &Workers,
    start: impl Fn(usize, u64, &Workers) -> Result<Fit, Error> + Sync,
) -> Result<Vec<Fit>, Error> {
    if n == 0 {
        return Err(bad_number(n));
    }
    run_some(0..n, seed, workers, &start)
}

/// Runs chains until what they say about the number of components stands still, beginning with `n`: then as many again, and
/// so on, at most [`MOST_CHAINS_UNTIL_SURE`] or `n`. The chains are those of [`run_chains`]. Why there are no more: they are
/// sure, there may not be more of them, or one was cut short.
///
/// They are sure if there are at least four, and the number that is reported and its interval are those of the first
/// half of the chains; and if R-hat of the number is at most 1.05, or all chains have the same number, or the first half of the
/// chains said the same as the first quarter, too. So chains that keep to numbers of their own must say the same twice.
/// This depends neither on time nor on threads, unless the workers have a deadline.
pub fn run_until_sure(
    n: usize,
    seed: u64,
    workers: &Workers,
    start: impl Fn(usize, u64, &Workers) -> Result<Fit, Error> + Sync,
) -> Result<(Vec<Fit>, StopReason), Error> {
    let mut fits = run_chains(n, seed, workers, &start)?;
    loop {
        let cut_short = fits.iter().map(|fit| fit.stop_reason).find(|reason| reason.cut_short());
        if let Some(reason) = cut_short {
            return Ok((fits, reason));
        }
        if fits[0].stop_reason == StopReason::NoCounts {
            return Ok((fits, StopReason::NoCounts));
        }
        if is_sure(&fits) {
            return Ok((fits, StopReason::Sure));
        }
        if let Some(reason) = workers.ends() {
            return Ok((fits, reason));
        }
        let here = fits.len();
        let next = (2 * here).min(MOST_CHAINS_UNTIL_SURE.max(n));
        if next == here {
            return Ok((fits, StopReason::ChainLimit));
        }
        fits.extend(run_some(here..next, seed, workers, &start)?);
    }
}

/// The rule of [`run_until_sure`].
fn is_sure(fits: &[Fit]) -> bool {
    let n = fits.len();
    if n < LEAST_CHAINS_TO_BE_SURE || says(fits) != says(&fits[..n / 2]) {
        return false;
    }
    let all: Vec<&Fit> = fits.iter().collect();
    let numbers: Vec<Vec<usize>> = fits.iter().map(kept_numbers).collect();
    let same = fits.iter().all(|fit| fit.posterior.components() == fits[0].posterior.components());
    let agreed = convergence(&all, &numbers).iter().any(|quantity| {
        quantity.name == COMPONENTS && quantity.r_hat.is_some_and(|r_hat| r_hat <= LARGEST_R_HAT)
    });
    same || agreed || says(&fits[..n / 2]) == says(&fits[..n / 4])
}

/// The number of components that these chains report, and its interval.
fn says(fits: &[Fit]) -> Option<(usize, (usize, usize))> {
    let frequencies = frequencies(fits.iter().flat_map(kept_numbers));
    let fits: Vec<&Fit> = fits.iter().collect();
    let reported = fits[representative(&fits, median(&frequencies))?].posterior.components();
    Some((reported, interval(&frequencies, ends(&fits, reported))))
}

/// Some chains, in their order. When it is late no more are started, but for the very first.
fn run_some(
    chains: Range<usize>,
    seed: u64,
    workers: &Workers,
    start: &(impl Fn(usize, u64, &Workers) -> Result<Fit, Error> + Sync),
) -> Result<Vec<Fit>, Error> {
    let start = |chain: usize, workers: &Workers| start(chain, chain_seed(seed, chain), workers);
    let lanes = chains.len().min(workers.threads());
    let goes_on = |chain: usize| chain == 0 || !workers.late();
    if lanes == 1 {
        return chains.take_while(|&chain| goes_on(chain)).map(|chain| start(chain, workers)).collect();
    }
    let (next, failed) = (AtomicUsize::new(chains.start), AtomicBool::new(false));
    let done = Mutex::new(BTreeMap::new());
    let lane = |workers: &Workers| {
        while !failed.load(Ordering::Relaxed) && goes_on(next.load(Ordering::Relaxed)) {
            let chain = next.fetch_add(1, Ordering::Relaxed);
            if chain >= chains.end {
                break;
            }
            let result = start(chain, workers);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            done.lock().unwrap_or_else(PoisonError::into_inner).insert(chain, result);
        }
    };
    let shares = workers.shared(lanes)?;
    thread::scope(|scope| {
        for workers in &shares {
            scope.spawn(|| lane(workers));
        }
    });
    // In the order of the chains: of several errors the first one is told.
    done.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

fn bad_number(n: usize) -> Error {
    Error::BadOption { name: "chains", value: n as f64, range: "at least 1" }
}

/// The number of components in every row that counts.
fn kept_numbers(fit: &Fit) -> Vec<usize> {
    fit.numbers().split_off(fit.burn_in.min(fit.trace.len()))
}

/// Of the chains whose model is nearest in size to `wanted` the one with the largest mean log joint.
fn representative(fits: &[&Fit], wanted: usize) -> Option<usize> {
    let distance = |chain: usize| fits[chain].posterior.components().abs_diff(wanted);
    let nearest = (0..fits.len()).map(distance).min()?;
    let mean_log_joint = |chain: usize| {
        let rows = fits[chain].kept();
        rows.iter().map(|row| row.log_joint).sum::<f64>() / rows.len() as f64
    };
    // Of equals the first.
    let chains = (0..fits.len()).rev().filter(|&chain| distance(chain) == nearest);
    chains.max_by(|&i, &j| mean_log_joint(i).total_cmp(&mean_log_joint(j)))
}

/// Frequencies that add up to 1.
fn shares(frequencies: &BTreeMap<usize, u64>) -> Vec<(usize, f64)> {
    let rows: u64 = frequencies.values().sum();
    frequencies.iter().map(|(&number, &count)| (number, count as f64 / rows as f64)).collect()
}

fn frequencies(numbers: impl Iterator<Item = usize>) -> BTreeMap<usize, u64> {
    let mut frequencies = BTreeMap::new();
    numbers.for_each(|number| *frequencies.entry(number).or_insert(0) += 1);
    frequencies
}

/// The smallest number that at least half of the rows do not exceed; 0 if there is none.
fn median(frequencies: &BTreeMap<usize, u64>) -> usize {
    let (rows, mut below): (u64, u64) = (frequencies.values().sum(), 0);
    let reaches = |(&number, &count): (&usize, &u64)| {
        below += count;
        (2 * below >= rows).then_some(number)
    };
    frequencies.iter().find_map(reaches).unwrap_or(0)
}

/// What the interval must hold: the number that is reported, and what singular values allow.
fn ends(fits: &[&Fit], reported: usize) -> (usize, usize) {
    let ranges = fits.iter().filter_map(|fit| fit.discovery.as_ref()?.range);
    ranges.fold((reported, reported), |x, y| (x.0.min(y.0), x.1.max(y.1)))
}

/// The largest first and the smallest last number with at most 5 % beyond each, stretched to hold both `ends`.
fn interval(frequencies: &BTreeMap<usize, u64>, ends: (usize, usize)) -> (usize, usize) {
    let total = frequencies.values().sum();
    let (first, last) = (end(frequencies.iter(), total), end(frequencies.iter().rev(), total));
    (first.min(ends.0), last.max(ends.1))
}

/// The first number, coming from a tail, at which more than 5 % of `total` are counted.
fn end<'a>(mut from_the_tail: impl Iterator<Item = (&'a usize, &'a u64)>, total: u64) -> usize {
    let mut counted = 0;
    let found = from_the_tail.find(|&(_, count)| {
        counted += count;
        20 * counted > total
    });
    found.map_or(0, |(&number, _)| number)
}

/// R-hat and ESS over the last rows of every chain, as many as the shortest has: of the log joint, of the numbers of
/// components, and of the other quantities.
fn convergence(fits: &[&Fit], numbers: &[Vec<usize>]) -> Vec<Convergence> {
    let length = numbers.iter().map(Vec::len).min().unwrap_or(0);
    let stride = length.div_ceil(MOST_ROWS).max(1);
    let judged = |name: &'static str, value: &dyn Fn(usize, usize) -> f64| {
        let values = |chain: usize| -> Vec<f64> {
            let rows = numbers[chain].len();
            (rows - length..rows).step_by(stride).map(|row| value(chain, row)).collect()
        };
        let chains: Vec<Vec<f64>> = (0..fits.len()).map(values).collect();
        // The halves of one chain agree all too easily.
        let r_hat = if chains.len() > 1 { r_hat(&chains) } else { None };
        Convergence { name, r_hat, ess: bulk_ess(&chains) }
    };
    let quantity = |&(name, value): &Quantity| judged(name, &|chain, row| value(&fits[chain].kept()[row]));
    let mut all: Vec<Convergence> = QUANTITIES.iter().map(quantity).collect();
    all.insert(1, judged(COMPONENTS, &|chain, row| numbers[chain][row] as f64));
    all
}

#[cfg(test)]
mod tests;
