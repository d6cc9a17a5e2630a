//! The annealed path of a jump, there and back.

use super::super::activations::Activations;
use super::super::conditionals::Conditionals;
use super::super::dictionary::{Dictionary, stored};
use super::super::local::Allocation;
use super::super::mask::Odds;
use super::{Moving, in_model, shapes};
use crate::counts::Counts;
use crate::prior::CheckedPrior;
use crate::random::{Key, Site};
use crate::special::{ln, ln_beta};
use crate::statistics::Sums;
use crate::workers::Workers;

/// A path whose log ratio falls as low as this, from either end, is given up: it would need an unlikely rest. As the rule asks
/// the same of a path and of its reversal it does not touch exactness.
const OUT_OF_REACH: f64 = -60.0;

/// The counts that slot j is expected to explain at the first level. Nothing is lost by so few.
const FIRST_COUNTS: f64 = 1.0;

/// The prior of slot j between not being there and being a component.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Level {
    /// Rate of W_fj; infinite where j explains nothing.
    pub(super) rate: f64,
    /// Shapes of pi_j.
    pub(super) mask: (f64, f64),
}

/// Levels 0 to n: pi_j is uniform until the last one, and the rate falls geometrically.
pub(super) fn ladder(levels: u32, prior: &CheckedPrior, counts: &Counts) -> Vec<Level> {
    let levels = levels.max(1);
    let sites = 0.5 * counts.observations() as f64;
    let expected = prior.a() * counts.features() as f64 * sites * prior.c() / prior.d();
    let range = ln((expected / FIRST_COUNTS / prior.b()).max(2.0));
    let level = |s: u32| {
        let far = f64::from(levels - s) / f64::from((levels - 1).max(1));
        let rate = if s == 0 { f64::INFINITY } else { prior.b() * (range * far).exp() };
        Level { rate, mask: if s == levels { prior.shapes_of_pi() } else { (1.0, 1.0) } }
    };
    (0..=levels).map(level).collect()
}

/// log p(S_j) of m sites on among T, pi summed out.
pub(super) fn ln_mask((on, off): (f64, f64), usage: f64, observations: f64) -> f64 {
    ln_beta(on + usage, off + observations - usage) - ln_beta(on, off)
}

impl Level {
    /// log p_s of the module, for what slot j holds.
    fn ln_density(
        &self,
        prior: &CheckedPrior,
        stats: &Sums,
        features: usize,
        observations: f64,
        j: usize,
    ) -> f64 {
        let allocated = &stats.allocated[j * features..][..features];
        let mask = ln_mask(self.mask, stats.usage[j], observations);
        if self.rate == f64::INFINITY {
            return if allocated.iter().any(|&z| z > 0.0) { f64::NEG_INFINITY } else { mask };
        }
        let start = features as f64 * prior.a() * ln(self.rate);
        let of_feature = |(f, &z): (usize, &f64)| {
            (prior.a() + z) * ln(self.rate + stats.observed_activation(j, j * features + f))
        };
        start - allocated.iter().enumerate().map(of_feature).sum::<f64>() + mask
    }
}

/// A state on its way.
pub(super) struct Copied {
    pub(super) dictionary: Dictionary,
    pub(super) activations: Activations,
    pub(super) logit: Vec<f64>,
}

impl Copied {
    fn selected(&self, order: &[usize]) -> Self {
        Self {
            dictionary: self.dictionary.selected(order),
            activations: self.activations.selected(order),
            logit: order.iter().map(|&k| self.logit[k]).collect(),
        }
    }

    /// Makes it the state.
    pub(super) fn put(self, moving: &mut Moving<'_>) {
        *moving.dictionary = self.dictionary;
        *moving.activations = self.activations;
        moving.odds.fill(|k| self.logit[k]);
    }
}

/// Where a path leads.
pub(super) struct Path<'a> {
    pub(super) levels: Vec<Level>,
    pub(super) counts: &'a Counts,
    pub(super) prior: &'a CheckedPrior,
    pub(super) key: Key,
    pub(super) workers: &'a Workers,
}

