//! What carries no information does not change the answer: runs with and without rows and columns that hold no count.

use crate::intervals::Spread;
use crate::random::Site;
use crate::*;

const FEATURES: usize = 25;
const OBSERVATIONS: usize = 70;

/// Counts and the same counts among empty rows and columns, and where the rows and the columns went.
struct Case {
    plain: Counts,
    padded: Counts,
    rows: Vec<usize>,
    columns: Vec<usize>,
}

/// `n` places of `n + more`, increasing.
fn places(n: usize, more: usize, stream: &mut Stream) -> Vec<usize> {
    let mut all: Vec<(u64, usize)> = (0..n + more).map(|i| ((stream.uniform() * 1e15) as u64, i)).collect();
    all.sort_unstable();
    let mut places: Vec<usize> = all[..n].iter().map(|&(_, i)| i).collect();
    places.sort_unstable();
    places
}

fn held(features: usize, observations: usize, values: &[f64], sparse: bool) -> Counts {
    if !sparse {
        return Counts::from_dense_with_missing(features, observations, values.to_vec()).unwrap();
    }
    let (mut starts, mut rows, mut kept) = (vec![0], Vec::new(), Vec::new());
    for column in values.chunks(features) {
        for (f, &value) in column.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            rows.push(f as u32);
            kept.push(value);
        }
        starts.push(rows.len());
    }
    Counts::from_sparse_with_missing(features, observations, starts, rows, kept).unwrap()
}

fn case(sparse: bool, missing: bool, [more_rows, more_columns]: [usize; 2]) -> Case {
    let drawn = Recipe { features: FEATURES, observations: OBSERVATIONS, ..Default::default() };
    let drawn = drawn.draw(3).unwrap().counts;
    let mut stream = Key::new(8).stream(Site::Init, 99, 0, 0);
    let mut value = |x: f64| if missing && stream.uniform() < 0.03 { f64::NAN } else { x };
    let mut values = vec![0.0; FEATURES * OBSERVATIONS];
    for t in 0..OBSERVATIONS {
        drawn.column(t).positive().for_each(|(f, x)| values[t * FEATURES + f] = x);
    }
    values.iter_mut().for_each(|x| *x = value(*x));
    let (features, observations) = (FEATURES + more_rows, OBSERVATIONS + more_columns);
    let mut padded: Vec<f64> = (0..features * observations).map(|_| value(0.0)).collect();
    let rows = places(FEATURES, more_rows, &mut stream);
    let columns = places(OBSERVATIONS, more_columns, &mut stream);
    for (t, &column) in columns.iter().enumerate() {
        for (f, &row) in rows.iter().enumerate() {
            padded[column * features + row] = values[t * FEATURES + f];
        }
    }
    let plain = held(FEATURES, OBSERVATIONS, &values, sparse);
    assert!(plain.occupied().is_none() && plain.has_missing() == missing);
    Case { plain, padded: held(features, observations, &padded, sparse), rows, columns }
}

fn options() -> RunOptions {
    RunOptions { iterations: 8, seed: 5, stop: None, search: Some(Search::default()), ..Default::default() }
}

fn engines() -> [Box<dyn Engine>; 2] {
    [Box::new(Gibbs { burn_in: 3, ..Default::default() }), Box::new(Ssmf::default())]
}

fn fitted(engine: &dyn Engine, counts: &Counts, options: &RunOptions) -> Fit {
    let prior = Prior { components: 30, ..Default::default() }.check().unwrap();
    timeless(run(engine, counts, &prior, options, &Workers::serial(), &mut |_: &TraceRow| true).unwrap())
}

/// Everything of a fit but the times.
fn timeless(mut fit: Fit) -> Fit {
    fit.seconds = 0.0;
    fit.trace.iter_mut().for_each(|row| row.seconds = 0.0);
    fit.discovery.iter_mut().for_each(|discovery| discovery.seconds = 0.0);
    fit
}

