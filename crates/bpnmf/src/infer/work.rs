//! The column a sweep is working on, in single precision: what the bounds read. The truth is never kept but summed anew
//! when a decision needs it, so that rounding which builds up over flips cannot decide anything.

use super::activations::ActiveColumn;
use super::dictionary::Dictionary;
use crate::counts::{Column, Counts};
use crate::kernel::exact::add_scaled;
use crate::kernel::{LANES, Lanes, Tile, flat_mut};
use crate::special::ln_1p;

/// Beyond this relative error the running rate is built anew.
const RATE_ERROR: f32 = 3e-5;

/// Half a unit in the last place.
const ROUNDING: f32 = f32::EPSILON / 2.0;

/// Rates above this, or below one over it, are left to the exact rule.
const LIMIT: f32 = 1e18;

/// One column being swept. Entries are all F features, or only the positive ones (`compact`).
#[derive(Debug, Clone, Default)]
pub(crate) struct Work {
    pub(crate) compact: bool,
    /// Features of the entries; empty unless compact.
    pub(crate) rows: Vec<u32>,
    entries: usize,
    pub(crate) total: f32,
    /// 1 / total, or 0.
    pub(crate) inverse_total: f32,
    /// Components that are on.
    pub(crate) active: usize,
    /// Which, and how strongly, while the rate is built.
    parts: Vec<(usize, f32)>,
    /// The counts, 1 where they are positive, the rate, 1 / rate and count / rate there; zero elsewhere.
    pub(crate) x: Vec<Tile>,
    positive: Vec<Tile>,
    rate: Vec<Tile>,
    pub(crate) inverse: Vec<Tile>,
    pub(crate) ratio: Vec<Tile>,
    /// Counts of the entries 0, 16, 32 ..., of 1, 17, ..., and so on, and 1 over them (0 for 0).
    pub(crate) block_totals: [f32; LANES],
    pub(crate) block_inverses: [f32; LANES],
    /// A bound of the relative error of `rate`.
    rate_error: f32,
    /// A bound of the relative error of a sum of products with `ratio`.
    pub(crate) error: f32,
    /// Set when a rate is out of range: nothing here means anything.
    pub(crate) wild: bool,
}

impl Work {
    /// Takes up column `t`; a rebuild must follow.
    #[inline(always)]
    pub(crate) fn load<V: Lanes>(&mut self, counts: &Counts, t: usize, compact: bool) {
        self.compact = compact;
        self.rows.clear();
        let column = counts.column(t);
        self.entries = match column {
            Column::Sparse(rows, _) if compact => {
                self.rows.extend_from_slice(rows);
                rows.len()
            }
            Column::Dense(_) if compact => {
                self.rows.extend(column.positive().map(|(f, _)| f as u32));
                self.rows.len()
            }
            _ => counts.features(),
        };
        let tiles = self.entries.div_ceil(LANES);
        if self.x.len() != tiles {
            for part in [&mut self.x, &mut self.positive, &mut self.rate, &mut self.inverse, &mut self.ratio]
            {
                part.resize(tiles, Tile::ZERO);
            }
        }
        if let Some(last) = self.x.last_mut() {
            *last = Tile::ZERO;
        }
        let x = flat_mut(&mut self.x);
        match column {
            Column::Dense(values) if !compact => copy(values, x),
            Column::Sparse(_, values) if compact => copy(values, x),
            Column::Dense(_) => {
                for (x, (_, value)) in x.iter_mut().zip(column.positive()) {
                    *x = value as f32;
                }
            }
            Column::Sparse(..) => {
                x.fill(0.0);
                for (f, value) in column.positive() {
                    x[f] = value as f32;
                }
            }
        }
        let (zero, one) = (V::splat(0.0), V::splat(1.0));
        let mut blocks = zero;
        for (x, positive) in self.x.iter().zip(&mut self.positive) {
            let x = V::load(&x.0);
            blocks = blocks.add(x);
            V::select(x.gt(zero), one, zero).store(&mut positive.0);
        }
        blocks.store(&mut self.block_totals);
        V::select(blocks.gt(zero), one.div(blocks), zero).store(&mut self.block_inverses);
        let total = counts.column_totals()[t];
        self.total = total as f32;
        self.inverse_total = if total > 0.0 { (1.0 / total) as f32 } else { 0.0 };
    }

