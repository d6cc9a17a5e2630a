//! Scores: the matrix product that all bounds start from.

use super::MOST_COLUMNS;
use crate::infer::dictionary::Dictionary;
use crate::infer::work::Work;
use crate::kernel::{LANES, Lanes, Tile, flat, prefetch_early};

/// The largest [`Lanes::COLUMNS`] and [`Lanes::TILES`].
const MOST_AT_ONCE: usize = 8;
pub(super) const MOST_TILES: usize = 2;

/// Features whose products are added up before their sum is added to the others.
const TOGETHER: usize = 128;

/// Features between two looks ahead: a cache line for four columns.
const STEP: usize = 4;

/// Whether so few components of a tile are scored sooner by their own rows, four at a time, than side by side. A sum
/// over lanes takes about as long as five products.
#[inline(always)]
fn by_rows(lanes: u16, features: usize) -> bool {
    let rows = (lanes.count_ones() as usize).next_multiple_of(4);
    rows * (features.div_ceil(LANES) + 5) <= features
}

/// How many components, from the first one on, are scored side by side unless columns are compact.
#[inline(always)]
pub(crate) fn side_by_side(dictionary: &Dictionary) -> usize {
    let (components, features) = (dictionary.components(), dictionary.features());
    let last = components.div_ceil(LANES) - 1;
    if by_rows(dictionary.lanes(last), features) { last * LANES } else { components }
}

/// The score of one component and one column, bit for bit as it is side by side where products are fused.
pub(crate) fn fused_score(ratio: &[f32], w: &[f32]) -> f32 {
    let mut total = 0.0;
    for (ratio, w) in ratio.chunks(TOGETHER).zip(w.chunks(TOGETHER)) {
        total += ratio.iter().zip(w).fold(0.0, |sum: f32, (ratio, &w)| ratio.mul_add(w, sum));
    }
    total
}

/// Scores, sum over f of R_f W_fk, of the tiles from `tile` on that are handled together, for all columns. The multipliers
/// leave the memory idle: `ahead`, as many counts as the columns have, is asked for meanwhile.
#[inline(always)]
pub(super) fn score_columns<V: Lanes>(
    dictionary: &Dictionary,
    tile: usize,
    columns: &[Work],
    ahead: &[Tile],
    scores: &mut [Tile],
) {
    let mut all = [0; MOST_COLUMNS];
    for c in 0..columns.len() {
        all[c] = c;
    }
    let all = &all[..columns.len()];
    let w = dictionary.tile(tile);
    if V::TILES == 2 && !by_rows(dictionary.lanes(tile + 1), w.len()) && !columns[0].compact {
        let tiles = [w, dictionary.tile(tile + 1)];
        for which in all.chunks(V::COLUMNS) {
            let ahead = ahead.get(which[0] * w.len().div_ceil(LANES)..).unwrap_or_default();
            scores_of_group::<V, 2>(tiles, columns, which, ahead, scores);
        }
        return;
    }
    for i in 0..V::TILES {
        let ahead = if i == 0 { ahead } else { &[] };
        score_tile::<V>(dictionary, tile + i, columns, all, 1, ahead, &mut scores[i * MOST_COLUMNS..]);
    }
}

/// The scores of one tile, if there is such a tile, for the columns `which`, one by one if fewer than `fewest` are left.
/// `ahead` is as in [`score_columns`].
#[inline(always)]
pub(super) fn score_tile<V: Lanes>(
    dictionary: &Dictionary,
    tile: usize,
    columns: &[Work],
    which: &[usize],
    fewest: usize,
    ahead: &[Tile],
    scores: &mut [Tile],
) {
    let lanes = dictionary.lanes(tile);
    if lanes == 0 {
        return;
    }
    let w = dictionary.tile(tile);
    let alone = columns[0].compact || by_rows(lanes, w.len());
    for which in which.chunks(V::COLUMNS) {
        if alone || which.len() < fewest {
            for &c in which {
                score_lanes::<V>(dictionary, tile, lanes, &columns[c], &mut scores[c]);
            }
        } else {
            let ahead = ahead.get(which[0] * w.len().div_ceil(LANES)..).unwrap_or_default();
            scores_of_group::<V, 1>([w], columns, which, ahead, scores);
        }
    }
}

