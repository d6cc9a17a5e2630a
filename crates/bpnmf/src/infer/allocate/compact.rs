//! Columns of which only the positive entries are held, one at a time.

use super::chunk::share_chunks;
use super::{Allocated, Task};
use crate::infer::activations::ActiveColumn;
use crate::infer::dictionary::Dictionary;
use crate::infer::work::Work;
use crate::kernel::doubles::Doubles;
use crate::kernel::{LANES, Tile, dispatch, flat, flat_mut};

dispatch! {
    pub(super) fn share [] (
        task: Task<'_>, first: usize, works: &[Work], on: &[u16], values: &[Tile], out: &mut [Allocated],
        shares: &mut [f64], gathered: &mut Vec<Tile>, sums: &mut Vec<Tile>,
    ) = share_columns
}

#[inline(always)]
fn share_columns<V: Doubles>(
    task: Task<'_>,
    first: usize,
    works: &[Work],
    on: &[u16],
    values: &[Tile],
    out: &mut [Allocated],
    shares: &mut [f64],
    gathered: &mut Vec<Tile>,
    sums: &mut Vec<Tile>,
) {
    let (components, tiles) = (task.dictionary.components(), on.len() / out.len());
    for (c, (column, shares)) in out.iter_mut().zip(shares.chunks_exact_mut(components)).enumerate() {
        let at = c * tiles..(c + 1) * tiles;
        ActiveColumn { on: &on[at.clone()], values: flat(&values[at]) }.list(&mut column.parts);
        share_column::<V>(task, first + c, &works[c], column, shares, gathered, sums);
    }
}

/// W at the entries of a column, a component that is on after the other, each padded to tiles. What is behind the last entry
/// is left as it is: there are no counts.
#[inline(always)]
fn gather(dictionary: &Dictionary, column: &Allocated, tiles: usize, gathered: &mut Vec<Tile>) {
    gathered.resize(column.parts.len() * tiles, Tile::ZERO);
    let mut rest = flat_mut(gathered);
    for parts in column.parts.chunk_by(|(a, _), (b, _)| a / LANES == b / LANES) {
        // The components of a tile lie together: few cache lines are read.
        let w = dictionary.tile(parts[0].0 / LANES);
        let mut lanes = [0; LANES];
        for (lane, (k, _)) in lanes.iter_mut().zip(parts) {
            *lane = k % LANES;
        }
        let into = rest.split_off_mut(..parts.len() * tiles * LANES).expect("of all");
        for (entry, &f) in column.rows.iter().enumerate() {
            let w = &w[f as usize].0;
            for (lane, into) in lanes.iter().zip(into[entry..].iter_mut().step_by(tiles * LANES)) {
                *into = w[*lane];
            }
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
    gathered: &mut Vec<Tile>,
    sums: &mut Vec<Tile>,
) {
    column.start(shares);
    let tiles = column.x.len().div_ceil(LANES);
    gather(task.dictionary, column, tiles, gathered);
    let x = core::mem::take(&mut column.x);
    let w = |i, _| &gathered[i * tiles..][..tiles];
    share_chunks::<V>(task, t, &x, work.x(task.counts), w, column, shares, sums);
    column.x = x;
    column.finish(task.dictionary, shares);
}
