//! The tiers: bounds on the gain of a site, cheapest first. None of them changes anything but [`Sites`].

use super::{MOST_COLUMNS, Proposal, Sweep};
use crate::infer::dictionary::Dictionary;
use crate::infer::work::Work;
use crate::kernel::{LANES, LN_ERROR, Lanes, Tile, each};

/// Covers the 32 bits of u behind the first 32 (2.5e-4 for u in the range below), and the error of logit(u), 8e-5.
pub(super) const MARGIN: f32 = 3.5e-4;

/// A u with |logit(u)| above this is left to the exact rule, so that MARGIN holds for the others: 2^-32 / (u (1 - u)) is
/// 2.3e-4 here.
const TAME: f32 = 13.8;

/// Products with single-precision sums of W and logit(pi) are trusted to this relative error.
pub(super) const ROUNDING: f32 = 5e-7;

/// Bounds for sites that are on lose their digits when a component is nearly all of a rate.
const SHARE: f32 = 0.97;

/// Relative error of Jensen bounds beside that of the scores: one of the logarithm, and a few roundings of the total and
/// of the share, which count up to ten times when a site is on (see [`SHARE`]).
const JENSEN_ERROR: f32 = LN_ERROR + 2e-5;

/// With more tiles of features than this, sixteen blocks are so much like each other that they say nothing new. The
/// rounding of their totals, one for each tile, is part of [`JENSEN_ERROR`].
pub(super) const MOST_BLOCK_TILES: usize = 12;

/// Sites that Jensen over blocks takes together.
const AT_ONCE: usize = 4;

/// The sites of one tile in all columns, sixteen a column, on their way to a decision. Bit i of a mask is component i.
#[derive(Debug, Clone)]
pub(super) struct Sites {
    /// logit(u); only kept where h is drawn when needed.
    logit: [Tile; MOST_COLUMNS],
    /// h, negative where the site is on. With parts w h / rate of that sign, s = sum x log(1 + part) is the gain of a
    /// site that is off, and minus the gain of one that is on.
    signed_h: [Tile; MOST_COLUMNS],
    /// A site stays as it is if s, or an upper bound of it, is at most this; the second allows for [`JENSEN_ERROR`].
    stay: [Tile; MOST_COLUMNS],
    stay_jensen: [Tile; MOST_COLUMNS],
    /// Lanes that are off and whose h has been drawn.
    pub(super) drawn: [u16; MOST_COLUMNS],
    /// Lanes after the last one that changed.
    pub(super) rest: [u16; MOST_COLUMNS],
    /// Lanes that the next tier looks at; and the same as a list, column * 16 + lane. Going through a list the processor
    /// works on several sites at once, and guesses wrongly only at its end.
    open: [u16; MOST_COLUMNS],
    list: [u32; (MOST_COLUMNS + 1) * LANES],
    listed: usize,
    /// Sites whose h is drawn, and those h.
    places: [[u32; 2]; MOST_COLUMNS * LANES],
    draws: [f32; MOST_COLUMNS * LANES],
    /// Lanes whose status quo a bound confirms, tier by tier; the last also has those that change.
    pub(super) decided: [[u16; MOST_COLUMNS]; TIERS],
    /// Lanes that change.
    pub(super) changes: [u16; MOST_COLUMNS],
}

/// Tiers in `Sites::decided`.
pub(super) const TIERS: usize = 5;
pub(super) const H_FREE: usize = 0;
pub(super) const LINEAR: usize = 1;
pub(super) const JENSEN: usize = 2;
pub(super) const BLOCK_JENSEN: usize = 3;
pub(super) const LOGARITHMS: usize = 4;

impl Default for Sites {
    fn default() -> Self {
        Self {
            logit: [Tile::ZERO; MOST_COLUMNS],
            signed_h: [Tile::ZERO; MOST_COLUMNS],
            stay: [Tile::ZERO; MOST_COLUMNS],
            stay_jensen: [Tile::ZERO; MOST_COLUMNS],
            drawn: [0; MOST_COLUMNS],
            rest: [0; MOST_COLUMNS],
            open: [0; MOST_COLUMNS],
            list: [0; (MOST_COLUMNS + 1) * LANES],
            listed: 0,
            places: [[0; 2]; MOST_COLUMNS * LANES],
            draws: [0.0; MOST_COLUMNS * LANES],
            decided: [[0; MOST_COLUMNS]; TIERS],
            changes: [0; MOST_COLUMNS],
        }
    }
}

