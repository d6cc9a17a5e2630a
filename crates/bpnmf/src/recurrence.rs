//! How sure is each component: which of the other chains found it again. Knows posteriors alone.

use crate::posterior::Posterior;

/// Two components are the same if both cosines, that of W and that of the activations, are at least this.
const SAME: f64 = 0.8;

/// What the chains say about one component of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Recurrence {
    /// The chains that have it, that of the model included.
    pub found_by: usize,
    /// The chains that were asked, that of the model included; at least 2.
    pub chains: usize,
    /// Its share of the counts, the smallest and the largest over the chains that have it; of more than 19 chains the
    /// twentieth at each end is left out. `None` if no other chain has it.
    pub share: Option<(f64, f64)>,
}

impl Recurrence {
    /// The share of the other chains that found it again.
    pub fn of_others(&self) -> f64 {
        (self.found_by - 1) as f64 / (self.chains - 1) as f64
    }

    /// Whether half of the chains or fewer have it.
    pub fn is_doubtful(&self) -> bool {
        2 * self.found_by <= self.chains
    }
}

/// For every component of `model`: which of the other chains have it, too.
/// `pairs` are those of `model` with each of them.
pub(crate) fn recurrences(
    model: &Posterior,
    others: &[&Posterior],
    pairs: &[Vec<(usize, usize)>],
) -> Vec<Recurrence> {
    let mut shares: Vec<Vec<f64>> = model.share.iter().map(|&share| vec![share]).collect();
    for (other, pairs) in others.iter().zip(pairs) {
        for &(k, j) in pairs {
            shares[k].push(other.share[j]);
        }
    }
    let recurrence = |mut shares: Vec<f64>| {
        shares.sort_by(f64::total_cmp);
        let (found_by, beyond) = (shares.len(), shares.len() / 20);
        let share = (found_by > 1).then(|| (shares[beyond], shares[found_by - 1 - beyond]));
        Recurrence { found_by, chains: others.len() + 1, share }
    };
    shares.into_iter().map(recurrence).collect()
}

/// The components of two models that are the same, one to one: pairs are taken in the order of the smaller one of their two
/// cosines, largest first.
pub(crate) fn pairs(x: &Posterior, y: &Posterior) -> Vec<(usize, usize)> {
    let (left, right) = (x.components(), y.components());
    let by_w = cosines(&x.dictionary, left, &y.dictionary, right);
    let (h_x, h_y) = (by_columns(x), by_columns(y));
    let by_h = cosines(&h_x, left, &h_y, right);
    let alike = |at: usize| by_w[at].min(by_h[at]);
    let mut order: Vec<usize> = (0..left * right).filter(|&at| alike(at) >= SAME).collect();
    order.sort_by(|&i, &j| alike(j).total_cmp(&alike(i)).then(i.cmp(&j)));
    let (mut taken_x, mut taken_y) = (vec![false; left], vec![false; right]);
    let mut pairs = Vec::new();
    for at in order {
        let (k, j) = (at / right, at % right);
        if !taken_x[k] && !taken_y[j] {
            (taken_x[k], taken_y[j]) = (true, true);
            pairs.push((k, j));
        }
    }
    pairs
}

/// The activations, T x K by rows.
fn by_columns(posterior: &Posterior) -> Vec<f32> {
    let columns = posterior.observations;
    let at = |t: usize, k: usize| posterior.activations[k * columns + t];
    (0..columns).flat_map(|t| (0..posterior.components()).map(move |k| at(t, k))).collect()
}

/// The cosines of all columns of `x`, n x `left` by rows, with all columns of `y`, n x `right`: at `k * right + j`. A
/// column of zeros has the cosine 0.
fn cosines(x: &[f32], left: usize, y: &[f32], right: usize) -> Vec<f64> {
    let (norms_x, norms_y) = (norms(x, left), norms(y, right));
    let mut products = vec![0.0; left * right];
    for (x, y) in x.chunks_exact(left.max(1)).zip(y.chunks_exact(right.max(1))) {
        for (products, &x) in products.chunks_exact_mut(right.max(1)).zip(x) {
            let x = f64::from(x);
            products.iter_mut().zip(y).for_each(|(product, &y)| *product += x * f64::from(y));
        }
    }
    for (products, norm_x) in products.chunks_exact_mut(right.max(1)).zip(norms_x) {
        for (product, norm_y) in products.iter_mut().zip(&norms_y) {
            *product /= (norm_x * norm_y).max(f64::MIN_POSITIVE);
        }
    }
    products
}

