//! What a fit of blocks leaves behind: the means of every column as they come block by block, and the model in the end.

use super::leader::BlockFit;
use super::{BlockStatistics, columns_of};
use crate::counts::Counts;
use crate::error::Error;
use crate::infer::Local;
use crate::infer::state::least_usage;
use crate::posterior::Posterior;

/// What there is to know of data that were read block by block.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Survey {
    /// How many entries are positive.
    pub nonzeros: usize,
    /// How many are missing.
    pub missing: usize,
    /// The sum of all entries.
    pub total: f64,
    /// Whether all of them are whole numbers.
    pub whole: bool,
}

impl Survey {
    /// Of no column.
    pub(super) const NOTHING: Self = Self { nonzeros: 0, missing: 0, total: 0.0, whole: true };

    /// Of a matrix.
    pub fn of(counts: &Counts) -> Self {
        Self {
            nonzeros: counts.nonzeros(),
            missing: counts.missing_entries(),
            total: counts.total(),
            whole: counts.first_fraction().is_none(),
        }
    }

    /// With the columns that come after these.
    pub fn and(self, next: Self) -> Self {
        Self {
            nonzeros: self.nonzeros + next.nonzeros,
            missing: self.missing + next.missing,
            total: self.total + next.total,
            whole: self.whole && next.whole,
        }
    }
}

/// Posterior means of H S and of S of all columns, K x T by rows, filled block by block.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockMeans {
    components: usize,
    observations: usize,
    pub(super) activations: Vec<f32>,
    pub(super) inclusion: Vec<f32>,
}

impl BlockMeans {
    /// All zero.
    pub fn new(components: usize, observations: usize) -> Self {
        let sites = || vec![0.0; components * observations];
        Self { components, observations, activations: sites(), inclusion: sites() }
    }

    /// Takes the means of a block.
    pub fn put(&mut self, block: usize, local: &Local) {
        for (c, t) in columns_of(block, self.observations).enumerate() {
            for k in 0..self.components {
                let (to, from) = (k * self.observations + t, c * self.components + k);
                self.activations[to] = local.activations[from];
                self.inclusion[to] = local.inclusion[from];
            }
        }
    }

    /// The rows of components in this order.
    fn ordered(self, order: &[usize]) -> (Vec<f32>, Vec<f32>) {
        let Self { observations, activations, inclusion, .. } = self;
        let rows = |values: Vec<f32>| -> Vec<f32> {
            if order.is_sorted() {
                return values;
            }
            order.iter().flat_map(|&k| &values[k * observations..][..observations]).copied().collect()
        };
        (rows(activations), rows(inclusion))
    }
}

/// The sums over all columns that the last round leaves.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Totals {
    usage: Vec<f64>,
    /// Expected counts of every component.
    size: Vec<f64>,
}

impl Totals {
    pub(super) fn new(usage: Vec<f64>, size: Vec<f64>) -> Self {
        Self { usage, size }
    }

    pub(super) fn numbers(&self) -> [&[f64]; 2] {
        [&self.usage, &self.size]
    }
}

/// What a fit says of its components, in [its order](BlockFit::order).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// Posterior mean of W, F x K by rows, in the units of the data.
    pub dictionary: Vec<f32>,
    /// Posterior mean of pi.
    pub pi: Vec<f64>,
    /// Share of the counts.
    pub share: Vec<f64>,
    /// In how many columns a component is on.
    pub usage: Vec<f64>,
}

impl BlockFit {
    /// Takes the sums of the last round in.
    pub(super) fn total(&mut self, statistics: BlockStatistics) -> Result<(), Error> {
        if statistics.shape() != (self.features, self.components) {
            return Err(Error::BadBlock { reason: "the sums are of another model".into() });
        }
        let Some(sums) = statistics.into_sums() else { return Ok(()) };
        let (w, features) = (self.dictionary(), self.features);
        let size = |k: usize| sums.activation[k] * w[k * features..][..features].iter().sum::<f64>();
        let size = (0..self.components).map(size).collect();
        self.log_likelihood = sums.log_likelihood;
        self.totals = Some(Totals { usage: sums.usage, size });
        Ok(())
    }

    /// The components in the order of their share of the counts, largest first; before the last round in that of the search.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.components).collect();
        if let Some(Totals { size, .. }) = &self.totals {
            order.sort_by(|&i, &j| size[j].total_cmp(&size[i]).then(i.cmp(&j)));
        }
        order
    }

    /// What it says of its components as it stands.
    pub fn found(&self) -> Found {
        let (features, order) = (self.features, self.order());
        // Before the last round from what q says of the counts that were given out.
        let counts = |k: usize| self.nu_w[k * features..][..features].iter().sum::<f64>();
        let so_far = || {
            let usage = self.alpha_pi.iter().map(|alpha| (alpha - self.prior.pi_on()).max(0.0));
            Totals { usage: usage.collect(), size: (0..self.components).map(counts).collect() }
        };
        let Totals { usage, size } = self.totals.clone().unwrap_or_else(so_far);
        let total: f64 = size.iter().sum();
        let (w, pi) = (self.dictionary(), self.pi());
        let places = (0..features).flat_map(|f| order.iter().map(move |&k| k * features + f));
        Found {
            dictionary: places.map(|at| w[at] as f32).collect(),
            pi: order.iter().map(|&k| pi[k]).collect(),
            share: order.iter().map(|&k| if total > 0.0 { size[k] / total } else { 0.0 }).collect(),
            usage: order.iter().map(|&k| usage[k]).collect(),
        }
    }

    /// The model with these means of the columns; `searched` is what the search on the sample found, whose evidence is kept.
    pub fn posterior(&self, means: BlockMeans, searched: &Posterior) -> Posterior {
        let Found { dictionary, pi, share, usage } = self.found();
        let (order, least) = (self.order(), least_usage(self.observations));
        let (activations, inclusion) = means.ordered(&order);
        let evidence = searched.evidence.as_ref().filter(|evidence| evidence.len() == self.components);
        Posterior {
            features: self.features,
            observations: self.observations,
            dictionary,
            activations,
            inclusion,
            pi,
            share,
            surplus: searched.surplus,
            rare: usage.iter().filter(|&&usage| usage < least).count(),
            on_anywhere: usage.iter().filter(|&&usage| usage >= 0.5).count().max(searched.on_anywhere),
            usage,
            evidence: evidence.map(|evidence| order.iter().map(|&k| evidence[k]).collect()),
            log_likelihood: self.log_likelihood,
            spread: None,
        }
    }
}
