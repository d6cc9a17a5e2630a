//! The column a sweep is working on, in single precision: what the bounds read. The truth is never kept but summed anew
//! when a decision needs it, so that rounding which builds up over flips cannot decide anything.

use super::activations::ActiveColumn;
use super::dictionary::Dictionary;
use crate::counts::{Column, Counts};
use crate::kernel::exact::add_scaled;
use crate::kernel::{LANES, LN_ERROR, Lanes, Tile, flat_mut};
use crate::special::ln_1p;

/// Beyond this relative error the running rate is built anew.
const RATE_ERROR: f32 = 3e-5;

/// Half a unit in the last place.
const ROUNDING: f32 = f32::EPSILON / 2.0;

/// Rates above this, or below one over it, are left to the exact rule.
const LIMIT: f32 = 1e18;

/// Tiles of the rate for which columns take turns: their W, for all components, should fit into the first cache.
pub(crate) const REBUILD: usize = 8;

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
    /// The counts, and the rate; 1 / rate and count / rate where there are counts, zero elsewhere.
    pub(crate) x: Vec<Tile>,
    rate: Vec<Tile>,
    /// Whether the rate is the sum over the components that are on in their order, every product fused.
    in_order: bool,
    pub(crate) inverse: Vec<Tile>,
    pub(crate) ratio: Vec<Tile>,
    /// The largest rate and the largest inverse of one so far, while the rate is built.
    largest: [Tile; 2],
    /// A bound of the relative error of `rate`.
    rate_error: f32,
    /// A bound of the relative error of a sum of products with `ratio`.
    pub(crate) error: f32,
    /// The same for a sum of logarithms of 1 + w h `inverse`, in a column where the component is off and where it is on.
    pub(crate) log_errors: [f32; 2],
    /// The sums of W over the observed features for the tile at hand, and 1 over them; only if features are missing.
    pub(crate) observed: Option<[Tile; 2]>,
    /// Set when a rate is out of range: nothing here means anything.
    pub(crate) wild: bool,
}

impl Work {
    /// Takes up column `t`, but for what [`Self::load_at`] takes up; a rebuild must follow.
    #[inline(always)]
    pub(crate) fn load(&mut self, counts: &Counts, t: usize, compact: bool) {
        self.compact = compact;
        self.observed = None;
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
            for part in [&mut self.x, &mut self.rate, &mut self.inverse, &mut self.ratio] {
                part.resize(tiles, Tile::ZERO);
            }
        }
        if let Some(last) = self.x.last_mut() {
            *last = Tile::ZERO;
        }
        let x = flat_mut(&mut self.x);
        match column {
            Column::Dense(_) if !compact => {}
            Column::Sparse(_, values) if compact => {
                for (x, &value) in x.iter_mut().zip(values) {
                    *x = value as f32;
                }
            }
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
        let total = counts.column_totals()[t];
        self.total = total as f32;
        self.inverse_total = if total > 0.0 { (1.0 / total) as f32 } else { 0.0 };
    }

    /// Takes up [`REBUILD`] tiles of column `t` from tile `at` on, unless that has been done already: just before they are
    /// needed.
    #[inline(always)]
    pub(crate) fn load_at(&mut self, counts: &Counts, t: usize, at: usize) {
        if !self.compact && !counts.is_sparse() && at < self.x.len() {
            let end = self.x.len().min(at + REBUILD);
            let values = &counts.single_from(t)[at * LANES..self.entries.min(end * LANES)];
            flat_mut(&mut self.x[at..end])[..values.len()].copy_from_slice(values);
        }
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
        // The tiles rather than the row: they have just been read for the scores.
        let (tile, lane) = (dictionary.tile(k / LANES), k % LANES);
        for (out, &f) in flat_mut(buffer).iter_mut().zip(&self.rows) {
            *out = tile[f as usize].0[lane];
        }
        &buffer[..self.x.len()]
    }

