//! Projections against what they should be.

use super::*;
use crate::job::Job;
use crate::plan::Plan;
use crate::prior::Prior;
use crate::run::{Fit, TraceRow, run};
use crate::synth::Recipe;

/// A set of which all parts are on in more than 1 % of the columns by far: what does not count is missing in the basis.
fn fitted() -> (Counts, Fit, Basis) {
    let counts = Recipe { features: 30, observations: 120, ..Default::default() }.draw(6).unwrap().counts;
    let Job { engine, prior, options, .. } = Plan::default().job(&counts).unwrap().0;
    let go = &mut |_: &TraceRow| true;
    let fit = run(engine.as_ref(), &counts, &prior, &options, &Workers::serial(), go).unwrap();
    let found = fit.discovery.as_ref().unwrap();
    let basis = Basis::of(&fit.posterior, &found.prior, found.coarsening).unwrap();
    (counts, fit, basis)
}

fn selected(counts: &Counts, columns: &[usize], sparse: bool) -> Counts {
    let features = counts.features();
    if !sparse {
        let mut values = vec![0.0; features * columns.len()];
        for (at, &t) in columns.iter().enumerate() {
            counts.column(t).positive().for_each(|(f, x)| values[at * features + f] = x);
        }
        return Counts::from_dense(features, columns.len(), values).unwrap();
    }
    let (mut starts, mut rows, mut values) = (vec![0], vec![], vec![]);
    for &t in columns {
        for (f, x) in counts.column(t).positive() {
            rows.push(f as u32);
            values.push(x);
        }
        starts.push(rows.len());
    }
    Counts::from_sparse(features, columns.len(), starts, rows, values).unwrap()
}

#[test]
fn an_observation_has_the_same_numbers_wherever_it_stands_and_however_it_is_held() {
    let (counts, _, basis) = fitted();
    let options = ProjectOptions { keep: true, ..Default::default() };
    let k = basis.components;
    let all = basis.project(&counts, &options, &Workers::serial(), &|| true).unwrap();
    let columns = [17, 3, 99];
    for (sparse, workers) in [(false, Workers::serial()), (true, Workers::new(2).unwrap())] {
        let some = selected(&counts, &columns, sparse);
        let some = basis.project(&some, &options, &workers, &|| true).unwrap();
        for (at, t) in columns.into_iter().enumerate() {
            assert_eq!(some.activations[at * k..][..k], all.activations[t * k..][..k]);
            assert_eq!(some.spread[at * k..][..k], all.spread[t * k..][..k]);
            assert_eq!(some.log_likelihood[at], all.log_likelihood[t]);
            let many = options.draws as usize * k;
            assert_eq!(some.draws[at * many..][..many], all.draws[t * many..][..many]);
        }
    }
}

/// The fit knows W with an error and averages over it; so a few sites may be further off than their spread says.
#[test]
fn the_projection_of_what_was_fitted_agrees_with_the_fit() {
    let (counts, fit, basis) = fitted();
    let projection =
        basis.project(&counts, &ProjectOptions::default(), &Workers::serial(), &|| true).unwrap();
    let (k, observations) = (basis.components, counts.observations());
    let (mut far, mut squares, mut sites) = (0, 0.0, 0);
    for t in 0..observations {
        for c in 0..k {
            let at = t * k + c;
            let difference = projection.activations[at] - fit.posterior.activations[c * observations + t];
            let spread = projection.spread[at].max(0.02);
            sites += 1;
            far += usize::from(difference.abs() > 2.0 * spread);
            squares += f64::from(difference / spread).powi(2);
        }
    }
    assert!(far * 20 < sites, "{far} of {sites} sites are further than two standard deviations off");
    assert!(squares < 0.5 * f64::from(sites as u32), "{}", squares / f64::from(sites as u32));
    // At the mean of the activations the counts are likelier than they are on the average over the draws.
    let at_mean: f64 = projection.log_likelihood.iter().sum();
    let over_draws = fit.posterior.log_likelihood;
    assert!(at_mean > over_draws && at_mean < 0.8 * over_draws, "{at_mean} {over_draws}");
}

/// A feature that is missing everywhere might as well not be there.
#[test]
fn what_is_missing_says_nothing() {
    let (counts, fit, basis) = fitted();
    let (features, k) = (counts.features(), basis.components);
    let some = selected(&counts, &[4, 9], false);
    let (starts, rows) = ((0..3).map(|t| 10 * t).collect(), [0; 2].iter().flat_map(|_| 20..30).collect());
    let options = ProjectOptions { draws: 30_000, ..Default::default() };
    let partial = some.with_missing(starts, rows).unwrap();
    let partial = basis.project(&partial, &options, &Workers::serial(), &|| true).unwrap();
    let found = fit.discovery.as_ref().unwrap();
    let w = &fit.posterior.dictionary[..20 * k];
    let fewer = Basis::new(20, w, &fit.posterior.pi, &found.prior, found.coarsening).unwrap();
    let mut values = Vec::new();
    for t in [4, 9] {
        let mut column = vec![0.0; features];
        counts.column(t).positive().for_each(|(f, x)| column[f] = x);
        values.extend_from_slice(&column[..20]);
    }
    let fewer_counts = Counts::from_dense(20, 2, values).unwrap();
    let other = fewer.project(&fewer_counts, &options, &Workers::serial(), &|| true).unwrap();
    for at in 0..2 * k {
        let (one, two) = (partial.activations[at], other.activations[at]);
        assert!((one - two).abs() < 0.2 * other.spread[at] + 0.02, "{one} {two}");
    }
    for (one, two) in partial.log_likelihood.iter().zip(&other.log_likelihood) {
        assert!((one - two).abs() < 0.5, "{one} {two}");
    }
}

