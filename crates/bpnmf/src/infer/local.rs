//! The local step of every engine: sweep the mask, then allocate the counts, column by column.
//!
//! Columns are handled in blocks. Within a block threads take columns; the sums over columns are then taken by
//! components, each in the order of the columns. So neither threads nor the size of a block change a bit.

use super::activations::{Activations, ActiveColumn, ones};
use super::dictionary::Dictionary;
use super::mask::{MOST_COLUMNS, Proposal, Scratch, Sweep, Tiers, compact, sweep};
use crate::counts::{Column, Counts};
use crate::kernel::exact::{Doubles, add_scaled, dot, sum_x_ln};
use crate::kernel::{LANES, Lanes, Tile, dispatch, flat};
use crate::random::Site;
use crate::special::ln;
use crate::stats::SuffStats;
use crate::workers::Workers;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

/// Columns that one thread takes at a time: the widest group of the sweep.
const GROUP: usize = MOST_COLUMNS;

/// A stream is long but not endless: a column with many features uses several.
const FEATURES_TO_A_STREAM: usize = 1 << 12;

/// Features whose sums are taken at once.
const WIDTH: usize = 32;

/// How the counts of an entry are shared among the components that are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allocation {
    /// By their expectation X phi.
    Expected,
    /// By a multinomial draw.
    Sampled,
}

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
    pub(crate) stats: SuffStats,
    pub(crate) tiers: Tiers,
    columns: Vec<Allocated>,
    /// sum over f of Z_ftk for the columns of the block, at `(t - from) * K + k`; only sites that are on mean anything.
    pub(crate) shares: Vec<f64>,
    /// The same for all columns, for the engine that needs them after W.
    pub(crate) kept_shares: Vec<f64>,
}

/// What a column leaves behind for the sums over columns.
#[derive(Debug, Clone, Default)]
struct Allocated {
    /// Features of the entries if only the positive ones are held, else empty.
    rows: Vec<u32>,
    x: Vec<f64>,
    /// Xhat and X / Xhat at the entries.
    rate: Vec<f64>,
    ratio: Vec<f64>,
    parts: Vec<(usize, f32)>,
    gathered: Vec<f32>,
    log_likelihood: f64,
    ln_activation: f64,
    tiers: Tiers,
}

impl Workspace {
    /// Clears the sums.
    pub(crate) fn start(&mut self, features: usize, components: usize) {
        self.stats.clear(features, components);
        self.tiers = Tiers::default();
    }

    /// Completes the sums after the last block.
    pub(crate) fn finish(&mut self, allocation: Allocation, dictionary: &Dictionary) {
        let components = dictionary.components();
        let features = self.stats.allocated.len() / components;
        match allocation {
            Allocation::Expected => {
                for (k, row) in self.stats.allocated.chunks_mut(features).enumerate() {
                    for (sum, &w) in row.iter_mut().zip(dictionary.row(k)) {
                        *sum *= f64::from(w);
                    }
                }
            }
            Allocation::Sampled => from_integers(&mut self.stats.allocated),
        }
    }
}

/// Cuts `columns` into blocks: enough columns for every thread, few enough to stay in cache.
pub(crate) fn blocks(
    counts: &Counts,
    columns: Range<usize>,
    workers: &Workers,
) -> impl Iterator<Item = Range<usize>> {
    let entries =
        if compact(counts) { counts.nonzeros().div_ceil(counts.observations()) } else { counts.features() };
    let fitting = (64_000 / entries.max(1)).clamp(GROUP, 16 * GROUP) / GROUP * GROUP * workers.threads();
    let block = workers.block.unwrap_or(fitting);
    columns.clone().step_by(block).map(move |from| from..(from + block).min(columns.end))
}