    /// W_.k at the entries: the dictionary's own row, or gathered into `buffer`.
    #[inline(always)]
    pub(crate) fn component<'a>(
        &self,
        dictionary: &'a Dictionary,
        k: usize,
        buffer: &'a mut Vec<Tile>,
    ) -> &'a [Tile] {
        if !self.compact {
            return dictionary.row_tiles(k);
        }
        buffer.resize(self.x.len(), Tile::ZERO);
        let row = dictionary.row(k);
        for (out, &f) in flat_mut(buffer).iter_mut().zip(&self.rows) {
            *out = row[f as usize];
        }
        &buffer[..self.x.len()]
    }

    /// Builds the rate anew from the components that are on.
    #[inline(always)]
    pub(crate) fn rebuild<V: Lanes>(&mut self, dictionary: &Dictionary, column: ActiveColumn<'_>) {
        column.list(&mut self.parts);
        self.active = self.parts.len();
        if self.compact {
            self.rate.fill(Tile::ZERO);
            for &(k, h) in &self.parts {
                let row = dictionary.row(k);
                for (rate, &f) in flat_mut(&mut self.rate).iter_mut().zip(&self.rows) {
                    *rate += row[f as usize] * h;
                }
            }
        } else {
            // A few tiles of all components at a time, so that their rates stay in registers.
            let tiles = self.rate.len();
            let mut at = 0;
            while at < tiles {
                if tiles - at >= 4 {
                    self.rebuild_tiles::<V, 4>(dictionary, at);
                    at += 4;
                } else {
                    self.rebuild_tiles::<V, 1>(dictionary, at);
                    at += 1;
                }
            }
        }
        self.rate_error = (self.active as f32 + 4.0) * ROUNDING;
        self.refresh::<V>();
    }

    /// Builds `N` tiles of the rate from tile `at` on.
    #[inline(always)]
    fn rebuild_tiles<V: Lanes, const N: usize>(&mut self, dictionary: &Dictionary, at: usize) {
        let mut sums = [V::splat(0.0); N];
        for &(k, h) in &self.parts {
            let w = &dictionary.row_tiles(k)[at..at + N];
            for i in 0..N {
                sums[i] = V::load(&w[i].0).mul_add(V::splat(h), sums[i]);
            }
        }
        for i in 0..N {
            sums[i].store(&mut self.rate[at + i].0);
        }
    }

    /// Brings everything that follows from the rate up to date.
    #[inline(always)]
    fn refresh<V: Lanes>(&mut self) {
        let (tiny, one) = (V::splat(f32::MIN_POSITIVE), V::splat(1.0));
        let (mut largest_rate, mut largest_inverse) = (V::splat(0.0), V::splat(0.0));
        let parts =
            self.rate.iter().zip(&self.positive).zip(&self.x).zip(&mut self.inverse).zip(&mut self.ratio);
        for ((((rate, positive), x), inverse), ratio) in parts {
            let positive = V::load(&positive.0);
            let rate = V::load(&rate.0).max(tiny);
            let inverted = one.div(rate).mul(positive);
            largest_rate = largest_rate.max(rate.mul(positive));
            largest_inverse = largest_inverse.max(inverted);
            inverted.store(&mut inverse.0);
            V::load(&x.0).mul(inverted).store(&mut ratio.0);
        }
        let limit = V::splat(LIMIT);
        self.wild = (largest_rate.gt(limit) | largest_inverse.gt(limit)) != 0;
        // Each term carries a few roundings and the error of the rate, the sum one rounding for every term.
        self.error = (self.entries as f32 + 16.0) * f32::EPSILON + 2.0 * self.rate_error;
    }

    /// Changes the status of a component in the running rate, or builds that anew if too many digits are lost.
    /// `column` is as it is after the change.
    #[inline(always)]
    pub(crate) fn switch<V: Lanes>(
        &mut self,
        dictionary: &Dictionary,
        w: &[Tile],
        h: f32,
        on: bool,
        column: ActiveColumn<'_>,
    ) {
        let was_wild = self.wild;
        if on {
            self.active += 1;
            add_tiles::<V>(&mut self.rate, w, h);
            self.rate_error += ROUNDING;
            self.refresh::<V>();
        } else {
            self.active -= 1;
            // How much smaller a rate has become is how much larger its relative error is now.
            let (h, one) = (V::splat(-h), V::splat(1.0));
            let mut shrinkage = one;
            for ((rate, positive), w) in self.rate.iter_mut().zip(&self.positive).zip(w) {
                let before = V::load(&rate.0);
                let after = V::load(&w.0).mul_add(h, before);
                after.store(&mut rate.0);
                shrinkage = shrinkage.max(before.mul(V::load(&positive.0)).div(after));
            }
            let limit = RATE_ERROR / (self.rate_error + ROUNDING);
            if shrinkage.le(V::splat(limit)) == u16::MAX {
                let mut worst = [0.0; LANES];
                shrinkage.store(&mut worst);
                let worst = worst.into_iter().fold(1.0, f32::max);
                self.rate_error = (self.rate_error + ROUNDING) * worst + ROUNDING;
                self.refresh::<V>();
            } else {
                self.rate_error = f32::INFINITY;
            }
        }
        // Asked this way round so that NaN, too, means to build anew.
        let sound = self.rate_error <= RATE_ERROR;
        if was_wild || !sound {
            self.rebuild::<V>(dictionary, column);
        }
    }
}