#[test]
fn draws_have_the_moments_that_are_reported() {
    let (counts, _, basis) = fitted();
    let options = ProjectOptions { draws: 2000, keep: true, ..Default::default() };
    let one = selected(&counts, &[4], false);
    let projection = basis.project(&one, &options, &Workers::serial(), &|| true).unwrap();
    for k in 0..basis.components {
        let draws: Vec<f64> =
            projection.draws.iter().skip(k).step_by(basis.components).map(|&h| f64::from(h)).collect();
        let mean = draws.iter().sum::<f64>() / 2000.0;
        let spread = (draws.iter().map(|h| (h - mean).powi(2)).sum::<f64>() / 2000.0).sqrt();
        let reported = (f64::from(projection.activations[k]), f64::from(projection.spread[k]));
        assert!((mean - reported.0).abs() < 0.1 * reported.1 + 0.01, "{mean} {reported:?}");
        assert!((spread - reported.1).abs() < 0.1 * reported.1 + 0.01, "{spread} {reported:?}");
    }
}

/// A basis of three components, and columns whose truth is known: negative binomial, alpha 8, or Poisson.
fn known(alpha: Option<f64>) -> (Basis, Counts, Vec<f64>) {
    let (features, observations, components) = (40, 150, 3);
    let mut stream = Key::new(9).stream(Site::Init, 0, 0, 0);
    let w: Vec<f32> = (0..features * components).map(|_| stream.gamma(0.7) as f32).collect();
    let h: Vec<f64> = (0..observations * components).map(|_| 40.0 * stream.gamma(2.0)).collect();
    let mut values = Vec::new();
    for t in 0..observations {
        for f in 0..features {
            let of = |k: usize| f64::from(w[f * components + k]) * h[t * components + k];
            let rate: f64 = (0..components).map(of).sum();
            let scattered = alpha.map_or(1.0, |alpha| stream.gamma(alpha) / alpha);
            values.push(stream.poisson(rate * scattered));
        }
    }
    let prior = Prior { c: 2.0, d: 2.0 / 80.0, components, ..Prior::default() }.check().unwrap();
    let basis = Basis::new(features, &w, &[0.9; 3], &prior, 1.0).unwrap();
    (basis, Counts::from_dense(features, observations, values).unwrap(), h)
}

/// Mean square error, and the share of true activations within 1.645 standard deviations.
fn judged(basis: &Basis, counts: &Counts, truth: &[f64]) -> (f64, f64) {
    let found = basis.project(counts, &ProjectOptions::default(), &Workers::serial(), &|| true).unwrap();
    let n = truth.len() as f64;
    let errors = || found.activations.iter().zip(truth).map(|(h, truth)| f64::from(*h) - truth);
    let within = errors().zip(&found.spread).filter(|(error, s)| error.abs() <= 1.645 * f64::from(**s));
    (errors().map(|error| error * error).sum::<f64>() / n, within.count() as f64 / n)
}

#[test]
fn activations_of_counts_that_scatter_are_nearer_with_their_noise_and_their_spread_is_right() {
    let (poisson, counts, truth) = known(Some(8.0));
    let scattered = poisson.clone().with_noise(Noise::Scattered { alpha: 8.0 }).unwrap();
    let (error, covered) = judged(&scattered, &counts, &truth);
    let (error_without, covered_without) = judged(&poisson, &counts, &truth);
    println!("covered {covered}, as Poisson counts {covered_without}; errors {error} and {error_without}");
    assert!(error < 0.9 * error_without, "{error} {error_without}");
    assert!((0.84..0.96).contains(&covered) && covered_without < 0.6, "{covered} {covered_without}");
}

#[test]
fn a_noise_without_scatter_projects_as_poisson_bit_for_bit() {
    let (poisson, counts, _) = known(None);
    let counts = counts.with_missing((0..=150).collect(), vec![7; 150]).unwrap();
    let little = poisson.clone().with_noise(Noise::Scattered { alpha: 1e15 }).unwrap();
    let [one, other] = [&poisson, &little].map(|basis| {
        basis.project(&counts, &ProjectOptions::default(), &Workers::serial(), &|| true).unwrap()
    });
    assert_eq!((one.activations, one.spread), (other.activations, other.spread));
    for (one, other) in one.log_likelihood.iter().zip(&other.log_likelihood) {
        assert!((one / other - 1.0).abs() < 1e-8, "{one} {other}");
    }
    let error = poisson.with_noise(Noise::Scattered { alpha: 0.0 }).unwrap_err();
    assert_eq!(error.to_string(), "alpha is 0: it must be finite and above 0");
}

#[test]
fn a_scattered_observation_has_the_same_numbers_wherever_it_stands_and_however_it_is_held() {
    let (basis, counts, _) = known(Some(8.0));
    let basis = basis.with_noise(Noise::Scattered { alpha: 8.0 }).unwrap();
    let options = ProjectOptions { keep: true, draws: 10, ..Default::default() };
    let all = basis.project(&counts, &options, &Workers::serial(), &|| true).unwrap();
    for (sparse, workers) in [(false, Workers::serial()), (true, Workers::new(2).unwrap())] {
        let some = selected(&counts, &[17, 3, 99], sparse);
        let some = basis.project(&some, &options, &workers, &|| true).unwrap();
        for (at, t) in [17, 3, 99].into_iter().enumerate() {
            assert_eq!(some.draws[at * 30..][..30], all.draws[t * 30..][..30]);
            assert_eq!(some.log_likelihood[at], all.log_likelihood[t]);
        }
    }
}
