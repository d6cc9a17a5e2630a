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
use super::work::{Work, exact_gain};
use crate::counts::Counts;
use crate::kernel::{LANES, Lanes, Plain, Tile, dispatch, flat, flat_mut, prefetch};
use crate::random::{Key, Site, philox};
use crate::special::ln;

/// Below this density columns are swept by their positive entries alone.
const COMPACT_DENSITY: f64 = 0.2;

/// The most columns swept side by side. Each tier runs over all of them before the next one starts: a tier is a long
/// chain of dependent instructions, and only many sites at once keep the processor busy.
pub(crate) const MOST_COLUMNS: usize = 32;

/// The largest [`Lanes::COLUMNS`] and [`Lanes::TILES`].
const MOST_AT_ONCE: usize = 8;
const MOST_TILES: usize = 2;

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

/// How many columns are swept side by side: as many as stay in cache.
pub(crate) fn columns_side_by_side(counts: &Counts) -> usize {
    let entries = if compact(counts) { counts.nonzeros() / counts.observations() } else { counts.features() };
    (16_384 / entries.max(1)).clamp(8, 32) / 8 * 8
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
    words: Vec<[[u32; LANES]; 4]>,
    gathered: Vec<Tile>,
    /// Scores of the tiles at hand, [`MOST_COLUMNS`] for each.
    scores: Vec<Tile>,
    sites: Vec<Sites>,
    /// Bit c is set when column c has changed since its scores were computed.
    stale: u32,
    /// Rates in double precision for the exact rule.
    others: Vec<f64>,
}

dispatch! {
    /// Sweeps columns `from ..`, as many as `on` (words) and `values` (H) hold.
    pub(crate) fn sweep [P: Proposal] (
        job: &Sweep<'_, P>, from: usize, on: &mut [u16], values: &mut [Tile], scratch: &mut Scratch,
    ) -> Tiers = sweep_columns
}

/// Sixteen sites of a column on their way to a decision.
#[derive(Debug, Clone)]
struct Sites {
    /// Lower and upper bounds of logit(u) - logit(pi).
    low: Tile,
    high: Tile,
    /// h, negative where the site is on. With parts w h / rate of that sign, s = sum x log(1 + part) is the gain of a
    /// site that is off, and minus the gain of one that is on.
    signed_h: Tile,
    /// A site stays as it is if s, or an upper bound of it, is at most `stay`; it changes if s is above `change`.
    stay: Tile,
    change: Tile,
    /// Lanes whose u is too extreme for the bounds.
    untamed: u16,
    /// Lanes that are off and whose h has been drawn.
    drawn: u16,
    /// Lanes not yet decided, as components or by a flip before them.
    rest: u16,
    /// Lanes whose status quo a bound confirms.
    h_free: u16,
    linear: u16,
    jensen: u16,
    block_jensen: u16,
    /// Lanes that single-precision logarithms decide, and those of them that change.
    logarithms: u16,
    changes: u16,
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
    let side_by_side = columns_side_by_side(job.counts);
    scratch.columns.resize_with(MOST_COLUMNS, Work::default);
    scratch.words.resize(MOST_COLUMNS, [[0; LANES]; 4]);
    scratch.scores.resize(MOST_TILES * MOST_COLUMNS, Tile::ZERO);
    scratch.sites.resize(MOST_COLUMNS, Sites::NONE);
    let mut tiers = Tiers::default();
    let groups = on.chunks_mut(side_by_side * tiles).zip(values.chunks_mut(side_by_side * tiles));
    for (group, (on, values)) in groups.enumerate() {
        let first = from + group * side_by_side;
        let columns = on.len() / tiles;
        for c in 0..columns {
            let at = c * tiles..(c + 1) * tiles;
            let work = &mut scratch.columns[c];
            work.load::<V>(job.counts, first + c, compact);
            work.rebuild::<V>(
                job.dictionary,
                ActiveColumn { on: &on[at.clone()], values: flat(&values[at]) },
            );
        }
        for tile in 0..tiles {
            if tile % 4 == 0 {
                for c in 0..columns {
                    philox::lanes::<V>(
                        [Site::Mask as u32, job.number, (first + c) as u32],
                        (tile / 4 * LANES) as u32,
                        job.key.words(),
                        &mut scratch.words[c],
                    );
                }
            }
            let scores = tile % V::TILES * MOST_COLUMNS;
            if tile % V::TILES == 0 {
                score_columns::<V>(
                    job.dictionary,
                    tile,
                    tiles,
                    &scratch.columns[..columns],
                    &mut scratch.scores,
                );
                scratch.stale = 0;
            }
            for c in (0..columns).filter(|c| scratch.stale >> c & 1 == 1) {
                let score = scores_of_column::<V>(&scratch.columns[c], job.dictionary.tile(tile));
                score.store(&mut scratch.scores[scores + c].0);
            }
            let lanes = LANES.min(job.dictionary.components() - tile * LANES);
            let (upper, lower) = (&job.odds.upper[tile], &job.odds.lower[tile]);
            for c in 0..columns {
                prefetch(values, c * tiles + tile + 1);
                scratch.sites[c].take_up::<V>(&scratch.words[c][tile % 4], lanes, upper, lower);
            }
            let mut left = u32::MAX >> (MOST_COLUMNS - columns);
            while left != 0 {
                bound_columns::<P, V>(job, first, tile, left, scores, on, values, scratch);
                let mut again = 0;
                for c in bits(left) {
                    let at = c * tiles..(c + 1) * tiles;
                    let (on, values) = (&mut on[at.clone()], &mut values[at]);
                    again |= u32::from(carry_out::<P, V>(
                        job,
                        first + c,
                        tile,
                        c,
                        on,
                        values,
                        scratch,
                        &mut tiers,
                    )) << c;
                }
                // A column that has changed has new scores for the sites that come after.
                left = again;
                for c in bits(left) {
                    let score = scores_of_column::<V>(&scratch.columns[c], job.dictionary.tile(tile));
                    score.store(&mut scratch.scores[scores + c].0);
                }
            }
        }
    }
    tiers
}

