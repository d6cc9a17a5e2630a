//! Expected counts once more, one number after the other: in single precision with the roundings of the engines, in their
//! order; and in double precision.

use super::dense_values;
use crate::counts::Counts;
use crate::infer::State;
use crate::infer::activations::Activations;
use crate::infer::mask::{compact, side_by_side};
use core::ops::Range;

/// Sums of E[Z] given (W, H, S).
pub(super) struct Expected {
    /// Over t at `k * F + f`.
    pub(super) by_feature: Vec<f64>,
    /// Over f at `t * K + k`.
    pub(super) by_site: Vec<f64>,
}

impl Expected {
    fn zero(state: &State, counts: &Counts) -> Self {
        let (features, components) = (counts.features(), state.dictionary.components());
        Self {
            by_feature: vec![0.0; components * features],
            by_site: vec![0.0; counts.observations() * components],
        }
    }

    /// By the definition: x w h / sum of w h.
    pub(super) fn in_double_precision(state: &State, counts: &Counts, columns: Range<usize>) -> Self {
        let (features, components) = (counts.features(), state.dictionary.components());
        let (mut out, x) = (Self::zero(state, counts), dense_values(counts));
        for t in columns {
            let on: Vec<(usize, f32)> = state.activations.column(t).iter().collect();
            for f in (0..features).filter(|&f| x[t * features + f] > 0.0) {
                let part = |&(k, h): &(usize, f32)| f64::from(state.dictionary.row(k)[f]) * f64::from(h);
                let rate: f64 = on.iter().map(part).sum();
                for of in &on {
                    let share = x[t * features + f] * part(of) / rate;
                    out.by_feature[of.0 * features + f] += share;
                    out.by_site[t * components + of.0] += share;
                }
            }
        }
        out
    }

    /// As the engines compute it: the same bits, unless rates are out of range. `before` is how the last sweep found the
    /// mask.
    pub(super) fn in_single_precision(
        state: &State,
        before: &Activations,
        counts: &Counts,
        columns: Range<usize>,
    ) -> Self {
        let (features, components) = (counts.features(), state.dictionary.components());
        let side_by_side = if compact(counts) { 0 } else { side_by_side(&state.dictionary) };
        let mut out = Self::zero(state, counts);
        let columns: Vec<usize> = columns.collect();
        for together in columns.chunks(64) {
            let mut sums = vec![0.0f32; components * features];
            for &t in together {
                let on: Vec<(usize, f32)> = state.activations.column(t).iter().collect();
                let entries = entries(counts, t);
                let unchanged = before.column(t).on == state.activations.column(t).on;
                let ratio = if unchanged || compact(counts) {
                    Rates::new(state, &on, &entries).checked(&entries)
                } else {
                    ratios_after_flips(state, before, t, &entries)
                };
                for &(k, h) in &on {
                    let w = state.dictionary.row(k);
                    let products = entries.iter().zip(&ratio).map(|(&(f, _), &ratio)| (ratio, w[f]));
                    let products: Vec<(f32, f32)> = products.collect();
                    let scored = unchanged && k < side_by_side;
                    let sum = if scored { sum_in_turn(&products) } else { sum_of_products(&products) };
                    out.by_site[t * components + k] = f64::from(h) * sum;
                    for (&(f, _), &ratio) in entries.iter().zip(&ratio) {
                        if compact(counts) {
                            out.by_feature[k * features + f] += f64::from(ratio) * f64::from(h);
                        } else {
                            let sum = &mut sums[k * features + f];
                            *sum = ratio.mul_add(h, *sum);
                        }
                    }
                }
            }
            for (all, sum) in out.by_feature.iter_mut().zip(sums) {
                *all += f64::from(sum);
            }
        }
        for k in 0..components {
            let sums = &mut out.by_feature[k * features..][..features];
            for (sum, &w) in sums.iter_mut().zip(state.dictionary.row(k)) {
                *sum *= f64::from(w);
            }
        }
        out
    }
}

/// Features and counts of the entries that are looked at.
fn entries(counts: &Counts, t: usize) -> Vec<(usize, f64)> {
    if compact(counts) {
        return counts.column(t).positive().collect();
    }
    let mut all: Vec<(usize, f64)> = (0..counts.features()).map(|f| (f, 0.0)).collect();
    counts.column(t).positive().for_each(|entry| all[entry.0] = entry);
    all
}

/// 1 / Xhat and x / Xhat of a column, zero where there are no counts, and a bound of their error.
struct Rates {
    inverse: Vec<f32>,
    ratio: Vec<f32>,
    error: f32,
}

