//! `bpnmf separate`: a recording becomes counts, counts a posterior, and the posterior sounds.

pub(crate) mod groups;
mod input;
mod notes;
mod output;
mod page;
pub(crate) mod regroup;
mod sounds;
mod stems;

use crate::args::SeparateArgs;
use crate::checkpoint::{Keeper, Start};
use crate::claim::Claim;
use crate::failure::Failure;
use crate::fit::config::{Place, Request};
use crate::fit::output::{FILES, Results, Source};
use crate::folder::Folder;
use crate::progress::{Mode, Progress};
use crate::{fit, interrupt, text};
use bpnmf::{Counts, StopReason, Warning};
use bpnmf_audio::{Fault, Framing, Levels, Recording, notes::CHAINS};
pub(crate) use input::samples_in_memory;
use notes::Notes;
use output::Separation;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use stems::Plan;

/// The most levels: above, somebody mistyped.
const MOST_LEVELS: u32 = 1_000_000;

pub(crate) fn separate(args: &SeparateArgs, start: &Start) -> Result<ExitCode, Failure> {
    run(args, start, true)
}

/// Separates, and shows the result to whoever watches if `page`.
pub(crate) fn run(args: &SeparateArgs, start: &Start, page: bool) -> Result<ExitCode, Failure> {
    let mut request = Request::check(&args.model)?;
    request.force = args.force;
    request.plan.chains = request.plan.chains.or(Some(CHAINS));
    Plan::check(args)?;
    let levels = levels(args)?;
    Claim::check_free(&args.out)?;
    start.check(&args.out, args.force)?;
    // The summary last: where it stands, the others are complete.
    let files = [&notes::FILES[..], &[sounds::RECORDING], &FILES].concat();
    let names = [&[sounds::COMPONENTS, sounds::STEMS], &files[..]].concat();
    let folder = Folder::unused(&args.out, &names, args.force)?;

    let begin = Instant::now();
    let mixture = input::mixture(args)?;
    let stft = Framing { window: args.window, hop: args.hop }
        .of(mixture.rate, mixture.samples.len())
        .map_err(Failure::sound)?;
    let plan = Plan::new(args, input::references(args, &mixture)?)?;
    let pool = pool(request.workers.threads())?;
    let refused =
        |fault: Fault| Failure::sound(bpnmf_audio::Error::Recording { path: args.input.clone(), fault });
    let (recording, counts) = pool.install(|| Recording::new(mixture, stft, levels)).map_err(refused)?;
    let source = source(args, &counts);
    let (mut config, counts) = request.meet(counts, Place { path: &args.input, transposed: false })?;
    if let Some(search) = &mut config.job.options.search {
        recording.prepare(search);
    }
    let _claim = folder.claim(&names, args.force)?;
    // Not the groups: they say nothing about the fit, and may be put right after it.
    let inputs: Vec<&Path> = [&args.input].into_iter().chain(&args.reference).map(PathBuf::as_path).collect();
    let keeper = Keeper::new(&folder, start, &inputs, &args.model, config.job.chains)?;

    let mode = Mode::choose(args.model.quiet, args.model.json_progress);
    let progress = Progress::new(mode, config.job.options.iterations, config.job.chains);
    progress.header(&header(&source, &recording));
    interrupt::listen()?;
    let read = begin.elapsed().as_secs_f64();
    let start = Instant::now();
    let (chains, mut progress) = fit::run(&config, &counts, progress, &keeper)?;
    progress.finish();
    let seconds = fit::seconds_of(&chains, start);

    let mut warnings = config.job.warnings(&chains, &counts);
    // A recording is not counts, and nobody takes it for them.
    warnings.retain(|warning| !matches!(warning, Warning::Data(_)));
    let results = Results { source: &source, config: &config, chains: &chains, warnings, seconds };
    results.warn();
    let posterior = &chains.fit().posterior;
    if posterior.components() == 0 && results.stop_reason() == StopReason::Interrupted {
        return Err(Failure::Other(format!(
            "interrupted before any part was found: nothing was written{}",
            keeper.how_to_go_on()
        )));
    }
    if posterior.components() == 0 {
        keeper.over();
        return Err(Failure::Request(format!(
            "{}: no part is on often enough to count, so there is nothing to take apart: use more --iterations",
            source.path
        )));
    }
    let staging = folder.staged()?;
    let search = chains.fit().discovery.as_ref().map_or(0.0, |discovery| discovery.seconds);
    let mut stages = vec![("read", read), ("search", search), ("sampling", seconds - search)];
    let made = pool.install(|| {
        let start = Instant::now();
        let parts = recording.parts(posterior);
        stages.push(("polish", start.elapsed().as_secs_f64()));
        let start = Instant::now();
        let heard = recording.transcription(&parts, &posterior.inclusion);
        let stems = plan.stems(&recording, &parts, &heard, &posterior.activations, args.residual)?;
        let clipped = sounds::write(staging.folder(), &recording, &parts, &stems, true, args.format)?;
        stages.push(("sounds", start.elapsed().as_secs_f64()));
        Ok::<_, Failure>((parts, heard, stems, clipped))
    });
    let (parts, heard, stems, clipped) = made.map_err(|failure| keeper.refused(failure))?;
    let separation = Separation {
        results: &results,
        recording: &recording,
        parts: &parts,
        notes: Notes { heard: &heard, stems: &stems },
        stems: &stems,
        clipped: &clipped,
        stages: &stages,
    };
    separation.write(staging.folder())?;
    staging.commit(&folder, &[sounds::COMPONENTS, sounds::STEMS], &files)?;
    if mode == Mode::Json {
        progress.done(&results.done_event(&folder, &[]));
    } else if page && !args.model.quiet {
        text::print(&separation.for_people(&folder))?;
    }
    if results.stop_reason() == StopReason::Interrupted {
        return Err(fit::interrupted_run(&chains, &config, &folder, &keeper));
    }
    keeper.over();
    Ok(ExitCode::SUCCESS)
}

fn levels(args: &SeparateArgs) -> Result<Levels, Failure> {
    match args.levels {
        None => Ok(Levels::Typical),
        Some(levels) if (1..=MOST_LEVELS).contains(&levels) => Ok(Levels::Largest(levels)),
        Some(levels) => {
            Err(Failure::Request(format!("--levels is {levels}: it must be between 1 and {MOST_LEVELS}")))
        }
    }
}

/// The threads of everything but the fit.
fn pool(threads: usize) -> Result<rayon::ThreadPool, Failure> {
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
    builder
        .build()
        .map_err(|error| Failure::Other(format!("{threads} threads could not be started: {error}")))
}

fn source(args: &SeparateArgs, counts: &Counts) -> Source {
    Source {
        path: args.input.display().to_string(),
        features: counts.features(),
        observations: counts.observations(),
        nonzeros: counts.nonzeros(),
        missing: 0,
        total: counts.total(),
        whole_counts: true,
        recording: true,
        read_as: None,
        feature_names: None,
        observation_names: None,
    }
}

fn header(source: &Source, recording: &Recording) -> String {
    let sound = recording.sound();
    format!(
        "{}: {} at {} Hz, {} frequencies x {} frames",
        source.path,
        text::duration(sound.seconds()),
        text::grouped(sound.rate as usize),
        text::grouped(source.features),
        text::grouped(source.observations),
    )
}

/// Seconds from one frame to the next.
fn frame_seconds(recording: &Recording) -> f64 {
    recording.stft().hop() as f64 / f64::from(recording.sound().rate)
}
