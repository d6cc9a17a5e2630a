//! The search finds the number of components where it is known, and the same on any machine; it can be stopped, and goes on
//! from where it was stopped.

use super::*;
use crate::infer::{Gibbs, Ssmf};
use crate::kernel::Simd;
use crate::meanfield::tests::{low_rank, without_some};
use crate::prior::Prior;
use crate::random::Site;
use crate::run::{Fit, RunOptions, TraceRow};
use crate::synth::Recipe;

fn watched(_: &SearchStep) -> bool {
    true
}

fn fit(counts: &Counts, search: Search, workers: &Workers) -> Fit {
    let engine = Gibbs { burn_in: 10, ..Gibbs::default() };
    let options = RunOptions { iterations: 30, seed: 3, search: Some(search), ..RunOptions::default() };
    let prior = Prior::default().check().unwrap();
    crate::run(&engine, counts, &prior, &options, workers, &mut |_: &TraceRow| true).unwrap()
}

#[test]
fn it_finds_the_number_of_components_of_low_rank_counts() {
    let workers = Workers::new(2).unwrap();
    for (rank, seed) in [(3, 1), (5, 2), (7, 1), (7, 2), (7, 3)] {
        let fit = fit(&low_rank(60, 120, rank, 6.0, seed), Search::default(), &workers);
        assert_eq!(fit.posterior.components(), rank);
        let discovery = fit.discovery.expect("a search went before");
        assert_eq!(discovery.coarsening, 1.0, "counts are read in full");
        assert!(discovery.path.windows(2).all(|pair| pair[0].coarsening < pair[1].coarsening));
    }
}

#[test]
fn more_counts_do_not_change_the_number_of_components() {
    let workers = Workers::new(2).unwrap();
    for mean in [6.0, 50.0, 300.0, 3000.0] {
        let found = fit(&low_rank(50, 80, 4, mean, 1), Search::default(), &workers);
        assert_eq!(found.posterior.components(), 4, "mean count {mean}");
    }
}

#[test]
fn it_finds_the_number_of_components_with_a_quarter_of_the_entries_missing() {
    let workers = Workers::new(2).unwrap();
    for (rank, seed) in [(3, 1), (5, 2), (7, 1)] {
        let whole = low_rank(60, 160, rank, 6.0, seed);
        let counts = without_some(&whole, 0.25, seed);
        let found = fit(&counts, Search::default(), &workers).posterior;
        assert_eq!(found.components(), rank);
        // What was held back is told better by what was found than by the mean of its row.
        let (mut ours, mut plain) = (0.0, 0.0);
        let means: Vec<f64> = counts.row_totals().into_iter().map(|total| total / (0.75 * 160.0)).collect();
        for t in 0..160 {
            let x = View::new(&whole).columns[t].to_dense(60);
            for &f in counts.missing(t).iter().filter(|&&f| f != 1) {
                let (f, k) = (f as usize, found.components());
                let parts = (0..k)
                    .map(|k| found.dictionary[f * found.components() + k] * found.activations[k * 160 + t]);
                ours += resolution::deviance(x[f], f64::from(parts.sum::<f32>()));
                plain += resolution::deviance(x[f], means[f]);
            }
        }
        assert!(ours < 0.6 * plain, "deviance {ours}, of the mean {plain}");
    }
}

