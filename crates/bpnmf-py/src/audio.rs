//! Sounds: a spectrogram as counts, parts as sounds, and scores.

use crate::input::Counts;
use crate::task;
use bpnmf_audio::{BssEval, Doubt, Fault, Levels, Parts, Stft, Wiener};
use numpy::{IntoPyArray, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Threads for everything but the fit.
fn pool(threads: usize) -> PyResult<rayon::ThreadPool> {
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
    builder
        .build()
        .map_err(|error| PyOSError::new_err(format!("{threads} threads could not be started: {error}")))
}

fn rows(array: &PyReadonlyArray2<'_, f64>) -> Vec<Vec<f64>> {
    array.as_array().rows().into_iter().map(|row| row.to_vec()).collect()
}

/// (sdr, sir, sar, permutation, doubts). What is not defined is NaN.
#[pyfunction]
pub(crate) fn bss_eval<'py>(
    py: Python<'py>,
    references: PyReadonlyArray2<'py, f64>,
    estimates: PyReadonlyArray2<'py, f64>,
    taps: usize,
    permutation: bool,
    threads: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let (references, estimates) = (rows(&references), rows(&estimates));
    let options = BssEval { taps, permutation, threads };
    let (scores, error) = task::run::<(), _>(py, None, move |_| {
        let references: Vec<&[f64]> = references.iter().map(Vec::as_slice).collect();
        let estimates: Vec<&[f64]> = estimates.iter().map(Vec::as_slice).collect();
        bpnmf_audio::bss_eval(&references, &estimates, &options).map_err(|error| error.to_string())
    })?;
    if let Some(error) = error {
        return Err(error);
    }
    let scores = scores.expect("a result or an error").map_err(refused)?;
    let array = |values: Vec<Option<f64>>| {
        values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect::<Vec<f64>>().into_pyarray(py)
    };
    let permutation: Vec<i64> = scores.permutation.iter().map(|&place| place as i64).collect();
    let doubts: Vec<String> = scores.doubts.iter().map(sentence).collect();
    let all = (array(scores.sdr), array(scores.sir), array(scores.sar), permutation.into_pyarray(py), doubts);
    Ok(all.into_pyobject(py)?.into_any())
}

fn sentence(doubt: &Doubt) -> String {
    match doubt {
        Doubt::SilentReference(i) => format!("reference {i} is silent: it has no scores"),
        Doubt::SilentEstimate(i) => format!("estimate {i} is silent: it has no scores"),
        Doubt::Unrelated(i) => format!("estimate {i} has nothing in common with any reference: it has no SIR"),
        Doubt::Dependent => {
            "the references are mixtures of each other's delayed copies: scores above about 100 dB are lower bounds"
                .to_owned()
        }
        other => format!("{other:?}"),
    }
}

/// The spectrogram of a sound as counts: a dictionary with the counts, the magnitudes in their units, and how they
/// were made.
#[pyfunction]
pub(crate) fn spectrogram<'py>(
    py: Python<'py>,
    samples: PyReadonlyArray1<'py, f32>,
    rate: u32,
    window: Option<usize>,
    hop: Option<usize>,
    levels: Option<u32>,
    threads: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let samples = samples.as_array().to_vec();
    let window = window.unwrap_or_else(|| bpnmf_audio::default_window(rate, samples.len()));
    let stft = Stft::new(window, hop.unwrap_or(window / 2)).map_err(refused)?;
    let (bins, frames, hop) = (stft.bins(), stft.frames(samples.len()), stft.hop());
    let pool = pool(threads)?;
    let made = py.detach(|| -> Result<_, Fault> {
        let magnitudes = pool.install(|| stft.magnitudes(&samples));
        let levels = levels.map_or(Levels::Typical, Levels::Largest);
        let (counts, scale) = bpnmf_audio::to_counts(&magnitudes, bins, levels)?;
        Ok((counts, bpnmf_audio::to_units(magnitudes, scale), scale))
    });
    let (counts, magnitudes, scale) = made.map_err(|fault| refused(format!("y: {fault}")))?;
    let out = PyDict::new(py);
    out.set_item("counts", Counts(Arc::new(counts)))?;
    out.set_item("magnitudes", magnitudes.into_pyarray(py).reshape([frames, bins])?)?;
    out.set_item("scale", scale)?;
    out.set_item("window", window)?;
    out.set_item("hop", hop)?;
    Ok(out)
}

