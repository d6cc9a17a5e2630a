//! Sixteen lanes on AVX2 with FMA.

use super::{LANES, Lanes, Simd, WORDS};
use core::arch::x86_64::*;

/// Lanes in two 256-bit registers.
#[derive(Clone, Copy)]
pub(crate) struct Avx2([__m256; 2]);

/// Applies instructions to both halves. A macro, for a closure need not become part of its caller, and one that does not is
/// not compiled for these instructions.
macro_rules! both {
    ($($name:ident = $lanes:expr),+ => $half:expr) => {{
        $(let $name = $lanes.0;)+
        let mut out = [_mm256_setzero_ps(); 2];
        for i in 0..2 {
            $(let $name = $name[i];)+
            out[i] = $half;
        }
        Avx2(out)
    }};
}

impl Avx2 {
    /// The registers.
    #[inline(always)]
    pub(crate) fn registers(self) -> [__m256; 2] {
        self.0
    }

    /// About 1 / self, and 1 - self times that.
    #[inline(always)]
    fn estimate(self) -> (Self, Self) {
        // SAFETY: as for all of this file, see below.
        unsafe {
            let rough = [_mm256_rcp_ps(self.0[0]), _mm256_rcp_ps(self.0[1])];
            let mut miss = [_mm256_set1_ps(1.0); 2];
            for i in 0..2 {
                miss[i] = _mm256_fnmadd_ps(self.0[i], rough[i], miss[i]);
            }
            (Self(rough), Self(miss))
        }
    }
}

/// All bits of lane i are those of bit i of `mask`.
#[inline(always)]
fn lanes_of(mask: u16) -> Avx2 {
    // SAFETY: as for all of this file, see below.
    unsafe {
        let (mut out, bits) = ([_mm256_setzero_ps(); 2], _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128));
        for i in 0..2 {
            let set = _mm256_and_si256(_mm256_set1_epi32(i32::from(mask >> (8 * i))), bits);
            out[i] = _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, bits));
        }
        Avx2(out)
    }
}

/// The positions of the bits that are set in a byte, one after the other.
const POSITIONS: [u64; 256] = {
    let (mut out, mut byte) = ([0; 256], 0);
    while byte < 256 {
        let (mut bit, mut n) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                out[byte] |= (bit as u64) << (8 * n);
                n += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    out
};

/// Writes word i for every bit i of `mask` that is set, one after the other; what comes after them is spoilt.
#[inline(always)]
fn compress(mask: u16, words: [__m256i; 2], out: &mut [u32; LANES]) {
    let [low, high] = mask.to_le_bytes();
    // SAFETY: as for all of this file, see below; a byte has at most eight bits, so the second half ends within `out`.
    unsafe {
        let (bytes, at) = ([low, high], [0, low.count_ones() as usize]);
        for i in 0..2 {
            let positions = _mm_cvtsi64_si128(POSITIONS[usize::from(bytes[i])] as i64);
            let kept = _mm256_permutevar8x32_epi32(words[i], _mm256_cvtepu8_epi32(positions));
            _mm256_storeu_si256(out.as_mut_ptr().add(at[i]).cast(), kept);
        }
    }
}

/// All lanes of each of four folded into one.
macro_rules! folded {
    ($of:expr, $wide:ident) => {{
        let (mut out, mut pairs) = ([0.0; 4], [_mm256_setzero_pd(); 2]);
        // Lanes of two take turns, then those of four.
        for i in 0..2 {
            let [a, b] = [$of[2 * i].0, $of[2 * i + 1].0];
            let (a, b) = ($wide(a[0], a[1]), $wide(b[0], b[1]));
            pairs[i] = _mm256_castps_pd($wide(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)));
        }
        let low = _mm256_castpd_ps(_mm256_unpacklo_pd(pairs[0], pairs[1]));
        let quads = $wide(low, _mm256_castpd_ps(_mm256_unpackhi_pd(pairs[0], pairs[1])));
        let all = $wide(quads, _mm256_permute2f128_ps::<1>(quads, quads));
        _mm_storeu_ps(out.as_mut_ptr(), _mm256_castps256_ps128(all));
        out
    }};
}

