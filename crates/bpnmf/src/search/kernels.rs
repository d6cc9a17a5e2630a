//! The inner loops of the search: sums over the entries of a column, in double precision and in a fixed order, so that
//! they give the same bits on every machine. They know nothing of columns or components.

use crate::kernel::{Lanes, dispatch};
use crate::special::{ln, ln_1p};

/// Partial sums, one for each index modulo this.
const PARTS: usize = 8;

/// The smallest rate: keeps logarithms finite where nothing is on.
pub(super) const TINY: f64 = 1e-280;

#[inline(always)]
fn tree(sums: [f64; PARTS]) -> f64 {
    ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))
}

/// Eight neighbours, from index `start` on.
#[inline(always)]
fn eight(of: &[f64], start: usize) -> &[f64; PARTS] {
    of[start..start + PARTS].try_into().expect("so long")
}

/// What is left from index `start` on, less than eight, filled up.
#[inline(always)]
fn rest(of: &[f64], start: usize, filling: f64) -> [f64; PARTS] {
    let mut out = [filling; PARTS];
    out[..of.len() - start].copy_from_slice(&of[start..]);
    out
}

/// A sum over the indices of slices of equal length. `$term` is an expression in the values at one index; it must be 0
/// where the first of them is 0 and the others are 1, which is what the last eight are filled up with.
macro_rules! sum {
    ($first:ident in $of:expr $(, $name:ident in $slice:expr)* => $term:expr) => {{
        let length = [$of.len() $(, $slice.len())*].into_iter().fold(usize::MAX, usize::min);
        let $first = &$of[..length];
        $(let $name = &$slice[..length];)*
        let whole = length - length % PARTS;
        let mut sums = [0.0f64; PARTS];
        let mut start = 0;
        while start < whole {
            let eight_terms = {
                let ($first, $($name),*) = (eight($first, start), $(eight($name, start)),*);
                terms!($first $(, $name)* => $term)
            };
            add(&mut sums, &eight_terms);
            start += PARTS;
        }
        if start < length {
            let eight_terms = {
                let ($first, $($name),*) = (rest($first, start, 0.0), $(rest($name, start, 1.0)),*);
                terms!($first $(, $name)* => $term)
            };
            add(&mut sums, &eight_terms);
        }
        tree(sums)
    }};
}

/// Eight terms of a sum, side by side.
macro_rules! terms {
    ($($name:ident),+ => $term:expr) => {{
        let mut out = [0.0; PARTS];
        let mut lane = 0;
        while lane < PARTS {
            $(let $name = $name[lane];)+
            out[lane] = $term;
            lane += 1;
        }
        out
    }};
}

#[inline(always)]
fn add(sums: &mut [f64; PARTS], terms: &[f64; PARTS]) {
    for (sum, term) in sums.iter_mut().zip(terms) {
        *sum += term;
    }
}

#[inline(always)]
fn dot_of<V: Lanes>(a: &[f64], b: &[f64]) -> f64 {
    sum!(a in a, b in b => a * b)
}

#[inline(always)]
fn add_scaled_of<V: Lanes>(out: &mut [f64], row: &[f64], scale: f64) {
    for (out, w) in out.iter_mut().zip(row) {
        *out += w * scale;
    }
}

#[inline(always)]
fn ratios_of<V: Lanes>(x: &[f64], field: &[f64], out: &mut Vec<f64>) {
    out.clear();
    out.resize(x.len(), 0.0);
    for i in 0..x.len().min(field.len()) {
        out[i] = x[i] / (field[i] + TINY);
    }
}

#[inline(always)]
fn claimed_of<V: Lanes>(x: &[f64], base: &[f64], row: &[f64], h: f64) -> f64 {
    sum!(x in x, base in base, w in row => x * (w * h / (base + w * h)))
}

#[inline(always)]
fn gain_of<V: Lanes>(x: &[f64], base: &[f64], row: &[f64], h: f64) -> f64 {
    sum!(x in x, base in base, w in row => x * ln_1p(w * h / base))
}

