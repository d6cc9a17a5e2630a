//! New samples on known components.

use crate::fit::{noise_of, prior_of};
use crate::input::Counts;
use crate::raised;
use crate::task;
use bpnmf::{Basis, Error, Prior, ProjectOptions, Projection, Workers};
use numpy::{IntoPyArray, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashMap;

/// Projects samples onto `components` (K x features): a dictionary of arrays, samples first.
#[pyfunction]
#[pyo3(signature = (counts, components, pi, prior, coarsening, alpha, *, seed, burn_in, draws, keep, threads))]
pub(crate) fn project<'py>(
    py: Python<'py>,
    counts: &Counts,
    components: PyReadonlyArray2<'py, f32>,
    pi: PyReadonlyArray1<'py, f64>,
    prior: HashMap<String, f64>,
    coarsening: f64,
    alpha: f64,
    seed: u64,
    burn_in: u32,
    draws: u32,
    keep: bool,
    threads: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let (components, pi) = (components.as_array(), pi.as_array().to_vec());
    let [parts, features] = [components.nrows(), components.ncols()];
    let dictionary: Vec<f32> = components.t().iter().copied().collect();
    let prior =
        Prior { components: parts.max(1), ..prior_of(&prior)?.filled_in() }.check().map_err(raised)?;
    let basis = Basis::new(features, &dictionary, &pi, &prior, coarsening);
    let basis = basis.and_then(|basis| basis.with_noise(noise_of(alpha))).map_err(raised)?;
    let options = ProjectOptions { seed, burn_in, draws, keep };
    let workers = Workers::new(threads).map_err(raised)?;
    let (counts, samples) = (counts.0.clone(), counts.0.observations());
    let (result, error) = task::run::<(), Result<Projection, Error>>(py, None, move |link| {
        // The link holds a sender, which threads do not share.
        let stop = link.stop();
        basis.project(&counts, &options, &workers, &|| !stop.load(std::sync::atomic::Ordering::Relaxed))
    })?;
    if let Some(error) = error {
        return Err(error);
    }
    let found = result.expect("a result or an error").map_err(raised)?;
    let out = PyDict::new(py);
    let array = |values: Vec<f32>| values.into_pyarray(py).reshape([samples, parts]);
    out.set_item("mean", array(found.activations)?)?;
    out.set_item("std", array(found.spread)?)?;
    out.set_item("inclusion", array(found.inclusion)?)?;
    out.set_item("log_likelihood", found.log_likelihood.into_pyarray(py))?;
    if keep {
        let shape = [samples, draws as usize, parts];
        out.set_item("draws", found.draws.into_pyarray(py).reshape(shape)?)?;
    }
    Ok(out)
}

/// The log-likelihood of counts at their rates, log x! included.
#[pyfunction]
pub(crate) fn log_likelihood(
    counts: PyReadonlyArray1<'_, f64>,
    rates: PyReadonlyArray1<'_, f64>,
    alpha: f64,
) -> f64 {
    let (counts, rates) = (counts.as_array(), rates.as_array());
    counts.iter().zip(rates).map(|(&x, &rate)| noise_of(alpha).ln_probability(x, rate)).sum()
}
