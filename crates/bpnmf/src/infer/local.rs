//! The local step of every engine: sweep the mask, then allocate the counts, column by column.
//!
//! The columns of a block are handled in portions. Within a portion threads take columns; the sums over columns are then taken
//! by components, each in the order of the columns. So neither threads nor the size of a portion change a bit. The sums of
//! blocks become [`Statistics`].

use super::activations::Activations;
pub(crate) use super::allocate::Allocation;
use super::allocate::{self, Allocated, TOGETHER, Task, add_up, add_up_drawn, share};
use super::dictionary::Dictionary;
use super::mask::{self, MOST_COLUMNS, Proposal, Sweep, Tiers, compact, sweep};
use super::scatter;
use crate::counts::Counts;
use crate::kernel::doubles::{Line, flat_lines};
use crate::kernel::{LANES, Tile};
use crate::statistics::{Statistics, Sums, blocks_of};
use crate::workers::Workers;
use core::ops::Range;

/// Columns that one thread takes at a time: the widest group of the sweep.
pub(crate) const GROUP: usize = MOST_COLUMNS;

/// A local step: what to sweep, how often, and how to allocate.
#[derive(Clone, Copy)]
pub(crate) struct LocalStep<'a, P> {
    pub(crate) sweep: Sweep<'a, P>,
    /// Sweeps before the allocation.
    pub(crate) sweeps: u32,
    pub(crate) allocation: Allocation,
    /// Counts the iterations of a run.
    pub(crate) iteration: u32,
}

/// Buffers of the local step, allocated once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Workspace {
    /// Of the block at hand; after [`Self::total`] of all blocks.
    pub(crate) stats: Sums,
    /// The blocks that are done.
    statistics: Statistics,
    /// Sums that nobody needs, for their memory.
    spare: Vec<Sums>,
    columns: Vec<Allocated>,
    /// What becomes `stats.allocated` once it is multiplied by W: two lines for every tile of features, component after
    /// component. Not if counts are drawn.
    sums: Vec<Line>,
    /// sum over f of Z_ftk for the columns of the portion, at `(t - from) * K + k`; only sites that are on mean anything.
    pub(crate) shares: Vec<f64>,
    /// The same for all columns, for the engine that needs them after W.
    pub(crate) kept_shares: Vec<f64>,
    /// A sum of every column.
    pub(crate) column_sums: Vec<f64>,
}

/// Memory of one thread, allocated once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scratch {
    sweep: mask::Scratch,
    allocate: allocate::Scratch,
    pub(super) scatter: scatter::Scratch,
}

impl Workspace {
    /// Forgets all blocks, those of an iteration that came to no end, too.
    pub(crate) fn begin(&mut self) {
        let left = self.statistics.take(&mut self.spare);
        self.spare.extend(left);
    }

    /// Clears the sums for the next block.
    pub(crate) fn start(&mut self, counts: &Counts, dictionary: &Dictionary) {
        self.stats.clear(counts.features(), dictionary.components(), counts.has_missing());
        self.sums.clear();
        self.sums.resize(dictionary.components() * lines_of(counts), Line::ZERO);
    }

    /// The components that are on in the columns of the last portion, with their activation.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[(usize, f32)]> {
        self.columns.iter().map(|column| &column.parts[..])
    }

    /// Completes the sums after the last portion of a block.
    pub(crate) fn finish(&mut self, allocation: Allocation, dictionary: &Dictionary) {
        let components = dictionary.components();
        let features = self.stats.allocated.len() / components;
        if allocation == Allocation::Expected {
            let rows = self.stats.allocated.chunks_mut(features);
            for (k, (row, sums)) in rows.zip(self.sums.chunks(self.sums.len() / components)).enumerate() {
                for ((out, &sum), &w) in row.iter_mut().zip(flat_lines(sums)).zip(dictionary.row(k)) {
                    *out = sum * f64::from(w);
                }
            }
        }
    }
}

impl Workspace {
    /// Keeps the sums of a block that is complete.
    pub(crate) fn keep(&mut self, block: usize) {
        let next = self.spare.pop().unwrap_or_default();
        self.statistics.insert(block, core::mem::replace(&mut self.stats, next), &mut self.spare);
    }

    /// Takes out the blocks that were kept so far.
    pub(crate) fn take_kept(&mut self) -> Statistics {
        core::mem::take(&mut self.statistics)
    }

    /// Keeps blocks that were taken out.
    #[cfg(test)]
    pub(crate) fn keep_all(&mut self, statistics: Statistics) {
        self.statistics.add(statistics, &mut self.spare);
    }

    /// Adds up the blocks that were kept.
    pub(crate) fn total(&mut self) {
        if let Some(total) = self.statistics.take(&mut self.spare) {
            self.spare.push(core::mem::replace(&mut self.stats, total));
        }
    }

    /// Keeps what the columns of a portion were given, for the half of an iteration that comes after W.
    pub(crate) fn keep_shares(&mut self, columns: Range<usize>, components: usize) {
        let at = columns.start * components..columns.end * components;
        if self.kept_shares.len() < at.end {
            self.kept_shares.resize(at.end, 0.0);
        }
        self.kept_shares[at].copy_from_slice(&self.shares);
    }

