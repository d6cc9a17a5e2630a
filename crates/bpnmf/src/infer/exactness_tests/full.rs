//! The full gradient of SSMF: its derivatives against a table, its mean against differences of the bound, and where it ends.

use crate::counts::Counts;
use crate::infer::full::{beta_direction, gamma_direction, ln_derivative};
use crate::infer::state::Variational;
use crate::infer::{Batch, Engine, Gradient, Init, Ssmf};
use crate::prior::{CheckedPrior, Prior};
use crate::random::{Key, Site};
use crate::special::{digamma, gamma_quantile, ln_beta, ln_gamma, trigamma};
use crate::workers::Workers;

const FEATURES: usize = 2;
const OBSERVATIONS: usize = 3;
const COMPONENTS: usize = 2;
const OF_W: usize = FEATURES * COMPONENTS;
const OF_H: usize = COMPONENTS * OBSERVATIONS;

/// Column after column; the second one has no counts.
const X: [f64; FEATURES * OBSERVATIONS] = [3.0, 1.0, 0.0, 0.0, 6.0, 2.0];

fn prior() -> CheckedPrior {
    let prior = Prior {
        a: 0.8,
        b: 0.7,
        c: 2.0,
        d: 1.5,
        a0: 1.5,
        b0: 1.2,
        components: COMPONENTS,
        ..Prior::default()
    };
    prior.check().unwrap()
}

#[test]
fn derivatives_of_gamma_draws_equal_a_table_of_forty_digits() {
    let mut worst = 0.0f64;
    for line in include_str!("gamma_derivatives.txt").lines().filter(|line| !line.starts_with('#')) {
        let [shape, ln_g, exact] =
            line.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<f64>>().try_into().unwrap();
        let error = (ln_derivative(shape, ln_g) / exact - 1.0).abs();
        assert!(error < 1e-8, "shape {shape}, log g {ln_g}: off by {error:e}");
        worst = worst.max(error);
    }
    println!("largest relative error {worst:.1e}");
}

#[test]
fn trigamma_equals_known_values() {
    let pi = core::f64::consts::PI;
    for (x, exact) in [
        (1.0, pi * pi / 6.0),
        (0.5, pi * pi / 2.0),
        (2.0, pi * pi / 6.0 - 1.0),
        (1e-3, 1_000_001.642_533_195_5),
    ] {
        assert!((trigamma(x) / exact - 1.0).abs() < 1e-13, "{x}: {}", trigamma(x));
    }
    let slope = (digamma(37.5 + 1e-3) - digamma(37.5 - 1e-3)) / 2e-3;
    assert!((trigamma(37.5) / slope - 1.0).abs() < 1e-9);
}