impl<P: Proposal> LocalStep<'_, P> {
    /// Sweeps and allocates a block of columns and adds it to the sums of `workspace`.
    pub(crate) fn run(
        &self,
        columns: Range<usize>,
        activations: &mut Activations,
        workers: &Workers,
        workspace: &mut Workspace,
    ) {
        let features = self.sweep.counts.features();
        let components = activations.components();
        let tiles = activations.tiles();
        let (from, to) = (columns.start, columns.end);
        let Workspace { stats, tiers, columns: done, shares, .. } = workspace;
        if done.len() < columns.len() {
            done.resize_with(columns.len(), Allocated::default);
        }
        let done = &mut done[..columns.len()];
        shares.resize(columns.len() * components, 0.0);

        let (on, values) = activations.columns_mut(from, to);
        let counted = as_integers(&mut stats.allocated);
        let groups = on
            .chunks_mut(GROUP * tiles)
            .zip(values.chunks_mut(GROUP * tiles))
            .zip(done.chunks_mut(GROUP))
            .zip(shares.chunks_mut(GROUP * components))
            .enumerate();
        workers.for_each(groups, |(group, (((on, values), done), shares)), scratch| {
            self.columns(workers, from + group * GROUP, on, values, done, shares, counted, scratch);
        });
        if self.allocation == Allocation::Expected {
            let rows = stats.allocated.chunks_mut(LANES * features);
            workers.for_each(rows.enumerate(), |(tile, rows), _| {
                add_up(workers.simd, rows, features, tile, from..to, activations, done);
            });
        }
        for (column, t) in done.iter().zip(from..to) {
            for (k, h) in activations.column(t).iter() {
                stats.activation[k] += f64::from(h);
                stats.usage[k] += 1.0;
            }
            stats.log_likelihood += column.log_likelihood;
            stats.ln_activation += column.ln_activation;
            tiers.add(&column.tiers);
        }
    }

    fn columns(
        &self,
        workers: &Workers,
        from: usize,
        on: &mut [u16],
        values: &mut [Tile],
        done: &mut [Allocated],
        shares: &mut [f64],
        counted: &[AtomicU64],
        scratch: &mut Scratch,
    ) {
        let tiles = on.len() / done.len();
        let components = self.sweep.dictionary.components();
        let mut tiers = Tiers::default();
        for inner in 0..self.sweeps {
            let job = Sweep { number: self.iteration * self.sweeps + inner, ..self.sweep };
            tiers.add(&sweep(workers.simd, &job, from, on, values, scratch));
        }
        for (c, (column, shares)) in done.iter_mut().zip(shares.chunks_mut(components)).enumerate() {
            // The whole group's tiers go with its first column.
            column.tiers = core::mem::take(&mut tiers);
            let at = c * tiles..(c + 1) * tiles;
            let active = ActiveColumn { on: &on[at.clone()], values: flat(&values[at]) };
            share(workers.simd, self, from + c, active, column, shares);
            if self.allocation == Allocation::Sampled {
                self.sample(workers.threads() == 1, from + c, column, shares, counted);
            }
        }
    }

    /// Draws Z_ft. ~ Multinomial(X_ft, phi) for a column.
    fn sample(&self, alone: bool, t: usize, column: &Allocated, shares: &mut [f64], counted: &[AtomicU64]) {
        let features = self.sweep.counts.features();
        let dictionary = self.sweep.dictionary;
        let parts = &column.parts;
        for &(k, _) in parts {
            shares[k] = 0.0;
        }
        let mut give = |k: usize, f: usize, count: u64| {
            shares[k] += count as f64;
            let cell = &counted[k * features + f];
            if alone {
                cell.store(cell.load(Ordering::Relaxed) + count, Ordering::Relaxed);
            } else {
                cell.fetch_add(count, Ordering::Relaxed);
            }
        };
        let mut part = 0;
        let mut stream = self.sweep.key.stream(Site::Allocation, self.iteration, t as u32, 0);
        for i in 0..column.x.len() {
            let mut left = column.x[i] as u64;
            if left == 0 {
                continue;
            }
            let f = if column.rows.is_empty() { i } else { column.rows[i] as usize };
            if f / FEATURES_TO_A_STREAM != part {
                part = f / FEATURES_TO_A_STREAM;
                stream = self.sweep.key.stream(Site::Allocation, self.iteration, t as u32, part as u32);
            }
            if let [(k, _)] = parts[..] {
                give(k, f, left);
                continue;
            }
            let weight = |k: usize, h: f32| f64::from(dictionary.row(k)[f]) * f64::from(h);
            if left <= 2 * parts.len() as u64 {
                // One count at a time.
                for _ in 0..left {
                    let mut point = stream.uniform() * column.rate[i];
                    let mut chosen = usize::MAX;
                    for &(k, h) in parts {
                        chosen = k;
                        point -= weight(k, h);
                        if point < 0.0 {
                            break;
                        }
                    }
                    give(chosen, f, 1);
                }
            } else {
                // One component at a time: binomial of what is left.
                let mut rate = column.rate[i];
                let mut last = usize::MAX;
                for &(k, h) in parts {
                    last = k;
                    let own = weight(k, h);
                    let count = stream.binomial(left, own / rate);
                    if count > 0 {
                        give(k, f, count);
                        left -= count;
                        if left == 0 {
                            break;
                        }
                    }
                    rate -= own;
                }
                if left > 0 {
                    // Rounding left a crumb of probability behind the last component: it is the last one's.
                    give(last, f, left);
                }
            }
        }
    }
}

