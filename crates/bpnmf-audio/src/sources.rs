//! Which parts belong to which source, when recordings of the sources alone are at hand.

/// One part for each reference.
#[derive(Debug, Clone, PartialEq)]
pub struct PickOne {
    /// The part of every reference; none for those that came last when there were no parts left.
    pub parts: Vec<Option<usize>>,
    /// Pearson correlation of every reference (first index) with every part.
    pub correlations: Vec<Vec<f64>>,
}

/// The power of every frame: the sum over its bins of the squared magnitudes (bins x frames, frame after frame).
pub fn power_envelope(magnitudes: &[f32], bins: usize) -> Vec<f64> {
    magnitudes
        .chunks_exact(bins)
        .map(|frame| frame.iter().map(|&m| f64::from(m) * f64::from(m)).sum())
        .collect()
}

/// For each reference the part whose activation has the largest Pearson correlation with the power of the reference, as in
/// the paper. `envelopes`: a value a frame for each reference; `activations`: K x frames, by rows.
///
/// The paper lets two references have the same part. Here a part can be in one stem only, or stems would not add up: the
/// pair with the largest correlation comes first, and whoever comes later chooses among the parts that are left.
///
/// ```
/// let activations = [0.0, 1.0, 2.0, 0.0, 5.0, 0.0, 0.0, 5.0];
/// let picked = bpnmf_audio::pick_one(&[vec![3.0, 0.0, 0.0, 3.0]], &activations);
/// assert_eq!(picked.parts, [Some(1)]);
/// ```
pub fn pick_one(envelopes: &[Vec<f64>], activations: &[f32]) -> PickOne {
    let frames = envelopes.first().map_or(1, Vec::len).max(1);
    let rows: Vec<Vec<f64>> =
        activations.chunks_exact(frames).map(|row| row.iter().map(|&h| f64::from(h)).collect()).collect();
    let correlations: Vec<Vec<f64>> = envelopes
        .iter()
        .map(|envelope| rows.iter().map(|row| correlation(envelope, row)).collect())
        .collect();
    let mut pairs: Vec<(usize, usize)> =
        (0..envelopes.len()).flat_map(|r| (0..rows.len()).map(move |k| (r, k))).collect();
    // Stable: of equal ones the first reference and the first part.
    pairs.sort_by(|&(r, k), &(s, l)| correlations[s][l].total_cmp(&correlations[r][k]));
    let (mut parts, mut taken) = (vec![None; envelopes.len()], vec![false; rows.len()]);
    for (r, k) in pairs {
        if parts[r].is_none() && !taken[k] {
            parts[r] = Some(k);
            taken[k] = true;
        }
    }
    PickOne { parts, correlations }
}

/// Pearson's correlation; 0 where one of the two does not change.
pub(crate) fn correlation(one: &[f64], two: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (a, b) = (mean(one), mean(two));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in one.iter().zip(two) {
        ab += (x - a) * (y - b);
        aa += (x - a) * (x - a);
        bb += (y - b) * (y - b);
    }
    let size = (aa * bb).sqrt();
    if size > 0.0 && size.is_finite() { ab / size } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_two_references_want_goes_to_the_one_that_it_fits_best() {
        let activations = [1.0, 0.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 3.0, 3.0, 3.0, 3.0];
        let (near, exact) = (vec![1.0, 0.1, 2.0, 0.5], vec![2.0, 0.0, 4.0, 0.0]);
        let picked = pick_one(&[near.clone(), exact], &activations);
        assert_eq!(picked.parts[1], Some(0));
        assert!((picked.correlations[1][0] - 1.0).abs() < 1e-12 && picked.correlations[0][0] > 0.9);
        assert_eq!(picked.correlations[0][2], 0.0, "a part that never changes tells nothing");
        assert_eq!(picked.parts[0], Some(2));
        let none_left = pick_one(&[near.clone(), near], &activations[..4]);
        assert_eq!(none_left.parts, [Some(0), None]);
    }
}