/// The rows and columns of a posterior that the counts without empty ones have.
fn occupied(found: &Posterior, case: &Case) -> Posterior {
    let k = found.components();
    fn of_columns<T: Copy>(values: &[T], found: &Posterior, case: &Case) -> Vec<T> {
        let row = |k: usize| case.columns.iter().map(move |&t| values[k * found.observations + t]);
        (0..found.components()).flat_map(row).collect()
    }
    Posterior {
        features: case.rows.len(),
        observations: case.columns.len(),
        dictionary: case.rows.iter().flat_map(|&f| found.dictionary[f * k..][..k].to_vec()).collect(),
        activations: of_columns(&found.activations, found, case),
        inclusion: of_columns(&found.inclusion, found, case),
        spread: found.spread.as_ref().map(|spread| Spread {
            signature: case.rows.iter().flat_map(|&f| spread.signature[f * k..][..k].to_vec()).collect(),
            exposure: of_columns(&spread.exposure, found, case),
        }),
        ..found.clone()
    }
}

#[test]
fn empty_rows_and_columns_do_not_change_a_single_bit_of_the_answer() {
    let [gibbs, ssmf] = &engines();
    for (sparse, missing, more, engine) in [
        (false, false, [40, 30], gibbs),
        (false, true, [40, 30], ssmf),
        (true, false, [400, 30], ssmf),
        (true, true, [40, 30], gibbs),
        (false, false, [3, 0], ssmf),
        (true, true, [0, 5], gibbs),
    ] {
        let case = case(sparse, missing, more);
        let plain = fitted(engine.as_ref(), &case.plain, &options());
        let padded = fitted(engine.as_ref(), &case.padded, &options());
        assert!(plain.posterior.components() > 1);
        assert_eq!(padded.trace, plain.trace);
        assert_eq!(padded.discovery, plain.discovery);
        assert_eq!(padded.burn_in, plain.burn_in);
        assert_eq!(occupied(&padded.posterior, &case), plain.posterior);
        check_what_came_back(&padded, &case);
    }
}

#[test]
fn empty_rows_and_columns_do_not_change_a_single_bit_when_counts_scatter() {
    let noise = Noise::Scattered { alpha: 20.0 };
    let search = Some(Search { noise: Some(noise), ..Default::default() });
    let options = RunOptions { search, ..options() };
    let case = case(true, true, [40, 30]);
    for engine in engines() {
        let plain = fitted(engine.as_ref(), &case.plain, &options);
        let mut padded = fitted(engine.as_ref(), &case.padded, &options);
        assert_eq!(padded.trace, plain.trace);
        assert_eq!(occupied(&padded.posterior, &case), plain.posterior);
        assert_eq!(padded.noise(), noise);
        // The state is one of all rows and columns.
        let (prior, workers) = (&padded.discovery.unwrap().prior, Workers::serial());
        engine.step(&mut padded.state, &Batch::all(&case.padded), prior, Key::new(1), &workers).unwrap();
    }
}