dispatch! {
    /// The rate of a column anew, its ratio, its log-likelihood, and the expected counts of every component.
    fn share [P: Proposal] (
        step: &LocalStep<'_, P>, t: usize, active: ActiveColumn<'_>, out: &mut Allocated, shares: &mut [f64],
    ) = share_column
}

#[inline(always)]
fn share_column<P: Proposal, V: Doubles>(
    step: &LocalStep<'_, P>,
    t: usize,
    active: ActiveColumn<'_>,
    out: &mut Allocated,
    shares: &mut [f64],
) {
    let dictionary = step.sweep.dictionary;
    active.list(&mut out.parts);
    out.load(step.sweep.counts, t);
    let (mut expected, mut ln_activation) = (0.0, 0.0);
    for &(k, h) in &out.parts {
        expected += f64::from(h) * dictionary.sum(k);
        ln_activation += ln(f64::from(h));
    }
    out.ln_activation = ln_activation;
    // W at the entries of the column: its own rows, or gathered once for the three passes below.
    let entries = out.x.len();
    let gathered = compact(step.sweep.counts);
    if gathered {
        out.gathered.resize(out.parts.len() * entries, 0.0);
        for (&(k, _), into) in out.parts.iter().zip(out.gathered.chunks_exact_mut(entries.max(1))) {
            let row = dictionary.row(k);
            for (into, &f) in into.iter_mut().zip(&out.rows) {
                *into = row[f as usize];
            }
        }
    }
    let all_gathered = &out.gathered;
    let row = |i: usize| {
        if gathered { &all_gathered[i * entries..(i + 1) * entries] } else { dictionary.row(out.parts[i].0) }
    };
    for (chunk, rate) in out.rate.chunks_mut(WIDTH).enumerate() {
        let at = chunk * WIDTH;
        let width = rate.len();
        if let Ok(rate) = <&mut [f64; WIDTH]>::try_from(&mut *rate) {
            // A few entries of all components at a time, so that their sums stay in registers.
            let mut sums = [0.0; WIDTH];
            for (i, &(_, h)) in out.parts.iter().enumerate() {
                add_scaled::<V>(&mut sums, &row(i)[at..at + WIDTH], h);
            }
            *rate = sums;
        } else {
            rate.fill(0.0);
            for (i, &(_, h)) in out.parts.iter().enumerate() {
                add_scaled::<V>(rate, &row(i)[at..at + width], h);
            }
        }
    }
    out.log_likelihood = sum_x_ln::<V>(&out.x, &out.rate) - expected;
    for ((ratio, &x), &rate) in out.ratio.iter_mut().zip(&out.x).zip(&out.rate) {
        let quotient = x / rate;
        *ratio = if x > 0.0 { quotient } else { 0.0 };
    }
    if step.allocation == Allocation::Expected {
        for (i, &(k, h)) in out.parts.iter().enumerate() {
            shares[k] = f64::from(h) * dot::<V>(&out.ratio, row(i));
        }
    }
}

