//! A fit of blocks, in parts that Python puts together: the global half here, the local half wherever a block is.

use crate::input::Counts;
use crate::raised;
use bpnmf::{BlockFit, BlockKey, BlockStatistics, Effort, Error, Shared, Workers};
use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number, stage, blocks, sweeps of burn-in, sweeps that are averaged.
type Round = (u32, &'static str, Vec<usize>, u32, u32);

/// The means of H S and of S, samples x components.
type Means<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// A fit of blocks between two rounds.
#[pyclass(frozen, module = "bpnmf._core")]
pub(crate) struct Blocks(pub(crate) Mutex<BlockFit>);

impl Blocks {
    pub(crate) fn new(fit: BlockFit) -> Self {
        Self(Mutex::new(fit))
    }

    fn fit(&self) -> MutexGuard<'_, BlockFit> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Blocks {
    /// What `to_bytes` wrote.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        BlockFit::from_bytes(bytes).map(Self::new).map_err(raised)
    }

    /// All of it.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.fit().to_bytes())
    }

    /// For pickle.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Self>().getattr("from_bytes")?, (self.to_bytes(py),)))
    }

    /// What is to be done next, None if all is done.
    fn next_round(&self) -> Option<Round> {
        self.fit().next_round().map(|round| {
            let Effort { burn_in, kept } = round.effort;
            (round.number, round.stage.name(), round.blocks.clone(), burn_in, kept)
        })
    }

    /// How many rounds there are.
    fn rounds(&self) -> usize {
        self.fit().rounds().len()
    }

    /// What the local halves of the next round are given.
    fn shared<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.fit().shared().to_bytes())
    }

    /// Takes the sums over all blocks of the next round in.
    fn take(&self, statistics: &[u8]) -> PyResult<()> {
        let statistics = BlockStatistics::from_bytes(statistics);
        statistics.and_then(|statistics| self.fit().take(statistics)).map_err(raised)
    }

    /// One step with samples that come next in a stream.
    fn partial_fit(&self, py: Python<'_>, counts: &Counts, threads: usize) -> PyResult<()> {
        let workers = Workers::new(threads).map_err(raised)?;
        py.detach(|| self.fit().partial_fit(&counts.0, &workers)).map_err(raised)
    }

    /// The components as they stand: W (features x components), pi, share, usage, their order, the number of samples and the
    /// log-likelihood.
    fn found<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fit = self.fit();
        let found = fit.found();
        let out = PyDict::new(py);
        let shape = [fit.features(), fit.components()];
        out.set_item("W", found.dictionary.into_pyarray(py).reshape(shape)?)?;
        out.set_item("pi", found.pi.into_pyarray(py))?;
        out.set_item("share", found.share.into_pyarray(py))?;
        out.set_item("usage", found.usage.into_pyarray(py))?;
        out.set_item("order", fit.order().into_pyarray(py))?;
        out.set_item("samples", fit.observations())?;
        out.set_item("log_likelihood", fit.log_likelihood())?;
        Ok(out)
    }
}

/// The local half: the sums over a block as bytes, and if `means` says so the means of H S and of S, samples x components.
#[pyfunction]
#[pyo3(signature = (shared, counts, *, seed, round, block, place, burn_in, kept, means))]
pub(crate) fn local<'py>(
    py: Python<'py>,
    shared: &[u8],
    counts: &Counts,
    seed: u64,
    round: u32,
    block: usize,
    place: usize,
    burn_in: u32,
    kept: u32,
    means: bool,
) -> PyResult<(Bound<'py, PyBytes>, Option<Means<'py>>)> {
    let shared = Shared::from_bytes(shared).map_err(raised)?;
    let key = BlockKey { seed, round, block, place };
    let counts = &counts.0;
    let work = || shared.local(counts, key, Effort { burn_in, kept }, means, &Workers::serial());
    let found = py.detach(work).map_err(raised)?;
    let shape = [counts.observations(), shared.components()];
    let array = |values: Vec<f32>| Ok::<_, PyErr>(values.into_pyarray(py).reshape(shape)?.into_any());
    let of_samples = if means { Some((array(found.activations)?, array(found.inclusion)?)) } else { None };
    Ok((PyBytes::new(py, &found.statistics.to_bytes()), of_samples))
}

/// The sum of sums over blocks.
#[pyfunction]
pub(crate) fn add<'py>(py: Python<'py>, statistics: Vec<Vec<u8>>) -> PyResult<Bound<'py, PyBytes>> {
    let sum = py.detach(|| {
        let mut all = statistics.iter().map(|bytes| BlockStatistics::from_bytes(bytes));
        let nothing = Error::BadBlock { reason: "there are no sums to be added".to_owned() };
        let first = all.next().ok_or(nothing)??;
        all.try_fold(first, |mut sum, next| {
            sum.add(next?)?;
            Ok(sum)
        })
    });
    sum.map(|sum| PyBytes::new(py, &sum.to_bytes())).map_err(raised)
}

/// The samples that the components are looked for in, rising.
#[pyfunction]
pub(crate) fn sample(samples: usize, size: usize, seed: u64) -> Vec<usize> {
    bpnmf::sample_columns(samples, size, seed)
}
