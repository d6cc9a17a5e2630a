//! Sixteen lanes without special instructions.

use super::{LANES, Lanes, Simd, WORDS};

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
    const SIMD: Simd = Simd::Plain;
    const FUSES: bool = false;
    const COLUMNS: usize = 4;
    const TILES: usize = 1;
    const CHUNK: usize = 8;

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
    fn fused(self, a: Self, b: Self) -> Self {
        let mut out = self;
        for i in 0..LANES {
            out.0[i] = self.0[i].mul_add(a.0[i], b.0[i]);
        }
        out
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
        Self(words.map(|word| word as f32))
    }
    #[inline(always)]
    fn power(self) -> (Self, Self) {
        let (mut e, mut power) = (self, self);
        for i in 0..LANES {
            let shifted = self.0[i].to_bits().wrapping_sub(0x3f40_0000) & 0xff80_0000;
            e.0[i] = shifted as i32 as f32;
            power.0[i] = f32::from_bits(0x3f80_0000u32.wrapping_sub(shifted));
        }
        (e, power)
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Self(self.0.map(f32::abs))
    }
    #[inline(always)]
    fn rough_reciprocal(self) -> Self {
        Self(self.0.map(|lane| 1.0 / lane))
    }
    #[inline(always)]
    fn reciprocal(self) -> Self {
        self.rough_reciprocal()
    }
    #[inline(always)]
    fn where_positive(self, x: Self) -> Self {
        self.zip(x, |a, x| if x > 0.0 { a } else { 0.0 })
    }
    #[inline(always)]
    fn negate_where(self, mask: u16) -> Self {
        let mut out = self;
        for i in 0..LANES {
            out.0[i] = f32::from_bits(self.0[i].to_bits() ^ u32::from(mask >> i & 1) << 31);
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
    fn largest(self) -> f32 {
        self.0.into_iter().fold(f32::NEG_INFINITY, f32::max)
    }
    #[inline(always)]
    fn compare_words(words: &[u16; WORDS], with: u16) -> [u32; 2] {
        let mut out = [0; 2];
        for i in 0..WORDS {
            out[0] |= u32::from(words[i] < with) << i;
            out[1] |= u32::from(words[i] == with) << i;
        }
        out
    }
    #[inline(always)]
    fn add_exact_product(a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }
}
