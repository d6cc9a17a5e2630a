//! Puts the rows and columns back that a run set aside because they hold no count. Knows nothing of engines and of the
//! search.
//!
//! A column without a count has no activation: H and S are 0 there. A row without a count must not have a W of exactly 0, or
//! a new observation that has a count there would have no rate at all. Its conditional mean under the prior, a / (b + sum_t
//! H_kt S_kt), is small for one row, but not for twenty thousand: each of them would promise nearly a counts for every
//! component, and new observations would be explained by activations that are too small. How many features were listed that
//! never occurred says nothing, so all n of them are taken for the pieces of one: a gamma variable of shape a is the sum of n
//! independent ones of shape a / n, and the sum of their Poisson counts is the count of that one. Their prior is Gamma(a / n,
//! b), their conditional mean a / n / (b + sum_t H_kt S_kt) with the sum over the columns in which the row was observed, and
//! all together they promise less than a counts for a component. A row that was not observed in any of these columns did not
//! fail to occur: its W has the prior, with the mean a / b.

use crate::counts::Occupied;
use crate::infer::State;
use crate::infer::activations::Activations;
use crate::infer::dictionary::{Dictionary, stored};
use crate::infer::scatter::Scatter;
use crate::infer::state::{Averages, Variational};
use crate::intervals::Spread;
use crate::posterior::Posterior;
use crate::prior::CheckedPrior;

/// W of the rows that were set aside, given H S: K components in the columns that were kept.
struct NeverSeen<'a, H> {
    occupied: &'a Occupied,
    /// H_kt S_kt by (k, t).
    masked: H,
    prior: &'a CheckedPrior,
    /// a / n.
    shape: f64,
    /// b + sum_t H_kt S_kt, length K.
    rates: Vec<f64>,
}

impl<'a, H: Fn(usize, usize) -> f64> NeverSeen<'a, H> {
    fn new(occupied: &'a Occupied, prior: &'a CheckedPrior, components: usize, masked: H) -> Self {
        let columns = occupied.columns().len();
        let rate = |k: usize| prior.b() + (0..columns).map(|t| masked(k, t)).sum::<f64>();
        let rates = (0..components).map(rate).collect();
        let mut made = Self { occupied, masked, prior, shape: prior.a(), rates };
        let pieces = (0..occupied.empty_rows().len()).filter(|&empty| !made.unknown(empty)).count();
        made.shape /= pieces.max(1) as f64;
        made
    }

    /// Whether the empty row `empty` was not observed in any column that was kept.
    fn unknown(&self, empty: usize) -> bool {
        self.occupied.unobserved(empty).len() == self.occupied.columns().len()
    }

    /// The shape of W of the empty row `empty`.
    fn shape(&self, empty: usize) -> f64 {
        if self.unknown(empty) { self.prior.a() } else { self.shape }
    }

    /// The rate of W of the empty row `empty`.
    fn rate(&self, empty: usize, k: usize) -> f64 {
        if self.unknown(empty) {
            return self.prior.b();
        }
        let unobserved = self.occupied.unobserved(empty).iter().map(|&t| (self.masked)(k, t as usize));
        (self.rates[k] - unobserved.sum::<f64>()).max(self.prior.b())
    }

    fn mean(&self, empty: usize, k: usize) -> f64 {
        self.shape(empty) / self.rate(empty, k)
    }

    /// Mean and variance of W of the empty row `empty` over `size`, the sum of W of the others.
    fn signature(&self, empty: usize, k: usize, size: f64) -> [f32; 2] {
        let rate = self.rate(empty, k) * size;
        let shape = self.shape(empty);
        [(shape / rate) as f32, (shape / (rate * rate)) as f32]
    }
}

/// A vector over all features: `kept` where a row was kept, `empty(e)` in the row that was set aside as number e.
fn over_features<T: Copy>(occupied: &Occupied, kept: &[T], empty: impl Fn(usize) -> T, out: &mut [T]) {
    occupied.rows().iter().zip(kept).for_each(|(&f, &value)| out[f as usize] = value);
    occupied.empty_rows().iter().enumerate().for_each(|(e, &f)| out[f as usize] = empty(e));
}

/// The same of several vectors, one for each component.
fn by_components<T: Copy + Default>(
    occupied: &Occupied,
    kept: &[T],
    empty: impl Fn(usize, usize) -> T,
) -> Vec<T> {
    let components = kept.len() / occupied.rows().len();
    let mut all = vec![T::default(); components * occupied.features()];
    let rows = kept.chunks_exact(occupied.rows().len()).zip(all.chunks_exact_mut(occupied.features()));
    rows.enumerate().for_each(|(k, (kept, out))| over_features(occupied, kept, |e| empty(e, k), out));
    all
}

/// Columns of `length` values: `kept` where a column was kept, `empty` in the others.
fn by_columns<T: Copy>(occupied: &Occupied, kept: &[T], length: usize, empty: T) -> Vec<T> {
    let mut all = vec![empty; length * occupied.observations()];
    for (&t, column) in occupied.columns().iter().zip(kept.chunks_exact(length.max(1))) {
        all[t as usize * length..][..length].copy_from_slice(column);
    }
    all
}

