//! BSS Eval version 3: how well estimates give back known sources. Knows samples, not files or rates.

mod assign;
mod blocks;
mod cholesky;
mod correlate;
mod energies;
mod filters;
#[cfg(test)]
mod tests;
mod unscorable;

use crate::error::Error;
#[doc(hidden)]
pub use assign::best_rows;
use blocks::{Blocks, Signal};
use correlate::Correlations;
use energies::Energies;
use filters::Filters;
pub use unscorable::Unscorable;

/// Energies below this share of the estimate's are rounding, and count as 0: 200 dB.
const NOTHING: f64 = 1e-20;

/// The most unknowns of the joint system: its factors take 1 GB.
const MOST_UNKNOWNS: usize = 1 << 14;

/// How to score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BssEval {
    /// Taps of the distortion filters: delays from 0 to `taps` - 1 samples are forgiven.
    pub taps: usize,
    /// Whether estimates may be in another order than references: the order with the highest mean SIR is taken.
    pub permutation: bool,
    /// Threads to use (0: as many as the machine has); the scores do not depend on it.
    pub threads: usize,
}

impl Default for BssEval {
    /// As in version 3 of the toolbox: 512 taps, any order.
    fn default() -> Self {
        Self { taps: 512, permutation: true, threads: 0 }
    }
}

/// Scores of the references, in their order, in dB; never NaN.
///
/// A score is infinite if what it measures the absence of is below a 10^-20th of the energy of the estimate, minus
/// infinite if what it measures the presence of is, and `None` if both are or if a sound is silent.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// Signal to distortion ratio: the filtered reference against all the rest.
    pub sdr: Vec<Option<f64>>,
    /// Signal to interference ratio: the filtered reference against what other references add; infinite with one.
    pub sir: Vec<Option<f64>>,
    /// Signal to artifacts ratio: what the references explain against what they do not.
    pub sar: Vec<Option<f64>>,
    /// The estimate, from 0, of each reference.
    pub permutation: Vec<usize>,
    /// What is to be doubted about the scores.
    pub doubts: Vec<Doubt>,
}

/// What is to be doubted about scores. References and estimates are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubt {
    /// All samples of this reference are 0: it has no scores, and the others are scored as if it were not there.
    SilentReference(usize),
    /// All samples of this estimate are 0: it has no scores.
    SilentEstimate(usize),
    /// This estimate has nothing in common with any reference: it has no SIR.
    Unrelated(usize),
    /// Delayed copies of the references are mixtures of each other to double precision (one reference is a filtered
    /// copy of another, a band is empty, or they are too short for the filters): scores above about 100 dB are lower
    /// bounds.
    Dependent,
}

/// Scores the estimates of known sources: SDR, SIR and SAR, in dB, of each reference.
///
/// As the BSS Eval toolbox, version 3, and `mir_eval.separation.bss_eval_sources` of mir_eval 0.8.2 define them: the
/// estimate is projected onto the copies of its reference that are delayed by 0 to `taps` - 1 samples, and onto those of
/// all references. All sounds have the same length.
///
/// ```
/// use bpnmf_audio::{BssEval, bss_eval};
///
/// let source = [0.1, 0.9, -0.3, 0.4, 0.0, -0.8, 0.2, 0.0];
/// let estimate = [0.1, 0.9, -0.3, 0.4, 0.1, -0.8, 0.2, 0.0];
/// let scores = bss_eval(&[&source], &[&estimate], &BssEval { taps: 2, ..Default::default() })?;
/// assert!(scores.sdr[0].unwrap() > 20.0);
/// assert_eq!(scores.sir[0], Some(f64::INFINITY));
/// # Ok::<(), bpnmf_audio::Error>(())
/// ```
pub fn bss_eval(references: &[&[f64]], estimates: &[&[f64]], options: &BssEval) -> Result<Scores, Error> {
    check(references, estimates, options)?;
    let threads = options.threads;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Unscorable::Threads { threads, reason: error.to_string() })?;
    Ok(pool.install(|| score(references, estimates, options)))
}

fn check(references: &[&[f64]], estimates: &[&[f64]], options: &BssEval) -> Result<(), Unscorable> {
    if references.is_empty() {
        return Err(Unscorable::Nothing);
    }
    if references.len() != estimates.len() {
        return Err(Unscorable::Counts { references: references.len(), estimates: estimates.len() });
    }
    if options.taps == 0 {
        return Err(Unscorable::NoTaps);
    }
    let expected = references[0].len();
    if expected == 0 {
        return Err(Unscorable::Empty);
    }
    for (kind, sounds) in [("reference", references), ("estimate", estimates)] {
        for (number, sound) in (1..).zip(sounds) {
            let (what, found) = (format!("{kind} {number}"), sound.len());
            if found != expected {
                return Err(Unscorable::Lengths { what, found, expected });
            }
            if let Some(sample) = sound.iter().position(|value| !value.is_finite()) {
                return Err(Unscorable::NotFinite { what, sample, value: sound[sample] });
            }
        }
    }
    let (audible, taps) =
        (references.iter().filter(|sound| Signal::new(sound).is_some()).count(), options.taps);
    match audible.checked_mul(taps) {
        Some(unknowns) if unknowns <= MOST_UNKNOWNS => Ok(()),
        product => Err(Unscorable::TooLarge {
            references: audible,
            taps,
            unknowns: product.unwrap_or(usize::MAX),
            most: MOST_UNKNOWNS,
        }),
    }
}

