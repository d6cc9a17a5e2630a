//! What a run found: the components that count, ordered by their share of the counts.

use crate::counts::Counts;
use crate::infer::state::{Moments, Slots, least_usage};
use crate::intervals::Spread;

/// How far the evidence of a component can be too low, in nats for each of its F + usage parameters: the bound prices a
/// parameter of a weak component too high. True components of weak data come out at -0.55 and above, surplus ones of
/// strong data at -0.85 and below.
const ERROR_A_PARAMETER: f64 = 0.6;

/// The same for each of its counts: most parameters of a component that has hardly any counts cost nothing, so they cannot
/// be priced too high. True components of weak data have -0.12 and above.
const ERROR_A_COUNT: f64 = 0.15;

/// A component that just passes counts if it has at least this share of the counts.
const LOUD: f64 = 0.01;

/// A component that is on in less than 1 % of the columns may count if it is on in so many, and with so many nats.
const RARE_USAGE: f64 = 2.5;
const RARE_EVIDENCE: f64 = 20.0;

/// Which slots count as components.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Counting<'a> {
    /// Those on in at least 1 % of the columns.
    Usage,
    /// Those which the evidence supports, too, and which do not just pass.
    Evidence {
        evidence: &'a [f64],
        /// See [`crate::Search::passing`].
        passing: Passing<'a>,
        /// There are at least so many, see [`crate::Discovery::rank`]: the ones with the most evidence.
        least: usize,
        /// Whether components that are on in less than 1 % of the columns count if the evidence is clear.
        rare: bool,
    },
    /// So many, the ones with the largest share.
    Forced(usize, &'a [f64]),
}

/// What is too short to be more than the edge of other components.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passing<'a> {
    /// See [`crate::Search::passing`].
    pub(crate) most: usize,
    /// Where the columns stood before those without a count were set aside, if any were: two columns with such a one between
    /// them do not follow each other.
    pub(crate) columns: Option<&'a [u32]>,
}

/// The most columns in a row that a slot is rather on in than off.
fn longest_run(slots: &Slots<'_>, k: usize, columns: Option<&[u32]>) -> usize {
    let (mut run, mut longest) = (0, 0);
    for (t, inclusion) in slots.inclusion.iter().skip(k).step_by(slots.components()).enumerate() {
        let follows = columns.is_none_or(|columns| t == 0 || columns[t] == columns[t - 1] + 1);
        run = if *inclusion < 0.5 {
            0
        } else if follows {
            run + 1
        } else {
            1
        };
        longest = longest.max(run);
    }
    longest
}

/// The components of a fitted model, largest share first.
///
/// After a search, `activations` and `inclusion` are 0 in observations without a count, and all features that were observed
/// and never had a count share what W of one such feature is expected to be: a / n / (b + sum_t H_kt S_kt) with the learned
/// prior for each of n. So a new observation may have a count there, and however many of them there are, they hardly add to
/// the sum of W. A feature that was not observed at all has the mean of the prior, a / b. Shares and likelihoods are those of
/// the features and observations with counts.
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
    /// In how many columns a component is on: the posterior mean, length K'.
    pub usage: Vec<f64>,
    /// What deleting a component costs in log evidence, the others free to take over, length K'. Only a run that
    /// began with a search has it.
    pub evidence: Option<Vec<f64>>,
    /// Components on often enough to count which the evidence does not support.
    pub surplus: usize,
    /// Components that count though they are on in less than 1 % of the columns: the evidence for them is clear.
    pub rare: usize,
    /// Components on in any column, whether they count or not.
    pub on_anywhere: usize,
    /// Posterior mean of log p(X | W, H, S).
    pub log_likelihood: f64,
    /// How the draws spread; `None` if there are no two draws, see [`crate::Intervals`].
    pub(crate) spread: Option<Spread>,
}

