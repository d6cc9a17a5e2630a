//! Sums over columns of what the components were given, each in the order of the columns.

use super::doubled::CHUNK;
use super::{Allocated, compact};
use crate::counts::Counts;
use crate::kernel::dispatch;
use crate::kernel::doubles::{Doubles, EIGHT, Eight, Line};

/// Lines of doubles that are handled at once: the ratios of so few features stay in the first cache while all components
/// pass.
const LINES: usize = 2 * CHUNK;

/// For each of some components the columns it is on in, and how strongly. Made once, for whether a site is on cannot be
/// predicted, and would be asked for every few features.
#[derive(Debug, Clone, Default)]
pub(super) struct Listed {
    /// Where the columns of a component end.
    ends: Vec<usize>,
    columns: Vec<(usize, f64)>,
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
                    self.columns[self.ends[k]] = (c, f64::from(h));
                    self.ends[k] += 1;
                }
            }
        }
    }

    /// Every component's columns, counted from the first of the block, in their order.
    #[inline(always)]
    pub(super) fn components(&self) -> impl Iterator<Item = &[(usize, f64)]> {
        let mut from = 0;
        self.ends.iter().map(move |&end| &self.columns[core::mem::replace(&mut from, end)..end])
    }
}

dispatch! {
    /// sums[k] += sum over the columns of ratio h, for the components from `first` on, in the order of the columns.
    pub(crate) fn add_up [] (
        counts: &Counts, sums: &mut [f64], first: usize, done: &[Allocated], scratch: &mut super::Scratch,
    ) = add_up_components
}

#[inline(always)]
fn add_up_components<V: Doubles>(
    counts: &Counts,
    sums: &mut [f64],
    first: usize,
    done: &[Allocated],
    scratch: &mut super::Scratch,
) {
    let (features, on) = (counts.features(), &mut scratch.on);
    on.fill(first, sums.len() / features, done);
    if crate::infer::mask::compact(counts) {
        return compact::add_up(sums, features, on, done);
    }
    let lines = features.div_ceil(EIGHT);
    let mut line = 0;
    while line < lines {
        // As many as a chunk of features has: see `doubled`.
        line += match lines - line {
            1..=2 => add_up_lines::<V, 2>(sums, features, line, on, done),
            3..=4 => add_up_lines::<V, 4>(sums, features, line, on, done),
            5..=6 => add_up_lines::<V, 6>(sums, features, line, on, done),
            9..=10 => add_up_lines::<V, 10>(sums, features, line, on, done),
            _ => add_up_lines::<V, LINES>(sums, features, line, on, done),
        };
    }
}

/// `N` lines of the sums, from `line` on; the rows of `sums` may end before the last one does.
#[inline(always)]
fn add_up_lines<V: Doubles, const N: usize>(
    sums: &mut [f64],
    features: usize,
    line: usize,
    on: &Listed,
    done: &[Allocated],
) -> usize {
    let at = line * EIGHT;
    let width = (features - at).min(N * EIGHT);
    for (row, on) in sums.chunks_exact_mut(features).zip(on.components()) {
        if on.is_empty() {
            continue;
        }
        let (whole, rest) = row[at..at + width].as_chunks_mut::<EIGHT>();
        let mut last = [0.0; EIGHT];
        for (last, rest) in last.iter_mut().zip(&*rest) {
            *last = *rest;
        }
        let mut totals = [V::Eight::splat(0.0); N];
        for i in 0..N {
            totals[i] = V::Eight::load(whole.get(i).unwrap_or(&last));
        }
        for &(c, h) in on {
            let ratio: &[Line; N] = done[c].ratio[line..].first_chunk().expect("padded to tiles");
            let h = V::Eight::splat(h);
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
    N
}
