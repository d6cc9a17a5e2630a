//! Counts from arrays of the crate ndarray. Knows only their shape and their values.

use super::Counts;
use crate::error::Error;
use ndarray::ArrayView2;

/// From an array of features x observations, whatever its layout in memory.
///
/// ```
/// use bpnmf::Counts;
/// use ndarray::array;
///
/// let words_by_texts = array![[3.0, 0.0, 1.0], [0.0, 2.0, 5.0]];
/// let counts = Counts::try_from(words_by_texts.view())?;
/// assert_eq!((counts.features(), counts.observations(), counts.total()), (2, 3, 11.0));
///
/// let texts_by_words = words_by_texts.reversed_axes();
/// assert_eq!(Counts::try_from(texts_by_words.t())?, counts);
/// # Ok::<(), bpnmf::Error>(())
/// ```
impl TryFrom<ArrayView2<'_, f64>> for Counts {
    type Error = Error;

    fn try_from(array: ArrayView2<'_, f64>) -> Result<Self, Error> {
        let (features, observations) = array.dim();
        Self::from_dense(features, observations, array.t().iter().copied().collect())
    }
}
