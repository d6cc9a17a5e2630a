//! What a page is about: plain values, filled in by whoever has them.

use crate::text::component_name;
use bpnmf::{Chains, Counts, Fit, Intervals, Noise, Posterior, Recurrence};

/// Everything that a page shows. [`Report::new`] fills in what the chains say, the rest is left empty.
#[derive(Debug, Clone)]
pub struct Report<'a> {
    /// What was looked at: the name of the file.
    pub title: String,
    /// One line about it: its size, where it is from.
    pub source: String,
    /// The number of parts.
    pub n_components: usize,
    /// The first and the last number of parts of the 90 % interval; `None` if it is not known.
    pub interval: Option<(usize, usize)>,
    /// Numbers of parts, increasing, and how frequent they are; empty if that is not known.
    pub pmf: Vec<(usize, f64)>,
    /// The number of parts was given, not found.
    pub forced: bool,
    /// (power of the likelihood, number of parts), coarsest first; the last one is that of the run.
    pub path: Vec<(f64, usize)>,
    /// The course of every chain.
    pub traces: Vec<Trace>,
    /// The matrix that was looked at, F x T.
    pub data: Data<'a>,
    /// What was found in it.
    pub model: Model<'a>,
    /// Which chains have each part; empty for one chain.
    pub recurrence: &'a [Recurrence],
    /// How far W and H S are known, if that is known.
    pub intervals: Option<&'a Intervals>,
    /// How counts scatter about their rates.
    pub noise: Noise,
    /// The variance of the counts over their rates, where it is the same for all rates and not one.
    pub variance_factor: Option<f64>,
    /// The names of the F features.
    pub feature_names: Option<&'a [String]>,
    /// The names of the T observations.
    pub observation_names: Option<&'a [String]>,
    /// The recording behind the matrix, if it is one.
    pub sound: Option<SoundPage<'a>>,
    /// A sentence for each component: what it is in a catalogue; empty without one.
    pub matches: Vec<String>,
    /// Sentences: what keeps the result from being trusted.
    pub warnings: Vec<String>,
    /// Sentences: what is good to know.
    pub notes: Vec<String>,
    /// (name, value): how the result was made.
    pub facts: Vec<(String, String)>,
}

impl<'a> Report<'a> {
    /// What the chains say about `data`; title, names, sound, warnings, notes and facts are empty.
    pub fn new(data: Data<'a>, chains: &'a Chains) -> Self {
        let fit = chains.fit();
        let mut traces: Vec<Trace> = chains.fits.iter().map(Trace::from).collect();
        traces[chains.representative].shown = true;
        Self {
            title: String::new(),
            source: String::new(),
            n_components: chains.n_components,
            interval: chains.interval,
            pmf: chains.pmf.clone().unwrap_or_default(),
            forced: false,
            path: fit.resolution_path().iter().map(|at| (at.coarsening, at.components)).collect(),
            traces,
            data,
            model: Model::from(&fit.posterior),
            recurrence: chains.recurrence.as_deref().unwrap_or(&[]),
            intervals: chains.intervals.as_ref(),
            noise: fit.noise(),
            variance_factor: fit.discovery.as_ref().and_then(|discovery| discovery.factor),
            feature_names: None,
            observation_names: None,
            sound: None,
            matches: Vec::new(),
            warnings: Vec::new(),
            notes: Vec::new(),
            facts: Vec::new(),
        }
    }
}

impl Report<'_> {
    /// What a component is called, one and many: for people who listen it is a part.
    pub(crate) fn words(&self) -> (&'static str, &'static str) {
        if self.sound.is_some() { ("part", "parts") } else { ("component", "components") }
    }

    /// A sentence in which {part} and {parts} are that word.
    pub(crate) fn say(&self, sentence: &str) -> String {
        let (one, many) = self.words();
        let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
        sentence
            .replace("{parts}", many)
            .replace("{part}", one)
            .replace("{Parts}", &capital(many))
            .replace("{Part}", &capital(one))
    }

    /// The name of a component; those of a recording are numbered from 0 as their files are.
    pub(crate) fn name(&self, k: usize) -> String {
        match self.sound {
            Some(_) => k.to_string(),
            None => component_name(k, self.model.components()),
        }
    }
}

/// The matrix that was looked at, in the units of W H.
#[derive(Debug, Clone, Copy)]
pub enum Data<'a> {
    /// Counts, dense or sparse; sparse ones stay so.
    Counts(&'a Counts),
    /// F x T values, column after column.
    Dense(&'a [f32]),
}

/// The parts, largest share first, laid out as in [`Posterior`].
#[derive(Debug, Clone, Copy)]
pub struct Model<'a> {
    /// F.
    pub features: usize,
    /// T.
    pub observations: usize,
    /// W, F x K by rows: feature f of part k at `f * K + k`.
    pub dictionary: &'a [f32],
    /// H S, K x T by rows: part k in column t at `k * T + t`.
    pub activations: &'a [f32],
    /// The probability that a part is on, K x T by rows.
    pub inclusion: &'a [f32],
    /// Length K.
    pub pi: &'a [f64],
    /// The share of a part in the reconstruction, length K.
    pub share: &'a [f64],
    /// In how many columns a part is on, length K.
    pub usage: &'a [f64],
    /// What deleting a part costs, in nats, length K.
    pub evidence: Option<&'a [f64]>,
}

