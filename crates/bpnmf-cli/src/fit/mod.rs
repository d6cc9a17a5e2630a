//! `bpnmf fit`: a file becomes counts, counts become a posterior, the posterior becomes files.

mod blocks;
pub(crate) mod config;
mod markers;
pub(crate) mod output;
mod page;
mod report;
mod trace;
pub(crate) mod units;

use crate::args::FitArgs;
use crate::catalogue::Catalogue;
use crate::checkpoint::{ChainKeeper, Keeper, Start};
use crate::claim::Claim;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::progress::{Mode, Progress, notice};
use crate::{input, interrupt, text};
use bpnmf::{Chains, Counts, Observer, SearchStep, Standing, StopReason, Suspicion, TraceRow, Warning};
use bpnmf_report::Data;
pub(crate) use config::thread_count;
use config::{Config, Place, Request};
use output::{Extra, Results, Source};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often the clock of a run is brought up to date.
const TICK: Duration = Duration::from_secs(1);

pub(crate) fn fit(args: &FitArgs, start: &Start) -> Result<ExitCode, Failure> {
    let mut request = Request::check(&args.model)?;
    (request.plan.held_out, request.force) = (args.held_out, args.force);
    Claim::check_free(&args.out)?;
    start.check(&args.out, args.force)?;
    let folder = Folder::unused(&args.out, &output::FILES, args.force)?;

    if let Some(file) = blocks::wanted(args)? {
        return blocks::fit_file(args, request, &folder, file);
    }
    let table = input::read(&args.input, &args.table, args.force)?;
    if args.blocks {
        return blocks::fit_table(args, request, &folder, table);
    }
    let understood = input::understood(&table, &args.input.display().to_string());
    let read_as = table.layout.as_ref().map(ToString::to_string);
    let mut doubts = Doubts::default();
    let mut of_table = input::doubts(&table, args.table.transpose);
    let catalogue =
        |path: &PathBuf| Catalogue::read(path, table.feature_names.as_deref(), table.counts.features());
    let catalogue = args.catalogue.as_ref().map(catalogue).transpose()?;
    of_table.extend(catalogue.iter().flat_map(|catalogue| catalogue.doubts.iter().cloned()));
    let source = Source {
        path: args.input.display().to_string(),
        features: table.counts.features(),
        observations: table.counts.observations(),
        nonzeros: table.counts.nonzeros(),
        missing: table.counts.missing_entries(),
        total: table.counts.total(),
        whole_counts: table.counts.first_fraction().is_none(),
        recording: false,
        read_as,
        feature_names: table.feature_names,
        observation_names: table.observation_names,
    };
    let place = Place { path: &args.input, transposed: args.table.transpose };
    let looks_like = Suspicion::of(&table.counts);
    let (config, counts) = request.meet(table.counts, place)?;
    let _claim = folder.claim(&output::FILES, args.force)?;
    let keeper = Keeper::new(&folder, start, &[&args.input], &args.model, config.job.chains)?;

    let mode = Mode::choose(args.model.quiet, args.model.json_progress);
    let progress = Progress::new(mode, config.job.options.iterations, config.job.chains);
    progress.header(&understood);
    of_table.into_iter().for_each(|doubt| doubts.say(doubt));
    doubts.warn(looks_like);
    interrupt::listen()?;
    let begin = Instant::now();
    let (chains, mut progress) = run(&config, &counts, progress, &keeper)?;
    progress.finish();
    let of_data = |warning: &Warning| matches!(warning, Warning::Data(_));
    let (of_counts, warnings): (Vec<_>, Vec<_>) =
        config.job.warnings(&chains, &counts).into_iter().partition(of_data);
    of_counts.into_iter().for_each(|doubt| doubts.say(doubt.to_string()));
    let seconds = seconds_of(&chains, begin);
    let results = Results { source: &source, config: &config, chains: &chains, warnings, seconds };
    results.warn();
    let matches = catalogue.map(|catalogue| results.matches(&catalogue));
    let extra = Extra { warnings: doubts.0, tables: true, matches, ..Extra::default() };
    notice(mode, "writing the results", || -> Result<(), Failure> {
        let report = args.report.then(|| {
            let mut report = results.report(Data::Counts(&counts));
            report.warnings.extend(extra.warnings.iter().cloned());
            report.matches =
                extra.matches.iter().flat_map(|(_, sentences)| sentences.iter().cloned()).collect();
            bpnmf_report::html(&report)
        });
        let staging = folder.staged()?;
        results.write(staging.folder(), report.as_deref(), &extra)?;
        staging.commit(&folder, &[], &output::FILES)
    })?;
    let interrupted = results.stop_reason() == StopReason::Interrupted;
    if !interrupted {
        keeper.over();
    }
    if mode == Mode::Json {
        progress.done(&results.done_event(&folder, &extra.warnings));
    } else if !args.model.quiet {
        text::print(&results.for_people(&folder, &extra))?;
    }
    if interrupted {
        return Err(interrupted_run(&chains, &config, &folder, &keeper));
    }
    Ok(ExitCode::SUCCESS)
}

