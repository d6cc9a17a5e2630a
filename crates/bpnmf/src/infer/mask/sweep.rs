//! The sweep itself: tile after tile over columns side by side, and what happens when a site changes.

use super::bounds::{self, Place, Sites, TIERS, bits, bound_columns};
use super::score::{MOST_TILES, score_columns, score_lanes, score_tile, side_by_side};
use super::{MOST_COLUMNS, Proposal, Sweep, Tiers, columns_side_by_side, compact, exact_rule};
use crate::infer::activations::ActiveColumn;
use crate::infer::chunks::for_each_chunk;
use crate::infer::dictionary::Dictionary;
use crate::infer::work::Work;
use crate::kernel::{LANES, Lanes, Tile, dispatch, flat, prefetch};
use crate::random::{Site, philox};

/// Memory a thread needs for sweeping, allocated once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scratch {
    columns: Vec<Work>,
    buffers: Buffers,
}

impl Scratch {
    /// The columns of the last sweep as they were left, if they were not more than [`MOST_COLUMNS`].
    pub(crate) fn columns_mut(&mut self) -> &mut [Work] {
        &mut self.columns
    }

    /// Says whether columns keep the scores of what is on: counts are shared out by them if they are expected.
    pub(crate) fn set_keeps_scores(&mut self, keeps: bool) {
        self.buffers.keeps_scores = keeps;
    }
}

/// What columns that are swept side by side share.
#[derive(Debug, Clone, Default)]
struct Buffers {
    words: Vec<[[u32; LANES]; 4]>,
    gathered: Vec<Tile>,
    /// Scores of the tiles at hand, [`MOST_COLUMNS`] for each.
    scores: Vec<Tile>,
    sites: Sites,
    /// Bit c is set when column c has changed since its scores were computed.
    stale: u32,
    keeps_scores: bool,
    /// Rates in double precision for the exact rule.
    others: Vec<f64>,
}

dispatch! {
    /// Sweeps columns `from ..`, as many as `on` (words) and `values` (H) hold.
    pub(crate) fn sweep [P: Proposal] (
        job: &Sweep<'_, P>, from: usize, on: &mut [u16], values: &mut [Tile], scratch: &mut Scratch,
    ) -> Tiers = sweep_columns
}

#[inline(always)]
fn sweep_columns<P: Proposal, V: Lanes>(
    job: &Sweep<'_, P>,
    from: usize,
    on: &mut [u16],
    values: &mut [Tile],
    scratch: &mut Scratch,
) -> Tiers {
    let tiles = job.dictionary.components().div_ceil(LANES);
    let side_by_side = columns_side_by_side(job.counts);
    let Scratch { columns, buffers } = scratch;
    columns.resize_with(MOST_COLUMNS, Work::default);
    buffers.words.resize(MOST_COLUMNS, [[0; LANES]; 4]);
    buffers.scores.resize(MOST_TILES * MOST_COLUMNS, Tile::ZERO);
    let mut tiers = Tiers::default();
    let groups = on.chunks_mut(side_by_side * tiles).zip(values.chunks_mut(side_by_side * tiles));
    for (group, (on, values)) in groups.enumerate() {
        let first = from + group * side_by_side;
        let columns = &mut columns[group * side_by_side % MOST_COLUMNS..][..on.len() / tiles];
        take_up::<P, V>(job, first, on, values, columns);
        for tile in 0..tiles {
            sweep_tile::<P, V>(job, first, tile, on, values, columns, buffers, &mut tiers);
        }
    }
    tiers
}

/// Takes up the columns from `first` on that `on` and `values` hold.
#[inline(always)]
fn take_up<P: Proposal, V: Lanes>(
    job: &Sweep<'_, P>,
    first: usize,
    on: &[u16],
    values: &[Tile],
    columns: &mut [Work],
) {
    let tiles = job.dictionary.components().div_ceil(LANES);
    let compact = compact(job.counts);
    let sites = on.chunks_exact(tiles).zip(values.chunks_exact(tiles));
    for (c, ((on, column), work)) in sites.zip(&mut *columns).enumerate() {
        // All of H will be read sooner or later.
        (0..tiles).for_each(|tile| prefetch(values, (c + 1) * tiles + tile));
        work.load(job.counts, first + c, compact);
        work.start_rebuild(ActiveColumn { on, values: flat(column) });
    }
    if compact {
        for work in columns {
            work.rebuild_all::<V>(job.counts, job.dictionary);
        }
        return;
    }
    for_each_chunk!(columns[0].tiles(), at, N => for c in 0..columns.len() {
        if let Some(next) = columns.get(c + 2) {
            next.ask_for::<N>(job.counts, at);
        }
        columns[c].rebuild_tiles::<V, N>(job.counts, job.dictionary, at);
    });
    for work in columns {
        work.finish_rebuild::<V>(job.dictionary);
    }
}

