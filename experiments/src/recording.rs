//! A recording whose sources are known, taken apart as `bpnmf separate` does it, and scored. Knows nothing of tables.

use crate::files;
use bpnmf::{Counts, Engine, Plan, Prior, RunOptions, StopRule, TraceRow, Workers};
use bpnmf_audio::{BssEval, Channel, Framing, Grouping, Levels, Parts, Sound, Transcription, bss_eval};
use std::time::Instant;

/// The rate all recordings of these experiments have.
const RATE: u32 = 22_050;

/// A mixture and the sounds it is the sum of.
pub(crate) struct Recording {
    pub(crate) mixture: bpnmf_audio::Recording,
    pub(crate) names: Vec<&'static str>,
    pub(crate) counts: Counts,
    /// The magnitudes of every source, bins x frames, in the units of the counts.
    pub(crate) sources: Vec<Vec<f32>>,
    /// The samples of every source.
    references: Vec<Vec<f64>>,
}

/// Why there is no recording.
pub(crate) enum Trouble {
    /// A file is not on this machine: a reason to go on without it.
    Absent(String),
    Bad(String),
}

/// What came out of a fit.
pub(crate) struct Separated {
    pub(crate) parts: Parts,
    /// Its notes.
    pub(crate) heard: Transcription,
    /// Posterior mean of H S, K x frames by rows.
    pub(crate) activations: Vec<f32>,
    pub(crate) seconds: f64,
}

/// Means over the sources, in dB, and their standard errors; a source without a score makes them NaN.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Score {
    /// SDR, SIR, SAR.
    pub(crate) means: [f64; 3],
    pub(crate) errors: [f64; 3],
}

