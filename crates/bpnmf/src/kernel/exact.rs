//! Double-precision sums whose results are kept. Terms are added in an order fixed by the feature index, zeros add
//! nothing, and no product that rounds is fused: dense and compressed columns give the same bits on every machine.

use super::Lanes;
use crate::special::ln_single;

/// Partial sums of a long sum: one for each feature index modulo this. Enough to hide the latency of an addition.
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

/// The sum over f of a[f] w[f], one partial sum for each f mod 32.
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

/// The same sum as [`dot`] when only the entries at `rows` are not zero: `a` runs along `rows`, `w` is a full row.
#[inline(always)]
pub(crate) fn dot_at(rows: &[u32], a: &[f64], w: &[f32]) -> f64 {
    let mut sums = [0.0; PARTS];
    for (&row, &a) in rows.iter().zip(a) {
        let row = row as usize;
        sums[row % PARTS] += a * f64::from(w[row]);
    }
    tree(sums)
}

/// The sum over f of x[f] log(rate[f]) where x > 0, one partial sum for each f mod 32. The logarithm is good to 2e-7.
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

/// The same sum as [`sum_x_ln`] when only the entries at `rows` are not zero.
#[inline(always)]
pub(crate) fn sum_x_ln_at(rows: &[u32], x: &[f64], rate: &[f64]) -> f64 {
    let mut sums = [0.0; PARTS];
    for i in 0..rows.len() {
        sums[rows[i] as usize % PARTS] +=
            x[i] * f64::from(ln_single((rate[i] as f32).max(f32::MIN_POSITIVE)));
    }
    tree(sums)
}
