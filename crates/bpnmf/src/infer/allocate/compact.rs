//! Columns of which only the positive entries are held, one at a time.

use super::sums::Listed;
use super::{Allocated, Allocation, Task};
use crate::infer::dictionary::Dictionary;
use crate::kernel::dispatch;
use crate::kernel::doubles::{Doubles, flat_lines, flat_lines_mut};
use crate::kernel::exact::{add_scaled, dot, sum_x_ln};

/// Features whose sums are taken at once.
const WIDTH: usize = 32;

#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    /// W at the entries of a column, a component that is on after the other.
    gathered: Vec<f32>,
    /// Xhat at the entries.
    rates: Vec<f64>,
}

dispatch! {
    pub(super) fn share [] (
        task: Task<'_>, out: &mut [Allocated], shares: &mut [f64], scratch: &mut Scratch,
    ) = share_columns
}

#[inline(always)]
fn share_columns<V: Doubles>(
    task: Task<'_>,
    out: &mut [Allocated],
    shares: &mut [f64],
    scratch: &mut Scratch,
) {
    let components = task.dictionary.components();
    for (column, shares) in out.iter_mut().zip(shares.chunks_exact_mut(components)) {
        share_column::<V>(task, column, shares, scratch);
    }
}

#[inline(always)]
fn gather(dictionary: &Dictionary, column: &Allocated, gathered: &mut Vec<f32>) {
    let entries = column.x.len();
    gathered.resize(column.parts.len() * entries, 0.0);
    for (&(k, _), into) in column.parts.iter().zip(gathered.chunks_exact_mut(entries.max(1))) {
        let row = dictionary.row(k);
        for (into, &f) in into.iter_mut().zip(&column.rows) {
            *into = row[f as usize];
        }
    }
}

#[inline(always)]
fn share_column<V: Doubles>(task: Task<'_>, out: &mut Allocated, shares: &mut [f64], scratch: &mut Scratch) {
    let Scratch { gathered, rates } = scratch;
    let mut expected = 0.0;
    for &(k, h) in &out.parts {
        expected += f64::from(h) * task.dictionary.sum(k);
    }
    gather(task.dictionary, out, gathered);
    let entries = out.x.len();
    rates.resize(entries, 0.0);
    for (chunk, rate) in rates.chunks_mut(WIDTH).enumerate() {
        let at = chunk * WIDTH;
        let width = rate.len();
        // A few entries of all components at a time, so that their sums stay in registers.
        let mut sums = [0.0; WIDTH];
        for (i, &(_, h)) in out.parts.iter().enumerate() {
            let w = &gathered[i * entries + at..][..width];
            if width == WIDTH {
                add_scaled::<V>(&mut sums, w, h);
            } else {
                add_scaled::<V>(&mut sums[..width], w, h);
            }
        }
        rate.copy_from_slice(&sums[..width]);
    }
    out.log_likelihood = sum_x_ln::<V>(&out.x, rates) - expected;
    if task.allocation == Allocation::Sampled {
        return;
    }
    let ratios = &mut flat_lines_mut(&mut out.ratio)[..entries];
    for ((ratio, &x), &rate) in ratios.iter_mut().zip(&out.x).zip(&*rates) {
        let quotient = x / rate;
        *ratio = if x > 0.0 { quotient } else { 0.0 };
    }
    for (i, &(k, h)) in out.parts.iter().enumerate() {
        shares[k] = f64::from(h) * dot::<V>(ratios, &gathered[i * entries..][..entries]);
    }
}

/// sums[k][f] += ratio h of the columns that `on` lists for each component, in their order.
#[inline(always)]
pub(super) fn add_up(sums: &mut [f64], features: usize, on: &Listed, done: &[Allocated]) {
    for (sums, on) in sums.chunks_exact_mut(features).zip(on.components()) {
        for &(c, h) in on {
            let column = &done[c];
            for (&f, &ratio) in column.rows.iter().zip(flat_lines(&column.ratio)) {
                sums[f as usize] += ratio * h;
            }
        }
    }
}
