//! `bpnmf fit` block by block: of data that are larger than memory, or because somebody asks for it.

use super::config::{Config, Request};
use super::output::{self, Extra, Results, Source};
use super::{Doubts, Watcher};
use crate::args::FitArgs;
use crate::catalogue::Catalogue;
use crate::checkpoint::Keeper;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::progress::{Mode, Passes, Progress, notice};
use crate::{input, interrupt, memory, text};
use bpnmf::{
    BlockObserver, BlockSource, Counts, Job, Observer, Round, SearchStep, Survey, Suspicion, TraceRow,
    blocks_of, fit_blocks,
};
use bpnmf_io::{BlockFile, Table};
use bpnmf_report::Data;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What a fit in memory needs of an entry beside what reading takes: the copies of two searches.
const BYTES_A_SEARCHED_ENTRY: u64 = 56;

/// The file, if it is to be read block by block: because it can be and somebody asks for it, or because it is larger than memory.
pub(super) fn wanted(args: &FitArgs) -> Result<Option<BlockFile>, Failure> {
    let Some(file) = bpnmf_io::open_blocks(&args.input, &input::options(&args.table, args.force))
        .map_err(Failure::reading)?
        .filter(|file| args.blocks || !args.force && !fits(file))
    else {
        return Ok(None);
    };
    if !args.blocks {
        eprintln!(
            "note: {} needs about {} to be fitted at once, more than there is: it is read block by block",
            args.input.display(),
            memory::text(needed(&file))
        );
    }
    Ok(Some(file))
}

fn needed(file: &BlockFile) -> u64 {
    (file.entries() as u64).saturating_mul(BYTES_A_SEARCHED_ENTRY).saturating_add(file.bytes())
}

fn fits(file: &BlockFile) -> bool {
    memory::available().is_none_or(|available| needed(file) <= available)
}

/// Fits a file that stays where it is.
pub(super) fn fit_file(
    args: &FitArgs,
    request: Request,
    folder: &Folder,
    mut file: BlockFile,
) -> Result<ExitCode, Failure> {
    let names = (file.feature_names.take(), file.observation_names.take());
    Whole { args, folder, source: &file, names, doubts: Doubts::default() }.fit(request)
}

/// Fits a table that is in memory.
pub(super) fn fit_table(
    args: &FitArgs,
    request: Request,
    folder: &Folder,
    table: Table,
) -> Result<ExitCode, Failure> {
    let mut doubts = Doubts::default();
    input::doubts(&table, args.table.transpose).into_iter().for_each(|doubt| doubts.say(doubt));
    let names = (table.feature_names, table.observation_names);
    Whole { args, folder, source: &table.counts, names, doubts }.fit(request)
}

/// A fit of blocks from the beginning to its files.
struct Whole<'a> {
    args: &'a FitArgs,
    folder: &'a Folder,
    source: &'a dyn BlockSource,
    /// Of features and of observations.
    names: (Option<Vec<String>>, Option<Vec<String>>),
    doubts: Doubts,
}

