//! Matrices out of the columns of others: some of them, or those of several one after the other. Knows nothing of models.

use super::{Column, Counts, Missing, SparseParts, Storage};
use crate::error::Error;

/// Columns that are put together, one after the other.
struct Pieces {
    features: usize,
    dense: bool,
    values: Vec<f64>,
    sparse: SparseParts,
    missing: Missing,
}

impl Pieces {
    fn new(features: usize, dense: bool) -> Self {
        let missing = Missing { starts: vec![0], rows: Vec::new() };
        Self { features, dense, values: Vec::new(), sparse: SparseParts::default(), missing }
    }

    fn push(&mut self, counts: &Counts, t: usize) {
        match counts.column(t) {
            Column::Dense(values) if self.dense => self.values.extend_from_slice(values),
            column if self.dense => {
                let first = self.values.len();
                self.values.resize(first + self.features, 0.0);
                column.positive().for_each(|(f, value)| self.values[first + f] = value);
            }
            column => {
                column.positive().for_each(|(f, value)| self.sparse.push(f, value));
                self.sparse.end_column();
            }
        }
        self.missing.rows.extend_from_slice(counts.missing(t));
        self.missing.starts.push(self.missing.rows.len());
    }

    fn finish(self) -> Counts {
        let Self { features, dense, values, sparse, missing } = self;
        let observations = missing.starts.len() - 1;
        let storage =
            if dense { Storage::Dense(values) } else { sparse.into_storage(features, observations, false) };
        let missing = (!missing.rows.is_empty()).then_some(missing);
        Counts::summarised(features, observations, storage, missing)
    }
}

impl Counts {
    /// The given columns, at least one, in that order, held the same way.
    ///
    /// ```
    /// let counts = bpnmf::Counts::from_dense(1, 4, vec![3.0, 5.0, 7.0, 9.0])?;
    /// assert_eq!(counts.picked(&[3, 1]), bpnmf::Counts::from_dense(1, 2, vec![9.0, 5.0])?);
    /// # Ok::<(), bpnmf::Error>(())
    /// ```
    pub fn picked(&self, columns: &[usize]) -> Self {
        assert!(!columns.is_empty(), "a matrix has at least one column");
        let mut pieces = Pieces::new(self.features, !self.is_sparse());
        columns.iter().for_each(|&t| pieces.push(self, t));
        pieces.finish()
    }

    /// The columns of several matrices, one after the other, held as the first one is. Errors unless all have the same number of
    /// features.
    ///
    /// ```
    /// let counts = bpnmf::Counts::from_dense(1, 3, vec![3.0, 5.0, 7.0])?;
    /// let parts = [counts.picked(&[0]), counts.picked(&[1, 2])];
    /// assert_eq!(bpnmf::Counts::joined(&parts)?, counts);
    /// # Ok::<(), bpnmf::Error>(())
    /// ```
    pub fn joined(parts: &[Self]) -> Result<Self, Error> {
        let first = parts.first().ok_or(Error::Empty { features: 0, observations: 0 })?;
        let features = first.features;
        let mut pieces = Pieces::new(features, !first.is_sparse());
        for part in parts {
            if part.features != features {
                let (value, range) = (part.features as f64, "the same in every block");
                return Err(Error::BadOption { name: "number of features", value, range });
            }
            (0..part.observations).for_each(|t| pieces.push(part, t));
        }
        Ok(pieces.finish())
    }
}
