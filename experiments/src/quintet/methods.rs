//! The ways to take the quintet apart, each from a seed to a score. Knows nothing of tables.

use super::nmf;
use crate::recording::{Recording, Score, Separated};
use bpnmf::{Engine, Gibbs, Ssmf, Workers};
use bpnmf_audio::{Grouping, Parts};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

/// Updates of KL-NMF.
const UPDATES: usize = 200;

/// The counts of the algorithms as printed, on whose scale all depends for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fineness {
    /// The largest is 1000.
    Thousand,
    /// Those of `bpnmf separate`.
    Ours,
}

/// A way to take the recording apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// The recording itself as every estimate.
    Mixture,
    /// The ideal ratio mask.
    Ideal,
    /// What the program does, one part an instrument.
    One,
    /// The same parts, all of them given to instruments.
    All,
    /// The same parts, in five groups by themselves.
    Stems,
    /// KL-NMF with 32 components.
    Nmf,
    /// KL-NMF with the best number of components.
    NmfBest,
    /// Algorithm 1 as printed.
    Ssmf(Fineness),
    /// The Gibbs sampler of the model as printed.
    Gibbs(Fineness),
}

impl Method {
    pub(super) const EVERY: [Self; 11] = [
        Self::Mixture,
        Self::Ideal,
        Self::One,
        Self::All,
        Self::Stems,
        Self::Nmf,
        Self::NmfBest,
        Self::Ssmf(Fineness::Thousand),
        Self::Gibbs(Fineness::Thousand),
        Self::Ssmf(Fineness::Ours),
        Self::Gibbs(Fineness::Ours),
    ];

    /// As it is asked for.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mixture => "mixture",
            Self::Ideal => "ideal",
            Self::One => "one",
            Self::All => "all",
            Self::Stems => "stems",
            Self::Nmf => "nmf",
            Self::NmfBest => "nmf-best",
            Self::Ssmf(Fineness::Thousand) => "ssmf-1000",
            Self::Gibbs(Fineness::Thousand) => "gibbs-1000",
            Self::Ssmf(Fineness::Ours) => "ssmf",
            Self::Gibbs(Fineness::Ours) => "gibbs",
        }
    }

    /// As the table has it.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Mixture => "the mixture as every estimate",
            Self::Ideal => "ideal ratio mask",
            Self::One => "`bpnmf separate --pick one`",
            Self::All => "`bpnmf separate --pick all`",
            Self::Stems => "`bpnmf separate --stems 5`",
            Self::Nmf => "KL-NMF, K = 32",
            Self::NmfBest => "KL-NMF, best K",
            Self::Ssmf(Fineness::Thousand) => "SSMF as printed, counts up to 1000",
            Self::Gibbs(Fineness::Thousand) => "Gibbs as printed, counts up to 1000",
            Self::Ssmf(Fineness::Ours) => "SSMF as printed, our counts",
            Self::Gibbs(Fineness::Ours) => "Gibbs as printed, our counts",
        }
    }
}

/// One run of a method.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    /// None if there are no parts.
    pub(super) components: Option<usize>,
    pub(super) score: Score,
    /// None if nothing was fitted.
    pub(super) seconds: Option<f64>,
}

/// How much is run.
pub(super) struct Plan {
    pub(super) seeds: u64,
    pub(super) printed_seeds: u64,
    /// Of ssmf and of gibbs.
    pub(super) printed_iterations: [usize; 2],
    /// The numbers of components that KL-NMF may choose from.
    pub(super) ladder: Vec<usize>,
}

