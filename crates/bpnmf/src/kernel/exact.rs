//! Double-precision sums whose results are kept. Terms are added in a fixed order and no product that rounds is fused, so
//! they give the same bits on every machine.

#[cfg(target_arch = "x86_64")]
use super::{Avx2, Avx512};
use super::{Lanes, Plain, dispatch};
use crate::special::ln_single;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

/// Partial sums of a long sum: one for each index modulo this. Enough to hide the latency of an addition.
const PARTS: usize = 32;

/// out[i] += w[i] h. A product of two f32 is exact in f64, so only the addition rounds.
#[inline(always)]
pub(crate) fn add_scaled<V: Lanes>(out: &mut [f64], w: &[f32], h: f32) {
    let h = f64::from(h);
    for (out, &w) in out.iter_mut().zip(w) {
        *out = V::add_exact_product(f64::from(w), h, *out);
    }
}

/// Adds up partial sums in a fixed tree.
#[inline(always)]
fn tree(mut sums: [f64; PARTS]) -> f64 {
    let mut width = PARTS / 2;
    while width > 0 {
        for i in 0..width {
            sums[i] += sums[i + width];
        }
        width /= 2;
    }
    sums[0]
}

/// Thirty-two sums of products in double precision. Written out for each machine because the compiler, left alone,
/// takes the sums apart into scalars.
pub(crate) trait Doubles: Lanes {
    /// sums[i] += a[i] w[i], the product rounded before it is added.
    fn add_products(sums: &mut [f64; PARTS], a: &[f64; PARTS], w: &[f32; PARTS]);
}

impl Doubles for Plain {
    #[inline(always)]
    fn add_products(sums: &mut [f64; PARTS], a: &[f64; PARTS], w: &[f32; PARTS]) {
        for i in 0..PARTS {
            sums[i] += a[i] * f64::from(w[i]);
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Doubles for Avx512 {
    #[inline(always)]
    fn add_products(sums: &mut [f64; PARTS], a: &[f64; PARTS], w: &[f32; PARTS]) {
        for i in (0..PARTS).step_by(8) {
            // SAFETY: eight values from i on are inside the arrays, and this type is only used where `dispatch!` has
            // made sure of AVX-512.
            unsafe {
                let w = _mm512_cvtps_pd(_mm256_loadu_ps(w.as_ptr().add(i)));
                let product = _mm512_mul_pd(_mm512_loadu_pd(a.as_ptr().add(i)), w);
                let sum = _mm512_add_pd(_mm512_loadu_pd(sums.as_ptr().add(i)), product);
                _mm512_storeu_pd(sums.as_mut_ptr().add(i), sum);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Doubles for Avx2 {
    #[inline(always)]
    fn add_products(sums: &mut [f64; PARTS], a: &[f64; PARTS], w: &[f32; PARTS]) {
        for i in (0..PARTS).step_by(4) {
            // SAFETY: four values from i on are inside the arrays, and this type is only used where `dispatch!` has
            // made sure of AVX2.
            unsafe {
                let w = _mm256_cvtps_pd(_mm_loadu_ps(w.as_ptr().add(i)));
                let product = _mm256_mul_pd(_mm256_loadu_pd(a.as_ptr().add(i)), w);
                let sum = _mm256_add_pd(_mm256_loadu_pd(sums.as_ptr().add(i)), product);
                _mm256_storeu_pd(sums.as_mut_ptr().add(i), sum);
            }
        }
    }
}

/// The sum over f of a[f] w[f], one partial sum for each index mod 32.
#[inline(always)]
pub(crate) fn dot<V: Doubles>(a: &[f64], w: &[f32]) -> f64 {
    let mut sums = [0.0; PARTS];
    let (a_chunks, a_rest) = a.as_chunks::<PARTS>();
    let (w_chunks, w_rest) = w.as_chunks::<PARTS>();
    for (a, w) in a_chunks.iter().zip(w_chunks) {
        V::add_products(&mut sums, a, w);
    }
    for i in 0..a_rest.len().min(w_rest.len()) {
        sums[i] += a_rest[i] * f64::from(w_rest[i]);
    }
    tree(sums)
}

/// Where nothing is on the rate is 0 and so is the count: any finite logarithm will do.
#[inline(always)]
fn ln_of_rate(rate: f64) -> f32 {
    ln_single((rate as f32).max(f32::MIN_POSITIVE))
}

/// The sum over f of x[f] log(rate[f]) where x > 0, one partial sum for each index mod 32. The logarithm is good to 2e-7.
#[inline(always)]
pub(crate) fn sum_x_ln<V: Doubles>(x: &[f64], rate: &[f64]) -> f64 {
    let mut sums = [0.0; PARTS];
    let (x_chunks, x_rest) = x.as_chunks::<PARTS>();
    let (rate_chunks, rate_rest) = rate.as_chunks::<PARTS>();
    for (x, rate) in x_chunks.iter().zip(rate_chunks) {
        let mut logs = [0.0; PARTS];
        for i in 0..PARTS {
            logs[i] = ln_of_rate(rate[i]);
        }
        V::add_products(&mut sums, x, &logs);
    }
    for i in 0..x_rest.len() {
        sums[i] += x_rest[i] * f64::from(ln_of_rate(rate_rest[i]));
    }
    tree(sums)
}

/// The sum of log w, good to 2e-7 a term.
#[inline(always)]
fn sum_ln_of<V: Lanes>(w: &[f32]) -> f64 {
    let mut sums = [0.0; PARTS];
    let chunks = w.chunks_exact(PARTS);
    let rest = chunks.remainder();
    for w in chunks {
        for i in 0..PARTS {
            sums[i] += f64::from(ln_single(w[i]));
        }
    }
    for (sum, &w) in sums.iter_mut().zip(rest) {
        *sum += f64::from(ln_single(w));
    }
    tree(sums)
}

dispatch! {
    /// The sum of log w over normal positive numbers.
    pub(crate) fn sum_ln [] (w: &[f32]) -> f64 = sum_ln_of
}
