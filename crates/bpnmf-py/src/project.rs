//! New samples on known components; what known features are.

use crate::fit::{noise_of, prior_of};
use crate::input::Counts;
use crate::raised;
use crate::task;
use bpnmf::{AssignOptions, Assigned, Basis, Error, Prior, ProjectOptions, Projection, Workers};
use numpy::{IntoPyArray, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashMap;

/// pi, the prior, the coarsening and alpha of a fit.
type Known<'py> = (PyReadonlyArray1<'py, f64>, HashMap<String, f64>, f64, f64);

/// The order, the labels and the groups (name, colour, bars) of a panel.
type Channels = (Vec<usize>, Vec<String>, Vec<(String, String, usize)>);

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

/// Exposures of samples on `components` (K x features), in expected counts: a dictionary of arrays, samples first. With `known`
/// (pi, prior, coarsening, alpha) as a fit has it; else all of that is learned from the samples, and `alpha` is infinite for
/// Poisson counts and None to be learned, too.
#[pyfunction]
#[pyo3(signature = (counts, components, known, alpha, *, seed, draws, threads))]
pub(crate) fn assign<'py>(
    py: Python<'py>,
    counts: &Counts,
    components: PyReadonlyArray2<'py, f32>,
    known: Option<Known<'py>>,
    alpha: Option<f64>,
    seed: u64,
    draws: u32,
    threads: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let components = components.as_array();
    let [parts, features] = [components.nrows(), components.ncols()];
    let dictionary: Vec<f32> = components.t().iter().copied().collect();
    let default = AssignOptions::default();
    let rounds = if known.is_some() { 0 } else { default.rounds };
    let basis = match known {
        None => Basis::known(features, &dictionary, parts).map_err(raised)?,
        Some((pi, prior, coarsening, alpha)) => {
            let prior = Prior { components: parts.max(1), ..prior_of(&prior)?.filled_in() }
                .check()
                .map_err(raised)?;
            let pi = pi.as_array().to_vec();
            let basis = Basis::new(features, &dictionary, &pi, &prior, coarsening);
            basis.and_then(|basis| basis.with_noise(noise_of(alpha))).map_err(raised)?
        }
    };
    let options = AssignOptions { seed, draws, rounds, noise: alpha.map(noise_of), ..default };
    let workers = Workers::new(threads).map_err(raised)?;
    let (counts, samples) = (counts.0.clone(), counts.0.observations());
    let (result, error) = task::run::<(), Result<Assigned, Error>>(py, None, move |link| {
        let stop = link.stop();
        basis.assign(&counts, &options, &workers, &|| !stop.load(std::sync::atomic::Ordering::Relaxed))
    })?;
    if let Some(error) = error {
        return Err(error);
    }
    let found = result.expect("a result or an error").map_err(raised)?;
    let out = PyDict::new(py);
    let array = |values: Vec<f32>| values.into_pyarray(py).reshape([samples, parts]);
    out.set_item("present_from", found.present_from())?;
    let [low, high] = found.intervals;
    out.set_item("exposures", array(found.exposures)?)?;
    out.set_item("low", array(low)?)?;
    out.set_item("high", array(high)?)?;
    out.set_item("inclusion", array(found.inclusion)?)?;
    out.set_item("log_likelihood", found.log_likelihood.into_pyarray(py))?;
    out.set_item("pi", found.pi.into_pyarray(py))?;
    out.set_item("alpha", found.noise.alpha().unwrap_or(f64::INFINITY))?;
    Ok(out)
}

/// The order, the labels and the groups (name, colour, bars) in which the field draws features of these names, if they are all
/// 96 substitutions or all 83 insertions and deletions.
#[pyfunction]
pub(crate) fn channels(names: Vec<String>) -> Option<Channels> {
    let found = bpnmf_report::Channels::of(&names)?;
    let group = |of: bpnmf_report::Group| (of.name.to_owned(), of.color.to_owned(), of.size);
    Some((found.order, found.names, found.groups.into_iter().map(group).collect()))
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