/// Runs methods on a recording.
pub(super) struct Bench<'a> {
    pub(super) recording: &'a Recording,
    pub(super) workers: &'a Workers,
    pub(super) plan: Plan,
    /// The default fits by seed: three methods use them.
    separated: BTreeMap<u64, Rc<Separated>>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(recording: &'a Recording, workers: &'a Workers, plan: Plan) -> Self {
        Self { recording, workers, plan, separated: BTreeMap::new() }
    }

    /// All runs of a method.
    pub(super) fn outcomes(&mut self, method: Method) -> Result<Vec<Outcome>, String> {
        let recording = self.recording;
        match method {
            Method::Mixture => self.unfitted(recording.mixtures()),
            Method::Ideal => self.unfitted(ideal(recording)),
            Method::One | Method::All | Method::Stems => {
                self.each_seed(method, self.plan.seeds, |bench, seed| {
                    let separated = bench.separated(seed)?;
                    let parts = &separated.parts;
                    let (estimates, any_order) = match method {
                        Method::One => (picked_one(recording, parts, &separated.activations), false),
                        Method::All => {
                            (recording.stems(parts, &Grouping::PickAll(&recording.sources)), false)
                        }
                        _ => (recording.blind(&separated), true),
                    };
                    bench.judged(parts, estimates, any_order, separated.seconds)
                })
            }
            Method::Nmf => self.nmf(32),
            Method::NmfBest => self.nmf_best(),
            Method::Ssmf(fineness) => {
                let iterations = self.plan.printed_iterations[0];
                self.printed(method, &Ssmf::default(), iterations, fineness)
            }
            Method::Gibbs(fineness) => {
                let iterations = self.plan.printed_iterations[1];
                let engine = Gibbs { burn_in: iterations as u32 / 2, ..Gibbs::default() };
                self.printed(method, &engine, iterations, fineness)
            }
        }
    }

    fn unfitted(&self, estimates: Vec<Vec<f64>>) -> Result<Vec<Outcome>, String> {
        let score = self.recording.score(estimates, false)?;
        Ok(vec![Outcome { components: None, score, seconds: None }])
    }

    fn each_seed(
        &mut self,
        method: Method,
        seeds: u64,
        run: impl Fn(&mut Self, u64) -> Result<Outcome, String>,
    ) -> Result<Vec<Outcome>, String> {
        let mut outcomes = Vec::new();
        for seed in 1..=seeds {
            let outcome = run(self, seed)?;
            tell(method, seed, &outcome);
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    fn separated(&mut self, seed: u64) -> Result<Rc<Separated>, String> {
        if let Some(separated) = self.separated.get(&seed) {
            return Ok(Rc::clone(separated));
        }
        let separated = Rc::new(self.recording.separated(seed, self.workers)?);
        self.separated.insert(seed, Rc::clone(&separated));
        Ok(separated)
    }

    fn printed(
        &mut self,
        method: Method,
        engine: &dyn Engine,
        iterations: usize,
        fineness: Fineness,
    ) -> Result<Vec<Outcome>, String> {
        let levels = (fineness == Fineness::Thousand).then_some(1000);
        self.each_seed(method, self.plan.printed_seeds, |bench, seed| {
            let found = bench.recording.as_printed(engine, iterations, levels, seed, bench.workers)?;
            let estimates = picked_one(bench.recording, &found.parts, &found.activations);
            bench.judged(&found.parts, estimates, false, found.seconds)
        })
    }

    fn judged(
        &self,
        parts: &Parts,
        estimates: Vec<Vec<f64>>,
        any_order: bool,
        seconds: f64,
    ) -> Result<Outcome, String> {
        let score = self.recording.score(estimates, any_order)?;
        Ok(Outcome { components: Some(parts.components()), score, seconds: Some(seconds) })
    }

    fn nmf(&mut self, components: usize) -> Result<Vec<Outcome>, String> {
        self.each_seed(Method::Nmf, self.plan.seeds, |bench, seed| {
            let (recording, start) = (bench.recording, Instant::now());
            let (parts, activations) = rival(recording, components, seed);
            let seconds = start.elapsed().as_secs_f64();
            bench.judged(&parts, picked_one(recording, &parts, &activations), false, seconds)
        })
    }

    /// The number of components with the best mean SDR over the seeds.
    fn nmf_best(&mut self) -> Result<Vec<Outcome>, String> {
        let mut best: Option<(f64, Vec<Outcome>)> = None;
        for components in self.plan.ladder.clone() {
            let outcomes = self.nmf(components)?;
            let mean = outcomes.iter().map(|o| o.score.means[0]).sum::<f64>() / outcomes.len() as f64;
            if best.as_ref().is_none_or(|(before, _)| mean > *before) {
                best = Some((mean, outcomes));
            }
        }
        best.map(|(_, outcomes)| outcomes).ok_or_else(|| "there is no K to choose from".into())
    }
}

fn tell(method: Method, seed: u64, outcome: &Outcome) {
    let [sdr, sir, sar] = outcome.score.means;
    eprintln!(
        "{}, seed {seed}: K {}, SDR {sdr:.2}, SIR {sir:.2}, SAR {sar:.2}, {:.1} s",
        method.name(),
        outcome.components.unwrap_or(0),
        outcome.seconds.unwrap_or(0.0)
    );
}

/// The paper's way: one part an instrument, by the correlation of its masked activation with the power of the stem. Only
/// where there are fewer parts than instruments do some share one.
fn picked_one(recording: &Recording, parts: &Parts, activations: &[f32]) -> Vec<Vec<f64>> {
    let bins = recording.bins();
    let envelopes: Vec<Vec<f64>> =
        recording.sources.iter().map(|source| bpnmf_audio::power_envelope(source, bins)).collect();
    let picked = bpnmf_audio::pick_one(&envelopes, activations);
    let best = |row: &Vec<f64>| (0..row.len()).max_by(|&k, &l| row[k].total_cmp(&row[l]));
    let owned: Vec<Option<usize>> =
        picked.parts.iter().zip(&picked.correlations).map(|(part, row)| part.or(best(row))).collect();
    let mut used: Vec<usize> = owned.iter().flatten().copied().collect();
    used.sort_unstable();
    used.dedup();
    let groups: Vec<Vec<usize>> = used.iter().map(|&part| vec![part]).collect();
    let sounds = recording.stems(parts, &Grouping::Parts(&groups));
    let sound = |part: &usize| used.iter().position(|used| used == part).map(|at| sounds[at].clone());
    owned.iter().flatten().filter_map(sound).collect()
}

/// Every source gets its share of the sum of all sources' magnitudes.
fn ideal(recording: &Recording) -> Vec<Vec<f64>> {
    let (bins, sources) = (recording.bins(), &recording.sources);
    recording.filtered(sources.len(), |frame, gains| {
        for f in 0..bins {
            let at = frame * bins + f;
            let sum: f32 = sources.iter().map(|source| source[at]).sum();
            for (i, source) in sources.iter().enumerate().filter(|_| sum > 0.0) {
                gains[i * bins + f] = source[at] / sum;
            }
        }
    })
}

/// The parts of KL-NMF on the full magnitudes, and their activations, K x frames by rows.
fn rival(recording: &Recording, components: usize, seed: u64) -> (Parts, Vec<f32>) {
    let bins = recording.bins();
    let nmf::Factors { spectra, activations } =
        nmf::factors(recording.mixture.magnitudes(), bins, components, UPDATES, seed);
    let dictionary = transposed(&spectra, bins);
    let activations = transposed(&activations, components);
    let on = vec![1.0; activations.len()];
    (Parts::new(&dictionary, &activations, &on, components), activations)
}

/// The transpose of a matrix with rows of `width`.
fn transposed(matrix: &[f32], width: usize) -> Vec<f32> {
    (0..width).flat_map(|column| matrix.iter().skip(column).step_by(width).copied()).collect()
}
