//! The data sets of the experiment by name, made up or read from files. Knows nothing of fits.

use super::{made, sound, swimmer};
use crate::files;
use bpnmf::{Counts, GammaReading, Recipe};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Counts, and what is known of how they came about.
pub(crate) struct Data {
    pub(crate) name: String,
    pub(crate) counts: Counts,
    /// Nothing where the number of components is not known.
    pub(crate) truth: Option<Truth>,
}

/// What a fit should find.
pub(crate) struct Truth {
    /// How many components there are.
    pub(crate) components: usize,
    /// The components themselves, where they are known; rare ones that do not count are among them.
    pub(crate) parts: Vec<Part>,
}

/// One true component.
pub(crate) struct Part {
    /// Its column of W, length F.
    pub(crate) column: Vec<f64>,
    /// In how many columns of the data it is on.
    pub(crate) usage: usize,
}

/// Why there is no data.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The file is not on this machine: a reason to go on without it.
    Absent(String),
    /// Anything else.
    Bad(String),
}

impl Trouble {
    /// A file of the folder of data is not there.
    pub(crate) fn absent(path: &Path) -> Self {
        let path = path.display();
        Self::Absent(format!("{path} is not there; the variable BPNMF_DATA names the folder of the data"))
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Absent(reason) | Self::Bad(reason)) = self;
        out.write_str(reason)
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
    /// scikit-learn's images of digits.
    Digits,
    /// The first so many single cells.
    Cells { cells: usize },
    /// Rank 10, W and H of shape 1/2, 100 x 200, with this mean count.
    LowRank { mean: f64 },
    /// This many components, W of shape 0.3, H of this one, with this mean count.
    Grid { components: usize, shape: f64, mean: f64, size: Size },
    /// This many components, each on in 5 % of the columns, 300 x 2000, with this mean count.
    Sparse { components: usize, mean: f64 },
    /// A flat background and four components that are on in a quarter of the columns, with this mean count.
    Background { mean: f64 },
    /// Rank 1 with this mean count.
    RankOne { mean: f64 },
    /// Rank 10, mean 4.7, this many percent of the entries missing and the first row with them.
    Partial { percent: u32 },
    /// One rate everywhere.
    Noise { rate: f64 },
    /// One count everywhere.
    Constant,
}

/// Features x observations.
pub(super) type Size = (usize, usize);

/// The size of a data set of the grid that is not told its own.
pub(super) fn usual_size(components: usize) -> Size {
    if components <= 5 { (96, 100) } else { (100, 200) }
}

/// The names `Set` can be parsed from.
pub(super) const NAMES: &str = "synth_rate, synth_scale, synth_short, clip_LEVEL, bars, swimmer, breast21, digits, \
    pbmc_facs, pbmc_facs_CELLS, low_rank_MEAN, grid_K_SHAPE_MEAN, grid_K_SHAPE_MEAN_FxT, sparse_K_MEAN, background_MEAN, \
    rank_one, rank_one_MEAN, missing_PERCENT, noise, noise_RATE, constant";

impl FromStr for Set {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let set = match name {
            "synth_rate" => Some(Self::Synthetic { gamma: GammaReading::Rate, observations: 1000 }),
            "synth_scale" => Some(Self::Synthetic { gamma: GammaReading::Scale, observations: 1000 }),
            "synth_short" => Some(Self::Synthetic { gamma: GammaReading::Rate, observations: 300 }),
            "bars" => Some(Self::Bars),
            "swimmer" => Some(Self::Swimmer),
            "breast21" => Some(Self::Breast21),
            "digits" => Some(Self::Digits),
            "pbmc_facs" => Some(Self::Cells { cells: 1000 }),
            "rank_one" => Some(Self::RankOne { mean: 5.0 }),
            "noise" => Some(Self::Noise { rate: 5.0 }),
            "constant" => Some(Self::Constant),
            _ => with_numbers(name),
        };
        set.ok_or_else(|| format!("unknown data set {name}; there are: {NAMES}"))
    }
}

