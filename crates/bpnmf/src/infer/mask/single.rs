//! The tiers that look at single sites: those that the tiers before them have left open.

use super::bounds::{BLOCK_JENSEN, LOGARITHMS, MARGIN, ROUNDING, SHARE, Sites, ln_of_share, position};
use super::{MOST_COLUMNS, Sweep};
use crate::infer::dictionary::Dictionary;
use crate::infer::work::Work;
use crate::kernel::{LANES, Lanes, Tile, each};

/// With more tiles of features than this, sixteen blocks are so much like each other that they say nothing new. The
/// rounding of their totals, one for each tile, is part of `bounds::JENSEN_ERROR`.
pub(super) const MOST_BLOCK_TILES: usize = 12;

/// Sites that Jensen over blocks takes together.
const AT_ONCE: usize = 8;

/// Jensen over sixteen blocks of features, for all open sites. A few lengths of rows are written out.
#[inline(always)]
pub(super) fn block_jensen<V: Lanes>(
    dictionary: &Dictionary,
    tile: usize,
    columns: &[Work],
    sites: &mut Sites,
    gathered: &mut Vec<Tile>,
) {
    match columns[0].x.len() {
        5 if !columns[0].compact => block_jensen_of::<V, 5>(dictionary, tile, columns, sites, gathered),
        _ => block_jensen_of::<V, 0>(dictionary, tile, columns, sites, gathered),
    }
}

/// The same for rows of `N` tiles, or of any length if that is 0.
#[inline(always)]
fn block_jensen_of<V: Lanes, const N: usize>(
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
            let k = tile * LANES + lane;
            let sum = if N == 0 {
                dot_of::<V>(&work.ratio, work.component(dictionary, k, gathered))
            } else {
                dot_of::<V>(&work.ratio[..N], &dictionary.row_tiles(k)[..N])
            };
            let h = sites.signed_h[c].0[lane];
            shares[n] = sum.mul(V::splat(h + work.error * h.abs())).mul(V::load(&work.block_inverses));
        }
        let logs = ln_of_share(shares);
        let terms: [V; AT_ONCE] =
            each!(V, AT_ONCE, n => V::load(&columns[position(batch[n]).0].block_totals).mul(logs[n]));
        let halves = [
            V::sums([terms[0], terms[1], terms[2], terms[3]]),
            V::sums([terms[4], terms[5], terms[6], terms[7]]),
        ];
        let gains = halves.as_flattened();
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

/// The sum of a w, lane by lane.
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
pub(super) fn logarithms<P, V: Lanes>(
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
        let sum = work.observed.as_ref().map_or(job.dictionary.sum_tile(tile), |[sum, _]| sum);
        let lost = job.odds.logit[k].abs() as f32 + (h * sum.0[lane]).abs();
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
