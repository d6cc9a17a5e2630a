//! Rows of tiles, a few of them at a time: as many sums as there are registers for.

use crate::kernel::{Lanes, Tile};

/// How many tiles come next when so many are left: as many sums as it takes to hide the latency of one. Their W, for all
/// components, should fit into the first cache. A single tile that comes last costs nearly as much as a chunk.
#[inline(always)]
pub(super) fn width<V: Lanes>(left: usize) -> usize {
    if left <= V::CHUNK + 1 { left } else { V::CHUNK }
}

/// Runs `$run` for every chunk of `$tiles` tiles of lanes `V`; `$width` is how many it has, a constant, `$at` is the first
/// of them.
macro_rules! for_each_chunk {
    ($tiles:expr, $at:ident, $width:ident => $run:expr) => {{
        let (mut $at, tiles) = (0, $tiles);
        while $at < tiles {
            let width = $crate::infer::chunks::width::<V>(tiles - $at);
            $crate::infer::chunks::for_each_chunk!(@ width, $width, $run, 1 2 3 4 5 6 7 8 9);
            $at += width;
        }
    }};
    (@ $of:ident, $width:ident, $run:expr, $($number:literal)*) => {
        match $of {
            $($number => {
                const $width: usize = $number;
                $run
            })*
            _ => unreachable!("no chunk is wider"),
        }
    };
}
pub(super) use for_each_chunk;

/// The `N` tiles from tile `at` on.
#[inline(always)]
pub(super) fn chunk<const N: usize>(tiles: &[Tile], at: usize) -> &[Tile; N] {
    tiles[at..].first_chunk().expect("padded to tiles")
}

/// The same for writing.
#[inline(always)]
pub(super) fn chunk_mut<const N: usize>(tiles: &mut [Tile], at: usize) -> &mut [Tile; N] {
    tiles[at..].first_chunk_mut().expect("padded to tiles")
}
