//! Which true part was found as which component, by the cosine of the angle between them.

use super::data::Part;

/// The share of the columns a part must be on in to be asked for.
const LEAST_SHARE: f64 = 0.02;

/// The smallest cosine between a true part that is on in at least 2 % of the columns and the component matched to it;
/// `None` if there is no such part. The closest pair is matched first; a part left without a component has cosine 0.
/// `dictionary` is F x K by rows.
pub(super) fn least_cosine(
    parts: &[Part],
    observations: usize,
    dictionary: &[f32],
    components: usize,
) -> Option<f64> {
    let asked: Vec<&Part> =
        parts.iter().filter(|part| part.usage as f64 >= LEAST_SHARE * observations as f64).collect();
    if asked.is_empty() {
        return None;
    }
    let columns: Vec<&[f64]> = asked.iter().map(|part| part.column.as_slice()).collect();
    cosines(&columns, dictionary, components).into_iter().reduce(f64::min)
}

/// The cosine between every true column and the component matched to it, each component to one column. The closest pair
/// is matched first; a column left without a component has cosine 0. `dictionary` is F x K by rows.
pub(crate) fn cosines(columns: &[&[f64]], dictionary: &[f32], components: usize) -> Vec<f64> {
    let mut pairs = Vec::with_capacity(columns.len() * components);
    for (i, column) in columns.iter().enumerate() {
        for k in 0..components {
            let found: Vec<f64> =
                dictionary.iter().skip(k).step_by(components).map(|&w| f64::from(w)).collect();
            pairs.push((cosine(column, &found), i, k));
        }
    }
    pairs.sort_by(|left, right| right.0.total_cmp(&left.0));
    let (mut matched, mut taken) = (vec![None; columns.len()], vec![false; components]);
    for (cosine, i, k) in pairs {
        if matched[i].is_none() && !taken[k] {
            matched[i] = Some(cosine);
            taken[k] = true;
        }
    }
    matched.into_iter().map(|cosine| cosine.unwrap_or(0.0)).collect()
}

/// The cosine of the angle between two columns; 0 if one is all zeros.
pub(crate) fn cosine(left: &[f64], right: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let lengths = (dot(left, left) * dot(right, right)).sqrt();
    if lengths > 0.0 { dot(left, right) / lengths } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(column: &[f64], usage: usize) -> Part {
        Part { column: column.to_vec(), usage }
    }

    #[test]
    fn order_and_length_of_the_components_do_not_matter() {
        let parts = [part(&[1.0, 0.0], 50), part(&[0.0, 1.0], 50)];
        assert_eq!(least_cosine(&parts, 100, &[0.0, 3.0, 7.0, 0.0], 2), Some(1.0));
    }

    #[test]
    fn a_part_without_a_component_has_cosine_zero_unless_it_is_rare() {
        let parts = [part(&[1.0, 0.0], 50), part(&[1.0, 1.0], 2)];
        assert_eq!(least_cosine(&parts, 100, &[1.0, 0.0], 1), Some(0.0));
        assert_eq!(least_cosine(&parts, 101, &[1.0, 0.0], 1), Some(1.0));
        assert_eq!(least_cosine(&parts, 100, &[], 0), Some(0.0));
        assert_eq!(least_cosine(&[], 100, &[1.0, 0.0], 1), None);
    }
}
