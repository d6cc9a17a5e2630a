//! A few tiles of entries of one column, in single precision: their rates, their logarithms, x / rate, and what every
//! component is given of them.
//!
//! W and H are kept in single precision, so more digits than it takes to add up are of no use. Every step is rounded the
//! same way on every machine.

use super::sums::TOGETHER;
use crate::infer::dictionary::Dictionary;
use crate::kernel::doubles::Doubles;
use crate::kernel::{LANES, Lanes, Tile};
use crate::special::ln;

/// Tiles of entries that are handled next when so many are left: as many sums as it takes to hide the latency of one. Their
/// W, for all components, should fit into the first cache. A single tile that comes last costs nearly as much as a chunk.
#[inline(always)]
pub(super) fn width<V: Lanes>(left: usize) -> usize {
    const { assert!(TOGETHER.is_multiple_of(V::CHUNK)) };
    if left <= V::CHUNK + 1 { left } else { V::CHUNK }
}

/// Whether sums over entries in single precision are merged after tile `end` of `tiles`, before which comes a chunk from
/// tile `at` on.
#[inline(always)]
pub(super) fn is_full(at: usize, end: usize, tiles: usize) -> bool {
    end == tiles || at / TOGETHER != end / TOGETHER
}

/// Runs `$run` for every chunk of `$tiles` tiles of lanes `V`; `$width` is how many it has, a constant, `$at` is the first
/// of them.
macro_rules! for_each_chunk {
    ($tiles:expr, $at:ident, $width:ident => $run:expr) => {{
        let mut $at = 0;
        while $at < $tiles {
            let width = $crate::infer::allocate::chunk::width::<V>($tiles - $at);
            $crate::infer::allocate::chunk::for_each_chunk!(@ width, $width, $run, 1 2 3 4 5 6 7 8 9);
            $at += width;
        }
    }};
    (@ $of:ident, $width:ident, $run:expr, $($number:literal)*) => {
        match $of {
            $($number => {
                const $width: usize = $number;
                $run
            })*
            _ => unreachable!("no chunk is wider"),
        }
    };
}
pub(super) use for_each_chunk;

/// An entry whose rate is too large or too small for single precision: x / rate, and x log(rate). It is left out of all
/// that is done in single precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Far {
    pub(super) f: usize,
    pub(super) ratio: f64,
    pub(super) ln: f64,
}

/// A column, W at its entries, and where its results go.
pub(super) struct Entries<'a, W> {
    /// Component and activation of every site that is on.
    pub(super) parts: &'a [(usize, f32)],
    /// `w(i, k)` is W of the i-th part, which is component k, padded to tiles.
    pub(super) w: W,
    /// The counts, and their sum; the counts in single precision, padded to tiles.
    pub(super) x: &'a [f64],
    pub(super) total: f64,
    pub(super) single: &'a [Tile],
    /// The rate, if it is known.
    pub(super) rate: Option<&'a [Tile]>,
    /// The features of the entries, or none if they are all features in their order.
    pub(super) rows: &'a [u32],
    /// X / Xhat, padded to whole tiles, and the entries that are not in there.
    pub(super) ratio: &'a mut [Tile],
    pub(super) far: &'a mut Vec<Far>,
    /// Partial sums of what every part is given, over its activation.
    pub(super) sums: &'a mut [Tile],
    /// Partial sums of x log(rate).
    pub(super) logs: &'a mut Tile,
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

/// `N` tiles of entries from tile `at` on. Unless counts are `expected` only logarithms are taken.
#[inline(always)]
pub(super) fn share_chunk<'w, V: Doubles, const N: usize>(
    dictionary: &Dictionary,
    column: &mut Entries<'_, impl Fn(usize, usize) -> &'w [Tile]>,
    at: usize,
    expected: bool,
) {
    let rate = rates_of::<V, N>(column, at);
    let x = tiles_of::<N>(column.single, at);
    let (mut ratio, mut logs) = (rate, V::load(&column.logs.0));
    let (mut most, mut most_inverse) = (V::splat(0.0), V::splat(0.0));
    for n in 0..N {
        let (x, (log, inverse)) = (V::load(&x[n].0), ln_and_inverse(rate[n]));
        most = most.max(rate[n]);
        most_inverse = most_inverse.max(inverse.where_positive(x));
        logs = x.fused(log, logs);
        ratio[n] = x.mul(inverse);
    }
    let least = least_near(column.total);
    if (most.gt(V::splat(NEAR[1])) | most_inverse.gt(V::splat(1.0 / least))) != 0 {
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
        let w = tiles_of::<N>((column.w)(i, k), at);
        let mut sum = V::load(&sums.0);
        for n in 0..N {
            sum = ratio[n].fused(V::load(&w[n].0), sum);
        }
        sum.store(&mut sums.0);
    }
}

#[inline(always)]
fn tiles_of<const N: usize>(tiles: &[Tile], at: usize) -> &[Tile; N] {
    tiles[at..].first_chunk().expect("padded to tiles")
}

/// `N` tiles of the rate from tile `at` on.
#[inline(always)]
fn rates_of<'w, V: Doubles, const N: usize>(
    column: &Entries<'_, impl Fn(usize, usize) -> &'w [Tile]>,
    at: usize,
) -> [V; N] {
    let mut rate = [V::splat(0.0); N];
    if let Some(known) = column.rate {
        let known = tiles_of::<N>(known, at);
        for n in 0..N {
            rate[n] = V::load(&known[n].0);
        }
        return rate;
    }
    for (i, &(k, h)) in column.parts.iter().enumerate() {
        let (w, h) = (tiles_of::<N>((column.w)(i, k), at), V::splat(h));
        for n in 0..N {
            rate[n] = V::load(&w[n].0).fused(h, rate[n]);
        }
    }
    rate
}

/// Where nothing is on the rate is 0 and so is the count: any number will do whose logarithm and inverse are finite.
#[inline(always)]
fn ln_and_inverse<V: Doubles>(rate: V) -> (V, V) {
    rate.max(V::splat(f32::MIN_POSITIVE)).min(V::splat(1e38)).ln_and_inverse()
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
        let (x, (log, inverse)) = (V::load(&left.0), ln_and_inverse(rate[n]));
        logs = x.fused(log, logs);
        ratio[n] = x.mul(inverse);
    }
    (ratio, logs)
}
