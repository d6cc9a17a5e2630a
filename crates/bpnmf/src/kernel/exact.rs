//! Double-precision sums whose results are kept. Terms are added in a fixed order and every step is rounded the same way,
//! so they give the same bits on every machine.

use super::doubles::{Doubles, EIGHT, Eight, Line, sum_of};
use super::{LANES, Lanes, dispatch};
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

/// The sum over f of a[f] w[f], one partial sum for each index mod 16.
#[inline(always)]
pub(crate) fn dot<V: Doubles>(a: &[f64], w: &[f32]) -> f64 {
    let mut sums = [V::Eight::splat(0.0); 2];
    let ((a_chunks, a_rest), (w_chunks, w_rest)) = (a.as_chunks::<LANES>(), w.as_chunks::<LANES>());
    for (a, w) in a_chunks.iter().zip(w_chunks) {
        add_products::<V>(&mut sums, a, w);
    }
    let (mut a_last, mut w_last) = ([0.0; LANES], [0.0; LANES]);
    for i in 0..a_rest.len().min(w_rest.len()) {
        (a_last[i], w_last[i]) = (a_rest[i], w_rest[i]);
    }
    add_products::<V>(&mut sums, &a_last, &w_last);
    let mut line = Line::ZERO;
    sums[0].add(sums[1]).store(&mut line.0);
    sum_of(&line)
}

/// sums += a w, the product rounded before it is added.
#[inline(always)]
fn add_products<V: Doubles>(sums: &mut [V::Eight; 2], a: &[f64; LANES], w: &[f32; LANES]) {
    let w = V::widened(V::load(w));
    let (a, _) = a.as_chunks::<EIGHT>();
    for i in 0..2 {
        sums[i] = sums[i].add(V::Eight::load(&a[i]).mul(w[i]));
    }
}

/// Sixteen rates in single precision. Where nothing is on the rate is 0 and so is the count: any number will do whose
/// logarithm and whose inverse are finite.
#[inline(always)]
pub(crate) fn single_of<V: Doubles>(rate: [V::Eight; 2]) -> V {
    V::narrowed(rate).max(V::splat(f32::MIN_POSITIVE)).min(V::splat(1e38))
}

/// The sum over f of x[f] log(rate[f]) where x > 0, one partial sum for each index mod 16.
#[inline(always)]
pub(crate) fn sum_x_ln<V: Doubles>(x: &[f64], rate: &[f64]) -> f64 {
    let mut sums = [V::Eight::splat(0.0); 2];
    for at in (0..x.len()).step_by(LANES) {
        let (mut xs, mut rates) = ([0.0; LANES], [1.0; LANES]);
        for i in 0..LANES.min(x.len() - at) {
            (xs[i], rates[i]) = (x[at + i], rate[at + i]);
        }
        let (halves, _) = rates.as_chunks::<EIGHT>();
        let rate = [V::Eight::load(&halves[0]), V::Eight::load(&halves[1])];
        let [log] = V::ln_exactly([single_of::<V>(rate)]);
        let mut logs = [0.0; LANES];
        log.store(&mut logs);
        add_products::<V>(&mut sums, &xs, &logs);
    }
    let mut line = Line::ZERO;
    sums[0].add(sums[1]).store(&mut line.0);
    sum_of(&line)
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
