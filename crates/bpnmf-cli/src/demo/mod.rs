//! `bpnmf demo`: makes up a tune, fits its counts as `bpnmf fit` does, and shows what was found beside the truth.

mod matching;
mod page;
mod tune;

use crate::args::DemoArgs;
use crate::failure::Failure;
use crate::fit;
use crate::fit::config::Config;
use crate::fit::output::{self, Extra, Results, Source};
use crate::folder::Folder;
use crate::progress::{Mode, Progress};
use crate::synth::{self, Truth};
use crate::{interrupt, text};
use bpnmf::StopReason;
use std::process::ExitCode;
use tune::Tune;

pub(crate) fn demo(args: &DemoArgs) -> Result<ExitCode, Failure> {
    let files = [&output::FILES[..], &synth::FILES[..]].concat();
    let folder = args.out.as_ref().map(|path| Folder::unused(path, &files, args.force)).transpose()?;
    if let Some(folder) = &folder {
        folder.check_writable()?;
    }
    let tune = Tune::new(args.seed)?;
    let config = Config::untouched(args.seed)?;
    let iterations = config.options.iterations;
    text::print(&page::opening(&tune))?;

    let progress = Progress::new(Mode::choose(false, false), iterations, config.chains);
    interrupt::listen()?;
    let (chains, progress) = fit::run(&config, &tune.counts, progress)?;
    progress.finish();
    let fit = chains.fit();

    text::print(&page::findings(&tune, fit))?;
    if let Some(folder) = &folder {
        truth(&tune).write(folder, &tune.counts)?;
        let results =
            Results { source: &source(&tune), config: &config, chains: &chains, seconds: fit.seconds };
        results.write(folder, None, &Extra::default())?;
    }
    if fit.stop_reason == StopReason::Interrupted {
        let done = fit.trace.len();
        return Err(Failure::Other(format!("interrupted after iteration {done} of {iterations}")));
    }
    text::print(&page::what_next(folder.as_ref()))?;
    Ok(ExitCode::SUCCESS)
}

fn source(tune: &Tune) -> Source {
    Source {
        path: "X.npy".to_owned(),
        features: tune.counts.features(),
        observations: tune.counts.observations(),
        nonzeros: tune.counts.nonzeros(),
        total: tune.counts.total(),
        whole_counts: true,
        feature_names: Some((0..tune::PITCHES).map(tune::pitch_name).collect()),
        observation_names: None,
    }
}

fn truth(tune: &Tune) -> Truth<'_> {
    let mask: Vec<u8> = tune.activations.iter().map(|&loudness| u8::from(loudness > 0.0)).collect();
    let on = |note: usize| tune.course(note).iter().filter(|&&loudness| loudness > 0.0).count();
    Truth {
        dictionary: &tune.dictionary,
        activations: &tune.activations,
        mask,
        pi: (0..tune.notes.len()).map(|note| on(note) as f64 / tune::MOMENTS as f64).collect(),
        components: tune.notes.len(),
        true_components: tune.played().len(),
    }
}
