//! Double-precision sums whose results are kept. Terms are added in a fixed order and every step is rounded the same way,
//! so they give the same bits on every machine.

use super::{Lanes, dispatch};
use crate::special::ln_single;

/// Partial sums of a sum: one for each index modulo this. Enough to hide the latency of an addition.
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
