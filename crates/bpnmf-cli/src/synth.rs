//! `bpnmf synth`: counts with known parts, for trying things on.

use crate::args::{GammaName, SynthArgs};
use crate::failure::Failure;
use crate::folder::Folder;
use crate::text;
use bpnmf::{Counts, GammaReading, Recipe, Synthetic};
use bpnmf_io::Array;
use std::process::ExitCode;

/// The files of synthetic counts.
pub(crate) const FILES: [&str; 2] = ["X.npy", "truth.npz"];

/// The most values that are drawn: above, somebody mistyped.
const MOST_VALUES: usize = 1 << 31;

pub(crate) fn synth(args: &SynthArgs) -> Result<ExitCode, Failure> {
    let recipe = check(args)?;
    let folder = Folder::unused(&args.out, &FILES, args.force)?;
    folder.check_writable()?;
    let synthetic = recipe.draw(args.seed).map_err(|error| match error {
        bpnmf::Error::TooBig { value, .. } => Failure::Other(format!(
            "seed {} draws a count of {value:.0e}, above the 1e15 that are supported: try another --seed or \
             --gamma scale",
            args.seed
        )),
        other => other.into(),
    })?;
    let components = recipe.components;
    write(&folder, &synthetic, components)?;
    text::print(&format!(
        "{}: {} features x {} observations, {} of {} parts are on in at least 1 % of the observations\n",
        folder.file("X.npy").display(),
        recipe.features,
        recipe.observations,
        synthetic.true_components(),
        components
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn check(args: &SynthArgs) -> Result<Recipe, Failure> {
    let sizes = [
        ("--features", args.features),
        ("--observations", args.observations),
        ("--components", args.components),
    ];
    if let Some((flag, _)) = sizes.into_iter().find(|(_, size)| *size == 0) {
        return Err(Failure::Request(format!("{flag} is 0: it must be at least 1")));
    }
    let [(_, features), (_, observations), (_, components)] = sizes;
    let values = features
        .saturating_mul(observations)
        .saturating_add(features.saturating_mul(components))
        .saturating_add(components.saturating_mul(observations));
    if values > MOST_VALUES {
        return Err(Failure::Request(format!(
            "{features} features, {observations} observations and {components} components are more than 2^31 \
             values: ask for less"
        )));
    }
    let gamma = match args.gamma {
        GammaName::Rate => GammaReading::Rate,
        GammaName::Scale => GammaReading::Scale,
    };
    Ok(Recipe { features, observations, components, gamma })
}

/// Writes the counts and what they were drawn from.
fn write(folder: &Folder, synthetic: &Synthetic, components: usize) -> Result<(), Failure> {
    let truth = Truth {
        dictionary: &synthetic.dictionary,
        activations: &synthetic.activations,
        mask: synthetic.mask.iter().map(|&on| u8::from(on)).collect(),
        pi: synthetic.pi.clone(),
        components,
        true_components: synthetic.true_components(),
    };
    truth.write(folder, &synthetic.counts)
}

/// What counts were drawn from, by rows.
pub(crate) struct Truth<'a> {
    /// F x L.
    pub(crate) dictionary: &'a [f64],
    /// L x T.
    pub(crate) activations: &'a [f64],
    /// L x T.
    pub(crate) mask: Vec<u8>,
    /// Length L.
    pub(crate) pi: Vec<f64>,
    /// L.
    pub(crate) components: usize,
    /// How many of them are on often enough to count.
    pub(crate) true_components: usize,
}

impl Truth<'_> {
    /// Writes X.npy and truth.npz.
    pub(crate) fn write(&self, folder: &Folder, counts: &Counts) -> Result<(), Failure> {
        let (features, observations) = (counts.features(), counts.observations());
        let arrays = [
            ("W", Array::new(&[features, self.components], self.dictionary)),
            ("H", Array::new(&[self.components, observations], self.activations)),
            ("S", Array::new(&[self.components, observations], &self.mask[..])),
            ("pi", Array::new(&[self.components], &self.pi[..])),
            ("n_components", Array::new(&[], vec![self.true_components as i64])),
        ];
        let matrix = Array::new(&[features, observations], by_rows(counts));
        folder.create()?;
        bpnmf_io::write_npy(&folder.file("X.npy"), &matrix).map_err(Failure::writing)?;
        bpnmf_io::write_npz(&folder.file("truth.npz"), &arrays).map_err(Failure::writing)
    }
}

fn by_rows(counts: &Counts) -> Vec<f64> {
    let observations = counts.observations();
    let mut values = vec![0.0; counts.features() * observations];
    for t in 0..observations {
        for (f, value) in counts.column(t).positive() {
            values[f * observations + t] = value;
        }
    }
    values
}
