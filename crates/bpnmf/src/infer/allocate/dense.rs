//! Columns of which all features are looked at, many columns at a time: a few features of W, in double precision, serve
//! them all from the first cache.

use super::doubled::{CHUNK, width};
use super::{Allocated, Allocation, Task};
use crate::counts::{Column, Counts};
use crate::kernel::doubles::{Doubles, EIGHT, Eight, Line, sum_of};
use crate::kernel::exact::single_of;
use crate::kernel::{LANES, Lanes, dispatch, prefetch};

#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    /// Component and activation of every site that is on, a column after the other.
    sites: Vec<(usize, f64)>,
    /// Partial sums of the shares, a line for every site, and of x log(rate), one for every column.
    shares: Vec<Line>,
    logs: Vec<Line>,
}

impl Scratch {
    fn start(&mut self, columns: &[Allocated]) {
        self.sites.clear();
        for column in columns {
            self.sites.extend(column.parts.iter().map(|&(k, h)| (k, f64::from(h))));
        }
        for (lines, number) in [(&mut self.shares, self.sites.len()), (&mut self.logs, columns.len())] {
            lines.clear();
            lines.resize(number, Line::ZERO);
        }
    }
}

dispatch! {
    pub(super) fn share [] (
        task: Task<'_>, first: usize, out: &mut [Allocated], shares: &mut [f64], scratch: &mut Scratch,
    ) = share_columns
}

#[inline(always)]
fn share_columns<V: Doubles>(
    task: Task<'_>,
    first: usize,
    out: &mut [Allocated],
    shares: &mut [f64],
    scratch: &mut Scratch,
) {
    let dictionary = task.dictionary;
    let components = dictionary.components();
    scratch.start(out);
    let tiles = task.counts.features().div_ceil(LANES);
    let mut at = 0;
    while at < tiles {
        at += match width(tiles - at) {
            1 => chunk::<V, 1>(task, first, at, out, scratch),
            2 => chunk::<V, 2>(task, first, at, out, scratch),
            3 => chunk::<V, 3>(task, first, at, out, scratch),
            5 => chunk::<V, 5>(task, first, at, out, scratch),
            _ => chunk::<V, CHUNK>(task, first, at, out, scratch),
        };
    }
    let mut sites = scratch.sites.iter().zip(&scratch.shares);
    for (c, (column, shares)) in out.iter_mut().zip(shares.chunks_exact_mut(components)).enumerate() {
        let mut expected = 0.0;
        for (&(k, h), partial) in sites.by_ref().take(column.parts.len()) {
            expected += h * dictionary.sum(k);
            shares[k] = h * sum_of(partial);
        }
        column.log_likelihood = sum_of(&scratch.logs[c]) - expected;
    }
}