/// What `sounds` leaves behind.
struct Made {
    sounds: Vec<f32>,
    outputs: usize,
    members: Vec<Vec<usize>>,
    dictionary: Vec<f32>,
    activations: Vec<f32>,
    parts: usize,
}

/// The sounds of parts and stems. `dictionary` is bins x K, `activations` and `inclusion` K x frames; `magnitudes` is
/// frames x bins in their units. Stems are `groups` of parts that sound alike, or one for each of `references`.
#[pyfunction]
pub(crate) fn sounds<'py>(
    py: Python<'py>,
    samples: PyReadonlyArray1<'py, f32>,
    window: usize,
    hop: usize,
    scale: f64,
    magnitudes: PyReadonlyArray2<'py, f32>,
    dictionary: PyReadonlyArray2<'py, f32>,
    activations: PyReadonlyArray2<'py, f32>,
    inclusion: PyReadonlyArray2<'py, f32>,
    groups: Option<usize>,
    references: Option<PyReadonlyArray2<'py, f32>>,
    residual: bool,
    threads: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let flat =
        |array: &PyReadonlyArray2<'py, f32>| -> Vec<f32> { array.as_array().iter().copied().collect() };
    let (samples, components) = (samples.as_array().to_vec(), dictionary.as_array().ncols());
    let (length, frames) = (samples.len(), activations.as_array().ncols());
    let stft = Stft::new(window, hop).map_err(refused)?;
    let magnitudes = flat(&magnitudes);
    let (dictionary, activations, inclusion) = (flat(&dictionary), flat(&activations), flat(&inclusion));
    let references: Option<Vec<Vec<f32>>> =
        references.map(|array| array.as_array().rows().into_iter().map(|row| row.to_vec()).collect());
    let pool = pool(threads)?;
    let (made, error) = task::run::<(), Made>(py, None, move |_| {
        pool.install(|| {
            let mut parts = Parts::new(&dictionary, &activations, &inclusion, components);
            parts.polish(&magnitudes);
            let pieces = references.map(|references| {
                let units = |sound: &Vec<f32>| bpnmf_audio::to_units(stft.magnitudes(sound), scale);
                let magnitudes: Vec<Vec<f32>> = references.iter().map(units).collect();
                (bpnmf_audio::pick_all(&parts, &magnitudes), references.len())
            });
            let (model, stems, members) = match (&pieces, groups) {
                (Some((pieces, many)), _) => {
                    let mut members = vec![Vec::new(); *many];
                    pieces.origin.iter().zip(&pieces.owner).for_each(|(&k, &r)| members[r].push(k));
                    (&pieces.parts, pieces.by_owner(*many), members)
                }
                (None, Some(wanted)) => {
                    let members = bpnmf_audio::group(&parts, wanted);
                    (&parts, members.clone(), members)
                }
                (None, None) => (&parts, Vec::new(), Vec::new()),
            };
            let mut wiener = Wiener::of_pieces(&parts, model, &stems);
            if residual {
                wiener = wiener.with_residual(&magnitudes);
            }
            let outputs = wiener.outputs();
            let mut sounds: Vec<Vec<f32>> = (0..outputs).map(|_| Vec::with_capacity(length)).collect();
            let filtered = stft.filter(
                &samples,
                outputs,
                |frame, gains| wiener.gains(frame, gains),
                |output, samples| {
                    sounds[output].extend_from_slice(samples);
                    Ok::<(), std::convert::Infallible>(())
                },
            );
            filtered.unwrap_or_else(|never| match never {});
            Made {
                sounds: sounds.concat(),
                outputs,
                members,
                dictionary: parts.dictionary(),
                activations: parts.activations(),
                parts: parts.components(),
            }
        })
    })?;
    if let Some(error) = error {
        return Err(error);
    }
    let made = made.expect("a result or an error");
    let bins = window / 2 + 1;
    let out = PyDict::new(py);
    out.set_item("sounds", made.sounds.into_pyarray(py).reshape([made.outputs, length])?)?;
    out.set_item("members", made.members)?;
    out.set_item("W", made.dictionary.into_pyarray(py).reshape([bins, made.parts])?)?;
    out.set_item("H", made.activations.into_pyarray(py).reshape([made.parts, frames])?)?;
    Ok(out)
}
