//! The collapsed Gibbs sweep over the mask (section 3.1 of the paper), shared by all engines.
//!
//! A site is on iff G > logit(u) - logit(pi) + h sum(w), where G = sum x log(1 + w h / rate of the others). The
//! uniform u comes first; then bounds on G are tried, cheapest first, and only what they leave open is decided by
//! logarithms. A bound decides only beyond a margin for its rounding, so every decision is the one the exact
//! double-precision rule makes (`plain` is that rule and nothing else).
//!
//! Let R = x / rate (current) and e = h sum R w, N = sum x. While the site is off, G <= sum of Jensen bounds over
//! blocks of features <= N log(1 + e/N) <= e; while it is on the mirrored bounds hold from below: each bound
//! confirms the status quo. Without h: G - h sum(w) <= N (log r - 1 + 1/r), r = sum R w / sum w > 1, or 0.

use super::activations::{Activations, ActiveColumn};
use super::dictionary::Dictionary;
use super::work::Work;
use crate::counts::Counts;
use crate::kernel::{LANES, Lanes, Tile, dispatch, flat, flat_mut};
use crate::random::{Key, Site, philox};
use crate::special::ln;

/// Below this density columns are swept by their positive entries alone.
const COMPACT_DENSITY: f64 = 0.2;

/// The most columns swept side by side on any machine.
const MOST_COLUMNS: usize = 8;

/// Covers the 32 bits of u behind the first 32 (2.5e-4 for u in the range below), and the rounding of log u.
const MARGIN: f32 = 3e-4;

/// A uniform closer to 0 or 1 than this is left to the exact rule, so that MARGIN holds for the others.
const TAME: f32 = 4096.0 / 4_294_967_296.0;

/// Products with single-precision sums of W and logit(pi) are trusted to this relative error.
const ROUNDING: f32 = 5e-7;

/// Jensen bounds for sites that are on lose their digits when a component is nearly all of a rate.
const SHARE: f32 = 0.97;

/// Where H comes from at a site that is off.
pub(crate) trait Proposal: Sync {
    /// True if every H is already in place; else H is drawn when a bound needs it, and only then.
    const KNOWN: bool;
    /// H of component k in column t. The same site always gives the same value within one iteration.
    fn draw(&self, t: usize, k: usize) -> f32;
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
    upper: Vec<Tile>,
    lower: Vec<Tile>,
}