/// `N` tiles of features from tile `at` on, for all columns. Sums over features are taken [`CHUNK`] tiles at a time: another
/// number means another rounding.
#[inline(always)]
fn chunk<V: Doubles, const N: usize>(
    task: Task<'_>,
    first: usize,
    at: usize,
    out: &mut [Allocated],
    scratch: &mut Scratch,
) -> usize {
    let w = task.doubled.chunk::<N>(at);
    let Scratch { sites, shares, logs } = scratch;
    let columns = out.len();
    // Behind the last feature there are neither counts nor rates.
    let features = task.counts.features() - at * LANES;
    let last_lanes = u16::MAX >> (N * LANES).saturating_sub(features);
    let (zero, one) = (V::Eight::splat(0.0), V::splat(1.0));
    let mut from = 0;
    for (c, column) in out.iter_mut().enumerate() {
        let of_column = from..from + column.parts.len();
        let (sites, shares) = (&sites[of_column.clone()], &mut shares[of_column.clone()]);
        from = of_column.end;
        let rate = rates::<V, N>(w, sites);
        let mut padded = [[0.0; LANES]; N];
        let x = counts_of(task.counts, first + c, at, &column.x, &mut padded);
        fetch::<N>(task.counts, first + columns + c, at);
        let mut ratio = rate;
        let mut sums = [V::Eight::load(&logs[c].0), zero];
        let (mut least, mut most) = (one, one);
        // A tile after the other: all that is needed for one stays in registers.
        for i in 0..N {
            let x = eights::<V>(&x[i]);
            let single = single_of::<V>(rate[i]);
            if i == CHUNK {
                sums = [sums[0].add(sums[1]), zero];
            }
            let [log] = V::ln_exactly([single]);
            let log = V::widened(log);
            for j in 0..2 {
                sums[j] = x[j].mul_add(log[j], sums[j]);
            }
            ratio[i] = quotients::<V>(x, rate[i], single);
            let seen = if i + 1 == N { V::select(last_lanes, single, one) } else { single };
            (least, most) = (least.min(seen), most.max(seen));
        }
        sums[0].add(sums[1]).store(&mut logs[c].0);
        if task.allocation == Allocation::Sampled {
            continue;
        }
        if is_far(least, most) {
            far_quotients::<V, N>(w, sites, x, &mut ratio);
        }
        let kept = &mut column.ratio[2 * at..][..2 * N];
        for i in 0..N {
            for j in 0..2 {
                ratio[i][j].store(&mut kept[2 * i + j].0);
            }
        }
        for (&(k, _), sum) in sites.iter().zip(shares) {
            let w = &w[k];
            let mut sums = [V::Eight::load(&sum.0), zero];
            for i in 0..N {
                if i == CHUNK {
                    sums = [sums[0].add(sums[1]), zero];
                }
                for j in 0..2 {
                    sums[j] = ratio[i][j].mul_add(V::Eight::load(&w[i][j].0), sums[j]);
                }
            }
            sums[0].add(sums[1]).store(&mut sum.0);
        }
    }
    N
}

/// Xhat of a column, the components in their order.
#[inline(always)]
fn rates<V: Doubles, const N: usize>(w: &[[[Line; 2]; N]], sites: &[(usize, f64)]) -> [[V::Eight; 2]; N] {
    let mut rate = [[V::Eight::splat(0.0); 2]; N];
    for &(k, h) in sites {
        let (w, h) = (&w[k], V::Eight::splat(h));
        for i in 0..N {
            for j in 0..2 {
                rate[i][j] = V::Eight::load(&w[i][j].0).mul_add(h, rate[i][j]);
            }
        }
    }
    rate
}

/// `N` tiles of the counts of a column, which has been taken up: `taken` is [`Allocated::x`]. If they end before the last
/// tile does, they are copied to `padded`.
#[inline(always)]
fn counts_of<'a, const N: usize>(
    counts: &'a Counts,
    t: usize,
    at: usize,
    taken: &'a [f64],
    padded: &'a mut [[f64; LANES]; N],
) -> &'a [[f64; LANES]; N] {
    let x = match counts.column(t) {
        Column::Dense(values) => &values[at * LANES..],
        Column::Sparse(..) => &taken[at * LANES..],
    };
    if let Some(whole) = x.as_chunks::<LANES>().0.first_chunk() {
        return whole;
    }
    padded.as_flattened_mut()[..x.len()].copy_from_slice(x);
    padded
}

#[inline(always)]
fn eights<V: Doubles>(x: &[f64; LANES]) -> [V::Eight; 2] {
    let (halves, _) = x.as_chunks();
    [V::Eight::load(&halves[0]), V::Eight::load(&halves[1])]
}

/// Asks for counts that will be needed soon: the machine does not see so far ahead.
#[inline(always)]
fn fetch<const N: usize>(counts: &Counts, t: usize, at: usize) {
    if t < counts.observations()
        && let Column::Dense(values) = counts.column(t)
    {
        for line in 0..2 * N {
            prefetch(values, at * LANES + line * EIGHT);
        }
    }
}

