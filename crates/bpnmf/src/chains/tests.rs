//! What chains say together, on traces made by hand and on short runs.

use super::*;
use crate::counts::Counts;
use crate::infer::{Engine, Gibbs, Init, Ssmf, Tiers};
use crate::prior::Prior;
use crate::run::{RunOptions, run};
use crate::synth::Recipe;

fn counted(pairs: &[(usize, u64)]) -> BTreeMap<usize, u64> {
    pairs.iter().copied().collect()
}

#[test]
fn the_mode_is_the_most_frequent_number_and_the_smaller_of_two() {
    assert_eq!(mode(&counted(&[(9, 3), (11, 7), (12, 2)])), 11);
    assert_eq!(mode(&counted(&[(9, 7), (11, 7), (12, 2)])), 9);
    assert_eq!(mode(&counted(&[])), 0);
}

#[test]
fn at_most_a_twentieth_is_beyond_each_end_of_the_interval() {
    for (frequencies, expected) in [
        (&[(11, 100)][..], (11, 11)),
        (&[(10, 5), (11, 90), (12, 5)], (11, 11)),
        (&[(10, 6), (11, 89), (12, 5)], (10, 11)),
        (&[(10, 5), (11, 89), (12, 6)], (11, 12)),
        (&[(9, 3), (10, 3), (11, 88), (13, 3), (20, 3)], (10, 13)),
        (&[(1, 1), (2, 1)], (1, 2)),
        (&[(1, 3), (2, 2), (3, 2), (4, 2), (5, 2), (6, 2), (7, 2), (8, 85)], (3, 8)),
    ] {
        assert_eq!(interval(&counted(frequencies)), expected, "{frequencies:?}");
    }
    let spread: Vec<(usize, u64)> = (0..60).map(|number| (number, if number == 1 { 3 } else { 2 })).collect();
    assert_eq!(interval(&counted(&spread)), (1, 56), "stretched to hold the mode");
}

fn counts() -> Counts {
    Recipe { features: 12, observations: 40, ..Recipe::default() }.draw(5).unwrap().counts
}

fn start(engine: &dyn Engine, counts: &Counts, seed: u64, workers: &Workers) -> Result<Fit, Error> {
    let prior = Prior { components: 20, ..Prior::default() }.check()?;
    let options = RunOptions { iterations: 16, seed, ..RunOptions::default() };
    run(engine, counts, &prior, &options, workers, &mut |_: &TraceRow| true)
}

fn fits(engine: &dyn Engine, n: usize, threads: usize) -> Vec<Fit> {
    let (counts, workers) = (counts(), Workers::new(threads).unwrap());
    let fits = run_chains(n, 9, &workers, |_, seed, workers| start(engine, &counts, seed, workers));
    timeless(fits.unwrap())
}

/// Without what a clock says.
fn timeless(mut fits: Vec<Fit>) -> Vec<Fit> {
    for fit in &mut fits {
        fit.seconds = 0.0;
        fit.trace.iter_mut().for_each(|row| row.seconds = 0.0);
    }
    fits
}

fn engines() -> [Box<dyn Engine>; 2] {
    let gibbs = Gibbs { burn_in: 6, init: Init::Scaled, ..Gibbs::default() };
    [Box::new(gibbs), Box::new(Ssmf { init: Init::Scaled, ..Ssmf::default() })]
}

#[test]
fn chains_are_the_same_bits_on_any_number_of_threads_and_the_first_is_the_run_alone() {
    for engine in engines() {
        let four = fits(&*engine, 4, 1);
        for threads in [2, 3, 8] {
            assert!(fits(&*engine, 4, threads) == four, "{}, {threads} threads", engine.name());
        }
        let alone = timeless(vec![start(&*engine, &counts(), 9, &Workers::serial()).unwrap()]);
        assert!(alone[0] == four[0], "{}", engine.name());
        assert!(fits(&*engine, 2, 2)[..] == four[..2], "fewer chains are the first ones");
        for other in &four[1..] {
            assert!(other.state != four[0].state, "chains differ");
        }
    }
}

