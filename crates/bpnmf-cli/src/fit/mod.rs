//! `bpnmf fit`: a file becomes counts, counts become a posterior, the posterior becomes files.

pub(crate) mod config;
pub(crate) mod output;

use crate::args::FitArgs;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::progress::{Mode, Progress};
use crate::{interrupt, text};
use bpnmf::{StopReason, TraceRow};
use bpnmf_io::ReadOptions;
use config::Config;
use output::{Results, Source};
use std::io::IsTerminal;
use std::process::ExitCode;

pub(crate) fn fit(args: &FitArgs) -> Result<ExitCode, Failure> {
    let mut config = Config::check(args)?;
    let folder = Folder::unused(&args.out, &output::FILES, args.force)?;

    let mut read_options = ReadOptions::default();
    read_options.transpose = args.transpose;
    let table = bpnmf_io::read(&args.input, &read_options).map_err(Failure::reading)?;
    let source = Source {
        path: args.input.display().to_string(),
        features: table.counts.features(),
        observations: table.counts.observations(),
        nonzeros: table.counts.nonzeros(),
        total: table.counts.total(),
        whole_counts: table.counts.first_fraction().is_none(),
        feature_names: table.feature_names,
        observation_names: table.observation_names,
    };
    let density = table.counts.density();
    let counts = config.meet(table.counts, args)?;
    folder.check_writable()?;

    let mode = Mode::choose(args.quiet, args.json_progress);
    let mut progress = Progress::new(mode, config.options.iterations);
    progress.header(&format!(
        "{}: {} features x {} observations, {} % of the entries positive",
        source.path,
        text::grouped(source.features),
        text::grouped(source.observations),
        text::significant(100.0 * density, 2),
    ));
    interrupt::listen()?;
    let mut observer = |row: &TraceRow| {
        progress.step(row);
        !interrupt::requested()
    };
    let Config { engine, prior, options, workers, .. } = &config;
    let fit = bpnmf::run(engine.as_ref(), &counts, prior, options, workers, &mut observer)?;
    progress.finish();

    let results = Results { source: &source, config: &config, fit: &fit };
    results.write(&folder)?;
    if mode == Mode::Json {
        progress.done(&results.done_event(&folder));
    } else if !args.quiet && std::io::stdout().is_terminal() {
        text::print(&results.for_people(&folder))?;
    }
    if fit.stop_reason == StopReason::Interrupted {
        return Err(Failure::Other(format!(
            "interrupted after iteration {} of {}: the results so far are in {}",
            fit.trace.len(),
            config.options.iterations,
            folder.path().display()
        )));
    }
    Ok(ExitCode::SUCCESS)
}