/// W of an empty row is positive, and of all together less than that of one row; H and S of an empty column are 0.
fn check_what_came_back(fit: &Fit, case: &Case) {
    let (found, k) = (&fit.posterior, fit.posterior.components());
    let (features, observations) = (case.padded.features(), case.padded.observations());
    assert_eq!((found.features, found.observations), (features, observations));
    let [w, h, s] = [&found.dictionary, &found.activations, &found.inclusion];
    assert_eq!([w.len(), h.len(), s.len()], [features * k, k * observations, k * observations]);
    let empty: Vec<usize> = (0..features).filter(|f| !case.rows.contains(f)).collect();
    let discovery = fit.discovery.as_ref().unwrap();
    let occupied = case.padded.occupied().expect("some rows or columns are empty");
    assert!(occupied.empty_rows().iter().map(|&f| f as usize).eq(empty.iter().copied()));
    for k in 0..k {
        let row = &h[k * observations..][..observations];
        for t in (0..observations).filter(|t| !case.columns.contains(t)) {
            assert_eq!((row[t], s[k * observations + t]), (0.0, 0.0));
        }
        assert!(empty.iter().all(|&f| w[f * found.components() + k] > 0.0));
        // What they promise where they were observed: an entry that was not says nothing about what it would have held.
        let promised = |e: usize, f: usize| -> f64 {
            let unobserved = occupied.unobserved(e);
            let observed = (0u32..).zip(occupied.columns()).filter(|(t, _)| !unobserved.contains(t));
            let sum: f64 = observed.map(|(_, &t)| f64::from(row[t as usize])).sum();
            f64::from(w[f * found.components() + k]) * sum
        };
        let counts: f64 = empty.iter().enumerate().map(|(e, &f)| promised(e, f)).sum();
        let most = discovery.prior.a() / discovery.coarsening;
        assert!(counts <= 1.0001 * most, "{counts} expected counts, a is {}", discovery.prior.a());
    }
    assert_eq!(fit.state.dictionary.features(), features);
    assert_eq!(fit.state.activations.observations(), observations);
    let (factors, used) = (&fit.state.dictionary, fit.state.activations.usage());
    assert!((0..factors.components()).all(|k| factors.row(k).iter().all(|w| *w > 0.0)));
    assert!(used.iter().all(|&on| on as usize <= case.columns.len()));
}

#[test]
fn the_weight_of_an_empty_row_is_its_conditional_mean_over_the_columns_where_it_was_observed() {
    let mut case = case(false, false, [3, 0]);
    let features = case.padded.features();
    let empty: Vec<usize> = (0..features).filter(|f| !case.rows.contains(f)).collect();
    // The first was never observed, the second not in the first ten columns.
    let starts = (0..=OBSERVATIONS).map(|t| t + t.min(10)).collect();
    let missing = |t: usize| empty[..if t < 10 { 2 } else { 1 }].iter().map(|&f| f as u32);
    let rows = (0..OBSERVATIONS).flat_map(missing).collect();
    case.padded = case.padded.with_missing(starts, rows).unwrap();
    let fit = fitted(engines()[0].as_ref(), &case.padded, &options());
    let (found, discovery) = (&fit.posterior, fit.discovery.as_ref().unwrap());
    let (a, b, scale) = (discovery.prior.a(), discovery.prior.b(), 1.0 / discovery.coarsening);
    for k in 0..found.components() {
        let h = &found.activations[k * OBSERVATIONS..][..OBSERVATIONS];
        let after = |t: usize| h[t..].iter().map(|&h| f64::from(h)).sum::<f64>();
        // The prior of the one, and pieces of one feature the two others.
        let means = [a / b, a / 2.0 / (b + after(10)), a / 2.0 / (b + after(0))];
        for (f, mean) in empty.iter().zip(means) {
            let (w, wanted) = (f64::from(found.dictionary[f * found.components() + k]), scale * mean);
            assert!((w / wanted - 1.0).abs() < 1e-5, "{w} {wanted}");
        }
    }
}

#[test]
fn a_guess_is_read_in_the_rows_that_are_occupied() {
    let case = case(false, false, [10, 10]);
    let guess: Vec<f32> = (0..8 * FEATURES).map(|i| ((i * i) % 17) as f32).collect();
    let mut among = vec![3.0; 8 * case.padded.features()];
    for k in 0..8 {
        for (f, &row) in case.rows.iter().enumerate() {
            among[k * case.padded.features() + row] = guess[k * FEATURES + f];
        }
    }
    let with = |guess: Vec<f32>| {
        let search = Some(Search { guess: Some(guess.into()), ..Default::default() });
        RunOptions { search, ..options() }
    };
    let engine = &engines()[0];
    let plain = fitted(engine.as_ref(), &case.plain, &with(guess.clone()));
    let padded = fitted(engine.as_ref(), &case.padded, &with(among));
    assert_eq!(occupied(&padded.posterior, &case), plain.posterior);
    // A guess has all features of the data.
    let nobody = &mut |_: &TraceRow| true;
    let prior = Prior::default().check().unwrap();
    let short = run(engine.as_ref(), &case.padded, &prior, &with(guess), &Workers::serial(), nobody);
    assert!(matches!(short, Err(Error::BadOption { name: "guess", .. })));
}