    /// Takes the sums of H over all columns anew.
    pub(crate) fn sum_activations(&mut self, counts: &Counts, activations: &Activations) {
        self.begin();
        for (block, columns) in blocks_of(0..counts.observations()) {
            let mut sums = self.spare.pop().unwrap_or_default();
            sums.clear(counts.features(), activations.components(), counts.has_missing());
            sums.sum_activations(counts, activations, columns);
            self.statistics.insert(block, sums, &mut self.spare);
        }
        if let Some(mut total) = self.statistics.take(&mut self.spare) {
            self.stats.swap_activations(&mut total);
            self.spare.push(total);
        }
    }
}

/// Lines of the sums of one component.
fn lines_of(counts: &Counts) -> usize {
    2 * counts.features().div_ceil(LANES)
}

/// Cuts the columns of a block into portions: enough columns for every thread, few enough to stay in cache, and whole runs of those that
/// are added up together.
pub(crate) fn portions(
    counts: &Counts,
    columns: Range<usize>,
    workers: &Workers,
) -> impl Iterator<Item = Range<usize>> {
    let entries =
        if compact(counts) { counts.nonzeros().div_ceil(counts.observations()) } else { counts.features() };
    let fitting =
        (80_000 / entries.max(1)).clamp(TOGETHER, 16 * GROUP) / TOGETHER * TOGETHER * workers.threads();
    let portion = workers.block.unwrap_or(fitting).max(1).next_multiple_of(TOGETHER);
    columns.clone().step_by(portion).map(move |from| from..(from + portion).min(columns.end))
}

impl<P: Proposal> LocalStep<'_, P> {
    /// Sweeps and allocates a portion of columns and adds it to the sums of `workspace`.
    pub(crate) fn run(
        &self,
        columns: Range<usize>,
        activations: &mut Activations,
        workers: &Workers,
        workspace: &mut Workspace,
    ) {
        let counts = self.sweep.counts;
        let components = activations.components();
        let tiles = activations.tiles();
        let (from, to) = (columns.start, columns.end);
        let Workspace { stats, columns: done, sums, shares, .. } = workspace;
        if done.len() < columns.len() {
            done.resize_with(columns.len(), Allocated::default);
        }
        let done = &mut done[..columns.len()];
        shares.resize(columns.len() * components, 0.0);

        let (on, values) = activations.columns_mut(from, to);
        let groups = on
            .chunks_mut(GROUP * tiles)
            .zip(values.chunks_mut(GROUP * tiles))
            .zip(done.chunks_mut(GROUP))
            .zip(shares.chunks_mut(GROUP * components))
            .enumerate();
        workers.for_each(groups, |(group, (((on, values), done), shares)), scratch| {
            self.columns(workers, from + group * GROUP, on, values, done, shares, scratch);
        });
        let features = counts.features();
        let many = components.div_ceil(workers.threads());
        let rows = stats.allocated.chunks_mut(many * features).zip(sums.chunks_mut(many * lines_of(counts)));
        workers.for_each(rows.enumerate(), |(part, (rows, sums)), scratch| match self.allocation {
            Allocation::Expected => {
                add_up(workers.simd, counts, sums, part * many, done, &mut scratch.allocate);
            }
            Allocation::Sampled => add_up_drawn(workers.simd, features, part * many, rows, done),
        });
        if counts.has_missing() {
            let rows = stats.unseen_mut().chunks_mut(many * features).enumerate();
            workers.for_each(rows, |(part, rows), _| {
                let mine = part * many..part * many + rows.len() / features;
                for (column, t) in done.iter().zip(from..to) {
                    for &(k, h) in column.parts.iter().filter(|(k, _)| mine.contains(k)) {
                        let row = &mut rows[(k - mine.start) * features..][..features];
                        counts.unexposed(t).iter().for_each(|(f, lost)| row[f] += f64::from(h) * lost);
                    }
                }
            });
        }
        for column in done {
            for &(k, h) in &column.parts {
                stats.activation[k] += f64::from(h);
                stats.usage[k] += 1.0;
            }
            stats.log_likelihood += column.log_likelihood;
            stats.ln_activation += column.ln_activation;
            stats.tiers.add(&column.tiers);
        }
    }

    /// Sweeps the columns from `from` on and gives their counts out; nothing is added up.
    pub(super) fn columns(
        &self,
        workers: &Workers,
        from: usize,
        on: &mut [u16],
        values: &mut [Tile],
        done: &mut [Allocated],
        shares: &mut [f64],
        scratch: &mut Scratch,
    ) {
        let mut tiers = Tiers::default();
        scratch.sweep.set_keeps_scores(self.allocation == Allocation::Expected);
        for inner in 0..self.sweeps {
            let job = Sweep { number: self.iteration * self.sweeps + inner, ..self.sweep };
            tiers.add(&sweep(workers.simd, &job, from, on, values, &mut scratch.sweep));
        }
        let Sweep { counts, dictionary, key, .. } = self.sweep;
        let task = Task { counts, dictionary, allocation: self.allocation, key, iteration: self.iteration };
        let works = scratch.sweep.columns_mut();
        share(workers.simd, task, from, works, on, values, done, shares, &mut scratch.allocate);
        for column in done {
            // The whole group's tiers go with its first column.
            column.tiers = core::mem::take(&mut tiers);
        }
    }
}
