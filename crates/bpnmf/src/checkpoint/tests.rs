//! A run that goes on from a checkpoint is the run that was never stopped.

use crate::*;

/// Keeps the bytes of one iteration, and ends the run there if asked.
struct Keep {
    at: usize,
    ends: bool,
    bytes: Vec<u8>,
}

impl Observer for Keep {
    fn step(&mut self, row: &TraceRow) -> bool {
        !(self.ends && row.iteration == self.at)
    }

    fn stands(&mut self, standing: &Standing<'_>) -> bool {
        if standing.iteration() == self.at {
            standing.write(&mut self.bytes).unwrap();
        }
        true
    }
}

/// Everything of a fit but the times.
fn timeless(mut fit: Fit) -> Fit {
    fit.seconds = 0.0;
    fit.trace.iter_mut().for_each(|row| row.seconds = 0.0);
    fit.discovery.iter_mut().for_each(|discovery| discovery.seconds = 0.0);
    fit
}

const SCATTERED: Noise = Noise::Scattered { alpha: 7.0 };

const JUMPS: Option<Jumps> = Some(Jumps { levels: 3, every: 2 });

fn engines() -> Vec<Box<dyn Engine>> {
    let scaled = Init::Scaled;
    vec![
        Box::new(Gibbs { burn_in: 6, ..Default::default() }),
        Box::new(Gibbs { expected: true, burn_in: 6, init: scaled, ..Default::default() }),
        Box::new(Gibbs { burn_in: 6, init: scaled, noise: SCATTERED, ..Default::default() }),
        Box::new(Gibbs { expected: true, burn_in: 6, init: scaled, noise: SCATTERED, jumps: None }),
        Box::new(Gibbs { burn_in: 6, noise: SCATTERED, jumps: JUMPS, ..Default::default() }),
        Box::new(Ssmf { init: scaled, ..Default::default() }),
        Box::new(Ssmf {
            init: scaled,
            noise: SCATTERED,
            prune: Some(0.05),
            prune_from: 4,
            ..Default::default()
        }),
        Box::new(Ssmf { prune: Some(0.05), prune_from: 4, ..Default::default() }),
        Box::new(Ssmf {
            init: scaled,
            gradient: Gradient::Full { draws: 3, from: 4 },
            noise: SCATTERED,
            ..Default::default()
        }),
        Box::new(Map { init: scaled, ..Default::default() }),
        Box::new(Map { init: scaled, noise: SCATTERED }),
        Box::new(NbProcess { burn_in: 6, init: scaled }),
    ]
}

fn counts(sparse: bool) -> Counts {
    let dense = Recipe { features: 25, observations: 70, ..Default::default() }.draw(3).unwrap().counts;
    if !sparse {
        return dense;
    }
    let (mut starts, mut rows, mut values) = (vec![0], Vec::new(), Vec::new());
    for t in 0..dense.observations() {
        for (f, x) in dense.column(t).positive() {
            rows.push(f as u32);
            values.push(x);
        }
        starts.push(rows.len());
    }
    Counts::from_sparse(25, 70, starts, rows, values).unwrap()
}

#[test]
fn a_resumed_run_equals_the_unbroken_one_in_every_bit_for_all_engines_and_threads() {
    let prior = Prior { components: 20, ..Default::default() }.check().unwrap();
    for (sparse, search, missing) in
        [(false, false, false), (true, false, true), (false, true, false), (false, true, true)]
    {
        let mut counts = counts(sparse);
        if missing {
            let starts = (0..=70).map(|t| 2 * t).collect();
            counts = counts.with_missing(starts, [3, 4].repeat(70)).unwrap();
        }
        // How counts scatter changes nothing about the search, which takes most of the time.
        let suits = |engine: &dyn Engine| {
            engine.check(&counts).is_ok() && (!search || engine.noise() == Noise::Poisson)
        };
        for engine in engines().into_iter().filter(|engine| suits(&**engine)) {
            let search = search.then(|| Search { coarsening: Some(0.5), ..Default::default() });
            let options = RunOptions { iterations: 14, seed: 5, stop: None, search, ..Default::default() };
            let one = Workers::serial();
            let nobody = &mut |_: &TraceRow| true;
            let unbroken = run(engine.as_ref(), &counts, &prior, &options, &one, nobody).unwrap();
            for at in [1, 5, 13, 14] {
                let mut keep = Keep { at, ends: true, bytes: Vec::new() };
                let two = Workers::new(2).unwrap();
                let cut = run(engine.as_ref(), &counts, &prior, &options, &two, &mut keep).unwrap();
                assert_eq!((cut.stop_reason, cut.trace.len()), (StopReason::Interrupted, at));
                let checkpoint = Checkpoint::read(&keep.bytes).unwrap();
                assert_eq!(checkpoint.iteration(), at);
                let resumed =
                    run_from(Some(checkpoint), engine.as_ref(), &counts, &prior, &options, &one, nobody)
                        .unwrap();
                let (resumed, unbroken) = (timeless(resumed), timeless(unbroken.clone()));
                assert_eq!(resumed.trace, unbroken.trace, "{} from {at}", engine.name());
                assert_eq!(resumed.posterior, unbroken.posterior, "{} from {at}", engine.name());
                assert_eq!(resumed.discovery, unbroken.discovery);
                assert_eq!(resumed.stop_reason, unbroken.stop_reason);
            }
        }
    }
}

