//! Eight doubles at a time, for sums whose results are kept: every operation is correctly rounded, so a program written
//! with them gives the same bits on every machine.

#[cfg(target_arch = "x86_64")]
use super::{Avx2, Avx512};
use super::{LANES, Lanes, Plain};
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

/// How many.
pub(crate) const EIGHT: usize = 8;

/// Eight neighbouring doubles on a cache line of their own.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [f64; EIGHT]);

impl Line {
    pub(crate) const ZERO: Self = Self([0.0; EIGHT]);
}

/// `lines` as one flat slice.
#[inline(always)]
pub(crate) fn flat_lines(lines: &[Line]) -> &[f64] {
    // SAFETY: a Line is exactly EIGHT f64 without padding (64 bytes, repr(C)).
    unsafe { core::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * EIGHT) }
}

/// `lines` as one flat mutable slice.
#[inline(always)]
pub(crate) fn flat_lines_mut(lines: &mut [Line]) -> &mut [f64] {
    // SAFETY: as in `flat_lines`, and the borrow is exclusive.
    unsafe { core::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * EIGHT) }
}

/// Eight doubles in registers.
pub(crate) trait Eight: Copy {
    fn splat(value: f64) -> Self;
    fn load(at: &[f64; EIGHT]) -> Self;
    fn store(self, at: &mut [f64; EIGHT]);
    fn add(self, other: Self) -> Self;
}

/// Lanes with doubles to go with them.
pub(crate) trait Doubles: Lanes {
    type Eight: Eight;
    /// The sixteen lanes as doubles.
    fn widened(of: Self) -> [Self::Eight; 2];
}

/// The sum in a fixed tree.
#[inline(always)]
pub(crate) fn sum_of(line: &Line) -> f64 {
    let v = &line.0;
    // Side by side, for machines that add several at once.
    let [mut four, mut two] = [[0.0; 4], [0.0; 4]];
    for i in 0..4 {
        four[i] = v[i] + v[i + 4];
    }
    for i in 0..2 {
        two[i] = four[i] + four[i + 2];
    }
    two[0] + two[1]
}

/// The sum of sixteen lanes in double precision, in a fixed tree.
#[inline(always)]
pub(crate) fn total_of<V: Doubles>(lanes: V) -> f64 {
    let [low, high] = V::widened(lanes);
    let mut line = Line::ZERO;
    low.add(high).store(&mut line.0);
    sum_of(&line)
}

/// Eight doubles without special instructions.
#[derive(Clone, Copy)]
pub(crate) struct PlainEight([f64; EIGHT]);

impl PlainEight {
    #[inline(always)]
    fn zip(self, other: Self, op: impl Fn(f64, f64) -> f64) -> Self {
        let mut out = self.0;
        for i in 0..EIGHT {
            out[i] = op(self.0[i], other.0[i]);
        }
        Self(out)
    }
}

impl Eight for PlainEight {
    #[inline(always)]
    fn splat(value: f64) -> Self {
        Self([value; EIGHT])
    }
    #[inline(always)]
    fn load(at: &[f64; EIGHT]) -> Self {
        Self(*at)
    }
    #[inline(always)]
    fn store(self, at: &mut [f64; EIGHT]) {
        *at = self.0;
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
}

impl Doubles for Plain {
    type Eight = PlainEight;
    #[inline(always)]
    fn widened(of: Self) -> [PlainEight; 2] {
        let (mut lanes, mut out) = ([0.0; LANES], [PlainEight::splat(0.0); 2]);
        of.store(&mut lanes);
        for i in 0..LANES {
            out[i / EIGHT].0[i % EIGHT] = f64::from(lanes[i]);
        }
        out
    }
}

/// Eight doubles in one 512-bit register.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct WideEight(__m512d);

// SAFETY of every block below: these types are only used where `dispatch!` has made sure of the instructions, and
// loads and stores take references to eight doubles or sixteen floats.
#[cfg(target_arch = "x86_64")]
#[expect(clippy::undocumented_unsafe_blocks, reason = "one comment above serves them all")]
impl Eight for WideEight {
    #[inline(always)]
    fn splat(value: f64) -> Self {
        Self(unsafe { _mm512_set1_pd(value) })
    }
    #[inline(always)]
    fn load(at: &[f64; EIGHT]) -> Self {
        Self(unsafe { _mm512_loadu_pd(at.as_ptr()) })
    }
    #[inline(always)]
    fn store(self, at: &mut [f64; EIGHT]) {
        unsafe { _mm512_storeu_pd(at.as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(unsafe { _mm512_add_pd(self.0, other.0) })
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(clippy::undocumented_unsafe_blocks, reason = "the comment above serves them all")]
impl Doubles for Avx512 {
    type Eight = WideEight;
    #[inline(always)]
    fn widened(of: Self) -> [WideEight; 2] {
        unsafe {
            let (low, high) =
                (_mm512_castps512_ps256(of.register()), _mm512_extractf32x8_ps::<1>(of.register()));
            [WideEight(_mm512_cvtps_pd(low)), WideEight(_mm512_cvtps_pd(high))]
        }
    }
}

/// Eight doubles in two 256-bit registers.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct HalfEight([__m256d; 2]);

#[cfg(target_arch = "x86_64")]
#[expect(clippy::undocumented_unsafe_blocks, reason = "the comment above serves them all")]
impl Eight for HalfEight {
    #[inline(always)]
    fn splat(value: f64) -> Self {
        let half = unsafe { _mm256_set1_pd(value) };
        Self([half, half])
    }
    #[inline(always)]
    fn load(at: &[f64; EIGHT]) -> Self {
        unsafe { Self([_mm256_loadu_pd(at.as_ptr()), _mm256_loadu_pd(at.as_ptr().add(4))]) }
    }
    #[inline(always)]
    fn store(self, at: &mut [f64; EIGHT]) {
        unsafe {
            _mm256_storeu_pd(at.as_mut_ptr(), self.0[0]);
            _mm256_storeu_pd(at.as_mut_ptr().add(4), self.0[1]);
        }
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        unsafe { Self([_mm256_add_pd(self.0[0], other.0[0]), _mm256_add_pd(self.0[1], other.0[1])]) }
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(clippy::undocumented_unsafe_blocks, reason = "the comment above serves them all")]
impl Doubles for Avx2 {
    type Eight = HalfEight;
    #[inline(always)]
    fn widened(of: Self) -> [HalfEight; 2] {
        let (halves, mut out) = (of.registers(), [HalfEight::splat(0.0); 2]);
        for i in 0..2 {
            unsafe {
                let (low, high) = (_mm256_castps256_ps128(halves[i]), _mm256_extractf128_ps::<1>(halves[i]));
                out[i].0 = [_mm256_cvtps_pd(low), _mm256_cvtps_pd(high)];
            }
        }
        out
    }
}
