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
fn the_median_is_the_smallest_number_that_half_of_the_rows_do_not_exceed() {
    assert_eq!(median(&counted(&[(9, 3), (11, 7), (12, 2)])), 11);
    assert_eq!(median(&counted(&[(9, 7), (11, 7)])), 9);
    assert_eq!(median(&counted(&[(9, 7), (11, 7), (12, 2)])), 11);
    assert_eq!(median(&counted(&[])), 0);
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
        let counted = counted(frequencies);
        assert_eq!(interval(&counted, (median(&counted), median(&counted))), expected, "{frequencies:?}");
    }
    let spread: Vec<(usize, u64)> = (0..60).map(|number| (number, if number == 1 { 3 } else { 2 })).collect();
    assert_eq!(interval(&counted(&spread), (1, 60)), (1, 60), "stretched to hold both ends");
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

/// The same with a model of so many components, each of one feature and in one column of its own.
fn with_parts(mut fit: Fit, parts: usize) -> Fit {
    let posterior = &mut fit.posterior;
    let (features, columns) = (posterior.features, posterior.observations);
    let one = |at: bool| f32::from(u8::from(at));
    posterior.dictionary = (0..features).flat_map(|f| (0..parts).map(move |k| one(f == k))).collect();
    posterior.activations = (0..parts).flat_map(|k| (0..columns).map(move |t| one(t == k))).collect();
    posterior.pi = vec![0.5; parts];
    posterior.share = vec![1.0 / parts as f64; parts];
    fit
}

#[test]
fn only_rows_after_the_burn_in_count_and_all_of_them_the_same() {
    let first = with_parts(made_up(0.0, 2, &[90, 90, 3, 3, 3, 4]), 3);
    let second = with_parts(made_up(0.0, 1, &[90, 3, 4, 4, 5]), 4);
    let chains = Chains::new(vec![first, second]).unwrap();
    assert_eq!(chains.pmf, Some(vec![(3, 0.5), (4, 0.375), (5, 0.125)]));
    assert_eq!((chains.n_components, chains.interval), (3, Some((3, 5))));
    assert!(chains.near_truncation(5) && !chains.near_truncation(6));
}

#[test]
fn rows_say_how_far_the_number_that_counts_has_moved() {
    // Two of the components that are on are surplus, or come and go.
    let fit = with_parts(made_up(0.0, 2, &[90, 0, 7, 8, 7, 6, 7]), 5);
    assert_eq!(fit.numbers(), [88, 1, 5, 6, 5, 4, 5]);
    assert_eq!(with_parts(made_up(0.0, 3, &[4, 4, 4]), 2).numbers(), [6, 6, 6], "no row counts: as they are");
}

/// A chain whose model has so many parts, and nearly half of its rows another number.
fn torn(level: f64, parts: usize, often: usize) -> Fit {
    let active: Vec<usize> = (0..65).map(|i| if i < 32 { often } else { parts }).collect();
    with_parts(made_up(level, 0, &active), parts)
}

#[test]
fn the_best_chain_of_the_right_size_stands_for_all_and_its_number_is_reported() {
    let chain = |level: f64, number: usize| with_parts(made_up(level, 0, &[number; 64]), number);
    let of = |fits: &[Fit]| {
        let chains = Chains::new(fits.to_vec()).unwrap();
        assert_eq!(chains.n_components, chains.fit().posterior.components());
        let (first, last) = chains.interval.unwrap();
        assert!((first..=last).contains(&chains.n_components));
        (chains.representative, chains.n_components)
    };
    let (low, high, other) = (chain(-9.0, 3), chain(-5.0, 3), chain(-1.0, 4));
    assert_eq!(of(&[low.clone(), high.clone(), other.clone()]), (1, 3));
    assert_eq!(of(&[low.clone(), low.clone(), other.clone()]), (0, 3), "of equals the first");
    // What is on in the rows does not decide, but what counts in the model.
    let surplus = |fit: Fit| with_parts(fit, 7);
    assert_eq!(of(&[surplus(low), surplus(other), chain(0.0, 3)]), (1, 7));
    // Nobody has the median of all rows: the nearest, and of equally near ones the best.
    assert_eq!(of(&[torn(-3.0, 6, 4), torn(-2.0, 2, 4), torn(-4.0, 3, 4)]), (2, 3));
    assert_eq!(of(&[torn(-3.0, 5, 4), torn(-2.0, 3, 4), torn(-4.0, 6, 4)]), (1, 3));
}

