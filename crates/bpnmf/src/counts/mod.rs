//! Counts: a validated non-negative matrix, features x observations. Knows nothing of files or models.

#[cfg(feature = "ndarray")]
mod array;
mod compressed;
mod exposures;
mod latent;
mod occupied;
mod pieces;

use crate::error::Error;
use crate::kernel::{LANES, Tile, flat_mut};
use crate::random::{Key, Site};
use crate::special::ln_gamma;
use compressed::{Missing, SparseParts, check_compressed, turned};
pub(crate) use exposures::{Exposures, Unexposed};
pub(crate) use latent::ColumnsMut;
pub(crate) use occupied::Occupied;
use occupied::OccupiedOnce;
use std::sync::Arc;

/// The largest value an entry may have.
const LARGEST: f64 = 1e15;

/// A validated non-negative F x T matrix: rows are features, columns are observations.
///
/// Held dense (column after column) or as compressed columns; both give the same answers bit for bit. Entries may be
/// missing: they are left out of the likelihood, and count as zero wherever values are asked for.
///
/// ```
/// let counts = bpnmf::Counts::from_dense(2, 3, vec![1.0, 0.0, 2.0, 5.0, 0.0, 1.0])?;
/// assert_eq!((counts.features(), counts.observations(), counts.nonzeros()), (2, 3, 4));
/// assert!(bpnmf::Counts::from_dense(1, 1, vec![-2.0]).is_err());
/// # Ok::<(), bpnmf::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    features: usize,
    observations: usize,
    storage: Storage,
    /// The columns of a dense matrix in single precision, each padded to tiles, which is what a sweep reads: half the memory to
    /// go through.
    single: Vec<Tile>,
    /// `None` if every entry was observed.
    exposures: Option<Arc<Exposures>>,
    column_totals: Vec<f64>,
    nonzeros: usize,
    ln_factorials: f64,
    occupied: OccupiedOnce,
}

#[derive(Debug, Clone, PartialEq)]
enum Storage {
    /// Column t is `values[t * features ..][.. features]`.
    Dense(Vec<f64>),
    /// Column t holds the entries `starts[t] .. starts[t + 1]`, rows strictly increasing, values > 0. The matrix without its
    /// empty rows and columns has the same values, so these are shared.
    Sparse { starts: Vec<usize>, rows: Arc<Vec<u32>>, values: Arc<Vec<f64>> },
}

/// One column of [`Counts`].
#[derive(Debug, Clone, Copy)]
pub enum Column<'a> {
    /// All F values.
    Dense(&'a [f64]),
    /// Rows (strictly increasing) and their positive values.
    Sparse(&'a [u32], &'a [f64]),
}

impl<'a> Column<'a> {
    /// The positive entries as (row, value), rows increasing.
    pub fn positive(self) -> impl Iterator<Item = (usize, f64)> + 'a {
        let (rows, values) = match self {
            Column::Dense(values) => (None, values),
            Column::Sparse(rows, values) => (Some(rows), values),
        };
        values
            .iter()
            .enumerate()
            .filter(|(_, value)| **value > 0.0)
            .map(move |(i, value)| (rows.map_or(i, |rows| rows[i] as usize), *value))
    }
}

impl Counts {
    /// A dense matrix from its F x T values, column after column.
    pub fn from_dense(features: usize, observations: usize, values: Vec<f64>) -> Result<Self, Error> {
        let expected =
            check_shape(features, observations)?.ok_or(Error::TooLarge { features, observations })?;
        if values.len() != expected {
            return Err(Error::WrongLength { features, observations, expected, found: values.len() });
        }
        for (i, &value) in values.iter().enumerate() {
            check_entry(i % features, i / features, value)?;
        }
        Ok(Self::summarised(features, observations, Storage::Dense(values), None))
    }

    /// The same with NaN for every entry that was not observed.
    ///
    /// ```
    /// let counts = bpnmf::Counts::from_dense_with_missing(2, 2, vec![1.0, f64::NAN, 0.0, 3.0])?;
    /// assert_eq!(counts.missing(0), [1]);
    /// assert_eq!((counts.observed(), counts.total()), (3, 4.0));
    /// # Ok::<(), bpnmf::Error>(())
    /// ```
    pub fn from_dense_with_missing(
        features: usize,
        observations: usize,
        mut values: Vec<f64>,
    ) -> Result<Self, Error> {
        let (mut starts, mut rows) = (vec![0], Vec::new());
        for column in values.chunks_mut(features.max(1)) {
            for (f, value) in column.iter_mut().enumerate().filter(|(_, value)| value.is_nan()) {
                rows.push(f as u32);
                *value = 0.0;
            }
            starts.push(rows.len());
        }
        Self::from_dense(features, observations, values)?.with_missing(starts, rows)
    }

