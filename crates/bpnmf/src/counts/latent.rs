//! Counts behind the counts: another matrix with its positive entries in the same places, filled anew again and again.

use super::{Counts, Exposures, Storage, occupied::OccupiedOnce};
use crate::kernel::{LANES, Tile, flat_mut};
use std::sync::Arc;

/// Some neighbouring columns of a matrix, for writing.
pub(crate) struct ColumnsMut<'a> {
    /// The first of them.
    first: usize,
    features: usize,
    /// Where columns start, if only their positive entries are held.
    starts: Option<&'a [usize]>,
    values: &'a mut [f64],
    single: &'a mut [Tile],
    totals: &'a mut [f64],
}

impl ColumnsMut<'_> {
    /// Fills every column: `fill(t, values)` writes all F values, or the values of the positive entries of compressed
    /// columns, and must leave them positive.
    #[inline(always)]
    pub(crate) fn fill(&mut self, mut fill: impl FnMut(usize, &mut [f64])) {
        let Self { first, features, starts, values, single, totals } = self;
        let tiles = features.div_ceil(LANES);
        for (c, total) in totals.iter_mut().enumerate() {
            let t = *first + c;
            let values = match starts {
                Some(starts) => &mut values[starts[t] - starts[*first]..starts[t + 1] - starts[*first]],
                None => &mut values[c * *features..][..*features],
            };
            fill(t, values);
            *total = values.iter().sum();
            if starts.is_none() {
                let single = flat_mut(&mut single[c * tiles..][..tiles]);
                for (single, &value) in single.iter_mut().zip(&*values) {
                    *single = value as f32;
                }
            }
        }
    }
}

impl Counts {
    /// Makes this a matrix with its positive entries where those of `data` are, and with these exposures. All its columns
    /// must be filled next; log x! is not known.
    pub(crate) fn become_like(&mut self, data: &Self, exposures: &Arc<Exposures>) {
        let same = match (&self.storage, &data.storage) {
            (Storage::Dense(ours), Storage::Dense(theirs)) => ours.len() == theirs.len(),
            (
                Storage::Sparse { starts, rows, .. },
                Storage::Sparse { starts: theirs, rows: their_rows, .. },
            ) => Arc::ptr_eq(rows, their_rows) && starts == theirs,
            _ => false,
        };
        if !same || (self.features, self.observations) != (data.features, data.observations) {
            self.clone_from(data);
        }
        self.exposures = Some(Arc::clone(exposures));
        self.nonzeros = data.nonzeros;
        self.ln_factorials = f64::NAN;
        self.occupied = OccupiedOnce::default();
    }

    /// All columns, `size` at a time.
    pub(crate) fn groups_mut(&mut self, size: usize) -> impl Iterator<Item = ColumnsMut<'_>> {
        let (features, observations, tiles) =
            (self.features, self.observations, self.features.div_ceil(LANES));
        let (starts, mut values) = match &mut self.storage {
            Storage::Dense(values) => (None, &mut values[..]),
            Storage::Sparse { starts, values, .. } => (Some(&starts[..]), &mut Arc::make_mut(values)[..]),
        };
        let (mut single, mut totals) = (&mut self.single[..], &mut self.column_totals[..]);
        (0..observations).step_by(size).map(move |first| {
            let last = observations.min(first + size);
            let number = match starts {
                Some(starts) => starts[last] - starts[first],
                None => (last - first) * features,
            };
            let tiles = if starts.is_none() { (last - first) * tiles } else { 0 };
            ColumnsMut {
                first,
                features,
                starts,
                values: values.split_off_mut(..number).expect("of all"),
                single: single.split_off_mut(..tiles).expect("of all"),
                totals: totals.split_off_mut(..last - first).expect("of all"),
            }
        })
    }
}
