//! The counts as the search reads them: the entries of every column in double precision.

use crate::counts::Counts;

/// One column: every feature in order, or the positive entries only.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// Features of the entries; empty when all features are there in order.
    at: Vec<u32>,
    /// The entries.
    pub(super) x: Vec<f64>,
    pub(super) total: f64,
}

impl Column {
    /// All features in order.
    pub(super) fn dense(x: Vec<f64>) -> Self {
        Self::new(Vec::new(), x)
    }

    fn new(at: Vec<u32>, x: Vec<f64>) -> Self {
        let total = x.iter().sum();
        Self { at, x, total }
    }

    /// `row` at the entries of this column.
    #[inline(always)]
    pub(super) fn gather<'a>(&self, row: &'a [f64], buffer: &'a mut Vec<f64>) -> &'a [f64] {
        if self.at.is_empty() && self.x.len() == row.len() {
            return row;
        }
        buffer.clear();
        buffer.extend(self.at.iter().map(|&f| row[f as usize]));
        buffer
    }

    /// Adds `scale * values`, which belong to the entries of this column, to `out`, which has all features.
    #[inline(always)]
    pub(super) fn scatter(&self, out: &mut [f64], values: &[f64], scale: f64) {
        if self.at.is_empty() {
            for (out, value) in out.iter_mut().zip(values) {
                *out += scale * value;
            }
        } else {
            for (&f, value) in self.at.iter().zip(values) {
                out[f as usize] += scale * value;
            }
        }
    }

    /// The column whose entries are `entry(x, row)`, not negative and 0 where x is; held the same way.
    pub(super) fn mapped(&self, row: &[f64], entry: impl Fn(f64, f64) -> f64) -> Self {
        let mut buffer = Vec::new();
        let row = self.gather(row, &mut buffer);
        let entries = self.x.iter().zip(row).map(|(&x, &row)| entry(x, row));
        if self.at.is_empty() {
            return Self::dense(entries.collect());
        }
        let (at, x) = self.at.iter().zip(entries).filter(|(_, x)| *x > 0.0).unzip();
        Self::new(at, x)
    }

    /// All features of the column.
    pub(super) fn to_dense(&self, features: usize) -> Vec<f64> {
        let mut out = vec![0.0; features];
        self.scatter(&mut out, &self.x, 1.0);
        out
    }
}

/// All columns.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) features: usize,
    pub(super) columns: Vec<Column>,
    pub(super) total: f64,
}

impl View {
    pub(super) fn new(counts: &Counts) -> Self {
        let features = counts.features();
        let columns = (0..counts.observations())
            .map(|t| {
                let entries: Vec<(usize, f64)> = counts.column(t).positive().collect();
                if 2 * entries.len() >= features {
                    let mut x = vec![0.0; features];
                    for (f, value) in entries {
                        x[f] = value;
                    }
                    Column::dense(x)
                } else {
                    let (at, x) = entries.into_iter().map(|(f, value)| (f as u32, value)).unzip();
                    Column::new(at, x)
                }
            })
            .collect();
        Self::of(features, columns)
    }

    pub(super) fn of(features: usize, columns: Vec<Column>) -> Self {
        let total = columns.iter().map(|column| column.total).sum();
        Self { features, columns, total }
    }
}
