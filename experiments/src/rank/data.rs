//! The data sets whose number of components is known, made up or read from files. Knows nothing of fits.

use super::{sound, swimmer};
use crate::files;
use bpnmf::{Counts, GammaReading, Recipe};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Counts, and what is known of how they came about.
pub(super) struct Data {
    pub(super) name: String,
    pub(super) counts: Counts,
    pub(super) truth: Option<Truth>,
}

/// What a fit should find.
pub(super) struct Truth {
    /// How many components there are.
    pub(super) components: usize,
    /// The components themselves, where they are known; rare ones that do not count are among them.
    pub(super) parts: Vec<Part>,
}

/// One true component.
pub(super) struct Part {
    /// Its column of W, length F.
    pub(super) column: Vec<f64>,
    /// In how many columns of the data it is on.
    pub(super) usage: usize,
}

/// Why there is no data.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The file is not on this machine: a reason to go on without it.
    Absent(PathBuf),
    /// Anything else.
    Bad(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(path) => {
                write!(
                    out,
                    "{} is not there; the variable BPNMF_DATA names the folder of the data",
                    path.display()
                )
            }
            Self::Bad(reason) => out.write_str(reason),
        }
    }
}

impl From<bpnmf::Error> for Trouble {
    fn from(error: bpnmf::Error) -> Self {
        Self::Bad(error.to_string())
    }
}

impl From<bpnmf_io::Error> for Trouble {
    fn from(error: bpnmf_io::Error) -> Self {
        Self::Bad(error.to_string())
    }
}

/// A data set by name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Set {
    /// The paper's recipe with this many columns.
    Synthetic { gamma: GammaReading, observations: usize },
    /// Ten notes, the magnitudes of their spectrogram quantised to this maximum.
    Clip { level: u32 },
    /// Bag of words whose topics are bars.
    Bars,
    /// Images of a swimmer with four limbs.
    Swimmer,
    /// Mutation counts of 21 breast-cancer genomes.
    Breast21,
    /// Rank 10, 100 x 200, with this mean count.
    LowRank { mean: f64 },
    /// Rank 10, mean 4.7, this many percent of the entries missing and the first row with them.
    Partial { percent: u32 },
    /// One rate everywhere.
    Noise,
}

/// The names `Set` can be parsed from.
pub(super) const NAMES: &str = "synth_rate, synth_scale, synth_short, clip_LEVEL, bars, swimmer, breast21, low_rank_MEAN, missing_PERCENT, noise";

impl FromStr for Set {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let unknown = || format!("unknown data set {name}; there are: {NAMES}");
        Ok(match name {
            "synth_rate" => Self::Synthetic { gamma: GammaReading::Rate, observations: 1000 },
            "synth_scale" => Self::Synthetic { gamma: GammaReading::Scale, observations: 1000 },
            "synth_short" => Self::Synthetic { gamma: GammaReading::Rate, observations: 300 },
            "bars" => Self::Bars,
            "swimmer" => Self::Swimmer,
            "breast21" => Self::Breast21,
            "noise" => Self::Noise,
            _ => {
                if let Some(level) = name.strip_prefix("clip_") {
                    Self::Clip { level: level.parse().ok().filter(|&n| n > 0).ok_or_else(unknown)? }
                } else if let Some(mean) = name.strip_prefix("low_rank_") {
                    Self::LowRank { mean: mean.parse().ok().filter(|&m| m > 0.0).ok_or_else(unknown)? }
                } else if let Some(percent) = name.strip_prefix("missing_") {
                    Self::Partial { percent: percent.parse().ok().filter(|&n| n < 100).ok_or_else(unknown)? }
                } else {
                    return Err(unknown());
                }
            }
        })
    }
}

impl Set {
    /// The data; what is read from a file is the same for every seed.
    pub(super) fn load(self, seed: u64) -> Result<Data, Trouble> {
        match self {
            Self::Synthetic { gamma, observations } => synthetic(gamma, observations, seed),
            Self::Clip { level } => clip(level),
            Self::Bars => bars(),
            Self::Swimmer => swimmer::draw(seed),
            Self::Breast21 => breast21(),
            Self::LowRank { mean } => low_rank(mean, seed),
            Self::Partial { percent } => partial(percent, seed),
            Self::Noise => noise(seed),
        }
    }
}

/// A file of the folder of data.
fn file(name: &str) -> Result<PathBuf, Trouble> {
    files::data(name).map_err(Trouble::Absent)
}

/// A truth of which only the number is known.
fn only(components: usize) -> Option<Truth> {
    Some(Truth { components, parts: Vec::new() })
}

