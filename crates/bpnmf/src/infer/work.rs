//! The column a sweep is working on: its counts, its running rate, and single-precision shadows for the bounds.

use super::activations::ActiveColumn;
use super::dictionary::Dictionary;
use crate::counts::{Column, Counts};
use crate::kernel::exact::add_scaled;
use crate::kernel::{LANES, Lanes, Tile, flat, flat_mut};
use crate::special::ln_1p;

/// After this many flips the running rate is built anew.
const FLIPS_TO_REBUILD: u32 = 16;

/// If switching a component off leaves less than this share of a rate, cancellation has eaten digits: build it anew.
const CANCELLATION: f64 = 1e-3;

/// Rates outside this range have no single-precision shadow worth using.
const SHADOW_RANGE: core::ops::RangeInclusive<f64> = 1e-18..=1e18;

/// One column being swept. Entries are all F features, or only the positive ones (`compact`).
#[derive(Debug, Clone, Default)]
pub(crate) struct Work {
    pub(crate) compact: bool,
    /// Features of the entries; empty unless compact.
    pub(crate) rows: Vec<u32>,
    pub(crate) x: Vec<f64>,
    /// The rate at every entry, in double precision: the truth.
    pub(crate) rate: Vec<f64>,
    pub(crate) total: f64,
    /// Components that are on.
    pub(crate) active: usize,
    flips: u32,
    /// Shadows: counts, 1 / rate (0 where the count is 0) and count / rate, padded with zeros.
    pub(crate) x_shadow: Vec<Tile>,
    pub(crate) inverse: Vec<Tile>,
    pub(crate) ratio: Vec<Tile>,
    /// Counts of the entries 0, 16, 32 ..., of 1, 17, ..., and so on, and 1 over them (0 for 0).
    pub(crate) block_totals: [f32; LANES],
    pub(crate) block_inverses: [f32; LANES],
    /// Set when a rate is out of range: the shadows mean nothing.
    pub(crate) wild: bool,
    /// Relative error of a sum of products with `ratio`.
    pub(crate) error: f32,
}

impl Work {
    /// Takes up column `t` without shadows.
    #[inline(always)]
    pub(crate) fn load_counts(&mut self, counts: &Counts, t: usize, compact: bool) {
        self.compact = compact;
        self.rows.clear();
        self.x.clear();
        match counts.column(t) {
            Column::Sparse(rows, values) if compact => {
                self.rows.extend_from_slice(rows);
                self.x.extend_from_slice(values);
            }
            Column::Dense(values) if !compact => self.x.extend_from_slice(values),
            Column::Dense(values) => {
                for (f, &value) in values.iter().enumerate() {
                    if value > 0.0 {
                        self.rows.push(f as u32);
                        self.x.push(value);
                    }
                }
            }
            column @ Column::Sparse(..) => {
                self.x.resize(counts.features(), 0.0);
                for (f, value) in column.positive() {
                    self.x[f] = value;
                }
            }
        }
        self.total = counts.column_totals()[t];
        self.flips = 0;
        self.rate.clear();
        self.rate.resize(self.x.len(), 0.0);
    }

    /// Takes up column `t`.
    #[inline(always)]
    pub(crate) fn load(&mut self, counts: &Counts, t: usize, compact: bool) {
        self.load_counts(counts, t, compact);
        let tiles = self.x.len().div_ceil(LANES);
        for shadow in [&mut self.x_shadow, &mut self.inverse, &mut self.ratio] {
            shadow.clear();
            shadow.resize(tiles, Tile::ZERO);
        }
        self.block_totals = [0.0; LANES];
        let shadow = flat_mut(&mut self.x_shadow);
        for (i, &x) in self.x.iter().enumerate() {
            shadow[i] = x as f32;
            self.block_totals[i % LANES] += x as f32;
        }
        self.block_inverses = self.block_totals.map(|total| if total > 0.0 { 1.0 / total } else { 0.0 });
        // Each term carries a few roundings, the sum one for every term.
        self.error = (self.x.len() as f32 + 16.0) * f32::EPSILON;
    }

