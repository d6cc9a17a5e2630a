//! The counts as the search reads them: the entries of every column in double precision.

use crate::counts::Counts;

/// One column: every feature in order, or the positive entries only; if features are missing, those that were observed or
/// the positive ones.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// Features of the entries; empty when all features are there in order.
    at: Vec<u32>,
    /// The entries.
    pub(super) x: Vec<f64>,
    pub(super) total: f64,
    /// Features that were not observed.
    pub(super) missing: Vec<u32>,
}

impl Column {
    /// All features in order.
    pub(super) fn dense(x: Vec<f64>) -> Self {
        Self::new(Vec::new(), x)
    }

    /// The features that were observed.
    fn partial(values: Vec<f64>, missing: Vec<u32>) -> Self {
        let mut unseen = missing.iter().peekable();
        let seen = |f: &u32| unseen.next_if(|&missing| missing == f).is_none();
        let at: Vec<u32> = (0..values.len() as u32).filter(seen).collect();
        let x = at.iter().map(|&f| values[f as usize]).collect();
        Self { missing, ..Self::new(at, x) }
    }

    fn new(at: Vec<u32>, x: Vec<f64>) -> Self {
        let total = x.iter().sum();
        Self { at, x, total, missing: Vec::new() }
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

    /// The column whose entries are `entry(x, row)`, not negative and 0 where x is; held the same way, and what is missing
    /// stays missing.
    pub(super) fn mapped(&self, row: &[f64], entry: impl Fn(f64, f64) -> f64) -> Self {
        let mut buffer = Vec::new();
        let row = self.gather(row, &mut buffer);
        let entries = self.x.iter().zip(row).map(|(&x, &row)| entry(x, row));
        if self.at.is_empty() {
            return Self::dense(entries.collect());
        }
        if !self.missing.is_empty() {
            return Self { missing: self.missing.clone(), ..Self::new(self.at.clone(), entries.collect()) };
        }
        let (at, x) = self.at.iter().zip(entries).filter(|(_, x)| *x > 0.0).unzip();
        Self::new(at, x)
    }

    /// The values of the missing features, added up.
    #[inline(always)]
    pub(super) fn unseen(&self, values: &[f64]) -> f64 {
        self.missing.iter().map(|&f| values[f as usize]).sum()
    }

    /// The features of the entries if not all are there: such a column is read best with the components of a feature side
    /// by side.
    #[inline(always)]
    pub(super) fn compressed(&self) -> Option<&[u32]> {
        (!self.at.is_empty()).then_some(&self.at)
    }

    /// All features of the column, zero where missing.
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
    /// Whether any entry is missing.
    pub(super) partial: bool,
}

impl View {
    pub(super) fn new(counts: &Counts) -> Self {
        let features = counts.features();
        let columns = (0..counts.observations())
            .map(|t| {
                let entries: Vec<(usize, f64)> = counts.column(t).positive().collect();
                let missing = counts.missing(t).to_vec();
                if 2 * entries.len() >= features {
                    let mut x = vec![0.0; features];
                    for (f, value) in entries {
                        x[f] = value;
                    }
                    if missing.is_empty() { Column::dense(x) } else { Column::partial(x, missing) }
                } else {
                    let (at, x) = entries.into_iter().map(|(f, value)| (f as u32, value)).unzip();
                    Column { missing, ..Column::new(at, x) }
                }
            })
            .collect();
        Self::of(features, columns)
    }

    pub(super) fn of(features: usize, columns: Vec<Column>) -> Self {
        let total = columns.iter().map(|column| column.total).sum();
        let partial = columns.iter().any(|column| !column.missing.is_empty());
        Self { features, columns, total, partial }
    }
}

/// W with the components of a feature side by side, from W with the features of a component side by side.
pub(super) fn by_feature(w: &[f64], features: usize) -> Vec<f64> {
    let components = w.len() / features;
    let mut out = vec![0.0; w.len()];
    for (k, row) in w.chunks(features).enumerate() {
        for (f, &w) in row.iter().enumerate() {
            out[f * components + k] = w;
        }
    }
    out
}

/// The entries of compressed columns by feature: (column, place in it), columns increasing.
pub(super) fn entries_by_feature(view: &View) -> Vec<Vec<(u32, u32)>> {
    let mut out = vec![Vec::new(); view.features];
    for (t, column) in view.columns.iter().enumerate() {
        for (place, &f) in column.compressed().unwrap_or(&[]).iter().enumerate() {
            out[f as usize].push((t as u32, place as u32));
        }
    }
    out
}
