//! The local half of a fit of blocks: from W and pi, the counts of a block and a key to sums, and to nothing that is carried on.
//!
//! The columns start afresh every time, as those of [`super::project`] do; then come sweeps of the exact sampler given W and pi,
//! and the sums are averages over the last of them. So a block can be worked on anywhere and by anybody, again if need be, and
//! the sums have the same bits.

use super::activations::Activations;
use super::dictionary::{Dictionary, stored};
use super::draws::{Place, draw_sites};
use super::gibbs::{FREEZE_EVERY, FromPrior};
use super::local::{Allocation, LocalStep, Workspace, portions};
use super::mask::{Odds, Sweep};
use super::scatter::{self, Scatter};
use crate::blocks::BlockStatistics;
use crate::counts::Counts;
use crate::error::Error;
use crate::meanfield::nmf::mixture;
use crate::noise::Noise;
use crate::random::{Key, Site};
use crate::search::coarsened;
use crate::statistics::Statistics;
use crate::workers::Workers;

/// Updates of the activations before the first sweep, all components on.
const UPDATES: usize = 8;

/// A component that explains less of a column than this at the start begins switched off.
const LEAST_SHARE: f64 = 0.02;

/// What the local half is given: W and pi as they were drawn, or their means, and what of the model is the same for all blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct Shared {
    /// In the units of the coarsened counts.
    pub(crate) dictionary: Dictionary,
    pub(crate) odds: Odds,
    /// The prior of H.
    pub(crate) shape: f64,
    pub(crate) rate: f64,
    pub(crate) coarsening: f64,
    pub(crate) noise: Noise,
    /// Whether counts are whole and are drawn; else they are shared out by their expectation.
    pub(crate) whole: bool,
}

/// How many sweeps the local half makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Sweeps that say nothing yet, at least one.
    pub burn_in: u32,
    /// Sweeps that are averaged, at least one.
    pub kept: u32,
}

/// Which block it is, and in which round: what the random numbers of the local half depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockKey {
    /// The seed of the fit.
    pub seed: u64,
    /// The round, from 0.
    pub round: u32,
    /// The number of the block, from 0.
    pub block: usize,
    /// Its place among the blocks of the round, from 0: by these the sums are added up.
    pub place: usize,
}

/// What the local half of a block gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Local {
    /// The sums over its columns.
    pub statistics: BlockStatistics,
    /// Mean of H S, component k of column t at `t * K + k`, in the units of the model. Empty unless asked for.
    pub activations: Vec<f32>,
    /// How often S was on, laid out the same way. Empty unless asked for.
    pub inclusion: Vec<f32>,
}

/// The columns with counts of a block while they are swept.
struct Columns<'a> {
    shared: &'a Shared,
    data: &'a Counts,
    key: Key,
    activations: Activations,
    scatter: Option<Scatter>,
}

/// Sums of the moments of H S over sweeps, and how often S was on, at `t * K + k`.
struct Means {
    masked: Vec<f32>,
    inclusion: Vec<f32>,
}

impl BlockKey {
    fn key(self) -> Key {
        Key::new(self.seed).derived(u64::from(self.round)).derived(self.block as u64)
    }
}

impl Shared {
    /// F.
    pub fn features(&self) -> usize {
        self.dictionary.features()
    }

    /// K.
    pub fn components(&self) -> usize {
        self.dictionary.components()
    }

