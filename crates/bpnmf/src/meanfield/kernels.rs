//! The inner loops of the search: sums over the entries of a column, in double precision and in a fixed order, so that
//! they give the same bits on every machine. They know nothing of columns or components.
//!
//! Those that end in `_of` are for code that is compiled for the machine's instructions already.

use crate::kernel::{Lanes, dispatch};
use crate::special::{digamma_ln_gammas, exp_digammas, ln, ln_1p};

/// Partial sums, one for each index modulo this.
const PARTS: usize = 8;

/// The smallest rate: keeps logarithms finite where nothing is on.
pub(crate) const TINY: f64 = 1e-280;

#[inline(always)]
fn tree(sums: [f64; PARTS]) -> f64 {
    ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))
}

/// Eight neighbours, from index `start` on.
#[inline(always)]
fn eight(of: &[f64], start: usize) -> &[f64; PARTS] {
    of[start..start + PARTS].try_into().expect("so long")
}

/// Less than eight, filled up.
#[inline(always)]
fn few(of: &[f64], filling: f64) -> [f64; PARTS] {
    let mut out = [filling; PARTS];
    out.iter_mut().zip(of).for_each(|(out, value)| *out = *value);
    out
}

/// In row m the last m lanes are kept.
const LAST: [[u64; PARTS]; PARTS] = {
    let mut out = [[0; PARTS]; PARTS];
    let mut m = 0;
    while m < PARTS {
        let mut lane = PARTS - m;
        while lane < PARTS {
            out[m][lane] = !0;
            lane += 1;
        }
        m += 1;
    }
    out
};

/// Only the last `m` terms, zero in place of the others.
#[inline(always)]
fn last(mut terms: [f64; PARTS], m: usize) -> [f64; PARTS] {
    let kept = &LAST[m % PARTS];
    for lane in 0..PARTS {
        terms[lane] = f64::from_bits(terms[lane].to_bits() & kept[lane]);
    }
    terms
}