impl Allocated {
    /// Takes up the entries of column `t`.
    #[inline(always)]
    fn load(&mut self, counts: &Counts, t: usize) {
        self.rows.clear();
        self.x.clear();
        match counts.column(t) {
            Column::Dense(values) if !compact(counts) => self.x.extend_from_slice(values),
            Column::Sparse(rows, values) if compact(counts) => {
                self.rows.extend_from_slice(rows);
                self.x.extend_from_slice(values);
            }
            column if compact(counts) => {
                for (f, value) in column.positive() {
                    self.rows.push(f as u32);
                    self.x.push(value);
                }
            }
            column => {
                self.x.resize(counts.features(), 0.0);
                for (f, value) in column.positive() {
                    self.x[f] = value;
                }
            }
        }
        self.rate.resize(self.x.len(), 0.0);
        self.ratio.resize(self.x.len(), 0.0);
    }
}

dispatch! {
    /// rows[k] += sum over the columns of ratio h, for the sixteen components of a tile, in the order of the columns.
    fn add_up [] (
        rows: &mut [f64], features: usize, tile: usize, columns: Range<usize>, activations: &Activations,
        done: &[Allocated],
    ) = add_up_tile
}

#[inline(always)]
fn add_up_tile<V: Lanes>(
    rows: &mut [f64],
    features: usize,
    tile: usize,
    columns: Range<usize>,
    activations: &Activations,
    done: &[Allocated],
) {
    if !done[0].rows.is_empty() || done[0].x.is_empty() {
        for (t, column) in columns.zip(done) {
            let active = activations.column(t);
            for lane in ones(&active.on[tile..tile + 1]) {
                let h = f64::from(active.values[tile * LANES + lane]);
                let sums = &mut rows[lane * features..][..features];
                for (&f, &ratio) in column.rows.iter().zip(&column.ratio) {
                    sums[f as usize] += ratio * h;
                }
            }
        }
        return;
    }
    // A few features of all columns stay in the first cache while all components pass, their sums in registers.
    let whole = features / WIDTH * WIDTH;
    for from in (0..whole).step_by(WIDTH) {
        for (lane, row) in rows.chunks_mut(features).enumerate() {
            let row: &mut [f64; WIDTH] = (&mut row[from..from + WIDTH]).try_into().expect("WIDTH values");
            let mut sums = *row;
            for (t, column) in columns.clone().zip(done) {
                let active = activations.column(t);
                if active.on[tile] >> lane & 1 == 1 {
                    let ratio: &[f64; WIDTH] =
                        (&column.ratio[from..from + WIDTH]).try_into().expect("WIDTH values");
                    let h = f64::from(active.values[tile * LANES + lane]);
                    for i in 0..WIDTH {
                        sums[i] += ratio[i] * h;
                    }
                }
            }
            *row = sums;
        }
    }
    for (t, column) in columns.zip(done) {
        let active = activations.column(t);
        for lane in ones(&active.on[tile..tile + 1]) {
            let h = f64::from(active.values[tile * LANES + lane]);
            let rest = &mut rows[lane * features..][whole..features];
            for (sum, &ratio) in rest.iter_mut().zip(&column.ratio[whole..]) {
                *sum += ratio * h;
            }
        }
    }
}

/// The sums as integers to add whole counts to: exact, so the order of the threads does not matter. They start as
/// 0.0, whose bits are 0.
fn as_integers(sums: &mut [f64]) -> &[AtomicU64] {
    // SAFETY: f64 and AtomicU64 have the same size and alignment, every bit pattern is valid for both, and the
    // exclusive borrow lasts as long as the view.
    unsafe { core::slice::from_raw_parts(sums.as_mut_ptr().cast::<AtomicU64>(), sums.len()) }
}

/// Turns those integers back into numbers.
fn from_integers(sums: &mut [f64]) {
    for sum in sums {
        *sum = sum.to_bits() as f64;
    }
}
