//! Which found part is which true one: pairs by the cosine of their dictionary columns. Knows nothing of sounds.

/// Below this two columns are not the same part.
const LEAST_COSINE: f64 = 0.7;

/// For each found column the true one it is, with their cosine. The most similar pair is taken first, each at most once.
pub(super) fn matched(found: &[Vec<f64>], truth: &[Vec<f64>]) -> Vec<Option<(usize, f64)>> {
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for (i, column) in found.iter().enumerate() {
        for (j, true_column) in truth.iter().enumerate() {
            pairs.push((cosine(column, true_column), i, j));
        }
    }
    pairs.sort_by(|first, second| second.0.total_cmp(&first.0));
    let mut partners = vec![None; found.len()];
    let mut taken = vec![false; truth.len()];
    for (cosine, i, j) in pairs {
        if cosine >= LEAST_COSINE && partners[i].is_none() && !taken[j] {
            partners[i] = Some((j, cosine));
            taken[j] = true;
        }
    }
    partners
}

/// The cosine of the angle between two columns; 0 if one of them is all zero.
pub(super) fn cosine(first: &[f64], second: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let lengths = (dot(first, first) * dot(second, second)).sqrt();
    if lengths > 0.0 { dot(first, second) / lengths } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::matched;

    #[test]
    fn the_most_similar_pair_is_taken_first_and_nothing_twice() {
        let truth = [vec![1.0, 0.0, 0.0], vec![0.0, 1.0, 0.0]];
        let found = [vec![0.9, 0.3, 0.0], vec![2.0, 0.0, 0.0], vec![0.0, 0.0, 1.0], vec![0.0; 3]];
        assert_eq!(matched(&found, &truth), [None, Some((0, 1.0)), None, None]);
    }
}
