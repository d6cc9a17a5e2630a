//! Exposures below one, entry by entry: an entry of exposure omega counts with omega times its rate. Where nothing was
//! observed the exposure is zero. Knows nothing of models.

use super::compressed::Missing;

/// The entries whose exposure is below one, and how much of it is lost.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Exposures {
    places: Missing,
    /// 1 - omega of every place; 1 where nothing was observed.
    lost: Vec<f64>,
}

/// The entries of one column whose exposure is below one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unexposed<'a> {
    /// Features, strictly increasing.
    pub(crate) rows: &'a [u32],
    /// 1 - omega of each, above 0 and at most 1.
    pub(crate) lost: &'a [f64],
}

impl Exposures {
    /// Nothing was observed at these places, everything elsewhere.
    pub(super) fn without(places: Missing) -> Self {
        Self { lost: vec![1.0; places.rows.len()], places }
    }

    /// Column t has lost `lost` at the features `rows`, strictly increasing, from `starts[t]` to `starts[t + 1]`.
    pub(crate) fn new(starts: Vec<usize>, rows: Vec<u32>, lost: Vec<f64>) -> Self {
        Self { places: Missing { starts, rows }, lost }
    }

    /// How many entries have lost something.
    pub(crate) fn len(&self) -> usize {
        self.lost.len()
    }

    /// T.
    pub(crate) fn observations(&self) -> usize {
        self.places.starts.len() - 1
    }

    pub(super) fn places(&self) -> &Missing {
        &self.places
    }

    /// The entries of column `t` in the list of all.
    #[inline(always)]
    pub(crate) fn range(&self, t: usize) -> core::ops::Range<usize> {
        self.places.starts[t]..self.places.starts[t + 1]
    }

    /// Column `t`.
    #[inline(always)]
    pub(crate) fn of(&self, t: usize) -> Unexposed<'_> {
        let range = self.range(t);
        Unexposed { rows: &self.places.rows[range.clone()], lost: &self.lost[range] }
    }
}

impl Unexposed<'_> {
    /// Every entry of the column has its full exposure.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The features and what they have lost.
    #[inline(always)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, f64)> {
        self.rows.iter().zip(self.lost).map(|(&f, &lost)| (f as usize, lost))
    }
}
