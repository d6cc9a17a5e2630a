//! Sixteen lanes on AVX-512.

use super::{LANES, Lanes, Simd, Tile, WORDS};
use core::arch::x86_64::*;

/// Lanes in one 512-bit register.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512);

impl Avx512 {
    #[inline(always)]
    pub(crate) fn register(self) -> __m512 {
        self.0
    }
}

// SAFETY of every block below: an `Avx512` is only made inside functions that `dispatch!` compiled for AVX-512 and
// calls after asking the machine for it; loads and stores take references to sixteen values,
// and gathers do not go beyond the end.
#[expect(clippy::undocumented_unsafe_blocks, reason = "one comment above serves them all")]
impl Lanes for Avx512 {
    const SIMD: Simd = Simd::Avx512;
    const FUSES: bool = true;
    const COLUMNS: usize = 8;
    const TILES: usize = 2;
    const CHUNK: usize = 8;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self(unsafe { _mm512_set1_ps(value) })
    }
    #[inline(always)]
    fn load(at: &[f32]) -> Self {
        assert!(at.len() >= LANES);
        Self(unsafe { _mm512_loadu_ps(at.as_ptr()) })
    }
    #[inline(always)]
    fn store(self, at: &mut [f32; LANES]) {
        unsafe { _mm512_storeu_ps(at.as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(unsafe { _mm512_add_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(unsafe { _mm512_sub_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(unsafe { _mm512_mul_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        Self(unsafe { _mm512_div_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        Self(unsafe { _mm512_fmadd_ps(self.0, a.0, b.0) })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self(unsafe { _mm512_max_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self(unsafe { _mm512_min_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn le(self, other: Self) -> u16 {
        unsafe { _mm512_cmp_ps_mask::<_CMP_LE_OQ>(self.0, other.0) }
    }
    #[inline(always)]
    fn gt(self, other: Self) -> u16 {
        unsafe { _mm512_cmp_ps_mask::<_CMP_GT_OQ>(self.0, other.0) }
    }
    #[inline(always)]
    fn from_words(words: &[u32; LANES]) -> Self {
        unsafe { Self(_mm512_cvtepu32_ps(_mm512_loadu_si512(words.as_ptr().cast()))) }
    }
    #[inline(always)]
    fn power(self) -> (Self, Self) {
        unsafe {
            let bits = _mm512_sub_epi32(_mm512_castps_si512(self.0), _mm512_set1_epi32(0x3f40_0000));
            let shifted = _mm512_and_si512(bits, _mm512_set1_epi32(-0x0080_0000));
            let power = _mm512_sub_epi32(_mm512_set1_epi32(0x3f80_0000), shifted);
            (Self(_mm512_cvtepi32_ps(shifted)), Self(_mm512_castsi512_ps(power)))
        }
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Self(unsafe { _mm512_abs_ps(self.0) })
    }
    #[inline(always)]
    fn rough_reciprocal(self) -> Self {
        Self(unsafe { _mm512_rcp14_ps(self.0) })
    }
    #[inline(always)]
    fn reciprocal(self) -> Self {
        // A step of Newton's: several times as fast as a division.
        let rough = self.rough_reciprocal();
        let miss = unsafe { _mm512_fnmadd_ps(self.0, rough.0, _mm512_set1_ps(1.0)) };
        rough.mul_add(Self(miss), rough)
    }
    #[inline(always)]
    fn where_positive(self, x: Self) -> Self {
        unsafe {
            let positive = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(x.0, _mm512_setzero_ps());
            Self(_mm512_maskz_mov_ps(positive, self.0))
        }
    }
    #[inline(always)]
    fn negate_where(self, mask: u16) -> Self {
        Self(unsafe { _mm512_mask_xor_ps(self.0, mask, self.0, _mm512_set1_ps(-0.0)) })
    }
    #[inline(always)]
    fn select(mask: u16, a: Self, b: Self) -> Self {
        Self(unsafe { _mm512_mask_blend_ps(mask, b.0, a.0) })
    }
    #[inline(always)]
    fn list(mask: u16, first: u32, out: &mut [u32; LANES]) {
        unsafe {
            let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            let numbers = _mm512_add_epi32(_mm512_set1_epi32(first as i32), lanes);
            _mm512_storeu_si512(out.as_mut_ptr().cast(), _mm512_maskz_compress_epi32(mask, numbers));
        }
    }
    #[inline(always)]
    fn keep(mask: u16, words: &[u32; LANES], out: &mut [u32; LANES]) {
        unsafe {
            let words = _mm512_loadu_si512(words.as_ptr().cast());
            _mm512_storeu_si512(out.as_mut_ptr().cast(), _mm512_maskz_compress_epi32(mask, words));
        }
    }
    #[inline(always)]
    fn gather<const TILES: usize>(from: &[Tile; TILES], at: &[u32; LANES]) -> Self {
        const { assert!(TILES.is_power_of_two()) };
        unsafe {
            let at = _mm512_loadu_si512(at.as_ptr().cast());
            let at = _mm512_and_si512(at, _mm512_set1_epi32((TILES * LANES - 1) as i32));
            Self(_mm512_i32gather_ps::<4>(at, from.as_ptr().cast()))
        }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        unsafe { _mm512_reduce_add_ps(self.0) }
    }
    #[inline(always)]
    fn sums(of: [Self; 4]) -> [f32; 4] {
        let mut out = [0.0; 4];
        unsafe {
            let mut halves = [_mm256_setzero_ps(); 4];
            for i in 0..4 {
                let upper = _mm512_extractf32x8_ps::<1>(of[i].0);
                halves[i] = _mm256_add_ps(_mm512_castps512_ps256(of[i].0), upper);
            }
            let pairs = [_mm256_hadd_ps(halves[0], halves[1]), _mm256_hadd_ps(halves[2], halves[3])];
            let quads = _mm256_hadd_ps(pairs[0], pairs[1]);
            let sums = _mm_add_ps(_mm256_castps256_ps128(quads), _mm256_extractf128_ps::<1>(quads));
            _mm_storeu_ps(out.as_mut_ptr(), sums);
        }
        out
    }
    #[inline(always)]
    fn largest(self) -> f32 {
        unsafe { _mm512_reduce_max_ps(self.0) }
    }
    #[inline(always)]
    fn largests(of: [Self; 4]) -> [f32; 4] {
        let mut out = [0.0; 4];
        unsafe {
            let mut halves = [_mm256_setzero_ps(); 4];
            for i in 0..4 {
                let upper = _mm512_extractf32x8_ps::<1>(of[i].0);
                halves[i] = _mm256_max_ps(_mm512_castps512_ps256(of[i].0), upper);
            }
            // Lanes of two take turns, then those of four.
            let mut pairs = [_mm256_setzero_pd(); 2];
            for i in 0..2 {
                let [a, b] = [halves[2 * i], halves[2 * i + 1]];
                let pair = _mm256_max_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                pairs[i] = _mm256_castps_pd(pair);
            }
            let low = _mm256_unpacklo_pd(pairs[0], pairs[1]);
            let high = _mm256_unpackhi_pd(pairs[0], pairs[1]);
            let quads = _mm256_max_ps(_mm256_castpd_ps(low), _mm256_castpd_ps(high));
            let largest = _mm_max_ps(_mm256_castps256_ps128(quads), _mm256_extractf128_ps::<1>(quads));
            _mm_storeu_ps(out.as_mut_ptr(), largest);
        }
        out
    }
    #[inline(always)]
    fn compare_words(words: &[u16; WORDS], with: u16) -> [u32; 2] {
        unsafe {
            let words = _mm512_loadu_si512(words.as_ptr().cast());
            let with = _mm512_set1_epi16(with as i16);
            [_mm512_cmplt_epu16_mask(words, with), _mm512_cmpeq_epu16_mask(words, with)]
        }
    }
    #[inline(always)]
    fn compare_half(words: &[u16; WORDS], with: u16) -> [u32; 2] {
        unsafe {
            let words = _mm256_loadu_si256(words.as_ptr().cast());
            let with = _mm256_set1_epi16(with as i16);
            [u32::from(_mm256_cmplt_epu16_mask(words, with)), u32::from(_mm256_cmpeq_epu16_mask(words, with))]
        }
    }
    #[inline(always)]
    fn add_exact_product(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
}