/// A sum over the indices of slices of equal length. `$term` is an expression in the values at one index; it must be 0
/// where the first of them is 0 and the others are 1, which is what less than eight are filled up with. What is left
/// after whole eights is read with those before it, which count no second time.
macro_rules! sum {
    ($first:ident in $of:expr $(, $name:ident in $slice:expr)* => $term:expr) => {{
        let length = [$of.len() $(, $slice.len())*].into_iter().fold(usize::MAX, usize::min);
        let $first = &$of[..length];
        $(let $name = &$slice[..length];)*
        let mut sums = [0.0f64; PARTS];
        if length < PARTS {
            let ($first, $($name),*) = (few($first, 0.0), $(few($name, 1.0)),*);
            add(&mut sums, &terms!($first $(, $name)* => $term));
        } else {
            let mut start = 0;
            while start + PARTS <= length {
                let ($first, $($name),*) = (eight($first, start), $(eight($name, start)),*);
                add(&mut sums, &terms!($first $(, $name)* => $term));
                start += PARTS;
            }
            if start < length {
                let left = length - start;
                let ($first, $($name),*) = (eight($first, length - PARTS), $(eight($name, length - PARTS)),*);
                add(&mut sums, &last(terms!($first $(, $name)* => $term), left));
            }
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

/// out += the rows, each times its scale, one after the other.
#[inline(always)]
pub(crate) fn add_rows_of<'a, V: Lanes>(
    out: &mut [f64],
    rows: impl Iterator<Item = (&'a [f64], f64)> + Clone,
) {
    const WIDE: usize = 4 * PARTS;
    let n = out.len();
    if n < PARTS {
        for (row, scale) in rows {
            out.iter_mut().zip(row).for_each(|(out, w)| *out += w * scale);
        }
        return;
    }
    // What is left after whole eights is computed with those before it, from what is there now.
    let (left, end) = (n % PARTS, n - PARTS);
    let last = if left == 0 { [0.0; PARTS] } else { added(eight(out, end), end, rows.clone()) };
    let mut start = 0;
    while start + WIDE <= n {
        let sums = added::<WIDE>(out[start..start + WIDE].try_into().expect("so long"), start, rows.clone());
        out[start..start + WIDE].copy_from_slice(&sums);
        start += WIDE;
    }
    while start + PARTS <= n {
        let sums = added(eight(out, start), start, rows.clone());
        out[start..start + PARTS].copy_from_slice(&sums);
        start += PARTS;
    }
    if left > 0 {
        out[end..].copy_from_slice(&last);
    }
}

/// `out`, which begins at index `start`, with the rows added.
#[inline(always)]
fn added<'a, const N: usize>(
    out: &[f64; N],
    start: usize,
    rows: impl Iterator<Item = (&'a [f64], f64)>,
) -> [f64; N] {
    let mut sums = *out;
    for (row, scale) in rows {
        let row: &[f64; N] = row[start..start + N].try_into().expect("so long");
        for i in 0..N {
            sums[i] += row[i] * scale;
        }
    }
    sums
}

#[inline(always)]
pub(crate) fn dot_of<V: Lanes>(a: &[f64], b: &[f64]) -> f64 {
    sum!(a in a, b in b => a * b)
}

#[inline(always)]
fn gathered_of<V: Lanes>(weights: &[f64], at: &[u32], values: &[f64]) -> f64 {
    weights.iter().zip(at).map(|(weight, &f)| weight * values[f as usize]).sum()
}

#[inline(always)]
fn scattered_of<V: Lanes>(x: &[f64], mean: &[f64], geometric: &[f64], alpha: f64) -> f64 {
    let own = sum!(x in x, m in mean, g in geometric => {
        x * (ln(m + TINY) + alpha / (alpha + m) * ln((g + TINY) / (m + TINY)))
    });
    own - sum!(m in mean, x in x => (alpha + x) * ln_1p(m / alpha))
}

#[inline(always)]
fn add_scaled_of<V: Lanes>(out: &mut [f64], row: &[f64], scale: f64) {
    for (out, w) in out.iter_mut().zip(row) {
        *out += w * scale;
    }
}

#[inline(always)]
pub(crate) fn ratios_of<V: Lanes>(x: &[f64], field: &[f64], out: &mut Vec<f64>) {
    out.clear();
    out.resize(x.len(), 0.0);
    for i in 0..x.len().min(field.len()) {
        out[i] = x[i] / (field[i] + TINY);
    }
}

/// The counts a component of strength `h` claims on top of `base`.
#[inline(always)]
fn claimed_of<V: Lanes>(x: &[f64], base: &[f64], row: &[f64], h: f64) -> f64 {
    sum!(x in x, base in base, w in row => x * (w * h / (base + w * h)))
}

#[inline(always)]
fn surprise_of<V: Lanes>(x: &[f64], row: &[f64], scale: f64) -> f64 {
    sum!(x in x, p in row => x * ln(x.max(TINY) * scale / p))
}

#[inline(always)]
fn fit_strength_of<V: Lanes>(
    x: &[f64],
    base: &[f64],
    row: &[f64],
    c: f64,
    rate: f64,
    h: f64,
    rounds: usize,
) -> (f64, f64) {
    fitted(c, rate, h, rounds, |h| claimed_of::<V>(x, base, row, h))
}

/// Shape and exp E log of a Gamma(shape, rate) variable that claims `claimed(exp E log)` counts, from `h` on: `rounds` of one
/// given the other. The prior has the shape `c`.
#[inline(always)]
pub(crate) fn fitted(
    c: f64,
    rate: f64,
    mut h: f64,
    rounds: usize,
    claimed: impl Fn(f64) -> f64,
) -> (f64, f64) {
    let mut shape = 0.0;
    for _ in 0..rounds {
        shape = c + claimed(h);
        let [geometric] = exp_digammas(&[shape]);
        h = geometric / rate;
    }
    (shape, h)
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

/// KL(Gamma(shape, rate) || Gamma(a, b)) of several; `constant` is log Gamma(a) - a log b.
#[inline(always)]
pub(crate) fn kl_gamma<const N: usize>(
    shape: &[f64; N],
    rate: &[f64; N],
    a: f64,
    b: f64,
    constant: f64,
) -> [f64; N] {
    let (digamma, ln_gamma) = digamma_ln_gammas(shape);
    let mut out = [0.0; N];
    for i in 0..N {
        let constant = constant + a * ln(rate[i]);
        out[i] = (shape[i] - a) * digamma[i] - ln_gamma[i] + constant + shape[i] * (b - rate[i]) / rate[i];
    }
    out
}

#[inline(always)]
fn kl_gammas_of<V: Lanes>(shapes: &[f64], rate: f64, a: f64, b: f64, constant: f64) -> f64 {
    let (eights, rest) = shapes.as_chunks::<PARTS>();
    let mut sums = [0.0; PARTS];
    for shape in eights {
        add(&mut sums, &kl_gamma(shape, &[rate; PARTS], a, b, constant));
    }
    tree(sums) + rest.iter().map(|&shape| kl_gamma(&[shape], &[rate], a, b, constant)[0]).sum::<f64>()
}

#[inline(always)]
fn kl_gammas_of_rates_of<V: Lanes>(shapes: &[f64], rates: &[f64], a: f64, b: f64, constant: f64) -> f64 {
    let (eights, rest) = shapes.as_chunks::<PARTS>();
    let (rates, last) = rates.as_chunks::<PARTS>();
    let mut sums = [0.0; PARTS];
    for (shape, rate) in eights.iter().zip(rates) {
        add(&mut sums, &kl_gamma(shape, rate, a, b, constant));
    }
    let rest = rest.iter().zip(last).map(|(&shape, &rate)| kl_gamma(&[shape], &[rate], a, b, constant)[0]);
    tree(sums) + rest.sum::<f64>()
}

/// out = the rows `at`, each times `h`: one sum a row.
#[inline(always)]
pub(crate) fn mixed_of<V: Lanes>(rows: &[f64], at: &[u32], h: &[f64], out: &mut Vec<f64>) {
    out.clear();
    out.extend(at.iter().map(|&f| {
        let row = &rows[f as usize * h.len()..][..h.len()];
        sum!(w in row, h in h => w * h)
    }));
}

/// out = the sum of the rows `at`, each with its weight.
#[inline(always)]
pub(crate) fn weighed_of<V: Lanes>(rows: &[f64], at: &[u32], weights: &[f64], out: &mut [f64]) {
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
    pub(crate) fn spread [] (rows: &mut [f64], at: &[u32], weights: &[f64], h: &[f64]) = spread_of
}
dispatch! {
    /// out += scale row.
    pub(crate) fn add_scaled [] (out: &mut [f64], row: &[f64], scale: f64) = add_scaled_of
}
dispatch! {
    /// sum a b.
    pub(crate) fn dot [] (a: &[f64], b: &[f64]) -> f64 = dot_of
}
dispatch! {
    /// The sum of the weights, each times the value `at` its place.
    pub(crate) fn gathered [] (weights: &[f64], at: &[u32], values: &[f64]) -> f64 = gathered_of
}
dispatch! {
    /// The log-likelihood of counts with variance mean + mean^2 / alpha, but for terms of the counts and alpha alone, and what
    /// the uncertainty of the means takes from it: `geometric` is exp E log of them.
    pub(crate) fn scattered [] (x: &[f64], mean: &[f64], geometric: &[f64], alpha: f64) -> f64 = scattered_of
}
dispatch! {
    /// sum x log field.
    pub(crate) fn sum_x_ln [] (x: &[f64], field: &[f64]) -> f64 = sum_x_ln_of
}
dispatch! {
    /// sum x log(x scale / row).
    pub(crate) fn surprise [] (x: &[f64], row: &[f64], scale: f64) -> f64 = surprise_of
}
dispatch! {
    /// sum x log(1 + row h / base).
    pub(crate) fn gain [] (x: &[f64], base: &[f64], row: &[f64], h: f64) -> f64 = gain_of
}
dispatch! {
    /// sum x log(1 - row h / field).
    pub(crate) fn loss [] (x: &[f64], field: &[f64], row: &[f64], h: f64) -> f64 = loss_of
}
dispatch! {
    /// The sum of [`kl_gamma`] over many shapes with one rate.
    pub(crate) fn kl_gammas [] (shapes: &[f64], rate: f64, a: f64, b: f64, constant: f64) -> f64 = kl_gammas_of
}
dispatch! {
    /// The same with a rate for each.
    pub(crate) fn kl_gammas_of_rates [] (shapes: &[f64], rates: &[f64], a: f64, b: f64, constant: f64) -> f64 = kl_gammas_of_rates_of
}
dispatch! {
    /// Shape and exp E log of the best Gamma(shape, rate) for a component on top of `base`, from exp E log = `h`. The prior
    /// has the shape `c`; `rounds` of one given the other.
    pub(crate) fn fit_strength [] (x: &[f64], base: &[f64], row: &[f64], c: f64, rate: f64, h: f64, rounds: usize) -> (f64, f64) = fit_strength_of
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Simd;
    use crate::random::{Key, Site};

    const LEVELS: [Simd; 3] = [Simd::Avx512, Simd::Avx2, Simd::Plain];

    fn close(name: &str, n: usize, ours: f64, plain: f64) {
        assert!((ours - plain).abs() <= 1e-13 * (1.0 + plain.abs()), "{name}, {n}: {ours} {plain}");
    }

    /// Every sum, of every number of terms up to some whole eights and more, against the sum one by one; and the same bits
    /// whatever the instructions.
    #[test]
    fn sums_are_those_of_their_terms_and_the_same_bits_everywhere() {
        let mut stream = Key::new(3).stream(Site::Synthesis, 0, 0, 0);
        for n in (0..20).chain([31, 32, 33, 75, 128]) {
            let mut draw = || -> Vec<f64> { (0..n).map(|_| 0.1 + stream.uniform()).collect() };
            let (mut x, v, w) = (draw(), draw(), draw());
            x.iter_mut().step_by(3).for_each(|x| *x = 0.0);
            let (h, field) = (0.7, v.iter().zip(&w).map(|(v, w)| v + w).collect::<Vec<f64>>());
            let constant = libm::lgamma(0.5) - 0.5 * libm::log(3.0);
            let of = |simd| {
                [
                    dot(simd, &x, &w),
                    gain(simd, &x, &v, &w, h),
                    loss(simd, &x, &field, &w, h),
                    sum_x_ln(simd, &x, &field),
                    surprise(simd, &x, &w, h),
                    kl_gammas(simd, &v, 2.0, 0.5, 3.0, constant),
                    fit_strength(simd, &x, &v, &w, 0.5, 2.0, h, 1).0 - 0.5,
                ]
            };
            let every = |term: &dyn Fn(usize) -> f64| (0..n).map(term).sum::<f64>();
            let log = |x: f64| if x > 0.0 { libm::log(x) } else { 0.0 };
            let plain = [
                every(&|i| x[i] * w[i]),
                every(&|i| x[i] * libm::log1p(w[i] * h / v[i])),
                every(&|i| x[i] * libm::log(1.0 - w[i] * h / field[i])),
                every(&|i| x[i] * libm::log(field[i])),
                every(&|i| x[i] * log(x[i] * h / w[i])),
                every(&|i| {
                    let psi = crate::special::digamma(v[i]);
                    (v[i] - 0.5) * psi - libm::lgamma(v[i]) + constant + 0.5 * libm::log(2.0) + v[i] * 0.5
                }),
                every(&|i| x[i] * w[i] * h / (v[i] + w[i] * h)),
            ];
            let all = LEVELS.map(of);
            for (ours, plain) in all[0].iter().zip(&plain) {
                close("sum", n, *ours, *plain);
            }
            assert_eq!((&all[0], &all[1]), (&all[1], &all[2]), "{n} terms");
        }
    }

    fn add_listed_of<V: Lanes>(out: &mut [f64], list: &[(usize, f64)], rows: &[Vec<f64>]) {
        add_rows_of::<V>(out, list.iter().map(|&(i, scale)| (&rows[i][..], scale)));
    }

    dispatch! { fn add_listed [] (out: &mut [f64], list: &[(usize, f64)], rows: &[Vec<f64>]) = add_listed_of }

    #[test]
    fn rows_are_added_one_after_the_other() {
        let mut stream = Key::new(4).stream(Site::Synthesis, 0, 0, 0);
        for n in (0..40).chain([75, 128, 131]) {
            let rows: Vec<Vec<f64>> = (0..5).map(|_| (0..n).map(|_| stream.uniform()).collect()).collect();
            let list: Vec<(usize, f64)> = [4, 0, 2].iter().map(|&i| (i, stream.uniform())).collect();
            let before: Vec<f64> = (0..n).map(|_| stream.uniform()).collect();
            let mut plain = before.clone();
            for &(i, scale) in &list {
                plain.iter_mut().zip(&rows[i]).for_each(|(out, w)| *out += w * scale);
            }
            for simd in LEVELS {
                let mut out = before.clone();
                add_listed(simd, &mut out, &list, &rows);
                assert_eq!(out, plain, "{n} entries, {simd:?}");
            }
        }
    }
}