/// Sweeps one tile of the columns from `first` on.
#[inline(always)]
fn sweep_tile<P: Proposal, V: Lanes>(
    job: &Sweep<'_, P>,
    first: usize,
    tile: usize,
    on: &mut [u16],
    values: &mut [Tile],
    columns: &mut [Work],
    buffers: &mut Buffers,
    tiers: &mut Tiers,
) {
    let components = job.dictionary.components();
    let tiles = components.div_ceil(LANES);
    if tile.is_multiple_of(4) {
        for (c, words) in buffers.words[..columns.len()].iter_mut().enumerate() {
            let counter = [Site::Mask as u32, job.number, (first + c) as u32];
            philox::lanes(counter, (tile / 4 * LANES) as u32, job.key.words(), words);
        }
    }
    let scores = tile % V::TILES * MOST_COLUMNS;
    if tile.is_multiple_of(V::TILES) {
        // The columns that come next, once.
        let ahead = if tile == 0 { job.counts.single_from(first + columns.len()) } else { &[] };
        score_columns::<V>(job.dictionary, tile, columns, ahead, &mut buffers.scores);
    } else if buffers.stale != 0 {
        let (mut stale, mut number) = ([0; MOST_COLUMNS], 0);
        for c in bits(buffers.stale) {
            stale[number] = c;
            number += 1;
        }
        let of_tile = &mut buffers.scores[scores..];
        // A group takes as long as a full one.
        score_tile::<V>(job.dictionary, tile, columns, &stale[..number], V::COLUMNS / 2, &[], of_tile);
    }
    buffers.stale = 0;
    if job.counts.has_missing() {
        for (c, work) in columns.iter_mut().enumerate() {
            let unexposed = job.counts.unexposed(first + c);
            work.observed =
                (!unexposed.is_empty()).then(|| job.dictionary.observed_sum_tiles(tile, unexposed));
        }
    }
    for c in 0..columns.len() {
        prefetch(values, c * tiles + tile + 1);
    }
    buffers.sites.take_up(LANES.min(components - tile * LANES));
    let mut left = u32::MAX >> (MOST_COLUMNS - columns.len());
    loop {
        let place = Place {
            job,
            first,
            tile,
            left,
            columns,
            words: &buffers.words,
            scores: &buffers.scores[scores..],
            on,
        };
        bound_columns::<P, V>(place, values, &mut buffers.sites, &mut buffers.gathered);
        let mut again = 0;
        for c in bits(left) {
            let changes = buffers.sites.undecided(c) | buffers.sites.changes[c];
            if changes == 0 && !columns[c].lonely() {
                continue;
            }
            let at = c * tiles..(c + 1) * tiles;
            let (on, values) = (&mut on[at.clone()], &mut values[at]);
            let unfinished = carry_out::<P, V>(job, first + c, tile, c, on, values, columns, buffers, tiers);
            again |= u32::from(unfinished) << c;
        }
        if again == 0 {
            break;
        }
        // A column that has changed has new scores for the sites that come after.
        left = again;
        score_again::<V>(job.dictionary, tile, left, columns, buffers);
    }
    count(&buffers.sites, tiers);
    if V::FUSES && buffers.keeps_scores && !columns[0].compact && tile * LANES < side_by_side(job.dictionary)
    {
        for (c, work) in columns.iter_mut().enumerate() {
            work.keep_scores::<V>(on[c * tiles + tile], &buffers.scores[scores + c]);
        }
    }
}

/// Brings up to date the scores of the undecided sites of the given columns.
#[inline(always)]
fn score_again<V: Lanes>(
    dictionary: &Dictionary,
    tile: usize,
    which: u32,
    columns: &[Work],
    buffers: &mut Buffers,
) {
    for c in bits(which) {
        let score = &mut buffers.scores[tile % V::TILES * MOST_COLUMNS + c];
        score_lanes::<V>(dictionary, tile, buffers.sites.undecided(c), &columns[c], score);
    }
}