    /// W_.k at the entries: the dictionary's own row, or gathered into `buffer`.
    #[inline(always)]
    pub(crate) fn component<'a>(
        &self,
        dictionary: &'a Dictionary,
        k: usize,
        buffer: &'a mut Vec<Tile>,
    ) -> &'a [f32] {
        if !self.compact {
            return dictionary.padded_row(k);
        }
        buffer.resize(self.x_shadow.len(), Tile::ZERO);
        let row = dictionary.row(k);
        let gathered = flat_mut(buffer);
        for (out, &f) in gathered.iter_mut().zip(&self.rows) {
            *out = row[f as usize];
        }
        gathered
    }

    /// Builds the rate anew from the components that are on, in their order.
    #[inline(always)]
    pub(crate) fn rebuild(&mut self, dictionary: &Dictionary, column: ActiveColumn<'_>) {
        self.flips = 0;
        self.active = 0;
        self.rate.fill(0.0);
        for (k, h) in column.iter() {
            self.active += 1;
            let row = dictionary.row(k);
            if self.compact {
                let h = f64::from(h);
                for (rate, &f) in self.rate.iter_mut().zip(&self.rows) {
                    *rate += f64::from(row[f as usize]) * h;
                }
            } else {
                add_scaled(&mut self.rate, row, h);
            }
        }
    }

    /// Brings the shadows up to date with the rate.
    #[inline(always)]
    pub(crate) fn refresh<V: Lanes>(&mut self) {
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        let inverse = flat_mut(&mut self.inverse);
        for i in 0..self.x.len() {
            let positive = self.x[i] > 0.0;
            let rate = if positive { self.rate[i] } else { 1.0 };
            low = if rate < low { rate } else { low };
            high = if rate > high { rate } else { high };
            inverse[i] = if positive { 1.0 / rate as f32 } else { 0.0 };
        }
        self.wild = !(self.x.is_empty() || (SHADOW_RANGE.contains(&low) && SHADOW_RANGE.contains(&high)));
        let (inverse, x) = (flat(&self.inverse), flat(&self.x_shadow));
        for (i, ratio) in self.ratio.iter_mut().enumerate() {
            let at = i * LANES..(i + 1) * LANES;
            V::load(&x[at.clone()]).mul(V::load(&inverse[at])).store(&mut ratio.0);
        }
    }

    /// The gain of switching a component on, sum over f of x log(1 + w h / rate), while it is off.
    #[inline(always)]
    pub(crate) fn gain_while_off(&self, w: &[f32], h: f32) -> f64 {
        let h = f64::from(h);
        let mut gain = 0.0;
        for i in 0..self.x.len() {
            if self.x[i] > 0.0 {
                gain += self.x[i] * ln_1p(f64::from(w[i]) * h / self.rate[i]);
            }
        }
        gain
    }

    /// The same gain while it is on: the rate holds its part. `others(i)` is the rate at entry i without it, summed anew.
    #[inline(always)]
    pub(crate) fn gain_while_on(&self, w: &[f32], h: f32, others: impl Fn(usize) -> f64) -> f64 {
        let h = f64::from(h);
        let mut gain = 0.0;
        for i in 0..self.x.len() {
            if self.x[i] > 0.0 {
                let own = f64::from(w[i]) * h;
                let mut without = self.rate[i] - own;
                if without < CANCELLATION * self.rate[i] {
                    without = others(i);
                }
                gain += self.x[i] * ln_1p(own / without);
            }
        }
        gain
    }

    /// Adds a component to the running rate; true if the rate must now be built anew.
    #[inline(always)]
    pub(crate) fn switch_on(&mut self, w: &[f32], h: f32) -> bool {
        self.active += 1;
        self.flips += 1;
        add_scaled(&mut self.rate, w, h);
        self.flips.is_multiple_of(FLIPS_TO_REBUILD)
    }

    /// Takes a component out of the running rate; true if the rate must now be built anew.
    #[inline(always)]
    pub(crate) fn switch_off(&mut self, w: &[f32], h: f32) -> bool {
        self.active -= 1;
        self.flips += 1;
        let h = f64::from(h);
        let mut cancelled = false;
        for i in 0..self.rate.len() {
            let without = self.rate[i] - f64::from(w[i]) * h;
            cancelled |= self.x[i] > 0.0 && without < CANCELLATION * self.rate[i];
            self.rate[i] = without;
        }
        cancelled || self.flips.is_multiple_of(FLIPS_TO_REBUILD)
    }
}
