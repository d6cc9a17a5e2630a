//! The collapsed Gibbs sweep over the mask (section 3.1 of the paper), shared by all engines.
//!
//! A site is on iff G > logit(u) - logit(pi) + h sum(w), where G = sum x log(1 + w h / rate of the others). The
//! uniform u comes first; then bounds on G are tried, cheapest first, and only what they leave open is decided by
//! logarithms. A bound decides only beyond a margin for its rounding, so every decision is the one the exact
//! double-precision rule makes ([`sweep_plainly`] is that rule and nothing else).
//!
//! Let R = x / rate (current) and e = h sum R w, N = sum x. While the site is off, G <= N log(1 + e/N) <= e; while it is
//! on the mirrored bounds hold from below: each bound confirms the status quo. With the variance of w h / rate over
//! features there are bounds from both sides, which decide changes, too. Without h: G - h sum(w) <= N (log r - 1 + 1/r), r = sum R w / sum w > 1, or 0.

mod bounds;
mod score;
mod single;
mod sweep;

pub(crate) use score::{fused_score, side_by_side};
pub(crate) use sweep::{Scratch, sweep};

use super::activations::{Activations, ActiveColumn};
use super::dictionary::Dictionary;
use super::work::exact_gain;
use crate::counts::Counts;
use crate::kernel::{LANES, Lanes, Plain, Simd, Tile, flat_mut};
use crate::random::{Key, Site, philox};
use crate::special::ln;
use bounds::{MARGIN, ROUNDING};

/// Below this density columns are swept by their positive entries alone.
const COMPACT_DENSITY: f64 = 0.2;

/// The most columns swept side by side. Each tier runs over all of them before the next one starts: a tier is a long
/// chain of dependent instructions, and only many sites at once keep the processor busy.
pub(crate) const MOST_COLUMNS: usize = 32;

/// Where H comes from at a site that is off.
pub(crate) trait Proposal: Sync {
    /// True if every H is already in place; else H is drawn when a bound needs it, and only then.
    const KNOWN: bool;
    /// H of component k in column t. The same site always gives the same value within one iteration.
    fn draw(&self, t: usize, k: usize) -> f32;
    /// The same of several sites [t, k].
    fn draw_all(&self, _: Simd, sites: &[[u32; 2]], out: &mut [f32]) {
        for (&[t, k], out) in sites.iter().zip(out) {
            *out = self.draw(t as usize, k as usize);
        }
    }
}

/// All activations are in place.
pub(crate) struct Known;

impl Proposal for Known {
    const KNOWN: bool = true;
    fn draw(&self, _: usize, _: usize) -> f32 {
        unreachable!("every activation is known")
    }
}

/// logit(pi), with bounds for single precision.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Odds {
    logit: Vec<f64>,
    /// A lower bound of -logit(pi) - MARGIN: what a site that is off adds to logit(u).
    off: Vec<Tile>,
    /// A lower bound of logit(pi) - MARGIN: what a site that is on adds to -logit(u).
    on: Vec<Tile>,
}

impl Odds {
    pub(crate) fn new(logit: Vec<f64>) -> Self {
        let tiles = logit.len().div_ceil(LANES);
        let mut odds = Self { logit, off: vec![Tile::ZERO; tiles], on: vec![Tile::ZERO; tiles] };
        odds.settle();
        odds
    }

    /// logit(pi_k) of every component.
    pub(crate) fn logit(&self) -> &[f64] {
        &self.logit
    }

    /// Replaces logit(pi), same length.
    pub(crate) fn fill(&mut self, mut logit: impl FnMut(usize) -> f64) {
        for (k, out) in self.logit.iter_mut().enumerate() {
            *out = logit(k);
        }
        self.settle();
    }

    fn settle(&mut self) {
        for (k, &logit) in self.logit.iter().enumerate() {
            let slack = f64::from(MARGIN) + f64::from(ROUNDING) * logit.abs();
            flat_mut(&mut self.off)[k] = (-logit - slack) as f32;
            flat_mut(&mut self.on)[k] = (logit - slack) as f32;
        }
    }
}

/// How many sites each tier decided, from the cheapest to the dearest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tiers {
    /// Off whatever h is: h was never drawn.
    pub h_free: u64,
    /// By the linear bound.
    pub linear: u64,
    /// By Jensen's inequality over all features.
    pub jensen: u64,
    /// By Jensen's inequality and the variance over features.
    pub moments: u64,
    /// By single-precision logarithms with a margin.
    pub logarithms: u64,
    /// By double-precision logarithms.
    pub exact: u64,
    /// The only component of a column with counts cannot go off.
    pub forced: u64,
    /// Sites that changed.
    pub flips: u64,
}

