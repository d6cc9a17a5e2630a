//! `bpnmf separate`: a recording becomes counts, counts a posterior, and the posterior sounds.

pub(crate) mod groups;
mod input;
mod output;
mod page;
mod sounds;
mod stems;

use crate::args::SeparateArgs;
use crate::checkpoint::{Keeper, Start};
use crate::claim::Claim;
use crate::failure::Failure;
use crate::fit::config::{Config, Place};
use crate::fit::output::{FILES, Results, Source};
use crate::folder::Folder;
use crate::progress::{Mode, Progress};
use crate::{fit, interrupt, text};
use bpnmf::{Counts, StopReason};
use bpnmf_audio::{Fault, Levels, Parts, Sound, Stft, notes};
pub(crate) use input::samples_in_memory;
use output::Separation;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use stems::Plan;

/// The most levels: above, somebody mistyped.
const MOST_LEVELS: u32 = 1_000_000;

pub(crate) fn separate(args: &SeparateArgs, start: &Start) -> Result<ExitCode, Failure> {
    run(args, start, std::io::stdout().is_terminal())
}

/// Separates, and shows the result to whoever watches if `page`.
pub(crate) fn run(args: &SeparateArgs, start: &Start, page: bool) -> Result<ExitCode, Failure> {
    let mut config = Config::check(&args.model)?;
    config.force = args.force;
    config.chains = args.model.chains.unwrap_or(notes::CHAINS);
    Plan::check(args)?;
    let levels = levels(args)?;
    Claim::check_free(&args.out)?;
    start.check(&args.out, args.force)?;
    let names = [&[sounds::COMPONENTS, sounds::STEMS], &FILES[..]].concat();
    let folder = Folder::unused(&args.out, &names, args.force)?;

    let begin = Instant::now();
    let mixture = input::mixture(args)?;
    let stft = input::frames(args, &mixture)?;
    if let Some(search) = &mut config.options.search {
        notes::prepare(search, mixture.rate, stft.window(), stft.hop());
    }
    let plan = Plan::new(args, input::references(args, &mixture)?)?;
    let pool = pool(config.workers.threads())?;
    let magnitudes = pool.install(|| stft.magnitudes(&mixture.samples));
    let refused =
        |fault: Fault| Failure::sound(bpnmf_audio::Error::Recording { path: args.input.clone(), fault });
    let (counts, scale) = bpnmf_audio::to_counts(&magnitudes, stft.bins(), levels).map_err(refused)?;
    let magnitudes = bpnmf_audio::to_units(magnitudes, scale);
    let source = source(args, &counts);
    let counts = config.meet(counts, &args.model, Place { path: &args.input, transposed: false })?;
    let _claim = folder.claim(&names, args.force)?;
    // Not the groups: they say nothing about the fit, and may be put right after it.
    let inputs: Vec<&Path> = [&args.input].into_iter().chain(&args.reference).map(PathBuf::as_path).collect();
    let keeper = Keeper::new(&folder, start, &inputs, &args.model, config.chains)?;

    let mode = Mode::choose(args.model.quiet, args.model.json_progress);
    let progress = Progress::new(mode, config.options.iterations, config.chains);
    progress.header(&header(&source, &mixture));
    interrupt::listen()?;
    let read = begin.elapsed().as_secs_f64();
    let start = Instant::now();
    let (chains, mut progress) = fit::run(&config, &counts, progress, &keeper)?;
    progress.finish();
    let seconds = fit::seconds_of(&chains, start);

    let results = Results { source: &source, config: &config, chains: &chains, seconds };
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
    let mut parts = Parts::from(posterior);
    let staging = folder.staged()?;
    let search = chains.fit().discovery.as_ref().map_or(0.0, |discovery| discovery.seconds);
    let mut stages = vec![("read", read), ("search", search), ("sampling", seconds - search)];
    let made = pool.install(|| {
        let start = Instant::now();
        parts.polish(&magnitudes);
        stages.push(("polish", start.elapsed().as_secs_f64()));
        let start = Instant::now();
        let stems = plan.stems(&parts, posterior, &stft, scale, args.residual)?;
        let clipped =
            sounds::write(staging.folder(), &mixture, &stft, &parts, &magnitudes, &stems, args.format)?;
        stages.push(("sounds", start.elapsed().as_secs_f64()));
        Ok::<_, Failure>((stems, clipped))
    });
    let (stems, clipped) = made.map_err(|failure| keeper.refused(failure))?;
    let separation = Separation {
        results: &results,
        mixture: &mixture,
        stft: &stft,
        parts: &parts,
        magnitudes: &magnitudes,
        scale,
        stems: &stems,
        clipped: &clipped,
        stages: &stages,
    };
    separation.write(staging.folder())?;
    staging.commit(&folder, &[sounds::COMPONENTS, sounds::STEMS], &FILES)?;
    if mode == Mode::Json {
        progress.done(&results.done_event(&folder, &[]));
    } else if page && !args.model.quiet {
        text::print(&separation.for_people(&folder))?;
    }
    if results.stop_reason() == StopReason::Interrupted {
        return Err(fit::interrupted(&chains, config.options.iterations, &folder, &keeper));
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
        feature_names: None,
        observation_names: None,
    }
}

fn header(source: &Source, mixture: &Sound) -> String {
    format!(
        "{}: {} at {} Hz, {} frequencies x {} frames",
        source.path,
        text::duration(mixture.seconds()),
        text::grouped(mixture.rate as usize),
        text::grouped(source.features),
        text::grouped(source.observations),
    )
}

/// Seconds from one frame to the next.
fn frame_seconds(stft: &Stft, rate: u32) -> f64 {
    stft.hop() as f64 / f64::from(rate)
}
