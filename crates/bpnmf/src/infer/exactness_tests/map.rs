//! The mean field with a point mask: its bound by definition, and that it never falls.

use super::{compressed, dense_values, matrix, without_some};
use crate::counts::Counts;
use crate::infer::state::Averages;
use crate::infer::{Batch, Engine, Gibbs, Init, Map, State};
use crate::noise::Noise;
use crate::prior::{CheckedPrior, Prior};
use crate::random::Key;
use crate::search::Search;
use crate::special::{digamma, ln_beta, ln_gamma};
use crate::synth::Recipe;
use crate::workers::Workers;

fn prior(components: usize) -> CheckedPrior {
    Prior { a: 0.7, b: 0.4, c: 1.9, d: 2.3, a0: 1.5, b0: 1.2, components, ..Prior::default() }
        .check()
        .unwrap()
}

/// KL(Gamma(nu, rho) || Gamma(a, b)).
fn kl(nu: f64, rho: f64, a: f64, b: f64) -> f64 {
    (nu - a) * digamma(nu) - ln_gamma(nu) + ln_gamma(a) + a * (rho / b).ln() + nu * (b - rho) / rho
}

/// The bound on log p(X, S) of a state, entry by entry.
fn bound(state: &State, counts: &Counts, prior: &CheckedPrior) -> f64 {
    let q = state.variational.as_ref().unwrap();
    let (features, observations) = (counts.features(), counts.observations());
    let components = state.dictionary.components();
    let x = dense_values(counts);
    let mut sum = 0.0;
    let mut usage = vec![0usize; components];
    for t in 0..observations {
        let on: Vec<usize> = state.activations.column(t).iter().map(|(k, _)| k).collect();
        for f in (0..features).filter(|f| !counts.missing(t).contains(&(*f as u32))) {
            let (mut mean, mut geometric) = (0.0, 0.0);
            for &k in &on {
                let (w, h) = (k * features + f, t * components + k);
                mean += q.nu_w[w] / q.rho_w[w] * q.nu_h[h] / q.rho_h[h];
                geometric += (digamma(q.nu_w[w]) + digamma(q.nu_h[h])).exp() / q.rho_w[w] / q.rho_h[h];
            }
            let x = x[t * features + f];
            sum += if x > 0.0 { x * geometric.ln() - ln_gamma(x + 1.0) } else { 0.0 } - mean;
        }
        for k in on {
            let h = t * components + k;
            sum -= kl(q.nu_h[h], q.rho_h[h], prior.c(), prior.d());
            usage[k] += 1;
        }
    }
    for (k, &m) in usage.iter().enumerate() {
        let (on, off) = (prior.pi_on(), prior.pi_off());
        sum += ln_beta(on + m as f64, off + (observations - m) as f64) - ln_beta(on, off);
        for w in k * features..(k + 1) * features {
            sum -= if m > 0 { kl(q.nu_w[w], q.rho_w[w], prior.a(), prior.b()) } else { 0.0 };
        }
    }
    // Slots that are not there are off everywhere.
    let (on, off, dropped) = (prior.pi_on(), prior.pi_off(), prior.components() - components);
    sum + dropped as f64 * (ln_beta(on, off + observations as f64) - ln_beta(on, off))
}

fn every_kind(counts: &Counts) -> [Counts; 4] {
    let partial = without_some(counts, 0.2, 610);
    [counts.clone(), compressed(counts), partial.clone(), compressed(&partial)]
}

#[test]
fn the_bound_of_map_never_falls_and_is_the_one_by_definition() {
    let (workers, key) = (Workers::serial(), Key::new(600));
    for (features, observations, components) in [(1, 1, 1), (4, 3, 2), (17, 30, 6), (40, 25, 12)] {
        for (density, size) in [(0.9, 20.0), (0.2, 4.0)] {
            for counts in every_kind(&matrix(features, observations, density, size, 601)) {
                for init in [Init::Random, Init::Scaled] {
                    let (engine, prior) = (Map { init, ..Map::default() }, prior(components));
                    let mut state = engine.init(&counts, &prior, key);
                    let mut last = f64::NEG_INFINITY;
                    for step in 0..60 {
                        let info =
                            engine.step(&mut state, &Batch::all(&counts), &prior, key, &workers).unwrap();
                        let now = info.log_joint;
                        assert!(
                            now >= last - 1e-9 * now.abs(),
                            "{features} x {observations}, {init:?}, step {step}: {last} to {now}"
                        );
                        last = now;
                    }
                    let exact = bound(&state, &counts, &prior);
                    assert!(
                        (last - exact).abs() < 1e-8 * (1.0 + exact.abs()),
                        "{last}, by definition {exact}"
                    );
                }
            }
        }
    }
}