/// Scores, sum over f of R_f W_fk, of the tiles from `tile` on that are handled together, for all columns.
#[inline(always)]
fn score_columns<V: Lanes>(
    dictionary: &Dictionary,
    tile: usize,
    tiles: usize,
    columns: &[Work],
    scores: &mut [Tile],
) {
    let (first, second) = scores.split_at_mut(MOST_COLUMNS);
    let w = dictionary.tile(tile);
    if columns[0].compact {
        for (score, work) in first.iter_mut().zip(columns) {
            scores_of_column::<V>(work, w).store(&mut score.0);
        }
        if V::TILES == 2 && tile + 1 < tiles {
            for (score, work) in second.iter_mut().zip(columns) {
                scores_of_column::<V>(work, dictionary.tile(tile + 1)).store(&mut score.0);
            }
        }
        return;
    }
    // An odd last tile is its own neighbour.
    let next = dictionary.tile((tile + V::TILES - 1).min(tiles - 1));
    let groups = columns.chunks(V::COLUMNS);
    let outs = first.chunks_mut(V::COLUMNS).zip(second.chunks_mut(V::COLUMNS));
    for (columns, (first, second)) in groups.zip(outs) {
        scores_of_group::<V>([w, next], columns, [first, second]);
    }
}

/// The scores of one or two tiles for up to `COLUMNS` columns.
#[inline(always)]
fn scores_of_group<V: Lanes>(
    tiles: [&[Tile]; MOST_TILES],
    columns: &[Work],
    scores: [&mut [Tile]; MOST_TILES],
) {
    let features = tiles[0].len();
    let second = &tiles[1][..features];
    // Columns beyond the last repeat the first: their scores are not read.
    let mut ratios = [&flat(&columns[0].ratio)[..features]; MOST_AT_ONCE];
    for (ratios, work) in ratios.iter_mut().zip(columns) {
        *ratios = &flat(&work.ratio)[..features];
    }
    let mut sums = [[V::splat(0.0); MOST_AT_ONCE]; MOST_TILES];
    for (f, w) in tiles[0].iter().enumerate() {
        let w = [V::load(&w.0), V::load(&second[f].0)];
        for c in 0..V::COLUMNS {
            let ratio = V::splat(ratios[c][f]);
            for i in 0..V::TILES {
                sums[i][c] = ratio.mul_add(w[i], sums[i][c]);
            }
        }
    }
    for (sums, scores) in sums.iter().zip(scores).take(V::TILES) {
        for c in 0..V::COLUMNS {
            sums[c].store(&mut scores[c].0);
        }
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

impl Sites {
    const NONE: Self = Self {
        low: Tile::ZERO,
        high: Tile::ZERO,
        signed_h: Tile::ZERO,
        stay: Tile::ZERO,
        change: Tile::ZERO,
        untamed: 0,
        drawn: 0,
        rest: 0,
        h_free: 0,
        linear: 0,
        jensen: 0,
        block_jensen: 0,
        logarithms: 0,
        changes: 0,
    };

    /// Starts on a tile of `lanes` components.
    #[inline(always)]
    fn take_up<V: Lanes>(&mut self, words: &[u32; LANES], lanes: usize, upper: &Tile, lower: &Tile) {
        let u = V::from_words(words);
        let complement = V::from_words(&words.map(|word| !word));
        let logit = u.ln().sub(complement.ln());
        logit.sub(V::splat(MARGIN)).sub(V::load(&upper.0)).store(&mut self.low.0);
        logit.add(V::splat(MARGIN)).sub(V::load(&lower.0)).store(&mut self.high.0);
        self.untamed = u.le(V::splat(TAME)) | complement.le(V::splat(TAME));
        (self.drawn, self.h_free) = (0, 0);
        self.rest = (u32::from(u16::MAX) >> (LANES - lanes)) as u16;
    }

    /// Lanes that no bound decides.
    #[inline(always)]
    fn open(&self) -> u16 {
        self.rest & !(self.h_free | self.linear | self.jensen | self.block_jensen | self.logarithms)
    }

    /// Lanes not yet decided for which single precision means something.
    #[inline(always)]
    fn trusted(&self, work: &Work) -> u16 {
        if work.wild { 0 } else { self.rest & !self.untamed }
    }

    /// Draws h for the lanes that are off and need it.
    #[inline(always)]
    fn draw<P: Proposal>(&mut self, proposal: &P, t: usize, tile: usize, status: u16, values: &mut Tile) {
        if P::KNOWN {
            return;
        }
        let mut unknown = self.rest & !status & !self.drawn & !self.h_free;
        self.drawn |= unknown;
        while unknown != 0 {
            let lane = unknown.trailing_zeros() as usize;
            unknown &= unknown - 1;
            values.0[lane] = proposal.draw(t, tile * LANES + lane);
        }
    }
}

/// The open lanes of up to four columns for which single precision means something, one bit each. A single loop over
/// all of them lets the processor work on several sites at once.
#[inline(always)]
fn open_lanes(works: &[Work], sites: &[Sites]) -> u64 {
    let mut open = 0;
    for (c, (work, sites)) in works.iter().zip(sites).enumerate() {
        open |= u64::from(sites.open() & sites.trusted(work)) << (c * LANES);
    }
    open
}

/// The positions of the bits of `mask`, increasing.
#[inline(always)]
fn bits(mut mask: u32) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        (mask != 0).then(|| {
            let bit = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            bit
        })
    })
}

