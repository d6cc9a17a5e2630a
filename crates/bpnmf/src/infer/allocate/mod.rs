//! Gives the counts of a column to the components that are on. It knows nothing of how the mask came about.
//!
//! Expected counts are computed in single precision, in which W and H are kept, and added up in double precision; all of it
//! in an order that depends on nothing but the column, every step rounded the same way. What is drawn is drawn from
//! shares in double precision.

mod chunk;
mod compact;
mod dense;
mod sampled;
mod sums;

use super::dictionary::Dictionary;
use super::mask::{Tiers, compact};
use super::work::Work;
use crate::counts::{Column, Counts};
use crate::kernel::doubles::{Doubles, total_of};
use crate::kernel::{LANES, Simd, Tile};
use crate::random::Key;
use crate::special::ln;
use chunk::Far;
use sampled::Many;
pub(crate) use sampled::add_up_drawn;
pub(crate) use sums::{TOGETHER, add_up};

/// How the counts of an entry are shared among the components that are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allocation {
    /// By their expectation X phi.
    Expected,
    /// By a multinomial draw.
    Sampled,
}

/// What a column leaves behind for the sums over columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allocated {
    /// Features of the entries if only the positive ones are held, else empty.
    rows: Vec<u32>,
    /// The counts of the entries, unless they are held that way anyway: see [`entries`].
    x: Vec<f64>,
    /// X / Xhat at the entries, padded to whole tiles; not if counts are drawn. Those that are out of range come after.
    ratio: Vec<Tile>,
    far: Vec<Far>,
    pub(crate) parts: Vec<(usize, f32)>,
    /// Counts that were drawn, a part after the other, and in addition to them those in `many`.
    units: Vec<u8>,
    many: Vec<Many>,
    pub(crate) log_likelihood: f64,
    pub(crate) ln_activation: f64,
    pub(crate) tiers: Tiers,
}

/// Memory a thread needs for allocating, allocated once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scratch {
    /// W at the entries of a compact column.
    gathered: Vec<Tile>,
    /// Partial sums of what every component is given.
    sums: Vec<Tile>,
    sampled: sampled::Scratch,
    on: sums::Listed,
}

/// What an allocation reads.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) counts: &'a Counts,
    pub(crate) dictionary: &'a Dictionary,
    pub(crate) allocation: Allocation,
    pub(crate) key: Key,
    pub(crate) iteration: u32,
}

/// The columns from `first` on: their log-likelihoods, and the counts of every component that is on,
/// expected or drawn, to `shares`, K a column. `works` has been left by a sweep over these columns, and is spoilt.
pub(crate) fn share(
    simd: Simd,
    task: Task<'_>,
    first: usize,
    works: &mut [Work],
    on: &[u16],
    values: &[Tile],
    out: &mut [Allocated],
    shares: &mut [f64],
    scratch: &mut Scratch,
) {
    for (c, column) in out.iter_mut().enumerate() {
        column.load(task.counts, first + c);
    }
    let Scratch { gathered, sums, .. } = scratch;
    if compact(task.counts) {
        compact::share(simd, task, first, works, on, values, out, shares, gathered, sums);
    } else {
        dense::share(simd, task, first, works, on, values, out, shares, sums);
    }
    for (c, column) in out.iter_mut().enumerate() {
        column.ln_activation = ln_activation(&column.parts);
        // What is expected beyond the exposure of an entry says nothing.
        let unexposed = task.counts.unexposed(first + c);
        if !unexposed.is_empty() {
            let unseen = |&(k, h): &(usize, f32)| f64::from(h) * task.dictionary.lost_sum(k, unexposed);
            column.log_likelihood += column.parts.iter().map(unseen).sum::<f64>();
        }
    }
    if task.allocation == Allocation::Sampled {
        sampled::sample(simd, task, first, out, shares, &mut scratch.sampled);
    }
}

impl Allocated {
    /// Takes up the entries of column `t`.
    #[inline(always)]
    fn load(&mut self, counts: &Counts, t: usize) {
        self.rows.clear();
        self.x.clear();
        match counts.column(t) {
            Column::Dense(_) if !compact(counts) => {}
            Column::Sparse(rows, values) if compact(counts) => {
                self.rows.extend_from_slice(rows);
                self.x.extend_from_slice(values);
            }
            column if compact(counts) => {
                for (f, value) in column.positive() {
                    self.rows.push(f as u32);
                    self.x.push(value);
                }
            }
            column => {
                self.x.resize(counts.features(), 0.0);
                for (f, value) in column.positive() {
                    self.x[f] = value;
                }
            }
        }
        let entries = if compact(counts) { self.x.len() } else { counts.features() };
        self.ratio.resize(entries.div_ceil(LANES), Tile::ZERO);
    }

    /// Before the first chunk of entries.
    #[inline(always)]
    fn start(&mut self, shares: &mut [f64]) {
        self.log_likelihood = 0.0;
        self.far.clear();
        self.parts.iter().for_each(|&(k, _)| shares[k] = 0.0);
    }

    /// Adds partial sums in single precision to the shares and to the log-likelihood.
    #[inline(always)]
    fn merge<V: Doubles>(&mut self, sums: &mut [Tile], logs: &mut Tile, shares: &mut [f64]) {
        for (&(k, h), sum) in self.parts.iter().zip(sums) {
            shares[k] += f64::from(h) * total_of(V::load(&sum.0));
            *sum = Tile::ZERO;
        }
        self.log_likelihood += total_of(V::load(&logs.0));
        *logs = Tile::ZERO;
    }

    /// After the last chunk of entries.
    #[inline(always)]
    fn finish(&mut self, dictionary: &Dictionary, shares: &mut [f64]) {
        let mut expected = 0.0;
        for &(k, h) in &self.parts {
            expected += f64::from(h) * dictionary.sum(k);
        }
        self.log_likelihood -= expected;
        for far in &self.far {
            self.log_likelihood += far.ln;
            for &(k, h) in &self.parts {
                shares[k] += far.ratio * f64::from(dictionary.row(k)[far.f]) * f64::from(h);
            }
        }
    }

    /// The components that are on, with the counts at the entries that were drawn for them.
    #[inline(always)]
    fn units(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let entries = self.units.len() / self.parts.len().max(1);
        self.parts.iter().enumerate().map(move |(i, &(k, _))| (k, &self.units[i * entries..][..entries]))
    }
}

/// The counts of column `t`, which has been taken up: `x` is [`Allocated::x`].
#[inline(always)]
fn entries<'a>(counts: &'a Counts, t: usize, x: &'a [f64]) -> &'a [f64] {
    match counts.column(t) {
        Column::Dense(values) if !compact(counts) => values,
        _ => x,
    }
}

/// The sum of log H over the sites that are on. Logarithms of products: eight numbers in the range of single precision
/// stay in that of double precision.
#[inline(always)]
fn ln_activation(parts: &[(usize, f32)]) -> f64 {
    let (eights, rest) = parts.as_chunks::<8>();
    let product = |parts: &[(usize, f32)]| parts.iter().fold(1.0, |product, &(_, h)| product * f64::from(h));
    eights.iter().map(|eight| ln(product(eight))).sum::<f64>() + ln(product(rest))
}

#[cfg(test)]
#[path = "expected_tests.rs"]
mod tests;