    /// Builds the rate anew from the components that are on.
    #[inline(always)]
    pub(crate) fn rebuild<V: Lanes>(&mut self, dictionary: &Dictionary, column: ActiveColumn<'_>) {
        self.start_rebuild(column);
        for at in (0..self.rate.len()).step_by(REBUILD) {
            self.rebuild_at::<V>(dictionary, at);
        }
        self.finish_rebuild::<V>();
    }

    /// The first of three parts of a rebuild. The second is for [`REBUILD`] tiles at a time: many columns that take turns
    /// find W in the first cache.
    #[inline(always)]
    pub(crate) fn start_rebuild(&mut self, column: ActiveColumn<'_>) {
        column.list(&mut self.parts);
        self.active = self.parts.len();
        self.largest = [Tile::ZERO; 2];
    }

    /// Builds [`REBUILD`] tiles from tile `at` on, or what is left of them.
    #[inline(always)]
    pub(crate) fn rebuild_at<V: Lanes>(&mut self, dictionary: &Dictionary, at: usize) {
        let tiles = self.rate.len().saturating_sub(at).min(REBUILD);
        if tiles == 0 {
            return;
        }
        let [rate, inverse] = &self.largest;
        let mut extremes = Extremes { rate: V::load(&rate.0), inverse: V::load(&inverse.0) };
        if self.compact {
            self.rate[at..at + tiles].fill(Tile::ZERO);
            for &(k, h) in &self.parts {
                let (tile, lane) = (dictionary.tile(k / LANES), k % LANES);
                let rates = flat_mut(&mut self.rate[at..at + tiles]);
                for (rate, &f) in rates.iter_mut().zip(&self.rows[at * LANES..]) {
                    *rate += tile[f as usize].0[lane] * h;
                }
            }
            for at in at..at + tiles {
                self.follow(at, V::load(&self.rate[at].0), &mut extremes);
            }
        } else {
            let (mut at, end) = (at, at + tiles);
            while at < end {
                let tiles = (end - at).min(V::CHUNK);
                match tiles {
                    1 => self.rebuild_tiles::<V, 1>(dictionary, at, &mut extremes),
                    2 => self.rebuild_tiles::<V, 2>(dictionary, at, &mut extremes),
                    3 => self.rebuild_tiles::<V, 3>(dictionary, at, &mut extremes),
                    4 => self.rebuild_tiles::<V, 4>(dictionary, at, &mut extremes),
                    5 => self.rebuild_tiles::<V, 5>(dictionary, at, &mut extremes),
                    6 => self.rebuild_tiles::<V, 6>(dictionary, at, &mut extremes),
                    7 => self.rebuild_tiles::<V, 7>(dictionary, at, &mut extremes),
                    _ => self.rebuild_tiles::<V, REBUILD>(dictionary, at, &mut extremes),
                }
                at += tiles;
            }
        }
        extremes.rate.store(&mut self.largest[0].0);
        extremes.inverse.store(&mut self.largest[1].0);
    }

    /// The last part of a rebuild.
    #[inline(always)]
    pub(crate) fn finish_rebuild<V: Lanes>(&mut self) {
        let [rate, inverse] = &self.largest;
        let extremes = Extremes { rate: V::load(&rate.0), inverse: V::load(&inverse.0) };
        self.rate_error = (self.active as f32 + 4.0) * ROUNDING;
        self.in_order = V::FUSES && !self.compact;
        self.settle(&extremes);
    }

    /// The rate, if it was added up as it is for what is kept: in the order of the components, every product fused.
    #[inline(always)]
    pub(crate) fn kept_rate(&self) -> Option<&[Tile]> {
        self.in_order.then_some(&self.rate)
    }

