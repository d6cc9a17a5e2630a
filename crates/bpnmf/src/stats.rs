//! What the columns tell the rest: additive sums, the unit of threads and minibatches.

use crate::counts::Counts;
use crate::infer::activations::Activations;
use crate::infer::dictionary::Dictionary;

/// Sums over columns of the allocated counts, the activations and the mask.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SuffStats {
    /// sum over t of Z_ftk (or its expectation) at `k * F + f`.
    pub(crate) allocated: Vec<f64>,
    /// sum over t of H_kt S_kt.
    pub(crate) activation: Vec<f64>,
    /// sum over t of H_kt S_kt times the exposure that (f, t) has lost, at `k * F + f`; empty if no entry has lost any.
    unseen: Vec<f64>,
    /// sum over t of S_kt.
    pub(crate) usage: Vec<f64>,
    /// sum over t, k with S_kt = 1 of log H_kt.
    pub(crate) ln_activation: f64,
    /// sum over t, f of X log Xhat - Xhat.
    pub(crate) log_likelihood: f64,
}

impl SuffStats {
    /// All zero, for F x K.
    pub(crate) fn clear(&mut self, features: usize, components: usize, unexposed: bool) {
        self.unseen.clear();
        self.unseen.resize(if unexposed { features * components } else { 0 }, 0.0);
        self.allocated.clear();
        self.allocated.resize(features * components, 0.0);
        self.activation.clear();
        self.activation.resize(components, 0.0);
        self.usage.clear();
        self.usage.resize(components, 0.0);
        self.ln_activation = 0.0;
        self.log_likelihood = 0.0;
    }

    /// [`Self::unseen`] for writing.
    pub(crate) fn unseen_mut(&mut self) -> &mut [f64] {
        &mut self.unseen
    }

    /// sum over t of H_kt S_kt times the exposure of (f, t), for the feature and component at `k * F + f`.
    #[inline(always)]
    pub(crate) fn observed_activation(&self, k: usize, at: usize) -> f64 {
        self.activation[k] - self.unseen.get(at).map_or(0.0, |unseen| unseen.min(self.activation[k]))
    }

    /// Takes the sums of H anew.
    pub(crate) fn sum_activations(&mut self, counts: &Counts, activations: &Activations) {
        let features = counts.features();
        self.activation.fill(0.0);
        self.unseen.fill(0.0);
        for t in 0..counts.observations() {
            let unexposed = counts.unexposed(t);
            for (k, h) in activations.column(t).iter() {
                self.activation[k] += f64::from(h);
                if !self.unseen.is_empty() {
                    let row = &mut self.unseen[k * features..][..features];
                    unexposed.iter().for_each(|(f, lost)| row[f] += f64::from(h) * lost);
                }
            }
        }
    }

    /// The counts that W expects: sum over f, k of W times what [`Self::observed_activation`] says.
    pub(crate) fn expected(&self, dictionary: &Dictionary, k: usize) -> f64 {
        let all = self.activation[k] * dictionary.sum(k);
        if self.unseen.is_empty() {
            return all;
        }
        let row = dictionary.row(k);
        let unseen = &self.unseen[k * row.len()..][..row.len()];
        all - row.iter().zip(unseen).map(|(&w, unseen)| f64::from(w) * unseen).sum::<f64>()
    }
}
