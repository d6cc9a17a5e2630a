//! SSMF-A with a step of 1: q is then the complete conditional, built here by brute force from its definition.
//!
//! E[Z] is computed in single precision. q must be the complete conditional given E[Z] as it was computed, to 1e-12; and
//! given E[Z] in double precision to what single precision may lose.

use super::twin::Expected;
use super::{compressed, dense_values, matrix, rate, without_some};
use crate::counts::Counts;
use crate::infer::{Batch, Engine, Init, Ssmf, State};
use crate::kernel::Simd;
use crate::noise::Noise;
use crate::prior::{CheckedPrior, Prior};
use crate::random::Key;
use crate::special::digamma;
use crate::workers::Workers;
use core::ops::Range;
use std::collections::HashMap;

fn prior(components: usize) -> CheckedPrior {
    Prior { a: 0.7, b: 0.4, c: 1.9, d: 2.3, a0: 1.5, b0: 1.2, components, ..Prior::default() }
        .check()
        .unwrap()
}

/// The parameters of the complete conditionals given (W, H, S) and `expected` counts, as `Variational` lays them out. Only
/// `columns` are looked at, and count T over their number each.
struct Conditionals {
    nu_w: Vec<f64>,
    rho_w: Vec<f64>,
    nu_h: Vec<f64>,
    rho_h: Vec<f64>,
    alpha_pi: Vec<f64>,
    beta_pi: Vec<f64>,
}

fn conditionals(
    state: &State,
    counts: &Counts,
    prior: &CheckedPrior,
    columns: Range<usize>,
    expected: &Expected,
) -> Conditionals {
    let (features, observations) = (counts.features(), counts.observations());
    let components = prior.components();
    let scale = observations as f64 / columns.len() as f64;
    let w = |f: usize, k: usize| f64::from(state.dictionary.row(k)[f]);
    let mut out = Conditionals {
        nu_w: expected.by_feature.iter().map(|given| prior.a() + scale * given).collect(),
        rho_w: vec![prior.b(); features * components],
        nu_h: expected.by_site.iter().map(|given| prior.c() + given).collect(),
        rho_h: vec![prior.d(); observations * components],
        alpha_pi: vec![prior.pi_on(); components],
        beta_pi: vec![prior.pi_off() + observations as f64; components],
    };
    for t in columns {
        let on: Vec<(usize, f64)> =
            state.activations.column(t).iter().map(|(k, h)| (k, f64::from(h))).collect();
        for &(k, h) in &on {
            out.alpha_pi[k] += scale;
            out.beta_pi[k] -= scale;
            let unexposed: HashMap<usize, f64> = counts.unexposed(t).iter().collect();
            for f in 0..features {
                let exposure = 1.0 - unexposed.get(&f).unwrap_or(&0.0);
                out.rho_w[k * features + f] += scale * h * exposure;
                out.rho_h[t * components + k] += w(f, k) * exposure;
            }
        }
    }
    out
}

#[track_caller]
fn assert_close(name: &str, ours: &[f64], exact: &[f64], tolerance: f64) -> f64 {
    assert_eq!(ours.len(), exact.len());
    let mut worst = 0.0f64;
    for (i, (ours, exact)) in ours.iter().zip(exact).enumerate() {
        let error = (ours / exact - 1.0).abs();
        assert!(error < tolerance, "{name}[{i}] is {ours}, by definition {exact}");
        worst = worst.max(error);
    }
    worst
}

/// What E[Z] may lose in single precision: half an epsilon for every component in a rate, for each of 64 terms that are
/// added up, and for six roundings before and after. More terms are added up in columns that a sweep leaves unchanged, and
/// of rates that it has changed only 5e-6 is certain; but roundings cancel, and they are as good.
fn single_precision(components: usize) -> f64 {
    (components + 64 + 6) as f64 * f64::from(f32::EPSILON) / 2.0
}

/// The largest errors after a first step: given E[Z] as it was computed, and given E[Z] in double precision.
fn check(engine: &Ssmf, counts: &Counts, components: usize, workers: &Workers) -> [f64; 2] {
    let (prior, key) = (prior(components), Key::new(300));
    let mut before = engine.init(counts, &prior, key);
    let mut state = before.clone();
    engine.step(&mut state, &Batch::all(counts), &prior, key, workers).unwrap();
    if engine.sweeps > 1 {
        let all_but_one = Ssmf { sweeps: engine.sweeps - 1, ..*engine };
        all_but_one.step(&mut before, &Batch::all(counts), &prior, key, workers).unwrap();
    }
    errors(&state, &before, counts, &prior)
}