impl Rates {
    /// From the components that are on, in their order.
    fn new(state: &State, on: &[(usize, f32)], entries: &[(usize, f64)]) -> Self {
        let add = |rate: f32, &(k, h): &(usize, f32), f: usize| state.dictionary.row(k)[f].mul_add(h, rate);
        let inverse = |&(f, x): &(usize, f64)| {
            let rate = on.iter().fold(0.0, |rate, part| add(rate, part, f));
            if x > 0.0 { 1.0 / rate.max(f32::MIN_POSITIVE) } else { 0.0 }
        };
        let inverse: Vec<f32> = entries.iter().map(inverse).collect();
        let ratio = entries.iter().zip(&inverse).map(|(&(_, x), &inverse)| x as f32 * inverse).collect();
        Self { inverse, ratio, error: (on.len() as f32 + 4.0) * f32::EPSILON / 2.0 }
    }

    /// Out of the range in which anything is kept up to date.
    fn is_wild(&self) -> bool {
        self.inverse.iter().any(|&inverse| inverse > 1e18)
    }

    /// Component k comes on with activation h, or goes off if that is negative.
    fn switch(&mut self, state: &State, k: usize, h: f32, entries: &[(usize, f64)]) {
        let mut shrinkage = 1.0f32;
        for (i, &(f, _)) in entries.iter().enumerate() {
            let growth = (state.dictionary.row(k)[f] * h).mul_add(self.inverse[i], 1.0);
            let scale = 1.0 / growth.max(f32::MIN_POSITIVE);
            self.inverse[i] *= scale;
            self.ratio[i] *= scale;
            shrinkage = shrinkage.max(scale);
        }
        self.error = (self.error + f32::EPSILON) * 1.0001 * shrinkage + 1.5 * f32::EPSILON;
    }

    /// x / Xhat, which must be in range.
    fn checked(self, entries: &[(usize, f64)]) -> Vec<f32> {
        for (inverse, &(_, x)) in self.inverse.iter().zip(entries) {
            assert!(
                x == 0.0 || (1e-30..1e30).contains(inverse) && x as f32 * inverse < 1e18,
                "{x} * {inverse}"
            );
        }
        self.ratio
    }
}

/// x / Xhat of a column that the last sweep has changed: the changes in their order.
fn ratios_after_flips(state: &State, before: &Activations, t: usize, entries: &[(usize, f64)]) -> Vec<f32> {
    let (was, is) = (before.column(t).on, state.activations.column(t));
    let on_in = |words: &[u16], k: usize| words[k / 16] >> (k % 16) & 1 == 1;
    // What is on once components below `k` have been visited.
    let listed = |k: usize| -> Vec<(usize, f32)> {
        let on = |&j: &usize| on_in(if j < k { is.on } else { was }, j);
        (0..state.dictionary.components()).filter(on).map(|j| (j, is.values[j])).collect()
    };
    let mut rates = Rates::new(state, &listed(0), entries);
    for k in (0..state.dictionary.components()).filter(|&k| on_in(was, k) != on_in(is.on, k)) {
        let was_wild = rates.is_wild();
        let h = is.values[k];
        rates.switch(state, k, if on_in(is.on, k) { h } else { -h }, entries);
        if was_wild || rates.error > 3e-5 {
            rates = Rates::new(state, &listed(k + 1), entries);
        }
    }
    if rates.error > 5e-6 {
        rates = Rates::new(state, &listed(usize::MAX), entries);
    }
    rates.checked(entries)
}

/// 128 products after the other, all in single precision.
fn sum_in_turn(products: &[(f32, f32)]) -> f64 {
    let mut total = 0.0f32;
    for products in products.chunks(128) {
        let mut sum = 0.0f32;
        for &(a, b) in products {
            sum = a.mul_add(b, sum);
        }
        total += sum;
    }
    f64::from(total)
}

/// One partial sum in single precision for every index mod 16, over 64 times 16 products, or over what is left if that is
/// hardly more; these are added up in double precision.
fn sum_of_products(products: &[(f32, f32)]) -> f64 {
    let mut total = 0.0;
    let mut rest = products;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(if rest.len() <= 65 * 16 { rest.len() } else { 64 * 16 });
        rest = later;
        let mut sums = [0.0f32; 16];
        for (i, &(a, b)) in now.iter().enumerate() {
            sums[i % 16] = a.mul_add(b, sums[i % 16]);
        }
        let mut sums = sums.map(f64::from);
        for width in [8, 4, 2, 1] {
            for i in 0..width {
                sums[i] += sums[i + width];
            }
        }
        total += sums[0];
    }
    total
}