/// SDR, SIR and SAR of an estimate against a reference, as far as they are defined.
type Ratios = [Option<f64>; 3];

fn score(references: &[&[f64]], estimates: &[&[f64]], options: &BssEval) -> Scores {
    let n = references.len();
    let pairs = pair_ratios(references, estimates, options);
    let permutation = if options.permutation {
        let worth = |k: usize| (0..n).map(|i| worth(pairs.ratios[k * n + i][1])).collect();
        assign::best_rows(&(0..n).map(worth).collect::<Vec<_>>())
    } else {
        (0..n).collect()
    };
    let pick = |ratio: usize| (0..n).map(|i| pairs.ratios[permutation[i] * n + i][ratio]).collect();
    let silent = |sounds: &[&[f64]], doubt: fn(usize) -> Doubt| -> Vec<Doubt> {
        let (_, audible) = audible(sounds);
        (0..n).filter(|place| !audible.contains(place)).map(doubt).collect()
    };
    let mut doubts = silent(references, Doubt::SilentReference);
    doubts.extend(silent(estimates, Doubt::SilentEstimate));
    doubts.extend(pairs.unrelated.into_iter().map(Doubt::Unrelated));
    doubts.extend(pairs.dependent.then_some(Doubt::Dependent));
    Scores { sdr: pick(0), sir: pick(1), sar: pick(2), permutation, doubts }
}

/// The sounds that are not silent, and their places.
fn audible<'a>(sounds: &[&'a [f64]]) -> (Vec<Signal<'a>>, Vec<usize>) {
    let signals = sounds.iter().enumerate().filter_map(|(place, sound)| Some((Signal::new(sound)?, place)));
    signals.unzip()
}

/// What is known of the pairs of an estimate and a reference.
struct Pairs {
    /// At estimate * n + reference; of pairs that cannot come together, nothing.
    ratios: Vec<Ratios>,
    /// Estimates without anything of any reference.
    unrelated: Vec<usize>,
    dependent: bool,
}

fn pair_ratios(references: &[&[f64]], estimates: &[&[f64]], options: &BssEval) -> Pairs {
    let (n, samples) = (references.len(), references[0].len());
    let (sources, source_places) = audible(references);
    let (heard, heard_places) = audible(estimates);
    let mut pairs = Pairs { ratios: vec![[None; 3]; n * n], unrelated: vec![], dependent: false };
    if sources.is_empty() || heard.is_empty() {
        return pairs;
    }
    let blocks = Blocks::new(samples, options.taps);
    let lags = Correlations::new(&sources, &heard, &blocks);
    let filters = Filters::new(&lags, sources.len(), heard.len(), options.taps);
    let may_meet = |k: usize, i: usize| options.permutation || heard_places[k] == source_places[i];
    let partners = |k: usize| (0..sources.len()).filter(|&i| may_meet(k, i)).collect();
    let against: Vec<Vec<usize>> = (0..heard.len()).map(partners).collect();
    let all = energies::energies(&sources, &heard, &against, &filters, &blocks);
    for (k, energies) in all.iter().enumerate() {
        let estimate = heard_places[k];
        for (&i, energies) in against[k].iter().zip(energies) {
            pairs.ratios[estimate * n + source_places[i]] = ratios(energies);
        }
        if energies.iter().any(|energies| ratios(energies)[1].is_none()) {
            pairs.unrelated.push(estimate);
        }
    }
    pairs.dependent = filters.dependent;
    pairs
}

/// How much a SIR counts when the order is chosen: as many defined pairs as can be, then as many infinite ones.
fn worth(sir: Option<f64>) -> f64 {
    sir.map_or(-1e6, |sir| sir.clamp(-1e4, 1e4))
}

/// The ratios in dB.
fn ratios(energies: &Energies) -> Ratios {
    let least = NOTHING * energies.estimate;
    let ratio = |signal: f64, rest: f64| match (signal > least, rest > least) {
        (true, true) => Some(10.0 * (signal / rest).log10()),
        (true, false) => Some(f64::INFINITY),
        (false, true) => Some(f64::NEG_INFINITY),
        (false, false) => None,
    };
    [
        ratio(energies.target, energies.distortion),
        ratio(energies.target, energies.interference),
        ratio(energies.explained, energies.artifacts),
    ]
}
