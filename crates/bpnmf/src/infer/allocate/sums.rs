//! Sums over columns of what the components were given, each in the order of the columns.

use super::Allocated;
use crate::counts::Counts;
use crate::infer::chunks::{chunk, for_each_chunk};
use crate::infer::mask::compact;
use crate::kernel::doubles::{Doubles, Eight, Line, flat_lines_mut};
use crate::kernel::{LANES, Tile, dispatch, flat};
use core::ops::Range;

/// Columns, and tiles of entries of a column, whose sums are taken in single precision before they are added to the others
/// in double precision. The relative error of such a sum is below half an epsilon for each of its terms, 3.8e-6; roundings
/// cancel, and as a rule it is some 2e-7.
pub(crate) const TOGETHER: usize = 64;

/// The tiles from tile `from` of `tiles` on that are added up together: [`TOGETHER`], or one more that comes last.
#[inline(always)]
pub(super) fn run(from: usize, tiles: usize) -> Range<usize> {
    from..if tiles - from <= TOGETHER + 1 { tiles } else { from + TOGETHER }
}

/// For each of some components the columns it is on in, and how strongly, run after run of columns. Made once, for whether a
/// site is on cannot be predicted, and would be asked for every few features.
#[derive(Debug, Clone, Default)]
pub(super) struct Listed {
    components: usize,
    /// Where the columns of a component end.
    ends: Vec<usize>,
    columns: Vec<(usize, f32)>,
}

impl Listed {
    /// Lists the columns of `components` components from `first` on, `run` columns after the other.
    #[inline(always)]
    fn fill(&mut self, first: usize, components: usize, done: &[Allocated], run: usize) {
        // A component before ours wraps around to a number that is too large as well.
        let ours = |k: usize| Some(k.wrapping_sub(first)).filter(|&k| k < components);
        self.components = components;
        self.ends.clear();
        self.ends.resize(done.len().div_ceil(run) * components, 0);
        for (done, ends) in done.chunks(run).zip(self.ends.chunks_exact_mut(components)) {
            for column in done {
                for k in column.parts.iter().filter_map(|&(k, _)| ours(k)) {
                    ends[k] += 1;
                }
            }
        }
        let mut sites = 0;
        for end in &mut self.ends {
            sites += core::mem::replace(end, sites);
        }
        self.columns.resize(sites, (0, 0.0));
        for (done, ends) in done.chunks(run).zip(self.ends.chunks_exact_mut(components)) {
            for (c, column) in done.iter().enumerate() {
                for &(k, h) in &column.parts {
                    if let Some(k) = ours(k) {
                        self.columns[ends[k]] = (c, h);
                        ends[k] += 1;
                    }
                }
            }
        }
    }

    /// Every component's columns of a run, counted from its first, in their order.
    #[inline(always)]
    fn components(&self, run: usize) -> impl Iterator<Item = &[(usize, f32)]> {
        let (before, ends) = self.ends.split_at(run * self.components);
        let mut from = before.last().copied().unwrap_or(0);
        let ends = &ends[..self.components];
        ends.iter().map(move |&end| &self.columns[core::mem::replace(&mut from, end)..end])
    }
}

dispatch! {
    /// sums[k] += sum over the columns of ratio h, for the components from `first` on, [`TOGETHER`] columns after the other.
    /// A component has two lines of sums for every tile of features.
    pub(crate) fn add_up [] (
        counts: &Counts, sums: &mut [Line], first: usize, done: &[Allocated], scratch: &mut super::Scratch,
    ) = add_up_components
}

#[inline(always)]
fn add_up_components<V: Doubles>(
    counts: &Counts,
    sums: &mut [Line],
    first: usize,
    done: &[Allocated],
    scratch: &mut super::Scratch,
) {
    let (tiles, on) = (counts.features().div_ceil(LANES), &mut scratch.on);
    // What is added up in double precision need not be added up together.
    let length = if compact(counts) { done.len() } else { TOGETHER };
    on.fill(first, sums.len() / (2 * tiles), done, length);
    if !compact(counts) {
        for_each_chunk!(tiles, at, N => for (run, done) in done.chunks(length).enumerate() {
            add_up_tiles::<V, N>(sums, tiles, at, on.components(run), done);
        });
    }
    for (run, done) in done.chunks(length).enumerate() {
        if compact(counts) {
            add_up_entries(sums, tiles, on.components(run), done);
        }
        if done.iter().any(|column| !column.far.is_empty()) {
            add_up_far(sums, tiles, on.components(run), done);
        }
    }
}

/// `N` tiles of the sums of every component, from tile `at` on.
#[inline(always)]
fn add_up_tiles<'a, V: Doubles, const N: usize>(
    sums: &mut [Line],
    tiles: usize,
    at: usize,
    on: impl Iterator<Item = &'a [(usize, f32)]>,
    done: &[Allocated],
) {
    let mut ratios: [&[Tile; N]; TOGETHER] = [&[Tile::ZERO; N]; TOGETHER];
    for (ratio, column) in ratios.iter_mut().zip(done) {
        *ratio = chunk(&column.ratio, at);
    }
    for (sums, on) in sums.chunks_exact_mut(2 * tiles).zip(on) {
        if on.is_empty() {
            continue;
        }
        let mut totals = [V::splat(0.0); N];
        for &(c, h) in on {
            let (ratio, h) = (ratios[c % TOGETHER], V::splat(h));
            for n in 0..N {
                totals[n] = V::load(&ratio[n].0).fused(h, totals[n]);
            }
        }
        let (pairs, _) = sums.as_chunks_mut::<2>();
        let pairs: &mut [[Line; 2]; N] = pairs[at..].first_chunk_mut().expect("padded to tiles");
        for n in 0..N {
            let total = V::widened(totals[n]);
            for j in 0..2 {
                V::Eight::load(&pairs[n][j].0).add(total[j]).store(&mut pairs[n][j].0);
            }
        }
    }
}

/// The same for columns of which only the positive entries are held, in double precision.
#[inline(always)]
fn add_up_entries<'a>(
    sums: &mut [Line],
    tiles: usize,
    on: impl Iterator<Item = &'a [(usize, f32)]>,
    done: &[Allocated],
) {
    for (sums, on) in sums.chunks_exact_mut(2 * tiles).zip(on) {
        let sums = flat_lines_mut(sums);
        for &(c, h) in on {
            let (column, h) = (&done[c], f64::from(h));
            for (&f, &ratio) in column.rows.iter().zip(flat(&column.ratio)) {
                sums[f as usize] += f64::from(ratio) * h;
            }
        }
    }
}

/// The same for the entries that are out of the range of single precision.
#[cold]
#[inline(never)]
fn add_up_far<'a>(
    sums: &mut [Line],
    tiles: usize,
    on: impl Iterator<Item = &'a [(usize, f32)]>,
    done: &[Allocated],
) {
    for (sums, on) in sums.chunks_exact_mut(2 * tiles).zip(on) {
        for &(c, h) in on {
            for far in &done[c].far {
                flat_lines_mut(sums)[far.f] += far.ratio * f64::from(h);
            }
        }
    }
}
