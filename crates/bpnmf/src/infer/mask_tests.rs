//! The sweep against the plain rule, on tame and on nasty inputs.

use super::activations::Activations;
use super::dictionary::{Dictionary, stored};
use super::mask::{Known, Odds, Proposal, Scratch, Sweep, Tiers, sweep, sweep_plainly};
use crate::counts::Counts;
use crate::kernel::Simd;
use crate::random::{Key, Site, Stream};

const ALL: [Simd; 3] = [Simd::Avx512, Simd::Avx2, Simd::Plain];

struct Lazy {
    key: Key,
    shape: f64,
    scale: f64,
}

impl Proposal for Lazy {
    const KNOWN: bool = false;
    fn draw(&self, t: usize, k: usize) -> f32 {
        let mut stream = self.key.stream(Site::Activation, 7, t as u32, k as u32);
        stored(stream.gamma(self.shape) * self.scale)
    }
}

/// A problem whose difficulty is set by a few knobs.
#[derive(Debug)]
struct Case {
    features: usize,
    observations: usize,
    components: usize,
    /// Shape of W: small means many entries at the floor.
    w_shape: f64,
    scale: f64,
    on: f64,
    zeros: f64,
    logit: f64,
    /// The share of entries that are missing.
    missing: f64,
}

struct Problem {
    counts: Counts,
    sparse: Counts,
    dictionary: Dictionary,
    odds: Odds,
    activations: Activations,
    lazy: Lazy,
}

fn build(case: &Case, seed: u64) -> Problem {
    let mut stream: Stream = Key::new(seed).stream(Site::Synthesis, 0, 0, 0);
    let mut dictionary = Dictionary::new(case.features, case.components);
    for k in 0..case.components {
        let size = case.scale * (2.0 * stream.normal()).exp();
        for value in dictionary.row_mut(k) {
            *value = stored(stream.gamma(case.w_shape) * size);
        }
    }
    dictionary.settle();
    let lazy = Lazy { key: Key::new(seed + 1), shape: 2.0, scale: 0.5 };
    let mut activations = Activations::new(case.components, case.observations);
    let mut dense = Vec::new();
    for t in 0..case.observations {
        let mut rate = vec![0.0; case.features];
        for k in 0..case.components {
            let h = lazy.draw(t, k);
            // Known activations are in place at sites that are off, too.
            activations.set(k, t, Some(h));
            if stream.uniform() < 0.1 {
                for f in 0..case.features {
                    rate[f] += f64::from(dictionary.row(k)[f]) * f64::from(h);
                }
            }
            if stream.uniform() >= case.on {
                activations.set(k, t, None);
            }
        }
        for f in 0..case.features {
            let value = if stream.uniform() < case.zeros { 0.0 } else { stream.poisson(rate[f].min(1e12)) };
            dense.push(value);
        }
    }
    let counts = Counts::from_dense(case.features, case.observations, dense).unwrap();
    let (mut starts, mut rows, mut values) = (vec![0], Vec::new(), Vec::new());
    for t in 0..case.observations {
        for (f, value) in counts.column(t).positive() {
            rows.push(f as u32);
            values.push(value);
        }
        starts.push(rows.len());
    }
    let sparse = Counts::from_sparse(case.features, case.observations, starts, rows, values).unwrap();
    let mut stream = Key::new(seed).stream(Site::Synthesis, 1, 0, 0);
    let (mut starts, mut rows) = (vec![0], Vec::new());
    for _ in 0..case.observations {
        rows.extend((0..case.features as u32).filter(|_| stream.uniform() < case.missing));
        starts.push(rows.len());
    }
    let counts = counts.with_missing(starts.clone(), rows.clone()).unwrap();
    let sparse = sparse.with_missing(starts, rows).unwrap();
    let mut stream = Key::new(seed).stream(Site::Synthesis, 2, 0, 0);
    let odds = Odds::new((0..case.components).map(|_| case.logit * stream.normal() - 1.0).collect());
    Problem { counts, sparse, dictionary, odds, activations, lazy }
}

fn check<P: Proposal>(problem: &Problem, proposal: &P, sweeps: u32) -> Tiers {
    let mut total = Tiers::default();
    let mut plain = problem.activations.clone();
    let mut fast: Vec<(Simd, bool, Activations)> = ALL
        .into_iter()
        .flat_map(|simd| [(simd, false, plain.clone()), (simd, true, plain.clone())])
        .collect();
    for number in 0..sweeps {
        let job = |counts| Sweep {
            counts,
            dictionary: &problem.dictionary,
            odds: &problem.odds,
            proposal,
            key: Key::new(99),
            number,
        };
        sweep_plainly(&job(&problem.counts), &mut plain);
        for (simd, from_sparse, activations) in &mut fast {
            let counts = if *from_sparse { &problem.sparse } else { &problem.counts };
            let (on, values) = activations.columns_mut(0, counts.observations());
            let tiers = sweep(*simd, &job(counts), 0, on, values, &mut Scratch::default());
            assert_eq!(tiers.sites() as usize, counts.observations() * problem.dictionary.components());
            total.add(&tiers);
            for t in 0..counts.observations() {
                let (ours, theirs) = (activations.column(t), plain.column(t));
                assert_eq!(ours.on, theirs.on, "{simd:?}, sparse {from_sparse}, sweep {number}, column {t}");
                assert!(ours.iter().eq(theirs.iter()), "activations differ in column {t}");
            }
        }
    }
    total
}

