//! The tiers that look at single sites: those that the tiers before them have left open.

use super::bounds::{LOGARITHMS, MOMENTS, SHARE, Sites, bits, position};
use super::{MOST_COLUMNS, Sweep};
use crate::infer::work::Work;
use crate::kernel::{LANES, LN_ERROR, Lanes, Tile, each};

/// What is gathered of sixteen sites, side by side: of their columns, and their sums over features.
#[derive(Default)]
struct Batch {
    total: Tile,
    inverse_total: Tile,
    error: Tile,
    /// sum R w^2 / rate and the largest w / rate, where there are counts.
    square: Tile,
    largest: Tile,
}

/// Bounds from the first two moments of the parts and the largest of them, for all open sites.
///
/// Let a be the mean of the parts y = w h / rate under the counts, V the sum of x (y - a)^2. The parabola that touches
/// log(1 + y) at a and meets it at b is above it for all y < b, and below it for all y > b, for the third derivative of the
/// logarithm is positive. Hence s is at most N log(1 + a) - V psi(g) / (1 + a)^2, g = (1 + b) / (1 + a), for any b above all
/// parts, and at least that for any b below them; psi(g) = (g - 1 - log g) / (g - 1)^2. All of it holds for any a.
#[inline(always)]
pub(super) fn moments<P, V: Lanes>(
    job: &Sweep<'_, P>,
    tile: usize,
    columns: &[Work],
    scores: &[Tile],
    sites: &mut Sites,
    gathered: &mut Vec<Tile>,
) {
    match columns[0].tiles() {
        5 if !columns[0].compact => moments_of::<P, V, 5>(job, tile, columns, scores, sites, gathered),
        _ => moments_of::<P, V, 0>(job, tile, columns, scores, sites, gathered),
    }
}

/// The same for rows of `N` tiles, or of any length if that is 0.
#[inline(always)]
fn moments_of<P, V: Lanes, const N: usize>(
    job: &Sweep<'_, P>,
    tile: usize,
    columns: &[Work],
    scores: &[Tile],
    sites: &mut Sites,
    gathered: &mut Vec<Tile>,
) {
    let mut batch = Batch::default();
    let mut left = 0;
    for first in (0..sites.listed).step_by(LANES) {
        let number = LANES.min(sites.listed - first);
        for four in (0..number).step_by(4) {
            let (mut squares, mut largest) = ([V::splat(0.0); 4], [V::splat(0.0); 4]);
            for i in 0..4 {
                // Beyond the end the last one is repeated.
                let (c, lane) = position(sites.list[first + (four + i).min(number - 1)]);
                let work = &columns[c];
                let k = tile * LANES + lane;
                (squares[i], largest[i]) = if N == 0 {
                    let w = work.component(job.dictionary, k, gathered);
                    square_of::<V>(w, &work.ratio, &work.inverse)
                } else {
                    square_of::<V>(&job.dictionary.row_tiles(k)[..N], &work.ratio[..N], &work.inverse[..N])
                };
                batch.total.0[four + i] = work.total;
                batch.inverse_total.0[four + i] = work.inverse_total;
                batch.error.0[four + i] = work.error;
            }
            batch.square.0[four..four + 4].copy_from_slice(&V::sums(squares));
            batch.largest.0[four..four + 4].copy_from_slice(&V::largests(largest));
        }
        let list = sites.list[first..].first_chunk().expect("room for one more column");
        let [stays, changes] = judge::<V>(&batch, list, scores, sites);
        let all = (u32::from(u16::MAX) >> (LANES - number)) as u16;
        let (list, undecided) = (*list, all & !(stays | changes));
        for n in bits(u32::from(changes & all)) {
            let (c, lane) = position(list[n]);
            sites.changes[c] |= 1 << lane;
        }
        // What is left over moves to the front.
        V::keep(undecided, &list, sites.list[left..].first_chunk_mut().expect("room for one more column"));
        left += undecided.count_ones() as usize;
    }
    sites.listed = left;
    let before = core::mem::replace(&mut sites.open, [0; MOST_COLUMNS]);
    for &site in &sites.list[..left] {
        let (c, lane) = position(site);
        sites.open[c] |= 1 << lane;
    }
    for c in 0..MOST_COLUMNS {
        sites.decided[MOMENTS][c] |= before[c] & !sites.open[c];
    }
}

/// The sum of R w^2 / rate and the largest w / rate, lane by lane.
#[inline(always)]
fn square_of<V: Lanes>(w: &[Tile], ratio: &[Tile], inverse: &[Tile]) -> (V, V) {
    let (mut sum, mut largest) = (V::splat(0.0), V::splat(0.0));
    for ((w, ratio), inverse) in w.iter().zip(ratio).zip(inverse) {
        let w = V::load(&w.0);
        let part = w.mul(V::load(&inverse.0));
        sum = w.mul(V::load(&ratio.0)).mul_add(part, sum);
        largest = largest.max(part);
    }
    (sum, largest)
}