impl Sites {
    /// Starts on a tile of `lanes` components.
    #[inline(always)]
    pub(super) fn take_up(&mut self, lanes: usize) {
        self.drawn = [0; MOST_COLUMNS];
        self.rest = [(u32::from(u16::MAX) >> (LANES - lanes)) as u16; MOST_COLUMNS];
        self.decided = [[0; MOST_COLUMNS]; TIERS];
        self.changes = [0; MOST_COLUMNS];
    }

    /// Lanes of a column that no bound has decided.
    #[inline(always)]
    pub(super) fn undecided(&self, c: usize) -> u16 {
        self.rest[c] & !self.decided.iter().fold(0, |any, tier| any | tier[c])
    }

    /// Takes back what the bounds said about some lanes of a column.
    #[inline(always)]
    pub(super) fn forget(&mut self, c: usize, lanes: u16) {
        for tier in &mut self.decided {
            tier[c] &= !lanes;
        }
        self.changes[c] &= !lanes;
    }

    /// Lists the lanes of a column that are off and need h.
    #[inline(always)]
    fn need<V: Lanes>(&mut self, c: usize, status: u16) {
        let unknown = self.undecided(c) & !status & !self.drawn[c];
        self.drawn[c] |= unknown;
        self.open::<V>(c, unknown);
    }

    /// Draws h for the listed sites of a tile of the columns from `first` on: all at once, which is much faster than one
    /// by one. A column has `tiles` in `values`.
    #[inline(always)]
    fn draw<P: Proposal, V: Lanes>(
        &mut self,
        proposal: &P,
        first: usize,
        tile: usize,
        tiles: usize,
        values: &mut [Tile],
    ) {
        let (places, drawn) = (&mut self.places[..self.listed], &mut self.draws[..self.listed]);
        for (place, &site) in places.iter_mut().zip(&self.list) {
            let (c, lane) = position(site);
            *place = [(first + c) as u32, (tile * LANES + lane) as u32];
        }
        proposal.draw_all(V::SIMD, places, drawn);
        for (&h, &site) in drawn.iter().zip(&self.list) {
            let (c, lane) = position(site);
            values[c * tiles + tile].0[lane] = h;
        }
    }

    /// Opens lanes of a column to the tiers that look at single sites.
    #[inline(always)]
    fn open<V: Lanes>(&mut self, c: usize, lanes: u16) {
        self.open[c] = lanes;
        let list = self.list[self.listed..].first_chunk_mut().expect("room for one more column");
        V::list(lanes, (c * LANES) as u32, list);
        self.listed += lanes.count_ones() as usize;
    }
}

/// The positions of the bits of `mask`, increasing.
#[inline(always)]
pub(super) fn bits(mut mask: u32) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        (mask != 0).then(|| {
            let bit = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            bit
        })
    })
}

/// What the tiers read.
#[derive(Clone, Copy)]
pub(super) struct Place<'a, 'b, P> {
    pub(super) job: &'a Sweep<'b, P>,
    pub(super) first: usize,
    pub(super) tile: usize,
    /// Columns with undecided lanes.
    pub(super) left: u32,
    pub(super) columns: &'a [Work],
    pub(super) words: &'a [[[u32; LANES]; 4]],
    pub(super) scores: &'a [Tile],
    pub(super) on: &'a [u16],
    /// Whether Jensen over blocks is worth its time: see [`MOST_BLOCK_TILES`].
    pub(super) blocks: bool,
}

