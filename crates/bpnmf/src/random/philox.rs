//! Philox4x32-10 (Salmon et al. 2011): 128 bits out of a 128-bit counter and a 64-bit key.

use crate::kernel::LANES;

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const INCREMENTS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

#[inline(always)]
fn wide(a: u32, b: u32) -> (u32, u32) {
    let product = u64::from(a) * u64::from(b);
    ((product >> 32) as u32, product as u32)
}

/// One block.
#[inline(always)]
pub(crate) fn block(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (mut c, mut k) = (counter, key);
    for _ in 0..ROUNDS {
        let (high0, low0) = wide(MULTIPLIERS[0], c[0]);
        let (high1, low1) = wide(MULTIPLIERS[1], c[2]);
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0];
        k = [k[0].wrapping_add(INCREMENTS[0]), k[1].wrapping_add(INCREMENTS[1])];
    }
    c
}

/// Sixteen blocks whose counters differ in the last word only: `last .. last + 16`. Word w of block i is `out[w][i]`.
#[inline(always)]
pub(crate) fn lanes(counter: [u32; 3], last: u32, key: [u32; 2], out: &mut [[u32; LANES]; 4]) {
    *out = blocks([counter[0], counter[1]], |i| [counter[2], last.wrapping_add(i as u32)], key);
}

/// Blocks whose counters differ in the last two words only, which are `last(i)` for block i. Plain code, with a product in every
/// 64-bit element: it vectorises on any machine.
#[inline(always)]
pub(crate) fn blocks<const N: usize>(
    counter: [u32; 2],
    last: impl Fn(usize) -> [u32; 2],
    key: [u32; 2],
) -> [[u32; N]; 4] {
    let mut out = [[0; N]; 4];
    for i in 0..N {
        // Words are in the low halves; nothing reads the high ones.
        let last = last(i);
        let mut c = [counter[0], counter[1], last[0], last[1]].map(u64::from);
        let mut k = key;
        for _ in 0..ROUNDS {
            let product0 = (c[0] & u64::from(u32::MAX)) * u64::from(MULTIPLIERS[0]);
            let product1 = (c[2] & u64::from(u32::MAX)) * u64::from(MULTIPLIERS[1]);
            c = [
                (product1 >> 32) ^ c[1] ^ u64::from(k[0]),
                product1,
                (product0 >> 32) ^ c[3] ^ u64::from(k[1]),
                product0,
            ];
            k = [k[0].wrapping_add(INCREMENTS[0]), k[1].wrapping_add(INCREMENTS[1])];
        }
        for w in 0..4 {
            out[w][i] = c[w] as u32;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known-answer vectors published with the generator.
    #[test]
    fn blocks_equal_the_published_answers() {
        assert_eq!(block([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(block([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            block([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn blocks_side_by_side_equal_single_blocks() {
        let last = |i: usize| [77 + i as u32, (i as u32).wrapping_mul(0x9E37_79B9).wrapping_sub(3)];
        let out = blocks::<LANES>([3, 1 << 31], last, [u32::MAX - 1, 8]);
        for i in 0..LANES {
            let [third, fourth] = last(i);
            let single = block([3, 1 << 31, third, fourth], [u32::MAX - 1, 8]);
            assert_eq!([0, 1, 2, 3].map(|w| out[w][i]), single);
        }
    }

    #[test]
    fn lanes_equal_single_blocks() {
        let mut out = [[0; LANES]; 4];
        lanes([3, 1 << 31, 77], u32::MAX - 4, [9, 8], &mut out);
        for i in 0..LANES {
            let single = block([3, 1 << 31, 77, (u32::MAX - 4).wrapping_add(i as u32)], [9, 8]);
            assert_eq!([0, 1, 2, 3].map(|w| out[w][i]), single);
        }
    }
}