/// All tiers but the exact rule, on the sites of a tile that are left in the columns of `left`.
#[inline(always)]
fn bound_columns<P: Proposal, V: Lanes>(
    job: &Sweep<'_, P>,
    first: usize,
    tile: usize,
    left: u32,
    scores: usize,
    on: &[u16],
    values: &mut [Tile],
    scratch: &mut Scratch,
) {
    let dictionary = job.dictionary;
    let tiles = dictionary.components().div_ceil(LANES);
    let Scratch { columns: works, sites, scores: all_scores, gathered, .. } = scratch;
    if !P::KNOWN {
        for c in bits(left) {
            let score = V::load(&all_scores[scores + c].0);
            without_h::<V>(dictionary, tile, &works[c], score, on[c * tiles + tile], &mut sites[c]);
        }
    }
    for c in bits(left) {
        let at = c * tiles + tile;
        sites[c].draw(job.proposal, first + c, tile, on[at], &mut values[at]);
        let score = V::load(&all_scores[scores + c].0);
        with_h::<V>(dictionary, tile, &works[c], score, on[at], &mut sites[c], &values[at]);
    }
    for (i, (works, sites)) in works.chunks(4).zip(sites.chunks_mut(4)).enumerate() {
        if left >> (4 * i) & 15 == 0 {
            continue;
        }
        let mut open = open_lanes(works, sites);
        while open != 0 {
            let (c, lane) = (open.trailing_zeros() as usize / LANES, open.trailing_zeros() as usize % LANES);
            open &= open - 1;
            block_jensen::<V>(dictionary, tile, lane, &works[c], &mut sites[c], gathered);
        }
    }
    for (i, (works, sites)) in works.chunks(4).zip(sites.chunks_mut(4)).enumerate() {
        if left >> (4 * i) & 15 == 0 {
            continue;
        }
        let mut open = open_lanes(works, sites);
        while open != 0 {
            let (c, lane) = (open.trailing_zeros() as usize / LANES, open.trailing_zeros() as usize % LANES);
            open &= open - 1;
            logarithms::<V>(dictionary, tile, lane, &works[c], &mut sites[c], gathered);
        }
    }
}

