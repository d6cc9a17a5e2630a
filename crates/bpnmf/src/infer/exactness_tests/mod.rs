//! Whether the engines sample what they say they sample: against enumeration, against the prior, against brute force.
//!
//! Seeds are fixed and tolerances are those of the statistics, so a failure is a bug and not bad luck. `--nocapture`
//! shows the scores.

mod blocks;
mod conservation;
mod enumeration;
mod full;
mod geweke;
mod invariance;
mod jumps;
mod map;
mod mixing;
mod nb_process;
mod sbc;
mod scan_order;
mod scatter;
mod ssmf;
mod thinning;
mod twin;

use super::State;
use super::activations::Activations;
use super::dictionary::{Dictionary, stored};
use super::mask::Odds;
use super::state::Averages;
use crate::counts::Counts;
use crate::prior::{CheckedPrior, ComponentsPrior, Prior};
use crate::random::{Key, Site, Stream};
use crate::special::ln_gamma;

/// The tiny model of the joint tests, with tails light enough for moments to settle.
const FEATURES: usize = 3;
const OBSERVATIONS: usize = 4;
const COMPONENTS: usize = 3;

fn tiny_prior() -> CheckedPrior {
    let prior = Prior {
        a: 2.0,
        b: 1.0,
        c: 2.0,
        d: 1.0,
        a0: 3.0,
        b0: 3.0,
        components: COMPONENTS,
        number: ComponentsPrior::BetaProcess,
    };
    prior.check().unwrap()
}

/// (W, H where S is on, S, pi) of the tiny model, drawn from its prior.
fn prior_draw(prior: &CheckedPrior, stream: &mut Stream) -> State {
    let mut dictionary = Dictionary::new(FEATURES, COMPONENTS);
    let mut activations = Activations::new(COMPONENTS, OBSERVATIONS);
    let mut logits = Vec::new();
    for k in 0..COMPONENTS {
        for w in dictionary.row_mut(k) {
            *w = stored(stream.gamma(prior.a()) / prior.b());
        }
        let logit = stream.logit_beta(prior.pi_on(), prior.pi_off());
        for t in 0..OBSERVATIONS {
            if stream.uniform() < inclusion(logit) {
                activations.set(k, t, Some(stored(stream.gamma(prior.c()) / prior.d())));
            }
        }
        logits.push(logit);
    }
    dictionary.settle();
    State {
        dictionary,
        activations,
        odds: Odds::new(logits),
        variational: None,
        averages: Averages::new(FEATURES, COMPONENTS, OBSERVATIONS),
        scatter: None,
        own: Vec::new(),
        iteration: 0,
    }
}

/// pi from its logit.
fn inclusion(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

fn is_on(state: &State, k: usize, t: usize) -> bool {
    state.activations.column(t).iter().any(|(on, _)| on == k)
}

/// H S of a site.
fn masked(state: &State, k: usize, t: usize) -> f64 {
    state.activations.column(t).iter().find(|&(on, _)| on == k).map_or(0.0, |(_, h)| f64::from(h))
}

/// Xhat_ft.
fn rate(state: &State, f: usize, t: usize) -> f64 {
    let terms = state.activations.column(t).iter();
    terms.map(|(k, h)| f64::from(state.dictionary.row(k)[f]) * f64::from(h)).sum()
}

/// X of the tiny model given W, H and S.
fn counts_given(state: &State, stream: &mut Stream) -> Counts {
    let mut values = Vec::with_capacity(FEATURES * OBSERVATIONS);
    for t in 0..OBSERVATIONS {
        for f in 0..FEATURES {
            values.push(stream.poisson(rate(state, f, t)));
        }
    }
    Counts::from_dense(FEATURES, OBSERVATIONS, values).unwrap()
}

/// X_ft, dense, column after column.
fn dense_values(counts: &Counts) -> Vec<f64> {
    let features = counts.features();
    let mut values = vec![0.0; features * counts.observations()];
    for t in 0..counts.observations() {
        for (f, value) in counts.column(t).positive() {
            values[t * features + f] = value;
        }
    }
    values
}

/// The same matrix as compressed columns.
fn compressed(counts: &Counts) -> Counts {
    let (mut starts, mut rows, mut values) = (vec![0], Vec::new(), Vec::new());
    for t in 0..counts.observations() {
        for (f, value) in counts.column(t).positive() {
            rows.push(f as u32);
            values.push(value);
        }
        starts.push(rows.len());
    }
    Counts::from_sparse(counts.features(), counts.observations(), starts, rows, values)
        .unwrap()
        .missing_like(counts)
}

/// The same matrix with this share of its entries missing; the first column has none that were observed.
fn without_some(counts: &Counts, share: f64, seed: u64) -> Counts {
    let mut stream = Key::new(seed).stream(Site::Synthesis, 1, 0, 0);
    let (mut starts, mut rows) = (vec![0], Vec::new());
    for t in 0..counts.observations() {
        rows.extend((0..counts.features() as u32).filter(|_| stream.uniform() < share || t == 0));
        starts.push(rows.len());
    }
    counts.clone().with_missing(starts, rows).unwrap()
}

/// A matrix with about the given share of positive entries, of size about `size`. The last row and, if there are
/// others, the last column are zero.
fn matrix(features: usize, observations: usize, density: f64, size: f64, seed: u64) -> Counts {
    let mut stream = Key::new(seed).stream(Site::Synthesis, 0, 0, 0);
    let mut values = vec![0.0; features * observations];
    for (i, value) in values.iter_mut().enumerate() {
        let empty = features > 1 && i % features == features - 1
            || observations > 1 && i / features == observations - 1;
        if !empty && stream.uniform() < density {
            let rate = size * stream.gamma(0.7);
            *value = 1.0 + stream.poisson(rate);
        }
    }
    Counts::from_dense(features, observations, values).unwrap()
}

/// The mean of correlated values and its standard error by batch means.
fn batch_means(values: &[f64], batches: usize) -> (f64, f64) {
    let means: Vec<f64> = values
        .chunks_exact(values.len() / batches)
        .map(|batch| batch.iter().sum::<f64>() / batch.len() as f64)
        .collect();
    let n = means.len() as f64;
    let mean = means.iter().sum::<f64>() / n;
    let variance = means.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// P(chi-square with `freedom` degrees of freedom > `value`): the upper incomplete gamma function.
fn chi_square_tail(value: f64, freedom: usize) -> f64 {
    let (s, x) = (freedom as f64 / 2.0, value / 2.0);
    if x <= 0.0 {
        return 1.0;
    }
    let front = (s * x.ln() - x - ln_gamma(s)).exp();
    if x < s + 1.0 {
        // Series of the lower function.
        let (mut term, mut sum, mut n) = (1.0 / s, 1.0 / s, s);
        while term > 1e-17 * sum {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        1.0 - front * sum
    } else {
        // Continued fraction of the upper one, from its tail.
        let fraction = (1..2000).rev().fold(0.0, |below, i| {
            let i = f64::from(i);
            i * (s - i) / (x + 2.0 * i + 1.0 - s + below)
        });
        front / (x + 1.0 - s + fraction)
    }
}

#[test]
fn chi_square_tail_equals_tabled_values() {
    for (value, freedom, tail) in [(43.820, 19, 1e-3), (30.144, 19, 0.05), (10.828, 1, 1e-3), (1.386, 2, 0.5)]
    {
        let ours = chi_square_tail(value, freedom);
        assert!((ours / tail - 1.0).abs() < 1e-3, "{value} with {freedom}: {ours} against {tail}");
    }
}
