//! Sums over columns of what the components were given, each in the order of the columns.

use super::Allocated;
use super::chunk::for_each_chunk;
use crate::counts::Counts;
use crate::kernel::doubles::{Doubles, Eight, Line, flat_lines_mut};
use crate::kernel::{LANES, Tile, dispatch, flat};

/// Columns, and tiles of entries of a column, whose sums are taken in single precision before they are added to the others
/// in double precision. The relative error of such a sum is below half an epsilon for each of its terms, 3.8e-6; roundings
/// cancel, and as a rule it is some 2e-7.
pub(crate) const TOGETHER: usize = 64;

/// For each of some components the columns it is on in, and how strongly. Made once, for whether a site is on cannot be
/// predicted, and would be asked for every few features.
#[derive(Debug, Clone, Default)]
pub(super) struct Listed {
    /// Where the columns of a component end.
    ends: Vec<usize>,
    columns: Vec<(usize, f32)>,
}

impl Listed {
    /// Lists the columns of `components` components from `first` on.
    #[inline(always)]
    fn fill(&mut self, first: usize, components: usize, done: &[Allocated]) {
        // A component before ours wraps around to a number that is too large as well.
        let ours = |k: usize| Some(k.wrapping_sub(first)).filter(|&k| k < components);
        self.ends.clear();
        self.ends.resize(components, 0);
        for column in done {
            for k in column.parts.iter().filter_map(|&(k, _)| ours(k)) {
                self.ends[k] += 1;
            }
        }
        let mut sites = 0;
        for end in &mut self.ends {
            sites += core::mem::replace(end, sites);
        }
        self.columns.resize(sites, (0, 0.0));
        for (c, column) in done.iter().enumerate() {
            for &(k, h) in &column.parts {
                if let Some(k) = ours(k) {
                    self.columns[self.ends[k]] = (c, h);
                    self.ends[k] += 1;
                }
            }
        }
    }

    /// Every component's columns, counted from the first of the block, in their order.
    #[inline(always)]
    fn components(&self) -> impl Iterator<Item = &[(usize, f32)]> {
        let mut from = 0;
        self.ends.iter().map(move |&end| &self.columns[core::mem::replace(&mut from, end)..end])
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
    let components = sums.len() / (2 * tiles);
    for done in done.chunks(TOGETHER) {
        on.fill(first, components, done);
        if crate::infer::mask::compact(counts) {
            add_up_entries(sums, tiles, on, done);
        } else {
            for_each_chunk!(tiles, at, N => add_up_tiles::<V, N>(sums, tiles, at, on, done));
        }
        if done.iter().any(|column| !column.far.is_empty()) {
            add_up_far(sums, tiles, on, done);
        }
    }
}

/// `N` tiles of the sums of every component, from tile `at` on.
#[inline(always)]
fn add_up_tiles<V: Doubles, const N: usize>(
    sums: &mut [Line],
    tiles: usize,
    at: usize,
    on: &Listed,
    done: &[Allocated],
) {
    for (sums, on) in sums.chunks_exact_mut(2 * tiles).zip(on.components()) {
        if on.is_empty() {
            continue;
        }
        let mut totals = [V::splat(0.0); N];
        for &(c, h) in on {
            let ratio: &[Tile; N] = done[c].ratio[at..].first_chunk().expect("padded to tiles");
            let h = V::splat(h);
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
fn add_up_entries(sums: &mut [Line], tiles: usize, on: &Listed, done: &[Allocated]) {
    for (sums, on) in sums.chunks_exact_mut(2 * tiles).zip(on.components()) {
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
fn add_up_far(sums: &mut [Line], tiles: usize, on: &Listed, done: &[Allocated]) {
    for (sums, on) in sums.chunks_exact_mut(2 * tiles).zip(on.components()) {
        for &(c, h) in on {
            for far in &done[c].far {
                flat_lines_mut(sums)[far.f] += far.ratio * f64::from(h);
            }
        }
    }
}