/// Adds up which tiers have decided the sites of a tile.
#[inline(always)]
fn count(sites: &Sites, tiers: &mut Tiers) {
    let mut ones = [0; TIERS];
    for tier in 0..TIERS {
        // Four columns at a time.
        for quad in sites.decided[tier].as_chunks::<4>().0 {
            let mut word = 0;
            for i in (0..4).rev() {
                word = word << LANES | u64::from(quad[i]);
            }
            ones[tier] += u64::from(word.count_ones());
        }
    }
    tiers.h_free += ones[bounds::H_FREE];
    tiers.linear += ones[bounds::LINEAR];
    tiers.jensen += ones[bounds::JENSEN];
    tiers.moments += ones[bounds::MOMENTS];
    tiers.logarithms += ones[bounds::LOGARITHMS];
}

/// Carries out the decisions for a tile of one column in the order of its sites, up to the first that changes. Whether
/// sites are left after that one which must be looked at again.
#[inline(always)]
fn carry_out<P: Proposal, V: Lanes>(
    job: &Sweep<'_, P>,
    t: usize,
    tile: usize,
    c: usize,
    on: &mut [u16],
    values: &mut [Tile],
    columns: &mut [Work],
    buffers: &mut Buffers,
    tiers: &mut Tiers,
) -> bool {
    let sites = &mut buffers.sites;
    let (status, rest) = (on[tile], sites.rest[c]);
    let mut forced = 0;
    let mut pending = (sites.undecided(c) | sites.changes[c]) & rest;
    if columns[c].lonely() {
        // The only component cannot go off; if there is none, the next one must come on.
        let alone = columns[c].active == 1;
        forced = if alone { status & rest } else { rest & rest.wrapping_neg() };
        pending = if alone { pending & !forced } else { forced };
    }
    let mut settled = rest;
    let mut flipped = None;
    while pending != 0 {
        let lane = pending.trailing_zeros() as usize;
        let bit = pending & pending.wrapping_neg();
        pending &= !bit;
        let k = tile * LANES + lane;
        let changes = if forced & bit != 0 {
            if !P::KNOWN && sites.drawn[c] & bit == 0 {
                values[tile].0[lane] = job.proposal.draw(t, k);
                sites.drawn[c] |= bit;
            }
            true
        } else if sites.changes[c] & bit != 0 {
            true
        } else {
            tiers.exact += 1;
            let column = ActiveColumn { on, values: flat(values) };
            exact_rule::<P, V>(job, t, k, column.values[k], column, &mut buffers.others)
                != (status & bit != 0)
        };
        if changes {
            settled = rest & (bit | (bit - 1));
            flipped = Some(k);
            break;
        }
    }
    tiers.forced += u64::from((forced & settled).count_ones());
    sites.forget(c, forced & settled);
    sites.rest[c] = rest & !settled;
    let Some(k) = flipped else { return false };
    tiers.flips += 1;
    flip::<P, V>(job, k, c, on, values, columns, buffers);
    // A rate that has grown only confirms the sites that are off, one that has shrunk those that are on.
    let sites = &mut buffers.sites;
    let came_on = on[tile] >> (k % LANES) & 1 == 1;
    let confirmed = if came_on { !status } else { status } & !sites.changes[c];
    sites.forget(c, sites.rest[c] & !confirmed);
    sites.undecided(c) != 0 || (sites.rest[c] != 0 && columns[c].lonely())
}

/// Changes a site and brings the column up to date.
#[inline(always)]
fn flip<P: Proposal, V: Lanes>(
    job: &Sweep<'_, P>,
    k: usize,
    c: usize,
    on: &mut [u16],
    values: &[Tile],
    columns: &mut [Work],
    buffers: &mut Buffers,
) {
    let (tile, lane) = (k / LANES, k % LANES);
    let work = &mut columns[c];
    let h = values[tile].0[lane];
    on[tile] ^= 1 << lane;
    let is_on = on[tile] >> lane & 1 == 1;
    let w = work.component(job.dictionary, k, &mut buffers.gathered);
    let column = ActiveColumn { on, values: flat(values) };
    work.switch::<V>(job.counts, job.dictionary, (k, w), h, is_on, column);
    buffers.stale |= 1 << c;
}