    /// Compressed columns as in [`Self::from_sparse`], with NaN for every entry that was not observed.
    pub fn from_sparse_with_missing(
        features: usize,
        observations: usize,
        starts: Vec<usize>,
        rows: Vec<u32>,
        mut values: Vec<f64>,
    ) -> Result<Self, Error> {
        check_compressed(features, observations, &starts, &rows, values.len())?;
        let mut missing = Missing { starts: vec![0], rows: Vec::new() };
        for t in 0..observations {
            for i in (starts[t]..starts[t + 1]).filter(|&i| values[i].is_nan()) {
                missing.rows.push(rows[i]);
            }
            missing.starts.push(missing.rows.len());
        }
        values.iter_mut().filter(|value| value.is_nan()).for_each(|value| *value = 0.0);
        Self::from_sparse(features, observations, starts, rows, values)?
            .with_missing(missing.starts, missing.rows)
    }

    /// The matrix without some entries: `starts[t] .. starts[t + 1]` of `rows` are the features that were not observed in
    /// column t, strictly increasing. What the matrix held there is forgotten. Entries that were missing already are
    /// missing no longer unless they are named again.
    pub fn with_missing(self, starts: Vec<usize>, rows: Vec<u32>) -> Result<Self, Error> {
        check_compressed(self.features, self.observations, &starts, &rows, rows.len())?;
        if rows.is_empty() {
            return Ok(Self { exposures: None, occupied: OccupiedOnce::default(), ..self });
        }
        let Self { features, observations, mut storage, .. } = self;
        let missing = Missing { starts, rows };
        match &mut storage {
            Storage::Dense(values) => {
                for (t, column) in values.chunks_mut(features).enumerate() {
                    missing.of(t).iter().for_each(|&f| column[f as usize] = 0.0);
                }
            }
            Storage::Sparse { starts, rows, values } => {
                let mut kept = SparseParts::default();
                for t in 0..observations {
                    for i in starts[t]..starts[t + 1] {
                        if missing.of(t).binary_search(&rows[i]).is_err() {
                            kept.push(rows[i] as usize, values[i]);
                        }
                    }
                    kept.end_column();
                }
                (*starts, *rows, *values) = (kept.starts, Arc::new(kept.rows), Arc::new(kept.values));
            }
        }
        Ok(Self::summarised(features, observations, storage, Some(missing)))
    }

    /// A matrix from compressed columns: entries `starts[t] .. starts[t + 1]` of `rows` and `values` are column t.
    ///
    /// Rows must be strictly increasing within a column; explicit zeros are dropped.
    pub fn from_sparse(
        features: usize,
        observations: usize,
        starts: Vec<usize>,
        rows: Vec<u32>,
        values: Vec<f64>,
    ) -> Result<Self, Error> {
        check_shape(features, observations)?;
        check_compressed(features, observations, &starts, &rows, values.len())?;
        for t in 0..observations {
            for i in starts[t]..starts[t + 1] {
                check_entry(rows[i] as usize, t, values[i])?;
            }
        }
        let storage = if values.contains(&0.0) {
            let mut kept = SparseParts::default();
            for t in 0..observations {
                for i in starts[t]..starts[t + 1] {
                    kept.push(rows[i] as usize, values[i]);
                }
                kept.end_column();
            }
            kept.into_storage(features, observations, false)
        } else {
            Storage::Sparse { starts, rows: Arc::new(rows), values: Arc::new(values) }
        };
        Ok(Self::summarised(features, observations, storage, None))
    }

    fn summarised(features: usize, observations: usize, storage: Storage, missing: Option<Missing>) -> Self {
        let single = match &storage {
            Storage::Dense(values) => tiled(values, features),
            Storage::Sparse { .. } => Vec::new(),
        };
        let mut counts = Self {
            features,
            observations,
            storage,
            single,
            exposures: missing.map(|places| Arc::new(Exposures::without(places))),
            column_totals: Vec::new(),
            nonzeros: 0,
            ln_factorials: 0.0,
            occupied: OccupiedOnce::default(),
        };
        for t in 0..observations {
            let (mut total, mut nonzeros, mut ln_factorials) = (0.0, 0, 0.0);
            for (_, value) in counts.column(t).positive() {
                total += value;
                nonzeros += 1;
                if value != 1.0 {
                    ln_factorials += ln_gamma(value + 1.0);
                }
            }
            counts.column_totals.push(total);
            counts.nonzeros += nonzeros;
            counts.ln_factorials += ln_factorials;
        }
        counts
    }