#[inline(always)]
fn loss_of<V: Lanes>(x: &[f64], field: &[f64], row: &[f64], h: f64) -> f64 {
    sum!(x in x, v in field, w in row => x * ln(((v - w * h) / (v + TINY)).max(1e-30)))
}

#[inline(always)]
fn sum_x_ln_of<V: Lanes>(x: &[f64], field: &[f64]) -> f64 {
    sum!(x in x, v in field => x * ln(v + TINY))
}

#[inline(always)]
fn without_of<V: Lanes>(field: &[f64], row: &[f64], h: f64, out: &mut Vec<f64>) {
    out.clear();
    out.resize(field.len(), 0.0);
    for i in 0..field.len().min(row.len()) {
        out[i] = (field[i] - row[i] * h).max(0.0) + TINY;
    }
}

#[inline(always)]
fn mixed_of<V: Lanes>(rows: &[f64], at: &[u32], h: &[f64], out: &mut Vec<f64>) {
    out.clear();
    out.extend(at.iter().map(|&f| {
        let row = &rows[f as usize * h.len()..][..h.len()];
        sum!(w in row, h in h => w * h)
    }));
}

#[inline(always)]
fn weighed_of<V: Lanes>(rows: &[f64], at: &[u32], weights: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for (&f, &weight) in at.iter().zip(weights) {
        let row = &rows[f as usize * out.len()..][..out.len()];
        for (out, w) in out.iter_mut().zip(row) {
            *out += w * weight;
        }
    }
}

#[inline(always)]
fn spread_of<V: Lanes>(rows: &mut [f64], at: &[u32], weights: &[f64], h: &[f64]) {
    for (&f, &weight) in at.iter().zip(weights) {
        let row = &mut rows[f as usize * h.len()..][..h.len()];
        for (out, h) in row.iter_mut().zip(h) {
            *out += h * weight;
        }
    }
}

dispatch! {
    /// The rows `at` += h, each with its weight.
    pub(super) fn spread [] (rows: &mut [f64], at: &[u32], weights: &[f64], h: &[f64]) = spread_of
}
dispatch! {
    /// out = the rows `at`, each times `h`: one sum a row.
    pub(super) fn mixed [] (rows: &[f64], at: &[u32], h: &[f64], out: &mut Vec<f64>) = mixed_of
}
dispatch! {
    /// out = the sum of the rows `at`, each with its weight.
    pub(super) fn weighed [] (rows: &[f64], at: &[u32], weights: &[f64], out: &mut [f64]) = weighed_of
}
dispatch! {
    /// sum a b.
    pub(super) fn dot [] (a: &[f64], b: &[f64]) -> f64 = dot_of
}
dispatch! {
    /// out += scale row.
    pub(super) fn add_scaled [] (out: &mut [f64], row: &[f64], scale: f64) = add_scaled_of
}
dispatch! {
    /// out = x / field.
    pub(super) fn ratios [] (x: &[f64], field: &[f64], out: &mut Vec<f64>) = ratios_of
}
dispatch! {
    /// The counts a component of strength `h` claims on top of `base`.
    pub(super) fn claimed [] (x: &[f64], base: &[f64], row: &[f64], h: f64) -> f64 = claimed_of
}
dispatch! {
    /// sum x log(1 + row h / base).
    pub(super) fn gain [] (x: &[f64], base: &[f64], row: &[f64], h: f64) -> f64 = gain_of
}
dispatch! {
    /// sum x log(1 - row h / field).
    pub(super) fn loss [] (x: &[f64], field: &[f64], row: &[f64], h: f64) -> f64 = loss_of
}
dispatch! {
    /// sum x log field.
    pub(super) fn sum_x_ln [] (x: &[f64], field: &[f64]) -> f64 = sum_x_ln_of
}
dispatch! {
    /// out = field - row h, never negative.
    pub(super) fn without [] (field: &[f64], row: &[f64], h: f64, out: &mut Vec<f64>) = without_of
}
