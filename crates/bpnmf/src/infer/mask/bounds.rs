//! The tiers: bounds on the gain of a site, cheapest first. None of them changes anything but [`Sites`]. Here are those
//! that look at all sites of a tile; see `single` for the others.

use super::single::{logarithms, moments};
use super::{MOST_COLUMNS, Proposal, Sweep};
use crate::infer::work::Work;
use crate::kernel::{ABOVE_ERROR, LANES, LN_ERROR, Lanes, Tile, each};

/// Covers the 32 bits of u behind the first 32 (2.5e-4 for u in the range below), and the error of logit(u), 8e-5.
pub(super) const MARGIN: f32 = 3.5e-4;

/// A u with |logit(u)| above this is left to the exact rule, so that MARGIN holds for the others: 2^-32 / (u (1 - u)) is
/// 2.3e-4 here.
const TAME: f32 = 13.8;

/// Products with single-precision sums of W and logit(pi) are trusted to this relative error.
pub(super) const ROUNDING: f32 = 5e-7;

/// Bounds for sites that are on lose their digits when a component is nearly all of a rate.
pub(super) const SHARE: f32 = 0.97;

/// Relative error of Jensen bounds beside that of the scores: one of the logarithm, and a few roundings of the total and
/// of the share, which count up to ten times when a site is on (see [`SHARE`]).
const JENSEN_ERROR: f32 = ABOVE_ERROR + 2e-5;

/// The sites of one tile in all columns, sixteen a column, on their way to a decision. Bit i of a mask is component i.
#[derive(Debug, Clone)]
pub(super) struct Sites {
    /// logit(u); only kept where h is drawn when needed.
    logit: [Tile; MOST_COLUMNS],
    /// h, negative where the site is on. With parts w h / rate of that sign, s = sum x log(1 + part) is the gain of a
    /// site that is off, and minus the gain of one that is on.
    pub(super) signed_h: [Tile; MOST_COLUMNS],
    /// A site stays as it is if s, or an upper bound of it, is at most the first, and changes if s, or a lower bound
    /// of it, is above the second. They lie on both sides of the threshold, as far off as single precision may have lost.
    pub(super) stay: [Tile; MOST_COLUMNS],
    pub(super) change: [Tile; MOST_COLUMNS],
    /// Lanes that are off and whose h has been drawn.
    pub(super) drawn: [u16; MOST_COLUMNS],
    /// Lanes after the last one that changed.
    pub(super) rest: [u16; MOST_COLUMNS],
    /// Lanes that the next tier looks at; and the same as a list, column * 16 + lane. Going through a list the processor
    /// works on several sites at once, and guesses wrongly only at its end.
    pub(super) open: [u16; MOST_COLUMNS],
    pub(super) list: [u32; (MOST_COLUMNS + 1) * LANES],
    pub(super) listed: usize,
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
pub(super) const MOMENTS: usize = 3;
pub(super) const LOGARITHMS: usize = 4;

impl Default for Sites {
    fn default() -> Self {
        Self {
            logit: [Tile::ZERO; MOST_COLUMNS],
            signed_h: [Tile::ZERO; MOST_COLUMNS],
            stay: [Tile::ZERO; MOST_COLUMNS],
            change: [Tile::ZERO; MOST_COLUMNS],
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
        margin: V::load(&job.odds.off[tile].0)
            .abs()
            .mul_add(V::splat(2.1 * ROUNDING), V::splat(2.1 * MARGIN)),
    };
    (sites.open, sites.listed) = ([0; MOST_COLUMNS], 0);
    let mut rest = bits(left);
    while let Some(c) = rest.next() {
        match rest.next() {
            Some(next) => with_h::<P, V, 2>(&place, &tiled, [c, next], values, sites),
            None => with_h::<P, V, 1>(&place, &tiled, [c], values, sites),
        }
    }
    moments::<P, V>(job, tile, columns, place.scores, sites, gathered);
    logarithms::<P, V>(job, tile, columns, sites, gathered);
}

/// What the sites of a tile share.
struct Tiled<V> {
    /// Tiles of a column.
    tiles: usize,
    sum: V,
    off: V,
    on: V,
    /// Of logit(pi) and logit(u), from both sides of the threshold.
    margin: V,
}

/// Column and lane of a listed site.
#[inline(always)]
pub(super) fn position(site: u32) -> (usize, usize) {
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
    let inverse_sum = match &work.observed {
        Some([_, inverse]) => inverse,
        None => place.job.dictionary.inverse_sum_tile(tile),
    };
    let r = score.mul(V::load(&inverse_sum.0)).mul(above).max(one);
    // Near r = 1 the three terms cancel: what is left carries an absolute error.
    let [log] = V::ln([r]);
    let slack = V::splat(LN_ERROR + 5e-7).mul_add(log, V::splat(5e-7));
    let gain = V::splat(work.total).mul(log.sub(one).add(r.reciprocal()).add(slack));
    let threshold = logit.add(V::load(&place.job.odds.off[tile].0));
    // Beyond this the logarithm means nothing: hardly any of W was observed.
    let known = r.le(V::splat(1e37));
    let lanes = sites.undecided(c) & tame(work, logit) & known & !status & !sites.drawn[c];
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
    let sum: [V; N] = each!(V, N, n => match &works[n].observed {
        Some([sum, _]) => V::load(&sum.0),
        None => tiled.sum,
    });
    let expected: [V; N] = each!(V, N, n => h[n].mul(sum[n]));
    let stay: [V; N] = each!(V, N, n => odds[n].add(less(expected[n], ROUNDING)));
    // Both margins, and a little more.
    let twice = V::splat(2.1 * ROUNDING);
    let change: [V; N] = each!(V, N, n => expected[n].abs().mul_add(twice, stay[n].add(tiled.margin)));
    let stay_jensen: [V; N] = each!(V, N, n => less(stay[n], JENSEN_ERROR));
    let linear: [V; N] =
        each!(V, N, n => more(h[n].mul(V::load(&place.scores[columns[n]].0)), works[n].error));
    // Without counts the gain is zero, which the linear bound has said already.
    let log: [V; N] = ln_of_share(each!(V, N, n => linear[n].mul(V::splat(works[n].inverse_total))));
    for n in 0..N {
        let c = columns[n];
        h[n].store(&mut sites.signed_h[c].0);
        stay[n].store(&mut sites.stay[c].0);
        change[n].store(&mut sites.change[c].0);
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
    V::ln_1p_above::<N>(each!(V, N, n => V::splat(-SHARE).max(shares[n])))
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