/// Negative binomial counts about the rates of W, H ~ Gamma(0.5); the last component, of a shape of its own, is on in the
/// first `few` columns only if `few` is not 0.
fn scattered(rank: usize, mean: f64, alpha: f64, few: usize) -> Counts {
    let (features, observations, key) = (60, 150, Key::new(4));
    let draw = |part: u32, n: usize| -> Vec<f64> {
        (0..n).map(|i| key.stream(Site::Synthesis, part, i as u32, 0).gamma(0.5)).collect()
    };
    let (mut w, mut h) = (draw(0, features * rank), draw(1, observations * rank));
    if few > 0 {
        (0..observations).for_each(|t| h[t * rank] = if t < few { 2.0 } else { 0.0 });
        (0..features).for_each(|f| w[f * rank] = if f % 10 == 0 { 4.0 } else { 0.01 });
    }
    let rate = |f: usize, t: usize| (0..rank).map(|k| w[f * rank + k] * h[t * rank + k]).sum::<f64>();
    let places = || (0..observations).flat_map(|t| (0..features).map(move |f| (f, t)));
    let scale = mean * (features * observations) as f64 / places().map(|(f, t)| rate(f, t)).sum::<f64>();
    let draw = |(f, t): (usize, usize)| {
        let mut stream = key.stream(Site::Synthesis, 2, t as u32, f as u32);
        let eps = stream.gamma(alpha) / alpha;
        stream.poisson(scale * rate(f, t) * eps)
    };
    Counts::from_dense(features, observations, places().map(draw).collect()).unwrap()
}

#[test]
fn counts_that_scatter_have_no_more_components_and_the_scatter_is_found() {
    let workers = Workers::new(2).unwrap();
    for (mean, alpha) in [(30.0, 10.0), (300.0, 10.0), (300.0, 100.0)] {
        let found = fit(&scattered(5, mean, alpha, 0), Search::default(), &workers);
        assert_eq!(found.posterior.components(), 5, "mean {mean}, alpha {alpha}");
        let learned = found.noise().alpha().expect("they scatter");
        assert!((learned / alpha - 1.0).abs() < 0.15, "mean {mean}, alpha {alpha}: {learned}");
        let plain = Search { noise: Some(Noise::Poisson), ..Search::default() };
        let poisson = fit(&scattered(5, mean, alpha, 0), plain, &workers);
        assert_eq!(poisson.noise(), Noise::Poisson);
        assert!(poisson.posterior.components() > 5, "{}", poisson.posterior.components());
    }
}

#[test]
fn scatter_is_found_where_entries_are_missing() {
    let counts = without_some(&scattered(4, 300.0, 20.0, 0), 0.1, 2);
    let found = fit(&counts, Search::default(), &Workers::new(2).unwrap());
    assert_eq!(found.posterior.components(), 4);
    let alpha = found.noise().alpha().expect("they scatter");
    assert!((12.0..35.0).contains(&alpha), "{alpha}");
}

#[test]
fn many_components_of_poisson_counts_are_not_taken_for_scatter() {
    for (features, observations, seed) in [(30, 120, 2), (42, 200, 3), (42, 200, 6)] {
        let counts = Recipe { features, observations, ..Recipe::default() }.draw(seed).unwrap().counts;
        assert_eq!(super::rank::alpha(&View::new(&counts)), f64::INFINITY, "{features} x {observations}");
    }
}

#[test]
fn a_restart_mends_a_model_with_too_many_components_and_is_kept_only_if_the_evidence_rises() {
    let (workers, search) = (Workers::new(2).unwrap(), Search::default());
    let counts = low_rank(60, 120, 5, 6.0, 1);
    let view = View::new(&counts);
    let prior = Prior::default().check().unwrap();
    let (start, watch) = (std::time::Instant::now(), &mut watched);
    let (key, scatter, done) = (Key::new(3), Scatter::POISSON, Vec::new());
    let mut run =
        Run { key, workers: &workers, start, watch, stopped: false, done, past: None, astray: None, scatter };
    let found = run.explore(&view, &prior, &search);
    let (level, best) = (Level::of(&view), found.evidence(&view, &workers));
    assert_eq!(found.components(), 5);
    let mut spoiled = found.clone();
    for _ in 0..3 {
        super::births::halve_largest(&mut spoiled, &workers);
    }
    spoiled.ascend(&view, 5, &workers);
    let lost = best - spoiled.evidence(&view, &workers);
    assert!(lost > 100.0, "{lost}");
    assert_eq!(run.restart(&mut spoiled, level, &search), 1);
    assert_eq!(spoiled.components(), 5);
    let left = best - spoiled.evidence(&view, &workers);
    assert!(left < 0.1 * lost, "{left} of {lost}");
    let mut again = found.clone();
    run.restart(&mut again, level, &search);
    assert!(again.evidence(&view, &workers) >= best);
}