/// All tiers but the exact rule.
#[inline(always)]
pub(super) fn bound_columns<P: Proposal, V: Lanes>(
    place: Place<'_, '_, P>,
    values: &mut [Tile],
    sites: &mut Sites,
    gathered: &mut Vec<Tile>,
) {
    let Place { job, first, tile, left, columns, on, .. } = place;
    let tiles = job.dictionary.components().div_ceil(LANES);
    if !P::KNOWN {
        sites.listed = 0;
        for c in bits(left) {
            let status = on[c * tiles + tile];
            without_h::<P, V>(&place, c, status, sites);
            sites.need::<V>(c, status);
        }
        sites.draw::<P, V>(job.proposal, first, tile, tiles, values);
    }
    let tiled = Tiled::<V> {
        tiles,
        sum: V::load(&job.dictionary.sum_tile(tile).0),
        off: V::load(&job.odds.off[tile].0),
        on: V::load(&job.odds.on[tile].0),
    };
    (sites.open, sites.listed) = ([0; MOST_COLUMNS], 0);
    let mut rest = bits(left);
    while let Some(c) = rest.next() {
        match rest.next() {
            Some(next) => with_h::<P, V, 2>(&place, &tiled, [c, next], values, sites),
            None => with_h::<P, V, 1>(&place, &tiled, [c], values, sites),
        }
    }
    if place.blocks {
        block_jensen::<V>(job.dictionary, tile, columns, sites, gathered);
    }
    logarithms::<P, V>(job, tile, columns, sites, gathered);
}

/// What the sites of a tile share.
struct Tiled<V> {
    /// Tiles of a column.
    tiles: usize,
    sum: V,
    off: V,
    on: V,
}

/// Column and lane of a listed site.
#[inline(always)]
fn position(site: u32) -> (usize, usize) {
    (site as usize / LANES % MOST_COLUMNS, site as usize % LANES)
}

/// Lanes for which single precision means something.
#[inline(always)]
fn tame<V: Lanes>(work: &Work, logit: V) -> u16 {
    if work.wild { 0 } else { logit.abs().le(V::splat(TAME)) }
}

/// The tier that needs no h, for sites that are off.
#[inline(always)]
fn without_h<P, V: Lanes>(place: &Place<'_, '_, P>, c: usize, status: u16, sites: &mut Sites) {
    let (work, tile) = (&place.columns[c], place.tile);
    let [logit] = V::logit([&place.words[c][tile % 4]]);
    logit.store(&mut sites.logit[c].0);
    let one = V::splat(1.0);
    let score = V::load(&place.scores[c].0);
    let above = V::splat(1.0 + work.error);
    let r = score.mul(V::load(&place.job.dictionary.inverse_sum_tile(tile).0)).mul(above).max(one);
    // Near r = 1 the three terms cancel: what is left carries an absolute error.
    let [log] = V::ln([r]);
    let slack = V::splat(LN_ERROR + 5e-7).mul_add(log, V::splat(5e-7));
    let gain = V::splat(work.total).mul(log.sub(one).add(r.reciprocal()).add(slack));
    let threshold = logit.add(V::load(&place.job.odds.off[tile].0));
    let lanes = sites.undecided(c) & tame(work, logit) & !status & !sites.drawn[c];
    sites.decided[H_FREE][c] |= gain.le(threshold) & lanes;
}

