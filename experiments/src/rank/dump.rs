//! Writes a data set for other programs. Knows nothing of fits.

use super::rows::Case;
use bpnmf_io::Array;
use std::path::Path;

/// `NAME SEED OUT`, `NAME+CHANGE` for a data set that is changed: the counts as an F x T array, NaN where they are missing; an .npz gets the true parts and their usage,
/// too.
pub(super) fn command(arguments: &[String]) -> Result<(), String> {
    let [name, seed, path] = arguments else {
        return Err("usage: rank dump NAME SEED OUT.npy (or OUT.npz, with the truth)".into());
    };
    let seed = seed.parse().map_err(|_| format!("the seed {seed} is not a whole number"))?;
    let case = Case { data_seed: seed, ..name.parse()? };
    let data = super::load(&case, None).map_err(|trouble| trouble.to_string())?;
    let (features, observations) = (data.counts.features(), data.counts.observations());
    let mut values = vec![0.0; features * observations];
    for t in 0..observations {
        for (f, value) in data.counts.column(t).positive() {
            values[f * observations + t] = value;
        }
        for &f in data.counts.missing(t) {
            values[f as usize * observations + t] = f64::NAN;
        }
    }
    let counts = Array::new(&[features, observations], values);
    let path = Path::new(path);
    if path.extension().is_some_and(|extension| extension == "npz") {
        let parts = data.truth.as_ref().map_or(&[][..], |truth| &truth.parts);
        let columns: Vec<f64> = parts.iter().flat_map(|part| part.column.iter().copied()).collect();
        let usage: Vec<i64> = parts.iter().map(|part| part.usage as i64).collect();
        let arrays = [
            ("counts", counts),
            ("parts", Array::new(&[parts.len(), features], columns)),
            ("usage", Array::new(&[parts.len()], usage)),
        ];
        bpnmf_io::write_npz(path, &arrays).map_err(|error| error.to_string())?;
    } else {
        bpnmf_io::write_npy(path, &counts).map_err(|error| error.to_string())?;
    }
    let truth = data.truth.map_or_else(|| "unknown".into(), |truth| truth.components.to_string());
    println!("{}: {features} x {observations}, {} counts, truth {truth}", data.name, data.counts.total());
    Ok(())
}
