//! Several runs of one model: started side by side, and combined into what they say together about its size.

use crate::diagnose::{PROBES, bulk_ess, r_hat};
use crate::error::Error;
use crate::random::Key;
use crate::run::{Fit, StopReason, TraceRow};
use crate::workers::Workers;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Rows of a chain that R-hat and ESS are taken from; of longer chains every second row, every third, ...
const MOST_ROWS: usize = 10_000;

/// A name and how a row tells the number.
type Quantity = (&'static str, fn(&TraceRow) -> f64);

/// What is watched in every chain: it does not depend on the order of the components.
const QUANTITIES: [Quantity; 3 + PROBES] = [
    ("log_joint", |row| row.log_joint),
    ("components", |row| row.active as f64),
    ("activation", |row| row.activation),
    ("reconstruction_1", |row| row.reconstruction[0]),
    ("reconstruction_2", |row| row.reconstruction[1]),
    ("reconstruction_3", |row| row.reconstruction[2]),
    ("reconstruction_4", |row| row.reconstruction[3]),
];

/// How well the chains agree about one quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Convergence {
    /// `log_joint`, `components`, `activation` or `reconstruction_1` to `_4`, see [`TraceRow`].
    pub name: &'static str,
    /// See [`crate::r_hat`]; it may be infinite.
    pub r_hat: Option<f64>,
    /// See [`crate::bulk_ess`].
    pub ess: Option<f64>,
}

/// What several runs of one model on the same counts say together; one is enough.
///
/// Only the rows after the burn-in count ([`Fit::burn_in`]), and rows of all chains weigh the same. A chain that was
/// interrupted with less than half the rows of the longest is left out.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Chains {
    /// The chains.
    pub fits: Vec<Fit>,
    /// The most frequent number of components, the smaller one of two that are equally frequent.
    pub n_components: usize,
    /// The numbers of components, first and last, between which 90 % of the rows are: at most 5 % are below and at most
    /// 5 % above.
    pub interval: (usize, usize),
    /// How frequent each number of components is, numbers increasing; frequencies add up to 1.
    pub pmf: Vec<(usize, f64)>,
    /// How well the chains agree.
    pub convergence: Vec<Convergence>,
    /// The chain whose posterior stands for all of them: of those with [`Self::n_components`] components the one with
    /// the largest mean log joint.
    pub representative: usize,
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
    /// let (least, most) = chains.interval;
    /// assert!((least..=most).contains(&chains.n_components));
    /// assert_eq!(chains.fit().trace.len(), 20);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn new(fits: Vec<Fit>) -> Result<Self, Error> {
        let longest = fits.iter().map(|fit| kept(fit).len()).max().ok_or_else(|| bad_number(0))?;
        let whole = |fit: &Fit| fit.stop_reason != StopReason::Interrupted || 2 * kept(fit).len() >= longest;
        let used: Vec<usize> = (0..fits.len()).filter(|&chain| whole(&fits[chain])).collect();

        let all = frequencies(used.iter().flat_map(|&chain| numbers(&fits[chain])));
        let n_components = mode(&all);
        let rows: u64 = all.values().sum();
        let pmf = all.iter().map(|(&number, &count)| (number, count as f64 / rows as f64)).collect();

        let mean_log_joint = |chain: usize| {
            let rows = kept(&fits[chain]);
            rows.iter().map(|row| row.log_joint).sum::<f64>() / rows.len() as f64
        };
        let with = |test: &dyn Fn(&Fit) -> bool| -> Option<usize> {
            let chains = used.iter().copied().filter(|&chain| test(&fits[chain]));
            // Of equals the first.
            chains.rev().max_by(|&i, &j| mean_log_joint(i).total_cmp(&mean_log_joint(j)))
        };
        let representative = with(&|fit| fit.posterior.components() == n_components)
            .or_else(|| with(&|fit| mode(&frequencies(numbers(fit))) == n_components))
            .or_else(|| with(&|_| true))
            .ok_or_else(|| bad_number(0))?;
        let traces: Vec<&[TraceRow]> = used.iter().map(|&chain| kept(&fits[chain])).collect();
        let convergence = convergence(&traces);
        Ok(Self { n_components, interval: interval(&all), pmf, convergence, representative, fits })
    }

    /// The chain that stands for all of them.
    pub fn fit(&self) -> &Fit {
        &self.fits[self.representative]
    }

    /// The largest R-hat of all quantities; `None` if there is none. Above 1.05 the chains should not be trusted yet.
    pub fn largest_r_hat(&self) -> Option<f64> {
        self.convergence.iter().filter_map(|quantity| quantity.r_hat).max_by(f64::total_cmp)
    }

    /// Whether the number of components came within 10 % of the truncation level K.
    pub fn near_truncation(&self, components: usize) -> bool {
        self.pmf.last().is_some_and(|&(most, _)| 10 * most as u128 >= 9 * components as u128)
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
    let start = |chain: usize, workers: &Workers| start(chain, chain_seed(seed, chain), workers);
    let lanes = n.min(workers.threads());
    if lanes == 1 {
        return (0..n).map(|chain| start(chain, workers)).collect();
    }
    let (next, failed, done) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(BTreeMap::new()));
    let lane = |workers: &Workers| {
        while !failed.load(Ordering::Relaxed) {
            let chain = next.fetch_add(1, Ordering::Relaxed);
            if chain >= n {
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

/// The rows that count.
fn kept(fit: &Fit) -> &[TraceRow] {
    &fit.trace[fit.burn_in.min(fit.trace.len())..]
}

/// The number of components in every row that counts. Without a single count there is nothing to be a component of.
fn numbers(fit: &Fit) -> impl Iterator<Item = usize> {
    let empty = fit.stop_reason == StopReason::NoCounts;
    kept(fit).iter().map(move |row| if empty { 0 } else { fit.components_at(row) })
}

fn frequencies(numbers: impl Iterator<Item = usize>) -> BTreeMap<usize, u64> {
    let mut frequencies = BTreeMap::new();
    numbers.for_each(|number| *frequencies.entry(number).or_insert(0) += 1);
    frequencies
}

/// The most frequent number, the smallest of several; 0 if there is none.
fn mode(frequencies: &BTreeMap<usize, u64>) -> usize {
    frequencies.iter().rev().max_by_key(|&(_, &count)| count).map_or(0, |(&number, _)| number)
}

/// The largest first and the smallest last number with at most 5 % beyond each, stretched to hold the mode.
fn interval(frequencies: &BTreeMap<usize, u64>) -> (usize, usize) {
    let (total, mode) = (frequencies.values().sum(), mode(frequencies));
    let (first, last) = (end(frequencies.iter(), total), end(frequencies.iter().rev(), total));
    (first.min(mode), last.max(mode))
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

/// R-hat and ESS over the last rows of every trace, as many as the shortest has.
fn convergence(traces: &[&[TraceRow]]) -> Vec<Convergence> {
    let length = traces.iter().map(|trace| trace.len()).min().unwrap_or(0);
    let stride = length.div_ceil(MOST_ROWS).max(1);
    let watched = |&(name, quantity): &Quantity| {
        let values = |trace: &&[TraceRow]| -> Vec<f64> {
            trace[trace.len() - length..].iter().step_by(stride).map(quantity).collect()
        };
        let chains: Vec<Vec<f64>> = traces.iter().map(values).collect();
        Convergence { name, r_hat: r_hat(&chains), ess: bulk_ess(&chains) }
    };
    QUANTITIES.iter().map(watched).collect()
}

#[cfg(test)]
mod tests;