/// The same for any step of size one from `before` the last sweep.
fn errors(state: &State, before: &State, counts: &Counts, prior: &CheckedPrior) -> [f64; 2] {
    let q = state.variational.as_ref().unwrap();
    let columns = 0..counts.observations();
    let compare = |expected: Expected, tolerance: f64| {
        let exact = conditionals(state, counts, prior, columns.clone(), &expected);
        [
            assert_close("nu_w", &q.nu_w, &exact.nu_w, tolerance),
            assert_close("rho_w", &q.rho_w, &exact.rho_w, 1e-12),
            assert_close("nu_h", &q.nu_h, &exact.nu_h, tolerance),
            assert_close("rho_h", &q.rho_h, &exact.rho_h, 1e-12),
            assert_close("alpha_pi", &q.alpha_pi, &exact.alpha_pi, 1e-12),
            assert_close("beta_pi", &q.beta_pi, &exact.beta_pi, 1e-12),
        ]
        .into_iter()
        .fold(0.0, f64::max)
    };
    [
        compare(Expected::in_single_precision(state, &before.activations, counts, columns.clone()), 1e-12),
        compare(
            Expected::in_double_precision(state, counts, columns.clone()),
            single_precision(prior.components()),
        ),
    ]
}

#[test]
fn ssmf_with_a_step_of_one_lands_on_the_complete_conditionals() {
    let serial = Workers::serial();
    let three = Workers::new(3).unwrap();
    // The last two have more columns, and more features, than are added up at once.
    let shapes = [
        (1, 1, 1),
        (1, 9, 5),
        (6, 1, 20),
        (3, 4, 3),
        (16, 16, 16),
        (33, 40, 50),
        (70, 21, 17),
        (150, 150, 6),
        (1100, 3, 5),
    ];
    let mut worst = [0.0f64; 2];
    for (features, observations, components) in shapes {
        for (density, size) in [(0.1, 3.0), (0.7, 40.0), (0.0, 1.0)] {
            let dense = matrix(features, observations, density, size, 310);
            let partial = without_some(&dense, 0.3, 311);
            for counts in [&dense, &compressed(&dense), &partial, &compressed(&partial)] {
                for init in [Init::Random, Init::Scaled] {
                    for sweeps in [1, 3] {
                        let engine = Ssmf { init, sweeps, ..Ssmf::default() };
                        assert_eq!(engine.step_size(0), 1.0);
                        for workers in [&serial, &three] {
                            let errors = check(&engine, counts, components, workers);
                            worst = core::array::from_fn(|i| worst[i].max(errors[i]));
                        }
                    }
                }
            }
        }
    }
    println!("largest relative errors {:.1e} and {:.1e}", worst[0], worst[1]);
}

/// In the first step nearly every column changes; later most do not, and what the sweep has summed up is used.
#[test]
fn so_do_steps_of_one_later_on() {
    let engine = Ssmf { kappa: 0.0, init: Init::Scaled, ..Ssmf::default() };
    let (mut worst, mut unchanged) = ([0.0f64; 2], 0);
    for (features, observations, components) in [(20, 30, 2), (40, 37, 18), (300, 70, 24), (150, 40, 33)] {
        let dense = matrix(features, observations, 0.8, 40.0, 330);
        let partial = without_some(&dense, 0.3, 331);
        for counts in [&dense, &partial, &compressed(&partial)] {
            for simd in [Simd::Auto, Simd::Avx2, Simd::Plain] {
                let workers = Workers::serial().with_simd(simd);
                let (prior, key) = (prior(components), Key::new(332));
                let mut state = engine.init(counts, &prior, key);
                for _ in 0..6 {
                    let before = state.clone();
                    engine.step(&mut state, &Batch::all(counts), &prior, key, &workers).unwrap();
                    let errors = errors(&state, &before, counts, &prior);
                    worst = core::array::from_fn(|i| worst[i].max(errors[i]));
                    unchanged += (0..observations)
                        .filter(|&t| before.activations.column(t).on == state.activations.column(t).on)
                        .count();
                }
            }
        }
    }
    println!("largest relative errors {:.1e} and {:.1e}; unchanged columns: {unchanged}", worst[0], worst[1]);
    assert!(unchanged > 1000);
}

