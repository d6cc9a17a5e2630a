//! W, laid out for its two readers: a component after the other, and in tiles of sixteen components.

use crate::counts::Unexposed;
use crate::kernel::{LANES, Tile, flat, flat_mut};

/// The smallest value an entry of W or H may have: small-shape gamma draws underflow, and a rate of exactly
/// zero under a count would be a different model.
pub(crate) const SMALLEST: f32 = f32::MIN_POSITIVE;

/// The largest value an entry may have, so that no product of W, H and a count leaves the range of f32.
const LARGEST: f32 = 1e18;

/// A draw as the nearest f32 a sweep can work with.
#[inline(always)]
pub(crate) fn stored(value: f64) -> f32 {
    (value as f32).clamp(SMALLEST, LARGEST)
}

/// The number of tiles that hold `components`.
pub(crate) fn tiles_of(components: usize) -> usize {
    components.div_ceil(LANES)
}

/// W (F x K) with the sum of every component.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dictionary {
    features: usize,
    components: usize,
    /// Tiles that one component takes in `rows`.
    row_tiles: usize,
    /// Component k is `rows[k * row_tiles ..]`, features side by side, padded with zeros.
    rows: Vec<Tile>,
    /// Feature f of components 16 i .. 16 i + 16 is `tiled[i * features + f]`.
    tiled: Vec<Tile>,
    sums: Vec<f64>,
    sum_tiles: Vec<Tile>,
    inverse_sum_tiles: Vec<Tile>,
}

impl Dictionary {
    pub(crate) fn new(features: usize, components: usize) -> Self {
        let row_tiles = features.div_ceil(LANES);
        let tiles = tiles_of(components);
        Self {
            features,
            components,
            row_tiles,
            rows: vec![Tile::ZERO; components * row_tiles],
            tiled: vec![Tile::ZERO; tiles * features],
            sums: vec![0.0; components],
            sum_tiles: vec![Tile::ZERO; tiles],
            inverse_sum_tiles: vec![Tile::ZERO; tiles],
        }
    }

    pub(crate) fn components(&self) -> usize {
        self.components
    }

    pub(crate) fn features(&self) -> usize {
        self.features
    }

    /// W_.k, length F.
    #[inline(always)]
    pub(crate) fn row(&self, k: usize) -> &[f32] {
        &flat(&self.rows[k * self.row_tiles..][..self.row_tiles])[..self.features]
    }

    /// W_.k padded with zeros to whole tiles.
    #[inline(always)]
    pub(crate) fn row_tiles(&self, k: usize) -> &[Tile] {
        &self.rows[k * self.row_tiles..][..self.row_tiles]
    }

    /// `N` tiles of W_.k from tile `at` on.
    #[inline(always)]
    pub(crate) fn row_chunk<const N: usize>(&self, k: usize, at: usize) -> &[Tile; N] {
        let (from, last) = (k * self.row_tiles + at, self.rows.len().checked_sub(N));
        assert!(last.is_some_and(|last| from <= last), "padded to tiles");
        // SAFETY: N tiles from `from` on are within `rows`, says the assertion. Slices would be checked twice, and this is
        // done for every few products.
        unsafe { &*self.rows.as_ptr().add(from).cast() }
    }

    /// All rows for writing, each padded; call [`Self::settle`] afterwards.
    pub(crate) fn rows_mut(&mut self) -> core::slice::ChunksExactMut<'_, Tile> {
        self.rows.chunks_exact_mut(self.row_tiles)
    }

    /// One row for writing; call [`Self::settle`] afterwards.
    pub(crate) fn row_mut(&mut self, k: usize) -> &mut [f32] {
        &mut flat_mut(&mut self.rows[k * self.row_tiles..][..self.row_tiles])[..self.features]
    }

    /// Brings sums and tiles up to date with the rows.
    pub(crate) fn settle(&mut self) {
        for tile in 0..self.sum_tiles.len() {
            let first = tile * LANES;
            let lanes = LANES.min(self.components - first);
            let tiled = &mut self.tiled[tile * self.features..][..self.features];
            for lane in 0..lanes {
                let k = first + lane;
                let row = &flat(&self.rows[k * self.row_tiles..][..self.row_tiles])[..self.features];
                let mut sum = 0.0;
                for f in 0..row.len() {
                    tiled[f].0[lane] = row[f];
                    sum += f64::from(row[f]);
                }
                self.sums[k] = sum;
                self.sum_tiles[tile].0[lane] = sum as f32;
                self.inverse_sum_tiles[tile].0[lane] = (1.0 / sum) as f32;
            }
        }
    }

    /// The lanes of a tile that hold components; none if there is no such tile.
    #[inline(always)]
    pub(crate) fn lanes(&self, tile: usize) -> u16 {
        let lanes = self.components.saturating_sub(tile * LANES).min(LANES);
        ((1u32 << lanes) - 1) as u16
    }

    /// Feature f of sixteen components is element f.
    #[inline(always)]
    pub(crate) fn tile(&self, tile: usize) -> &[Tile] {
        &self.tiled[tile * self.features..][..self.features]
    }

    /// The sum over f of W_fk.
    #[inline(always)]
    pub(crate) fn sum(&self, k: usize) -> f64 {
        self.sums[k]
    }

    /// The sum over f of W_fk times the exposure of f.
    #[inline(always)]
    pub(crate) fn observed_sum(&self, k: usize, unexposed: Unexposed<'_>) -> f64 {
        if unexposed.is_empty() {
            return self.sums[k];
        }
        (self.sums[k] - self.lost_sum(k, unexposed)).max(0.0)
    }

    /// The sum over f of W_fk times the exposure that f has lost.
    pub(crate) fn lost_sum(&self, k: usize, unexposed: Unexposed<'_>) -> f64 {
        let row = self.row(k);
        unexposed.iter().fold(0.0, |sum, (f, lost)| sum + f64::from(row[f]) * lost)
    }

    /// [`Self::observed_sum`] of the components of a tile, and one over it.
    #[inline(always)]
    pub(crate) fn observed_sum_tiles(&self, tile: usize, unexposed: Unexposed<'_>) -> [Tile; 2] {
        let (w, mut lost_sums) = (self.tile(tile), [0.0; LANES]);
        for (f, lost) in unexposed.iter() {
            for lane in 0..LANES {
                lost_sums[lane] += f64::from(w[f].0[lane]) * lost;
            }
        }
        let (mut sums, mut inverses) = (Tile::ZERO, Tile::ZERO);
        for k in tile * LANES..self.components.min((tile + 1) * LANES) {
            let sum = (self.sums[k] - lost_sums[k % LANES]).max(0.0);
            sums.0[k % LANES] = sum as f32;
            // What is left of a difference may be nothing, and 0 times infinity is no number.
            inverses.0[k % LANES] = (1.0 / sum).min(f64::from(f32::MAX)) as f32;
        }
        [sums, inverses]
    }

    #[inline(always)]
    pub(crate) fn sum_tile(&self, tile: usize) -> &Tile {
        &self.sum_tiles[tile]
    }

    #[inline(always)]
    pub(crate) fn inverse_sum_tile(&self, tile: usize) -> &Tile {
        &self.inverse_sum_tiles[tile]
    }

    /// The dictionary of the given components, in that order.
    pub(crate) fn selected(&self, kept: &[usize]) -> Self {
        let mut out = Self::new(self.features, kept.len());
        for (new, &old) in kept.iter().enumerate() {
            out.row_mut(new).copy_from_slice(self.row(old));
        }
        out.settle();
        out
    }
}
