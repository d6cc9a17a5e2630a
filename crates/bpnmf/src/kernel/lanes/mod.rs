//! Sixteen f32 lanes: one trait, three machines.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod plain;
#[cfg(test)]
mod tests;

use super::{LANES, Simd, Tile, WORDS, flat};
#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
pub(crate) use plain::Plain;

/// An array of `N` lanes made element by element. A macro, for functions of the standard library are not compiled for
/// the instructions that are needed here, and a closure need not become part of its caller.
macro_rules! each {
    ($lanes:ty, $number:expr, $n:ident => $value:expr) => {{
        let mut out = [<$lanes>::splat(0.0); $number];
        for $n in 0..$number {
            out[$n] = $value;
        }
        out
    }};
}
pub(crate) use each;

/// log(1 + f) = f + f^2 P(f) for f in [-0.25, 0.5], relative error 8.3e-6: a fit that is as good as the bounds need.
const P: [f32; 5] = [-0.499_889_52, 0.333_499_9, -0.255_881_1, 0.204_929_22, -0.106_547_706];

/// log 2 for exponents that are still shifted by 23 bits.
const LN_2: f32 = core::f32::consts::LN_2 / 8_388_608.0;

/// A bound of the relative error of the logarithms here.
pub(crate) const LN_ERROR: f32 = 1.3e-5;

/// A bound of the relative error of [`Lanes::ln_1p_above`].
pub(crate) const ABOVE_ERROR: f32 = 1.3e-4;

/// Sixteen f32 lanes and the few operations the bounds need.
///
/// The vector types must only be used inside a function compiled for their features (see `dispatch!`); every
/// method is inlined into it.
pub(crate) trait Lanes: Copy {
    /// What it is made for.
    const SIMD: Simd;
    /// Whether [`Self::mul_add`] is [`Self::fused`].
    const FUSES: bool;
    /// How many columns are swept side by side: as many as there are accumulators to keep the multipliers busy.
    const COLUMNS: usize;
    /// How many tiles of components are scored at once, likewise.
    const TILES: usize;
    /// How many tiles of sums there are registers for, one of them left over.
    const CHUNK: usize;

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
    /// self * a + b, rounded once: slow where that is not an instruction, but the same bits.
    #[inline(always)]
    fn fused(self, a: Self, b: Self) -> Self {
        self.mul_add(a, b)
    }
    fn max(self, other: Self) -> Self;
    fn min(self, other: Self) -> Self;
    /// Bit i is set where lane i of self <= other (false for NaN).
    fn le(self, other: Self) -> u16;
    /// Bit i is set where lane i of self > other (false for NaN).
    fn gt(self, other: Self) -> u16;
    /// The words as numbers.
    fn from_words(words: &[u32; LANES]) -> Self;
    /// (2^23 e, 2^-e) with self 2^-e in [0.75, 1.5), for normal positive lanes.
    fn power(self) -> (Self, Self);
    fn abs(self) -> Self;
    /// 1 / self with relative error below 2^-13.
    fn rough_reciprocal(self) -> Self;
    /// 1 / self with relative error below 1e-7, for lanes whose inverse is a normal number.
    fn reciprocal(self) -> Self;
    /// self where the lane of `x` is positive, else 0.
    fn where_positive(self, x: Self) -> Self;
    /// -self where bit i of `mask` is set, else self.
    fn negate_where(self, mask: u16) -> Self;
    /// Lane i of `a` where bit i of `mask` is set, else of `b`.
    fn select(mask: u16, a: Self, b: Self) -> Self;
    /// Writes `first` + i for every bit i of `mask` that is set, one after the other; what comes after them is spoilt.
    #[inline(always)]
    fn list(mask: u16, first: u32, out: &mut [u32; LANES]) {
        let mut rest = mask;
        for out in out.iter_mut().take(mask.count_ones() as usize) {
            *out = first + rest.trailing_zeros();
            rest &= rest - 1;
        }
    }
    /// Writes word i of `words` for every bit i of `mask` that is set, one after the other; what comes after them is spoilt.
    #[inline(always)]
    fn keep(mask: u16, words: &[u32; LANES], out: &mut [u32; LANES]) {
        let mut rest = mask;
        for out in out.iter_mut().take(mask.count_ones() as usize) {
            *out = words[rest.trailing_zeros() as usize % LANES];
            rest &= rest - 1;
        }
    }
    /// Lane i is number at[i] of `from`; beyond the end they begin anew.
    #[inline(always)]
    fn gather<const TILES: usize>(from: &[Tile; TILES], at: &[u32; LANES]) -> Self {
        let mut out = [0.0; LANES];
        for i in 0..LANES {
            out[i] = flat(from)[at[i] as usize % (TILES * LANES)];
        }
        Self::load(&out)
    }
    /// The sum of all lanes.
    fn sum(self) -> f32;
    /// The sums of all lanes of four.
    #[inline(always)]
    fn sums(of: [Self; 4]) -> [f32; 4] {
        [of[0].sum(), of[1].sum(), of[2].sum(), of[3].sum()]
    }
    /// The largest lane.
    fn largest(self) -> f32;
    /// The largest lanes of four.
    #[inline(always)]
    fn largests(of: [Self; 4]) -> [f32; 4] {
        [of[0].largest(), of[1].largest(), of[2].largest(), of[3].largest()]
    }
    /// Bit i of the first is set where word i is below `with`, of the second where they are equal.
    fn compare_words(words: &[u16; WORDS], with: u16) -> [u32; 2];
    /// The same for the first half of the words; the other bits mean nothing.
    #[inline(always)]
    fn compare_half(words: &[u16; WORDS], with: u16) -> [u32; 2] {
        Self::compare_words(words, with)
    }
    /// a * b + c for a product that is exact in f64: fused where that is one instruction, the same bits anyway.
    fn add_exact_product(a: f64, b: f64, c: f64) -> f64;