#[test]
fn a_resumed_run_stops_where_the_unbroken_one_does() {
    let counts = counts(false);
    let prior = Prior { components: 20, ..Default::default() }.check().unwrap();
    let engine = Gibbs { burn_in: 3, init: Init::Scaled, ..Default::default() };
    let stop = Some(StopRule { window: 4, tolerance: 0.5 });
    let options = RunOptions { iterations: 60, stop, ..Default::default() };
    let workers = Workers::serial();
    let nobody = &mut |_: &TraceRow| true;
    let unbroken = run(&engine, &counts, &prior, &options, &workers, nobody).unwrap();
    let last = unbroken.trace.len();
    assert!(unbroken.stop_reason == StopReason::Converged && last < 60);
    for at in [2, last - 1, last] {
        let mut keep = Keep { at, ends: false, bytes: Vec::new() };
        run(&engine, &counts, &prior, &options, &workers, &mut keep).unwrap();
        let checkpoint = Checkpoint::read(&keep.bytes).unwrap();
        let resumed =
            run_from(Some(checkpoint), &engine, &counts, &prior, &options, &workers, nobody).unwrap();
        assert_eq!(timeless(resumed).posterior, unbroken.posterior, "from {at}");
    }
}

#[test]
fn a_checkpoint_of_another_run_is_refused_and_broken_bytes_are_an_error() {
    let counts = counts(false);
    let prior = Prior { components: 20, ..Default::default() }.check().unwrap();
    let options = RunOptions { iterations: 9, seed: 5, ..Default::default() };
    let workers = Workers::serial();
    let mut keep = Keep { at: 4, ends: true, bytes: Vec::new() };
    let engine = Ssmf::default();
    run(&engine, &counts, &prior, &options, &workers, &mut keep).unwrap();
    let checkpoint = Checkpoint::read(&keep.bytes).unwrap();
    let refused = |engine: &dyn Engine, counts: &Counts, options: &RunOptions| {
        let nobody = &mut |_: &TraceRow| true;
        let again = Some(checkpoint.clone());
        let error = run_from(again, engine, counts, &prior, options, &workers, nobody).unwrap_err();
        let text = error.to_string();
        text.strip_prefix("the checkpoint cannot be used: ").unwrap().to_owned()
    };
    let other = Gibbs::default();
    assert_eq!(refused(&other, &counts, &options), "it is of the engine ssmf, not of gibbs");
    let seeded = RunOptions { seed: 6, ..options.clone() };
    assert_eq!(refused(&engine, &counts, &seeded), "its seed is 5, not 6");
    let short = RunOptions { iterations: 3, ..options.clone() };
    assert_eq!(refused(&engine, &counts, &short), "it has 4 of 3 iterations");
    let smaller = Counts::from_dense(2, 3, vec![1.0; 6]).unwrap();
    assert_eq!(refused(&engine, &smaller, &options), "it is of 25 features x 70 observations, not of 2 x 3");
    for length in (0..keep.bytes.len()).step_by(37) {
        assert!(Checkpoint::read(&keep.bytes[..length]).is_err(), "cut to {length} bytes");
    }
    for at in (0..keep.bytes.len()).step_by(11) {
        let mut broken = keep.bytes.clone();
        broken[at] ^= 0xff;
        // Numbers may be others; lengths must not lead anywhere.
        let _ = Checkpoint::read(&broken);
    }
}