impl Model<'_> {
    /// K, the number of parts.
    pub fn components(&self) -> usize {
        self.pi.len()
    }

    /// W of part `k` at feature `f`.
    pub(crate) fn weight(&self, f: usize, k: usize) -> f64 {
        f64::from(self.dictionary[f * self.components() + k])
    }

    /// The activations of part `k`, length T.
    pub(crate) fn activation(&self, k: usize) -> &[f32] {
        &self.activations[k * self.observations..][..self.observations]
    }

    /// The sum of every column of W: a part's activation times this is what it adds to a column of the data.
    pub(crate) fn sizes(&self) -> Vec<f64> {
        let parts = self.components();
        let mut sizes = vec![0.0; parts];
        for row in self.dictionary.chunks_exact(parts.max(1)) {
            sizes.iter_mut().zip(row).for_each(|(size, &w)| *size += f64::from(w));
        }
        sizes
    }
}

impl<'a> From<&'a Posterior> for Model<'a> {
    fn from(posterior: &'a Posterior) -> Self {
        Self {
            features: posterior.features,
            observations: posterior.observations,
            dictionary: &posterior.dictionary,
            activations: &posterior.activations,
            inclusion: &posterior.inclusion,
            pi: &posterior.pi,
            share: &posterior.share,
            usage: &posterior.usage,
            evidence: posterior.evidence.as_deref(),
        }
    }
}

/// The course of one chain.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// One an iteration.
    pub steps: Vec<Step>,
    /// The first of them that say nothing about the result yet.
    pub burn_in: usize,
    /// The model is of this chain.
    pub shown: bool,
}

/// One iteration.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// From 1.
    pub iteration: usize,
    /// The log joint probability.
    pub objective: f64,
    /// The number of parts.
    pub components: usize,
}

impl From<&Fit> for Trace {
    fn from(fit: &Fit) -> Self {
        let step = |(row, components): (&bpnmf::TraceRow, usize)| Step {
            iteration: row.iteration,
            objective: row.log_joint,
            components,
        };
        Self {
            steps: fit.trace.iter().zip(fit.numbers()).map(step).collect(),
            burn_in: fit.burn_in,
            shown: false,
        }
    }
}

/// The recording behind a matrix. Feature f is f * rate / window Hz, column t is centred at t * hop / rate seconds.
///
/// The page holds the mixture (16 bit: a sample x becomes x * 32768 rounded, from -32768 to 32767) and W and H S. It makes
/// the sounds of the parts by itself: short-time Fourier transform of the mixture (periodic Hann window, centred, zeros
/// around the sound, 1 + samples / hop frames), times W_k H_k / sum_j W_j H_j, and back by weighted overlap-add. Where
/// that sum is 0 all parts get the same share, and so do all stems.
#[derive(Debug, Clone)]
pub struct SoundPage<'a> {
    /// Samples a second.
    pub rate: u32,
    /// Samples in a frame; F is window / 2 + 1.
    pub window: usize,
    /// Samples from one frame to the next.
    pub hop: usize,
    /// The samples, full scale at 1 and -1.
    pub mixture: &'a [f32],
    /// Groups of parts, or of pieces if there are any.
    pub stems: Vec<Stem>,
    /// What stems are made of if parts were split between them.
    pub pieces: Option<Pieces<'a>>,
    /// With a stem more for what no part explains.
    pub residual: Option<Residual>,
    /// The notes that are heard.
    pub notes: Vec<PlayedNote>,
}

/// A note that is heard.
#[derive(Debug, Clone)]
pub struct PlayedNote {
    /// When it begins and ends, in seconds.
    pub onset: f64,
    /// See there.
    pub offset: f64,
    /// Its key, 69 is A4.
    pub midi: f64,
    /// Its name.
    pub name: String,
    /// The part that it is of.
    pub part: usize,
    /// How sure its pitch is, from 0 to 1.
    pub sure: f64,
    /// Its stem, and how sure that is.
    pub stem: Option<(usize, f64)>,
}

/// The stem of what no part explains: where the magnitude x is above sum_j W_j H_j it takes the place of that sum in the
/// shares of all parts, and this stem gets the difference.
#[derive(Debug, Clone)]
pub struct Residual {
    /// What people call it.
    pub name: String,
    /// The magnitude of a sample of 1 times this is in the units of W H.
    pub scale: f64,
}

/// Another model of the same sound, of P pieces instead of K parts.
#[derive(Debug, Clone)]
pub struct Pieces<'a> {
    /// W, F x P by rows.
    pub dictionary: &'a [f32],
    /// H, P x T by rows.
    pub activations: &'a [f32],
}

/// A group of parts with a name.
#[derive(Debug, Clone)]
pub struct Stem {
    /// What people call it.
    pub name: String,
    /// How much of each part, or of each piece if there are any, belongs to it.
    pub weights: Vec<f32>,
}
