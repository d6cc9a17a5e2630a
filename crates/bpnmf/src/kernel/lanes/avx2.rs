//! Sixteen lanes on AVX2 with FMA.

use super::{LANES, Lanes, Simd, WORDS};
use core::arch::x86_64::*;

/// Lanes in two 256-bit registers.
#[derive(Clone, Copy)]
pub(crate) struct Avx2([__m256; 2]);

impl Avx2 {
    #[inline(always)]
    fn zip(self, other: Self, op: impl Fn(__m256, __m256) -> __m256) -> Self {
        Self([op(self.0[0], other.0[0]), op(self.0[1], other.0[1])])
    }
}

// SAFETY of every block below: as for `Avx512`, with AVX2 and FMA.
#[expect(clippy::undocumented_unsafe_blocks, reason = "one comment above serves them all")]
impl Lanes for Avx2 {
    const SIMD: Simd = Simd::Avx2;
    const COLUMNS: usize = 4;
    const TILES: usize = 1;
    const FUSES: bool = true;

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
        self.zip(other, |a, b| unsafe { _mm256_add_ps(a, b) })
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { _mm256_sub_ps(a, b) })
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { _mm256_mul_ps(a, b) })
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { _mm256_div_ps(a, b) })
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        unsafe {
            Self([_mm256_fmadd_ps(self.0[0], a.0[0], b.0[0]), _mm256_fmadd_ps(self.0[1], a.0[1], b.0[1])])
        }
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { _mm256_max_ps(a, b) })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { _mm256_min_ps(a, b) })
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
        // AVX2 has no conversion of unsigned words; the compiler's own way around that is good enough.
        Self::load(&words.map(|word| word as f32))
    }
    #[inline(always)]
    fn power(self) -> (Self, Self) {
        unsafe {
            let part = |half: __m256| {
                let bits = _mm256_sub_epi32(_mm256_castps_si256(half), _mm256_set1_epi32(0x3f40_0000));
                let shifted = _mm256_and_si256(bits, _mm256_set1_epi32(-0x0080_0000));
                let power = _mm256_sub_epi32(_mm256_set1_epi32(0x3f80_0000), shifted);
                (_mm256_cvtepi32_ps(shifted), _mm256_castsi256_ps(power))
            };
            let (e0, power0) = part(self.0[0]);
            let (e1, power1) = part(self.0[1]);
            (Self([e0, e1]), Self([power0, power1]))
        }
    }
    #[inline(always)]
    fn abs(self) -> Self {
        self.zip(Self::splat(-0.0), |a, sign| unsafe { _mm256_andnot_ps(sign, a) })
    }
    #[inline(always)]
    fn rough_reciprocal(self) -> Self {
        // The machine's own estimate has twelve bits only.
        Self::splat(1.0).div(self)
    }
    #[inline(always)]
    fn reciprocal(self) -> Self {
        self.rough_reciprocal()
    }
    #[inline(always)]
    fn where_positive(self, x: Self) -> Self {
        self.zip(x, |a, x| unsafe { _mm256_and_ps(a, _mm256_cmp_ps::<_CMP_GT_OQ>(x, _mm256_setzero_ps())) })
    }
    #[inline(always)]
    fn negate_where(self, mask: u16) -> Self {
        Self::select(mask, Self::splat(0.0).sub(self), self)
    }
    #[inline(always)]
    fn select(mask: u16, a: Self, b: Self) -> Self {
        unsafe {
            let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let part = |mask: i32, a: __m256, b: __m256| {
                let set = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(mask), bits), bits);
                _mm256_blendv_ps(b, a, _mm256_castsi256_ps(set))
            };
            let mask = i32::from(mask);
            Self([part(mask, a.0[0], b.0[0]), part(mask >> 8, a.0[1], b.0[1])])
        }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        let mut out = [0.0; LANES];
        self.store(&mut out);
        out.iter().sum()
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
    fn compare_words(words: &[u16; WORDS], with: u16) -> [u32; 2] {
        unsafe {
            let low = _mm256_loadu_si256(words.as_ptr().cast());
            let high = _mm256_loadu_si256(words.as_ptr().add(WORDS / 2).cast());
            let with = _mm256_set1_epi16(with as i16);
            // Packing takes turns between the halves of both registers.
            let bits = |low: __m256i, high: __m256i| {
                let packed = _mm256_packs_epi16(low, high);
                _mm256_movemask_epi8(_mm256_permute4x64_epi64::<0b11_01_10_00>(packed)) as u32
            };
            let equal = bits(_mm256_cmpeq_epi16(low, with), _mm256_cmpeq_epi16(high, with));
            let larger = [_mm256_max_epu16(low, with), _mm256_max_epu16(high, with)];
            let not_above = bits(_mm256_cmpeq_epi16(larger[0], with), _mm256_cmpeq_epi16(larger[1], with));
            [not_above & !equal, equal]
        }
    }
    #[inline(always)]
    fn add_exact_product(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
}