/// Given L, what is left is SSMF on the counts L with their exposures. L is the expectation given the rates before the sweep.
#[test]
fn so_do_steps_on_counts_that_scatter() {
    let alpha = 20.0;
    let engine =
        Ssmf { kappa: 0.0, init: Init::Scaled, noise: Noise::Scattered { alpha }, ..Ssmf::default() };
    let workers = Workers::new(2).unwrap();
    let dense = matrix(60, 45, 0.8, 90.0, 340);
    let partial = without_some(&dense, 0.3, 341);
    for counts in [&dense, &compressed(&dense), &partial, &compressed(&partial)] {
        let (prior, key) = (prior(9), Key::new(342));
        let mut state = engine.init(counts, &prior, key);
        for iteration in 0..7 {
            let before = state.clone();
            engine.step(&mut state, &Batch::all(counts), &prior, key, &workers).unwrap();
            let latent = state.scatter.as_ref().and_then(|scatter| scatter.latent()).unwrap();
            errors(&state, &before, latent, &prior);
            if iteration % 5 > 0 {
                continue;
            }
            // H of this step by the mask of the last one: frozen just now, so r is alpha. H of a site that was switched off
            // is gone.
            let (x, l) = (dense_values(counts), dense_values(latent));
            let (mut checked, mask) = (0, &before.activations);
            for t in (0..45).filter(|&t| mask.column(t).on == state.activations.column(t).on) {
                for (f, lost) in latent.unexposed(t).iter().filter(|&(_, lost)| lost < 1.0) {
                    let at = t * 60 + f;
                    let e = rate(&state, f, t) / alpha;
                    assert!((1.0 - lost - e.ln_1p() / e).abs() < 1e-6);
                    let tables = alpha * (digamma(alpha + x[at]) - digamma(alpha));
                    assert!((l[at] - tables).abs() <= 1e-5 * x[at], "{} for {} of {}", l[at], tables, x[at]);
                    checked += usize::from(x[at] > 0.0);
                }
            }
            assert!(iteration == 0 || checked > 100, "{checked}");
        }
    }
}

#[test]
fn a_batch_of_some_columns_is_refused_when_counts_scatter() {
    let counts = matrix(20, 30, 0.5, 5.0, 350);
    let (prior, key) = (prior(12), Key::new(351));
    let engine = Ssmf { noise: Noise::Scattered { alpha: 9.0 }, ..Ssmf::default() };
    let mut state = engine.init(&counts, &prior, key);
    let before = state.clone();
    let batch = Batch { counts: &counts, columns: 7..17 };
    let error = engine.step(&mut state, &batch, &prior, key, &Workers::serial()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ssmf with counts that scatter needs all columns in every step: a batch of 10 of 30 columns is not a valid sweep"
    );
    assert!(state == before);
}

#[test]
fn a_batch_of_columns_counts_for_all_and_leaves_q_of_the_others_alone() {
    let counts = matrix(20, 30, 0.5, 5.0, 320);
    let (engine, prior, key) = (Ssmf::default(), prior(12), Key::new(321));
    let batch = Batch { counts: &counts, columns: 7..17 };
    let start = engine.init(&counts, &prior, key);
    let mut state = start.clone();
    engine.step(&mut state, &batch, &prior, key, &Workers::serial()).unwrap();
    let expected = Expected::in_single_precision(&state, &start.activations, &counts, batch.columns.clone());
    let mut exact = conditionals(&state, &counts, &prior, batch.columns.clone(), &expected);
    let (before, q) = (start.variational.unwrap(), state.variational.unwrap());
    for t in (0..30).filter(|t| !batch.columns.contains(t)) {
        let at = t * 12..(t + 1) * 12;
        exact.nu_h[at.clone()].copy_from_slice(&before.nu_h[at.clone()]);
        exact.rho_h[at.clone()].copy_from_slice(&before.rho_h[at]);
    }
    assert_close("nu_w", &q.nu_w, &exact.nu_w, 1e-12);
    assert_close("rho_w", &q.rho_w, &exact.rho_w, 1e-12);
    assert_close("nu_h", &q.nu_h, &exact.nu_h, 1e-12);
    assert_close("rho_h", &q.rho_h, &exact.rho_h, 1e-12);
    assert_close("alpha_pi", &q.alpha_pi, &exact.alpha_pi, 1e-12);
    assert_close("beta_pi", &q.beta_pi, &exact.beta_pi, 1e-12);
}
