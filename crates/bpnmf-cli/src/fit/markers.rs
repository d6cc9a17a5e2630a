//! The features by which a component is known. Values in, values out.

use bpnmf::Posterior;

/// What is needed of all components together.
pub(super) struct Markers<'a> {
    posterior: &'a Posterior,
    /// The sums of the columns of W.
    sums: Vec<f64>,
    /// The share of each feature in all components together, weighted by their shares of the counts.
    all: Vec<f64>,
}

impl<'a> Markers<'a> {
    pub(super) fn new(posterior: &'a Posterior) -> Self {
        let parts = posterior.components();
        let mut sums = vec![0.0; parts];
        let rows = || posterior.dictionary.chunks_exact(parts.max(1));
        rows().for_each(|row| sums.iter_mut().zip(row).for_each(|(sum, w)| *sum += f64::from(*w)));
        sums.iter_mut().for_each(|sum| *sum = sum.max(f64::MIN_POSITIVE));
        let weighted = |row: &[f32]| -> f64 {
            row.iter()
                .zip(&sums)
                .zip(&posterior.share)
                .map(|((w, sum), share)| share * f64::from(*w) / sum)
                .sum()
        };
        let all = rows().map(weighted).collect();
        Self { posterior, sums, all }
    }

    /// The features that tell a component best from all others together: with shares p in it and q in the others, weighted
    /// by their shares of the counts, those with the largest p log(p / q). A feature that is large everywhere is none.
    pub(super) fn of(&self, component: usize, most: usize) -> Vec<usize> {
        let Self { posterior, sums, all } = self;
        let (parts, share) = (posterior.components(), posterior.share[component]);
        let rest = (1.0 - share).max(f64::MIN_POSITIVE);
        // No feature is so special that a millionth of an even share elsewhere would not say so.
        let least = 1e-6 / posterior.features as f64;
        let special = |f: usize| -> f64 {
            let p = f64::from(posterior.dictionary[f * parts + component]) / sums[component];
            match p > 0.0 {
                // The only component is told from nothing.
                true if parts == 1 => p,
                true => p * (p / ((all[f] - share * p) / rest).max(least)).ln(),
                false => 0.0,
            }
        };
        let values: Vec<f64> = (0..posterior.features).map(special).collect();
        let mut order: Vec<usize> = (0..posterior.features).collect();
        order.sort_by(|&i, &j| values[j].total_cmp(&values[i]).then(i.cmp(&j)));
        order.truncate(most);
        order
    }
}
