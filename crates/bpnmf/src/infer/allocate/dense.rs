//! Columns of which all features are looked at, many columns at a time: a few features of W serve them all from the
//! first cache.

use super::chunk::{Entries, for_each_chunk, is_full, share_chunk};
use super::{Allocated, Allocation, Task, entries};
use crate::infer::work::Work;
use crate::kernel::doubles::Doubles;
use crate::kernel::{LANES, Tile, dispatch};

#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    /// Partial sums of what every site is given, a column after the other; and of x log(rate), one for every column.
    sums: Vec<Tile>,
    logs: Vec<Tile>,
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
    let sites = out.iter().map(|column| column.parts.len()).sum();
    for (tiles, number) in [(&mut scratch.sums, sites), (&mut scratch.logs, out.len())] {
        tiles.clear();
        tiles.resize(number, Tile::ZERO);
    }
    for (column, shares) in out.iter_mut().zip(shares.chunks_exact_mut(components)) {
        column.start(shares);
    }
    let tiles = task.counts.features().div_ceil(LANES);
    for_each_chunk!(tiles, at, N => {
        share_tiles::<V, N>(task, first, works, at, out, scratch);
        if is_full(at, at + N, tiles) {
            let mut sums = &mut scratch.sums[..];
            let columns = out.iter_mut().zip(&mut scratch.logs);
            for ((column, logs), shares) in columns.zip(shares.chunks_exact_mut(components)) {
                column.merge::<V>(sums.split_off_mut(..column.parts.len()).expect("of all"), logs, shares);
            }
        }
    });
    for (column, shares) in out.iter_mut().zip(shares.chunks_exact_mut(components)) {
        column.finish(task.dictionary, shares);
    }
}

/// `N` tiles of features from tile `at` on, for all columns.
#[inline(always)]
fn share_tiles<V: Doubles, const N: usize>(
    task: Task<'_>,
    first: usize,
    works: &[Work],
    at: usize,
    out: &mut [Allocated],
    scratch: &mut Scratch,
) {
    let mut sums = &mut scratch.sums[..];
    for (c, (column, logs)) in out.iter_mut().zip(&mut scratch.logs).enumerate() {
        let t = first + c;
        let Allocated { parts, rows, x, ratio, far, .. } = column;
        let mut entries = Entries {
            parts,
            w: |_, k| task.dictionary.row_tiles(k),
            x: entries(task.counts, t, x),
            total: task.counts.column_totals()[t],
            single: &works[c].x,
            rate: works[c].kept_rate(),
            rows,
            ratio,
            far,
            sums: sums.split_off_mut(..parts.len()).expect("of all"),
            logs,
        };
        share_chunk::<V, N>(task.dictionary, &mut entries, at, task.allocation == Allocation::Expected);
    }
}
