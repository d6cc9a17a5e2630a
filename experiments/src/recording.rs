//! A recording whose sources are known, taken apart as `bpnmf separate` does it, and scored. Knows nothing of tables.

use crate::files;
use bpnmf::{Counts, Engine, Gibbs, Prior, RunOptions, Search, StopRule, TraceRow, Workers};
use bpnmf_audio::{BssEval, Channel, Levels, Parts, Sound, Stft, Wiener, bss_eval, notes, to_units};
use std::time::Instant;

/// The rate all recordings of these experiments have.
const RATE: u32 = 22_050;

/// A mixture and the sounds it is the sum of.
pub(crate) struct Recording {
    pub(crate) mixture: Sound,
    pub(crate) names: Vec<&'static str>,
    pub(crate) stft: Stft,
    /// Of the mixture, bins x frames, in the units of the counts.
    pub(crate) magnitudes: Vec<f32>,
    pub(crate) counts: Counts,
    /// Of every source, in the same units.
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
        let stft = Stft::new(window, window / 2).map_err(bad)?;
        let mixture = read("mix")?;
        let stems = names.iter().map(|name| read(name)).collect::<Result<Vec<Sound>, Trouble>>()?;
        let magnitudes = stft.magnitudes(&mixture.samples);
        let (counts, scale) = bpnmf_audio::to_counts(&magnitudes, stft.bins(), Levels::Typical)
            .map_err(|fault| Trouble::Bad(format!("{folder}: {fault}")))?;
        Ok(Self {
            sources: stems.iter().map(|sound| to_units(stft.magnitudes(&sound.samples), scale)).collect(),
            references: stems.iter().map(|sound| doubled(&sound.samples)).collect(),
            names: names.to_vec(),
            mixture,
            stft,
            magnitudes: to_units(magnitudes, scale),
            counts,
        })
    }

    /// The fit that `bpnmf separate` makes when it is told nothing but the seed, polished.
    pub(crate) fn separated(&self, seed: u64, workers: &Workers) -> Result<Separated, String> {
        let mut search = Search::default();
        notes::prepare(&mut search, RATE, self.stft.window(), self.stft.hop());
        let start = Instant::now();
        let options = RunOptions { iterations: 100, seed, search: Some(search), ..RunOptions::default() };
        let mut separated = fit(&Gibbs { burn_in: 30, ..Gibbs::default() }, &self.counts, &options, workers)?;
        separated.parts.polish(&self.magnitudes);
        separated.seconds = start.elapsed().as_secs_f64();
        Ok(separated)
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
            return fit(engine, &self.counts, &options, workers);
        };
        let (counts, _) = bpnmf_audio::to_counts(&self.magnitudes, self.stft.bins(), Levels::Largest(levels))
            .map_err(|fault| fault.to_string())?;
        fit(engine, &counts, &options, workers)
    }

    /// The sounds of groups of parts, by the Wiener filter; the parts in no group are in no sound.
    pub(crate) fn stems(&self, parts: &Parts, groups: &[Vec<usize>]) -> Vec<Vec<f64>> {
        let wiener = Wiener::new(parts, groups);
        let (first, bins) = (parts.components() * self.stft.bins(), self.stft.bins());
        self.filtered(groups.len(), |frame, gains| {
            let mut all = vec![0.0; wiener.outputs() * bins];
            wiener.gains(frame, &mut all);
            gains.copy_from_slice(&all[first..]);
        })
    }

    /// The sounds of the mixture under gains, bins x outputs for a frame.
    pub(crate) fn filtered(&self, outputs: usize, gains: impl Fn(usize, &mut [f32]) + Sync) -> Vec<Vec<f64>> {
        let mut sounds = vec![Vec::with_capacity(self.mixture.samples.len()); outputs];
        let done: Result<(), std::convert::Infallible> =
            self.stft.filter(&self.mixture.samples, outputs, gains, |output, samples| {
                sounds[output].extend(samples.iter().map(|&sample| f64::from(sample)));
                Ok(())
            });
        let Ok(()) = done;
        sounds
    }

    /// The sounds of all parts, given to the sources as `--pick all` does it.
    pub(crate) fn pick_all(&self, parts: &Parts) -> Vec<Vec<f64>> {
        let pieces = bpnmf_audio::pick_all(parts, &self.sources);
        self.stems(&pieces.parts, &pieces.by_owner(self.sources.len()))
    }

    /// The mixture itself, once for each source.
    pub(crate) fn mixtures(&self) -> Vec<Vec<f64>> {
        vec![doubled(&self.mixture.samples); self.references.len()]
    }

    /// BSS Eval of one estimate for each source; with `permutation` in whatever order suits them best. Missing
    /// estimates are silent.
    pub(crate) fn score(&self, mut estimates: Vec<Vec<f64>>, permutation: bool) -> Result<Score, String> {
        let many = self.references.len();
        estimates.resize(many, vec![0.0; self.mixture.samples.len()]);
        let references: Vec<&[f64]> = self.references.iter().map(Vec::as_slice).collect();
        let estimates: Vec<&[f64]> = estimates.iter().map(Vec::as_slice).collect();
        let options = BssEval { permutation, ..BssEval::default() };
        let scores = bss_eval(&references, &estimates, &options).map_err(|error| error.to_string())?;
        let of = [&scores.sdr, &scores.sir, &scores.sar].map(|scores| mean_and_error(scores));
        Ok(Score { means: of.map(|(mean, _)| mean), errors: of.map(|(_, error)| error) })
    }
}

fn fit(
    engine: &dyn Engine,
    counts: &Counts,
    options: &RunOptions,
    workers: &Workers,
) -> Result<Separated, String> {
    let prior = Prior::default().check().map_err(|error| error.to_string())?;
    let fit = bpnmf::run(engine, counts, &prior, options, workers, &mut |_: &TraceRow| true)
        .map_err(|error| error.to_string())?;
    let found = fit.posterior;
    Ok(Separated { parts: Parts::from(&found), activations: found.activations, seconds: fit.seconds })
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