/// The vector tiers that need h: linear, and Jensen over all features; several columns, step by step (see
/// [`Lanes::ln_near_one`]).
///
/// Everything is signed such that a site stays if something is at most `stay`: see [`Sites`].
#[inline(always)]
fn with_h<P: Proposal, V: Lanes, const N: usize>(
    place: &Place<'_, '_, P>,
    tiled: &Tiled<V>,
    columns: [usize; N],
    values: &[Tile],
    sites: &mut Sites,
) {
    let places = columns.map(|c| c * tiled.tiles + place.tile);
    let status = places.map(|at| place.on[at]);
    let works = columns.map(|c| &place.columns[c]);
    let logit: [V; N] = if P::KNOWN {
        V::logit(columns.map(|c| &place.words[c][place.tile % 4]))
    } else {
        each!(V, N, n => V::load(&sites.logit[columns[n]].0))
    };
    let h: [V; N] = each!(V, N, n => V::load(&values[places[n]].0).negate_where(status[n]));
    let odds: [V; N] = each!(V, N, n => {
        logit[n].negate_where(status[n]).add(V::select(status[n], tiled.on, tiled.off))
    });
    let stay: [V; N] = each!(V, N, n => odds[n].add(less(h[n].mul(tiled.sum), ROUNDING)));
    let stay_jensen: [V; N] = each!(V, N, n => less(stay[n], JENSEN_ERROR));
    let linear: [V; N] =
        each!(V, N, n => more(h[n].mul(V::load(&place.scores[columns[n]].0)), works[n].error));
    // Without counts the gain is zero, which the linear bound has said already.
    let log: [V; N] = ln_of_share(each!(V, N, n => linear[n].mul(V::splat(works[n].inverse_total))));
    for n in 0..N {
        let c = columns[n];
        h[n].store(&mut sites.signed_h[c].0);
        stay[n].store(&mut sites.stay[c].0);
        stay_jensen[n].store(&mut sites.stay_jensen[c].0);
        let lanes = sites.undecided(c) & tame(works[n], logit[n]);
        let stays_linear = linear[n].le(stay[n]) & lanes;
        let gain = V::splat(works[n].total).mul(log[n]);
        let stays_jensen = gain.le(stay_jensen[n]) & lanes & !stays_linear;
        sites.decided[LINEAR][c] |= stays_linear;
        sites.decided[JENSEN][c] |= stays_jensen;
        sites.open::<V>(c, lanes & !(stays_linear | stays_jensen));
    }
}

/// log(1 + share) or more, with the digits it should have: see [`SHARE`]. NaN stays NaN.
#[inline(always)]
fn ln_of_share<V: Lanes, const N: usize>(shares: [V; N]) -> [V; N] {
    V::ln_1p::<N>(each!(V, N, n => V::splat(-SHARE).max(shares[n])))
}

/// value + relative |value|.
#[inline(always)]
fn more<V: Lanes>(value: V, relative: f32) -> V {
    value.abs().mul_add(V::splat(relative), value)
}

/// value - relative |value|.
#[inline(always)]
fn less<V: Lanes>(value: V, relative: f32) -> V {
    value.abs().mul_add(V::splat(-relative), value)
}

/// Jensen over sixteen blocks of features, for all open sites.
#[inline(always)]
fn block_jensen<V: Lanes>(
    dictionary: &Dictionary,
    tile: usize,
    columns: &[Work],
    sites: &mut Sites,
    gathered: &mut Vec<Tile>,
) {
    let mut left = 0;
    for first in (0..sites.listed).step_by(AT_ONCE) {
        // Beyond the end the last one is repeated.
        let mut batch = [0; AT_ONCE];
        let mut shares = [V::splat(0.0); AT_ONCE];
        for n in 0..AT_ONCE {
            batch[n] = sites.list[(first + n).min(sites.listed - 1)];
            let (c, lane) = position(batch[n]);
            let work = &columns[c];
            let sum = dot::<V>(&work.ratio, work.component(dictionary, tile * LANES + lane, gathered));
            let h = sites.signed_h[c].0[lane];
            shares[n] = sum.mul(V::splat(h + work.error * h.abs())).mul(V::load(&work.block_inverses));
        }
        let logs = ln_of_share(shares);
        let gains = V::sums(
            each!(V, AT_ONCE, n => V::load(&columns[position(batch[n]).0].block_totals).mul(logs[n])),
        );
        for n in 0..AT_ONCE {
            let (c, lane) = position(batch[n]);
            // What is left over moves to the front: no branch that would have to be guessed. NaN is left over.
            let stays = gains[n] <= sites.stay_jensen[c].0[lane];
            sites.list[left] = batch[n];
            left += usize::from(!stays & (first + n < sites.listed));
        }
    }
    sites.listed = left;
    let before = core::mem::replace(&mut sites.open, [0; MOST_COLUMNS]);
    for &site in &sites.list[..left] {
        let (c, lane) = position(site);
        sites.open[c] |= 1 << lane;
    }
    for c in 0..MOST_COLUMNS {
        sites.decided[BLOCK_JENSEN][c] |= before[c] & !sites.open[c];
    }
}