impl Whole<'_> {
    fn fit(self, request: Request) -> Result<ExitCode, Failure> {
        let Self { args, folder, source, names, mut doubts } = self;
        refuse(args)?;
        let (features, observations) = (source.features(), source.observations());
        let catalogue = |path: &PathBuf| Catalogue::read(path, names.0.as_deref(), features);
        let catalogue = args.catalogue.as_ref().map(catalogue).transpose()?;
        catalogue.iter().flat_map(|catalogue| &catalogue.doubts).for_each(|doubt| doubts.say(doubt.clone()));
        let _claim = folder.claim(&output::FILES, args.force)?;
        interrupt::listen()?;
        let (mode, begin) = (Mode::choose(args.model.quiet, args.model.json_progress), Instant::now());
        let watch = Watch::new(mode, begin, args.input.display().to_string(), (features, observations));
        let Request { plan, workers, .. } = request;
        let found =
            fit_blocks(source, &plan, args.sample, &workers, &&watch).map_err(|error| match error {
                bpnmf::Error::Ended => Failure::Other(
                    "interrupted before all blocks were done: there is no result, start again to have one"
                        .to_owned(),
                ),
                other => other.into(),
            })?;
        let stages = watch.over();
        let seconds = begin.elapsed().as_secs_f64();
        doubts.warn(Suspicion::of(&found.sample));
        let of_data = |warning: &bpnmf::Warning| matches!(warning, bpnmf::Warning::Data(_));
        let (of_counts, warnings): (Vec<_>, Vec<_>) =
            found.job.warnings(&found.chains, &found.sample).into_iter().partition(of_data);
        of_counts.into_iter().for_each(|doubt| doubts.say(doubt.to_string()));
        let Survey { nonzeros, missing, total, whole, .. } = found.survey;
        let described = Source {
            path: args.input.display().to_string(),
            features,
            observations,
            nonzeros,
            missing,
            total,
            whole_counts: whole,
            recording: false,
            read_as: None,
            feature_names: names.0,
            observation_names: names.1,
        };
        let (sample, sampled) = (found.sample.observations(), found.chains.clone());
        let (chains, job, counts) = found.into_chains();
        let config = Config { job, workers };
        let keys = [("blocks".to_owned(), told(observations, sample, &stages))];
        let page = |warnings: Vec<bpnmf::Warning>| {
            // The page draws every observation, so it is of the sample.
            let names =
                Source { feature_names: described.feature_names.clone(), ..of_sample(&described, &counts) };
            let results = Results { source: &names, config: &config, chains: &sampled, warnings, seconds };
            let mut report = results.report(Data::Counts(&counts));
            report.notes.push(format!(
                "These pages show the {} observations of {} in which the components were looked for.",
                text::grouped(sample),
                text::grouped(observations)
            ));
            report.warnings.extend(doubts.0.iter().cloned());
            bpnmf_report::html(&report)
        };
        let report = args.report.then(|| notice(mode, "drawing the page", || page(warnings.clone())));
        let results = Results { source: &described, config: &config, chains: &chains, warnings, seconds };
        results.warn();
        let matches = catalogue.map(|catalogue| results.matches(&catalogue));
        let extra = Extra {
            warnings: doubts.0.clone(),
            tables: true,
            matches,
            keys: keys.into_iter().collect(),
            ..Extra::default()
        };
        notice(mode, "writing the results", || -> Result<(), Failure> {
            let staging = folder.staged()?;
            results.write(staging.folder(), report.as_deref(), &extra)?;
            staging.commit(folder, &[], &output::FILES)
        })?;
        if mode == Mode::Json {
            Progress::new(mode, 1, 1).done(&results.done_event(folder, &extra.warnings));
        } else if !args.model.quiet {
            text::print(&results.for_people(folder, &extra))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Errors if something is asked for that there is not block by block.
fn refuse(args: &FitArgs) -> Result<(), Failure> {
    let given = [
        ("--held-out", args.held_out.is_some()),
        ("--time-budget", args.model.time_budget.is_some()),
        ("--until-sure", args.model.until_sure),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::Request(format!(
            "{flag} cannot be had of a fit block by block: leave it out, or fit fewer observations"
        ))),
        None => Ok(()),
    }
}

/// What there is to know of the sample.
fn of_sample(all: &Source, counts: &Counts) -> Source {
    Source {
        path: all.path.clone(),
        features: all.features,
        observations: counts.observations(),
        nonzeros: counts.nonzeros(),
        missing: counts.missing_entries(),
        total: counts.total(),
        whole_counts: all.whole_counts,
        recording: false,
        read_as: None,
        feature_names: None,
        observation_names: None,
    }
}

/// What the summary says of the blocks.
fn told(observations: usize, sample: usize, stages: &[(&'static str, f64)]) -> Value {
    let seconds: serde_json::Map<String, Value> =
        stages.iter().map(|&(name, seconds)| (name.to_owned(), json!(seconds))).collect();
    json!({ "number": blocks_of(observations), "sample": sample, "seconds": seconds })
}

/// Shows a fit of blocks, and ends it when somebody asks.
struct Watch {
    mode: Mode,
    begin: Instant,
    path: String,
    /// Features and observations.
    shape: (usize, usize),
    keeper: Keeper,
    progress: Mutex<Progress>,
    passes: Mutex<Passes>,
    /// The stages that have begun, and when.
    stages: Mutex<Vec<(&'static str, f64)>>,
}

impl Watch {
    fn new(mode: Mode, begin: Instant, path: String, shape: (usize, usize)) -> Self {
        Self {
            mode,
            begin,
            path,
            shape,
            keeper: Keeper::none(),
            progress: Mutex::new(Progress::new(Mode::Silent, 1, 1)),
            passes: Mutex::new(Passes::new(mode, begin)),
            stages: Mutex::new(Vec::new()),
        }
    }

    /// A stage is going on: whether it has just begun.
    fn stage(&self, name: &'static str) -> bool {
        let mut stages = lock(&self.stages);
        let new = stages.last().is_none_or(|(last, _)| *last != name);
        if new {
            stages.push((name, self.begin.elapsed().as_secs_f64()));
        }
        new
    }

    /// All is done: how many seconds every stage took.
    fn over(self) -> Vec<(&'static str, f64)> {
        lock(&self.passes).finish();
        let end = self.begin.elapsed().as_secs_f64();
        let stages = lock(&self.stages);
        let ends = stages.iter().skip(1).map(|(_, begun)| *begun).chain([end]);
        stages.iter().zip(ends).map(|(&(name, begun), end)| (name, end - begun)).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sees one chain of the sample.
struct OfSample<'a>(Watcher<'a>);

impl Observer for OfSample<'_> {
    fn step(&mut self, row: &TraceRow) -> bool {
        self.0.step(row)
    }

    fn search(&mut self, step: &SearchStep) -> bool {
        self.0.search(step)
    }
}

impl<'w> BlockObserver for &'w Watch {
    type Chain = OfSample<'w>;

    fn read(&self, done: usize, all: usize) -> bool {
        self.stage("reading");
        lock(&self.passes).worked("reading", done, all);
        !interrupt::requested()
    }

    fn sampled(&self, sample: &Counts, survey: &Survey, job: &Job) -> bool {
        lock(&self.passes).finish();
        self.stage("sample");
        let (features, observations) = self.shape;
        let progress = Progress::new(self.mode, job.options.iterations, job.chains);
        let density = survey.nonzeros as f64 / (features as f64 * observations as f64);
        progress.header(&format!(
            "{}: {} observations x {} features, {} % of the entries positive; components are looked for in {} of them",
            self.path,
            text::grouped(observations),
            text::grouped(features),
            text::significant(100.0 * density, 2),
            text::grouped(sample.observations())
        ));
        *lock(&self.progress) = progress;
        !interrupt::requested()
    }

    fn chain(&self, chain: usize) -> Self::Chain {
        let (keeper, progress) = (&self.keeper, &self.progress);
        OfSample(Watcher { chain, progress, keeper, own: keeper.chain(chain) })
    }

    fn worked(&self, round: &Round, done: usize, all: usize) -> bool {
        if self.stage(round.stage.name()) && round.number == 0 {
            lock(&self.progress).finish();
            *lock(&self.passes) = Passes::new(self.mode, self.begin);
        }
        lock(&self.passes).worked(round.stage.name(), done, all);
        !interrupt::requested()
    }
}
