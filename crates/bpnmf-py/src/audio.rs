//! Sounds: a spectrogram as counts, parts as sounds, and scores.

use crate::input::Counts;
use crate::task;
use bpnmf_audio::{BssEval, Doubt, Framing, Grouping, Levels, Parts, Sound};
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

/// The samples and the rate of a recording; of several channels the mean.
#[pyfunction]
pub(crate) fn read_sound(
    py: Python<'_>,
    path: std::path::PathBuf,
) -> PyResult<(Bound<'_, numpy::PyArray1<f32>>, u32)> {
    let sound = py.detach(|| bpnmf_audio::read(&path, bpnmf_audio::Channel::Mean)).map_err(refused)?;
    Ok((sound.samples.into_pyarray(py), sound.rate))
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

/// A sound and its spectrogram, ready to be taken apart.
#[pyclass(frozen)]
pub(crate) struct Recording {
    recording: Arc<bpnmf_audio::Recording>,
    /// Samples in a frame.
    #[pyo3(get)]
    window: usize,
    /// Samples from one frame to the next.
    #[pyo3(get)]
    hop: usize,
    /// Counts are magnitudes times this, rounded.
    #[pyo3(get)]
    scale: f64,
}

/// The spectrogram of a sound, and its counts.
#[pyfunction]
pub(crate) fn spectrogram(
    py: Python<'_>,
    samples: PyReadonlyArray1<'_, f32>,
    rate: u32,
    window: Option<usize>,
    hop: Option<usize>,
    levels: Option<u32>,
    threads: usize,
) -> PyResult<(Recording, Counts)> {
    let samples = samples.as_array().to_vec();
    let stft = Framing { window, hop }.of(rate, samples.len()).map_err(refused)?;
    let (window, hop, levels) = (stft.window(), stft.hop(), levels.map_or(Levels::Typical, Levels::Largest));
    let pool = pool(threads)?;
    let made =
        py.detach(|| pool.install(|| bpnmf_audio::Recording::new(Sound { samples, rate }, stft, levels)));
    let (recording, counts) = made.map_err(|fault| refused(format!("y: {fault}")))?;
    let scale = recording.scale();
    Ok((Recording { recording: Arc::new(recording), window, hop, scale }, Counts(Arc::new(counts))))
}

/// What `sounds` leaves behind.
struct Made {
    sounds: Vec<f32>,
    outputs: usize,
    members: Vec<Vec<usize>>,
    parts: Parts,
}

/// The sounds of parts and stems. `dictionary` is bins x K, `activations` and `inclusion` K x frames. Stems are `groups` of
/// the notes of one instrument, or one for each of `references`.
#[pyfunction]
pub(crate) fn sounds<'py>(
    py: Python<'py>,
    recording: &Recording,
    dictionary: PyReadonlyArray2<'py, f32>,
    activations: PyReadonlyArray2<'py, f32>,
    inclusion: PyReadonlyArray2<'py, f32>,
    groups: Option<usize>,
    polyphonic: bool,
    references: Option<PyReadonlyArray2<'py, f32>>,
    residual: bool,
    threads: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let flat =
        |array: &PyReadonlyArray2<'py, f32>| -> Vec<f32> { array.as_array().iter().copied().collect() };
    let components = dictionary.as_array().ncols();
    let (dictionary, activations, inclusion) = (flat(&dictionary), flat(&activations), flat(&inclusion));
    let references: Option<Vec<Vec<f32>>> =
        references.map(|array| array.as_array().rows().into_iter().map(|row| row.to_vec()).collect());
    let (pool, recording) = (pool(threads)?, Arc::clone(&recording.recording));
    let length = recording.sound().samples.len();
    let (made, error) = task::run::<(), Made>(py, None, move |_| {
        pool.install(|| {
            let parts = recording.polished(Parts::new(&dictionary, &activations, &inclusion, components));
            let sources: Option<Vec<Vec<f32>>> = references
                .map(|references| references.iter().map(|sound| recording.magnitudes_of(sound)).collect());
            let grouping = match (&sources, groups) {
                (Some(sources), _) => Grouping::PickAll(sources),
                (None, Some(wanted)) => Grouping::Voices { wanted, polyphonic },
                (None, None) => Grouping::Nothing,
            };
            let heard = recording.transcription(&parts, &inclusion);
            let stems = recording.stems(&parts, &heard, &activations, &grouping).with_unexplained(residual);
            let outputs = parts.components() + stems.many();
            let mut sounds: Vec<Vec<f32>> = (0..outputs).map(|_| Vec::with_capacity(length)).collect();
            let filtered = recording.filter(&parts, &stems, true, |output, samples| {
                sounds[output].extend_from_slice(samples);
                Ok::<(), std::convert::Infallible>(())
            });
            filtered.unwrap_or_else(|never| match never {});
            Made { sounds: sounds.concat(), outputs, members: stems.members, parts }
        })
    })?;
    if let Some(error) = error {
        return Err(error);
    }
    let Made { sounds, outputs, members, parts } = made.expect("a result or an error");
    let (bins, frames, components) = (parts.bins(), parts.frames(), parts.components());
    let out = PyDict::new(py);
    out.set_item("sounds", sounds.into_pyarray(py).reshape([outputs, length])?)?;
    out.set_item("members", members)?;
    out.set_item("W", parts.dictionary().into_pyarray(py).reshape([bins, components])?)?;
    out.set_item("H", parts.activations().into_pyarray(py).reshape([components, frames])?)?;
    Ok(out)
}