/// Which of sixteen sites stay as they are, and which change. NaN decides nothing.
#[inline(always)]
fn judge<V: Lanes>(batch: &Batch, list: &[u32; LANES], scores: &[Tile], sites: &Sites) -> [u16; 2] {
    let (zero, one) = (V::splat(0.0), V::splat(1.0));
    let scores: &[Tile; MOST_COLUMNS] = scores.first_chunk().expect("scores of all columns");
    let (h, error) = (V::gather(&sites.signed_h, list), V::load(&batch.error.0));
    let square = V::load(&batch.square.0);
    let linear = h.mul(V::gather(scores, list));
    let mean = linear.mul(V::load(&batch.inverse_total.0));
    let scale = one.div(one.add(mean));
    let [log] = V::ln_1p([mean]);
    let jensen = V::load(&batch.total.0).mul(log);
    // The slope of the parabola times what single precision may have lost of the sum of the parts; and the logarithm's.
    let lost = error.add(V::splat(1e-6)).mul(linear.abs()).mul(scale);
    let lost = jensen.abs().mul_add(V::splat(LN_ERROR + 2e-6), lost);
    // The error of `square` is below twice that of a score, that of `product` below three times.
    let (raw, product) = (h.mul(h).mul(square), mean.mul(linear));
    let slack = error.mul(V::splat(3.0).mul(raw).add(V::splat(4.0).mul(product)));
    let spread = raw.sub(product);
    let [least_spread, most_spread] = [spread.sub(slack).max(zero), spread.add(slack)];
    let end = h.mul(V::load(&batch.largest.0)).mul(one.add(error));
    let [below, above] = [end.min(zero), end.max(zero)];
    let scale_squared = scale.mul(scale);
    // psi from below and from above, by Pade approximants of the logarithms of g and of 1 / g.
    let g = one.add(above).mul(scale);
    let down = g.mul_add(V::splat(9.0), V::splat(18.0)).mul_add(g, V::splat(3.0));
    let least_psi = g.mul_add(V::splat(8.0), V::splat(7.0)).div(down);
    let g = one.add(below).mul(scale);
    let down = g.mul_add(V::splat(2.0), V::splat(4.0)).mul(g);
    let most_psi = g.mul_add(V::splat(2.0), one).div(down);
    let upper = jensen.add(lost).sub(least_spread.mul(scale_squared).mul(least_psi));
    let lower = jensen.sub(lost).sub(most_spread.mul(scale_squared).mul(most_psi));
    // Where products leave the range of normal numbers, and where a component is nearly all of a rate, nothing is sound.
    let sound = square.gt(V::splat(1e-30)) & square.le(V::splat(1e30)) & raw.le(V::splat(1e30));
    let sound = sound & mean.gt(V::splat(-SHARE));
    let stays = upper.le(V::gather(&sites.stay, list)) & sound;
    let changes = lower.gt(V::gather(&sites.change, list)) & sound & below.gt(V::splat(-SHARE));
    [stays, changes]
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
        let work = &columns[c];
        let w = work.component(job.dictionary, tile * LANES + lane, gathered);
        let h = sites.signed_h[c].0[lane];
        let (gain, least) = gain_of::<V>(work.x(job.counts), &work.inverse, w, h);
        let error = work.log_errors[usize::from(h < 0.0)] * gain.abs();
        let stay = sites.stay[c].0[lane];
        let sound = least.gt(V::splat(-SHARE)) == u16::MAX;
        let stays = (gain + error <= stay) & sound;
        let changes = (gain - error > sites.change[c].0[lane]) & sound;
        sites.decided[LOGARITHMS][c] |= u16::from(stays | changes) << lane;
        sites.changes[c] |= u16::from(changes) << lane;
    }
}

/// sum x log(1 + part) of parts w h / rate, and the least part of every lane.
#[inline(always)]
fn gain_of<V: Lanes>(x: &[Tile], inverse: &[Tile], w: &[Tile], h: f32) -> (f32, V) {
    let mut out = (V::splat(0.0), V::splat(0.0));
    let tiles = x.len();
    let mut at = 0;
    while at < tiles {
        at += match tiles - at {
            1 => add_gain::<V, 1>(x, inverse, w, h, at, &mut out),
            2 => add_gain::<V, 2>(x, inverse, w, h, at, &mut out),
            3 => add_gain::<V, 3>(x, inverse, w, h, at, &mut out),
            5 => add_gain::<V, 5>(x, inverse, w, h, at, &mut out),
            _ => add_gain::<V, 4>(x, inverse, w, h, at, &mut out),
        };
    }
    (out.0.sum(), out.1)
}

/// Adds `N` tiles from tile `at` on to the sum, and to the least.
#[inline(always)]
fn add_gain<V: Lanes, const N: usize>(
    x: &[Tile],
    inverse: &[Tile],
    w: &[Tile],
    h: f32,
    at: usize,
    out: &mut (V, V),
) -> usize {
    let (x, inverse, w) = (&x[at..][..N], &inverse[at..][..N], &w[at..][..N]);
    let parts: [V; N] = each!(V, N, n => V::load(&w[n].0).mul(V::splat(h)).mul(V::load(&inverse[n].0)));
    let logs = V::ln_1p(parts);
    for n in 0..N {
        out.0 = V::load(&x[n].0).mul_add(logs[n], out.0);
        out.1 = out.1.min(parts[n]);
    }
    N
}

#[cfg(test)]
#[path = "single_tests.rs"]
mod tests;