    /// F, the number of rows.
    pub fn features(&self) -> usize {
        self.features
    }

    /// T, the number of columns.
    pub fn observations(&self) -> usize {
        self.observations
    }

    /// How many entries are positive.
    pub fn nonzeros(&self) -> usize {
        self.nonzeros
    }

    /// The share of entries that are positive.
    pub fn density(&self) -> f64 {
        self.nonzeros as f64 / (self.features as f64 * self.observations as f64)
    }

    /// The sum of each column, length T.
    pub fn column_totals(&self) -> &[f64] {
        &self.column_totals
    }

    /// The sum of all entries.
    pub fn total(&self) -> f64 {
        self.column_totals.iter().sum()
    }

    /// The sum over all entries of log x!.
    pub fn ln_factorials(&self) -> f64 {
        self.ln_factorials
    }

    /// Whether the matrix is held as compressed columns.
    pub fn is_sparse(&self) -> bool {
        matches!(self.storage, Storage::Sparse { .. })
    }

    /// Column `t` in single precision, padded to tiles, if columns are held dense.
    #[inline(always)]
    pub(crate) fn single(&self, t: usize) -> &[Tile] {
        let tiles = self.features.div_ceil(LANES);
        &self.single[t * tiles..][..tiles]
    }

    /// The same of the columns from `t` on; nothing if they are not held dense, or if there is no such column.
    pub(crate) fn single_from(&self, t: usize) -> &[Tile] {
        self.single.get(t * self.features.div_ceil(LANES)..).unwrap_or_default()
    }