/// log p(x, S = 1) for one entry and one component, by the midpoint rule over log W and log H.
#[test]
fn the_bound_of_map_is_below_the_integral_it_bounds() {
    let (prior, workers, key) = (prior(1), Workers::serial(), Key::new(602));
    for x in [1.0, 3.0, 40.0] {
        let counts = Counts::from_dense(1, 1, vec![x]).unwrap();
        let mut state = Map::default().init(&counts, &prior, key);
        let mut bound = 0.0;
        for _ in 0..200 {
            let info = Map::default().step(&mut state, &Batch::all(&counts), &prior, key, &workers);
            bound = info.unwrap().log_joint;
        }
        let gamma = |z: f64, shape: f64, rate: f64| (shape * z - rate * z.exp() + shape * rate.ln()).exp();
        let (n, low, high) = (1500, -25.0, 8.0);
        let step = (high - low) / f64::from(n);
        let mut sum = 0.0;
        for i in 0..n {
            for j in 0..n {
                let (z, y) = (low + (f64::from(i) + 0.5) * step, low + (f64::from(j) + 0.5) * step);
                let given = (x * (z + y) - (z + y).exp() - ln_gamma(x + 1.0)).exp();
                sum += given * gamma(z, prior.a(), prior.b()) * gamma(y, prior.c(), prior.d()) * step * step;
            }
        }
        let (on, off) = (prior.pi_on(), prior.pi_off());
        let exact =
            sum.ln() - ln_gamma(prior.a()) - ln_gamma(prior.c()) + ln_beta(on + 1.0, off) - ln_beta(on, off);
        println!("x = {x}: bound {bound:.4}, log evidence {exact:.4}");
        assert!(bound < exact && exact - bound < 1.0, "x = {x}: {bound} {exact}");
    }
}

/// In the paper's recipe it starts where the search ended, and rises: the search ends with the mask of a draw.
#[test]
fn map_keeps_the_bound_of_the_search_on_the_papers_recipe() {
    let counts = Recipe { features: 30, observations: 150, ..Default::default() }.draw(3).unwrap().counts;
    let (prior, key, workers) = (Prior::default().check().unwrap(), Key::new(603), Workers::serial());
    let nobody = &mut |_: &crate::SearchStep| true;
    let found = Search::default().run(&counts, &prior, key, &workers, nobody).unwrap();
    let (engine, prior) = (Map::default(), found.discovery.prior);
    let mut state = engine.start(&found);
    assert_eq!(state.noise(), Noise::Poisson);
    let before = bound(&state, &counts, &prior);
    let mut last = f64::NEG_INFINITY;
    for _ in 0..80 {
        let info = engine.step(&mut state, &Batch::all(&counts), &prior, key, &workers).unwrap();
        assert!(info.log_joint >= last - 1e-9 * info.log_joint.abs());
        last = info.log_joint;
    }
    println!("bound of the search {before:.1}, after 80 steps {last:.1}");
    assert!(last > before - 0.01 * before.abs(), "{before} {last}");
}

/// Prints the seconds of an iteration of `map` and of `gibbs` from the same W, H and S.
#[test]
#[ignore = "a measurement"]
fn seconds_of_an_iteration() {
    let counts = Recipe::default().draw(3).unwrap().counts;
    for components in [40, 500] {
        let prior = Prior { components, ..Prior::default() }.check().unwrap();
        let (key, workers, batch) = (Key::new(606), Workers::serial(), Batch::all(&counts));
        let map = Map { init: Init::Scaled, ..Map::default() };
        let mut state = map.init(&counts, &prior, key);
        for _ in 0..160 {
            map.step(&mut state, &batch, &prior, key, &workers).unwrap();
        }
        let averages = Averages::new(counts.features(), components, counts.observations());
        let start = State { variational: None, averages, ..state.clone() };
        let gibbs = Gibbs::default();
        for (engine, mut state) in [(&map as &dyn Engine, state), (&gibbs, start)] {
            let mut least = f64::INFINITY;
            for _ in 0..200 {
                let begin = std::time::Instant::now();
                engine.step(&mut state, &batch, &prior, key, &workers).unwrap();
                least = least.min(begin.elapsed().as_secs_f64());
            }
            println!("K = {components}, {}: {:.2} ms", engine.name(), 1e3 * least);
        }
    }
}

#[test]
fn map_has_the_same_bits_for_any_threads_and_refuses_some_of_the_columns() {
    let counts = matrix(33, 70, 0.7, 15.0, 604);
    let (prior, key) = (prior(9), Key::new(605));
    for noise in [Noise::Poisson, Noise::Scattered { alpha: 4.0 }] {
        let engine = Map { init: Init::Scaled, noise };
        let run = |threads: usize| {
            let workers = Workers::new(threads).unwrap();
            let mut state = engine.init(&counts, &prior, key);
            for _ in 0..10 {
                engine.step(&mut state, &Batch::all(&counts), &prior, key, &workers).unwrap();
            }
            state
        };
        assert!(run(1) == run(2) && run(1) == run(3));
        let batch = Batch { counts: &counts, columns: 7..17 };
        let error = engine.step(&mut run(1), &batch, &prior, key, &Workers::serial()).unwrap_err();
        assert!(error.to_string().starts_with("map needs all columns in every step"), "{error}");
    }
}