#[test]
fn a_checkpoint_of_counts_that_scatter_otherwise_is_refused_and_broken_bytes_are_an_error() {
    let counts = counts(true);
    let prior = Prior { components: 20, ..Default::default() }.check().unwrap();
    let options = RunOptions { iterations: 9, seed: 5, ..Default::default() };
    let workers = Workers::serial();
    let mut keep = Keep { at: 4, ends: true, bytes: Vec::new() };
    let engine = Gibbs { noise: SCATTERED, ..Default::default() };
    run(&engine, &counts, &prior, &options, &workers, &mut keep).unwrap();
    let checkpoint = Checkpoint::read(&keep.bytes).unwrap();
    for (noise, with) in [(Noise::Poisson, "Poisson noise"), (Noise::Scattered { alpha: 8.0 }, "alpha = 8")] {
        let other = Gibbs { noise, ..Default::default() };
        let nobody = &mut |_: &TraceRow| true;
        let again = Some(checkpoint.clone());
        let error = run_from(again, &other, &counts, &prior, &options, &workers, nobody).unwrap_err();
        let reason = format!("it is of counts with alpha = 7, not with {with}");
        assert_eq!(error, Error::BadCheckpoint { reason });
    }
    for length in (0..keep.bytes.len()).step_by(37) {
        assert!(Checkpoint::read(&keep.bytes[..length]).is_err(), "cut to {length} bytes");
    }
    for at in (0..keep.bytes.len()).step_by(11) {
        let mut broken = keep.bytes.clone();
        broken[at] ^= 0xff;
        let _ = Checkpoint::read(&broken);
    }
    let bad = Gibbs { noise: Noise::Scattered { alpha: f64::NAN }, ..Default::default() };
    let error = run(&bad, &counts, &prior, &options, &workers, &mut keep).unwrap_err();
    assert_eq!(error.to_string(), "alpha is NaN: it must be finite and above 0");
}

/// Keeps the bytes of one stage of the search, and ends the run there if asked.
struct KeepStage {
    at: usize,
    ends: bool,
    seen: usize,
    bytes: Vec<u8>,
}

impl Observer for KeepStage {
    fn step(&mut self, _: &TraceRow) -> bool {
        true
    }

    fn stands(&mut self, standing: &Standing<'_>) -> bool {
        if standing.iteration() > 0 {
            return true;
        }
        self.seen += 1;
        if self.seen == self.at {
            standing.write(&mut self.bytes).unwrap();
        }
        !(self.ends && self.seen == self.at)
    }
}

#[test]
fn a_search_that_goes_on_from_any_stage_finds_the_same_in_every_bit() {
    let prior = Prior { components: 8, ..Default::default() }.check().unwrap();
    let smooth: Vec<f64> =
        (0..25 * 70).map(|i| (40.0 + 30.0 * f64::from(i % 25 * (i / 25) % 7)).floor()).collect();
    let smooth = Counts::from_dense(25, 70, smooth).unwrap();
    for counts in [counts(true), smooth] {
        let engine = Gibbs { burn_in: 2, ..Default::default() };
        let search = Some(Search::default());
        let options = RunOptions { iterations: 4, seed: 5, search, ..Default::default() };
        let (one, two) = (Workers::serial(), Workers::new(2).unwrap());
        let mut all = KeepStage { at: 0, ends: false, seen: 0, bytes: Vec::new() };
        let unbroken = timeless(run(&engine, &counts, &prior, &options, &one, &mut all).unwrap());
        assert!(all.seen > 6, "{} stages", all.seen);
        for at in 1..=all.seen {
            let mut keep = KeepStage { at, ends: at % 2 == 0, seen: 0, bytes: Vec::new() };
            run(&engine, &counts, &prior, &options, &two, &mut keep).unwrap();
            let checkpoint = Checkpoint::read(&keep.bytes).unwrap();
            let nobody = &mut |_: &TraceRow| true;
            let resumed =
                run_from(Some(checkpoint), &engine, &counts, &prior, &options, &one, nobody).unwrap();
            let resumed = timeless(resumed);
            assert_eq!(resumed.discovery, unbroken.discovery, "from stage {at}");
            assert_eq!(resumed.trace, unbroken.trace, "from stage {at}");
            assert_eq!(resumed.posterior, unbroken.posterior, "from stage {at}");
        }
        let mut keep = KeepStage { at: 1, ends: true, seen: 0, bytes: Vec::new() };
        run(&engine, &counts, &prior, &options, &two, &mut keep).unwrap();
        // The first stage of the search is that of factors, after the version of the search.
        let place = keep.bytes.windows(7).position(|word| word == b"factors").expect("stages have names");
        let mut renamed = keep.bytes.clone();
        renamed[place..place + 7].copy_from_slice(b"anthems");
        let nobody = &mut |_: &TraceRow| true;
        let again = Some(Checkpoint::read(&renamed).unwrap());
        let error = run_from(again, &engine, &counts, &prior, &options, &one, nobody).unwrap_err();
        let reason = "its search went another way: to the stage \"anthems\", not \"factors\"";
        assert_eq!(error, Error::BadCheckpoint { reason: reason.to_owned() });
        let mut older = keep.bytes.clone();
        older[place - 24] += 1;
        let reason = "it is of version 5 of the search, this is 4".to_owned();
        assert_eq!(Checkpoint::read(&older).unwrap_err(), Error::BadCheckpoint { reason });
        for length in (0..keep.bytes.len()).step_by(53) {
            assert!(Checkpoint::read(&keep.bytes[..length]).is_err(), "cut to {length} bytes");
        }
    }
}
