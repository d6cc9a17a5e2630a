//! Sixteen f32 lanes: one trait, three machines.

use super::LANES;
use crate::special::LN_NEAR_ONE as P;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

/// Sixteen f32 lanes and the few operations the bounds need.
///
/// The vector types must only be used inside a function compiled for their features (see `dispatch!`); every
/// method is inlined into it.
pub(crate) trait Lanes: Copy {
    /// How many columns are swept side by side: as many as there are accumulators to keep the multipliers busy.
    const COLUMNS: usize;
    /// How many tiles of components are scored at once, likewise.
    const TILES: usize;

    fn splat(value: f32) -> Self;
    /// Reads sixteen values from `at`; panics if there are fewer.
    fn load(at: &[f32]) -> Self;
    fn store(self, at: &mut [f32; LANES]);
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    /// self * a + b, rounded once or twice.
    fn mul_add(self, a: Self, b: Self) -> Self;
    fn max(self, other: Self) -> Self;
    fn min(self, other: Self) -> Self;
    /// Bit i is set where lane i of self <= other (false for NaN).
    fn le(self, other: Self) -> u16;
    /// Bit i is set where lane i of self > other (false for NaN).
    fn gt(self, other: Self) -> u16;
    /// word / 2^32.
    fn from_words(words: &[u32; LANES]) -> Self;
    /// (e, m) with self = 2^e m and m in [0.75, 1.5), for normal positive lanes.
    fn split(self) -> (Self, Self);
    /// `a` where self is 0, else `b`.
    fn where_zero(self, a: Self, b: Self) -> Self;
    /// Lane i of `a` where bit i of `mask` is set, else of `b`.
    fn select(mask: u16, a: Self, b: Self) -> Self;
    /// The sum of all lanes.
    fn sum(self) -> f32;
    /// Upper and lower halves of the 64-bit products of all words with `factor`.
    fn mul_wide(words: &[u32; LANES], factor: u32) -> ([u32; LANES], [u32; LANES]);
    /// a * b + c for a product that is exact in f64: fused where that is one instruction, the same bits anyway.
    fn add_exact_product(a: f64, b: f64, c: f64) -> f64;

    /// log(1 + f) for f in [-0.25, 0.5], relative error below 1.5e-7.
    #[inline(always)]
    fn ln_near_one(self) -> Self {
        let mut p = Self::splat(P[7]);
        for i in (0..7).rev() {
            p = p.mul_add(self, Self::splat(P[i]));
        }
        self.mul(self).mul_add(p, self)
    }

    /// Natural logarithm of normal positive lanes; absolute error below 1e-7 (1 + |log|).
    #[inline(always)]
    fn ln(self) -> Self {
        let (e, m) = self.split();
        let log = m.sub(Self::splat(1.0)).ln_near_one();
        e.mul_add(Self::splat(core::f32::consts::LN_2), log)
    }

    /// log(1 + v) for v > -1; relative error below 4e-7 for v >= 0, and for v < 0 below 4e-7 / (1 + v).
    #[inline(always)]
    fn ln_1p(self) -> Self {
        let one = Self::splat(1.0);
        let (e, m) = one.add(self).split();
        // Close to one the sum 1 + v has lost digits of v: use v itself.
        let log = e.where_zero(self, m.sub(one)).ln_near_one();
        e.mul_add(Self::splat(core::f32::consts::LN_2), log)
    }
}

/// Lanes without special instructions.
#[derive(Clone, Copy)]
pub(crate) struct Plain([f32; LANES]);

impl Plain {
    #[inline(always)]
    fn zip(self, other: Self, op: impl Fn(f32, f32) -> f32) -> Self {
        let mut out = self.0;
        for i in 0..LANES {
            out[i] = op(self.0[i], other.0[i]);
        }
        Self(out)
    }

    #[inline(always)]
    fn mask(self, other: Self, op: impl Fn(f32, f32) -> bool) -> u16 {
        (0..LANES).fold(0, |mask, i| mask | u16::from(op(self.0[i], other.0[i])) << i)
    }
}

impl Lanes for Plain {
    const COLUMNS: usize = 4;
    const TILES: usize = 1;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self([value; LANES])
    }
    #[inline(always)]
    fn load(at: &[f32]) -> Self {
        Self(at[..LANES].try_into().expect("sixteen values"))
    }
    #[inline(always)]
    fn store(self, at: &mut [f32; LANES]) {
        *at = self.0;
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        self.mul(a).add(b)
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn le(self, other: Self) -> u16 {
        self.mask(other, |a, b| a <= b)
    }
    #[inline(always)]
    fn gt(self, other: Self) -> u16 {
        self.mask(other, |a, b| a > b)
    }
    #[inline(always)]
    fn from_words(words: &[u32; LANES]) -> Self {
        Self(words.map(|word| word as f32 * (1.0 / 4_294_967_296.0)))
    }
    #[inline(always)]
    fn split(self) -> (Self, Self) {
        let (mut e, mut m) = (self, self);
        for i in 0..LANES {
            let bits = self.0[i].to_bits() as i32;
            let exponent = bits.wrapping_sub(0x3f40_0000) >> 23;
            e.0[i] = exponent as f32;
            m.0[i] = f32::from_bits(bits.wrapping_sub(exponent << 23) as u32);
        }
        (e, m)
    }
    #[inline(always)]
    fn where_zero(self, a: Self, b: Self) -> Self {
        let mut out = a;
        for i in 0..LANES {
            out.0[i] = if self.0[i] == 0.0 { a.0[i] } else { b.0[i] };
        }
        out
    }
    #[inline(always)]
    fn select(mask: u16, a: Self, b: Self) -> Self {
        let mut out = a;
        for i in 0..LANES {
            out.0[i] = if mask >> i & 1 == 1 { a.0[i] } else { b.0[i] };
        }
        out
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        self.0.iter().sum()
    }
    #[inline(always)]
    fn mul_wide(words: &[u32; LANES], factor: u32) -> ([u32; LANES], [u32; LANES]) {
        let product = |word: u32| u64::from(word) * u64::from(factor);
        (words.map(|word| (product(word) >> 32) as u32), words.map(|word| product(word) as u32))
    }
    #[inline(always)]
    fn add_exact_product(a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }
}

