//! Columns of which all features are looked at, many columns at a time: a few features of W, in double precision, serve
//! them all from the first cache.

use super::{Allocated, Allocation, Listed, Task};
use crate::counts::{Column, Counts};
use crate::infer::dictionary::Dictionary;
use crate::kernel::doubles::{Doubles, EIGHT, Eight, Line, flat_lines, flat_lines_mut, sum_of};
use crate::kernel::exact::ln_of_rates;
use crate::kernel::{LANES, dispatch};

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
    let mut sites = shares.iter_mut();
    for (c, column) in out.iter_mut().enumerate() {
        let zero = V::Eight::splat(0.0);
        let mut rate = [[zero; 2]; N];
        for &(k, h) in &column.parts {
            let (w, h) = (lines::<N>(w, k), V::Eight::splat(f64::from(h)));
            for i in 0..N {
                for j in 0..2 {
                    rate[i][j] = V::Eight::load(&w[i][j].0).add_exact_product(h, rate[i][j]);
                }
            }
        }
        let x = counts_of::<V, N>(task.counts, first + c, at, column);
        let ratio = quotients::<V, N>(x, rate);
        let kept = &mut column.ratio[2 * at..][..2 * N];
        for i in 0..N {
            for j in 0..2 {
                ratio[i][j].store(&mut kept[2 * i + j].0);
            }
        }
        let log = ln_of_rates::<V, N>(rate);
        let mut terms = [[zero; 2]; N];
        for i in 0..N {
            let log = V::widened(log[i]);
            for j in 0..2 {
                terms[i][j] = x[i][j].mul(log[j]);
            }
        }
        add_to::<V, N>(terms, &mut logs[c]);
        if task.allocation == Allocation::Sampled {
            for i in 0..N {
                for j in 0..2 {
                    rate[i][j].store(&mut column.rate[2 * (at + i) + j].0);
                }
            }
            continue;
        }
        for (&(k, _), sum) in column.parts.iter().zip(sites.by_ref()) {
            let w = lines::<N>(w, k);
            let mut terms = [[zero; 2]; N];
            for i in 0..N {
                for j in 0..2 {
                    terms[i][j] = ratio[i][j].mul(V::Eight::load(&w[i][j].0));
                }
            }
            add_to::<V, N>(terms, sum);
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
    let mut out = [[V::Eight::splat(0.0); 2]; N];
    let x = match counts.column(t) {
        Column::Dense(values) => &values[at * LANES..],
        Column::Sparse(..) => &column.x[at * LANES..],
    };
    let (whole, rest) = x.as_chunks::<EIGHT>();
    let mut last = [0.0; EIGHT];
    if whole.len() < 2 * N {
        last[..rest.len()].copy_from_slice(rest);
    }
    for i in 0..N {
        for j in 0..2 {
            let n = 2 * i + j;
            if n < whole.len() {
                out[i][j] = V::Eight::load(&whole[n]);
            } else if n == whole.len() {
                out[i][j] = V::Eight::load(&last);
            }
        }
    }
    out
}

/// x / rate where there are counts, else 0; within 4e-16 of it.
///
/// A division in double precision takes twice as long as all the rest of it here: so one in single precision, and a
/// step of Newton's of the third order, in which nothing is fused.
#[inline(always)]
fn quotients<V: Doubles, const N: usize>(
    x: [[V::Eight; 2]; N],
    rate: [[V::Eight; 2]; N],
) -> [[V::Eight; 2]; N] {
    let mut out = x;
    let mut far = 0;
    for i in 0..N {
        let single = V::narrowed(rate[i]);
        far |= !(single.gt(V::splat(NEAR[0])) & V::splat(NEAR[1]).gt(single));
        let inverse = V::widened(V::splat(1.0).div(single));
        for j in 0..2 {
            let miss = V::Eight::splat(1.0).sub(rate[i][j].mul(inverse[j]));
            let inverse = inverse[j].add(inverse[j].mul(miss.add(miss.mul(miss))));
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

/// Adds a chunk's terms to a partial sum, in a fixed tree.
#[inline(always)]
fn add_to<V: Doubles, const N: usize>(terms: [[V::Eight; 2]; N], sum: &mut Line) {
    let mut pairs = [V::Eight::splat(0.0); CHUNK];
    for i in 0..N {
        pairs[i] = terms[i][0].add(terms[i][1]);
    }
    let first = if N > 1 { pairs[0].add(pairs[1]) } else { pairs[0] };
    let second = if N > 3 { pairs[2].add(pairs[3]) } else { pairs[2] };
    let chunk = if N > 2 { first.add(second) } else { first };
    V::Eight::load(&sum.0).add(chunk).store(&mut sum.0);
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
    let mut lines = [Line::ZERO; N];
    flat_lines_mut(&mut lines)[..sums.len()].copy_from_slice(sums);
    let mut totals = [V::Eight::splat(0.0); N];
    for i in 0..N {
        totals[i] = V::Eight::load(&lines[i].0);
    }
    for &(c, h) in on {
        let ratio = &done[c as usize].ratio[line..];
        let h = V::Eight::splat(f64::from(h));
        let ratio: &[Line; N] = ratio.first_chunk().expect("padded to whole chunks");
        for i in 0..N {
            totals[i] = totals[i].add(V::Eight::load(&ratio[i].0).mul(h));
        }
    }
    for i in 0..N {
        totals[i].store(&mut lines[i].0);
    }
    sums.copy_from_slice(&flat_lines(&lines)[..sums.len()]);
}