    /// Builds `N` tiles of the rate from tile `at` on.
    #[inline(always)]
    fn rebuild_tiles<V: Lanes, const N: usize>(
        &mut self,
        dictionary: &Dictionary,
        at: usize,
        extremes: &mut Extremes<V>,
    ) {
        let mut sums = [V::splat(0.0); N];
        for &(k, h) in &self.parts {
            let w = &dictionary.row_tiles(k)[at..at + N];
            for i in 0..N {
                sums[i] = V::load(&w[i].0).mul_add(V::splat(h), sums[i]);
            }
        }
        for i in 0..N {
            self.follow(at + i, sums[i], extremes);
        }
    }

    /// Sets one tile of the rate and what follows from it. Returns 1 / rate.
    #[inline(always)]
    fn follow<V: Lanes>(&mut self, at: usize, rate: V, extremes: &mut Extremes<V>) -> V {
        let x = V::load(&self.x[at].0);
        let inverse = rate.max(V::splat(f32::MIN_POSITIVE)).reciprocal().where_positive(x);
        extremes.rate = extremes.rate.max(rate.where_positive(x));
        extremes.inverse = extremes.inverse.max(inverse);
        rate.store(&mut self.rate[at].0);
        inverse.store(&mut self.inverse[at].0);
        x.mul(inverse).store(&mut self.ratio[at].0);
        inverse
    }

    /// Brings up to date what follows from the rate as a whole.
    #[inline(always)]
    fn settle<V: Lanes>(&mut self, extremes: &Extremes<V>) {
        let limit = V::splat(LIMIT);
        self.wild = (extremes.rate.gt(limit) | extremes.inverse.gt(limit)) != 0;
        // The error of a term is that of the rate and of a few roundings; a sum adds half an epsilon for every addition.
        // Logarithms of 1 + v multiply it by v / ((1 + v) log(1 + v)): at most 1 where v > 0, at most 9.3 where v > -0.97.
        let term = self.rate_error * 1.01 + 4.0 * f32::EPSILON;
        let additions = |number: usize| (number as f32 * 0.5 + 12.0) * f32::EPSILON;
        self.error = term + additions(self.entries);
        let logarithms = LN_ERROR + additions(self.x.len());
        self.log_errors = [logarithms + term, logarithms + 10.0 * term];
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
        let step = V::splat(if on { h } else { -h });
        let mut extremes = Extremes::<V>::none();
        // How much smaller a rate has become is how much larger its relative error is now.
        let mut shrinkage = V::splat(1.0);
        for (at, w) in w.iter().enumerate() {
            let before = V::load(&self.rate[at].0);
            let inverse = self.follow(at, V::load(&w.0).mul_add(step, before), &mut extremes);
            shrinkage = shrinkage.max(before.mul(inverse));
        }
        self.in_order = false;
        self.active = if on { self.active + 1 } else { self.active - 1 };
        self.rate_error = (self.rate_error + ROUNDING) * 1.0001 * shrinkage.largest() + ROUNDING;
        // Asked this way round so that NaN, too, means to build anew.
        let sound = self.rate_error <= RATE_ERROR;
        if was_wild || !sound {
            self.rebuild::<V>(dictionary, column);
        } else {
            self.settle(&extremes);
        }
    }

    /// All columns, without rates.
    #[cfg(test)]
    pub(crate) fn all_of(counts: &Counts, compact: bool) -> Vec<Self> {
        let column = |t: usize| {
            let mut work = Self::default();
            work.load(counts, t, compact);
            (0..work.x.len()).step_by(REBUILD).for_each(|at| work.load_at(counts, t, at));
            work
        };
        (0..counts.observations()).map(column).collect()
    }

    /// Whether the column has counts and at most one component to explain them.
    #[inline(always)]
    pub(crate) fn lonely(&self) -> bool {
        self.active <= 1 && self.total > 0.0
    }
}

/// The largest rate and the largest inverse of one, where there are counts.
struct Extremes<V> {
    rate: V,
    inverse: V,
}

impl<V: Lanes> Extremes<V> {
    #[inline(always)]
    fn none() -> Self {
        Self { rate: V::splat(0.0), inverse: V::splat(0.0) }
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