#[test]
fn seeds_of_chains_differ_between_chains_and_between_seeds() {
    assert_eq!(chain_seed(9, 0), 9);
    let mut seeds: Vec<u64> =
        (0..20).flat_map(|seed| (0..50).map(move |chain| chain_seed(seed, chain))).collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 1000);
}

#[test]
fn the_first_error_is_the_error_of_all() {
    let counts = counts();
    for threads in [1, 2, 4] {
        let workers = Workers::new(threads).unwrap();
        let result = run_chains(6, 9, &workers, |chain, seed, workers| match chain {
            2 | 4 => Err(Error::BadOption { name: "chain", value: chain as f64, range: "another" }),
            _ => start(&Ssmf::default(), &counts, seed, workers),
        });
        assert!(matches!(result, Err(Error::BadOption { value: 2.0, .. })), "{threads} threads");
    }
    assert!(run_chains(0, 9, &Workers::serial(), |_, _, _| unreachable!()).is_err());
    assert!(Chains::new(Vec::new()).is_err());
}

/// A fit whose trace is made up: `active` as given, everything else moves a little around `level`.
fn made_up(level: f64, burn_in: usize, active: &[usize]) -> Fit {
    let mut fit = fits(&Gibbs::default(), 1, 1).remove(0);
    let row = |i: usize| {
        let wobble = (i * 37 % 64) as f64 / 64.0;
        TraceRow {
            iteration: i + 1,
            active: active[i],
            log_joint: level + wobble,
            activation: 100.0 + wobble,
            reconstruction: [1.0, 2.0, 3.0, 4.0].map(|rate| rate + wobble),
            tiers: Tiers::default(),
            ..fit.trace[0]
        }
    };
    fit.trace = (0..active.len()).map(row).collect();
    fit.burn_in = burn_in;
    fit
}

fn with_parts(mut fit: Fit, parts: usize) -> Fit {
    fit.posterior.pi = vec![0.5; parts];
    fit
}

#[test]
fn only_rows_after_the_burn_in_count_and_all_of_them_the_same() {
    let first = made_up(0.0, 2, &[90, 90, 3, 3, 3, 4]);
    let second = made_up(0.0, 1, &[90, 3, 4, 4, 5]);
    let chains = Chains::new(vec![first, second]).unwrap();
    assert_eq!(chains.pmf, [(3, 0.5), (4, 0.375), (5, 0.125)]);
    assert_eq!((chains.n_components, chains.interval), (3, (3, 5)));
    assert!(chains.near_truncation(5) && !chains.near_truncation(6));
}

#[test]
fn the_best_chain_of_the_right_size_stands_for_all() {
    let chain = |level: f64, number: usize| with_parts(made_up(level, 0, &[number; 64]), number);
    let of = |fits: &[Fit]| Chains::new(fits.to_vec()).unwrap().representative;
    let (low, high, other) = (chain(-9.0, 3), chain(-5.0, 3), chain(-1.0, 4));
    assert_eq!(of(&[low.clone(), high.clone(), other.clone()]), 1);
    assert_eq!(of(&[low.clone(), low.clone(), other.clone()]), 0, "of equals the first");
    // No posterior has three parts: the number in the states decides.
    let off = |fit: Fit| with_parts(fit, 7);
    assert_eq!(of(&[off(low.clone()), off(other.clone()), off(high.clone())]), 2);
    // Nobody has the number that is most frequent of all: the best one.
    let torn = |level: f64, most: usize| {
        let active: Vec<usize> = (0..64).map(|i| if i < 30 { 3 } else { most }).collect();
        with_parts(made_up(level, 0, &active), most)
    };
    assert_eq!(of(&[torn(-3.0, 5), torn(-2.0, 6), torn(-4.0, 8)]), 1);
}

