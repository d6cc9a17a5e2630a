//! Entries in any order to compressed columns, never through a dense matrix. Knows nothing of files.

use bpnmf::Counts;

use crate::error::Fault;
use crate::read::{Nan, Room};

/// Below this many rows or columns, empty ones are cheap enough to need no excuse.
const FREE_LINES: usize = 1 << 24;
/// Above it, a file must hold at least one entry for so many rows or columns.
const LINES_PER_ENTRY: usize = 64;

/// Entries (row, column, value) in any order; those at the same place add up.
#[derive(Default)]
pub(crate) struct Entries {
    pub(crate) rows: Vec<u32>,
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<f64>,
}

/// Errors unless every row and column can be told by a u32 and there is at least one of each.
pub(crate) fn check_shape(features: usize, observations: usize) -> Result<(), Fault> {
    if features == 0 || observations == 0 {
        return Err(bpnmf::Error::Empty { features, observations }.into());
    }
    if features.max(observations) >= u32::MAX as usize {
        return Err(bpnmf::Error::TooLarge { features, observations }.into());
    }
    Ok(())
}

impl Entries {
    pub(crate) fn push(&mut self, row: u32, column: u32, value: f64) {
        self.rows.push(row);
        self.columns.push(column);
        self.values.push(value);
    }

    /// The matrix; the rows and columns must be known to lie inside the shape.
    pub(crate) fn into_counts(
        self,
        features: usize,
        observations: usize,
        nan: Nan,
        room: Room,
    ) -> Result<Counts, Fault> {
        check_shape(features, observations)?;
        // The starts of the columns are allocated whatever the entries are: a short file must not ask for 32 GB.
        for (axis, count) in [("rows", features), ("columns", observations)] {
            let entries = self.values.len();
            if count > FREE_LINES.max(entries.saturating_mul(LINES_PER_ENTRY)) {
                return Err(Fault::MostlyEmpty { axis, count, entries });
            }
        }
        // Starts, totals, and copies of them when entries are sorted or the matrix is turned.
        room.check(features.max(observations), 4 * size_of::<usize>())?;
        let mut starts = vec![0usize; observations + 1];
        for &column in &self.columns {
            starts[column as usize + 1] += 1;
        }
        for t in 0..observations {
            starts[t + 1] += starts[t];
        }
        let (mut rows, mut values) =
            if self.columns.is_sorted() { (self.rows, self.values) } else { self.by_column(&starts) };
        let mut kept = 0;
        let mut column = Vec::new();
        for t in 0..observations {
            let entries = starts[t]..starts[t + 1];
            starts[t] = kept;
            if !rows[entries.clone()].is_sorted() {
                column.clear();
                column.extend(entries.clone().map(|i| (rows[i], values[i])));
                // Stable, so that entries at one place add up in the order of the file.
                column.sort_by_key(|&(row, _)| row);
                for (i, &(row, value)) in entries.clone().zip(&column) {
                    (rows[i], values[i]) = (row, value);
                }
            }
            for i in entries {
                if kept > starts[t] && rows[kept - 1] == rows[i] {
                    values[kept - 1] += values[i];
                } else {
                    (rows[kept], values[kept]) = (rows[i], values[i]);
                    kept += 1;
                }
            }
        }
        starts[observations] = kept;
        rows.truncate(kept);
        values.truncate(kept);
        Ok(nan.sparse(features, observations, starts, rows, values)?)
    }

    /// Rows and values, column after column, in the order of the file within each.
    fn by_column(self, starts: &[usize]) -> (Vec<u32>, Vec<f64>) {
        let mut next = starts.to_vec();
        let mut rows = vec![0u32; self.rows.len()];
        let mut values = vec![0.0; self.values.len()];
        for (i, &column) in self.columns.iter().enumerate() {
            let place = &mut next[column as usize];
            rows[*place] = self.rows[i];
            values[*place] = self.values[i];
            *place += 1;
        }
        (rows, values)
    }
}