#[test]
fn the_start_is_as_large_as_singular_values_say_and_grows_no_further() {
    let counts = low_rank(90, 160, 32, 100.0, 5);
    let found = fit(&counts, Search::default(), &Workers::new(2).unwrap()).posterior.components();
    assert!((31..=33).contains(&found), "{found} of 32");
}

#[test]
fn counts_with_twice_the_variance_of_poisson_counts_have_no_more_components() {
    // Negative binomial with p = 1/2: the variance is twice the rate, whatever it is.
    let (features, observations, key) = (50, 80, Key::new(8));
    let draw = |part: u32, n: usize| -> Vec<f64> {
        (0..n).map(|i| key.stream(Site::Synthesis, part, i as u32, 0).gamma(0.5)).collect()
    };
    let (w, h) = (draw(0, features * 4), draw(1, observations * 4));
    let mut values = Vec::new();
    for t in 0..observations {
        for f in 0..features {
            let rate = 300.0 * (0..4).map(|k| w[f * 4 + k] * h[t * 4 + k]).sum::<f64>();
            let mut stream = key.stream(Site::Synthesis, 2, t as u32, f as u32);
            let rate = stream.gamma(rate.max(0.01));
            values.push(stream.poisson(rate));
        }
    }
    let counts = Counts::from_dense(features, observations, values).unwrap();
    let found = fit(&counts, Search::default(), &Workers::new(2).unwrap());
    assert_eq!(found.posterior.components(), 4);
    let discovery = found.discovery.as_ref().unwrap();
    let factor = discovery.factor.expect("it is the same for all rates");
    assert!((factor / 2.0 - 1.0).abs() < 0.1, "{factor}");
    assert_eq!((discovery.coarsening, discovery.noise), (1.0 / factor, Noise::Poisson));
    assert!(found.noise_sentence().unwrap().contains("times the variance of Poisson counts"));
    // What was asked for is done as it was asked for.
    let plain = fit(&counts, Search { noise: Some(Noise::Poisson), ..Search::default() }, &Workers::serial());
    let plain = plain.discovery.unwrap();
    assert_eq!((plain.factor, plain.coarsening), (None, 1.0));
}

#[test]
fn a_component_of_one_column_in_fifty_is_found_where_counts_scatter() {
    let found = fit(&scattered(5, 100.0, 30.0, 3), Search::default(), &Workers::new(2).unwrap()).posterior;
    assert_eq!(found.components(), 5);
    assert!((0..5).any(|k| (found.usage[k] - 3.0).abs() < 0.5), "{:?}", found.usage);
}

#[test]
fn poisson_counts_have_the_bits_of_those_that_are_said_to_be() {
    for (mean, missing) in [(1.0, false), (6.0, true), (300.0, false)] {
        let counts = low_rank(50, 80, 4, mean, 1);
        let counts = if missing { without_some(&counts, 0.1, 1) } else { counts };
        let of = |noise: Option<Noise>| {
            let mut fit = fit(&counts, Search { noise, ..Search::default() }, &Workers::serial());
            fit.discovery.iter_mut().for_each(|discovery| discovery.seconds = 0.0);
            (fit.posterior, fit.discovery, fit.state)
        };
        assert_eq!(of(None), of(Some(Noise::Poisson)), "mean {mean}");
    }
}

#[test]
fn noise_has_one_component() {
    let mut stream = Key::new(9).stream(Site::Synthesis, 0, 0, 0);
    let values = (0..50 * 80).map(|_| stream.poisson(5.0)).collect();
    let counts = Counts::from_dense(50, 80, values).unwrap();
    assert_eq!(fit(&counts, Search::default(), &Workers::serial()).posterior.components(), 1);
}

