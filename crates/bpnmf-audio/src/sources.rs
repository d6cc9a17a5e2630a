//! Which parts belong to which source, when recordings of the sources alone are at hand.

use rayon::prelude::*;

use crate::parts::Parts;

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

/// The reference that every part goes to: the one with the largest overlap, the sum over bins and frames of the part's
/// Wiener gain times the magnitude of the reference. `references`: magnitudes, bins x frames each.
pub fn pick_all(parts: &Parts, references: &[Vec<f32>]) -> Vec<usize> {
    /// Frames whose sums are taken together, whatever the threads.
    const BLOCK: usize = 64;
    let (bins, many) = (parts.bins, references.len());
    let blocks: Vec<Vec<f64>> = (0..parts.frames.div_ceil(BLOCK))
        .into_par_iter()
        .map(|block| {
            let mut overlap = vec![0.0; parts.components * many];
            let mut whole = vec![0.0; bins];
            for t in block * BLOCK..((block + 1) * BLOCK).min(parts.frames) {
                parts.expected(t, |_| true, &mut whole);
                whole.iter_mut().for_each(|whole| *whole = if *whole > 0.0 { 1.0 / *whole } else { 0.0 });
                for (k, h) in parts.on(t) {
                    let spectrum = parts.spectrum(k);
                    for (r, reference) in references.iter().enumerate() {
                        let frame = spectrum.iter().zip(&whole).zip(&reference[t * bins..][..bins]);
                        let sum: f64 = frame.map(|((&w, r), &m)| f64::from(w) * r * f64::from(m)).sum();
                        overlap[k * many + r] += f64::from(h) * sum;
                    }
                }
            }
            overlap
        })
        .collect();
    (0..parts.components)
        .map(|k| {
            let overlap = |r: usize| blocks.iter().map(|block| block[k * many + r]).sum::<f64>();
            let overlaps: Vec<f64> = (0..many).map(overlap).collect();
            // The first of equal ones.
            (0..many).rev().max_by(|&r, &s| overlaps[r].total_cmp(&overlaps[s])).unwrap_or(0)
        })
        .collect()
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

    #[test]
    fn parts_go_to_the_reference_that_sounds_where_they_do() {
        // Two parts, bins 0 and 1 against bins 2 and 3, in turns.
        let dictionary = [1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0];
        let (activations, inclusion) = ([5.0, 0.0, 5.0, 0.0, 5.0, 5.0], [1.0, 0.0, 1.0, 0.0, 1.0, 1.0]);
        let parts = Parts::new(&dictionary, &activations, &inclusion, 2);
        let low = vec![5.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 5.0, 0.0, 0.0];
        let high = vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 5.0, 0.0, 0.0, 5.0, 5.0];
        assert_eq!(pick_all(&parts, &[low.clone(), high.clone()]), [0, 1]);
        assert_eq!(pick_all(&parts, &[high, low]), [1, 0]);
    }
}
