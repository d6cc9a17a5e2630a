//! W in double precision, as the allocation of dense columns reads it. Made once for all columns.

use crate::infer::dictionary::Dictionary;
use crate::kernel::LANES;
use crate::kernel::doubles::{EIGHT, Line};

/// Tiles of features that are handled at once. Their W, for all components, should fit into the first cache.
pub(super) const CHUNK: usize = 4;

/// Tiles that are handled next when so many are left: a single one that comes last costs nearly as much as four.
#[inline(always)]
pub(super) fn width(left: usize) -> usize {
    if left <= CHUNK + 1 { left } else { CHUNK }
}

/// W, a few tiles of features after the other, all components of each.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Doubled {
    components: usize,
    /// From `2 * components * at` on, tiles `at .. at + width` of the first component, of the second and so on.
    lines: Vec<Line>,
}

impl Doubled {
    /// Takes over W.
    pub(crate) fn fill(&mut self, dictionary: &Dictionary) {
        let tiles = dictionary.features().div_ceil(LANES);
        self.components = dictionary.components();
        self.lines.resize(2 * self.components * tiles, Line::ZERO);
        let (mut at, mut rest) = (0, &mut self.lines[..]);
        while at < tiles {
            let width = width(tiles - at);
            let (chunk, behind) = rest.split_at_mut(2 * self.components * width);
            for (k, lines) in chunk.chunks_exact_mut(2 * width).enumerate() {
                let w = &dictionary.row_tiles(k)[at..at + width];
                for (pair, w) in lines.chunks_exact_mut(2).zip(w) {
                    for i in 0..LANES {
                        pair[i / EIGHT].0[i % EIGHT] = f64::from(w.0[i]);
                    }
                }
            }
            (at, rest) = (at + width, behind);
        }
    }

    /// Tiles `at .. at + N` of every component; there must be such a chunk.
    #[inline(always)]
    pub(super) fn chunk<const N: usize>(&self, at: usize) -> &[[[Line; 2]; N]] {
        let lines = &self.lines[2 * self.components * at..][..2 * self.components * N];
        let (pairs, _) = lines.as_chunks();
        pairs.as_chunks().0
    }
}