#[test]
fn chains_that_agree_have_r_hat_near_one_and_chains_apart_do_not() {
    let made_up = |level: f64, burn_in: usize| with_parts(made_up(level, burn_in, &[3; 64]), 3);
    let names = |chains: &Chains| -> Vec<&str> { chains.convergence.iter().map(|c| c.name).collect() };
    let agreeing = Chains::new(vec![made_up(0.0, 0); 2]).unwrap();
    assert_eq!(names(&agreeing)[..4], ["log_joint", "components", "activation", "reconstruction_1"]);
    assert_eq!(agreeing.convergence.len(), 3 + PROBES);
    assert!(agreeing.convergence.iter().all(|quantity| quantity.r_hat.is_some_and(|r_hat| r_hat < 1.01)));
    assert_eq!((agreeing.r_hat(), agreeing.convergence[1].ess), (Some(1.0), None));
    assert_eq!(agreeing.disagreement(), None);
    let apart = Chains::new(vec![made_up(0.0, 0), made_up(9.0, 10)]).unwrap();
    assert!(apart.convergence[0].r_hat.is_some_and(|r_hat| r_hat > 1.5));
    assert!(apart.convergence[2].r_hat.is_some_and(|r_hat| r_hat < 1.1));
    assert_eq!(apart.disagreement().map(|found| found.name), Some("log_joint"));
}

#[test]
fn one_chain_says_neither_how_sure_its_number_is_nor_whether_it_has_converged() {
    let alone = Chains::new(vec![with_parts(made_up(0.0, 0, &[3; 64]), 3)]).unwrap();
    assert_eq!((alone.n_components, alone.interval, &alone.pmf), (3, None, &None));
    assert_eq!((alone.r_hat(), alone.disagreement(), &alone.recurrence), (None, None, &None));
    assert!(alone.convergence.iter().all(|quantity| quantity.r_hat.is_none()));
    assert!(alone.convergence[0].ess.is_some() && alone.doubtful().is_empty());
}

#[test]
fn chains_of_different_numbers_disagree_and_components_that_only_one_has_are_doubtful() {
    let chain = |number: usize| with_parts(made_up(0.0, 0, &[number; 64]), number);
    let chains = Chains::new(vec![chain(2), chain(3), chain(3), chain(5)]).unwrap();
    assert_eq!((chains.n_components, chains.interval), (3, Some((2, 5))));
    let found = chains.recurrence.as_ref().unwrap();
    assert_eq!(found.iter().map(|part| part.found_by).collect::<Vec<_>>(), [4, 4, 3]);
    assert!(chains.doubtful().is_empty());
    let told = chains.disagreement().unwrap();
    assert_eq!((told.name, told.r_hat), ("components", f64::INFINITY));
    assert_eq!(
        told.to_string(),
        "the chains do not agree about the number of components (R-hat is infinite, every chain keeps to a number of its \
         own): trust the interval rather than the number"
    );
    let chains = Chains::new(vec![chain(2), chain(2), chain(4), chain(4), chain(4)]).unwrap();
    assert_eq!((chains.n_components, chains.doubtful()), (4, vec![]));
    let chains = Chains::new(vec![chain(2), chain(2), chain(4), chain(4), chain(4), chain(2)]).unwrap();
    assert_eq!((chains.n_components, chains.doubtful()), (2, vec![]), "of the two in the middle the smaller");
    let chains = Chains::new(vec![chain(2), chain(4)]).unwrap();
    assert_eq!((chains.n_components, chains.doubtful()), (2, vec![]));
    let chains = Chains::new(vec![chain(4), chain(4), chain(3), chain(2)]).unwrap();
    assert_eq!((chains.n_components, chains.doubtful()), (3, vec![]));
    // The median of all rows is nobody's number, and of the model that is nearest to it one component is in one other chain, and
    // two are in none.
    let chains =
        Chains::new(vec![torn(-1.0, 5, 4), torn(-1.0, 2, 4), torn(-1.0, 3, 4), torn(-1.0, 1, 5)]).unwrap();
    assert_eq!((chains.n_components, chains.doubtful()), (5, vec![2, 3, 4]));
}

/// A search goes before, so that rows are few.
fn after_search(mut fit: Fit) -> Fit {
    let counts = counts();
    let prior = Prior { components: 20, ..Prior::default() }.check().unwrap();
    let search = Some(crate::search::Search::default());
    let options = RunOptions { iterations: 8, search, ..RunOptions::default() };
    let gibbs = Gibbs { burn_in: 2, ..Gibbs::default() };
    let searched =
        run(&gibbs, &counts, &prior, &options, &Workers::serial(), &mut |_: &TraceRow| true).unwrap();
    fit.discovery = searched.discovery;
    fit
}

#[test]
fn what_is_apart_in_short_chains_is_warned_of_only_if_the_models_differ() {
    let chain = |level: f64, rows: usize, parts: usize| {
        after_search(with_parts(made_up(level, 0, &vec![3; rows]), parts))
    };
    let name = |fits: Vec<Fit>| Chains::new(fits).unwrap().disagreement().map(|found| found.name);
    assert_eq!(name(vec![chain(0.0, 64, 3), chain(9.0, 64, 3)]), None, "the same components");
    assert_eq!(name(vec![chain(0.0, 100, 3), chain(9.0, 100, 3)]), Some("log_joint"), "many rows");
    let mut other = chain(9.0, 64, 3);
    other.posterior.dictionary.reverse();
    assert_eq!(name(vec![chain(0.0, 64, 3), other]), Some("log_joint"), "other components");
    // The number rises by one, once early and once late.
    let rising = |rows: usize, from: usize, parts: usize| {
        let active: Vec<usize> = (0..rows).map(|i| 3 + usize::from(i >= from)).collect();
        after_search(with_parts(made_up(0.0, 0, &active), parts))
    };
    assert_eq!(name(vec![rising(64, 34, 3), rising(64, 62, 3)]), None, "the same number");
    assert_eq!(name(vec![rising(64, 34, 3), rising(64, 62, 4)]), Some("components"), "other numbers");
    assert_eq!(name(vec![rising(128, 66, 3), rising(128, 120, 3)]), Some("components"), "many rows");
}