/// The quantile of a Gamma(shape, 1) variable in full precision: two steps of Newton's method on the power series.
fn quantile(shape: f64, p: f64) -> f64 {
    let mut x = gamma_quantile(shape, p);
    for _ in 0..2 {
        let (mut term, mut sum, mut n) = (1.0 / shape, 1.0 / shape, shape);
        while term > 1e-17 * sum {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        // P = x^shape e^-x sum / Gamma(shape), and its density has sum = 1 / x.
        let density = ((shape - 1.0) * x.ln() - x - ln_gamma(shape)).exp();
        x -= x * sum - p / density;
    }
    x
}

/// W, H and pi, and the logarithms of the gamma draws behind them: W, H, and the two of every pi.
struct Draw {
    w: [f64; OF_W],
    h: [f64; OF_H],
    logit: [f64; COMPONENTS],
    ln_g: [f64; OF_W + OF_H + 2 * COMPONENTS],
}

/// Points of a lattice, a prime, and what its generator is made of: every coordinate takes each of as many values once.
const POINTS: usize = 30_011;
const FACTOR: u64 = 12_345;

/// The draw of q at the point `i` of the lattice.
fn draw(q: &Variational, i: usize) -> Draw {
    let u = |j: usize| {
        let turn = (0..j).fold(1, |turn, _| turn * FACTOR % POINTS as u64);
        ((i as u64 * turn % POINTS as u64) as f64 + 0.5) / POINTS as f64
    };
    let shape = |j: usize| match j {
        0..OF_W => q.nu_w[j],
        _ if j < OF_W + OF_H => q.nu_h[j - OF_W],
        _ if (j - OF_W - OF_H).is_multiple_of(2) => q.alpha_pi[(j - OF_W - OF_H) / 2],
        _ => q.beta_pi[(j - OF_W - OF_H) / 2],
    };
    let ln_g = core::array::from_fn(|j| quantile(shape(j), u(j)).max(1e-300).ln());
    Draw {
        w: core::array::from_fn(|j| ln_g[j].exp() / q.rho_w[j]),
        h: core::array::from_fn(|j| ln_g[OF_W + j].exp() / q.rho_h[j]),
        logit: core::array::from_fn(|k| ln_g[OF_W + OF_H + 2 * k] - ln_g[OF_W + OF_H + 2 * k + 1]),
        ln_g,
    }
}

/// log p(X | W, H, pi), every mask enumerated, and the parameters of the complete conditionals given W, H and pi.
fn enumerated(draw: &Draw, prior: &CheckedPrior) -> (f64, Variational) {
    let mut hat = Variational {
        nu_w: vec![prior.a(); OF_W],
        rho_w: vec![prior.b(); OF_W],
        nu_h: vec![prior.c(); OF_H],
        rho_h: vec![prior.d(); OF_H],
        alpha_pi: vec![prior.pi_on(); COMPONENTS],
        beta_pi: vec![prior.pi_off() + OBSERVATIONS as f64; COMPONENTS],
    };
    let mut sum = 0.0;
    for t in 0..OBSERVATIONS {
        let x = &X[t * FEATURES..][..FEATURES];
        let part = |f: usize, k: usize| draw.w[k * FEATURES + f] * draw.h[t * COMPONENTS + k];
        let on = |mask: usize, k: usize| mask >> k & 1 == 1;
        let rate =
            |mask: usize, f: usize| (0..COMPONENTS).filter(|&k| on(mask, k)).map(|k| part(f, k)).sum::<f64>();
        let joint: Vec<f64> = (0..1 << COMPONENTS)
            .map(|mask| {
                let prior: f64 = (0..COMPONENTS)
                    .map(|k| {
                        let z = if on(mask, k) { draw.logit[k] } else { -draw.logit[k] };
                        -(-z).exp().ln_1p()
                    })
                    .sum();
                let counts = (0..FEATURES).map(|f| match (x[f], rate(mask, f)) {
                    (0.0, rate) => -rate,
                    (x, rate) => x * rate.ln() - rate - ln_gamma(x + 1.0),
                });
                prior + counts.sum::<f64>()
            })
            .collect();
        let most = joint.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let all: f64 = joint.iter().map(|value| (value - most).exp()).sum();
        sum += most + all.ln();
        for (mask, value) in joint.iter().enumerate() {
            let p = (value - most).exp() / all;
            for k in (0..COMPONENTS).filter(|&k| on(mask, k)) {
                hat.alpha_pi[k] += p;
                hat.beta_pi[k] -= p;
                for f in 0..FEATURES {
                    let z = if x[f] > 0.0 { p * x[f] * part(f, k) / rate(mask, f) } else { 0.0 };
                    hat.nu_w[k * FEATURES + f] += z;
                    hat.nu_h[t * COMPONENTS + k] += z;
                    hat.rho_w[k * FEATURES + f] += p * draw.h[t * COMPONENTS + k];
                    hat.rho_h[t * COMPONENTS + k] += p * draw.w[k * FEATURES + f];
                }
            }
        }
    }
    (sum, hat)
}

fn divergence(q: &Variational, prior: &CheckedPrior) -> f64 {
    let gamma = |nu: f64, rho: f64, a: f64, b: f64| {
        (nu - a) * digamma(nu) - ln_gamma(nu) + ln_gamma(a) + a * (rho / b).ln() + nu * (b - rho) / rho
    };
    let w = q.nu_w.iter().zip(&q.rho_w).map(|(&nu, &rho)| gamma(nu, rho, prior.a(), prior.b()));
    let h = q.nu_h.iter().zip(&q.rho_h).map(|(&nu, &rho)| gamma(nu, rho, prior.c(), prior.d()));
    let (on, off) = (prior.pi_on(), prior.pi_off());
    let pi = q.alpha_pi.iter().zip(&q.beta_pi).map(|(&a, &b)| {
        ln_beta(on, off) - ln_beta(a, b)
            + (a - on) * digamma(a)
            + (b - off) * digamma(b)
            + (on - a + off - b) * digamma(a + b)
    });
    w.chain(h).chain(pi).sum()
}

fn bound(q: &Variational, prior: &CheckedPrior) -> f64 {
    let sum: f64 = (0..POINTS).map(|i| enumerated(&draw(q, i), prior).0).sum();
    sum / POINTS as f64 - divergence(q, prior)
}

/// Some q, as wide as those of a fit to so few counts.
fn some_q(seed: u64) -> Variational {
    let mut stream = Key::new(seed).stream(Site::Init, 0, 0, 0);
    let mut values = |n: usize, low: f64, high: f64| -> Vec<f64> {
        (0..n).map(|_| low + (high - low) * stream.uniform()).collect()
    };
    Variational {
        nu_w: values(OF_W, 0.5, 4.0),
        rho_w: values(OF_W, 0.5, 2.0),
        nu_h: values(OF_H, 1.0, 5.0),
        rho_h: values(OF_H, 0.8, 3.0),
        alpha_pi: values(COMPONENTS, 0.6, 3.0),
        beta_pi: values(COMPONENTS, 0.6, 3.0),
    }
}

/// The parameters of q one after the other.
fn parameters(q: &mut Variational) -> Vec<&mut f64> {
    let Variational { nu_w, rho_w, nu_h, rho_h, alpha_pi, beta_pi } = q;
    [nu_w, rho_w, nu_h, rho_h, alpha_pi, beta_pi].into_iter().flatten().collect()
}

/// The information of q times a direction is a gradient.
fn gradient_of_gamma([nu, rho]: [f64; 2], [one, other]: [f64; 2]) -> [f64; 2] {
    [trigamma(nu) * one - other / rho, -one / rho + nu / (rho * rho) * other]
}

fn gradient_of_beta([alpha, beta]: [f64; 2], [one, other]: [f64; 2]) -> [f64; 2] {
    let both = trigamma(alpha + beta);
    [(trigamma(alpha) - both) * one - both * other, (trigamma(beta) - both) * other - both * one]
}

/// What the data say is the slope of E log p(X | W, H, pi) at the same draws, so that nothing but differences is between both.
#[test]
fn the_mean_of_the_full_gradient_is_the_slope_of_the_bound() {
    const POINTS: usize = 3000;
    let (prior, mut q) = (prior(), some_q(800));
    // The estimator is V (hat - lambda); here without the part of the prior, V (prior - lambda), whose mean the next test has.
    let [mut w, mut h, mut pi] =
        [[[0.0; 2]; OF_W].to_vec(), [[0.0; 2]; OF_H].to_vec(), [[0.0; 2]; COMPONENTS].to_vec()];
    let add = |sum: &mut [f64; 2], more: [f64; 2]| (0..2).for_each(|i| sum[i] += more[i] / POINTS as f64);
    for i in 0..POINTS {
        let draw = draw(&q, i);
        let (_, hat) = enumerated(&draw, &prior);
        for j in 0..OF_W {
            let at = [q.nu_w[j], q.rho_w[j]];
            let hat = [at[0] + hat.nu_w[j] - prior.a(), at[1] + hat.rho_w[j] - prior.b()];
            add(&mut w[j], gamma_direction(at, draw.ln_g[j], hat));
        }
        for j in 0..OF_H {
            let at = [q.nu_h[j], q.rho_h[j]];
            let hat = [at[0] + hat.nu_h[j] - prior.c(), at[1] + hat.rho_h[j] - prior.d()];
            add(&mut h[j], gamma_direction(at, draw.ln_g[OF_W + j], hat));
        }
        for k in 0..COMPONENTS {
            let ln_g = [draw.ln_g[OF_W + OF_H + 2 * k], draw.ln_g[OF_W + OF_H + 2 * k + 1]];
            let at = [q.alpha_pi[k], q.beta_pi[k]];
            let hat = [at[0] + hat.alpha_pi[k] - prior.pi_on(), at[1] + hat.beta_pi[k] - prior.pi_off()];
            add(&mut pi[k], beta_direction(at, ln_g, hat));
        }
    }
    let of_w: Vec<[f64; 2]> = (0..OF_W).map(|j| gradient_of_gamma([q.nu_w[j], q.rho_w[j]], w[j])).collect();
    let of_h: Vec<[f64; 2]> = (0..OF_H).map(|j| gradient_of_gamma([q.nu_h[j], q.rho_h[j]], h[j])).collect();
    let of_pi: Vec<[f64; 2]> =
        (0..COMPONENTS).map(|k| gradient_of_beta([q.alpha_pi[k], q.beta_pi[k]], pi[k])).collect();
    let ours: Vec<f64> = [&of_w, &of_h, &of_pi]
        .into_iter()
        .flat_map(|all| [0, 1].into_iter().flat_map(move |i| all.iter().map(move |pair| pair[i])))
        .collect();
    let mut worst = 0.0f64;
    for (at, ours) in ours.iter().enumerate() {
        let value = *parameters(&mut q)[at];
        let step = 1e-3 * value;
        let mut there = |by: f64| {
            *parameters(&mut q)[at] = value + by;
            (0..POINTS).map(|i| enumerated(&draw(&q, i), &prior).0).sum::<f64>() / POINTS as f64
        };
        let slope = (there(step) - there(-step)) / (2.0 * step);
        *parameters(&mut q)[at] = value;
        let error = (ours - slope).abs() / slope.abs().max(0.01);
        println!("parameter {at}: {ours:+.7} against {slope:+.7}");
        worst = worst.max(error);
    }
    println!("largest relative difference {worst:.1e}");
    assert!(worst < 1e-3, "{worst:e}");
}

/// E V = 1, so the part of the prior and of lambda itself is what it is without V.
#[test]
fn a_draw_moves_with_its_own_parameters_on_average() {
    const POINTS: usize = 100_000;
    let u = |i: usize, n: usize| (i as f64 + 0.5) / n as f64;
    for (nu, rho) in [(0.5, 2.0), (0.8, 0.7), (2.0, 1.5), (7.5, 0.4), (60.0, 3.0)] {
        let mut means = [[0.0; 2]; 2];
        for i in 0..POINTS {
            let ln_g = quantile(nu, u(i, POINTS)).max(1e-300).ln();
            for (mean, hat) in means.iter_mut().zip([[nu + 1.0, rho], [nu, rho + 1.0]]) {
                let moved = gamma_direction([nu, rho], ln_g, hat);
                (0..2).for_each(|j| mean[j] += moved[j] / POINTS as f64);
            }
        }
        let units = [1.0, 0.0, 0.0, 1.0];
        for (mean, unit) in means.as_flattened().iter().zip(units) {
            assert!((mean - unit).abs() < 5e-3, "Gamma({nu}, {rho}): {means:?}");
        }
    }
    const SIDE: usize = 400;
    for (alpha, beta) in [(0.7, 2.5), (2.0, 1.0), (3.0, 3.0)] {
        let side = |shape: f64| -> Vec<f64> {
            (0..SIDE).map(|i| quantile(shape, u(i, SIDE)).max(1e-300).ln()).collect()
        };
        let (on, off) = (side(alpha), side(beta));
        let mut means = [[0.0; 2]; 2];
        for ln_g in on.iter().flat_map(|&on| off.iter().map(move |&off| [on, off])) {
            for (mean, hat) in means.iter_mut().zip([[alpha + 1.0, beta], [alpha, beta + 1.0]]) {
                let moved = beta_direction([alpha, beta], ln_g, hat);
                (0..2).for_each(|j| mean[j] += moved[j] / (SIDE * SIDE) as f64);
            }
        }
        for (mean, unit) in means.as_flattened().iter().zip([1.0, 0.0, 0.0, 1.0]) {
            assert!((mean - unit).abs() < 2e-2, "Beta({alpha}, {beta}): {means:?}");
        }
    }
}

/// The bound where a run from some start ends.
fn ends(engine: &Ssmf, init: Init, seed: u64) -> f64 {
    let (prior, key, workers) = (prior(), Key::new(seed), Workers::serial());
    let counts = Counts::from_dense(FEATURES, OBSERVATIONS, X.to_vec()).unwrap();
    let engine = Ssmf { init, ..*engine };
    let mut state = engine.init(&counts, &prior, key);
    for _ in 0..1500 {
        engine.step(&mut state, &Batch::all(&counts), &prior, key, &workers).unwrap();
    }
    bound(state.variational.as_ref().unwrap(), &prior)
}

/// Log evidence -11.271.
#[test]
fn the_full_gradient_ends_at_a_better_bound_than_the_approximate_one_from_two_starts() {
    let approximate = Ssmf { kappa: 0.7, sweeps: 4, ..Ssmf::default() };
    let gradient = Gradient::Full { draws: 16, from: 0 };
    let full = Ssmf { t0: 10.0, gradient, ..approximate };
    for (init, seed) in [(Init::Random, 810), (Init::Scaled, 811)] {
        let [one, other] = [&approximate, &full].map(|engine| ends(engine, init, seed));
        println!("{init:?}: approximate {one:.3}, full {other:.3}");
        assert!((one + 13.24).abs() < 0.06, "{one}");
        assert!((other + 12.517).abs() < 0.05, "{other}");
    }
}
