//! What a run found: the components that count, ordered by their share of the counts.

use crate::counts::Counts;
use crate::infer::state::least_usage;

/// The components of a fitted model, largest share first.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Posterior {
    /// F.
    pub features: usize,
    /// T.
    pub observations: usize,
    /// Posterior mean of W, F x K' by rows: feature f of component k at `f * K' + k`.
    pub dictionary: Vec<f32>,
    /// Posterior mean of H S, K' x T by rows: component k in column t at `k * T + t`.
    pub activations: Vec<f32>,
    /// Posterior probability that a component is on, K' x T by rows.
    pub inclusion: Vec<f32>,
    /// Posterior mean of pi, length K'.
    pub pi: Vec<f64>,
    /// Share of the reconstructed counts, length K'; with the components that do not count, they add up to 1.
    pub share: Vec<f64>,
    /// In how many columns a component is on with probability at least 1/2, length K'.
    pub usage: Vec<usize>,
    /// Components on in any column, whether they count or not.
    pub on_anywhere: usize,
    /// Posterior mean of log p(X | W, H, S).
    pub log_likelihood: f64,
}

impl Posterior {
    /// From averages over all slots: `dictionary(k, f)`, and `masked` and `inclusion` at `t * slots + k`.
    pub(crate) fn new(
        counts: &Counts,
        slots: usize,
        dictionary: &dyn Fn(usize, usize) -> f64,
        masked: &[f32],
        inclusion: &[f32],
        pi: &[f64],
        log_likelihood: f64,
    ) -> Self {
        let (features, observations) = (counts.features(), counts.observations());
        let (mut usage, mut activation) = (vec![0usize; slots], vec![0.0f64; slots]);
        for (masked, inclusion) in masked.chunks(slots).zip(inclusion.chunks(slots)) {
            for k in 0..slots {
                usage[k] += usize::from(inclusion[k] >= 0.5);
                activation[k] += f64::from(masked[k]);
            }
        }
        let size: Vec<f64> = (0..slots)
            .map(|k| activation[k] * (0..features).map(|f| dictionary(k, f)).sum::<f64>())
            .collect();
        let total: f64 = size.iter().sum();
        let least = least_usage(observations);
        // Without a single count there is nothing to be a component of.
        let mut kept: Vec<usize> =
            (0..slots).filter(|&k| usage[k] as f64 >= least && counts.nonzeros() > 0).collect();
        kept.sort_by(|&i, &j| size[j].total_cmp(&size[i]).then(i.cmp(&j)));
        let by_rows = |values: &[f32]| -> Vec<f32> {
            kept.iter().flat_map(|&k| (0..observations).map(move |t| values[t * slots + k])).collect()
        };
        Self {
            features,
            observations,
            dictionary: (0..features)
                .flat_map(|f| kept.iter().map(move |&k| dictionary(k, f) as f32))
                .collect(),
            activations: by_rows(masked),
            inclusion: by_rows(inclusion),
            pi: kept.iter().map(|&k| pi[k]).collect(),
            share: kept.iter().map(|&k| if total > 0.0 { size[k] / total } else { 0.0 }).collect(),
            usage: kept.iter().map(|&k| usage[k]).collect(),
            on_anywhere: if counts.nonzeros() > 0 { usage.iter().filter(|&&n| n > 0).count() } else { 0 },
            log_likelihood,
        }
    }

    /// K', the number of components that count: on in at least 1 % of the columns, and in at least one.
    pub fn components(&self) -> usize {
        self.pi.len()
    }
}