fn check_both(case: &Case, seed: u64, sweeps: u32) -> Tiers {
    let problem = build(case, seed);
    let mut tiers = check(&problem, &Known, sweeps);
    tiers.add(&check(&problem, &problem.lazy, sweeps));
    tiers
}

const TAME: Case = Case {
    features: 75,
    observations: 60,
    components: 100,
    w_shape: 0.5,
    scale: 1.0,
    on: 0.1,
    zeros: 0.0,
    logit: 3.0,
    missing: 0.0,
};

#[test]
fn squeezed_sweep_equals_plain_sweep_bit_for_bit() {
    let mut tiers = Tiers::default();
    for seed in 0..4 {
        tiers.add(&check_both(&TAME, seed, 4));
        tiers.add(&check_both(&Case { on: 0.5, ..TAME }, seed + 10, 3));
        tiers.add(&check_both(&Case { zeros: 0.9, scale: 0.3, ..TAME }, seed + 20, 3));
        tiers.add(&check_both(&Case { on: 0.0, ..TAME }, seed + 40, 2));
        tiers.add(&check_both(&Case { missing: 0.3, ..TAME }, seed + 50, 3));
        tiers.add(&check_both(&Case { missing: 0.3, zeros: 0.9, scale: 0.3, ..TAME }, seed + 60, 3));
        tiers.add(&check_both(&Case { scale: 30.0, logit: 10.0, ..TAME }, seed + 30, 3));
        tiers.add(&check_both(&Case { features: 300, observations: 20, ..TAME }, seed + 70, 2));
    }
    // The test means something only if every tier had its turn.
    println!("{tiers:?}");
    for share in [
        tiers.h_free,
        tiers.linear,
        tiers.jensen,
        tiers.moments,
        tiers.logarithms,
        tiers.exact,
        tiers.forced,
        tiers.flips,
    ] {
        assert!(share > 50, "{tiers:?}");
    }
    assert!(tiers.sites() > 500_000);
}

#[test]
fn squeezed_sweep_equals_plain_sweep_on_nasty_inputs() {
    for seed in 0..3 {
        // W at the floor almost everywhere, huge and tiny scales, odd shapes, columns without counts.
        check_both(&Case { w_shape: 0.01, ..TAME }, seed, 2);
        check_both(&Case { w_shape: 0.003, zeros: 0.5, on: 0.01, ..TAME }, seed, 2);
        check_both(&Case { scale: 1e9, ..TAME }, seed, 2);
        check_both(&Case { scale: 1e-9, ..TAME }, seed, 2);
        check_both(&Case { scale: 1e-30, w_shape: 0.1, ..TAME }, seed, 2);
        check_both(&Case { features: 1, components: 1, observations: 3, ..TAME }, seed, 5);
        check_both(&Case { features: 1, components: 17, observations: 9, on: 0.0, ..TAME }, seed, 5);
        check_both(&Case { features: 16, components: 16, observations: 8, ..TAME }, seed, 5);
        check_both(&Case { features: 33, components: 65, observations: 1, zeros: 1.0, ..TAME }, seed, 5);
        check_both(&Case { features: 300, components: 40, zeros: 0.99, ..TAME }, seed, 2);
        check_both(&Case { logit: 5000.0, ..TAME }, seed, 2);
        // Nearly everything missing, everything missing, and missing entries that have nearly all of W.
        check_both(&Case { missing: 0.97, ..TAME }, seed, 3);
        check_both(&Case { missing: 1.0, ..TAME }, seed, 3);
        check_both(&Case { missing: 0.5, w_shape: 0.01, zeros: 0.5, ..TAME }, seed, 2);
        check_both(&Case { missing: 0.5, features: 1, components: 17, observations: 9, ..TAME }, seed, 5);
    }
}

/// Knobs at random, from harmless to absurd.
fn random_case(number: u64) -> Case {
    let mut stream: Stream = Key::new(number).stream(Site::Synthesis, 3, 0, 0);
    let mut pick = |values: &[f64]| values[(stream.uniform() * values.len() as f64) as usize];
    Case {
        features: pick(&[1.0, 2.0, 15.0, 16.0, 17.0, 40.0, 75.0]) as usize,
        observations: pick(&[1.0, 2.0, 7.0, 20.0]) as usize,
        components: pick(&[1.0, 2.0, 15.0, 16.0, 17.0, 33.0, 64.0]) as usize,
        w_shape: pick(&[0.001, 0.01, 0.1, 0.5, 2.0, 50.0]),
        scale: pick(&[1e-30, 1e-9, 1e-3, 0.1, 1.0, 30.0, 1e4, 1e9, 1e12]),
        on: pick(&[0.0, 0.01, 0.1, 0.5, 1.0]),
        zeros: pick(&[0.0, 0.5, 0.9, 0.99, 1.0]),
        logit: pick(&[0.0, 0.1, 3.0, 30.0, 5000.0, 1e12]),
        missing: pick(&[0.0, 0.0, 0.1, 0.5, 0.97, 1.0]),
    }
}

/// Cases 22, 38 and 149 found a bound that took the logarithm of infinity where hardly any of W was observed.
#[test]
fn squeezed_sweep_equals_plain_sweep_on_random_inputs() {
    let cases = std::env::var("BPNMF_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    for number in 0..cases {
        let case = random_case(number);
        println!("case {number}: {case:?}");
        let problem = build(&case, number);
        for tiers in [check(&problem, &Known, 2), check(&problem, &problem.lazy, 2)] {
            assert!(tiers.flips <= tiers.sites());
        }
    }
}