#[test]
fn the_last_number_of_the_path_is_that_of_the_model() {
    let fit = after_search(with_parts(made_up(0.0, 0, &[3; 64]), 7));
    let path = fit.resolution_path();
    assert_eq!((path.len(), path.last().unwrap().components), (fit.discovery.unwrap().path.len(), 7));
    assert!(made_up(0.0, 0, &[3; 64]).resolution_path().is_empty(), "no search");
}

#[test]
fn a_chain_that_was_hardly_begun_does_not_speak() {
    let mut begun = with_parts(made_up(50.0, 0, &[3; 8]), 3);
    begun.stop_reason = StopReason::Interrupted;
    let whole = with_parts(made_up(0.0, 0, &[3; 64]), 3);
    let chains = Chains::new(vec![begun.clone(), whole.clone(), whole.clone()]).unwrap();
    assert_eq!((chains.fits.len(), chains.representative), (3, 1));
    assert!(chains.convergence[0].r_hat.is_some_and(|r_hat| r_hat < 1.1));
    assert_eq!(chains.recurrence.as_ref().unwrap()[0].chains, 2);
    assert_eq!(Chains::new(vec![begun.clone(), whole]).unwrap().interval, None, "one that is whole");
    let alone = Chains::new(vec![begun]).unwrap();
    assert_eq!((alone.n_components, alone.representative), (3, 0));
}

#[test]
fn without_a_count_there_are_no_components() {
    let zeros = Counts::from_dense(3, 4, vec![0.0; 12]).unwrap();
    for engine in engines() {
        let chain = |seed: u64| start(&*engine, &zeros, seed, &Workers::serial()).unwrap();
        let chains = Chains::new(vec![chain(1), chain(2)]).unwrap();
        assert_eq!((chains.n_components, chains.interval), (0, Some((0, 0))));
        assert_eq!(chains.pmf, Some(vec![(0, 1.0)]));
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

/// Chains made until they are sure, of models with so many components as `number` says.
fn until_sure(n: usize, threads: usize, number: impl Fn(usize) -> usize + Sync) -> (Vec<usize>, StopReason) {
    let one = start(&*engines()[0], &counts(), 1, &Workers::serial()).unwrap();
    let made = |chain: usize, _: u64, _: &Workers| {
        let mut fit = one.clone();
        fit.posterior.pi = vec![0.5; number(chain)];
        fit.trace.iter_mut().for_each(|row| row.active = number(chain));
        Ok(fit)
    };
    let (fits, reason) = run_until_sure(n, 5, &Workers::new(threads).unwrap(), made).unwrap();
    (fits.iter().map(|fit| fit.posterior.components()).collect(), reason)
}

#[test]
fn chains_are_made_until_the_last_half_of_them_changes_nothing() {
    for threads in [1, 3] {
        // All the same: four are enough, and fewer are not.
        assert_eq!(until_sure(4, threads, |_| 7), (vec![7; 4], StopReason::Sure));
        assert_eq!(until_sure(1, threads, |_| 7), (vec![7; 4], StopReason::Sure));
        // The third and fourth change the interval, the next four do not, but R-hat is infinite: the next eight must not either.
        let twos = |chain: usize| if chain % 4 < 2 { 5 } else { 6 };
        let (numbers, reason) = until_sure(4, threads, twos);
        assert_eq!((numbers.len(), reason), (16, StopReason::Sure));
        assert_eq!(numbers, (0..16).map(twos).collect::<Vec<_>>(), "in their order");
        // Every chain finds one more.
        let (numbers, reason) = until_sure(4, threads, |chain| 1 + chain);
        assert_eq!((numbers.len(), reason), (MOST_CHAINS_UNTIL_SURE, StopReason::ChainLimit));
    }
}

#[test]
fn when_the_time_is_over_no_more_chains_begin_and_every_one_has_one_iteration() {
    let engine = &*engines()[0];
    let counts = counts();
    for threads in [1, 2] {
        let late = Workers::new(threads).unwrap().with_deadline(Some(std::time::Instant::now()));
        for until_sure in [false, true] {
            let chains = Chains::run(3, until_sure, 1, &late, |_, seed, workers| {
                assert!(workers.late());
                start(engine, &counts, seed, workers)
            });
            let chains = chains.unwrap();
            assert_eq!(chains.stop_reason(), StopReason::TimeBudget);
            assert!(chains.fits.len() <= threads && chains.fit().trace.len() == 1);
        }
    }
}