    /// The local half: the sums of a block, and the means of its columns if `means` says so. It depends on nothing but what it is
    /// given, not on the workers.
    pub fn local(
        &self,
        counts: &Counts,
        key: BlockKey,
        effort: Effort,
        means: bool,
        workers: &Workers,
    ) -> Result<Local, Error> {
        self.check(counts, effort)?;
        let coarse = (self.coarsening < 1.0).then(|| coarsened(counts, self.coarsening));
        let all = coarse.as_ref().unwrap_or(counts);
        let (columns, components) = (all.observations(), self.components());
        let occupied: Vec<usize> = (0..columns).filter(|&t| all.column_totals()[t] > 0.0).collect();
        let sites = if means { columns * components } else { 0 };
        let mut local = Local {
            statistics: BlockStatistics::empty(self.features(), components, columns, occupied.len()),
            activations: vec![0.0; sites],
            inclusion: vec![0.0; sites],
        };
        if occupied.is_empty() || components == 0 {
            return Ok(local);
        }
        let fewer = (occupied.len() < columns).then(|| all.picked(&occupied));
        let data = fewer.as_ref().unwrap_or(all);
        let mut of_columns = means.then(|| Means {
            masked: vec![0.0; data.observations() * components],
            inclusion: vec![0.0; data.observations() * components],
        });
        let statistics = self.sample(data, key, effort, of_columns.as_mut(), workers);
        local.statistics.put(statistics);
        if let Some(Means { masked, inclusion }) = of_columns {
            let chunks = masked.chunks(components).zip(inclusion.chunks(components));
            for (&t, (masked, inclusion)) in occupied.iter().zip(chunks) {
                local.activations[t * components..][..components].copy_from_slice(masked);
                local.inclusion[t * components..][..components].copy_from_slice(inclusion);
            }
        }
        Ok(local)
    }

    /// Errors if this cannot be asked of the counts.
    fn check(&self, counts: &Counts, effort: Effort) -> Result<(), Error> {
        if counts.features() != self.features() {
            let (value, range) = (counts.features() as f64, "that of the fit");
            return Err(Error::BadOption { name: "number of features", value, range });
        }
        if effort.burn_in == 0 || effort.kept == 0 {
            return Err(Error::BadOption { name: "sweeps", value: 0.0, range: "at least 1" });
        }
        if self.whole { counts.require_whole("gibbs") } else { Ok(()) }
    }

    fn sample(
        &self,
        data: &Counts,
        key: BlockKey,
        Effort { burn_in, kept }: Effort,
        mut means: Option<&mut Means>,
        workers: &Workers,
    ) -> Statistics {
        let mut columns = Columns {
            shared: self,
            data,
            key: key.key(),
            activations: self.start(data, workers),
            scatter: Scatter::new(self.noise),
        };
        if let Some(scatter) = &mut columns.scatter {
            scatter.freeze(data, &self.dictionary, &columns.activations, workers);
        }
        let workspace = &mut *workers.workspace();
        workspace.begin();
        for iteration in 0..burn_in {
            if iteration > 0 && iteration.is_multiple_of(FREEZE_EVERY) {
                columns.refreeze(workers);
            }
            columns.sweep(iteration, true, None, workers, workspace);
        }
        columns.refreeze(workers);
        for iteration in burn_in..burn_in + kept {
            columns.sweep(iteration, iteration == burn_in, means.as_deref_mut(), workers, workspace);
            columns.put_right(workers, workspace);
        }
        workspace.finish(self.allocation(), &self.dictionary);
        workspace.stats.log_likelihood -= f64::from(kept) * data.ln_factorials();
        workspace.stats.divide(f64::from(kept));
        if let Some(Means { masked, inclusion }) = means {
            let scale = 1.0 / kept as f32;
            masked.iter_mut().chain(inclusion).for_each(|sum| *sum *= scale);
        }
        workspace.keep(key.place);
        workspace.take_kept()
    }

    fn allocation(&self) -> Allocation {
        if self.whole { Allocation::Sampled } else { Allocation::Expected }
    }

