//! `bpnmf demo`: makes up a tune, fits its counts with the exact sampler, and shows what was found beside the truth.

mod matching;
mod page;
mod tune;

use crate::args::{DemoArgs, SimdName};
use crate::failure::Failure;
use crate::fit;
use crate::fit::config::{Config, workers};
use crate::fit::output::{self, Results, Source};
use crate::folder::Folder;
use crate::progress::{Mode, Progress};
use crate::synth::{self, Truth};
use crate::{interrupt, text};
use bpnmf::{Gibbs, Init, Prior, RunOptions, StopReason};
use std::process::ExitCode;
use tune::Tune;

/// The most parts the sampler may use: far more than a tune has notes.
const COMPONENTS: usize = 40;

/// Enough for most tunes: in the first thousand surplus parts still melt away.
const ITERATIONS: usize = 6000;

/// The iterations before states are averaged.
const BURN_IN: u32 = 4000;

pub(crate) fn demo(args: &DemoArgs) -> Result<ExitCode, Failure> {
    let files = [&output::FILES[..], &synth::FILES[..]].concat();
    let folder = args.out.as_ref().map(|path| Folder::unused(path, &files, args.force)).transpose()?;
    if let Some(folder) = &folder {
        folder.check_writable()?;
    }
    let tune = Tune::new(args.seed)?;
    let config = config(args.seed)?;
    text::print(&page::opening(&tune, COMPONENTS))?;

    let progress = Progress::new(Mode::choose(false, false), ITERATIONS, config.chains);
    interrupt::listen()?;
    let (chains, progress) = fit::run(&config, &tune.counts, progress)?;
    progress.finish();
    let fit = chains.fit();

    text::print(&page::findings(&tune, fit))?;
    if let Some(folder) = &folder {
        truth(&tune).write(folder, &tune.counts)?;
        let results =
            Results { source: &source(&tune), config: &config, chains: &chains, seconds: fit.seconds };
        results.write(folder)?;
    }
    if fit.stop_reason == StopReason::Interrupted {
        let done = fit.trace.len();
        return Err(Failure::Other(format!("interrupted after iteration {done} of {ITERATIONS}")));
    }
    text::print(&page::what_next(folder.as_ref()))?;
    Ok(ExitCode::SUCCESS)
}

fn config(seed: u64) -> Result<Config, Failure> {
    Ok(Config {
        engine: Box::new(Gibbs { expected: false, burn_in: BURN_IN, init: Init::Scaled }),
        prior: Prior { components: COMPONENTS, ..Prior::default() }.check()?,
        options: RunOptions { iterations: ITERATIONS, seed, stop: None, ..RunOptions::default() },
        chains: 1,
        workers: workers(None, SimdName::Auto)?,
        preset: "paper",
        held_out: None,
    })
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