/// The length of every column.
fn norms(x: &[f32], columns: usize) -> Vec<f64> {
    let mut squares = vec![0.0; columns];
    for row in x.chunks_exact(columns.max(1)) {
        squares.iter_mut().zip(row).for_each(|(square, &x)| *square += f64::from(x).powi(2));
    }
    squares.into_iter().map(f64::sqrt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recurrences(model: &Posterior, others: &[&Posterior]) -> Vec<Recurrence> {
        let pairs: Vec<_> = others.iter().map(|other| pairs(model, other)).collect();
        super::recurrences(model, others, &pairs)
    }

    /// A posterior of 4 features and 3 columns with these components: W, H and the share of each.
    fn posterior(components: &[([f32; 4], [f32; 3], f64)]) -> Posterior {
        let number = components.len();
        Posterior {
            features: 4,
            observations: 3,
            dictionary: (0..4).flat_map(|f| components.iter().map(move |part| part.0[f])).collect(),
            activations: components.iter().flat_map(|part| part.1).collect(),
            inclusion: vec![1.0; 3 * number],
            pi: vec![0.5; number],
            share: components.iter().map(|part| part.2).collect(),
            usage: vec![3.0; number],
            evidence: None,
            surplus: 0,
            rare: 0,
            on_anywhere: number,
            log_likelihood: 0.0,
            spread: None,
        }
    }

    const LOW: [f32; 4] = [5.0, 3.0, 0.0, 0.1];
    const HIGH: [f32; 4] = [0.0, 0.2, 4.0, 7.0];
    const EARLY: [f32; 3] = [2.0, 1.0, 0.0];
    const LATE: [f32; 3] = [0.0, 0.5, 3.0];

    #[test]
    fn a_component_is_found_again_whatever_its_place_and_its_scale() {
        let model = posterior(&[(LOW, EARLY, 0.7), (HIGH, LATE, 0.3)]);
        let other = posterior(&[(HIGH.map(|w| 9.0 * w), LATE.map(|h| h / 9.0), 0.4), (LOW, EARLY, 0.6)]);
        let found = recurrences(&model, &[&other, &other]);
        assert_eq!(found.iter().map(|part| (part.found_by, part.chains)).collect::<Vec<_>>(), [(3, 3); 2]);
        assert_eq!((found[0].share, found[1].share), (Some((0.6, 0.7)), Some((0.3, 0.4))));
        assert_eq!((found[0].of_others(), found[0].is_doubtful()), (1.0, false));
    }

    #[test]
    fn features_alone_or_columns_alone_do_not_make_two_components_the_same() {
        let model = posterior(&[(LOW, EARLY, 1.0)]);
        for other in [(LOW, LATE, 1.0), (HIGH, EARLY, 1.0), ([0.0; 4], [0.0; 3], 0.0)] {
            let found = recurrences(&model, &[&posterior(&[other])])[0];
            assert_eq!((found.found_by, found.share, found.of_others()), (1, None, 0.0));
            assert!(found.is_doubtful());
        }
        assert_eq!(recurrences(&model, &[&posterior(&[])])[0].found_by, 1);
    }

    #[test]
    fn one_component_of_another_chain_is_the_same_as_one_of_the_model_at_most() {
        let nearly = [5.0, 3.0, 1.0, 0.1];
        let model = posterior(&[(nearly, EARLY, 0.5), (LOW, EARLY, 0.5)]);
        let found = recurrences(&model, &[&posterior(&[(LOW, EARLY, 1.0)])]);
        assert_eq!(
            found.iter().map(|part| part.found_by).collect::<Vec<_>>(),
            [1, 2],
            "the nearest pair first"
        );
        let twice = recurrences(&posterior(&[(LOW, EARLY, 1.0)]), &[&model]);
        assert_eq!(twice[0].found_by, 2);
    }

    #[test]
    fn the_interval_of_a_share_leaves_a_twentieth_out_at_each_end() {
        let model = posterior(&[(LOW, EARLY, 0.5)]);
        let others: Vec<Posterior> =
            (1..40).map(|i| posterior(&[(LOW, EARLY, f64::from(i) / 100.0)])).collect();
        let found = recurrences(&model, &others.iter().collect::<Vec<_>>())[0];
        assert_eq!((found.found_by, found.share), (40, Some((0.03, 0.38))));
    }
}