/// W and H of a state over all rows and columns.
pub(crate) fn factors(state: &State, occupied: &Occupied, prior: &CheckedPrior) -> (Dictionary, Activations) {
    let components = state.dictionary.components();
    let never_seen =
        NeverSeen::new(occupied, prior, components, |k, t| f64::from(state.activations.at(k, t)));
    let mut dictionary = Dictionary::new(occupied.features(), components);
    for k in 0..components {
        let empty = |e: usize| stored(never_seen.mean(e, k));
        over_features(occupied, state.dictionary.row(k), empty, dictionary.row_mut(k));
    }
    dictionary.settle();
    let mut activations = Activations::new(components, occupied.observations());
    for (from, &t) in occupied.columns().iter().enumerate() {
        activations.copy_column(t as usize, &state.activations, from);
    }
    (dictionary, activations)
}

/// A state over all rows and columns.
pub(crate) fn state(state: &State, occupied: &Occupied, prior: &CheckedPrior) -> State {
    let (dictionary, activations) = factors(state, occupied, prior);
    let components = dictionary.components();
    let Averages { draws, dictionary: means, masked, inclusion, pi, log_likelihood, spread: _ } =
        &state.averages;
    let average = |k: usize, t: usize| f64::from(masked[t * components + k]);
    let never_seen = NeverSeen::new(occupied, prior, components, average);
    let averages = Averages {
        draws: *draws,
        dictionary: by_components(occupied, means, |e, k| stored(never_seen.mean(e, k))),
        masked: by_columns(occupied, masked, components, 0.0),
        inclusion: by_columns(occupied, inclusion, components, 0.0),
        pi: pi.clone(),
        log_likelihood: *log_likelihood,
        // The posterior has it: nothing reads it from here.
        spread: None,
    };
    let variational = state.variational.as_ref().map(|q| Variational {
        nu_w: by_components(occupied, &q.nu_w, |e, _| never_seen.shape(e)),
        rho_w: by_components(occupied, &q.rho_w, |e, k| never_seen.rate(e, k)),
        nu_h: by_columns(occupied, &q.nu_h, components, prior.c()),
        rho_h: by_columns(occupied, &q.rho_h, components, prior.d()),
        alpha_pi: q.alpha_pi.clone(),
        beta_pi: q.beta_pi.clone(),
    });
    State {
        dictionary,
        activations,
        odds: state.odds.clone(),
        variational,
        averages,
        // The dispersions are those of the rows and columns that were kept: a step would set them anew.
        scatter: Scatter::new(state.noise()),
        own: state.own.clone(),
        iteration: state.iteration,
    }
}

/// A posterior over all rows and columns. `scale` takes W back to the units of the data. What was reported about the
/// components stays as it is.
pub(crate) fn posterior(
    found: Posterior,
    occupied: &Occupied,
    prior: &CheckedPrior,
    scale: f64,
) -> Posterior {
    let (components, columns) = (found.components(), found.observations);
    let masked = |k: usize, t: usize| f64::from(found.activations[k * columns + t]);
    let never_seen = NeverSeen::new(occupied, prior, components, masked);
    let mut dictionary = vec![0.0; occupied.features() * components];
    for (&f, row) in occupied.rows().iter().zip(found.dictionary.chunks_exact(components.max(1))) {
        dictionary[f as usize * components..][..components].copy_from_slice(row);
    }
    for (e, &f) in occupied.empty_rows().iter().enumerate() {
        for k in 0..components {
            dictionary[f as usize * components + k] = stored(scale * never_seen.mean(e, k));
        }
    }
    let by_rows = |values: &[f32]| -> Vec<f32> {
        values.chunks_exact(columns).flat_map(|row| by_columns(occupied, row, 1, 0.0)).collect()
    };
    let sizes: Vec<f64> = (0..components)
        .map(|k| found.dictionary.iter().skip(k).step_by(components).map(|&w| f64::from(w) / scale).sum())
        .collect();
    let spread = found.spread.as_ref().map(|spread| {
        let mut signature = vec![[0.0; 2]; occupied.features() * components];
        for (&f, row) in occupied.rows().iter().zip(spread.signature.chunks_exact(components.max(1))) {
            signature[f as usize * components..][..components].copy_from_slice(row);
        }
        for (e, &f) in occupied.empty_rows().iter().enumerate() {
            for k in 0..components {
                signature[f as usize * components + k] = never_seen.signature(e, k, sizes[k]);
            }
        }
        let rows = spread.exposure.chunks_exact(columns);
        Spread { signature, exposure: rows.flat_map(|row| by_columns(occupied, row, 1, [0.0; 2])).collect() }
    });
    Posterior {
        spread,
        features: occupied.features(),
        observations: occupied.observations(),
        dictionary,
        activations: by_rows(&found.activations),
        inclusion: by_rows(&found.inclusion),
        ..found
    }
}

#[cfg(test)]
mod tests;
