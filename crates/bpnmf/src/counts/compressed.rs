//! Compressed columns: building, turning and checking them.

use super::Storage;
use crate::error::Error;
use std::sync::Arc;

/// Entries that were not observed: column t has the rows `starts[t] .. starts[t + 1]`, strictly increasing.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Missing {
    pub(super) starts: Vec<usize>,
    pub(super) rows: Vec<u32>,
}

impl Missing {
    /// The rows of column `t`.
    pub(super) fn of(&self, t: usize) -> &[u32] {
        &self.rows[self.starts[t]..self.starts[t + 1]]
    }
}

/// Compressed columns with rows and columns exchanged: starts and rows of `features` columns.
pub(super) fn turned<'a>(
    features: usize,
    observations: usize,
    column: impl Fn(usize) -> &'a [u32],
) -> (Vec<usize>, Vec<u32>) {
    let mut starts = vec![0usize; features + 1];
    for t in 0..observations {
        column(t).iter().for_each(|&f| starts[f as usize + 1] += 1);
    }
    for f in 0..features {
        starts[f + 1] += starts[f];
    }
    let mut next = starts.clone();
    let mut rows = vec![0u32; starts[features]];
    for t in 0..observations {
        for &f in column(t) {
            rows[next[f as usize]] = t as u32;
            next[f as usize] += 1;
        }
    }
    (starts, rows)
}

/// Columns that are filled one after the other.
pub(super) struct SparseParts {
    pub(super) starts: Vec<usize>,
    pub(super) rows: Vec<u32>,
    pub(super) values: Vec<f64>,
}

impl Default for SparseParts {
    fn default() -> Self {
        Self { starts: vec![0], rows: Vec::new(), values: Vec::new() }
    }
}

impl SparseParts {
    /// An entry of the column at hand, rows increasing; zeros are dropped.
    pub(super) fn push(&mut self, row: usize, value: f64) {
        if value > 0.0 {
            self.rows.push(row as u32);
            self.values.push(value);
        }
    }

    pub(super) fn end_column(&mut self) {
        self.starts.push(self.values.len());
    }

    /// As the matrix is held.
    pub(super) fn into_storage(self, features: usize, observations: usize, dense: bool) -> Storage {
        if dense {
            let mut values = vec![0.0; features * observations];
            for t in 0..observations {
                for i in self.starts[t]..self.starts[t + 1] {
                    values[t * features + self.rows[i] as usize] = self.values[i];
                }
            }
            Storage::Dense(values)
        } else {
            Storage::Sparse { starts: self.starts, rows: Arc::new(self.rows), values: Arc::new(self.values) }
        }
    }
}

/// Errors unless `starts` and `rows` are compressed columns of `entries` entries.
pub(super) fn check_compressed(
    features: usize,
    observations: usize,
    starts: &[usize],
    rows: &[u32],
    entries: usize,
) -> Result<(), Error> {
    let bad = |reason: String| Err(Error::BadSparse { reason });
    if starts.len() != observations + 1 {
        return bad(format!("{} column starts for {observations} columns", starts.len()));
    }
    if rows.len() != entries {
        return bad(format!("{} row indices for {entries} values", rows.len()));
    }
    if starts[0] != 0 || starts[observations] != entries {
        let (first, last) = (starts[0], starts[observations]);
        return bad(format!("column starts run from {first} to {last}, there are {entries} values"));
    }
    for t in 0..observations {
        if starts[t] > starts[t + 1] || starts[t + 1] > entries {
            return bad(format!("column {t} starts at {} and ends at {}", starts[t], starts[t + 1]));
        }
        let mut last = None;
        for &row in &rows[starts[t]..starts[t + 1]] {
            if row as usize >= features {
                return bad(format!("column {t} has row {row}, there are {features} rows"));
            }
            if last.is_some_and(|last| last >= row) {
                return bad(format!("column {t}: row {row} does not come after the row before it"));
            }
            last = Some(row);
        }
    }
    Ok(())
}