    /// Where the columns start: activations that explain each with all components on, and of those the ones that matter.
    fn start(&self, data: &Counts, workers: &Workers) -> Activations {
        let components = self.components();
        let columns = workers.map(0..data.observations(), |t| {
            let entries: Vec<(usize, f64)> = data.column(t).positive().collect();
            let sums: Vec<f64> =
                (0..components).map(|k| self.dictionary.observed_sum(k, data.unexposed(t))).collect();
            let x: Vec<f64> = entries.iter().map(|(_, x)| *x).collect();
            let mut rows = vec![0.0; components * x.len()];
            for (k, row) in rows.chunks_mut(x.len()).enumerate().filter(|(k, _)| sums[*k] > 0.0) {
                let w = self.dictionary.row(k);
                row.iter_mut().zip(&entries).for_each(|(to, &(f, _))| *to = f64::from(w[f]) / sums[k]);
            }
            let explained = mixture(&x, rows, UPDATES, workers.simd);
            let total = data.column_totals()[t];
            let largest = (0..components).max_by(|&i, &j| explained[i].total_cmp(&explained[j]));
            let on = |&k: &usize| explained[k] >= LEAST_SHARE * total || Some(k) == largest;
            // What has nothing where something was observed cannot explain it.
            let h = |k: usize| if sums[k] > 0.0 { explained[k] / sums[k] } else { 0.0 };
            (0..components).filter(on).map(|k| (k, stored(h(k)))).collect::<Vec<_>>()
        });
        let mut activations = Activations::new(components, data.observations());
        for (t, column) in columns.iter().enumerate() {
            column.iter().for_each(|&(k, h)| activations.set(k, t, Some(h)));
        }
        activations
    }
}

impl Columns<'_> {
    /// Sets the dispersions by the rates as they stand.
    fn refreeze(&mut self, workers: &Workers) {
        if let Some(scatter) = &mut self.scatter {
            scatter.freeze(self.data, &self.shared.dictionary, &self.activations, workers);
        }
    }

    /// One sweep: L if counts scatter, then S, Z and H. The sums are added to those in `workspace`, unless it is to `clear`
    /// them before; the moments of H S given Z to `means`.
    fn sweep(
        &mut self,
        iteration: u32,
        clear: bool,
        mut means: Option<&mut Means>,
        workers: &Workers,
        workspace: &mut Workspace,
    ) {
        let Shared { dictionary, odds, shape, rate, .. } = self.shared;
        let (key, allocation) = (self.key, self.shared.allocation());
        if let Some(scatter) = &mut self.scatter {
            let place = scatter::Place { key, iteration, allocation };
            scatter.redraw(self.data, dictionary, &self.activations, place, workers);
        }
        let counts = self.scatter.as_ref().and_then(Scatter::latent).unwrap_or(self.data);
        let (components, tiles) = (dictionary.components(), self.activations.tiles());
        if clear {
            workspace.start(counts, dictionary);
        }
        for columns in portions(counts, 0..counts.observations(), workers) {
            let proposal = FromPrior { key, iteration, shape: *shape, rate: *rate };
            let local = LocalStep {
                sweep: Sweep { counts, dictionary, odds, proposal: &proposal, key, number: 0 },
                sweeps: 1,
                allocation,
                iteration,
            };
            local.run(columns.clone(), &mut self.activations, workers, workspace);
            let first = columns.start;
            let shape = |t: usize, k: usize| shape + workspace.shares[(t - first) * components + k];
            let rate = |t: usize, k: usize| rate + dictionary.observed_sum(k, counts.unexposed(t));
            if let Some(Means { masked, inclusion }) = &mut means {
                for t in columns.clone() {
                    for (k, _) in self.activations.column(t).iter() {
                        masked[t * components + k] += (shape(t, k) / rate(t, k)) as f32;
                        inclusion[t * components + k] += 1.0;
                    }
                }
            }
            let place = Place { simd: workers.simd, key, site: Site::Activation, iteration, i: first as u32 };
            let (on, values) = self.activations.columns_mut(first, columns.end);
            draw_sites(place, tiles, on, values, shape, rate);
        }
    }

    /// What the sums over L lack to be those over X.
    fn put_right(&self, workers: &Workers, workspace: &mut Workspace) {
        if let Some(scatter) = &self.scatter {
            let (dictionary, columns) = (&self.shared.dictionary, 0..self.data.observations());
            let Workspace { stats, column_sums, .. } = workspace;
            scatter.put_right(self.data, dictionary, &self.activations, columns, stats, column_sums, workers);
        }
    }
}
