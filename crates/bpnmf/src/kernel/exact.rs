//! Double-precision sums whose results are kept. Terms are added in an order fixed by the feature index, zeros add
//! nothing, and no product that rounds is fused: dense and compressed columns give the same bits on every machine.

use super::{LANES, Lanes};
use crate::special::ln;

/// out[i] += w[i] h. A product of two f32 is exact in f64, so only the addition rounds.
#[inline(always)]
pub(crate) fn add_scaled<V: Lanes>(out: &mut [f64], w: &[f32], h: f32) {
    let h = f64::from(h);
    for (out, &w) in out.iter_mut().zip(w) {
        *out = V::add_exact_product(f64::from(w), h, *out);
    }
}

/// out[i] += a[i] s.
#[inline(always)]
pub(crate) fn add_product(out: &mut [f64], a: &[f64], s: f64) {
    for (out, &a) in out.iter_mut().zip(a) {
        *out += a * s;
    }
}

/// Adds up sixteen partial sums in a fixed tree.
#[inline(always)]
pub(crate) fn tree(mut sums: [f64; LANES]) -> f64 {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            sums[i] += sums[i + width];
        }
        width /= 2;
    }
    sums[0]
}

/// The sum over f of a[f] w[f], one partial sum for each f mod 16.
#[inline(always)]
pub(crate) fn dot(a: &[f64], w: &[f32]) -> f64 {
    let mut sums = [0.0; LANES];
    let (a_chunks, w_chunks) = (a.chunks_exact(LANES), w.chunks_exact(LANES));
    let (a_rest, w_rest) = (a_chunks.remainder(), w_chunks.remainder());
    for (a, w) in a_chunks.zip(w_chunks) {
        for i in 0..LANES {
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
    let mut sums = [0.0; LANES];
    for (&row, &a) in rows.iter().zip(a) {
        let row = row as usize;
        sums[row % LANES] += a * f64::from(w[row]);
    }
    tree(sums)
}

/// The sum over f of x[f] log(rate[f]) where x > 0, one partial sum for each f mod 16.
#[inline(always)]
pub(crate) fn sum_x_ln(x: &[f64], rate: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    for (x, rate) in x.chunks(LANES).zip(rate.chunks(LANES)) {
        for i in 0..x.len() {
            let term = x[i] * ln(rate[i]);
            sums[i] += if x[i] > 0.0 { term } else { 0.0 };
        }
    }
    tree(sums)
}

/// The same sum as [`sum_x_ln`] when only the entries at `rows` are not zero.
#[inline(always)]
pub(crate) fn sum_x_ln_at(rows: &[u32], x: &[f64], rate: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    for i in 0..rows.len() {
        sums[rows[i] as usize % LANES] += x[i] * ln(rate[i]);
    }
    tree(sums)
}
