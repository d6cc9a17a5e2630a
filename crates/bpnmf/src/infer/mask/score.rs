//! Scores: the matrix product that all bounds start from.

use super::MOST_COLUMNS;
use crate::infer::dictionary::Dictionary;
use crate::infer::work::Work;
use crate::kernel::{LANES, Lanes, Tile, flat};

/// The largest [`Lanes::COLUMNS`] and [`Lanes::TILES`].
const MOST_AT_ONCE: usize = 8;
pub(super) const MOST_TILES: usize = 2;

/// Scores, sum over f of R_f W_fk, of the tiles from `tile` on that are handled together, for all columns.
#[inline(always)]
pub(super) fn score_columns<V: Lanes>(
    dictionary: &Dictionary,
    tile: usize,
    tiles: usize,
    columns: &[Work],
    scores: &mut [Tile],
) {
    let (first, second) = scores.split_at_mut(MOST_COLUMNS);
    let w = dictionary.tile(tile);
    if columns[0].compact {
        for (score, work) in first.iter_mut().zip(columns) {
            scores_of_column::<V>(work, w).store(&mut score.0);
        }
        if V::TILES == 2 && tile + 1 < tiles {
            for (score, work) in second.iter_mut().zip(columns) {
                scores_of_column::<V>(work, dictionary.tile(tile + 1)).store(&mut score.0);
            }
        }
        return;
    }
    // An odd last tile is its own neighbour.
    let next = dictionary.tile((tile + V::TILES - 1).min(tiles - 1));
    let groups = columns.chunks(V::COLUMNS);
    let outs = first.chunks_mut(V::COLUMNS).zip(second.chunks_mut(V::COLUMNS));
    for (columns, (first, second)) in groups.zip(outs) {
        scores_of_group::<V>([w, next], columns, [first, second]);
    }
}

/// The scores of one or two tiles for up to `COLUMNS` columns.
#[inline(always)]
fn scores_of_group<V: Lanes>(
    tiles: [&[Tile]; MOST_TILES],
    columns: &[Work],
    scores: [&mut [Tile]; MOST_TILES],
) {
    let features = tiles[0].len();
    assert!(tiles[1].len() == features);
    // Columns beyond the last repeat the first: their scores are not read.
    let mut ratios = [flat(&columns[0].ratio).as_ptr(); MOST_AT_ONCE];
    for (ratios, work) in ratios.iter_mut().zip(columns) {
        assert!(work.ratio.len() * LANES >= features);
        *ratios = flat(&work.ratio).as_ptr();
    }
    let w = tiles.map(<[Tile]>::as_ptr);
    let mut sums = [[V::splat(0.0); MOST_AT_ONCE]; MOST_TILES];
    for f in 0..features {
        // SAFETY: f is below `features`, which the assertions above compare with the lengths of all that is read. Slices
        // would be checked for every single product.
        unsafe {
            let w = [V::load(&(*w[0].add(f)).0), V::load(&(*w[1].add(f)).0)];
            for c in 0..V::COLUMNS {
                let ratio = V::splat(*ratios[c].add(f));
                for i in 0..V::TILES {
                    sums[i][c] = ratio.mul_add(w[i], sums[i][c]);
                }
            }
        }
    }
    for (sums, scores) in sums.iter().zip(scores).take(V::TILES) {
        for c in 0..V::COLUMNS {
            sums[c].store(&mut scores[c].0);
        }
    }
}

/// sum over f of R_f W_fk for sixteen components and one column.
#[inline(always)]
pub(super) fn scores_of_column<V: Lanes>(work: &Work, tile: &[Tile]) -> V {
    let ratio = flat(&work.ratio);
    let mut sums = [V::splat(0.0); 4];
    if work.compact {
        // The padding of `ratio` is zero and has no rows.
        let quads = work.rows.chunks_exact(4);
        let rest = quads.remainder();
        let done = work.rows.len() - rest.len();
        for (rows, ratios) in quads.zip(ratio.chunks_exact(4)) {
            for i in 0..4 {
                sums[i] = V::splat(ratios[i]).mul_add(V::load(&tile[rows[i] as usize].0), sums[i]);
            }
        }
        for (i, &row) in rest.iter().enumerate() {
            sums[i] = V::splat(ratio[done + i]).mul_add(V::load(&tile[row as usize].0), sums[i]);
        }
    } else {
        let quads = tile.chunks_exact(4);
        let rest = quads.remainder();
        let done = tile.len() - rest.len();
        for (w, ratios) in quads.zip(ratio.chunks_exact(4)) {
            for i in 0..4 {
                sums[i] = V::splat(ratios[i]).mul_add(V::load(&w[i].0), sums[i]);
            }
        }
        for (i, w) in rest.iter().enumerate() {
            sums[i] = V::splat(ratio[done + i]).mul_add(V::load(&w.0), sums[i]);
        }
    }
    sums[0].add(sums[1]).add(sums[2].add(sums[3]))
}
