//! Double-precision sums whose results are kept. Terms are added in a fixed order and no product that rounds is fused, so
//! they give the same bits on every machine.

use super::{Lanes, dispatch};
use crate::special::ln_single;

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

/// The sum over f of a[f] w[f], one partial sum for each index mod 32.
#[inline(always)]
pub(crate) fn dot(a: &[f64], w: &[f32]) -> f64 {
    let mut sums = [0.0; PARTS];
    let (a_chunks, w_chunks) = (a.chunks_exact(PARTS), w.chunks_exact(PARTS));
    let (a_rest, w_rest) = (a_chunks.remainder(), w_chunks.remainder());
    for (a, w) in a_chunks.zip(w_chunks) {
        for i in 0..PARTS {
            sums[i] += a[i] * f64::from(w[i]);
        }
    }
    for i in 0..a_rest.len().min(w_rest.len()) {
        sums[i] += a_rest[i] * f64::from(w_rest[i]);
    }
    tree(sums)
}

/// The sum over f of x[f] log(rate[f]) where x > 0, one partial sum for each index mod 32. The logarithm is good to 2e-7.
#[inline(always)]
pub(crate) fn sum_x_ln(x: &[f64], rate: &[f64]) -> f64 {
    let mut sums = [0.0; PARTS];
    let (x_chunks, rate_chunks) = (x.chunks_exact(PARTS), rate.chunks_exact(PARTS));
    let (x_rest, rate_rest) = (x_chunks.remainder(), rate_chunks.remainder());
    for (x, rate) in x_chunks.zip(rate_chunks) {
        for i in 0..PARTS {
            // Where nothing is on the rate is 0 and so is the count: any finite logarithm will do.
            sums[i] += x[i] * f64::from(ln_single((rate[i] as f32).max(f32::MIN_POSITIVE)));
        }
    }
    for i in 0..x_rest.len() {
        sums[i] += x_rest[i] * f64::from(ln_single((rate_rest[i] as f32).max(f32::MIN_POSITIVE)));
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
