//! Which columns the search looks at.

use crate::random::{Key, Site};

/// Columns of the sample, unless another number is asked for: a component that is on in 1 % of all columns, the least that
/// counts, is on in about thirty of them.
pub const SAMPLE: usize = 3000;

/// The columns that the search looks at, increasing: all of them if there are no more than `size`, else one drawn from each of
/// `size` equal stretches of all columns, so that every stretch of a file that is sorted has its share.
///
/// ```
/// let sample = bpnmf::sample_columns(1000, 4, 1);
/// assert!(sample.iter().zip([0, 250, 500, 750]).all(|(&t, first)| (first..first + 250).contains(&t)));
/// assert_eq!(bpnmf::sample_columns(3, 4, 1), [0, 1, 2]);
/// ```
pub fn sample_columns(observations: usize, size: usize, seed: u64) -> Vec<usize> {
    if observations <= size {
        return (0..observations).collect();
    }
    let start = |stretch: usize| (stretch as u128 * observations as u128 / size as u128) as usize;
    let drawn = |stretch: usize| {
        let (first, last) = (start(stretch), start(stretch + 1));
        let uniform = Key::new(seed).stream(Site::Sample, 0, stretch as u32, 0).uniform();
        first + ((uniform * (last - first) as f64) as usize).min(last - first - 1)
    };
    (0..size).map(drawn).collect()
}