#[test]
fn both_engines_start_from_what_was_found() {
    let counts = low_rank(60, 120, 4, 6.0, 4);
    let options =
        RunOptions { iterations: 30, seed: 3, search: Some(Search::default()), ..RunOptions::default() };
    let prior = Prior::default().check().unwrap();
    let workers = Workers::serial();
    let fit =
        crate::run(&Ssmf::default(), &counts, &prior, &options, &workers, &mut |_: &TraceRow| true).unwrap();
    assert_eq!(fit.posterior.components(), 4);
    assert!(fit.posterior.evidence.expect("a search went before").iter().all(|evidence| *evidence > 0.0));
}

#[test]
fn smooth_data_are_not_read_as_counts_and_their_unit_does_not_matter() {
    // Smooth bumps that come and go: no noise at all.
    let bump = |f: f64, centre: f64| (-(f - centre).powi(2) / 20.0).exp();
    let value = |f: usize, t: usize, level: f64| {
        let (f, t) = (f as f64, t as f64);
        let (one, two) = (0.5 + 0.5 * (t / 7.0).sin(), 0.5 + 0.5 * (t / 4.0).cos());
        (level * (one * bump(f, 12.0) + two * bump(f, 28.0))).round()
    };
    let workers = Workers::serial();
    for level in [200.0, 5000.0] {
        let values = (0..60).flat_map(|t| (0..40).map(move |f| value(f, t, level))).collect();
        let counts = Counts::from_dense(40, 60, values).unwrap();
        let found = Search::default()
            .run(&counts, &Prior::default().check().unwrap(), Key::new(1), &workers, &mut watched)
            .unwrap();
        assert!(found.discovery.coarsening < 0.2, "{level}: {:?}", found.discovery);
        assert_eq!(active(&found.model), 2, "{level}");
        let plain = Search { coarsening: Some(1.0), ..Search::default() };
        let found = plain
            .run(&counts, &Prior::default().check().unwrap(), Key::new(1), &workers, &mut watched)
            .unwrap();
        assert_eq!(found.discovery.coarsening, 1.0);
    }
}

#[test]
fn as_many_components_as_were_asked_for() {
    let counts = low_rank(40, 60, 4, 5.0, 5);
    for wanted in [1, 2, 6, 9] {
        let search = Search { components: Some(wanted), ..Search::default() };
        let fit = fit(&counts, search, &Workers::serial());
        assert_eq!(fit.posterior.components(), wanted);
    }
}

#[test]
fn the_truncation_grows_only_if_it_may() {
    let counts = low_rank(60, 120, 6, 6.0, 6);
    let prior = Prior { components: 5, ..Prior::default() }.check().unwrap();
    let workers = Workers::serial();
    for (grows, components, most) in [(true, 6, 10), (false, 5, 5)] {
        let search = Search { grows, ..Search::default() };
        let found = search.run(&counts, &prior, Key::new(1), &workers, &mut watched).unwrap().discovery;
        // The number before the chain: with a truncation as low as this a draw has weak components beside them.
        let last = found.path.last().expect("at least one resolution");
        assert_eq!((last.components, found.prior.components()), (components, most));
    }
}

#[test]
fn the_search_is_the_same_on_any_threads_instructions_and_storage() {
    let counts = low_rank(30, 50, 3, 2.0, 7);
    let (mut starts, mut rows, mut values) = (vec![0], Vec::new(), Vec::new());
    for t in 0..counts.observations() {
        for (f, x) in counts.column(t).positive() {
            rows.push(f as u32);
            values.push(x);
        }
        starts.push(values.len());
    }
    let sparse = Counts::from_sparse(30, 50, starts, rows, values).unwrap();
    let partial = without_some(&counts, 0.1, 7);
    let fitted = |counts: &Counts, workers: Workers| fit(counts, Search::default(), &workers).posterior;
    let first = fitted(&counts, Workers::serial());
    assert_eq!(first, fitted(&sparse, Workers::serial()));
    let with_missing = fitted(&partial, Workers::serial());
    assert_eq!(with_missing, fitted(&without_some(&sparse, 0.1, 7), Workers::new(2).unwrap()));
    for threads in [2, 8] {
        assert_eq!(first, fitted(&counts, Workers::new(threads).unwrap()));
    }
    for simd in [Simd::Avx2, Simd::Plain] {
        assert_eq!(first, fitted(&counts, Workers::serial().with_simd(simd)));
    }
}