impl Odds {
    pub(crate) fn new(logit: Vec<f64>) -> Self {
        let tiles = logit.len().div_ceil(LANES);
        let mut odds = Self {
            logit,
            upper: vec![Tile([f32::NEG_INFINITY; LANES]); tiles],
            lower: vec![Tile([f32::NEG_INFINITY; LANES]); tiles],
        };
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
            let slack = ROUNDING * logit.abs() as f32;
            flat_mut(&mut self.upper)[k] = logit as f32 + slack;
            flat_mut(&mut self.lower)[k] = logit as f32 - slack;
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
    /// By Jensen's inequality over sixteen blocks of features.
    pub block_jensen: u64,
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
        self.h_free
            + self.linear
            + self.jensen
            + self.block_jensen
            + self.logarithms
            + self.exact
            + self.forced
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.h_free += other.h_free;
        self.linear += other.linear;
        self.jensen += other.jensen;
        self.block_jensen += other.block_jensen;
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
        self.logit_uniform(t, k) - self.odds.logit[k] + f64::from(h) * self.dictionary.sum(k)
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

/// Memory a thread needs for sweeping, allocated once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scratch {
    columns: Vec<Work>,
    /// ratio of feature f and column c at `f * COLUMNS + c`.
    interleaved: Vec<f32>,
    words: Vec<[[u32; LANES]; 4]>,
    gathered: Vec<Tile>,
    scores: Vec<Tile>,
}

dispatch! {
    /// Sweeps columns `from ..`, as many as `on` (words) and `values` (H) hold.
    pub(crate) fn sweep [P: Proposal] (
        job: &Sweep<'_, P>, from: usize, on: &mut [u16], values: &mut [Tile], scratch: &mut Scratch,
    ) -> Tiers = sweep_columns
}

/// The single-site quantities of one tile of one column.
struct Site16 {
    /// Lower and upper bounds of logit(u) - logit(pi).
    low: Tile,
    high: Tile,
    /// Lanes whose u is too extreme for the bounds.
    untamed: u16,
    /// Lanes that are off and whose h has been drawn.
    drawn: u16,
    /// Lanes that are components.
    valid: u16,
}

#[inline(always)]
fn sweep_columns<P: Proposal, V: Lanes>(
    job: &Sweep<'_, P>,
    from: usize,
    on: &mut [u16],
    values: &mut [Tile],
    scratch: &mut Scratch,
) -> Tiers {
    let tiles = job.dictionary.components().div_ceil(LANES);
    let compact = compact(job.counts);
    let side_by_side = if compact { 1 } else { V::COLUMNS };
    scratch.columns.resize_with(MOST_COLUMNS, Work::default);
    scratch.words.resize(MOST_COLUMNS, [[0; LANES]; 4]);
    scratch.scores.resize(MOST_COLUMNS, Tile::ZERO);
    if !compact {
        scratch.interleaved.clear();
        scratch.interleaved.resize(job.counts.features() * V::COLUMNS, 0.0);
    }
    let mut tiers = Tiers::default();
    let groups = on.chunks_mut(side_by_side * tiles).zip(values.chunks_mut(side_by_side * tiles));
    for (group, (on, values)) in groups.enumerate() {
        let first = from + group * side_by_side;
        let columns = on.len() / tiles;
        for c in 0..columns {
            let at = c * tiles..(c + 1) * tiles;
            let work = &mut scratch.columns[c];
            work.load(job.counts, first + c, compact);
            work.rebuild(job.dictionary, ActiveColumn { on: &on[at.clone()], values: flat(&values[at]) });
            work.refresh::<V>();
            if !compact {
                interleave::<V>(work, c, &mut scratch.interleaved);
            }
        }
        if !compact && columns < V::COLUMNS {
            for ratios in scratch.interleaved.chunks_exact_mut(V::COLUMNS) {
                ratios[columns..].fill(0.0);
            }
        }
        for tile in 0..tiles {
            if tile % 4 == 0 {
                for c in 0..columns {
                    philox::lanes(
                        [Site::Mask as u32, job.number, (first + c) as u32],
                        (tile / 4 * LANES) as u32,
                        job.key.words(),
                        &mut scratch.words[c],
                    );
                }
            }
            if compact {
                scores_of_column::<V>(&scratch.columns[0], job.dictionary.tile(tile))
                    .store(&mut scratch.scores[0].0);
            } else {
                scores_of_group::<V>(job.dictionary.tile(tile), &scratch.interleaved, &mut scratch.scores);
            }
            for c in 0..columns {
                let at = c * tiles..(c + 1) * tiles;
                visit_tile::<P, V>(
                    job,
                    first + c,
                    tile,
                    c,
                    &mut on[at.clone()],
                    &mut values[at],
                    scratch,
                    &mut tiers,
                );
            }
        }
    }
    tiers
}

#[inline(always)]
fn interleave<V: Lanes>(work: &Work, c: usize, interleaved: &mut [f32]) {
    for (ratios, &ratio) in interleaved.chunks_exact_mut(V::COLUMNS).zip(flat(&work.ratio)) {
        ratios[c] = ratio;
    }
}

/// sum over f of R_f W_fk for sixteen components and all columns of a group.
#[inline(always)]
fn scores_of_group<V: Lanes>(tile: &[Tile], interleaved: &[f32], scores: &mut [Tile]) {
    let mut sums = [V::splat(0.0); MOST_COLUMNS];
    for (w, ratios) in tile.iter().zip(interleaved.chunks_exact(V::COLUMNS)) {
        let w = V::load(&w.0);
        for c in 0..V::COLUMNS {
            sums[c] = V::splat(ratios[c]).mul_add(w, sums[c]);
        }
    }
    for c in 0..V::COLUMNS {
        sums[c].store(&mut scores[c].0);
    }
}

/// sum over f of R_f W_fk for sixteen components and one column.
#[inline(always)]
fn scores_of_column<V: Lanes>(work: &Work, tile: &[Tile]) -> V {
    let ratio = flat(&work.ratio);
    let mut sums = [V::splat(0.0); 4];
    if work.compact {
        // The padding of `ratio` is zero and has no rows.
        let quads = work.rows.chunks_exact(4);
        let rest = quads.remainder();
        let done = work.rows.len() - rest.len();
        for (rows, ratios) in quads.zip(ratio.chunks_exact(4)) {
            for i in 0..4 {
                sums[i] = V::splat(ratios[i]).mul_add(V::load(&tile[rows[i] as usize].0), sums[i]);
            }
        }
        for (i, &row) in rest.iter().enumerate() {
            sums[i] = V::splat(ratio[done + i]).mul_add(V::load(&tile[row as usize].0), sums[i]);
        }
    } else {
        let quads = tile.chunks_exact(4);
        let rest = quads.remainder();
        let done = tile.len() - rest.len();
        for (w, ratios) in quads.zip(ratio.chunks_exact(4)) {
            for i in 0..4 {
                sums[i] = V::splat(ratios[i]).mul_add(V::load(&w[i].0), sums[i]);
            }
        }
        for (i, w) in rest.iter().enumerate() {
            sums[i] = V::splat(ratio[done + i]).mul_add(V::load(&w.0), sums[i]);
        }
    }
    sums[0].add(sums[1]).add(sums[2].add(sums[3]))
}

/// Decides the sixteen sites of a tile in one column, in their order.
#[inline(always)]
fn visit_tile<P: Proposal, V: Lanes>(
    job: &Sweep<'_, P>,
    t: usize,
    tile: usize,
    c: usize,
    on: &mut [u16],
    values: &mut [Tile],
    scratch: &mut Scratch,
    tiers: &mut Tiers,
) {
    let components = job.dictionary.components();
    let lanes = LANES.min(components - tile * LANES);
    let words = &scratch.words[c][tile % 4];
    let u = V::from_words(words);
    let complement = V::from_words(&words.map(|word| !word));
    let logit = u.ln().sub(complement.ln());
    let mut sites = Site16 {
        low: Tile::ZERO,
        high: Tile::ZERO,
        untamed: u.le(V::splat(TAME)) | complement.le(V::splat(TAME)),
        drawn: 0,
        valid: (u16::MAX as u32 >> (LANES - lanes)) as u16,
    };
    logit.sub(V::splat(MARGIN)).sub(V::load(&job.odds.upper[tile].0)).store(&mut sites.low.0);
    logit.add(V::splat(MARGIN)).sub(V::load(&job.odds.lower[tile].0)).store(&mut sites.high.0);

    let mut score = V::load(&scratch.scores[c].0);
    let mut rest = sites.valid;
    loop {
        let work = &scratch.columns[c];
        if work.total > 0.0 && work.active == 0 {
            // Nothing is on under a positive count: the next component must be.
            let lane = rest.trailing_zeros() as usize;
            let k = tile * LANES + lane;
            if !P::KNOWN && sites.drawn >> lane & 1 == 0 {
                values[tile].0[lane] = job.proposal.draw(t, k);
                sites.drawn |= 1 << lane;
            }
            tiers.forced += 1;
            flip::<P, V>(job, k, c, on, values, scratch, tiers);
            score = scores_of_column::<V>(&scratch.columns[c], job.dictionary.tile(tile));
            rest &= !(1u32.wrapping_shl(lane as u32 + 1) - 1) as u16;
            if rest == 0 {
                return;
            }
            continue;
        }
        let status = on[tile];
        let forced = if work.total > 0.0 && work.active == 1 { status } else { 0 };
        let bounded = bound::<P, V>(job, t, tile, work, score, status, rest & !forced, &mut sites, values);
        let mut open = rest & !forced & !bounded.h_free & !bounded.linear & !bounded.jensen;
        let mut settled = rest;
        let mut flipped = false;
        while open != 0 {
            let lane = open.trailing_zeros() as usize;
            open &= open - 1;
            let k = tile * LANES + lane;
            if settle::<P, V>(job, t, k, c, &sites, on, values, scratch, tiers) != (status >> lane & 1 == 1) {
                flip::<P, V>(job, k, c, on, values, scratch, tiers);
                score = scores_of_column::<V>(&scratch.columns[c], job.dictionary.tile(tile));
                settled = rest & ((1u32 << (lane + 1)) - 1) as u16;
                flipped = true;
                break;
            }
        }
        tiers.forced += u64::from((forced & settled).count_ones());
        tiers.h_free += u64::from((bounded.h_free & settled).count_ones());
        tiers.linear += u64::from((bounded.linear & settled).count_ones());
        tiers.jensen += u64::from((bounded.jensen & settled).count_ones());
        rest &= !settled;
        if !flipped || rest == 0 {
            return;
        }
    }
}

/// Lanes whose status quo a bound confirms.
#[derive(Default)]
struct Bounded {
    h_free: u16,
    linear: u16,
    jensen: u16,
}

/// The vector tiers: h-free, linear, Jensen. Draws h where the first leaves a site open.
#[inline(always)]
fn bound<P: Proposal, V: Lanes>(
    job: &Sweep<'_, P>,
    t: usize,
    tile: usize,
    work: &Work,
    score: V,
    status: u16,
    rest: u16,
    sites: &mut Site16,
    values: &mut [Tile],
) -> Bounded {
    let mut out = Bounded::default();
    let total = V::splat(work.total as f32);
    let one = V::splat(1.0);
    let low = V::load(&sites.low.0);
    let trusted = if work.wild { 0 } else { !sites.untamed };
    let above = V::splat(1.0 + work.error);

    if !P::KNOWN {
        let mut unknown = rest & !status & !sites.drawn;
        if unknown & trusted != 0 {
            let r = score.mul(V::load(&job.dictionary.inverse_sum_tile(tile).0)).mul(above).max(one);
            // log r - 1 + 1/r <= (r - 1)^2 / 2 and <= (r - 1) / 4.
            let beyond = r.sub(one);
            let rough = beyond.mul(beyond).mul(V::splat(0.5)).min(beyond.mul(V::splat(0.25)));
            out.h_free = total.mul(rough).le(low) & unknown & trusted;
            unknown &= !out.h_free;
            if unknown & trusted != 0 {
                let exact = r.ln().sub(one).add(one.div(r));
                // Near r = 1 the three terms cancel: what is left carries an absolute error.
                let slack = V::splat(5e-7).mul_add(r.ln(), V::splat(5e-7));
                let fine = total.mul(exact.add(slack)).le(low) & unknown & trusted;
                out.h_free |= fine;
                unknown &= !fine;
            }
        }
        sites.drawn |= unknown;
        while unknown != 0 {
            let lane = unknown.trailing_zeros() as usize;
            unknown &= unknown - 1;
            values[tile].0[lane] = job.proposal.draw(t, tile * LANES + lane);
        }
    }

    let rest = rest & !out.h_free & trusted;
    if rest == 0 {
        return out;
    }
    let h = V::load(&values[tile].0);
    let cost = h.mul(V::load(&job.dictionary.sum_tile(tile).0));
    let threshold_low = cost.mul_add(V::splat(1.0 - ROUNDING), low);
    let threshold_high = cost.mul_add(V::splat(1.0 + ROUNDING), V::load(&sites.high.0));
    let e = h.mul(score);
    let e_high = e.mul(above);
    let e_low = e.mul(V::splat(1.0 - work.error));
    let stays_off = !status & e_high.le(threshold_low);
    let stays_on = status & e_low.gt(threshold_high);
    out.linear = (stays_off | stays_on) & rest;

    let rest = rest & !out.linear;
    if rest == 0 || work.total == 0.0 {
        return out;
    }
    let inverse = V::splat(1.0 / work.total as f32);
    if rest & !status != 0 {
        let gain = total.mul(e_high.mul(inverse).ln_1p()).mul(V::splat(1.0 + 2e-6));
        out.jensen |= !status & gain.le(threshold_low) & rest;
    }
    if rest & status != 0 {
        let share = e_low.mul(inverse);
        let loss = total.mul(V::splat(0.0).sub(share).ln_1p()).mul(V::splat(-1.0 + 2e-5));
        out.jensen |= status & loss.gt(threshold_high) & share.le(V::splat(SHARE)) & rest;
    }
    out
}

/// The tiers for a single site: Jensen over blocks, single-precision logarithms, the exact rule. Whether it is on.
#[inline(always)]
fn settle<P: Proposal, V: Lanes>(
    job: &Sweep<'_, P>,
    t: usize,
    k: usize,
    c: usize,
    sites: &Site16,
    on: &[u16],
    values: &[Tile],
    scratch: &mut Scratch,
    tiers: &mut Tiers,
) -> bool {
    let (tile, lane) = (k / LANES, k % LANES);
    let work = &scratch.columns[c];
    let w = work.component(job.dictionary, k, &mut scratch.gathered);
    let h = values[tile].0[lane];
    let is_on = on[tile] >> lane & 1 == 1;
    if !work.wild && sites.untamed >> lane & 1 == 0 && work.total > 0.0 {
        let cost = h * job.dictionary.sum_tile(tile).0[lane];
        let low = sites.low.0[lane] + cost * (1.0 - ROUNDING);
        let high = sites.high.0[lane] + cost * (1.0 + ROUNDING);
        let zero = V::splat(0.0);

        let mut sum = zero;
        for (r, w) in work.ratio.iter().zip(w.chunks_exact(LANES)) {
            sum = V::load(&r.0).mul_add(V::load(w), sum);
        }
        let scale = h * if is_on { 1.0 - work.error } else { 1.0 + work.error };
        let share = sum.mul(V::splat(scale)).mul(V::load(&work.block_inverses));
        let block_totals = V::load(&work.block_totals);
        if is_on {
            if share.largest() <= SHARE {
                let gain = -block_totals.mul(zero.sub(share).ln_1p()).sum() * (1.0 - 2e-5);
                if gain > high {
                    tiers.block_jensen += 1;
                    return true;
                }
            }
        } else {
            let gain = block_totals.mul(share.ln_1p()).sum() * (1.0 + 4e-6);
            if gain <= low {
                tiers.block_jensen += 1;
                return false;
            }
        }

        let h_lanes = V::splat(if is_on { -h } else { h });
        let (mut sum, mut least) = (zero, zero);
        for ((x, inverse), w) in work.x_shadow.iter().zip(&work.inverse).zip(w.chunks_exact(LANES)) {
            let part = V::load(w).mul(h_lanes).mul(V::load(&inverse.0));
            least = least.min(part);
            sum = V::load(&x.0).mul_add(part.ln_1p(), sum);
        }
        let gain = if is_on { -sum.sum() } else { sum.sum() };
        if !is_on || zero.sub(least).largest() <= SHARE {
            let slack = gain * if is_on { 4e-5 } else { work.error + 4e-6 };
            if gain + slack <= low || gain - slack > high {
                tiers.logarithms += 1;
                return gain > high;
            }
        }
    }
    tiers.exact += 1;
    let threshold = job.threshold(t, k, h);
    let gain = if is_on {
        work.gain_while_on(w, h, |i| {
            let f = if work.compact { work.rows[i] as usize } else { i };
            let column = ActiveColumn { on, values: flat(values) };
            column
                .iter()
                .filter(|(j, _)| *j != k)
                .map(|(j, h)| f64::from(job.dictionary.row(j)[f]) * f64::from(h))
                .sum()
        })
    } else {
        work.gain_while_off(w, h)
    };
    gain > threshold
}

/// Changes a site and brings the column's rate and shadows up to date.
#[inline(always)]
fn flip<P: Proposal, V: Lanes>(
    job: &Sweep<'_, P>,
    k: usize,
    c: usize,
    on: &mut [u16],
    values: &[Tile],
    scratch: &mut Scratch,
    tiers: &mut Tiers,
) {
    let (tile, lane) = (k / LANES, k % LANES);
    let work = &mut scratch.columns[c];
    let h = values[tile].0[lane];
    let w = work.component(job.dictionary, k, &mut scratch.gathered);
    on[tile] ^= 1 << lane;
    let stale = if on[tile] >> lane & 1 == 1 { work.switch_on(w, h) } else { work.switch_off(w, h) };
    if stale {
        work.rebuild(job.dictionary, ActiveColumn { on, values: flat(values) });
    }
    work.refresh::<V>();
    if !work.compact {
        interleave::<V>(work, c, &mut scratch.interleaved);
    }
    tiers.flips += 1;
}

/// The same sweep by the exact rule alone, one site after the other: what [`sweep`] must reproduce bit for bit.
pub(crate) fn sweep_plainly<P: Proposal>(job: &Sweep<'_, P>, activations: &mut Activations) {
    let mut work = Work::default();
    let tiles = activations.tiles();
    for t in 0..job.counts.observations() {
        work.load(job.counts, t, true);
        work.rebuild(job.dictionary, activations.column(t));
        let (on, values) = activations.columns_mut(t, t + 1);
        debug_assert_eq!(on.len(), tiles);
        for k in 0..job.dictionary.components() {
            let (tile, lane) = (k / LANES, k % LANES);
            let was_on = on[tile] >> lane & 1 == 1;
            if !was_on && !P::KNOWN {
                values[tile].0[lane] = job.proposal.draw(t, k);
            }
            let h = values[tile].0[lane];
            let row = job.dictionary.row(k);
            let w: Vec<f32> = work.rows.iter().map(|&f| row[f as usize]).collect();
            let others = usize::from(was_on);
            let is_on = if work.total > 0.0 && work.active == others {
                true
            } else {
                let rate_without = |i: usize| {
                    (0..job.dictionary.components())
                        .filter(|&j| j != k && on[j / LANES] >> (j % LANES) & 1 == 1)
                        .map(|j| {
                            let f = work.rows[i] as usize;
                            f64::from(job.dictionary.row(j)[f]) * f64::from(values[j / LANES].0[j % LANES])
                        })
                        .sum()
                };
                let gain =
                    if was_on { work.gain_while_on(&w, h, rate_without) } else { work.gain_while_off(&w, h) };
                gain > job.threshold(t, k, h)
            };
            if is_on != was_on {
                on[tile] ^= 1 << lane;
                let stale = if is_on { work.switch_on(&w, h) } else { work.switch_off(&w, h) };
                if stale {
                    work.rebuild(job.dictionary, ActiveColumn { on, values: flat(values) });
                }
            }
        }
    }
}