impl Posterior {
    /// From the averages over all slots. `scale` takes W back to the units of the data.
    pub(crate) fn new(counts: &Counts, slots: &Slots<'_>, counting: Counting<'_>, scale: f64) -> Self {
        let (features, observations) = (counts.features(), counts.observations());
        let k_slots = slots.components();
        let (mut usage, mut activation) = (vec![0.0f64; k_slots], vec![0.0f64; k_slots]);
        for (masked, inclusion) in slots.masked.chunks(k_slots).zip(slots.inclusion.chunks(k_slots)) {
            for k in 0..k_slots {
                usage[k] += f64::from(inclusion[k]);
                activation[k] += f64::from(masked[k]);
            }
        }
        let rows = slots.dictionary.chunks(features);
        let size: Vec<f64> = rows.zip(&activation).map(|(row, h)| h * row.iter().sum::<f64>()).collect();
        let total: f64 = size.iter().sum();
        let least = least_usage(observations);
        // Without a single count there is nothing to be a component of.
        let some = counts.nonzeros() > 0;
        let counted = |k: usize| match counting {
            Counting::Usage => usage[k] >= least,
            Counting::Evidence { evidence, passing, rare, .. } => {
                if usage[k] < least {
                    return rare && usage[k] >= RARE_USAGE && evidence[k] > RARE_EVIDENCE;
                }
                let parameters = ERROR_A_PARAMETER * (features as f64 + usage[k]);
                let wanted = evidence[k] > -parameters.min(ERROR_A_COUNT * size[k]);
                wanted && (size[k] >= LOUD * total || longest_run(slots, k, passing.columns) > passing.most)
            }
            Counting::Forced(..) => true,
        };
        let often = (0..k_slots).filter(|&k| some && usage[k] >= least).count();
        let mut kept: Vec<usize> = (0..k_slots).filter(|&k| some && counted(k)).collect();
        if let Counting::Evidence { evidence, least: rank, .. } = counting {
            let mut others: Vec<usize> =
                (0..k_slots).filter(|k| some && usage[*k] >= least && !kept.contains(k)).collect();
            others.sort_by(|&i, &j| evidence[j].total_cmp(&evidence[i]).then(i.cmp(&j)));
            others.truncate(rank.saturating_sub(kept.len()));
            kept.extend(others);
            if kept.is_empty() && some {
                // Counts have at least one part.
                kept.extend((0..k_slots).max_by(|&i, &j| size[i].total_cmp(&size[j]).then(j.cmp(&i))));
            }
        }
        kept.sort_by(|&i, &j| size[j].total_cmp(&size[i]).then(i.cmp(&j)));
        if let Counting::Forced(wanted, _) = counting {
            kept.truncate(wanted);
        }
        let by_rows = |values: &[f32]| -> Vec<f32> {
            kept.iter().flat_map(|&k| (0..observations).map(move |t| values[t * k_slots + k])).collect()
        };
        let w = |k: usize, f: usize| (scale * slots.dictionary[k * features + f]) as f32;
        let square = (scale * scale) as f32;
        let spread = slots.spread.map(|spread| {
            let at = |moments: &Moments, i: usize| [moments.mean[i], moments.variance[i]];
            let signature = |f: usize, k: usize| at(&spread.signature, k * features + f);
            let exposure = |k: usize, t: usize| {
                let [mean, variance] = at(&spread.exposure, t * k_slots + k);
                [scale as f32 * mean, square * variance]
            };
            Spread {
                signature: (0..features).flat_map(|f| kept.iter().map(move |&k| signature(f, k))).collect(),
                exposure: kept.iter().flat_map(|&k| (0..observations).map(move |t| exposure(k, t))).collect(),
            }
        });
        let evidence = match counting {
            // Slots that are nowhere likely to be on were not judged. One of them that is kept all the same is the only
            // component, and nothing could take over from it.
            Counting::Evidence { evidence, .. } => {
                let unjudged = |k: usize| kept.len() == 1 && evidence[k] == f64::NEG_INFINITY;
                let judged = |k: usize| if unjudged(k) { f64::INFINITY } else { evidence[k] };
                Some(kept.iter().map(|&k| judged(k)).collect())
            }
            Counting::Forced(_, evidence) => Some(kept.iter().map(|&k| evidence[k]).collect()),
            Counting::Usage => None,
        };
        Self {
            features,
            observations,
            dictionary: (0..features).flat_map(|f| kept.iter().map(move |&k| w(k, f))).collect(),
            activations: by_rows(slots.masked),
            inclusion: by_rows(slots.inclusion),
            pi: kept.iter().map(|&k| slots.pi[k]).collect(),
            share: kept.iter().map(|&k| if total > 0.0 { size[k] / total } else { 0.0 }).collect(),
            usage: kept.iter().map(|&k| usage[k]).collect(),
            surplus: often - kept.iter().filter(|&&k| usage[k] >= least).count(),
            rare: kept.iter().filter(|&&k| usage[k] < least).count(),
            evidence,
            on_anywhere: usage.iter().filter(|&&n| some && n >= 0.5).count(),
            log_likelihood: slots.log_likelihood,
            spread,
        }
    }

