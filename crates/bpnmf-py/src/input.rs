//! Matrices of samples x features become counts. A sample is a row there and a column here, so both are read in the order
//! in which they lie: nothing is turned round, and every value is copied once.

use crate::raised;
use numpy::{Element, PyArray1, PyArray2, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;

/// A matrix that was checked and copied.
#[pyclass(frozen, module = "bpnmf._core")]
pub(crate) struct Counts(pub(crate) Arc<bpnmf::Counts>);

/// Numbers that a matrix may hold.
trait Number: Element + Copy {
    fn wide(self) -> f64;
}

macro_rules! numbers {
    ($($type:ty),*) => { $(impl Number for $type { fn wide(self) -> f64 { self as f64 } })* };
}

numbers!(f64, f32, i64, i32, i16, i8, u64, u32, u16, u8);

impl Number for bool {
    fn wide(self) -> f64 {
        f64::from(u8::from(self))
    }
}

/// Calls `read::<T>` for the type of the elements of an array.
macro_rules! by_type {
    ($array:expr, $read:ident) => {{
        let array = $array;
        None.or_else(|| $read::<f64>(array))
            .or_else(|| $read::<f32>(array))
            .or_else(|| $read::<i64>(array))
            .or_else(|| $read::<i32>(array))
            .or_else(|| $read::<i16>(array))
            .or_else(|| $read::<i8>(array))
            .or_else(|| $read::<u64>(array))
            .or_else(|| $read::<u32>(array))
            .or_else(|| $read::<u16>(array))
            .or_else(|| $read::<u8>(array))
            .or_else(|| $read::<bool>(array))
            .ok_or_else(|| PyTypeError::new_err(format!("arrays of {} are not read", array.dtype())))
    }};
}

/// The entries of a matrix, row after row.
fn matrix<T: Number>(array: &Bound<'_, PyUntypedArray>) -> Option<Vec<f64>> {
    let array = array.cast::<PyArray2<T>>().ok()?.readonly();
    // A slice is in the order of the memory, which may be column after column.
    Some(match array.as_slice() {
        Ok(values) if array.is_c_contiguous() => values.iter().map(|value| value.wide()).collect(),
        _ => array.as_array().iter().map(|value| value.wide()).collect(),
    })
}

/// The entries of a list.
fn list<T: Number>(array: &Bound<'_, PyUntypedArray>) -> Option<Vec<f64>> {
    let array = array.cast::<PyArray1<T>>().ok()?.readonly();
    Some(array.as_array().iter().map(|value| value.wide()).collect())
}

/// Indices of 32 or 64 bits.
fn indices<I: TryFrom<i64>>(array: &Bound<'_, PyUntypedArray>) -> PyResult<Vec<I>> {
    let wrong =
        |value: i64| PyValueError::new_err(format!("the compressed rows are inconsistent: index {value}"));
    let read = |value: i64| I::try_from(value).map_err(|_| wrong(value));
    if let Ok(array) = array.cast::<PyArray1<i32>>() {
        return array.readonly().as_array().iter().map(|&value| read(i64::from(value))).collect();
    }
    let array =
        array.cast::<PyArray1<i64>>().map_err(|_| PyTypeError::new_err("indices are int32 or int64"))?;
    array.readonly().as_array().iter().map(|&value| read(value)).collect()
}

#[pymethods]
impl Counts {
    /// From a matrix, samples x features.
    #[staticmethod]
    fn dense(array: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        let &[observations, features] = array.shape() else {
            return Err(PyValueError::new_err("a matrix has two dimensions"));
        };
        let values = by_type!(array, matrix)?;
        let counts = array.py().detach(|| bpnmf::Counts::from_dense(features, observations, values));
        Ok(Self(Arc::new(counts.map_err(raised)?)))
    }

    /// From compressed rows, samples x features; indices in any order, entries that come twice are added.
    #[staticmethod]
    fn sparse(
        features: usize,
        starts: &Bound<'_, PyUntypedArray>,
        rows: &Bound<'_, PyUntypedArray>,
        values: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<Self> {
        let (mut starts, mut rows) = (indices::<usize>(starts)?, indices::<u32>(rows)?);
        let mut values = by_type!(values, list)?;
        // Arrays may be longer than what is used of them.
        let used = starts.last().copied().unwrap_or(0);
        if used > rows.len() || rows.len() != values.len() || starts.windows(2).any(|pair| pair[0] > pair[1])
        {
            return Err(PyValueError::new_err("the compressed rows are inconsistent"));
        }
        rows.truncate(used);
        values.truncate(used);
        let observations = starts.len().saturating_sub(1);
        let counts = starts_sorted(&mut starts, &mut rows, &mut values);
        counts.map_err(raised)?;
        let counts = bpnmf::Counts::from_sparse(features, observations, starts, rows, values);
        Ok(Self(Arc::new(counts.map_err(raised)?)))
    }

    /// The same with entries that were not observed: those of sample t are the features `rows[starts[t]:starts[t + 1]]`.
    fn with_missing(
        &self,
        starts: &Bound<'_, PyUntypedArray>,
        rows: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<Self> {
        let (starts, rows) = (indices::<usize>(starts)?, indices::<u32>(rows)?);
        let counts = bpnmf::Counts::clone(&self.0).with_missing(starts, rows);
        Ok(Self(Arc::new(counts.map_err(raised)?)))
    }

    /// The sum of all entries.
    fn total(&self) -> f64 {
        self.0.total()
    }

    /// Whether all entries are whole numbers.
    fn whole(&self) -> bool {
        self.0.first_fraction().is_none()
    }

    /// What the matrix looks like if it is unlikely to hold counts, in one sentence.
    fn looks_like(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| bpnmf::Suspicion::of(&self.0)).map(|suspicion| suspicion.to_string())
    }

    /// Whether zeros are left out.
    fn is_sparse(&self) -> bool {
        self.0.is_sparse()
    }
}

/// Brings the entries of every sample in order and adds up those that come twice, where that is not so already.
fn starts_sorted(
    starts: &mut [usize],
    rows: &mut Vec<u32>,
    values: &mut Vec<f64>,
) -> Result<(), bpnmf::Error> {
    let increasing = |range: std::ops::Range<usize>| rows[range].windows(2).all(|pair| pair[0] < pair[1]);
    if starts.windows(2).all(|pair| increasing(pair[0]..pair[1])) {
        return Ok(());
    }
    let (mut to, mut from) = (0, 0);
    for t in 0..starts.len() - 1 {
        let end = starts[t + 1];
        let mut entries: Vec<(u32, f64)> =
            rows[from..end].iter().copied().zip(values[from..end].iter().copied()).collect();
        // What is added up could hide what must not be there.
        if let Some(&(row, value)) = entries.iter().find(|(_, value)| !(*value >= 0.0 && value.is_finite())) {
            let (feature, observation) = (row as usize, t);
            return Err(if value < 0.0 && value.is_finite() {
                bpnmf::Error::Negative { feature, observation, value }
            } else {
                bpnmf::Error::NotFinite { feature, observation, value }
            });
        }
        entries.sort_by_key(|&(row, _)| row);
        let begin = to;
        for (row, value) in entries {
            if to > begin && rows[to - 1] == row {
                values[to - 1] += value;
            } else {
                (rows[to], values[to]) = (row, value);
                to += 1;
            }
        }
        from = end;
        starts[t + 1] = to;
    }
    rows.truncate(to);
    values.truncate(to);
    Ok(())
}
