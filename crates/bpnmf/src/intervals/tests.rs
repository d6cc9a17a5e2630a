//! Intervals by hand, and how often they hold the truth of data that were drawn from the model.

use super::*;
use crate::random::Site;
use crate::*;

fn near(ours: f64, exact: f64) -> bool {
    (ours - exact).abs() <= 1e-3 * exact.abs()
}

#[test]
fn a_mixture_has_the_variance_within_and_between() {
    assert_eq!(mixture([[3.0, 0.5]].into_iter()), [3.0, 0.5]);
    assert_eq!(mixture([[2.0, 0.5], [4.0, 1.5]].into_iter()), [3.0, 1.0 + 2.0]);
    assert_eq!(mixture([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]].into_iter()), [2.0, 1.0]);
}

#[test]
fn ends_are_quantiles_of_a_gamma_distribution_or_zero_where_a_component_may_be_off() {
    // An exponential variable of mean 2.
    let [low, high] = exposure_interval([2.0, 4.0], 1.0);
    assert!(near(low, -2.0 * 0.95f64.ln()) && near(high, -2.0 * 0.05f64.ln()), "{low} {high}");
    // The same where it is on, with probability 1/2: mean 1, second moment 4.
    let [low, high] = exposure_interval([1.0, 3.0], 0.5);
    assert_eq!(low, 0.0);
    assert!(near(high, -2.0 * 0.1f64.ln()), "{high}");
    assert_eq!(exposure_interval([0.01, 0.1], 0.04), [0.0, 0.0]);
    assert_eq!(exposure_interval([0.0, 0.0], 0.0), [0.0, 0.0]);
    assert_eq!(exposure_interval([7.0, 0.0], 1.0), [7.0, 7.0]);
    // Shares are shares, from either side.
    let [low, high] = signature_interval([0.1, 0.01]);
    assert!(near(low, -0.1 * 0.95f64.ln()) && near(high, -0.1 * 0.05f64.ln()), "{low} {high}");
    let mirrored = signature_interval([0.9, 0.01]);
    assert!(near(mirrored[0], 1.0 - high) && near(mirrored[1], 1.0 - low), "{mirrored:?}");
    assert!(signature_interval([0.5, 0.2])[1] <= 1.0);
}

/// F x T counts of `K` components, with W (K x F) and H S (K x T) behind them.
struct Drawn {
    counts: Counts,
    w: Vec<f64>,
    h: Vec<f64>,
}

const FEATURES: usize = 30;
const COLUMNS: usize = 80;
const COMPONENTS: usize = 4;

fn drawn(seed: u64) -> Drawn {
    let stream = |part: u32, i: usize, j: usize| Key::new(seed).stream(Site::Init, part, i as u32, j as u32);
    let w: Vec<f64> = (0..COMPONENTS * FEATURES).map(|i| 2.0 * stream(80, i, 0).gamma(0.5)).collect();
    let on = |i: usize| stream(81, i, 0).uniform() < 0.6;
    let h: Vec<f64> = (0..COMPONENTS * COLUMNS)
        .map(|i| if on(i) { 4.0 * stream(82, i, 0).gamma(1.0) } else { 0.0 })
        .collect();
    let rate =
        |f: usize, t: usize| (0..COMPONENTS).map(|k| w[k * FEATURES + f] * h[k * COLUMNS + t]).sum::<f64>();
    let counts = (0..COLUMNS * FEATURES)
        .map(|at| stream(83, at, 0).poisson(rate(at % FEATURES, at / FEATURES)))
        .collect();
    Drawn { counts: Counts::from_dense(FEATURES, COLUMNS, counts).unwrap(), w, h }
}

fn chains_of(counts: &Counts, chains: usize, seed: u64) -> Chains {
    let (job, _) = Plan { seed, chains: Some(chains), ..Plan::default() }.job(counts).unwrap();
    job.run(counts, &Workers::new(2).unwrap(), |_| None, |_| |_: &TraceRow| true).unwrap()
}

/// The component of the truth that looks most like component `k` of the model.
fn true_one(model: &Posterior, drawn: &Drawn, k: usize) -> usize {
    let cosine = |j: &usize| {
        let (mut product, mut square) = (0.0, 0.0);
        for (f, w) in drawn.w[j * FEATURES..][..FEATURES].iter().enumerate() {
            product += w * f64::from(model.dictionary[f * model.components() + k]);
            square += w * w;
        }
        product / square.sqrt()
    };
    (0..COMPONENTS).max_by(|i, j| cosine(i).total_cmp(&cosine(j))).unwrap()
}

