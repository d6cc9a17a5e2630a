//! Glue between Python and the library: arrays in, arrays out. What it means is decided on either side of it.

mod audio;
mod blocks;
mod fit;
mod input;
mod project;
mod task;

use pyo3::prelude::*;

/// The compiled half of the Python package.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::audio::{Recording, bss_eval, read_sound, sounds, spectrogram};
    #[pymodule_export]
    use super::blocks::{Blocks, add, local, sample};
    #[pymodule_export]
    use super::fit::fit;
    #[pymodule_export]
    use super::input::Counts;
    #[pymodule_export]
    use super::project::{assign, channels, log_likelihood, project};
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("BLOCK", bpnmf::BLOCK_OBSERVATIONS)?;
        module.add("SAMPLE", bpnmf::SAMPLE)?;
        module.add("__version__", bpnmf::VERSION)
    }
}

/// An error of the library as Python raises it. Samples come first here: places are turned round.
fn raised(error: bpnmf::Error) -> PyErr {
    use bpnmf::Error::{BadForced, BadOption, Misplaced, Negative, NotFinite, NotWhole, Threads, TooBig};
    use bpnmf::Instead;
    use pyo3::exceptions::{PyOSError, PyValueError};
    let sentence = match error {
        Threads { .. } => return PyOSError::new_err(error.to_string()),
        Negative { feature, observation, value } => {
            format!(
                "Negative values in data: entry ({observation}, {feature}) is {value}, counts cannot be negative; if \
                 these are logarithms or z-scores, give the raw counts"
            )
        }
        NotFinite { feature: observation, observation: feature, value } if value.is_nan() => {
            let error = NotFinite { feature, observation, value };
            format!("{error}; missing=\"nan\" takes NaN as not observed")
        }
        NotFinite { feature: observation, observation: feature, value } => {
            NotFinite { feature, observation, value }.to_string()
        }
        TooBig { feature: observation, observation: feature, value } => {
            TooBig { feature, observation, value }.to_string()
        }
        NotWhole { feature: observation, observation: feature, value, engine } => {
            NotWhole { feature, observation, value, engine }.to_string()
        }
        Misplaced { option, reason, instead } => {
            let option = if option == "forced components" { "n_components" } else { option };
            let instead = match instead {
                Instead::Preset(preset) => format!("use preset=\"{}\"", preset.name()),
                other => other.to_string(),
            };
            format!("{option} {reason}: leave it out or {instead}")
        }
        BadForced { wanted, most, .. } => {
            format!("n_components is {wanted}: it must be between 1 and {most}")
        }
        BadOption { name, value, range } => {
            let name = match name {
                "iterations" => "max_iter",
                "tolerance" => "tol",
                "chains" => "n_chains",
                "threads" => "n_jobs",
                name => name,
            };
            BadOption { name, value, range }.to_string()
        }
        other => other.to_string(),
    };
    PyValueError::new_err(sentence)
}
