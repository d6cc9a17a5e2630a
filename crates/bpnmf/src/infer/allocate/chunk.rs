//! A few tiles of entries of one column, in single precision: their rates, their logarithms, x / rate, and what every
//! component is given of them.
//!
//! W and H are kept in single precision, so more digits than it takes to add up are of no use. Every step is rounded the
//! same way on every machine.

use super::sums::run;
use super::{Allocated, Allocation, Task};
use crate::infer::chunks::{chunk, for_each_chunk};
use crate::infer::dictionary::Dictionary;
use crate::kernel::doubles::Doubles;
use crate::kernel::{LANES, Tile};
use crate::special::ln;

/// An entry whose rate is too large or too small for single precision: x / rate, and x log(rate). It is left out of all
/// that is done in single precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Far {
    pub(super) f: usize,
    pub(super) ratio: f64,
    pub(super) ln: f64,
}

/// A column, W at its entries, and where its results go.
struct Entries<'a, W> {
    /// Component and activation of every site that is on.
    parts: &'a [(usize, f32)],
    /// `w(i, k)` is W of the i-th part, which is component k, padded to tiles.
    w: W,
    /// The counts, and their sum; the counts in single precision, padded to tiles.
    x: &'a [f64],
    total: f64,
    single: &'a [Tile],
    /// The features of the entries, or none if they are all features in their order.
    rows: &'a [u32],
    /// X / Xhat, padded to whole tiles, and the entries that are not in there.
    ratio: &'a mut [Tile],
    far: &'a mut Vec<Far>,
    /// Partial sums of what every part is given, over its activation.
    sums: &'a mut [Tile],
    /// Partial sums of x log(rate).
    logs: &'a mut Tile,
}

/// Rates between these have an inverse in single precision, and no term that matters was lost.
const NEAR: [f32; 2] = [1e-30, 1e30];

/// x / rate is at most this in single precision: so are W and H, and no sum of products over a chunk or over some
/// columns leaves the range.
const LARGEST_RATIO: f64 = 1e18;

/// The least rate for which x / rate is surely not above [`LARGEST_RATIO`].
#[inline(always)]
fn least_near(total: f64) -> f32 {
    NEAR[0].max((total / LARGEST_RATIO) as f32)
}

/// The largest inverse of a rate for which all is in the range of single precision, given the sum of the counts.
#[inline(always)]
pub(super) fn largest_inverse(total: f64) -> f32 {
    1.0 / least_near(total)
}

/// All of column `t`: `x` are its counts, `single` the same in single precision, padded to tiles, and `w` is as in
/// [`Entries`]. `sums` is scratch.
#[inline(always)]
pub(super) fn share_chunks<'w, V: Doubles>(
    task: Task<'_>,
    t: usize,
    x: &[f64],
    single: &[Tile],
    w: impl Fn(usize, usize) -> &'w [Tile] + Copy,
    column: &mut Allocated,
    shares: &mut [f64],
    sums: &mut Vec<Tile>,
) {
    let mut logs = Tile::ZERO;
    sums.clear();
    sums.resize(column.parts.len(), Tile::ZERO);
    let (tiles, total) = (single.len(), task.counts.column_totals()[t]);
    let expected = task.allocation == Allocation::Expected;
    let mut from = 0;
    while from < tiles {
        let run = run(from, tiles);
        let Allocated { parts, rows, ratio, far, .. } = &mut *column;
        let mut entries = Entries { parts, w, x, total, single, rows, ratio, far, sums, logs: &mut logs };
        for_each_chunk!(run.len(), at, N => {
            share_chunk::<V, N>(task.dictionary, &mut entries, from + at, expected);
        });
        column.merge::<V>(sums, &mut logs, shares);
        from = run.end;
    }
}