/// x / rate, within 4e-16 of it if the rate is between [`NEAR`], where there are counts, else 0. `single` is
/// [`single_of`] the rate.
///
/// A division in double precision takes longer than one in single precision and a step of Newton's of the third order.
#[inline(always)]
fn quotients<V: Doubles>(x: [V::Eight; 2], rate: [V::Eight; 2], single: V) -> [V::Eight; 2] {
    // Where there are no counts there may be no rate, but its inverse is a number, and its product with 0 is 0.
    let inverse = V::widened(V::splat(1.0).div(single));
    let mut out = x;
    for j in 0..2 {
        let miss = rate[j].neg_mul_add(inverse[j], V::Eight::splat(1.0));
        let inverse = inverse[j].mul_add(miss.mul_add(miss, miss), inverse[j]);
        out[j] = x[j].mul(inverse);
    }
    out
}

/// Rates between these have an inverse in single precision.
const NEAR: [f32; 2] = [1e-30, 1e30];

/// Whether some lanes are not between [`NEAR`].
#[inline(always)]
fn is_far<V: Lanes>(least: V, most: V) -> bool {
    (V::splat(NEAR[0]).gt(least) | most.gt(V::splat(NEAR[1]))) != 0
}

/// The quotients whose rate is not between [`NEAR`].
#[cold]
#[inline(never)]
fn far_quotients<V: Doubles, const N: usize>(
    w: &[[[Line; 2]; N]],
    sites: &[(usize, f64)],
    x: &[[f64; LANES]; N],
    out: &mut [[V::Eight; 2]; N],
) {
    let rate = rates::<V, N>(w, sites);
    for i in 0..N {
        for j in 0..2 {
            let (mut rates, mut quotients) = (Line::ZERO, Line::ZERO);
            rate[i][j].store(&mut rates.0);
            out[i][j].store(&mut quotients.0);
            for l in 0..EIGHT {
                let (x, single) = (x[i][j * EIGHT + l], rates.0[l] as f32);
                if !(NEAR[0]..=NEAR[1]).contains(&single) {
                    quotients.0[l] = if x > 0.0 { x / rates.0[l] } else { 0.0 };
                }
            }
            out[i][j] = V::Eight::load(&quotients.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Simd;

    /// By way of a single component that is the rate.
    fn divide<V: Doubles>(x: &[f64; LANES], rate: &[f64; LANES], out: &mut [Line; 2]) {
        let rates = eights::<V>(rate);
        let single = single_of::<V>(rates);
        let mut quotient = [quotients::<V>(eights::<V>(x), rates, single)];
        let (low, high) = rate.split_at(EIGHT);
        let w = [[[Line(low.try_into().unwrap()), Line(high.try_into().unwrap())]]];
        if is_far(single, single) {
            far_quotients::<V, 1>(&w, &[(0, 1.0)], &[*x], &mut quotient);
        }
        for j in 0..2 {
            quotient[0][j].store(&mut out[j].0);
        }
    }

    dispatch! { fn divide_on [] (x: &[f64; LANES], rate: &[f64; LANES], out: &mut [Line; 2]) = divide }

    #[test]
    fn quotients_are_good_to_4e_16_for_any_rate_and_the_same_bits_on_every_machine() {
        for power in -75..36 {
            // Lanes near a power of ten, some of them beyond single precision where the others are not.
            let (mut x, mut rate) = ([0.0; LANES], [0.0; LANES]);
            for i in 0..LANES {
                x[i] = [0.0, 1.0, 3.7, 1e12][i % 4];
                rate[i] = 10f64.powf(f64::from(power) + 0.61803 * i as f64);
            }
            let mut plain = [Line::ZERO; 2];
            divide_on(Simd::Plain, &x, &rate, &mut plain);
            for simd in [Simd::Avx512, Simd::Avx2] {
                let mut out = [Line::ZERO; 2];
                divide_on(simd, &x, &rate, &mut out);
                assert_eq!(out, plain, "{simd:?}, 1e{power}");
            }
            for i in 0..LANES {
                let (ours, exact) = (plain[i / EIGHT].0[i % EIGHT], x[i] / rate[i]);
                assert!((ours - exact).abs() <= 4e-16 * exact, "{} / {} is {ours}", x[i], rate[i]);
            }
        }
    }
}