/// The sum of a w, lane by lane. Short rows, which are the ones that blocks are for, are written out.
#[inline(always)]
fn dot<V: Lanes>(a: &[Tile], w: &[Tile]) -> V {
    match a.len().min(w.len()) {
        1 => dot_of::<V>(&a[..1], &w[..1]),
        2 => dot_of::<V>(&a[..2], &w[..2]),
        3 => dot_of::<V>(&a[..3], &w[..3]),
        4 => dot_of::<V>(&a[..4], &w[..4]),
        5 => dot_of::<V>(&a[..5], &w[..5]),
        6 => dot_of::<V>(&a[..6], &w[..6]),
        _ => dot_of::<V>(a, w),
    }
}

#[inline(always)]
fn dot_of<V: Lanes>(a: &[Tile], w: &[Tile]) -> V {
    let mut sum = V::splat(0.0);
    for (a, w) in a.iter().zip(w) {
        sum = V::load(&a.0).mul_add(V::load(&w.0), sum);
    }
    sum
}

/// Logarithms in single precision, for all open sites.
#[inline(always)]
fn logarithms<P, V: Lanes>(
    job: &Sweep<'_, P>,
    tile: usize,
    columns: &[Work],
    sites: &mut Sites,
    gathered: &mut Vec<Tile>,
) {
    for i in 0..sites.listed {
        let (c, lane) = position(sites.list[i]);
        let (work, k) = (&columns[c], tile * LANES + lane);
        let w = work.component(job.dictionary, k, gathered);
        let h = sites.signed_h[c].0[lane];
        let (gain, least) = gain_of::<V>(work, w, h);
        let error = work.log_errors[usize::from(h < 0.0)] * gain.abs();
        let stay = sites.stay[c].0[lane];
        // `stay` is below the threshold by what single precision may have lost; this is above it by as much.
        let lost = job.odds.logit[k].abs() as f32 + (h * job.dictionary.sum_tile(tile).0[lane]).abs();
        let change = stay + 2.1 * (MARGIN + ROUNDING * lost);
        let sound = least.gt(V::splat(-SHARE)) == u16::MAX;
        let stays = (gain + error <= stay) & sound;
        let changes = (gain - error > change) & sound;
        sites.decided[LOGARITHMS][c] |= u16::from(stays | changes) << lane;
        sites.changes[c] |= u16::from(changes) << lane;
    }
}

/// sum x log(1 + part) of parts w h / rate, and the least part of every lane.
#[inline(always)]
fn gain_of<V: Lanes>(work: &Work, w: &[Tile], h: f32) -> (f32, V) {
    let mut out = (V::splat(0.0), V::splat(0.0));
    let tiles = work.x.len();
    let mut at = 0;
    while at < tiles {
        at += match tiles - at {
            1 => add_gain::<V, 1>(work, w, h, at, &mut out),
            2 => add_gain::<V, 2>(work, w, h, at, &mut out),
            3 => add_gain::<V, 3>(work, w, h, at, &mut out),
            5 => add_gain::<V, 5>(work, w, h, at, &mut out),
            _ => add_gain::<V, 4>(work, w, h, at, &mut out),
        };
    }
    (out.0.sum(), out.1)
}

/// Adds `N` tiles from tile `at` on to the sum, and to the least.
#[inline(always)]
fn add_gain<V: Lanes, const N: usize>(work: &Work, w: &[Tile], h: f32, at: usize, out: &mut (V, V)) -> usize {
    let (x, inverse, w) = (&work.x[at..][..N], &work.inverse[at..][..N], &w[at..][..N]);
    let parts: [V; N] = each!(V, N, n => V::load(&w[n].0).mul(V::splat(h)).mul(V::load(&inverse[n].0)));
    let logs = V::ln_1p(parts);
    for n in 0..N {
        out.0 = V::load(&x[n].0).mul_add(logs[n], out.0);
        out.1 = out.1.min(parts[n]);
    }
    N
}