    /// K', the number of components that count.
    pub fn components(&self) -> usize {
        self.pi.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three slots in twenty columns: one in the first half, one in single columns, one in pairs of them.
    fn counted(quiet: f32, evidence: [f64; 3], passing: usize) -> usize {
        counted_at(quiet, evidence, Passing { most: passing, columns: None })
    }

    fn counted_at(quiet: f32, evidence: [f64; 3], passing: Passing<'_>) -> usize {
        let on = |t: usize| [t < 10, t % 5 == 1, t % 5 > 2];
        let inclusion: Vec<f32> = (0..20).flat_map(on).map(|on| f32::from(u8::from(on))).collect();
        let strength = [1.0, quiet, quiet];
        let masked: Vec<f32> = inclusion.iter().enumerate().map(|(i, on)| on * strength[i % 3]).collect();
        let slots = Slots {
            dictionary: vec![50.0; 6],
            masked: &masked,
            inclusion: &inclusion,
            pi: vec![0.5; 3],
            log_likelihood: 0.0,
            spread: None,
        };
        let counts = Counts::from_dense(2, 20, vec![50.0; 40]).unwrap();
        Posterior::new(
            &counts,
            &slots,
            Counting::Evidence { evidence: &evidence, passing, least: 0, rare: false },
            1.0,
        )
        .components()
    }

    #[test]
    fn quiet_slots_that_just_pass_do_not_count() {
        let wanted = [100.0; 3];
        assert_eq!([0, 1, 2].map(|passing| counted(0.001, wanted, passing)), [3, 2, 1]);
        // Loud ones do, however short they are.
        assert_eq!([0, 1, 2].map(|passing| counted(1.0, wanted, passing)), [3, 3, 3]);
    }

    #[test]
    fn columns_that_were_set_aside_end_a_run() {
        let passing =
            |columns: Vec<u32>| counted_at(0.001, [100.0; 3], Passing { most: 1, columns: Some(&columns) });
        assert_eq!(passing((0..20).collect()), 2);
        // Between the two columns of every pair stands an empty one.
        assert_eq!(passing((0..40).step_by(2).collect()), 1);
    }

    #[test]
    fn the_error_that_is_allowed_is_less_for_slots_with_hardly_any_counts() {
        // Six or ten parameters may be off by 0.6 nats each, but no count by more than 0.15.
        assert_eq!(counted(1.0, [100.0, -3.0, 100.0], 0), 3);
        assert_eq!(counted(1.0, [100.0, -4.0, 100.0], 0), 2);
        assert_eq!(counted(0.01, [100.0, -3.0, 100.0], 0), 2);
        assert_eq!(counted(0.01, [100.0, -0.5, 100.0], 0), 3);
    }
}
