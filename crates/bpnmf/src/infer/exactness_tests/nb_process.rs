//! The negative binomial process: Geweke's joint test, simulation-based calibration, and an order of the draws that is wrong.

use super::{
    FEATURES, OBSERVATIONS, batch_means, chi_square_tail, counts_given, dense_values, inclusion, masked,
    matrix,
};
use super::{compressed, without_some};
use crate::counts::Counts;
use crate::infer::local::Workspace;
use crate::infer::nb_process::{Given, activate, allocate, draw_dictionary, weights};
use crate::infer::{Batch, Engine, Init, NbProcess, State};
use crate::prior::{CheckedPrior, Prior};
use crate::random::{Key, Site, Stream};
use crate::special::digamma;
use crate::workers::Workers;

const COMPONENTS: usize = 3;

/// r ~ Gamma(3, 2), p ~ Beta(2, 6), Phi ~ Dirichlet(1.5).
fn prior() -> CheckedPrior {
    Prior { a: 1.5, c: 3.0, d: 2.0, a0: 6.0, b0: 9.0, components: COMPONENTS, ..Prior::default() }
        .check()
        .unwrap()
}

fn prior_draw(prior: &CheckedPrior, stream: &mut Stream) -> State {
    let empty = Counts::from_dense(FEATURES, OBSERVATIONS, vec![0.0; FEATURES * OBSERVATIONS]).unwrap();
    let mut state = NbProcess::default().init(&empty, prior, Key::new(1));
    for k in 0..COMPONENTS {
        let row: Vec<f64> = (0..FEATURES).map(|_| stream.gamma(prior.a())).collect();
        let sum: f64 = row.iter().sum();
        state.dictionary.row_mut(k).iter_mut().zip(row).for_each(|(to, w)| *to = (w / sum) as f32);
        state.own[k] = stream.gamma(prior.c()) / prior.d();
    }
    state.dictionary.settle();
    state.odds.fill(|_| stream.logit_beta(prior.pi_on(), prior.pi_off()));
    for k in 0..COMPONENTS {
        for t in 0..OBSERVATIONS {
            let theta = stream.gamma(state.own[k]) * state.odds.logit()[k].exp();
            state.activations.set(k, t, Some(theta as f32));
        }
    }
    state
}

const NAMES: [&str; 14] = [
    "r0",
    "r0^2",
    "p0",
    "logit p1",
    "Phi00",
    "Phi00^2",
    "sum log Phi",
    "Theta00",
    "Theta00^2",
    "r0 Theta00",
    "p0 Theta00",
    "mean X",
    "mean X(X-1)",
    "Theta00 Theta01",
];

/// E of the functionals under the prior: E r = 3/2, E r^2 = 3, E p / (1 - p) = 2/5, and so on.
fn expectations() -> [f64; NAMES.len()] {
    let (a, n) = (1.5, FEATURES as f64);
    let (odds, odds_squared) = (2.0 / 5.0, 6.0 / 20.0);
    let phi_squared = (a + 1.0) / (n * (n * a + 1.0));
    let (theta, theta_squared) = (1.5 * odds, (3.0 + 1.5) * odds_squared);
    let part = theta / n;
    [
        1.5,
        3.0,
        0.25,
        digamma(2.0) - digamma(6.0),
        1.0 / n,
        phi_squared,
        9.0 * (digamma(a) - digamma(n * a)),
        theta,
        theta_squared,
        3.0 * odds,
        1.5 * 6.0 / (5.0 * 8.0),
        3.0 * part,
        3.0 * phi_squared * theta_squared + 6.0 * part * part,
        3.0 * odds_squared,
    ]
}

