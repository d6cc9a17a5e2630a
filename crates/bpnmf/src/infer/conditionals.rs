//! The complete conditionals of the exact sampler, each drawn for all components at once. They know no order: an iteration
//! and a jump put them together as they need.

use super::activations::Activations;
use super::dictionary::Dictionary;
use super::draws::{Place, draw_row, draw_sites};
use super::gibbs::FromPrior;
use super::local::{Allocation, GROUP, LocalStep, Workspace, portions};
use super::mask::{Odds, Sweep};
use crate::counts::Counts;
use crate::kernel::flat_mut;
use crate::prior::CheckedPrior;
use crate::random::{Key, Site};
use crate::statistics::{Sums, blocks_of};
use crate::workers::Workers;
use core::ops::Range;

/// What the draws of one iteration have in common.
#[derive(Clone, Copy)]
pub(super) struct Conditionals<'a> {
    pub(super) counts: &'a Counts,
    pub(super) prior: &'a CheckedPrior,
    pub(super) key: Key,
    pub(super) iteration: u32,
    pub(super) workers: &'a Workers,
}

impl Conditionals<'_> {
    /// S with Z summed out, in the order of the components, and then Z, of all columns: leaves the sums over columns in
    /// `workspace`, and those over features in `kept_shares`.
    pub(super) fn mask_and_counts(
        &self,
        allocation: Allocation,
        dictionary: &Dictionary,
        activations: &mut Activations,
        odds: &Odds,
        workspace: &mut Workspace,
    ) {
        workspace.begin();
        for (block, columns) in blocks_of(0..self.counts.observations()) {
            self.mask_and_counts_of(columns, allocation, dictionary, activations, odds, workspace);
            workspace.keep(block);
        }
        workspace.total();
    }

    /// The same of the columns of a block.
    pub(super) fn mask_and_counts_of(
        &self,
        columns: Range<usize>,
        allocation: Allocation,
        dictionary: &Dictionary,
        activations: &mut Activations,
        odds: &Odds,
        workspace: &mut Workspace,
    ) {
        let Self { counts, prior, key, iteration, workers } = *self;
        let proposal = FromPrior { key, iteration, shape: prior.c(), rate: prior.d() };
        let local = LocalStep {
            sweep: Sweep { counts, dictionary, odds, proposal: &proposal, key, number: 0 },
            sweeps: 1,
            allocation,
            iteration,
        };
        workspace.start(counts, dictionary);
        for columns in portions(counts, columns, workers) {
            local.run(columns.clone(), activations, workers, workspace);
            workspace.keep_shares(columns, dictionary.components());
        }
        workspace.finish(allocation, dictionary);
    }

    /// W given Z, H and S. `rate` is that of the prior of a component.
    pub(super) fn dictionary(
        &self,
        stats: &Sums,
        dictionary: &mut Dictionary,
        rate: impl Fn(usize) -> f64 + Sync + Send,
    ) {
        let Self { prior, key, iteration, workers, .. } = *self;
        let features = dictionary.features();
        workers.for_each(dictionary.rows_mut().enumerate(), |(k, row), _| {
            let rate_of = rate(k);
            let rate = |f: usize| rate_of + stats.observed_activation(k, k * features + f);
            let allocated = &stats.allocated[k * features..];
            let place = Place { simd: workers.simd, key, site: Site::Dictionary, iteration, i: k as u32 };
            draw_row(place, &mut flat_mut(row)[..features], |f| prior.a() + allocated[f], rate);
        });
        dictionary.settle();
    }

    /// H where S is on, given Z and W, of all columns. `shares` is the sum over f of Z_ftk at `t * K + k`.
    pub(super) fn activations(&self, shares: &[f64], dictionary: &Dictionary, activations: &mut Activations) {
        self.activations_of(0..self.counts.observations(), shares, dictionary, activations);
    }

    /// The same of the columns of a block.
    pub(super) fn activations_of(
        &self,
        columns: Range<usize>,
        shares: &[f64],
        dictionary: &Dictionary,
        activations: &mut Activations,
    ) {
        let Self { counts, prior, key, iteration, workers } = *self;
        let (components, tiles) = (dictionary.components(), activations.tiles());
        let (on, values) = activations.columns_mut(columns.start, columns.end);
        let groups = on.chunks(GROUP * tiles).zip(values.chunks_mut(GROUP * tiles)).enumerate();
        workers.for_each(groups, |(group, (on, values)), _| {
            let i = (columns.start + group * GROUP) as u32;
            let place = Place { simd: workers.simd, key, site: Site::Activation, iteration, i };
            let shape = |t: usize, k: usize| prior.c() + shares[t * components + k];
            let rate = |t: usize, k: usize| prior.d() + dictionary.observed_sum(k, counts.unexposed(t));
            draw_sites(place, tiles, on, values, shape, rate);
        });
    }

    /// logit(pi) given S. `usage` is the sum over t of S_kt, `shapes` those of the prior of a component; a component that is
    /// not in the model has none.
    pub(super) fn odds(&self, usage: &[f64], odds: &mut Odds, shapes: impl Fn(usize) -> Option<(f64, f64)>) {
        let observations = self.counts.observations() as f64;
        odds.fill(|k| {
            let Some((on, off)) = shapes(k) else { return NEVER };
            self.key
                .stream(Site::Inclusion, self.iteration, 0, k as u32)
                .logit_beta(on + usage[k], off + observations - usage[k])
        });
    }
}

/// logit(pi) of what must stay off: no count can outweigh it, and it is in the range of single precision.
pub(super) const NEVER: f64 = -1e30;