/// The scores of one or two tiles for up to `COLUMNS` columns; those of the second come [`MOST_COLUMNS`] later.
#[inline(always)]
fn scores_of_group<V: Lanes, const TILES: usize>(
    tiles: [&[Tile]; TILES],
    columns: &[Work],
    which: &[usize],
    ahead: &[Tile],
    scores: &mut [Tile],
) {
    let features = tiles[0].len();
    // Columns beyond the last repeat the first: their scores are not kept.
    let mut ratios = [flat(&columns[which[0]].ratio).as_ptr(); MOST_AT_ONCE];
    for (ratios, &c) in ratios.iter_mut().zip(which) {
        assert!(columns[c].ratio.len() * LANES >= features);
        *ratios = flat(&columns[c].ratio).as_ptr();
    }
    let mut w = [tiles[0].as_ptr(); TILES];
    for i in 0..TILES {
        assert!(tiles[i].len() == features);
        w[i] = tiles[i].as_ptr();
    }
    for from in (0..features).step_by(TOGETHER) {
        let to = features.min(from + TOGETHER);
        let mut sums = [[V::splat(0.0); MOST_AT_ONCE]; TILES];
        let mut f = from;
        while f + STEP <= to {
            // In all as many as these columns have.
            for line in 0..V::COLUMNS / 4 {
                prefetch_early(ahead, f * V::COLUMNS / LANES + line);
            }
            for i in 0..STEP {
                // SAFETY: f + i is below `features`, which the assertions above compare with the lengths of all that is read.
                unsafe { add_products::<V, TILES>(w, &ratios, f + i, &mut sums) };
            }
            f += STEP;
        }
        for f in f..to {
            // SAFETY: as above.
            unsafe { add_products::<V, TILES>(w, &ratios, f, &mut sums) };
        }
        for i in 0..TILES {
            for (n, &c) in which.iter().enumerate() {
                let score = &mut scores[i * MOST_COLUMNS + c].0;
                let sum = if from == 0 { sums[i][n] } else { sums[i][n].add(V::load(score)) };
                sum.store(score);
            }
        }
    }
}

/// Adds the products of feature `f` to the scores. Slices would be checked for every single product: W and all ratios must
/// have that feature.
#[inline(always)]
unsafe fn add_products<V: Lanes, const TILES: usize>(
    w: [*const Tile; TILES],
    ratios: &[*const f32; MOST_AT_ONCE],
    f: usize,
    sums: &mut [[V; MOST_AT_ONCE]; TILES],
) {
    let mut at_feature = [V::splat(0.0); TILES];
    for i in 0..TILES {
        // SAFETY: the caller's.
        at_feature[i] = V::load(unsafe { &(*w[i].add(f)).0 });
    }
    for c in 0..V::COLUMNS {
        // SAFETY: the caller's.
        let ratio = V::splat(unsafe { *ratios[c].add(f) });
        for i in 0..TILES {
            sums[i][c] = ratio.mul_add(at_feature[i], sums[i][c]);
        }
    }
}

/// The scores of some components of a tile for one column; the others' are left alone or scored, too.
#[inline(always)]
pub(super) fn score_lanes<V: Lanes>(
    dictionary: &Dictionary,
    tile: usize,
    lanes: u16,
    work: &Work,
    score: &mut Tile,
) {
    let w = dictionary.tile(tile);
    if work.compact || !by_rows(lanes, w.len()) {
        scores_of_column::<V>(work, w).store(&mut score.0);
        return;
    }
    let mut rest = lanes;
    while rest != 0 {
        rest = match rest.count_ones() {
            1 => score_rows::<V, 1>(dictionary, tile, rest, work, score),
            2 => score_rows::<V, 2>(dictionary, tile, rest, work, score),
            _ => score_rows::<V, 4>(dictionary, tile, rest, work, score),
        };
    }
}

/// The scores of the first `N` components of `lanes` by their rows; beyond the end the last one is repeated. Returns the
/// others.
#[inline(always)]
fn score_rows<V: Lanes, const N: usize>(
    dictionary: &Dictionary,
    tile: usize,
    lanes: u16,
    work: &Work,
    score: &mut Tile,
) -> u16 {
    let (mut rest, mut lane, mut rows) = (lanes, [0; N], [&work.ratio[..]; N]);
    for n in 0..N {
        lane[n] = if rest == 0 { lane[n.max(1) - 1] } else { rest.trailing_zeros() as usize % LANES };
        rest &= rest.wrapping_sub(1);
        rows[n] = dictionary.row_tiles(tile * LANES + lane[n]);
    }
    let mut sums = [V::splat(0.0); 4];
    for at in 0..work.ratio.len() {
        let ratio = V::load(&work.ratio[at].0);
        for n in 0..N {
            sums[n] = ratio.mul_add(V::load(&rows[n][at].0), sums[n]);
        }
    }
    let sums = V::sums(sums);
    for n in 0..N {
        score.0[lane[n]] = sums[n];
    }
    rest
}

/// sum over f of R_f W_fk for sixteen components and one column.
#[inline(always)]
fn scores_of_column<V: Lanes>(work: &Work, tile: &[Tile]) -> V {
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