fn evaluate(state: &State, counts: &Counts) -> [f64; NAMES.len()] {
    let phi = |f: usize, k: usize| f64::from(state.dictionary.row(k)[f]);
    let (r, p) = (state.own[0], inclusion(state.odds.logit()[0]));
    let theta = masked(state, 0, 0);
    let logs = (0..COMPONENTS).flat_map(|k| (0..FEATURES).map(move |f| (f, k))).map(|(f, k)| phi(f, k).ln());
    let x = dense_values(counts);
    let mean = |value: fn(f64) -> f64| x.iter().map(|x| value(*x)).sum::<f64>() / x.len() as f64;
    [
        r,
        r * r,
        p,
        state.odds.logit()[1],
        phi(0, 0),
        phi(0, 0).powi(2),
        logs.sum(),
        theta,
        theta * theta,
        r * theta,
        p * theta,
        mean(|x| x),
        mean(|x| x * (x - 1.0)),
        theta * masked(state, 0, 1),
    ]
}

fn step(state: &mut State, counts: &Counts, prior: &CheckedPrior, key: Key, workers: &Workers) {
    NbProcess::default().step(state, &Batch::all(counts), prior, key, workers).unwrap();
}

/// Theta before p and r, which are then drawn as if it had not been.
fn wrong_step(state: &mut State, counts: &Counts, prior: &CheckedPrior, key: Key, workers: &Workers) {
    let given = Given { counts, prior, key, workers };
    let mut workspace = Workspace::default();
    allocate(given, state, &mut workspace);
    let shares = workspace.kept_shares.clone();
    activate(given, &shares, state);
    weights(given, &shares, state);
    draw_dictionary(given, &workspace.stats, state);
    state.iteration += 1;
}

type Step = fn(&mut State, &Counts, &CheckedPrior, Key, &Workers);

/// z of every functional: the chain over (state, X) against the prior.
fn scores(step: Step, draws: usize, seed: u64) -> Vec<(&'static str, f64)> {
    let (prior, workers, key) = (prior(), Workers::serial(), Key::new(seed));
    let data = key.derived(1);
    let mut state = prior_draw(&prior, &mut data.stream(Site::Init, 0, 0, 0));
    let mut traces = vec![Vec::with_capacity(draws); NAMES.len()];
    for _ in 0..draws {
        let mut counts = counts_given(&state, &mut data.stream(Site::Synthesis, state.iteration, 0, 0));
        for _ in 0..5 {
            step(&mut state, &counts, &prior, key, &workers);
            counts = counts_given(&state, &mut data.stream(Site::Synthesis, state.iteration, 0, 0));
        }
        traces.iter_mut().zip(evaluate(&state, &counts)).for_each(|(trace, value)| trace.push(value));
    }
    let scored = NAMES.into_iter().zip(expectations()).zip(&traces).map(|((name, exact), trace)| {
        let (mean, error) = batch_means(trace, 100);
        let z = (mean - exact) / error;
        println!("{name:<16} prior {exact:8.4} chain {mean:8.4} z {z:+.2}");
        (name, z)
    });
    scored.collect()
}

#[test]
fn nb_process_keeps_the_prior_of_everything() {
    for (name, z) in scores(step, 100_000, 700) {
        assert!(z.abs() < 4.0, "{name}: z {z}");
    }
}

/// What the test above is worth.
#[test]
fn nb_process_in_the_wrong_order_does_not_keep_the_prior() {
    let worst = scores(wrong_step, 30_000, 701).into_iter().map(|(_, z)| z.abs()).fold(0.0, f64::max);
    assert!(worst > 8.0, "{worst}");
}

/// p of every functional, of the ranks of the truth among draws of the chain.
fn tails(step: Step, replicates: u64, seed: u64) -> Vec<f64> {
    const DRAWS: usize = 19;
    const THIN: usize = 25;
    let (prior, workers) = (prior(), Workers::serial());
    let mut seen = [[0.0f64; DRAWS + 1]; NAMES.len()];
    for replicate in 0..replicates {
        let key = Key::new(seed).derived(replicate);
        let mut stream = key.stream(Site::Synthesis, 0, 0, 0);
        let mut state = prior_draw(&prior, &mut stream);
        let counts = counts_given(&state, &mut stream);
        let truth = evaluate(&state, &counts);
        let mut below = [0; NAMES.len()];
        let mut ties = [0; NAMES.len()];
        for _ in 0..DRAWS {
            for _ in 0..THIN {
                step(&mut state, &counts, &prior, key, &workers);
            }
            for (i, value) in evaluate(&state, &counts).into_iter().enumerate() {
                below[i] += usize::from(value < truth[i]);
                ties[i] += usize::from(value == truth[i]);
            }
        }
        for i in 0..NAMES.len() {
            let above_ties = (stream.uniform() * (ties[i] + 1) as f64) as usize;
            seen[i][below[i] + above_ties] += 1.0;
        }
    }
    let expected = replicates as f64 / (DRAWS + 1) as f64;
    let tail = |(name, seen): (&str, &[f64; DRAWS + 1])| {
        let value: f64 = seen.iter().map(|n| (n - expected).powi(2) / expected).sum();
        println!("{name:<16} chi-square {value:6.1}");
        chi_square_tail(value, DRAWS)
    };
    NAMES.into_iter().zip(&seen).map(tail).collect()
}

