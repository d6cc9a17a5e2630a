//! W and H in units that mean something: columns of W are shares of features and add up to 1, H counts what is expected.
//! Values in, values out.

use bpnmf::{Intervals, Posterior};

/// The arrays of a model in these units, laid out as in [`Posterior`].
pub(crate) struct InCounts {
    /// W, F x K by rows.
    pub(crate) signatures: Vec<f32>,
    /// H S, K x T by rows.
    pub(crate) exposures: Vec<f32>,
    /// Low and high ends of both, if they are known.
    pub(crate) intervals: Option<[(Vec<f32>, Vec<f32>); 2]>,
}

impl InCounts {
    pub(crate) fn new(posterior: &Posterior, intervals: Option<&Intervals>) -> Self {
        let scale = scales(posterior);
        let components = posterior.components();
        let signatures = |w: &[f32]| -> Vec<f32> {
            w.iter().enumerate().map(|(i, w)| (f64::from(*w) / scale[i % components]) as f32).collect()
        };
        let exposures = |h: &[f32]| -> Vec<f32> {
            h.iter()
                .enumerate()
                .map(|(i, h)| (f64::from(*h) * scale[i / posterior.observations]) as f32)
                .collect()
        };
        let ends = intervals.map(|found| {
            [0, 1].map(|end| (signatures(&found.dictionary[end]), exposures(&found.activations[end])))
        });
        Self {
            signatures: signatures(&posterior.dictionary),
            exposures: exposures(&posterior.activations),
            intervals: ends,
        }
    }
}

/// The sums of the columns of W; 1 for one without anything in it.
fn scales(posterior: &Posterior) -> Vec<f64> {
    let mut sums = vec![0.0; posterior.components()];
    for row in posterior.dictionary.chunks_exact(sums.len().max(1)) {
        sums.iter_mut().zip(row).for_each(|(sum, w)| *sum += f64::from(*w));
    }
    sums.iter().map(|&sum| if sum > 0.0 { sum } else { 1.0 }).collect()
}
