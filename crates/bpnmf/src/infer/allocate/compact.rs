//! Columns of which only the positive entries are held, one at a time.

use super::chunk::{Entries, for_each_chunk, is_full, share_chunk};
use super::{Allocated, Allocation, Task};
use crate::infer::dictionary::Dictionary;
use crate::infer::work::Work;
use crate::kernel::doubles::Doubles;
use crate::kernel::{LANES, Tile, dispatch, flat_mut};

#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    /// W at the entries of a column, a component that is on after the other, each padded to tiles.
    gathered: Vec<Tile>,
    /// Partial sums of what every component that is on is given.
    sums: Vec<Tile>,
}

dispatch! {
    pub(super) fn share [] (
        task: Task<'_>, first: usize, works: &[Work], out: &mut [Allocated], shares: &mut [f64], scratch: &mut Scratch,
    ) = share_columns
}

#[inline(always)]
fn share_columns<V: Doubles>(
    task: Task<'_>,
    first: usize,
    works: &[Work],
    out: &mut [Allocated],
    shares: &mut [f64],
    scratch: &mut Scratch,
) {
    let components = task.dictionary.components();
    for (c, (column, shares)) in out.iter_mut().zip(shares.chunks_exact_mut(components)).enumerate() {
        share_column::<V>(task, first + c, &works[c], column, shares, scratch);
    }
}

/// What is behind the last entry is left as it is: there are no counts.
#[inline(always)]
fn gather(dictionary: &Dictionary, column: &Allocated, tiles: usize, gathered: &mut Vec<Tile>) {
    gathered.resize(column.parts.len() * tiles, Tile::ZERO);
    for (&(k, _), into) in column.parts.iter().zip(gathered.chunks_exact_mut(tiles.max(1))) {
        let row = dictionary.row(k);
        for (into, &f) in flat_mut(into).iter_mut().zip(&column.rows) {
            *into = row[f as usize];
        }
    }
}

#[inline(always)]
fn share_column<V: Doubles>(
    task: Task<'_>,
    t: usize,
    work: &Work,
    column: &mut Allocated,
    shares: &mut [f64],
    scratch: &mut Scratch,
) {
    let Scratch { gathered, sums } = scratch;
    let mut logs = Tile::ZERO;
    sums.clear();
    sums.resize(column.parts.len(), Tile::ZERO);
    column.start(shares);
    let tiles = column.x.len().div_ceil(LANES);
    gather(task.dictionary, column, tiles, gathered);
    let expected = task.allocation == Allocation::Expected;
    for_each_chunk!(tiles, at, N => {
        let Allocated { parts, rows, x, ratio, far, .. } = &mut *column;
        let w = |i, _| &gathered[i * tiles..][..tiles];
        let total = task.counts.column_totals()[t];
        let (single, rate) = (&work.x[..], None);
        let mut entries = Entries { parts, w, x, total, single, rate, rows, ratio, far, sums, logs: &mut logs };
        share_chunk::<V, N>(task.dictionary, &mut entries, at, expected);
        if is_full(at, at + N, tiles) {
            column.merge::<V>(sums, &mut logs, shares);
        }
    });
    column.finish(task.dictionary, shares);
}
