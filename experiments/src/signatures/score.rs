//! How well found signatures are the true ones, by the rule of the published comparison. Knows no files and no fits.

use crate::rank::matching::cosine;

/// A pair counts from this cosine on.
pub(super) const MATCH: f64 = 0.9;

/// Found signatures held against the true ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Score {
    /// The share of the found signatures that are matched.
    pub(super) ppv: f64,
    /// The share of the true signatures that are matched.
    pub(super) tpr: f64,
    /// The mean cosine of the matched; 0 if there are none.
    pub(super) cosine: f64,
}

impl Score {
    /// The sum of the three, at most 3.
    pub(super) fn sum(&self) -> f64 {
        self.ppv + self.tpr + self.cosine
    }
}

/// Pairs found and true signatures so that the sum of the cosines is largest, each with at most one, and counts the pairs of
/// cosine 0.9 and more. `dictionary` holds `components` found signatures, F x K by rows.
pub(super) fn score(truth: &[Vec<f64>], dictionary: &[f32], components: usize) -> Score {
    let size = truth.len().max(components);
    let found: Vec<Vec<f64>> = (0..components)
        .map(|k| dictionary.iter().skip(k).step_by(components).map(|&w| f64::from(w)).collect())
        .collect();
    // A square of pairs: one with nobody is worth nothing.
    let worth = |i: usize, k: usize| match (truth.get(i), found.get(k)) {
        (Some(truth), Some(found)) => cosine(truth, found),
        _ => 0.0,
    };
    let gain: Vec<Vec<f64>> = (0..size).map(|i| (0..size).map(|k| worth(i, k)).collect()).collect();
    let pairs = bpnmf_audio::best_rows(&gain).into_iter().enumerate();
    let matched: Vec<f64> = pairs.map(|(k, i)| gain[i][k]).filter(|&cosine| cosine >= MATCH).collect();
    let share = |all: usize| if all == 0 { 0.0 } else { matched.len() as f64 / all as f64 };
    Score {
        ppv: share(components),
        tpr: share(truth.len()),
        cosine: matched.iter().fold(0.0, |sum, cosine| sum + cosine) / matched.len().max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth() -> Vec<Vec<f64>> {
        vec![vec![1.0, 0.0, 0.0], vec![0.0, 1.0, 0.0], vec![0.0, 0.0, 1.0]]
    }

    /// F x K by rows from the signatures.
    fn dictionary(columns: &[[f32; 3]]) -> Vec<f32> {
        (0..3).flat_map(|f| columns.iter().map(move |column| column[f])).collect()
    }

    fn scored(columns: &[[f32; 3]]) -> Score {
        score(&truth(), &dictionary(columns), columns.len())
    }

    #[test]
    fn the_truth_in_any_order_and_scale_scores_3() {
        for found in [
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            [[0.0, 0.0, 7.0], [0.2, 0.0, 0.0], [0.0, 3.0, 0.0]],
        ] {
            let score = scored(&found);
            assert_eq!(score, Score { ppv: 1.0, tpr: 1.0, cosine: 1.0 });
            assert_eq!(score.sum(), 3.0);
        }
    }

    #[test]
    fn a_missing_signature_costs_tpr_and_a_surplus_one_ppv() {
        let missing = scored(&[[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]);
        assert_eq!(missing, Score { ppv: 1.0, tpr: 2.0 / 3.0, cosine: 1.0 });
        let surplus = scored(&[[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]]);
        assert_eq!(surplus, Score { ppv: 0.75, tpr: 1.0, cosine: 1.0 });
    }

    #[test]
    fn a_pair_below_the_least_cosine_counts_nowhere() {
        // Cosine 0.894 and 0.949.
        let below = scored(&[[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
        assert_eq!(below, Score { ppv: 2.0 / 3.0, tpr: 2.0 / 3.0, cosine: 1.0 });
        let above = scored(&[[3.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
        assert!((above.cosine - (2.0 + 0.9f64.sqrt()) / 3.0).abs() < 1e-12 && above.tpr == 1.0);
    }

    #[test]
    fn pairs_are_those_with_the_largest_sum_not_the_closest_first() {
        // The first found signature is closest to the second true one, but both true ones are matched only the other way.
        let truth = vec![vec![1.0, 0.3], vec![1.0, 0.05]];
        let found = [1.0f32, 1.0, 0.1, 0.0];
        let pairs = score(&truth, &found, 2);
        let cross = cosine(&[1.0, 0.3], &[1.0, 0.1]) + cosine(&[1.0, 0.05], &[1.0, 0.0]);
        assert!((pairs.cosine - cross / 2.0).abs() < 1e-7);
    }

    #[test]
    fn nothing_found_scores_nothing() {
        assert_eq!(score(&truth(), &[], 0).sum(), 0.0);
    }
}