/// rate += w h, tile by tile.
#[inline(always)]
fn add_tiles<V: Lanes>(rate: &mut [Tile], w: &[Tile], h: f32) {
    let h = V::splat(h);
    for (rate, w) in rate.iter_mut().zip(w) {
        V::load(&w.0).mul_add(h, V::load(&rate.0)).store(&mut rate.0);
    }
}

#[inline(always)]
fn copy(from: &[f64], to: &mut [f32]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = from as f32;
    }
}

/// The gain of having component k on in column t, sum over f of x log(1 + w h / rate of the others), in double precision
/// and from nothing but the components that are on. Infinite if there are counts and no others. `others` is scratch.
#[inline(always)]
pub(crate) fn exact_gain<V: Lanes>(
    counts: &Counts,
    dictionary: &Dictionary,
    t: usize,
    k: usize,
    h: f32,
    column: ActiveColumn<'_>,
    others: &mut Vec<f64>,
) -> f64 {
    let row = dictionary.row(k);
    let h = f64::from(h);
    others.clear();
    let mut gain = 0.0;
    match counts.column(t) {
        Column::Dense(x) => {
            others.resize(x.len(), 0.0);
            for (j, h) in column.iter().filter(|(j, _)| *j != k) {
                add_scaled::<V>(others, dictionary.row(j), h);
            }
            for ((others, &x), &w) in others.iter_mut().zip(x).zip(row) {
                let term = x * ln_1p(f64::from(w) * h / *others);
                *others = if x > 0.0 { term } else { 0.0 };
            }
            // The terms in their order, one after the other: zeros change nothing, so compressed columns agree.
            others.iter().for_each(|term| gain += term);
        }
        Column::Sparse(rows, values) => {
            others.resize(rows.len(), 0.0);
            for (j, h) in column.iter().filter(|(j, _)| *j != k) {
                let other = dictionary.row(j);
                for (sum, &f) in others.iter_mut().zip(rows) {
                    *sum += f64::from(other[f as usize]) * f64::from(h);
                }
            }
            for ((&others, &x), &f) in others.iter().zip(values).zip(rows) {
                gain += x * ln_1p(f64::from(row[f as usize]) * h / others);
            }
        }
    }
    gain
}