/// Carries out the decisions for a tile of one column in the order of its sites, up to the first that changes. Whether
/// sites are left after that one.
#[inline(always)]
fn carry_out<P: Proposal, V: Lanes>(
    job: &Sweep<'_, P>,
    t: usize,
    tile: usize,
    c: usize,
    on: &mut [u16],
    values: &mut [Tile],
    scratch: &mut Scratch,
    tiers: &mut Tiers,
) -> bool {
    let (work, sites) = (&scratch.columns[c], &scratch.sites[c]);
    let status = on[tile];
    let rest = sites.rest;
    let mut forced = 0;
    let mut pending = sites.open() | sites.changes;
    if work.total > 0.0 && work.active <= 1 {
        // The only component cannot go off; if there is none, the next one must come on.
        forced = if work.active == 1 { status & rest } else { rest & rest.wrapping_neg() };
        pending = if work.active == 1 { pending & !forced } else { forced };
    }
    let mut settled = rest;
    while pending != 0 {
        let lane = pending.trailing_zeros() as usize;
        let bit = pending & pending.wrapping_neg();
        pending &= !bit;
        let k = tile * LANES + lane;
        let sites = &mut scratch.sites[c];
        let changes = if forced & bit != 0 {
            if !P::KNOWN && sites.drawn & bit == 0 {
                values[tile].0[lane] = job.proposal.draw(t, k);
                sites.drawn |= bit;
            }
            true
        } else if sites.changes & bit != 0 {
            true
        } else {
            tiers.exact += 1;
            {
                let column = ActiveColumn { on, values: flat(values) };
                exact_rule::<P, V>(job, t, k, column.values[k], column, &mut scratch.others)
                    != (status & bit != 0)
            }
        };
        if changes {
            flip::<P, V>(job, k, c, on, values, scratch, tiers);
            settled = rest & (bit | (bit - 1));
            break;
        }
    }
    let sites = &mut scratch.sites[c];
    let by = settled & !forced;
    tiers.forced += u64::from((forced & settled).count_ones());
    tiers.h_free += u64::from((sites.h_free & by).count_ones());
    tiers.linear += u64::from((sites.linear & by).count_ones());
    tiers.jensen += u64::from((sites.jensen & by).count_ones());
    tiers.block_jensen += u64::from((sites.block_jensen & by).count_ones());
    tiers.logarithms += u64::from((sites.logarithms & by).count_ones());
    sites.rest = rest & !settled;
    sites.rest != 0
}

/// The tier that needs no h, for sites that are off.
#[inline(always)]
fn without_h<V: Lanes>(
    dictionary: &Dictionary,
    tile: usize,
    work: &Work,
    score: V,
    status: u16,
    sites: &mut Sites,
) {
    let one = V::splat(1.0);
    let above = V::splat(1.0 + work.error);
    let r = score.mul(V::load(&dictionary.inverse_sum_tile(tile).0)).mul(above).max(one);
    // Near r = 1 the three terms cancel: what is left carries an absolute error.
    let log = r.ln();
    let slack = V::splat(5e-7).mul_add(log, V::splat(5e-7));
    let gain = V::splat(work.total).mul(log.sub(one).add(one.div(r)).add(slack));
    sites.h_free = gain.le(V::load(&sites.low.0)) & sites.trusted(work) & !status & !sites.drawn;
}