/// A data set whose name ends with numbers, each behind an underscore.
fn with_numbers(name: &str) -> Option<Set> {
    let begin = name.find(|c: char| c.is_ascii_digit() || c == '.')?;
    let kind = name[..begin].strip_suffix('_')?;
    let numbers: Vec<&str> = name[begin..].split('_').collect();
    Some(match (kind, &numbers[..]) {
        ("clip", [level]) => Set::Clip { level: whole(level)?.try_into().ok()? },
        ("pbmc_facs", [cells]) => Set::Cells { cells: whole(cells)? },
        ("low_rank", [mean]) => Set::LowRank { mean: positive(mean)? },
        ("grid", [components, shape, mean, size @ ..]) => {
            let components = whole(components)?;
            let size = match size {
                [] => usual_size(components),
                [size] => size.split_once('x').and_then(|(f, t)| Some((whole(f)?, whole(t)?)))?,
                _ => return None,
            };
            Set::Grid { components, shape: positive(shape)?, mean: positive(mean)?, size }
        }
        ("sparse", [components, mean]) => {
            Set::Sparse { components: whole(components)?, mean: positive(mean)? }
        }
        ("background", [mean]) => Set::Background { mean: positive(mean)? },
        ("rank_one", [mean]) => Set::RankOne { mean: positive(mean)? },
        ("missing", [percent]) => Set::Partial { percent: percent.parse().ok().filter(|&n| n < 100)? },
        ("noise", [rate]) => Set::Noise { rate: positive(rate)? },
        _ => return None,
    })
}

fn whole(word: &str) -> Option<usize> {
    word.parse().ok().filter(|&number| number > 0)
}

fn positive(word: &str) -> Option<f64> {
    word.parse().ok().filter(|&number: &f64| number > 0.0 && number.is_finite())
}

/// The name it can be parsed from.
impl fmt::Display for Set {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Synthetic { observations: 300, .. } => write!(out, "synth_short"),
            Self::Synthetic { gamma: GammaReading::Rate, .. } => write!(out, "synth_rate"),
            Self::Synthetic { gamma: GammaReading::Scale, .. } => write!(out, "synth_scale"),
            Self::Clip { level } => write!(out, "clip_{level}"),
            Self::Bars => write!(out, "bars"),
            Self::Swimmer => write!(out, "swimmer"),
            Self::Breast21 => write!(out, "breast21"),
            Self::Digits => write!(out, "digits"),
            Self::Cells { cells } => write!(out, "pbmc_facs_{cells}"),
            Self::LowRank { mean } => write!(out, "low_rank_{mean}"),
            Self::Grid { components, shape, mean, size } => {
                write!(out, "grid_{components}_{shape}_{mean}")?;
                if size == usual_size(components) { Ok(()) } else { write!(out, "_{}x{}", size.0, size.1) }
            }
            Self::Sparse { components, mean } => write!(out, "sparse_{components}_{mean}"),
            Self::Background { mean } => write!(out, "background_{mean}"),
            Self::RankOne { mean } => write!(out, "rank_one_{mean}"),
            Self::Partial { percent } => write!(out, "missing_{percent}"),
            Self::Noise { rate } => write!(out, "noise_{rate}"),
            Self::Constant => write!(out, "constant"),
        }
    }
}

impl Set {
    /// The data; what is read from a file is the same for every seed. `digits` is the file of the digits.
    pub(super) fn load(self, seed: u64, digits: Option<&Path>) -> Result<Data, Trouble> {
        match self {
            Self::Synthetic { gamma, observations } => synthetic(gamma, observations, seed),
            Self::Clip { level } => clip(level),
            Self::Bars => bars(),
            Self::Swimmer => swimmer::draw(seed),
            Self::Breast21 => breast21(),
            Self::Digits => read_digits(digits),
            Self::Cells { cells } => read_cells(cells),
            Self::LowRank { mean } => made::low_rank(mean, seed),
            Self::Grid { components, shape, mean, size } => made::grid(components, shape, mean, size, seed),
            Self::Sparse { components, mean } => made::sparse(components, mean, seed),
            Self::Background { mean } => made::background(mean, seed),
            Self::RankOne { mean } => made::rank_one(mean, seed),
            Self::Partial { percent } => made::partial(percent, seed),
            Self::Noise { rate } => made::noise(rate, seed),
            Self::Constant => made::constant(),
        }
    }