#[test]
fn nb_process_ranks_the_truth_uniformly() {
    let least = tails(step, 2000, 702).into_iter().fold(1.0, f64::min);
    assert!(least * NAMES.len() as f64 > 1e-3, "least p {least:e}");
}

#[test]
fn nb_process_in_the_wrong_order_does_not_rank_the_truth_uniformly() {
    let least = tails(wrong_step, 2000, 703).into_iter().fold(1.0, f64::min);
    assert!(least * (NAMES.len() as f64) < 1e-3, "least p {least:e}");
}

#[test]
fn nb_process_has_the_same_bits_however_counts_are_held_and_whoever_works() {
    let counts = matrix(33, 70, 0.4, 15.0, 704);
    let prior = Prior { components: 9, ..Prior::default() }.check().unwrap();
    let (engine, key) = (NbProcess { burn_in: 2, init: Init::Scaled }, Key::new(705));
    let run = |counts: &Counts, threads: usize| {
        let workers = Workers::new(threads).unwrap();
        let mut state = engine.init(counts, &prior, key);
        for _ in 0..6 {
            engine.step(&mut state, &Batch::all(counts), &prior, key, &workers).unwrap();
        }
        state
    };
    let one = run(&counts, 1);
    assert!(one == run(&counts, 2) && one == run(&counts, 3));
    assert!(run(&compressed(&counts), 1) == run(&compressed(&counts), 3));
    let error = engine.check(&without_some(&counts, 0.2, 706)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "nb-process knows no missing entries: fill them in, or use the engine gibbs, ssmf or map"
    );
}

/// The model keeps copies, as a sampler that moves one count at a time does, but mixes nothing that does not belong together.
#[test]
fn nb_process_does_not_mix_components_that_share_no_feature() {
    let mut stream = Key::new(707).stream(Site::Synthesis, 0, 0, 0);
    let mut values = Vec::new();
    for _ in 0..80 {
        let sizes = [20.0 * stream.gamma(1.0), 20.0 * stream.gamma(1.0)];
        values.extend((0..12).map(|f| stream.poisson(sizes[f / 6])));
    }
    let counts = Counts::from_dense(12, 80, values).unwrap();
    let prior = Prior { components: 20, ..Prior::default() }.check().unwrap();
    let options = crate::RunOptions { iterations: 300, stop: None, ..Default::default() };
    let engine = NbProcess { burn_in: 200, init: Init::Scaled };
    let nobody = &mut |_: &crate::TraceRow| true;
    let fit = crate::run(&engine, &counts, &prior, &options, &Workers::serial(), nobody).unwrap();
    let (found, components) = (&fit.posterior, fit.posterior.components());
    println!("{components} components, shares {:.3?}", found.share);
    let astray = |k: usize| -> f64 {
        let part = |features: core::ops::Range<usize>| -> f32 {
            features.map(|f| found.dictionary[f * components + k]).sum()
        };
        let (one, other) = (part(0..6), part(6..12));
        found.share[k] * f64::from(one.min(other) / (one + other))
    };
    let astray: f64 = (0..components).map(astray).sum();
    println!("share of the counts on the wrong side: {astray:.4}");
    assert!(astray < 0.05, "{astray}");
}