/// Keeps the bytes of one stage of the search or of one iteration, and ends the run there.
struct Keep {
    stage: usize,
    iteration: usize,
    stages: usize,
    bytes: Vec<u8>,
}

impl Keep {
    fn at(stage: usize, iteration: usize) -> Self {
        Self { stage, iteration, stages: 0, bytes: Vec::new() }
    }
}

impl Observer for Keep {
    fn step(&mut self, _: &TraceRow) -> bool {
        true
    }

    fn stands(&mut self, standing: &Standing<'_>) -> bool {
        self.stages += usize::from(standing.iteration() == 0);
        let here = match standing.iteration() {
            0 => self.stages == self.stage,
            iteration => iteration == self.iteration,
        };
        if here {
            standing.write(&mut self.bytes).unwrap();
        }
        !here
    }
}

#[test]
fn a_run_with_empty_rows_and_columns_goes_on_from_a_checkpoint_with_the_same_bits() {
    let prior = Prior { components: 30, ..Default::default() }.check().unwrap();
    let workers = Workers::serial();
    let [gibbs, ssmf] = &engines();
    for (sparse, missing, engine) in [(false, true, gibbs), (true, false, ssmf)] {
        let case = case(sparse, missing, [12, 7]);
        let unbroken = fitted(engine.as_ref(), &case.padded, &options());
        for (stage, iteration) in [(1, 0), (4, 0), (0, 3), (0, 8)] {
            let mut keep = Keep::at(stage, iteration);
            run(engine.as_ref(), &case.padded, &prior, &options(), &workers, &mut keep).unwrap();
            let checkpoint = Checkpoint::read(&keep.bytes).unwrap();
            let go_on = |counts: &Counts| {
                let (again, nobody) = (Some(checkpoint.clone()), &mut |_: &TraceRow| true);
                run_from(again, engine.as_ref(), counts, &prior, &options(), &workers, nobody)
            };
            let resumed = timeless(go_on(&case.padded).unwrap());
            assert_eq!(resumed.posterior, unbroken.posterior, "from {stage}, {iteration}");
            assert_eq!(resumed.trace, unbroken.trace);
            assert_eq!(resumed.discovery, unbroken.discovery);
            assert!(resumed.state.dictionary == unbroken.state.dictionary);
            assert!(resumed.state.averages == unbroken.state.averages);
            let wrong = Counts::from_dense(2, 2, vec![1.0, 2.0, 0.0, 0.0]).unwrap();
            assert!(matches!(go_on(&wrong), Err(Error::BadCheckpoint { .. })));
        }
    }
}

#[test]
fn a_count_in_a_feature_that_was_never_seen_can_be_projected() {
    let case = case(true, false, [400, 0]);
    let engine = &engines()[0];
    let [plain, padded] =
        [&case.plain, &case.padded].map(|counts| fitted(engine.as_ref(), counts, &options()));
    let basis = |fit: &Fit| {
        let found = fit.discovery.as_ref().unwrap();
        Basis::of(&fit.posterior, &found.prior, found.coarsening).unwrap()
    };
    let project = |fit: &Fit, counts: &Counts| {
        let options = ProjectOptions { draws: 40_000, ..Default::default() };
        basis(fit).project(counts, &options, &Workers::serial(), &|| true).unwrap()
    };
    let (k, features) = (plain.posterior.components(), case.padded.features());
    let first = |counts: &Counts, rows: Option<&[usize]>| {
        let mut column = vec![0.0; if rows.is_some() { features } else { FEATURES }];
        for (f, x) in counts.column(0).positive() {
            column[rows.map_or(f, |rows| rows[f])] = x;
        }
        column
    };
    // Zeros in features that were never seen hardly matter.
    let one = project(&plain, &Counts::from_dense(FEATURES, 1, first(&case.plain, None)).unwrap());
    let mut column = first(&case.plain, Some(&case.rows));
    let two = project(&padded, &Counts::from_dense(features, 1, column.clone()).unwrap());
    for k in 0..k {
        let (one, two, spread) = (one.activations[k], two.activations[k], one.spread[k]);
        assert!((one - two).abs() < 0.1 * spread + 0.01, "{one} {two}, spread {spread}");
    }
    assert!((one.log_likelihood[0] - two.log_likelihood[0]).abs() < 0.5);
    // A count there is a surprise, and not more.
    let empty = (0..features).find(|f| !case.rows.contains(f)).unwrap();
    column[empty] = 1.0;
    let three = project(&padded, &Counts::from_dense(features, 1, column).unwrap());
    let surprise = two.log_likelihood[0] - three.log_likelihood[0];
    assert!((5.0..25.0).contains(&surprise), "{surprise}");
    assert!(three.activations.iter().all(|h| h.is_finite()));
    // Nothing but such a count.
    let mut alone = vec![0.0; features];
    alone[empty] = 2.0;
    let alone = project(&padded, &Counts::from_dense(features, 1, alone).unwrap());
    assert!(alone.log_likelihood[0].is_finite() && alone.log_likelihood[0] > -200.0);
    assert!(alone.activations.iter().any(|h| *h > 0.0) && alone.activations.iter().all(|h| h.is_finite()));
}