#[test]
fn nothing_but_zeros_has_no_components_and_one_count_has_one() {
    let zeros = Counts::from_dense(3, 4, vec![0.0; 12]).unwrap();
    let found = fit(&zeros, Search::default(), &Workers::serial());
    assert_eq!((found.posterior.components(), found.discovery.is_none()), (0, true));
    let mut values = vec![0.0; 12];
    values[5] = 1.0;
    let one = Counts::from_dense(3, 4, values).unwrap();
    assert_eq!(fit(&one, Search::default(), &Workers::serial()).posterior.components(), 1);
    for wanted in [1, 9] {
        let search = Search { components: Some(wanted), ..Search::default() };
        assert!(fit(&one, search, &Workers::serial()).posterior.components() <= wanted);
    }
    let nothing_left = Search { coarsening: Some(1e-9), ..Search::default() };
    let prior = Prior::default().check().unwrap();
    let run = nothing_left.run(&one, &prior, Key::new(1), &Workers::serial(), &mut watched);
    assert!(run.is_err_and(|error| error.to_string().contains("coarsening")));
}

#[test]
fn an_interrupted_search_ends_the_run_with_what_there_is() {
    struct Impatient;
    impl crate::Observer for Impatient {
        fn step(&mut self, _: &TraceRow) -> bool {
            true
        }
        fn search(&mut self, _: &SearchStep) -> bool {
            false
        }
    }
    let counts = low_rank(30, 50, 3, 2.0, 8);
    let options = RunOptions { search: Some(Search::default()), ..RunOptions::default() };
    let prior = Prior::default().check().unwrap();
    let fit =
        crate::run(&Gibbs::default(), &counts, &prior, &options, &Workers::serial(), &mut Impatient).unwrap();
    assert_eq!((fit.trace.len(), fit.stop_reason.name()), (1, "interrupted"));
}

#[test]
fn options_out_of_range_are_refused() {
    for search in [
        Search { coarsening: Some(0.0), ..Search::default() },
        Search { coarsening: Some(1.5), ..Search::default() },
        Search { coarsening: Some(f64::NAN), ..Search::default() },
        Search { components: Some(0), ..Search::default() },
        Search { guess: Some([].into()), ..Search::default() },
        Search { guess: Some([1.0, 2.0, 3.0, 4.0].into()), ..Search::default() },
        Search { guess: Some([1.0, -2.0, 3.0].into()), ..Search::default() },
        Search { guess: Some([1.0, f32::NAN, 3.0].into()), ..Search::default() },
    ] {
        assert!(search.check(3).is_err(), "{search:?}");
    }
}

#[test]
fn a_guess_may_hold_too_much_and_too_little() {
    let counts = low_rank(60, 120, 4, 6.0, 9);
    let workers = Workers::serial();
    let prior = Prior::default().check().unwrap();
    let alone = Search::default().run(&counts, &prior, Key::new(1), &workers, &mut watched).unwrap();
    assert_eq!(active(&alone.model), 4);
    // Three columns of the data, none of them a part, one component that is nowhere in it, and one of zeros.
    let mut guess: Vec<f32> = Vec::new();
    for t in [3, 40, 77] {
        let column = View::new(&counts).columns[t].to_dense(60);
        guess.extend(column.iter().map(|&x| x as f32));
    }
    guess.extend((0..60).map(|f| if f % 2 == 0 { 1.0 } else { 0.0 }));
    guess.extend([0.0; 60]);
    let search = Search { guess: Some(guess.into()), ..Search::default() };
    search.check(60).unwrap();
    let found = search.run(&counts, &prior, Key::new(1), &workers, &mut watched).unwrap();
    assert_eq!(active(&found.model), 4);
}