/// What is to be doubted about the data, as it was said.
#[derive(Default)]
struct Doubts(Vec<String>);

impl Doubts {
    /// Says it on stderr, whoever is watching: a result that is nonsense must not look like one that is not.
    fn warn(&mut self, suspicion: Option<Suspicion>) {
        if let Some(suspicion) = suspicion {
            self.say(suspicion.to_string());
        }
    }

    fn say(&mut self, doubt: String) {
        eprintln!("warning: {doubt}");
        self.0.push(doubt);
    }
}

/// Runs all chains, watched and interruptible.
pub(crate) fn run(
    config: &Config,
    counts: &Counts,
    progress: Progress,
    keeper: &Keeper,
) -> Result<(Chains, Progress), Failure> {
    let Config { job, workers } = config;
    let progress = Mutex::new(progress);
    let watcher = |chain: usize| Watcher { chain, progress: &progress, keeper, own: keeper.chain(chain) };
    let chains = ticking(&progress, || job.run(counts, workers, |chain| keeper.load(chain), watcher));
    let chains = chains.map_err(|error| {
        keeper.abandon();
        Failure::from(error)
    })?;
    keeper.check()?;
    Ok((chains, progress.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

/// Does `work`, while the clock of whoever watches goes on.
fn ticking<T>(progress: &Mutex<Progress>, work: impl FnOnce() -> T) -> T {
    let (done, waiting) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while waiting.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                progress.lock().unwrap_or_else(PoisonError::into_inner).tick();
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// Seconds since `begin`, and those before it of chains that went on from a checkpoint.
pub(crate) fn seconds_of(chains: &Chains, begin: Instant) -> f64 {
    chains.fits.iter().map(|fit| fit.seconds).fold(begin.elapsed().as_secs_f64(), f64::max)
}

/// Shows one chain, keeps its checkpoints, and ends it when somebody asks.
struct Watcher<'a> {
    chain: usize,
    progress: &'a Mutex<Progress>,
    keeper: &'a Keeper,
    own: ChainKeeper<'a>,
}

impl Watcher<'_> {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn go_on(&self) -> bool {
        !interrupt::requested() && !self.keeper.failed()
    }
}

/// The run of its chain is over.
impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.progress().chain_over(self.chain);
    }
}

impl Observer for Watcher<'_> {
    fn step(&mut self, row: &TraceRow) -> bool {
        self.progress().step(self.chain, row);
        self.go_on()
    }

    fn search(&mut self, step: &SearchStep) -> bool {
        self.progress().search(self.chain, step);
        self.go_on()
    }

    fn stands(&mut self, standing: &Standing<'_>) -> bool {
        self.own.stands(standing)
    }
}

/// What is said when somebody ended the run early.
pub(crate) fn interrupted_run(chains: &Chains, config: &Config, folder: &Folder, keeper: &Keeper) -> Failure {
    // Those that were never begun are none of the chains.
    let how_far = match chains.fits.len().max(config.job.chains) {
        1 => format!("after iteration {} of {}", chains.fits[0].trace.len(), config.job.options.iterations),
        all => {
            let whole = chains.fits.iter().filter(|fit| fit.stop_reason != StopReason::Interrupted).count();
            format!("with {whole} of {all} chains complete")
        }
    };
    let place = folder.path().display();
    Failure::Other(format!(
        "interrupted {how_far}: the results so far are in {place}{}",
        keeper.how_to_go_on()
    ))
}