    /// log(1 + f) for f in [-0.25, 0.5], relative error below 8.5e-6.
    ///
    /// Logarithms are long chains of instructions that wait for each other, and the processor looks only so far ahead for
    /// others: hence several at a time, step by step.
    #[inline(always)]
    fn ln_near_one<const N: usize>(f: [Self; N]) -> [Self; N] {
        let mut p = [Self::splat(P[4]); N];
        for i in (0..4).rev() {
            p = each!(Self, N, n => p[n].mul_add(f[n], Self::splat(P[i])));
        }
        let square: [Self; N] = each!(Self, N, n => f[n].mul(f[n]));
        each!(Self, N, n => square[n].mul_add(p[n], f[n]))
    }

    /// Natural logarithm of normal positive lanes; relative error below [`LN_ERROR`].
    #[inline(always)]
    fn ln<const N: usize>(v: [Self; N]) -> [Self; N] {
        let (exponents, powers) = Self::powers(v);
        // The product is exact, and so is the difference.
        let log = Self::ln_near_one::<N>(each!(Self, N, n => v[n].mul_add(powers[n], Self::splat(-1.0))));
        each!(Self, N, n => exponents[n].mul_add(Self::splat(LN_2), log[n]))
    }

    /// log(1 + v) for v > -1; relative error below [`LN_ERROR`].
    #[inline(always)]
    fn ln_1p<const N: usize>(v: [Self; N]) -> [Self; N] {
        let one = Self::splat(1.0);
        let (exponents, powers) = Self::powers::<N>(each!(Self, N, n => one.add(v[n])));
        // (1 + v) 2^-e - 1, but with all the digits of v, which 1 + v has lost.
        let shifts: [Self; N] = each!(Self, N, n => powers[n].sub(one));
        let log = Self::ln_near_one::<N>(each!(Self, N, n => v[n].mul_add(powers[n], shifts[n])));
        each!(Self, N, n => exponents[n].mul_add(Self::splat(LN_2), log[n]))
    }

    /// log(1 + v) or a little more, but for a relative error of [`ABOVE_ERROR`], for v > -1: a four-hundredth more at
    /// v = 2, a thirtieth at 5; infinite or NaN if v is huge.
    ///
    /// This is v times the Pade approximant [2/2] of log(1 + v) / v, a Stieltjes function: above it where v > 0 and below
    /// it where v < 0.
    #[inline(always)]
    fn ln_1p_above<const N: usize>(v: [Self; N]) -> [Self; N] {
        let (first, second) = (Self::splat(30.0), Self::splat(36.0));
        let up: [Self; N] = each!(Self, N, n => v[n].add(Self::splat(21.0)));
        let down: [Self; N] = each!(Self, N, n => v[n].mul_add(Self::splat(9.0), second));
        let up: [Self; N] = each!(Self, N, n => up[n].mul_add(v[n], first));
        let down: [Self; N] = each!(Self, N, n => down[n].mul_add(v[n], first).rough_reciprocal());
        each!(Self, N, n => up[n].mul(v[n]).mul(down[n]))
    }

    /// Natural logarithm of positive lanes between 1e-37 and 1e38, absolute error below 2e-7 (1 + |log|), the same bits
    /// on every machine.
    #[inline(always)]
    fn ln_exactly(self) -> Self {
        Self::lns_exactly([self])[0]
    }

    /// [`Self::ln_exactly`] of several: the constants are read once for all of them.
    #[inline(always)]
    fn lns_exactly<const N: usize>(v: [Self; N]) -> [Self; N] {
        const P: [f32; 8] = crate::special::LN_NEAR_ONE;
        let (exponents, powers) = Self::powers(v);
        // The product is exact, and so is the difference.
        let f: [Self; N] = each!(Self, N, n => v[n].fused(powers[n], Self::splat(-1.0)));
        let mut p = [Self::splat(P[7]); N];
        for i in (0..7).rev() {
            p = each!(Self, N, n => p[n].fused(f[n], Self::splat(P[i])));
        }
        each!(Self, N, n => exponents[n].fused(Self::splat(LN_2), f[n].mul(f[n]).fused(p[n], f[n])))
    }

    /// [`Self::power`] of several.
    #[inline(always)]
    fn powers<const N: usize>(v: [Self; N]) -> ([Self; N], [Self; N]) {
        let (mut exponents, mut powers) = (v, v);
        for n in 0..N {
            (exponents[n], powers[n]) = v[n].power();
        }
        (exponents, powers)
    }

    /// log(u / (1 - u)) for u = word / 2^32, absolute error below 8e-5 where it is below 14; beyond that it may be
    /// anything above 14, also NaN.
    #[inline(always)]
    fn logit<const N: usize>(words: [&[u32; LANES]; N]) -> [Self; N] {
        Self::ln::<N>(each!(Self, N, n => {
            let mut complement = *words[n];
            for word in &mut complement {
                *word = !*word;
            }
            Self::from_words(words[n]).mul(Self::from_words(&complement).rough_reciprocal())
        }))
    }
}