fn synthetic(gamma: GammaReading, observations: usize, seed: u64) -> Result<Data, Trouble> {
    let recipe = Recipe { gamma, observations, ..Recipe::default() };
    let synthetic = recipe.draw(seed)?;
    let parts = (0..recipe.components)
        .map(|l| Part {
            column: synthetic.dictionary.iter().skip(l).step_by(recipe.components).copied().collect(),
            usage: synthetic.mask[l * observations..][..observations].iter().filter(|on| **on).count(),
        })
        .filter(|part| part.usage > 0)
        .collect();
    let reading = if gamma == GammaReading::Rate { "rate" } else { "scale" };
    Ok(Data {
        name: format!("paper's recipe, {reading}, T = {observations}, seed {seed}"),
        truth: Some(Truth { components: synthetic.true_components(), parts }),
        counts: synthetic.counts,
    })
}

fn clip(level: u32) -> Result<Data, Trouble> {
    let path = file("clip_identifiable/mix.wav")?;
    let bytes = std::fs::read(&path).map_err(|error| Trouble::Bad(format!("{}: {error}", path.display())))?;
    let samples =
        sound::samples(&bytes).map_err(|reason| Trouble::Bad(format!("{}: {reason}", path.display())))?;
    let (features, magnitudes) = sound::spectrogram(&samples);
    let largest = magnitudes.iter().copied().fold(0.0, f64::max);
    let values: Vec<f64> = magnitudes.iter().map(|m| (m / largest * f64::from(level)).round()).collect();
    Ok(Data {
        name: format!("clip at {level}"),
        counts: Counts::from_dense(features, values.len() / features, values)?,
        truth: only(10),
    })
}

fn bars() -> Result<Data, Trouble> {
    let mut options = bpnmf_io::ReadOptions::default();
    // The file has a row a document.
    options.transpose = true;
    let counts = bpnmf_io::read(&file("bars/bars_many.mtx")?, &options)?.counts;
    Ok(Data { name: "bars".into(), counts, truth: only(6) })
}

fn breast21() -> Result<Data, Trouble> {
    let path = file("breast21/Samples_SBS.txt")?;
    let counts = bpnmf_io::read(&path, &bpnmf_io::ReadOptions::default())?.counts;
    Ok(Data { name: "breast21".into(), counts, truth: only(5) })
}

fn low_rank(mean: f64, seed: u64) -> Result<Data, Trouble> {
    const RANK: usize = 10;
    let (features, observations) = (100, 200);
    let mut stream = bpnmf::bench::stream(seed);
    let w: Vec<f64> = (0..features * RANK).map(|_| stream.gamma(0.5)).collect();
    let h: Vec<f64> = (0..RANK * observations).map(|_| stream.gamma(0.5)).collect();
    let mut rates = Vec::with_capacity(features * observations);
    for t in 0..observations {
        for f in 0..features {
            rates.push((0..RANK).map(|k| w[f * RANK + k] * h[k * observations + t]).sum::<f64>());
        }
    }
    let scale = mean * rates.len() as f64 / rates.iter().sum::<f64>();
    let values = rates.iter().map(|rate| stream.poisson(rate * scale)).collect();
    let parts = (0..RANK)
        .map(|k| Part { column: w.iter().skip(k).step_by(RANK).copied().collect(), usage: observations })
        .collect();
    Ok(Data {
        name: format!("low rank, mean {mean}, seed {seed}"),
        counts: Counts::from_dense(features, observations, values)?,
        truth: Some(Truth { components: RANK, parts }),
    })
}

fn partial(percent: u32, seed: u64) -> Result<Data, Trouble> {
    let Data { counts, mut truth, .. } = low_rank(4.7, seed)?;
    let mut stream = bpnmf::bench::stream(seed + 1000);
    let (mut starts, mut rows) = (vec![0], Vec::new());
    for _ in 0..counts.observations() {
        let gone = |f: &u32| stream.uniform() < f64::from(percent) / 100.0 || *f == 0;
        rows.extend((0..counts.features() as u32).filter(gone));
        starts.push(rows.len());
    }
    // Of the first row nothing is known.
    truth.iter_mut().for_each(|truth| truth.parts.clear());
    Ok(Data {
        name: format!("{percent} % missing, seed {seed}"),
        counts: counts.with_missing(starts, rows)?,
        truth,
    })
}

fn noise(seed: u64) -> Result<Data, Trouble> {
    let (features, observations) = (100, 200);
    let mut stream = bpnmf::bench::stream(seed);
    let values = (0..features * observations).map(|_| stream.poisson(5.0)).collect();
    Ok(Data {
        name: format!("noise, seed {seed}"),
        counts: Counts::from_dense(features, observations, values)?,
        truth: Some(Truth {
            components: 1,
            parts: vec![Part { column: vec![1.0; features], usage: observations }],
        }),
    })
}
