//! Columns of which all features are looked at, many columns at a time: a few features of W, in double precision, serve
//! them all from the first cache.

use super::{Allocated, Allocation, Listed, Task};
use crate::counts::{Column, Counts};
use crate::infer::dictionary::Dictionary;
use crate::kernel::doubles::{Doubles, EIGHT, Eight, Line, sum_of};
use crate::kernel::exact::ln_of_rates;
use crate::kernel::{LANES, dispatch, prefetch};

/// Tiles of features that are handled at once. Sums over features are taken in chunks of so many: another number means
/// another rounding.
const CHUNK: usize = 4;

/// Lines of doubles in a chunk.
pub(super) const LINES: usize = CHUNK * LANES / EIGHT;

#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    /// W of the chunk at hand, [`LINES`] for every component.
    w: Vec<Line>,
    /// Components that are on in some column.
    used: Vec<usize>,
    is_used: Vec<bool>,
    /// Partial sums of the shares, a line for every site that is on, and of x log(rate), one for every column.
    shares: Vec<Line>,
    logs: Vec<Line>,
}

impl Scratch {
    fn start(&mut self, components: usize, columns: &[Allocated]) {
        self.is_used.clear();
        self.is_used.resize(components, false);
        self.used.clear();
        let mut sites = 0;
        for column in columns {
            sites += column.parts.len();
            for &(k, _) in &column.parts {
                if !core::mem::replace(&mut self.is_used[k], true) {
                    self.used.push(k);
                }
            }
        }
        self.w.resize(components * LINES, Line::ZERO);
        for (lines, number) in [(&mut self.shares, sites), (&mut self.logs, columns.len())] {
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
    scratch.start(components, out);
    let tiles = task.counts.features().div_ceil(LANES);
    for at in (0..tiles).step_by(CHUNK) {
        match tiles - at {
            1 => chunk::<V, 1>(task, first, at, out, scratch),
            2 => chunk::<V, 2>(task, first, at, out, scratch),
            3 => chunk::<V, 3>(task, first, at, out, scratch),
            _ => chunk::<V, CHUNK>(task, first, at, out, scratch),
        }
    }
    let mut partial = scratch.shares.iter();
    for (c, column) in out.iter_mut().enumerate() {
        let mut expected = 0.0;
        for (&(k, h), partial) in column.parts.iter().zip(partial.by_ref()) {
            let h = f64::from(h);
            expected += h * dictionary.sum(k);
            shares[c * components + k] = h * sum_of(partial);
        }
        column.log_likelihood = sum_of(&scratch.logs[c]) - expected;
    }
}

/// `N` tiles of features from tile `at` on, for all columns.
#[inline(always)]
fn chunk<V: Doubles, const N: usize>(
    task: Task<'_>,
    first: usize,
    at: usize,
    out: &mut [Allocated],
    scratch: &mut Scratch,
) {
    widen::<V, N>(task.dictionary, at, scratch);
    let Scratch { w, shares, logs, .. } = scratch;
    let columns = out.len();
    // Behind the last feature there are neither counts nor rates.
    let features = task.counts.features() - at * LANES;
    let last_lanes = u16::MAX >> (N * LANES).saturating_sub(features);
    let mut sites = shares.iter_mut();
    for (c, column) in out.iter_mut().enumerate() {
        let zero = V::Eight::splat(0.0);
        let mut rate = [[zero; 2]; N];
        for &(k, h) in &column.parts {
            let (w, h) = (lines::<N>(w, k), V::Eight::splat(f64::from(h)));
            for i in 0..N {
                for j in 0..2 {
                    rate[i][j] = V::Eight::load(&w[i][j].0).mul_add(h, rate[i][j]);
                }
            }
        }
        let x = counts_of::<V, N>(task.counts, first + c, at, column);
        fetch::<N>(task.counts, first + columns + c, at);
        let log = ln_of_rates::<V, N>(rate);
        let mut sums = [V::Eight::load(&logs[c].0), zero];
        for i in 0..N {
            let log = V::widened(log[i]);
            for j in 0..2 {
                sums[j] = x[i][j].mul_add(log[j], sums[j]);
            }
        }
        sums[0].add(sums[1]).store(&mut logs[c].0);
        if task.allocation == Allocation::Sampled {
            continue;
        }
        let ratio = quotients::<V, N>(x, rate, last_lanes);
        let kept = &mut column.ratio[2 * at..][..2 * N];
        for i in 0..N {
            for j in 0..2 {
                ratio[i][j].store(&mut kept[2 * i + j].0);
            }
        }
        for (&(k, _), sum) in column.parts.iter().zip(sites.by_ref()) {
            let w = lines::<N>(w, k);
            let mut sums = [V::Eight::load(&sum.0), zero];
            for i in 0..N {
                for j in 0..2 {
                    sums[j] = ratio[i][j].mul_add(V::Eight::load(&w[i][j].0), sums[j]);
                }
            }
            sums[0].add(sums[1]).store(&mut sum.0);
        }
    }
}

/// W of the components that are needed, in double precision.
#[inline(always)]
fn widen<V: Doubles, const N: usize>(dictionary: &Dictionary, at: usize, scratch: &mut Scratch) {
    for &k in &scratch.used {
        let w = &dictionary.row_tiles(k)[at..at + N];
        let out = &mut scratch.w[k * LINES..][..2 * N];
        for i in 0..N {
            let wide = V::widened(V::load(&w[i].0));
            for j in 0..2 {
                wide[j].store(&mut out[2 * i + j].0);
            }
        }
    }
}

/// The lines of component `k`.
#[inline(always)]
fn lines<const N: usize>(w: &[Line], k: usize) -> &[[Line; 2]; N] {
    let (pairs, _) = w[k * LINES..][..2 * N].as_chunks::<2>();
    pairs.first_chunk().expect("N pairs")
}

/// `N` tiles of the counts of a column, zeros behind the last feature.
#[inline(always)]
fn counts_of<V: Doubles, const N: usize>(
    counts: &Counts,
    t: usize,
    at: usize,
    column: &Allocated,
) -> [[V::Eight; 2]; N] {
    let x = match counts.column(t) {
        Column::Dense(values) => &values[at * LANES..],
        Column::Sparse(..) => &column.x[at * LANES..],
    };
    let (whole, _) = x.as_chunks::<LANES>();
    if let Some(whole) = whole.first_chunk() {
        return eights::<V, N>(whole);
    }
    let mut padded = [[0.0; LANES]; N];
    for (f, &x) in x.iter().enumerate() {
        padded[f / LANES][f % LANES] = x;
    }
    eights::<V, N>(&padded)
}

#[inline(always)]
fn eights<V: Doubles, const N: usize>(x: &[[f64; LANES]; N]) -> [[V::Eight; 2]; N] {
    let mut out = [[V::Eight::splat(0.0); 2]; N];
    for i in 0..N {
        let (halves, _) = x[i].as_chunks();
        out[i] = [V::Eight::load(&halves[0]), V::Eight::load(&halves[1])];
    }
    out
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

/// x / rate where there are counts, else 0; within 4e-16 of it.
///
/// A division in double precision takes longer than one in single precision and a step of Newton's of the third order.
#[inline(always)]
fn quotients<V: Doubles, const N: usize>(
    x: [[V::Eight; 2]; N],
    rate: [[V::Eight; 2]; N],
    last_lanes: u16,
) -> [[V::Eight; 2]; N] {
    let mut out = x;
    let mut far = 0;
    for i in 0..N {
        let single = V::narrowed(rate[i]);
        let lanes = if i + 1 == N { last_lanes } else { u16::MAX };
        far |= !(single.gt(V::splat(NEAR[0])) & V::splat(NEAR[1]).gt(single)) & lanes;
        let inverse = V::widened(V::splat(1.0).div(single));
        for j in 0..2 {
            let miss = rate[i][j].neg_mul_add(inverse[j], V::Eight::splat(1.0));
            let inverse = inverse[j].mul_add(miss.mul_add(miss, miss), inverse[j]);
            out[i][j] = x[i][j].mul(inverse);
        }
    }
    if far != 0 {
        far_quotients::<V, N>(x, rate, &mut out);
    }
    for i in 0..N {
        for j in 0..2 {
            out[i][j] = out[i][j].where_positive(x[i][j]);
        }
    }
    out
}

/// Rates between these have an inverse in single precision.
const NEAR: [f32; 2] = [1e-30, 1e30];

/// The quotients whose rate is not between [`NEAR`].
#[cold]
#[inline(never)]
fn far_quotients<V: Doubles, const N: usize>(
    x: [[V::Eight; 2]; N],
    rate: [[V::Eight; 2]; N],
    out: &mut [[V::Eight; 2]; N],
) {
    for i in 0..N {
        for j in 0..2 {
            let (mut xs, mut rates, mut quotients) = (Line::ZERO, Line::ZERO, Line::ZERO);
            x[i][j].store(&mut xs.0);
            rate[i][j].store(&mut rates.0);
            out[i][j].store(&mut quotients.0);
            for l in 0..EIGHT {
                let single = rates.0[l] as f32;
                if !(single > NEAR[0] && single < NEAR[1]) {
                    quotients.0[l] = xs.0[l] / rates.0[l];
                }
            }
            out[i][j] = V::Eight::load(&quotients.0);
        }
    }
}

/// sums[k][f] += ratio h of the columns that `on` lists for each component, in their order.
#[inline(always)]
pub(super) fn add_up<V: Doubles>(sums: &mut [f64], features: usize, on: &Listed, done: &[Allocated]) {
    let mut at = 0;
    // The ratios of a few features stay in the first cache while all components pass.
    while at < features {
        let lines = (features - at).div_ceil(EIGHT);
        let width = (features - at).min(LINES * EIGHT);
        for (lane, row) in sums.chunks_exact_mut(features).enumerate() {
            let (row, on) = (&mut row[at..at + width], on.columns(lane));
            match lines {
                1 => add_up_lines::<V, 1>(row, at / EIGHT, on, done),
                2 => add_up_lines::<V, 2>(row, at / EIGHT, on, done),
                3..=4 => add_up_lines::<V, 4>(row, at / EIGHT, on, done),
                _ => add_up_lines::<V, LINES>(row, at / EIGHT, on, done),
            }
        }
        at += width;
    }
}

/// `N` lines of the sums of a component; `sums` may end before the last one does.
#[inline(always)]
fn add_up_lines<V: Doubles, const N: usize>(
    sums: &mut [f64],
    line: usize,
    on: &[(u32, f32)],
    done: &[Allocated],
) {
    let (whole, rest) = sums.as_chunks_mut::<EIGHT>();
    let mut last = [0.0; EIGHT];
    for (last, rest) in last.iter_mut().zip(&*rest) {
        *last = *rest;
    }
    let mut totals = [V::Eight::splat(0.0); N];
    for i in 0..N {
        totals[i] = V::Eight::load(whole.get(i).unwrap_or(&last));
    }
    for &(c, h) in on {
        let ratio = &done[c as usize].ratio[line..];
        let h = V::Eight::splat(f64::from(h));
        let ratio: &[Line; N] = ratio.first_chunk().expect("padded to whole chunks");
        for i in 0..N {
            totals[i] = V::Eight::load(&ratio[i].0).mul_add(h, totals[i]);
        }
    }
    for i in (0..N).rev() {
        // The rest, if there is one, is in the line behind the whole ones; nobody reads those behind it.
        totals[i].store(if i < whole.len() { &mut whole[i] } else { &mut last });
    }
    for (rest, last) in rest.iter_mut().zip(last) {
        *rest = last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Simd;

    fn divide<V: Doubles>(x: &[f64; LANES], rate: &[f64; LANES], out: &mut [Line; 2]) {
        let quotient = quotients::<V, 1>(eights::<V, 1>(&[*x]), eights::<V, 1>(&[*rate]), u16::MAX);
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