/// (held, asked) of exposures and of signatures with at least 40 counts behind them.
fn coverage(chains: &Chains, drawn: &Drawn) -> [(usize, usize); 2] {
    let (model, found) = (&chains.fit().posterior, chains.intervals.as_ref().expect("gibbs has some"));
    let number = model.components();
    let mut covered = [(0, 0); 2];
    let mut ask = |what: usize, truth: f64, [low, high]: [f64; 2]| {
        let held = (low..=high).contains(&truth);
        covered[what] = (covered[what].0 + usize::from(held), covered[what].1 + 1);
    };
    for k in 0..number {
        let j = true_one(model, drawn, k);
        let (w, h) = (&drawn.w[j * FEATURES..][..FEATURES], &drawn.h[j * COLUMNS..][..COLUMNS]);
        let (true_size, uses) = (w.iter().sum::<f64>(), h.iter().sum::<f64>());
        let size: f64 = (0..FEATURES).map(|f| f64::from(model.dictionary[f * number + k])).sum();
        for (t, h) in h.iter().enumerate().filter(|(_, h)| *h * true_size > 40.0) {
            let ends = [0, 1].map(|end| f64::from(found.activations[end][k * COLUMNS + t]) * size);
            ask(0, h * true_size, ends);
        }
        for (f, w) in w.iter().enumerate().filter(|(_, w)| *w * uses > 40.0) {
            let ends = [0, 1].map(|end| f64::from(found.dictionary[end][f * number + k]) / size);
            ask(1, w / true_size, ends);
        }
    }
    covered
}

#[test]
fn the_intervals_hold_the_truth_as_often_as_they_say() {
    let mut all = [(0, 0); 2];
    for seed in 0..6 {
        let drawn = drawn(900 + seed);
        let chains = chains_of(&drawn.counts, 4, seed);
        assert_eq!(chains.n_components, COMPONENTS, "set {seed}");
        for (all, (held, asked)) in all.iter_mut().zip(coverage(&chains, &drawn)) {
            *all = (all.0 + held, all.1 + asked);
        }
    }
    for (what, (held, asked)) in ["exposures", "signatures"].iter().zip(all) {
        let share = held as f64 / asked as f64;
        println!("{what}: {held} of {asked}");
        assert!(asked > 400 && (0.8..=0.97).contains(&share), "{what}: {held} of {asked}");
    }
}

#[test]
fn one_chain_has_the_intervals_of_its_own_draws_and_those_of_expected_counts_none() {
    let counts = drawn(1).counts;
    let chains = chains_of(&counts, 1, 3);
    let (model, found) = (&chains.fit().posterior, chains.intervals.as_ref().unwrap());
    for (means, [low, high]) in
        [(&model.dictionary, &found.dictionary), (&model.activations, &found.activations)]
    {
        assert_eq!((low.len(), high.len()), (means.len(), means.len()));
        assert!((0..means.len()).all(|i| low[i] <= means[i] && means[i] <= high[i]));
        let wide =
            (0..means.len()).filter(|&i| low[i] < 0.99 * means[i] && high[i] > 1.01 * means[i]).count();
        assert!(3 * wide > means.len(), "{wide} of {}", means.len());
    }
    for kind in [EngineKind::Ssmf, EngineKind::GibbsExpected] {
        let plan = Plan { engine: Some(kind), iterations: Some(10), chains: Some(1), ..Plan::default() };
        let (job, _) = plan.job(&counts).unwrap();
        let chains = job.run(&counts, &Workers::serial(), |_| None, |_| |_: &TraceRow| true).unwrap();
        assert_eq!(chains.intervals, None);
    }
}

/// Doubling the counts behind a rate makes it better known: intervals are relative to a chain's own scale of W, and another
/// scale between W and H does not widen them.
#[test]
fn the_scale_between_w_and_h_does_not_count() {
    let spread = |up: f32| Posterior {
        features: 2,
        observations: 2,
        dictionary: vec![3.0 * up, up],
        activations: vec![10.0 / up, 20.0 / up],
        inclusion: vec![1.0; 2],
        pi: vec![0.5],
        share: vec![1.0],
        usage: vec![2.0],
        evidence: None,
        surplus: 0,
        rare: 0,
        on_anywhere: 1,
        log_likelihood: 0.0,
        spread: Some(Spread {
            signature: vec![[0.75, 0.01], [0.25, 0.01]],
            exposure: vec![[40.0, 16.0], [80.0, 16.0]],
        }),
    };
    let (model, other) = (spread(1.0), spread(1000.0));
    let alone = intervals(&model, &[], &[]).unwrap();
    let both = intervals(&model, &[&other], &[vec![(0, 0)]]).unwrap();
    assert_eq!(alone, both);
    // In expected counts 40 +- 1.645 x 4, but for skewness; the sum of W is 4.
    let [low, high] = &alone.activations;
    assert!((4.0 * low[0] - 33.7).abs() < 0.3 && (4.0 * high[0] - 46.9).abs() < 0.3, "{low:?} {high:?}");
    let [low, high] = &alone.dictionary;
    assert!((low[1] + high[0] - 4.0).abs() < 1e-3 && low[1] < 1.0 && high[1] > 1.0, "{low:?} {high:?}");
}