impl Path<'_> {
    fn conditionals(&self, iteration: usize) -> Conditionals<'_> {
        let Self { counts, prior, key, workers, .. } = *self;
        Conditionals { counts, prior, key, iteration: iteration as u32, workers }
    }

    /// Level `to` over level `from` of what slot j holds.
    fn gain(&self, from: usize, to: usize, stats: &Sums, j: usize) -> f64 {
        let (features, observations) = (self.counts.features(), self.counts.observations() as f64);
        let at = |s: usize| self.levels[s].ln_density(self.prior, stats, features, observations, j);
        at(to) - at(from)
    }

    /// From a state in which slot j holds nothing to one in which it is on somewhere, with log p_n / p_0 along the path. `None`
    /// if that ends nowhere.
    pub(super) fn birth(&self, from: &Moving<'_>, j: usize) -> Option<(Copied, f64)> {
        let Self { prior, levels, counts, .. } = self;
        let mut dictionary = from.dictionary.clone();
        let mut activations = from.activations.clone();
        let mut odds = from.odds.clone();
        // Where j is at level 0.
        let mut stream = self.key.stream(Site::Init, 0, 0, 0);
        let (on, off) = levels[0].mask;
        let logit = stream.logit_beta(on, off);
        let inclusion = 1.0 / (1.0 + (-logit).exp());
        for t in 0..counts.observations() {
            if stream.uniform() < inclusion {
                activations.set(j, t, Some(stored(stream.gamma(prior.c()) / prior.d())));
            }
        }
        dictionary.row_mut(j).fill(stored(0.0));
        dictionary.settle();
        let before = odds.logit().to_vec();
        odds.fill(|k| if k == j { logit } else { before[k] });
        let workspace = &mut *self.workers.workspace();
        let (mut gains, mut sum) = (Vec::with_capacity(levels.len()), 0.0);
        let last = levels.len() - 1;
        let others = shapes(prior, |k| in_model(from.odds, k));
        for s in 0..last {
            let conditionals = self.conditionals(s);
            conditionals.mask_and_counts(
                Allocation::Sampled,
                &dictionary,
                &mut activations,
                &odds,
                workspace,
            );
            let gain = self.gain(s, s + 1, &workspace.stats, j);
            sum += gain;
            gains.push(gain);
            if !gain.is_finite() || sum <= OUT_OF_REACH {
                return None;
            }
            let next = levels[s + 1];
            let rate = |k: usize| if k == j { next.rate } else { prior.b() };
            conditionals.dictionary(&workspace.stats, &mut dictionary, rate);
            conditionals.activations(&workspace.kept_shares, &dictionary, &mut activations);
            let shapes = |k: usize| if k == j { Some(next.mask) } else { others(k) };
            conditionals.odds(&workspace.stats.usage, &mut odds, shapes);
        }
        let conditionals = self.conditionals(last);
        conditionals.mask_and_counts(Allocation::Sampled, &dictionary, &mut activations, &odds, workspace);
        let back = gains.iter().rev().scan(0.0, |sum, gain| {
            *sum -= gain;
            Some(*sum)
        });
        let reachable = back.into_iter().all(|sum| sum > OUT_OF_REACH);
        let is_on = workspace.stats.usage[j] > 0.0;
        (reachable && is_on).then(|| (Copied { dictionary, activations, logit: odds.logit().to_vec() }, sum))
    }

    /// The reversal of a birth: from a state with slot j to one without, with log p_0 / p_n along the path. All components are
    /// taken in reverse, so that a sweep that ascends descends.
    pub(super) fn death(&self, from: &Moving<'_>, j: usize) -> Option<(Copied, f64)> {
        let Self { prior, levels, counts, .. } = self;
        let components = from.dictionary.components();
        let reverse: Vec<usize> = (0..components).rev().collect();
        let as_it_is = Copied {
            dictionary: from.dictionary.clone(),
            activations: from.activations.clone(),
            logit: from.odds.logit().to_vec(),
        };
        let Copied { mut dictionary, mut activations, logit } = as_it_is.selected(&reverse);
        let mut odds = Odds::new(logit);
        let at = components - 1 - j;
        let workspace = &mut *self.workers.workspace();
        let (mut gains, mut sum) = (Vec::with_capacity(levels.len()), 0.0);
        let last = levels.len() - 1;
        let others = shapes(prior, |k| in_model(from.odds, components - 1 - k));
        for s in (1..=last).rev() {
            let conditionals = self.conditionals(last - s);
            conditionals.mask_and_counts(
                Allocation::Sampled,
                &dictionary,
                &mut activations,
                &odds,
                workspace,
            );
            conditionals.activations(&workspace.kept_shares, &dictionary, &mut activations);
            workspace.sum_activations(counts, &activations);
            let gain = self.gain(s, s - 1, &workspace.stats, at);
            sum += gain;
            gains.push(gain);
            if !gain.is_finite() || sum <= OUT_OF_REACH {
                return None;
            }
            let next = levels[s - 1];
            let rate = |k: usize| if k == at { next.rate } else { prior.b() };
            conditionals.dictionary(&workspace.stats, &mut dictionary, rate);
            let shapes = |k: usize| if k == at { Some(next.mask) } else { others(k) };
            conditionals.odds(&workspace.stats.usage, &mut odds, shapes);
        }
        let conditionals = self.conditionals(last);
        conditionals.mask_and_counts(Allocation::Sampled, &dictionary, &mut activations, &odds, workspace);
        let back = gains.iter().rev().scan(0.0, |sum, gain| {
            *sum -= gain;
            Some(*sum)
        });
        if !back.into_iter().all(|sum| sum > OUT_OF_REACH) {
            return None;
        }
        for t in 0..counts.observations() {
            activations.set(at, t, None);
            // Its share at level 0 is nothing, so no column needs it, but for what single precision makes of nothing.
            if counts.column_totals()[t] > 0.0 && activations.column(t).iter().next().is_none() {
                return None;
            }
        }
        let there = Copied { dictionary, activations, logit: odds.logit().to_vec() };
        Some((there.selected(&reverse), sum))
    }
}