// SAFETY of every block below: as for `Avx512`, with AVX2 and FMA.
#[expect(clippy::undocumented_unsafe_blocks, reason = "one comment above serves them all")]
impl Lanes for Avx2 {
    const SIMD: Simd = Simd::Avx2;
    const FUSES: bool = true;
    const COLUMNS: usize = 4;
    const TILES: usize = 1;
    const CHUNK: usize = 6;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        let half = unsafe { _mm256_set1_ps(value) };
        Self([half, half])
    }
    #[inline(always)]
    fn load(at: &[f32]) -> Self {
        assert!(at.len() >= LANES);
        unsafe { Self([_mm256_loadu_ps(at.as_ptr()), _mm256_loadu_ps(at.as_ptr().add(8))]) }
    }
    #[inline(always)]
    fn store(self, at: &mut [f32; LANES]) {
        unsafe {
            _mm256_storeu_ps(at.as_mut_ptr(), self.0[0]);
            _mm256_storeu_ps(at.as_mut_ptr().add(8), self.0[1]);
        }
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        unsafe { both!(a = self, b = other => _mm256_add_ps(a, b)) }
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        unsafe { both!(a = self, b = other => _mm256_sub_ps(a, b)) }
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        unsafe { both!(a = self, b = other => _mm256_mul_ps(a, b)) }
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        unsafe { both!(a = self, b = other => _mm256_div_ps(a, b)) }
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        unsafe { both!(x = self, a = a, b = b => _mm256_fmadd_ps(x, a, b)) }
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        unsafe { both!(a = self, b = other => _mm256_max_ps(a, b)) }
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        unsafe { both!(a = self, b = other => _mm256_min_ps(a, b)) }
    }
    #[inline(always)]
    fn le(self, other: Self) -> u16 {
        unsafe {
            let low = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(self.0[0], other.0[0]));
            let high = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LE_OQ>(self.0[1], other.0[1]));
            (low | high << 8) as u16
        }
    }
    #[inline(always)]
    fn gt(self, other: Self) -> u16 {
        unsafe {
            let low = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(self.0[0], other.0[0]));
            let high = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(self.0[1], other.0[1]));
            (low | high << 8) as u16
        }
    }
    #[inline(always)]
    fn from_words(words: &[u32; LANES]) -> Self {
        // AVX2 has no conversion of unsigned words: both halves of them are numbers, and their sum is rounded once.
        let mut out = Self::splat(0.0);
        for i in 0..2 {
            unsafe {
                let word = _mm256_loadu_si256(words.as_ptr().add(8 * i).cast());
                let high = _mm256_cvtepi32_ps(_mm256_srli_epi32::<16>(word));
                let low = _mm256_cvtepi32_ps(_mm256_and_si256(word, _mm256_set1_epi32(0xffff)));
                out.0[i] = _mm256_fmadd_ps(high, _mm256_set1_ps(65536.0), low);
            }
        }
        out
    }
    #[inline(always)]
    fn power(self) -> (Self, Self) {
        let (mut exponents, mut powers) = (self, self);
        for i in 0..2 {
            unsafe {
                let bits = _mm256_sub_epi32(_mm256_castps_si256(self.0[i]), _mm256_set1_epi32(0x3f40_0000));
                let shifted = _mm256_and_si256(bits, _mm256_set1_epi32(-0x0080_0000));
                let power = _mm256_sub_epi32(_mm256_set1_epi32(0x3f80_0000), shifted);
                exponents.0[i] = _mm256_cvtepi32_ps(shifted);
                powers.0[i] = _mm256_castsi256_ps(power);
            }
        }
        (exponents, powers)
    }
    #[inline(always)]
    fn abs(self) -> Self {
        unsafe { both!(a = self => _mm256_andnot_ps(_mm256_set1_ps(-0.0), a)) }
    }
    #[inline(always)]
    fn rough_reciprocal(self) -> Self {
        // The machine's own estimate has twelve bits only: a step of Newton's, in half the time of a division.
        let (rough, miss) = self.estimate();
        rough.mul_add(miss, rough)
    }
    #[inline(always)]
    fn reciprocal(self) -> Self {
        // A step of the third order.
        let (rough, miss) = self.estimate();
        rough.mul_add(miss.mul_add(miss, miss), rough)
    }
    #[inline(always)]
    fn where_positive(self, x: Self) -> Self {
        unsafe {
            both!(a = self, x = x => _mm256_and_ps(a, _mm256_cmp_ps::<_CMP_GT_OQ>(x, _mm256_setzero_ps())))
        }
    }
    #[inline(always)]
    fn negate_where(self, mask: u16) -> Self {
        let sign = unsafe { _mm256_set1_ps(-0.0) };
        unsafe { both!(a = self, set = lanes_of(mask) => _mm256_xor_ps(a, _mm256_and_ps(set, sign))) }
    }
    #[inline(always)]
    fn select(mask: u16, a: Self, b: Self) -> Self {
        unsafe { both!(a = a, b = b, set = lanes_of(mask) => _mm256_blendv_ps(b, a, set)) }
    }
    #[inline(always)]
    fn list(mask: u16, first: u32, out: &mut [u32; LANES]) {
        unsafe {
            let numbers =
                _mm256_add_epi32(_mm256_set1_epi32(first as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            let second = _mm256_add_epi32(numbers, _mm256_set1_epi32(8));
            compress(mask, [numbers, second], out);
        }
    }
    #[inline(always)]
    fn keep(mask: u16, words: &[u32; LANES], out: &mut [u32; LANES]) {
        unsafe {
            let low = _mm256_loadu_si256(words.as_ptr().cast());
            let high = _mm256_loadu_si256(words.as_ptr().add(8).cast());
            compress(mask, [low, high], out);
        }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        unsafe {
            let half = _mm256_add_ps(self.0[0], self.0[1]);
            let quad = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps::<1>(half));
            let pair = _mm_add_ps(quad, _mm_movehl_ps(quad, quad));
            _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)))
        }
    }
    #[inline(always)]
    fn sums(of: [Self; 4]) -> [f32; 4] {
        unsafe { folded!(of, _mm256_add_ps) }
    }
    #[inline(always)]
    fn largest(self) -> f32 {
        unsafe {
            let half = _mm256_max_ps(self.0[0], self.0[1]);
            let quad = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps::<1>(half));
            let pair = _mm_max_ps(quad, _mm_movehl_ps(quad, quad));
            _mm_cvtss_f32(_mm_max_ps(pair, _mm_movehdup_ps(pair)))
        }
    }
    #[inline(always)]
    fn largests(of: [Self; 4]) -> [f32; 4] {
        unsafe { folded!(of, _mm256_max_ps) }
    }
    #[inline(always)]
    fn compare_words(words: &[u16; WORDS], with: u16) -> [u32; 2] {
        unsafe {
            let low = _mm256_loadu_si256(words.as_ptr().cast());
            let high = _mm256_loadu_si256(words.as_ptr().add(WORDS / 2).cast());
            let with = _mm256_set1_epi16(with as i16);
            let larger = [_mm256_max_epu16(low, with), _mm256_max_epu16(high, with)];
            let not_above =
                _mm256_packs_epi16(_mm256_cmpeq_epi16(larger[0], with), _mm256_cmpeq_epi16(larger[1], with));
            let equal = _mm256_packs_epi16(_mm256_cmpeq_epi16(low, with), _mm256_cmpeq_epi16(high, with));
            let less = _mm256_andnot_si256(equal, not_above);
            // Packing has taken turns between the halves of both registers.
            [
                _mm256_movemask_epi8(_mm256_permute4x64_epi64::<0b11_01_10_00>(less)) as u32,
                _mm256_movemask_epi8(_mm256_permute4x64_epi64::<0b11_01_10_00>(equal)) as u32,
            ]
        }
    }
    #[inline(always)]
    fn compare_half(words: &[u16; WORDS], with: u16) -> [u32; 2] {
        unsafe {
            let words = _mm256_loadu_si256(words.as_ptr().cast());
            let with = _mm256_set1_epi16(with as i16);
            let equal = _mm256_cmpeq_epi16(words, with);
            let not_above = _mm256_cmpeq_epi16(_mm256_max_epu16(words, with), with);
            // Eight bits of each, then the other eight.
            let both = _mm256_movemask_epi8(_mm256_packs_epi16(not_above, equal)) as u32;
            let not_above = both & 0xff | both >> 8 & 0xff00;
            let equal = both >> 8 & 0xff | both >> 16 & 0xff00;
            [not_above & !equal, equal]
        }
    }
    #[inline(always)]
    fn add_exact_product(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
}