/// `N` tiles of entries from tile `at` on. Unless counts are `expected` only logarithms are taken.
#[inline(always)]
fn share_chunk<'w, V: Doubles, const N: usize>(
    dictionary: &Dictionary,
    column: &mut Entries<'_, impl Fn(usize, usize) -> &'w [Tile]>,
    at: usize,
    expected: bool,
) {
    let rate = rates_of::<V, N>(column, at);
    let x = chunk::<N>(column.single, at);
    let (mut ratio, mut logs) = (rate, V::load(&column.logs.0));
    let (mut most, mut most_inverse) = (V::splat(0.0), V::splat(0.0));
    for n in 0..N {
        let (x, rate_there) = (V::load(&x[n].0), clamped(rate[n]));
        let inverse = V::splat(1.0).div(rate_there);
        most = most.max(rate[n]);
        most_inverse = most_inverse.max(inverse.where_positive(x));
        logs = x.fused(rate_there.ln_exactly(), logs);
        ratio[n] = x.mul(inverse);
    }
    if (most.gt(V::splat(NEAR[1])) | most_inverse.gt(V::splat(largest_inverse(column.total)))) != 0 {
        (ratio, logs) = without_far::<V, N>(dictionary, column, at, rate);
    }
    logs.store(&mut column.logs.0);
    if !expected {
        return;
    }
    let ratios = &mut column.ratio[at..at + N];
    for n in 0..N {
        ratio[n].store(&mut ratios[n].0);
    }
    for (i, (sums, &(k, _))) in column.sums.iter_mut().zip(column.parts).enumerate() {
        let w = chunk::<N>((column.w)(i, k), at);
        let mut sum = V::load(&sums.0);
        for n in 0..N {
            sum = ratio[n].fused(V::load(&w[n].0), sum);
        }
        sum.store(&mut sums.0);
    }
}

/// `N` tiles of the rate from tile `at` on.
#[inline(always)]
fn rates_of<'w, V: Doubles, const N: usize>(
    column: &Entries<'_, impl Fn(usize, usize) -> &'w [Tile]>,
    at: usize,
) -> [V; N] {
    let mut rate = [V::splat(0.0); N];
    for (i, &(k, h)) in column.parts.iter().enumerate() {
        let (w, h) = (chunk::<N>((column.w)(i, k), at), V::splat(h));
        for n in 0..N {
            rate[n] = V::load(&w[n].0).fused(h, rate[n]);
        }
    }
    rate
}

/// The rate, or where nothing is on and it is 0, as is the count, any number whose logarithm and inverse are finite.
#[inline(always)]
fn clamped<V: Doubles>(rate: V) -> V {
    rate.max(V::splat(f32::MIN_POSITIVE)).min(V::splat(1e38))
}

/// x / rate and the sum of x log(rate) for `N` tiles without the entries whose rate is too large or too small for single
/// precision: these are listed.
#[cold]
#[inline(never)]
fn without_far<V: Doubles, const N: usize>(
    dictionary: &Dictionary,
    column: &mut Entries<'_, impl Sized>,
    at: usize,
    rate: [V; N],
) -> ([V; N], V) {
    let least = f64::from(least_near(column.total));
    let (mut ratio, mut logs) = (rate, V::load(&column.logs.0));
    for n in 0..N {
        let mut left = column.single[at + n];
        for (lane, left) in left.0.iter_mut().enumerate().filter(|(_, x)| **x > 0.0) {
            let entry = (at + n) * LANES + lane;
            let f = column.rows.get(entry).map_or(entry, |&f| f as usize);
            let part = |&(k, h): &(usize, f32)| f64::from(dictionary.row(k)[f]) * f64::from(h);
            let rate: f64 = column.parts.iter().map(part).sum();
            if !(least..=f64::from(NEAR[1])).contains(&rate) {
                *left = 0.0;
                let x = column.x[entry];
                column.far.push(Far { f, ratio: x / rate, ln: x * ln(rate) });
            }
        }
        let (x, rate) = (V::load(&left.0), clamped(rate[n]));
        logs = x.fused(rate.ln_exactly(), logs);
        ratio[n] = x.mul(V::splat(1.0).div(rate));
    }
    (ratio, logs)
}
