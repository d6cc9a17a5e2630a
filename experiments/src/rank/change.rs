//! Changes of a data set that must not change what is found in it. Knows nothing of fits.

use super::data::{Data, Trouble};
use super::made::from_columns;
use bpnmf::{Counts, Stream};
use std::fmt;
use std::str::FromStr;

/// What is done to a data set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Change {
    /// So many rows without a count are appended, and the matrix is a sparse one.
    ZeroRows(usize),
    ShuffledRows,
    ShuffledColumns,
}

/// The names `Change` can be parsed from.
pub(super) const NAMES: &str = "zero_rows_NUMBER, shuffled_rows, shuffled_columns";

impl FromStr for Change {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let rows = || name.strip_prefix("zero_rows_")?.parse().ok().map(Self::ZeroRows);
        match name {
            "shuffled_rows" => Ok(Self::ShuffledRows),
            "shuffled_columns" => Ok(Self::ShuffledColumns),
            _ => rows().ok_or_else(|| format!("unknown change {name}; there are: {NAMES}")),
        }
    }
}

/// The name it can be parsed from.
impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroRows(rows) => write!(out, "zero_rows_{rows}"),
            Self::ShuffledRows => write!(out, "shuffled_rows"),
            Self::ShuffledColumns => write!(out, "shuffled_columns"),
        }
    }
}

impl Change {
    /// The changed data, the truth with it. The seed is that of the order.
    pub(super) fn apply(self, data: Data, seed: u64) -> Result<Data, Trouble> {
        let Data { name, counts, mut truth } = data;
        if counts.has_missing() {
            return Err(Trouble::Bad(format!("{name}: data with missing entries cannot be changed")));
        }
        let (features, observations) = (counts.features(), counts.observations());
        let mut stream = bpnmf::bench::stream(seed + 2000);
        let parts = truth.iter_mut().flat_map(|truth| &mut truth.parts);
        let counts = match self {
            Self::ZeroRows(rows) => {
                parts.for_each(|part| part.column.resize(features + rows, 0.0));
                from_columns(features + rows, (0..observations).map(|t| counts.column(t).positive()))?
            }
            Self::ShuffledRows => {
                let rows = order(features, &mut stream);
                parts.for_each(|part| part.column = rows.iter().map(|&f| part.column[f]).collect());
                picked(&counts, &rows, &(0..observations).collect::<Vec<_>>())?
            }
            Self::ShuffledColumns => {
                picked(&counts, &(0..features).collect::<Vec<_>>(), &order(observations, &mut stream))?
            }
        };
        Ok(Data { name: format!("{name}, {self}"), counts, truth })
    }
}

/// 0..n in a random order.
fn order(n: usize, stream: &mut Stream) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, (stream.uniform() * (i + 1) as f64) as usize);
    }
    order
}

/// A dense matrix of these rows and columns of another.
fn picked(counts: &Counts, rows: &[usize], columns: &[usize]) -> Result<Counts, Trouble> {
    let mut values = Vec::with_capacity(rows.len() * columns.len());
    for &t in columns {
        let mut column = vec![0.0; counts.features()];
        counts.column(t).positive().for_each(|(f, value)| column[f] = value);
        values.extend(rows.iter().map(|&f| column[f]));
    }
    Ok(Counts::from_dense(rows.len(), columns.len(), values)?)
}

#[cfg(test)]
mod tests {
    use super::super::data::Set;
    use super::*;

    #[test]
    fn a_change_keeps_the_counts_and_moves_the_true_parts_along() {
        let plain = || Set::LowRank { mean: 4.7 }.load(1, None).unwrap();
        for change in [Change::ZeroRows(7), Change::ShuffledRows, Change::ShuffledColumns] {
            assert_eq!(change.to_string().parse(), Ok(change));
            let (before, after) = (plain(), change.apply(plain(), 1).unwrap());
            assert_eq!(after.counts.total(), before.counts.total());
            let (column, row_totals) = (
                |data: Data| data.truth.unwrap().parts.remove(0).column,
                |data: &Data| data.counts.row_totals(),
            );
            let sorted = |mut values: Vec<f64>| {
                values.retain(|value| *value > 0.0);
                values.sort_by(f64::total_cmp);
                values
            };
            assert_eq!(sorted(row_totals(&after)), sorted(row_totals(&before)));
            // A row that a part is strong in has many counts, wherever it is.
            let (totals, old) = (row_totals(&after), row_totals(&before));
            let dot = |column: Vec<f64>, totals: &[f64]| -> f64 {
                column.iter().zip(totals).map(|(w, total)| w * total).sum()
            };
            let (new, old) = (dot(column(after), &totals), dot(column(before), &old));
            assert!((new / old - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn an_order_has_every_number_once_and_is_not_the_old_one() {
        let mut shuffled = order(50, &mut bpnmf::bench::stream(1));
        assert_ne!(shuffled, (0..50).collect::<Vec<_>>());
        shuffled.sort_unstable();
        assert_eq!(shuffled, (0..50).collect::<Vec<_>>());
    }
}
