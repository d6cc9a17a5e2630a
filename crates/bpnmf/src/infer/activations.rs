//! S and H: which components are on in a column, and how strongly. H is kept where S is on.

use super::dictionary::tiles_of;
use crate::kernel::{LANES, Tile, flat, flat_mut};

/// The mask S (one bit a site) and the activations H of T columns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Activations {
    components: usize,
    tiles: usize,
    /// Bit i of `on[t * tiles + j]` is S of component 16 j + i in column t.
    on: Vec<u16>,
    /// H, sixteen components a tile; only entries that are on mean anything.
    values: Vec<Tile>,
}

/// One column of [`Activations`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActiveColumn<'a> {
    pub(crate) on: &'a [u16],
    pub(crate) values: &'a [f32],
}

impl<'a> ActiveColumn<'a> {
    /// The components that are on, increasing, with their activation.
    #[inline(always)]
    pub(crate) fn iter(self) -> impl Iterator<Item = (usize, f32)> + 'a {
        ones(self.on).map(move |k| (k, self.values[k]))
    }

    /// The same, into a list that is there already.
    #[inline(always)]
    pub(crate) fn list(self, parts: &mut Vec<(usize, f32)>) {
        parts.clear();
        for (quad, words) in self.on.chunks(QUAD).enumerate() {
            let mut rest = sites_of(words);
            while rest != 0 {
                let k = quad * QUAD * LANES + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                parts.push((k, self.values[k]));
            }
        }
    }
}

/// Words of the mask that are looked at together: the end of every run of bits is a branch that the processor guesses
/// wrongly.
pub(crate) const QUAD: usize = 4;

/// Up to [`QUAD`] words of the mask as one.
#[inline(always)]
pub(crate) fn sites_of(words: &[u16]) -> u64 {
    words.iter().rev().fold(0, |sites, &word| sites << LANES | u64::from(word))
}

/// The positions of the bits that are set, increasing.
#[inline(always)]
pub(crate) fn ones(words: &[u16]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(tile, &word)| {
        let mut rest = word;
        core::iter::from_fn(move || {
            (rest != 0).then(|| {
                let lane = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                tile * LANES + lane
            })
        })
    })
}

impl Activations {
    /// All off.
    pub(crate) fn new(components: usize, observations: usize) -> Self {
        let tiles = tiles_of(components);
        Self {
            components,
            tiles,
            on: vec![0; tiles * observations],
            values: vec![Tile::ZERO; tiles * observations],
        }
    }

    pub(crate) fn components(&self) -> usize {
        self.components
    }

    pub(crate) fn observations(&self) -> usize {
        self.on.len() / self.tiles
    }

    /// Words of `on`, and tiles of `values`, in a column.
    pub(crate) fn tiles(&self) -> usize {
        self.tiles
    }

    #[inline(always)]
    pub(crate) fn column(&self, t: usize) -> ActiveColumn<'_> {
        let range = t * self.tiles..(t + 1) * self.tiles;
        ActiveColumn { on: &self.on[range.clone()], values: flat(&self.values[range]) }
    }

    /// The words and tiles of columns `from .. to`, for writing.
    pub(crate) fn columns_mut(&mut self, from: usize, to: usize) -> (&mut [u16], &mut [Tile]) {
        let range = from * self.tiles..to * self.tiles;
        (&mut self.on[range.clone()], &mut self.values[range])
    }

    /// H_kt S_kt.
    pub(crate) fn at(&self, k: usize, t: usize) -> f32 {
        let column = self.column(t);
        if column.on[k / LANES] >> (k % LANES) & 1 == 1 { column.values[k] } else { 0.0 }
    }

    /// Makes column `t` that of `other`, which has the same components, at `from`.
    pub(crate) fn copy_column(&mut self, t: usize, other: &Self, from: usize) {
        let (to, from) = (t * self.tiles..(t + 1) * self.tiles, from * self.tiles..(from + 1) * self.tiles);
        self.on[to.clone()].copy_from_slice(&other.on[from.clone()]);
        self.values[to].copy_from_slice(&other.values[from]);
    }

    /// Sets one site.
    pub(crate) fn set(&mut self, k: usize, t: usize, activation: Option<f32>) {
        let (word, bit) = (t * self.tiles + k / LANES, 1 << (k % LANES));
        match activation {
            Some(value) => {
                self.on[word] |= bit;
                flat_mut(&mut self.values)[t * self.tiles * LANES + k] = value;
            }
            None => self.on[word] &= !bit,
        }
    }

    /// The number of columns each component is on in.
    pub(crate) fn usage(&self) -> Vec<u32> {
        let mut usage = vec![0; self.components];
        for words in self.on.chunks_exact(self.tiles) {
            for k in ones(words) {
                usage[k] += 1;
            }
        }
        usage
    }

    /// The activations of the given components, in that order.
    pub(crate) fn selected(&self, kept: &[usize]) -> Self {
        let observations = self.observations();
        let mut out = Self::new(kept.len(), observations);
        for t in 0..observations {
            let column = self.column(t);
            for (new, &old) in kept.iter().enumerate() {
                if column.on[old / LANES] >> (old % LANES) & 1 == 1 {
                    out.set(new, t, Some(column.values[old]));
                }
            }
        }
        out
    }
}