/// Lanes in one 512-bit register.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512);

// SAFETY of every block below: an `Avx512` is only made inside functions that `dispatch!` compiled for AVX-512 and
// calls after asking the machine for it; loads and stores take references to sixteen values.
#[cfg(target_arch = "x86_64")]
#[expect(clippy::undocumented_unsafe_blocks, reason = "one comment above serves them all")]
impl Lanes for Avx512 {
    const COLUMNS: usize = 8;
    const TILES: usize = 2;

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
        unsafe {
            let words = _mm512_loadu_si512(words.as_ptr().cast());
            Self(_mm512_mul_ps(_mm512_cvtepu32_ps(words), _mm512_set1_ps(1.0 / 4_294_967_296.0)))
        }
    }
    #[inline(always)]
    fn split(self) -> (Self, Self) {
        unsafe {
            let bits = _mm512_castps_si512(self.0);
            let e = _mm512_srai_epi32::<23>(_mm512_sub_epi32(bits, _mm512_set1_epi32(0x3f40_0000)));
            let m = _mm512_sub_epi32(bits, _mm512_slli_epi32::<23>(e));
            (Self(_mm512_cvtepi32_ps(e)), Self(_mm512_castsi512_ps(m)))
        }
    }
    #[inline(always)]
    fn where_zero(self, a: Self, b: Self) -> Self {
        unsafe {
            let zero = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(self.0, _mm512_setzero_ps());
            Self(_mm512_mask_blend_ps(zero, b.0, a.0))
        }
    }
    #[inline(always)]
    fn select(mask: u16, a: Self, b: Self) -> Self {
        Self(unsafe { _mm512_mask_blend_ps(mask, b.0, a.0) })
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        unsafe { _mm512_reduce_add_ps(self.0) }
    }
    #[inline(always)]
    fn mul_wide(words: &[u32; LANES], factor: u32) -> ([u32; LANES], [u32; LANES]) {
        let (mut high, mut low) = ([0; LANES], [0; LANES]);
        unsafe {
            let words = _mm512_loadu_si512(words.as_ptr().cast());
            let factor = _mm512_set1_epi32(factor as i32);
            let even = _mm512_mul_epu32(words, factor);
            let odd = _mm512_mul_epu32(_mm512_srli_epi64::<32>(words), factor);
            let odds = 0b1010_1010_1010_1010;
            let upper = _mm512_mask_blend_epi32(odds, _mm512_srli_epi64::<32>(even), odd);
            let lower = _mm512_mask_blend_epi32(odds, even, _mm512_slli_epi64::<32>(odd));
            _mm512_storeu_si512(high.as_mut_ptr().cast(), upper);
            _mm512_storeu_si512(low.as_mut_ptr().cast(), lower);
        }
        (high, low)
    }
    #[inline(always)]
    fn add_exact_product(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
}

/// Lanes in two 256-bit registers.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx2([__m256; 2]);

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    #[inline(always)]
    fn zip(self, other: Self, op: impl Fn(__m256, __m256) -> __m256) -> Self {
        Self([op(self.0[0], other.0[0]), op(self.0[1], other.0[1])])
    }
}

// SAFETY of every block below: as for `Avx512`, with AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[expect(clippy::undocumented_unsafe_blocks, reason = "one comment above serves them all")]
impl Lanes for Avx2 {
    const COLUMNS: usize = 4;
    const TILES: usize = 1;

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
        let mut out = [0.0f32; LANES];
        for i in 0..LANES {
            out[i] = words[i] as f32 * (1.0 / 4_294_967_296.0);
        }
        Self::load(&out)
    }
    #[inline(always)]
    fn split(self) -> (Self, Self) {
        unsafe {
            let part = |half: __m256| {
                let bits = _mm256_castps_si256(half);
                let e = _mm256_srai_epi32::<23>(_mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f40_0000)));
                let m = _mm256_sub_epi32(bits, _mm256_slli_epi32::<23>(e));
                (_mm256_cvtepi32_ps(e), _mm256_castsi256_ps(m))
            };
            let (e0, m0) = part(self.0[0]);
            let (e1, m1) = part(self.0[1]);
            (Self([e0, e1]), Self([m0, m1]))
        }
    }
    #[inline(always)]
    fn where_zero(self, a: Self, b: Self) -> Self {
        unsafe {
            let part = |s: __m256, a: __m256, b: __m256| {
                _mm256_blendv_ps(b, a, _mm256_cmp_ps::<_CMP_EQ_OQ>(s, _mm256_setzero_ps()))
            };
            Self([part(self.0[0], a.0[0], b.0[0]), part(self.0[1], a.0[1], b.0[1])])
        }
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
    fn mul_wide(words: &[u32; LANES], factor: u32) -> ([u32; LANES], [u32; LANES]) {
        let product = |word: u32| u64::from(word) * u64::from(factor);
        (words.map(|word| (product(word) >> 32) as u32), words.map(|word| product(word) as u32))
    }
    #[inline(always)]
    fn add_exact_product(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
}