impl Recording {
    /// `folder`/mix.wav and `folder`/NAME.wav, at most `seconds` of them, the magnitudes at the levels of
    /// `bpnmf separate`.
    pub(crate) fn load(
        folder: &str,
        names: &[&'static str],
        window: usize,
        seconds: Option<usize>,
    ) -> Result<Self, Trouble> {
        let bad = |error: bpnmf_audio::Error| Trouble::Bad(error.to_string());
        let read = |name: &str| -> Result<Sound, Trouble> {
            let path = files::data(&format!("{folder}/{name}.wav")).map_err(|path| {
                Trouble::Absent(format!(
                    "{} is not there; the variable BPNMF_DATA names the folder of the data",
                    path.display()
                ))
            })?;
            let mut sound = bpnmf_audio::read(&path, Channel::Mean).map_err(bad)?;
            if sound.rate != RATE {
                return Err(Trouble::Bad(format!(
                    "{} has the rate {}, not {RATE}",
                    path.display(),
                    sound.rate
                )));
            }
            sound.samples.truncate(seconds.map_or(usize::MAX, |seconds| seconds * RATE as usize));
            Ok(sound)
        };
        let mixture = read("mix")?;
        let stems = names.iter().map(|name| read(name)).collect::<Result<Vec<Sound>, Trouble>>()?;
        Self::of(mixture, names.to_vec(), stems, Some(window))
    }

    /// A mixture and its stems, frames of the size that `bpnmf separate` chooses unless there is a `window`.
    pub(crate) fn of(
        mixture: Sound,
        names: Vec<&'static str>,
        stems: Vec<Sound>,
        window: Option<usize>,
    ) -> Result<Self, Trouble> {
        let stft = Framing { window, hop: None }
            .of(RATE, mixture.samples.len())
            .map_err(|error| Trouble::Bad(error.to_string()))?;
        let (mixture, counts) = bpnmf_audio::Recording::new(mixture, stft, Levels::Typical)
            .map_err(|fault| Trouble::Bad(fault.to_string()))?;
        Ok(Self {
            sources: stems.iter().map(|sound| mixture.magnitudes_of(&sound.samples)).collect(),
            references: stems.iter().map(|sound| doubled(&sound.samples)).collect(),
            names,
            mixture,
            counts,
        })
    }

    /// The fit that `bpnmf separate` makes when it is told nothing but the seed, polished.
    pub(crate) fn separated(&self, seed: u64, workers: &Workers) -> Result<Separated, String> {
        let start = Instant::now();
        let plan = Plan { seed, ..Plan::default() };
        let observer = |_| |_: &TraceRow| true;
        let (chains, parts) = bpnmf_audio::separate(&self.mixture, &self.counts, &plan, workers, observer)
            .map_err(|error| error.to_string())?;
        let found = &chains.fit().posterior;
        let (activations, seconds) = (found.activations.clone(), start.elapsed().as_secs_f64());
        Ok(Separated {
            heard: self.mixture.transcription(&parts, &found.inclusion),
            parts,
            activations,
            seconds,
        })
    }

    /// An engine with the paper's prior and 500 components to begin with, nothing before it and nothing after.
    pub(crate) fn as_printed(
        &self,
        engine: &dyn Engine,
        iterations: usize,
        levels: Option<u32>,
        seed: u64,
        workers: &Workers,
    ) -> Result<Separated, String> {
        let stop = Some(StopRule::default());
        let options = RunOptions { iterations, seed, stop, ..RunOptions::default() };
        let Some(levels) = levels else {
            return self.fit(engine, &self.counts, &options, workers);
        };
        let (counts, _) =
            bpnmf_audio::to_counts(self.mixture.magnitudes(), self.bins(), Levels::Largest(levels))
                .map_err(|fault| fault.to_string())?;
        self.fit(engine, &counts, &options, workers)
    }

    fn fit(
        &self,
        engine: &dyn Engine,
        counts: &Counts,
        options: &RunOptions,
        workers: &Workers,
    ) -> Result<Separated, String> {
        let prior = Prior::default().check().map_err(|error| error.to_string())?;
        let fit = bpnmf::run(engine, counts, &prior, options, workers, &mut |_: &TraceRow| true)
            .map_err(|error| error.to_string())?;
        let (found, parts) = (&fit.posterior, Parts::from(&fit.posterior));
        let heard = self.mixture.transcription(&parts, &found.inclusion);
        Ok(Separated { heard, parts, activations: found.activations.clone(), seconds: fit.seconds })
    }

    /// Bins of a spectrum.
    pub(crate) fn bins(&self) -> usize {
        self.mixture.stft().bins()
    }

    /// The sounds of the stems of the parts; parts in no stem are in no sound.
    pub(crate) fn stems(&self, parts: &Parts, grouping: &Grouping<'_>) -> Vec<Vec<f64>> {
        // Groups of whole parts look neither at notes nor at activations.
        let none = Transcription { a4: 440.0, pitches: vec![], events: vec![], notes: vec![] };
        let stems = self.mixture.stems(parts, &none, &[], grouping);
        self.mixture.sounds(parts, &stems).iter().map(|sound| doubled(sound)).collect()
    }

    /// As many stems as there are sources, told nothing but that.
    pub(crate) fn blind(&self, found: &Separated) -> Vec<Vec<f64>> {
        let voices = Grouping::Voices { wanted: self.names.len(), polyphonic: false };
        let stems = self.mixture.stems(&found.parts, &found.heard, &found.activations, &voices);
        self.mixture.sounds(&found.parts, &stems).iter().map(|sound| doubled(sound)).collect()
    }

    /// The sounds of the mixture under gains, bins x outputs for a frame.
    pub(crate) fn filtered(&self, outputs: usize, gains: impl Fn(usize, &mut [f32]) + Sync) -> Vec<Vec<f64>> {
        let samples = &self.mixture.sound().samples;
        let mut sounds = vec![Vec::with_capacity(samples.len()); outputs];
        let done: Result<(), std::convert::Infallible> =
            self.mixture.stft().filter(samples, outputs, gains, |output, samples| {
                sounds[output].extend(samples.iter().map(|&sample| f64::from(sample)));
                Ok(())
            });
        let Ok(()) = done;
        sounds
    }

    /// The mixture itself, once for each source.
    pub(crate) fn mixtures(&self) -> Vec<Vec<f64>> {
        vec![doubled(&self.mixture.sound().samples); self.references.len()]
    }

    /// BSS Eval of one estimate for each source; with `permutation` in whatever order suits them best. Missing
    /// estimates are silent.
    pub(crate) fn score(&self, mut estimates: Vec<Vec<f64>>, permutation: bool) -> Result<Score, String> {
        let many = self.references.len();
        estimates.resize(many, vec![0.0; self.mixture.sound().samples.len()]);
        let references: Vec<&[f64]> = self.references.iter().map(Vec::as_slice).collect();
        let estimates: Vec<&[f64]> = estimates.iter().map(Vec::as_slice).collect();
        let options = BssEval { permutation, ..BssEval::default() };
        let scores = bss_eval(&references, &estimates, &options).map_err(|error| error.to_string())?;
        let of = [&scores.sdr, &scores.sir, &scores.sar].map(|scores| mean_and_error(scores));
        Ok(Score { means: of.map(|(mean, _)| mean), errors: of.map(|(_, error)| error) })
    }
}

/// The mean and its standard error; NaN if a score is missing.
fn mean_and_error(scores: &[Option<f64>]) -> (f64, f64) {
    let many = scores.len() as f64;
    let values: Vec<f64> = scores.iter().map(|score| score.unwrap_or(f64::NAN)).collect();
    let mean = values.iter().sum::<f64>() / many;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (many - 1.0) / many).sqrt())
}

fn doubled(samples: &[f32]) -> Vec<f64> {
    samples.iter().map(|&sample| f64::from(sample)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_error_is_that_of_a_mean_and_a_missing_score_is_not_left_out() {
        let (mean, error) = mean_and_error(&[Some(1.0), Some(3.0)]);
        assert_eq!((mean, error), (2.0, 1.0));
        assert!(mean_and_error(&[Some(1.0), None]).0.is_nan());
    }
}
