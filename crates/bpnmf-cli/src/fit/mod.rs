//! `bpnmf fit`: a file becomes counts, counts become a posterior, the posterior becomes files.

pub(crate) mod config;
mod foreign;
pub(crate) mod output;
mod page;
mod report;
mod trace;

use crate::args::FitArgs;
use crate::checkpoint::{ChainKeeper, Keeper, Start};
use crate::claim::Claim;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::progress::{Mode, Progress};
use crate::{interrupt, memory, text};
use bpnmf::{
    Chains, Counts, Error, Fit, Observer, RunOptions, SearchStep, Standing, StopReason, Suspicion, TraceRow,
};
use bpnmf_io::ReadOptions;
use bpnmf_report::Data;
pub(crate) use config::thread_count;
use config::{Config, Place};
use output::{Extra, Results, Source};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

pub(crate) fn fit(args: &FitArgs, start: &Start) -> Result<ExitCode, Failure> {
    let mut config = Config::check(&args.model)?;
    (config.held_out, config.force) = (args.held_out, args.force);
    Claim::check_free(&args.out)?;
    start.check(&args.out, args.force)?;
    let folder = Folder::unused(&args.out, &output::FILES, args.force)?;

    let mut read_options = ReadOptions::default();
    read_options.transpose = args.transpose;
    read_options.missing = args.missing;
    read_options.layer = args.layer.clone();
    read_options.memory = memory::available().filter(|_| !args.force);
    let table = bpnmf_io::read(&args.input, &read_options).map_err(Failure::reading)?;
    let source = Source {
        path: args.input.display().to_string(),
        features: table.counts.features(),
        observations: table.counts.observations(),
        nonzeros: table.counts.nonzeros(),
        missing: table.counts.missing_entries(),
        total: table.counts.total(),
        whole_counts: table.counts.first_fraction().is_none(),
        feature_names: table.feature_names,
        observation_names: table.observation_names,
    };
    let density = table.counts.density();
    let mut doubts = Doubts::default();
    let place = Place { path: &args.input, transposed: args.transpose };
    let looks_like = Suspicion::of(&table.counts);
    let counts = config.meet(table.counts, &args.model, place)?;
    let _claim = folder.claim(&output::FILES, args.force)?;
    let keeper = Keeper::new(&folder, start, &[&args.input], &args.model, config.chains)?;

    let mode = Mode::choose(args.model.quiet, args.model.json_progress);
    let progress = Progress::new(mode, config.options.iterations, config.chains);
    progress.header(&format!(
        "{}: {} features x {} observations, {} % of the entries positive{}",
        source.path,
        text::grouped(source.features),
        text::grouped(source.observations),
        text::significant(100.0 * density, 2),
        match source.missing {
            0 => String::new(),
            missing => format!(", {} missing", text::grouped(missing)),
        },
    ));
    doubts.warn(looks_like);
    interrupt::listen()?;
    let begin = Instant::now();
    let (chains, mut progress) = run(&config, &counts, progress, &keeper)?;
    progress.finish();
    // Neither a number that was asked for nor that of the paper's algorithm says anything about the data.
    if config.options.search.is_some() && !config.forced() {
        doubts.warn(Suspicion::of_components(chains.n_components, &counts));
    }

    let seconds = seconds_of(&chains, begin);
    let results = Results { source: &source, config: &config, chains: &chains, seconds };
    results.warn();
    let report = args.report.then(|| {
        let mut report = results.report(Data::Counts(&counts));
        report.warnings.extend(doubts.0.iter().cloned());
        bpnmf_report::html(&report)
    });
    let staging = folder.staged()?;
    let extra = Extra { warnings: doubts.0, ..Extra::default() };
    results.write(staging.folder(), report.as_deref(), &extra)?;
    staging.commit(&folder, &[], &output::FILES)?;
    if mode == Mode::Json {
        progress.done(&results.done_event(&folder, &extra.warnings));
    } else if !args.model.quiet && std::io::stdout().is_terminal() {
        text::print(&results.for_people(&folder))?;
    }
    if results.stop_reason() == StopReason::Interrupted {
        return Err(interrupted(&chains, config.options.iterations, &folder, &keeper));
    }
    keeper.over();
    Ok(ExitCode::SUCCESS)
}

/// What is to be doubted about the data, as it was said.
#[derive(Default)]
struct Doubts(Vec<String>);

impl Doubts {
    /// Says it on stderr, whoever is watching: a result that is nonsense must not look like one that is not.
    fn warn(&mut self, suspicion: Option<Suspicion>) {
        if let Some(suspicion) = suspicion {
            eprintln!("warning: {suspicion}");
            self.0.push(suspicion.to_string());
        }
    }
}

/// Runs all chains, watched and interruptible.
pub(crate) fn run(
    config: &Config,
    counts: &Counts,
    progress: Progress,
    keeper: &Keeper,
) -> Result<(Chains, Progress), Failure> {
    let Config { engine, prior, options, workers, chains, until_sure, .. } = config;
    let progress = Mutex::new(progress);
    let start = |chain: usize, seed: u64, workers: &bpnmf::Workers| -> Result<Fit, Error> {
        let options = RunOptions { seed, ..options.clone() };
        let checkpoint = keeper.load(chain);
        let mut watcher = Watcher { chain, progress: &progress, keeper, own: keeper.chain(chain) };
        let fit =
            bpnmf::run_from(checkpoint, engine.as_ref(), counts, prior, &options, workers, &mut watcher)?;
        watcher.progress().chain_over(chain);
        Ok(fit)
    };
    let chains = Chains::run(*chains, *until_sure, options.seed, workers, start).map_err(|error| {
        keeper.abandon();
        Failure::from(error)
    })?;
    keeper.check()?;
    Ok((chains, progress.into_inner().unwrap_or_else(PoisonError::into_inner)))
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
pub(crate) fn interrupted(chains: &Chains, iterations: usize, folder: &Folder, keeper: &Keeper) -> Failure {
    let how_far = match &chains.fits[..] {
        [fit] => format!("after iteration {} of {iterations}", fit.trace.len()),
        fits => {
            let whole = fits.iter().filter(|fit| fit.stop_reason != StopReason::Interrupted).count();
            format!("with {whole} of {} chains complete", fits.len())
        }
    };
    let place = folder.path().display();
    Failure::Other(format!(
        "interrupted {how_far}: the results so far are in {place}{}",
        keeper.how_to_go_on()
    ))
}