    /// Its mean count, where that is a parameter.
    pub(super) fn mean(self) -> Option<f64> {
        match self {
            Self::LowRank { mean }
            | Self::Grid { mean, .. }
            | Self::Sparse { mean, .. }
            | Self::Background { mean }
            | Self::RankOne { mean } => Some(mean),
            _ => None,
        }
    }

    /// What it is but for its mean count: data sets of one family differ in that alone.
    pub(super) fn family(self) -> String {
        match self {
            Self::LowRank { .. } => "K0 10, W and H of shape 0.5".into(),
            Self::Grid { components, shape, .. } => format!("K0 {components}, H of shape {shape}"),
            _ => self.to_string(),
        }
    }
}

/// A file of the folder of data.
fn file(name: &str) -> Result<PathBuf, Trouble> {
    files::data(name).map_err(|path| Trouble::absent(&path))
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

fn read_digits(path: Option<&Path>) -> Result<Data, Trouble> {
    let path = path.ok_or_else(|| {
        Trouble::Absent(
            "the digits were not given; ./run rank writes them, and --digits names the file".into(),
        )
    })?;
    let counts = bpnmf_io::read(path, &bpnmf_io::ReadOptions::default())?.counts;
    Ok(Data { name: "digits".into(), counts, truth: None })
}

fn read_cells(cells: usize) -> Result<Data, Trouble> {
    let mut options = bpnmf_io::ReadOptions::default();
    // The file has a row a cell.
    options.transpose = true;
    let all = bpnmf_io::read(&file("pbmc_facs/counts.mtx.gz")?, &options)?.counts;
    let columns = (0..cells.min(all.observations())).map(|t| all.column(t).positive());
    Ok(Data {
        name: format!("{cells} single cells"),
        counts: made::from_columns(all.features(), columns)?,
        truth: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_is_told_is_parsed_to_the_same_set() {
        let some = "synth_scale clip_300 pbmc_facs_50 low_rank_0.46 grid_10_0.5_300 \
                    grid_3_1_5_100x200 sparse_60_5 background_10 rank_one_5 missing_25 noise_0.5";
        for name in some.split(' ') {
            assert_eq!(name.parse::<Set>().unwrap().to_string(), name);
        }
        for name in NAMES.split(", ").filter(|name| name.chars().all(|c| !c.is_uppercase())) {
            let set: Set = name.parse().unwrap();
            assert_eq!(set.to_string().parse(), Ok(set));
        }
    }

    #[test]
    fn no_data_set_is_taken_for_anything_but_counts() {
        let some = "synth_short clip_300 clip_1000 bars swimmer breast21 pbmc_facs_300 low_rank_0.46 grid_3_1_50 \
                    background_1 rank_one_5 missing_25 noise_0.5 noise_5 constant";
        for name in some.split(' ') {
            match name.parse::<Set>().unwrap().load(1, None) {
                Ok(data) => assert_eq!(bpnmf::Suspicion::of(&data.counts), None, "{name}"),
                Err(Trouble::Absent(reason)) => eprintln!("{name}: skipped: {reason}"),
                Err(Trouble::Bad(reason)) => panic!("{name}: {reason}"),
            }
        }
    }

    #[test]
    fn names_with_numbers_that_make_no_sense_are_refused() {
        let some =
            "grid_10_1 grid_0_1_5 grid_3_1_5_100 grid_3_1_5_6x7_8 noise_-1 noise_ 5 low_rank_x sparse_5";
        for name in some.split(' ') {
            assert!(name.parse::<Set>().is_err(), "{name}");
        }
    }
}