/// Thinning leaves rows and columns without a count to fit, in which counts were held out.
#[test]
fn what_is_held_out_is_scored_in_empty_rows_and_columns_too() {
    let counts = case(true, true, [5, 4]).padded;
    let (kept, held_out) = HeldOut::split(&counts, 0.5, 3).unwrap();
    for engine in engines() {
        let fit =
            fitted(engine.as_ref(), &kept, &RunOptions { held_out: Some(held_out.clone()), ..options() });
        let told = fit.trace.last().unwrap().held_out.unwrap();
        assert_eq!(told, held_out.score(&fit.state, fit.discovery.unwrap().coarsening));
        assert!(told.is_finite() && told > -10.0, "{told}");
    }
    // A held-out count in a row that has none to fit.
    let mut values = vec![4.0; 12];
    (values[2], values[5], values[8]) = (0.0, 0.0, 1.0);
    values[11] = 0.0;
    let counts = Counts::from_dense(3, 4, values).unwrap();
    let seed = (0..).find(|&seed| counts.thinned(0.5, seed).unwrap().0.row_totals()[2] == 0.0).unwrap();
    let (kept, held_out) = HeldOut::split(&counts, 0.5, seed).unwrap();
    assert!(kept.occupied().is_some());
    let fit = fitted(engines()[0].as_ref(), &kept, &RunOptions { held_out: Some(held_out), ..options() });
    assert!(fit.trace.iter().all(|row| row.held_out.unwrap() > -10.0), "far below, the count had no rate");
}

#[test]
fn a_run_without_a_search_sets_nothing_aside_and_neither_does_one_without_a_count() {
    let case = case(false, false, [6, 4]);
    let engine = Gibbs { burn_in: 3, init: Init::Scaled, ..Default::default() };
    let fit = fitted(&engine, &case.padded, &RunOptions { search: None, ..options() });
    let mut keep = Keep::at(0, 4);
    let prior = Prior { components: 30, ..Default::default() }.check().unwrap();
    let plain = RunOptions { search: None, ..options() };
    run(&engine, &case.padded, &prior, &plain, &Workers::serial(), &mut keep).unwrap();
    let checkpoint = Checkpoint::read(&keep.bytes).unwrap();
    checkpoint.check(&engine, &case.padded, &plain).unwrap();
    assert_eq!(fit.state.dictionary.features(), case.padded.features());

    let zeros = Counts::from_dense(3, 4, vec![0.0; 12]).unwrap();
    let fit = fitted(&engine, &zeros, &options());
    assert_eq!((fit.stop_reason, fit.posterior.components()), (StopReason::NoCounts, 0));
    assert_eq!((fit.posterior.features, fit.posterior.observations), (3, 4));
}