/// The vector tiers that need h: linear, and Jensen over all features.
#[inline(always)]
fn with_h<V: Lanes>(
    dictionary: &Dictionary,
    tile: usize,
    work: &Work,
    score: V,
    status: u16,
    sites: &mut Sites,
    values: &Tile,
) {
    (sites.block_jensen, sites.logarithms, sites.changes) = (0, 0, 0);
    let trusted = sites.trusted(work) & !sites.h_free;
    let h = V::load(&values.0);
    let cost = h.mul(V::load(&dictionary.sum_tile(tile).0));
    let threshold_low = cost.mul_add(V::splat(1.0 - ROUNDING), V::load(&sites.low.0));
    let threshold_high = cost.mul_add(V::splat(1.0 + ROUNDING), V::load(&sites.high.0));
    let e = h.mul(score);
    let e_high = e.mul(V::splat(1.0 + work.error));
    let e_low = e.mul(V::splat(1.0 - work.error));
    let stays_off = !status & e_high.le(threshold_low);
    let stays_on = status & e_low.gt(threshold_high);
    sites.linear = (stays_off | stays_on) & trusted;

    let zero = V::splat(0.0);
    let slack = V::select(status, V::splat(8e-5), V::splat(8e-6)).add(V::splat(2.0 * work.error));
    let surely = threshold_low.sub(threshold_low.max(zero.sub(threshold_low)).mul(slack));
    let hardly = threshold_high.add(threshold_high.max(zero.sub(threshold_high)).mul(slack));
    V::select(status, zero.sub(h), h).store(&mut sites.signed_h.0);
    V::select(status, zero.sub(hardly), surely).store(&mut sites.stay.0);
    V::select(status, zero.sub(surely), hardly).store(&mut sites.change.0);

    let total = V::splat(work.total);
    let share = V::select(status, zero.sub(e_low), e_high).mul(V::splat(work.inverse_total));
    let gain = total.mul(share.ln_1p());
    let stays = gain.le(V::select(status, zero.sub(hardly), surely)) & share.gt(V::splat(-SHARE));
    // Without counts the gain is zero, which the linear bound has said already.
    sites.jensen = stays & trusted & !sites.linear;
}

/// Jensen over sixteen blocks of features.
#[inline(always)]
fn block_jensen<V: Lanes>(
    dictionary: &Dictionary,
    tile: usize,
    lane: usize,
    work: &Work,
    sites: &mut Sites,
    gathered: &mut Vec<Tile>,
) {
    let w = work.component(dictionary, tile * LANES + lane, gathered);
    let mut sum = V::splat(0.0);
    for (r, w) in work.ratio.iter().zip(w) {
        sum = V::load(&r.0).mul_add(V::load(&w.0), sum);
    }
    let h = sites.signed_h.0[lane];
    let scale = h + work.error * h.abs();
    let share = sum.mul(V::splat(scale)).mul(V::load(&work.block_inverses));
    let gain = V::load(&work.block_totals).mul(share.ln_1p()).sum();
    let stays = (gain <= sites.stay.0[lane]) & (share.le(V::splat(-SHARE)) == 0);
    sites.block_jensen |= u16::from(stays) << lane;
}

/// Logarithms in single precision.
#[inline(always)]
fn logarithms<V: Lanes>(
    dictionary: &Dictionary,
    tile: usize,
    lane: usize,
    work: &Work,
    sites: &mut Sites,
    gathered: &mut Vec<Tile>,
) {
    let w = work.component(dictionary, tile * LANES + lane, gathered);
    let h = V::splat(sites.signed_h.0[lane]);
    let (mut sum, mut least) = (V::splat(0.0), V::splat(0.0));
    for ((x, inverse), w) in work.x.iter().zip(&work.inverse).zip(w) {
        let part = V::load(&w.0).mul(h).mul(V::load(&inverse.0));
        least = least.min(part);
        sum = V::load(&x.0).mul_add(part.ln_1p(), sum);
    }
    let gain = sum.sum();
    let sound = least.le(V::splat(-SHARE)) == 0;
    let stays = (gain <= sites.stay.0[lane]) & sound;
    let changes = (gain > sites.change.0[lane]) & sound;
    sites.logarithms |= u16::from(stays | changes) << lane;
    sites.changes |= u16::from(changes) << lane;
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

/// Changes a site and brings the column up to date.
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
    on[tile] ^= 1 << lane;
    let is_on = on[tile] >> lane & 1 == 1;
    let w = work.component(job.dictionary, k, &mut scratch.gathered);
    work.switch::<V>(job.dictionary, w, h, is_on, ActiveColumn { on, values: flat(values) });
    scratch.stale |= 1 << c;
    tiers.flips += 1;
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