impl Tiers {
    /// All sites visited.
    pub fn sites(&self) -> u64 {
        self.h_free + self.linear + self.jensen + self.moments + self.logarithms + self.exact + self.forced
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.h_free += other.h_free;
        self.linear += other.linear;
        self.jensen += other.jensen;
        self.moments += other.moments;
        self.logarithms += other.logarithms;
        self.exact += other.exact;
        self.forced += other.forced;
        self.flips += other.flips;
    }
}

/// What a sweep reads.
#[derive(Clone, Copy)]
pub(crate) struct Sweep<'a, P> {
    pub(crate) counts: &'a Counts,
    pub(crate) dictionary: &'a Dictionary,
    pub(crate) odds: &'a Odds,
    pub(crate) proposal: &'a P,
    pub(crate) key: Key,
    /// Counts the sweeps of a run: no two share their uniforms.
    pub(crate) number: u32,
}

impl<P: Proposal> Sweep<'_, P> {
    /// log(u / (1 - u)) of a site, u on 64 bits.
    #[inline(always)]
    pub(crate) fn logit_uniform(&self, t: usize, k: usize) -> f64 {
        let counter = |site: Site| [site as u32, self.number, t as u32, site_counter(k)];
        let word = site_word(k);
        let first = philox::block(counter(Site::Mask), self.key.words())[word];
        let tail = philox::block(counter(Site::MaskTail), self.key.words())[word];
        let u = u64::from(first) << 32 | u64::from(tail);
        ln(u as f64 + 0.5) - ln((u64::MAX - u) as f64 + 0.5)
    }

    /// The threshold G must exceed for the site to be on.
    #[inline(always)]
    pub(crate) fn threshold(&self, t: usize, k: usize, h: f32) -> f64 {
        self.logit_uniform(t, k) - self.odds.logit[k]
            + f64::from(h) * self.dictionary.observed_sum(k, self.counts.unexposed(t))
    }
}

/// How many columns are swept side by side: as many as stay in cache, and a divisor of [`MOST_COLUMNS`].
pub(crate) fn columns_side_by_side(counts: &Counts) -> usize {
    let entries = if compact(counts) { counts.nonzeros() / counts.observations() } else { counts.features() };
    match 20_000 / entries.max(1) {
        0..16 => 8,
        16..MOST_COLUMNS => 16,
        _ => MOST_COLUMNS,
    }
}

/// Whether columns are swept by their positive entries alone.
pub(crate) fn compact(counts: &Counts) -> bool {
    counts.density() < COMPACT_DENSITY
}

/// Sixteen neighbouring components share a word position, 64 share a block of counters: see [`philox::lanes`].
#[inline(always)]
fn site_counter(k: usize) -> u32 {
    (k / (4 * LANES) * LANES + k % LANES) as u32
}

#[inline(always)]
fn site_word(k: usize) -> usize {
    k / LANES % 4
}

/// The rule itself, in double precision: whether the site is on.
#[inline(always)]
fn exact_rule<P: Proposal, V: Lanes>(
    job: &Sweep<'_, P>,
    t: usize,
    k: usize,
    h: f32,
    column: ActiveColumn<'_>,
    others: &mut Vec<f64>,
) -> bool {
    exact_gain::<V>(job.counts, job.dictionary, t, k, h, column, others) > job.threshold(t, k, h)
}

/// The same sweep by the exact rule alone, one site after the other: what [`sweep`] must reproduce bit for bit.
pub(crate) fn sweep_plainly<P: Proposal>(job: &Sweep<'_, P>, activations: &mut Activations) {
    let mut others_rate = Vec::new();
    for t in 0..job.counts.observations() {
        let has_counts = job.counts.column_totals()[t] > 0.0;
        for k in 0..job.dictionary.components() {
            let column = activations.column(t);
            let was_on = column.on[k / LANES] >> (k % LANES) & 1 == 1;
            let h = if was_on || P::KNOWN { column.values[k] } else { job.proposal.draw(t, k) };
            let others = column.iter().filter(|(j, _)| *j != k).count();
            let is_on =
                (has_counts && others == 0) || exact_rule::<P, Plain>(job, t, k, h, column, &mut others_rate);
            activations.set(k, t, is_on.then_some(h));
        }
    }
}