#[test]
fn chains_that_agree_have_r_hat_near_one_and_chains_apart_do_not() {
    let names = |chains: &Chains| -> Vec<&str> { chains.convergence.iter().map(|c| c.name).collect() };
    let agreeing = Chains::new(vec![made_up(0.0, 0, &[3; 64]); 2]).unwrap();
    assert_eq!(names(&agreeing)[..4], ["log_joint", "components", "activation", "reconstruction_1"]);
    assert_eq!(agreeing.convergence.len(), 3 + PROBES);
    assert!(agreeing.largest_r_hat().is_some_and(|r_hat| r_hat < 1.01));
    assert_eq!((agreeing.convergence[1].r_hat, agreeing.convergence[1].ess), (Some(1.0), None));
    let apart = Chains::new(vec![made_up(0.0, 0, &[3; 64]), made_up(9.0, 10, &[3; 64])]).unwrap();
    assert!(apart.convergence[0].r_hat.is_some_and(|r_hat| r_hat > 1.5));
    assert!(apart.convergence[2].r_hat.is_some_and(|r_hat| r_hat < 1.1));
    let short = Chains::new(vec![made_up(0.0, 62, &[3; 64])]).unwrap();
    assert_eq!(short.largest_r_hat(), None);
}

#[test]
fn a_chain_that_was_hardly_begun_does_not_speak() {
    let mut begun = with_parts(made_up(50.0, 0, &[3; 8]), 3);
    begun.stop_reason = StopReason::Interrupted;
    let chains = Chains::new(vec![made_up(0.0, 0, &[3; 64]), begun.clone()]).unwrap();
    assert_eq!((chains.fits.len(), chains.representative), (2, 0));
    assert!(chains.convergence[0].r_hat.is_some_and(|r_hat| r_hat < 1.1));
    let alone = Chains::new(vec![begun]).unwrap();
    assert_eq!((alone.n_components, alone.representative), (3, 0));
}

#[test]
fn without_a_count_there_are_no_components() {
    let zeros = Counts::from_dense(3, 4, vec![0.0; 12]).unwrap();
    for engine in engines() {
        let chains = Chains::new(vec![start(&*engine, &zeros, 1, &Workers::serial()).unwrap()]).unwrap();
        assert_eq!((chains.n_components, chains.interval), (0, (0, 0)));
        assert_eq!(chains.pmf, [(0, 1.0)]);
        assert_eq!(chains.fit().trace[0].reconstruction, [0.0; PROBES]);
    }
}

#[test]
fn what_is_watched_is_what_the_state_says() {
    let counts = counts();
    for engine in engines() {
        let fit = start(&*engine, &counts, 3, &Workers::serial()).unwrap();
        let (state, last) = (&fit.state, fit.trace.last().unwrap());
        let rate = |f: usize, t: usize| -> f64 {
            let parts = state.activations.column(t).iter();
            parts.map(|(k, h)| f64::from(h) * f64::from(state.dictionary.row(k)[f])).sum()
        };
        let positive: Vec<f64> = (0..counts.observations())
            .flat_map(|t| counts.column(t).positive().map(move |(f, _)| (f, t)))
            .map(|(f, t)| rate(f, t))
            .collect();
        assert!(last.reconstruction.iter().all(|watched| positive.contains(watched)));
    }
    // The state of this engine is the one its step reported on; the Gibbs sampler has since drawn anew.
    let fit = start(&Ssmf::default(), &counts, 3, &Workers::serial()).unwrap();
    let columns = (0..counts.observations()).map(|t| fit.state.activations.column(t));
    let expected: f64 = columns
        .flat_map(|column| column.iter())
        .map(|(k, h)| f64::from(h) * fit.state.dictionary.sum(k))
        .sum();
    let told = fit.trace.last().unwrap().activation;
    assert!((told / expected - 1.0).abs() < 1e-12, "{told} {expected}");
}
