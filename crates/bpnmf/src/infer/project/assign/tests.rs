//! Assignments of counts whose exposures are known.

use super::*;
use crate::random::{Key, Site};

/// Signatures with peaks of their own, and counts of some of them: (basis, counts, true exposures at t * K + k).
fn made(
    components: usize,
    present: usize,
    mutations: f64,
    observations: usize,
    alpha: Option<f64>,
) -> (Basis, Counts, Vec<f64>) {
    let features = 96;
    let mut stream = Key::new(4).stream(Site::Init, 0, 0, 0);
    let mut w = vec![0.0f32; features * components];
    w.iter_mut().for_each(|w| *w = stream.gamma(0.2) as f32 + 1e-4);
    let basis = Basis::known(features, &w, components).unwrap();
    let mut truth = vec![0.0; observations * components];
    let mut values = Vec::new();
    for exposures in truth.chunks_mut(components) {
        let mut left = present;
        while left > 0 {
            let k = (stream.uniform() * components as f64) as usize;
            if exposures[k] == 0.0 {
                exposures[k] = stream.gamma(1.0);
                left -= 1;
            }
        }
        let sum: f64 = exposures.iter().sum();
        exposures.iter_mut().for_each(|h| *h *= mutations / sum);
        for f in 0..features {
            let rate: f64 =
                exposures.iter().enumerate().map(|(k, h)| h * f64::from(basis.dictionary.row(k)[f])).sum();
            let scattered = alpha.map_or(1.0, |alpha| stream.gamma(alpha) / alpha);
            values.push(stream.poisson(rate * scattered));
        }
    }
    (basis, Counts::from_dense(features, observations, values).unwrap(), truth)
}

fn assigned(basis: &Basis, counts: &Counts, options: &AssignOptions) -> Assigned {
    basis.assign(counts, options, &Workers::new(2).unwrap(), &|| true).unwrap()
}

#[test]
fn intervals_cover_the_truth_as_often_as_they_say_and_what_is_present_is_found() {
    for (mutations, alpha) in [(300.0, None), (5000.0, None), (5000.0, Some(30.0))] {
        let (basis, counts, truth) = made(30, 6, mutations, 40, alpha);
        let found = assigned(&basis, &counts, &AssignOptions::default());
        let [low, high] = &found.intervals;
        let said: Vec<usize> =
            (0..truth.len()).filter(|&i| found.inclusion[i] >= found.present_from()).collect();
        let within = |&&i: &&usize| f64::from(low[i]) <= truth[i] && truth[i] <= f64::from(high[i]);
        let covered = said.iter().filter(within).count() as f64 / said.len() as f64;
        let hits = said.iter().filter(|&&i| truth[i] > 0.0).count() as f64;
        let present = truth.iter().filter(|h| **h > 0.0).count() as f64;
        let f1 = 2.0 * hits / (said.len() as f64 + present);
        println!("{mutations} {alpha:?}: covered {covered:.3}, F1 {f1:.3}, {:?}", found.noise);
        assert!((0.85..=0.96).contains(&covered), "{covered}");
        assert!(f1 > if mutations < 1000.0 { 0.7 } else { 0.85 }, "{f1}");
        match alpha {
            None => assert_eq!(found.noise, Noise::Poisson),
            Some(truth) => {
                let alpha = found.noise.alpha().unwrap();
                assert!((0.75..1.33).contains(&(alpha / truth)), "{alpha}");
            }
        }
    }
}

#[test]
fn what_is_present_is_said_from_half_on_where_all_is_sure_and_earlier_where_it_is_not() {
    let of = |inclusion: &[f32]| Assigned {
        exposures: Vec::new(),
        intervals: [Vec::new(), Vec::new()],
        inclusion: inclusion.to_vec(),
        log_likelihood: Vec::new(),
        pi: Vec::new(),
        noise: Noise::Poisson,
    };
    assert_eq!(of(&[1.0, 0.0, 1.0, 0.0]).present_from(), 0.5);
    // With all three 2 * 0.9 / (3 + 0.9) is expected to be right, with none 0.
    assert_eq!(of(&[0.3, 0.3, 0.3]).present_from(), 0.3);
    assert_eq!(of(&[]).present_from(), 0.5);
}

#[test]
fn threads_change_no_bit_and_the_seed_does() {
    let (basis, counts, _) = made(20, 4, 1000.0, 9, None);
    let options = AssignOptions { rounds: 2, draws: 40, ..Default::default() };
    let one = basis.assign(&counts, &options, &Workers::serial(), &|| true).unwrap();
    assert_eq!(one, assigned(&basis, &counts, &options));
    assert_ne!(one, assigned(&basis, &counts, &AssignOptions { seed: 1, ..options }));
}

/// Two components, no learning: the probability that one of them is on against a sum over the masks and a grid.
#[test]
fn exchanges_leave_the_posterior_as_it_is() {
    let w = [0.5f32, 0.4, 0.3, 0.3, 0.2, 0.3];
    let prior = Prior { c: 1.3, d: 0.05, components: 2, ..Prior::default() }.check().unwrap();
    let basis = Basis::new(3, &w, &[0.3, 0.45], &prior, 1.0).unwrap();
    let x = [11.0, 6.0, 5.0];
    let counts = Counts::from_dense(3, 1, x.to_vec()).unwrap();
    let options = AssignOptions { rounds: 0, burn_in: 100, draws: 40_000, ..Default::default() };
    let found = assigned(&basis, &counts, &options);
    // p(x, S) by sums over a grid of both activations.
    let (step, most) = (0.25, 240);
    let ln_gamma_density = |h: f64| 1.3 * ln(0.05) - crate::special::ln_gamma(1.3) + 0.3 * ln(h) - 0.05 * h;
    let likelihood = |h: [f64; 2]| -> f64 {
        let rate = |f: usize| h[0] * f64::from(w[2 * f]) + h[1] * f64::from(w[2 * f + 1]);
        (0..3).map(|f| x[f] * ln(rate(f)) - rate(f)).sum()
    };
    let grid = || (0..most).map(|i| (f64::from(i) + 0.5) * step);
    let exp = crate::special::exp;
    let first: f64 =
        grid().map(|h| exp(likelihood([h, 0.0]) + ln_gamma_density(h))).sum::<f64>() * step * 0.3 * 0.55;
    let second: f64 =
        grid().map(|h| exp(likelihood([0.0, h]) + ln_gamma_density(h))).sum::<f64>() * step * 0.7 * 0.45;
    let both: f64 = grid()
        .flat_map(|g| grid().map(move |h| [g, h]))
        .map(|[g, h]| exp(likelihood([g, h]) + ln_gamma_density(g) + ln_gamma_density(h)))
        .sum::<f64>()
        * step
        * step
        * 0.3
        * 0.45;
    let all = first + second + both;
    let expected = [(first + both) / all, (second + both) / all];
    println!("{expected:?} {:?}", found.inclusion);
    for (found, expected) in found.inclusion.iter().zip(expected) {
        assert!((f64::from(*found) - expected).abs() < 0.01, "{found} {expected}");
    }
}