    /// Column `t`.
    pub fn column(&self, t: usize) -> Column<'_> {
        match &self.storage {
            Storage::Dense(values) => Column::Dense(&values[t * self.features..][..self.features]),
            Storage::Sparse { starts, rows, values } => {
                let entries = starts[t]..starts[t + 1];
                Column::Sparse(&rows[entries.clone()], &values[entries])
            }
        }
    }

    /// The features that were not observed in column `t`, increasing.
    #[inline(always)]
    pub fn missing(&self, t: usize) -> &[u32] {
        self.unexposed(t).rows
    }

    /// The features of column `t` whose exposure is below one: those that were not observed.
    #[inline(always)]
    pub(crate) fn unexposed(&self, t: usize) -> Unexposed<'_> {
        match &self.exposures {
            Some(exposures) => exposures.of(t),
            None => Unexposed { rows: &[], lost: &[] },
        }
    }

    /// Whether any entry is missing.
    pub fn has_missing(&self) -> bool {
        self.exposures.is_some()
    }

    /// How many entries are missing.
    pub fn missing_entries(&self) -> usize {
        self.exposures.as_ref().map_or(0, |exposures| exposures.len())
    }

    /// How many entries were observed.
    pub fn observed(&self) -> usize {
        self.features * self.observations - self.missing_entries()
    }

    /// These counts with the entries missing that are missing in `other`, which has the same shape.
    pub(crate) fn missing_like(self, other: &Self) -> Self {
        Self { exposures: other.exposures.clone(), occupied: OccupiedOnce::default(), ..self }
    }

    /// Column `t` times a positive `scale` as a matrix of its own, held the same way.
    pub(crate) fn one_column(&self, t: usize, scale: f64) -> Self {
        let scaled = |values: &[f64]| values.iter().map(|value| value * scale).collect();
        let storage = match self.column(t) {
            Column::Dense(values) => Storage::Dense(scaled(values)),
            Column::Sparse(rows, values) => Storage::Sparse {
                starts: vec![0, rows.len()],
                rows: Arc::new(rows.to_vec()),
                values: Arc::new(scaled(values)),
            },
        };
        let unseen = self.missing(t);
        let missing =
            (!unseen.is_empty()).then(|| Missing { starts: vec![0, unseen.len()], rows: unseen.to_vec() });
        Self::summarised(self.features, 1, storage, missing)
    }

    /// The sum of each row, length F.
    pub fn row_totals(&self) -> Vec<f64> {
        let mut totals = vec![0.0; self.features];
        for t in 0..self.observations {
            for (f, value) in self.column(t).positive() {
                totals[f] += value;
            }
        }
        totals
    }

    /// The first entry that is not a whole number: (row, column, value).
    pub fn first_fraction(&self) -> Option<(usize, usize, f64)> {
        (0..self.observations).find_map(|t| {
            self.column(t).positive().find(|(_, value)| value.fract() != 0.0).map(|(f, value)| (f, t, value))
        })
    }

    /// Errors unless every entry is a whole number; `engine` is who needs that.
    pub fn require_whole(&self, engine: &'static str) -> Result<(), Error> {
        match self.first_fraction() {
            Some((feature, observation, value)) => {
                Err(Error::NotWhole { feature, observation, value, engine })
            }
            None => Ok(()),
        }
    }

    /// The T x F matrix with rows and columns exchanged, held the same way.
    pub fn transposed(&self) -> Self {
        let (features, observations) = (self.observations, self.features);
        let storage = match &self.storage {
            Storage::Dense(values) => {
                let mut turned = vec![0.0; values.len()];
                for t in 0..self.observations {
                    for f in 0..self.features {
                        turned[f * features + t] = values[t * self.features + f];
                    }
                }
                Storage::Dense(turned)
            }
            Storage::Sparse { starts, rows, .. } => {
                let column = |t: usize| &rows[starts[t]..starts[t + 1]];
                let (starts, new_rows) = turned(observations, self.observations, column);
                let mut next = starts.clone();
                let mut new_values = vec![0.0; rows.len()];
                for t in 0..self.observations {
                    for (f, value) in self.column(t).positive() {
                        new_values[next[f]] = value;
                        next[f] += 1;
                    }
                }
                Storage::Sparse { starts, rows: Arc::new(new_rows), values: Arc::new(new_values) }
            }
        };
        let missing = self.exposures.as_ref().map(|exposures| {
            let (starts, rows) = turned(observations, self.observations, |t| exposures.of(t).rows);
            Missing { starts, rows }
        });
        Self::summarised(features, observations, storage, missing)
    }

    /// Splits every count by binomial thinning into (kept, held out); a count goes to the second part with
    /// probability `fraction`. Given the rates, the parts are independent Poisson counts, so the second part
    /// can judge a fit to the first.
    pub fn thinned(&self, fraction: f64, seed: u64) -> Result<(Self, Self), Error> {
        if !(fraction > 0.0 && fraction < 1.0) {
            return Err(Error::BadOption {
                name: "held-out fraction",
                value: fraction,
                range: "between 0 and 1",
            });
        }
        self.require_whole(crate::diagnose::HeldOut::WHO)?;
        let (mut kept, mut held) = (SparseParts::default(), SparseParts::default());
        for t in 0..self.observations {
            let mut stream = Key::new(seed).stream(Site::Thinning, 0, t as u32, 0);
            for (f, value) in self.column(t).positive() {
                let out = stream.binomial(value as u64, fraction) as f64;
                kept.push(f, value - out);
                held.push(f, out);
            }
            kept.end_column();
            held.end_column();
        }
        let dense = !self.is_sparse();
        let made = |parts: SparseParts, dense: bool| {
            let storage = parts.into_storage(self.features, self.observations, dense);
            let missing = self.exposures.as_ref().map(|exposures| exposures.places().clone());
            Self::summarised(self.features, self.observations, storage, missing)
        };
        Ok((made(kept, dense), made(held, false)))
    }
}

/// Errors for an empty or unaddressable shape; `Ok(None)` if F x T itself does not fit a `usize`.
fn check_shape(features: usize, observations: usize) -> Result<Option<usize>, Error> {
    if features == 0 || observations == 0 {
        return Err(Error::Empty { features, observations });
    }
    if features >= u32::MAX as usize || observations >= u32::MAX as usize {
        return Err(Error::TooLarge { features, observations });
    }
    Ok(features.checked_mul(observations))
}

fn check_entry(feature: usize, observation: usize, value: f64) -> Result<(), Error> {
    if !value.is_finite() {
        Err(Error::NotFinite { feature, observation, value })
    } else if value < 0.0 {
        Err(Error::Negative { feature, observation, value })
    } else if value > LARGEST {
        Err(Error::TooBig { feature, observation, value })
    } else {
        Ok(())
    }
}

/// Columns of `features` values in single precision, each padded to tiles.
fn tiled(values: &[f64], features: usize) -> Vec<Tile> {
    let tiles = features.div_ceil(LANES);
    let mut out = vec![Tile::ZERO; values.len() / features * tiles];
    for (column, out) in values.chunks_exact(features).zip(out.chunks_exact_mut(tiles)) {
        for (value, out) in column.iter().zip(flat_mut(out)) {
            *out = *value as f32;
        }
    }
    out
}

#[cfg(test)]
mod tests;
