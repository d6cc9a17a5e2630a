//! What is known before: signatures of a table, or the components of a fit. Knows no samples.

use crate::catalogue::{Catalogue, rows_of};
use crate::failure::Failure;
use bpnmf::{Basis, Noise, Prior};
use bpnmf_report::text::component_name;
use serde_json::Value;
use std::path::Path;

/// Known signatures.
pub(super) struct Signatures {
    pub(super) names: Vec<String>,
    pub(super) basis: Basis,
    /// F x K by rows, in the order of the features; columns add up to 1.
    pub(super) shares: Vec<f64>,
    /// They come from a fit, with its prior and its noise.
    pub(super) fitted: bool,
    /// Sentences about what was left out.
    pub(super) doubts: Vec<String>,
}

impl Signatures {
    /// Those at `path` for `features`, or for so many without names.
    pub(super) fn read(path: &Path, features: Option<&[String]>, number: usize) -> Result<Self, Failure> {
        if path.is_dir() {
            return of_fit(path, features, number);
        }
        let Catalogue { names, signatures: shares, doubts } = Catalogue::read(path, features, number)?;
        let dictionary: Vec<f32> = shares.iter().map(|&w| w as f32).collect();
        let basis = Basis::known(number, &dictionary, names.len())?;
        Ok(Self { names, basis, shares, fitted: false, doubts })
    }
}

/// The components of the fit in `folder`.
fn of_fit(folder: &Path, features: Option<&[String]>, number: usize) -> Result<Signatures, Failure> {
    let wrong = |what: &str| {
        Failure::Request(format!(
            "{}: {what}: name a table of signatures, or the output folder of bpnmf fit",
            folder.display()
        ))
    };
    let file = folder.join("model.npz");
    if !file.is_file() {
        return Err(wrong("it holds no model.npz"));
    }
    let arrays = bpnmf_io::read_npz_arrays(&file).map_err(Failure::reading)?;
    let array = |name: &str| arrays.iter().find(|(found, _)| found == name).map(|(_, array)| array);
    let (Some(w), Some(pi)) = (array("W"), array("pi")) else {
        return Err(wrong("model.npz has no W and pi"));
    };
    let json = |name: &str| -> Option<Value> {
        serde_json::from_slice(&std::fs::read(folder.join(name)).ok()?).ok()
    };
    let summary = json("summary.json").ok_or_else(|| wrong("it holds no summary.json that can be read"))?;
    let [rows, components] = *w.shape() else { return Err(wrong("W of model.npz is no matrix")) };
    if components == 0 {
        return Err(wrong("the fit has no components"));
    }
    let known: Option<Vec<String>> =
        json("names.json").and_then(|names| serde_json::from_value(names["features"].clone()).ok());
    let (order, doubts) = rows_of(folder, known.as_deref(), rows, features, number)?;
    let values = w.to_f64();
    let row = |f: usize| values[f * components..][..components].iter().map(|&w| w as f32);
    let dictionary: Vec<f32> = order.iter().flat_map(|&f| row(f)).collect();
    let of = |place: &Value| place.as_f64().ok_or_else(|| wrong("summary.json has no prior"));
    let (c, d) = (of(&summary["prior"]["c"])?, of(&summary["prior"]["d"])?);
    let prior = Prior { c, d, components, ..Prior::default() }.check()?;
    let noise = summary["alpha"].as_f64().map_or(Noise::Poisson, |alpha| Noise::Scattered { alpha });
    let coarsening = summary["coarsening"].as_f64().unwrap_or(1.0);
    let basis = Basis::new(number, &dictionary, &pi.to_f64(), &prior, coarsening)?.with_noise(noise)?;
    let mut sums = vec![0.0; components];
    dictionary.chunks_exact(components).for_each(|row| {
        sums.iter_mut().zip(row).for_each(|(sum, w)| *sum += f64::from(*w));
    });
    let shares = dictionary.iter().enumerate().map(|(i, w)| f64::from(*w) / sums[i % components]).collect();
    let names = (0..components).map(|k| component_name(k, components)).collect();
    Ok(Signatures { names, basis, shares, fitted: true, doubts })
}
