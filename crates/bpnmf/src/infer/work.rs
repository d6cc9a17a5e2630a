//! The column a sweep is working on, in single precision: what the bounds read. The truth is never kept but summed anew
//! when a decision needs it, so that rounding which builds up over flips cannot decide anything.

use super::activations::ActiveColumn;
use super::chunks::{chunk, chunk_mut, for_each_chunk};
use super::dictionary::Dictionary;
use crate::counts::{Column, Counts};
use crate::kernel::exact::add_scaled;
use crate::kernel::{LANES, LN_ERROR, Lanes, Tile, flat_mut, prefetch, words_of};
use crate::special::ln_1p;

/// Beyond this relative error rates are built anew in the middle of a sweep.
const RATE_ERROR: f32 = 3e-5;

/// The same before counts are shared out by them.
const SHARED_ERROR: f32 = 5e-6;

/// Features ahead of the one at hand whose W is asked for: a compact column jumps about in it.
const AHEAD: usize = 32;

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
    /// Changes since the column was taken up.
    flips: usize,
    /// If there are none: the scores of the first of `parts`, as bits, and how many. Memory for a tile more comes after.
    scores: Vec<u32>,
    kept: usize,
    /// Which, and how strongly, while the rate is built; and the same tile by tile, zero where they are off, if compact.
    parts: Vec<(usize, f32)>,
    masked: Vec<(usize, Tile)>,
    /// The column, and its counts unless they are held this way anyway: see [`Self::x`].
    t: usize,
    own_x: Option<Vec<Tile>>,
    /// 1 / rate and count / rate where there are counts, zero elsewhere. Rates themselves are not kept.
    pub(crate) inverse: Vec<Tile>,
    pub(crate) ratio: Vec<Tile>,
    /// The largest inverse of a rate; so far, while rates are built.
    largest: Tile,
    /// The sum of all rates, or more.
    expected: f64,
    /// A bound of the relative error of `inverse`, and but for two roundings of `ratio`; infinite if there are no rates yet.
    rate_error: f32,
    /// A bound of the relative error of a sum of products with `ratio`.
    pub(crate) error: f32,
    /// The same for a sum of logarithms of 1 + w h `inverse`, in a column where the component is off and where it is on.
    pub(crate) log_errors: [f32; 2],
    /// The sums of W times exposure for the tile at hand, and 1 over them; only if some exposure is below one.
    pub(crate) observed: Option<[Tile; 2]>,
    /// Set when a rate is out of range: nothing here means anything.
    pub(crate) wild: bool,
}

impl Work {
    /// Takes up column `t`; a rebuild must follow.
    #[inline(always)]
    pub(crate) fn load(&mut self, counts: &Counts, t: usize, compact: bool) {
        self.compact = compact;
        self.observed = None;
        (self.flips, self.kept, self.rate_error) = (0, 0, f32::INFINITY);
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
        for part in [&mut self.inverse, &mut self.ratio] {
            if part.len() != tiles {
                part.resize(tiles, Tile::ZERO);
            }
        }
        self.t = t;
        if compact || counts.is_sparse() {
            let own = self.own_x.get_or_insert_default();
            own.clear();
            own.resize(tiles, Tile::ZERO);
            let x = flat_mut(own);
            match column {
                Column::Sparse(_, values) if compact => {
                    for (x, &value) in x.iter_mut().zip(values) {
                        *x = value as f32;
                    }
                }
                _ => {
                    for (entry, (f, value)) in column.positive().enumerate() {
                        x[if compact { entry } else { f }] = value as f32;
                    }
                }
            }
        } else {
            self.own_x = None;
        }
        let total = counts.column_totals()[t];
        self.total = total as f32;
        self.inverse_total = if total > 0.0 { (1.0 / total) as f32 } else { 0.0 };
    }

    /// The counts at the entries, padded to tiles. `counts` is what they were taken up from.
    #[inline(always)]
    pub(crate) fn x<'a>(&'a self, counts: &'a Counts) -> &'a [Tile] {
        x_of(&self.own_x, counts, self.t)
    }

    /// Tiles of entries.
    #[inline(always)]
    pub(crate) fn tiles(&self) -> usize {
        self.inverse.len()
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
        buffer.resize(self.tiles(), Tile::ZERO);
        // The tiles rather than the row: they have just been read for the scores.
        let (tile, lane) = (dictionary.tile(k / LANES), k % LANES);
        for (out, &f) in flat_mut(buffer).iter_mut().zip(&self.rows) {
            *out = tile[f as usize].0[lane];
        }
        &buffer[..self.tiles()]
    }

    /// Builds the rates anew from the components that are on.
    #[inline(always)]
    fn rebuild<V: Lanes>(&mut self, counts: &Counts, dictionary: &Dictionary, column: ActiveColumn<'_>) {
        self.start_rebuild(column);
        self.rebuild_all::<V>(counts, dictionary);
    }

    /// The first of three parts of a rebuild. The second may be for a chunk at a time: many columns that take turns find W
    /// in the first cache.
    #[inline(always)]
    pub(crate) fn start_rebuild(&mut self, column: ActiveColumn<'_>) {
        column.list(&mut self.parts);
        self.largest = Tile::ZERO;
    }

    /// The other two parts.
    #[inline(always)]
    pub(crate) fn rebuild_all<V: Lanes>(&mut self, counts: &Counts, dictionary: &Dictionary) {
        if self.compact {
            self.gather_rates::<V>(dictionary);
            for at in 0..self.tiles() {
                self.follow(counts, [V::load(&self.inverse[at].0)], at);
            }
        } else {
            // A tile at a time: this is rare, and every width of a chunk is code of its own.
            for at in 0..self.tiles() {
                self.rebuild_tiles::<V, 1>(counts, dictionary, at);
            }
        }
        self.finish_rebuild::<V>(dictionary);
    }

    /// Adds up the rates of a compact column, into the place of their inverses. Sixteen components of a feature lie
    /// together: they are multiplied at once, with H or with zero.
    #[inline(always)]
    fn gather_rates<V: Lanes>(&mut self, dictionary: &Dictionary) {
        self.masked.clear();
        for &(k, h) in &self.parts {
            let (tile, lane) = (k / LANES, k % LANES);
            match self.masked.last_mut() {
                Some((last, masked)) if *last == tile => masked.0[lane] = h,
                _ => {
                    let mut masked = Tile::ZERO;
                    masked.0[lane] = h;
                    self.masked.push((tile, masked));
                }
            }
        }
        if let Some(last) = self.inverse.last_mut() {
            *last = Tile::ZERO;
        }
        // Four features at a time; beyond the end the last one is repeated.
        let (rates, last) = (flat_mut(&mut self.inverse), self.rows.len().max(1) - 1);
        for first in (0..self.rows.len()).step_by(4) {
            let mut sums = [V::splat(0.0); 4];
            for (tile, masked) in &self.masked {
                let (w, h) = (dictionary.tile(*tile), V::load(&masked.0));
                for i in 0..4 {
                    prefetch(w, self.rows[(first + i + AHEAD).min(last)] as usize);
                    sums[i] = V::load(&w[self.rows[(first + i).min(last)] as usize].0).mul_add(h, sums[i]);
                }
            }
            let sums = V::sums(sums);
            for (i, rate) in rates[first..self.rows.len()].iter_mut().take(4).enumerate() {
                *rate = sums[i];
            }
        }
    }

    /// Asks for what a rebuild of `N` tiles from tile `at` on will read and write.
    #[inline(always)]
    pub(crate) fn ask_for<const N: usize>(&self, counts: &Counts, at: usize) {
        let parts: [&[Tile; N]; 3] =
            [chunk(self.x(counts), at), chunk(&self.inverse, at), chunk(&self.ratio, at)];
        for part in parts {
            for n in 0..N {
                prefetch(part, n);
            }
        }
    }

    /// Builds `N` tiles of rates from tile `at` on, unless compact: in the order of the components, every product fused.
    #[inline(always)]
    pub(crate) fn rebuild_tiles<V: Lanes, const N: usize>(
        &mut self,
        counts: &Counts,
        dictionary: &Dictionary,
        at: usize,
    ) {
        let mut rates = [V::splat(0.0); N];
        for &(k, h) in &self.parts {
            let (w, h) = (dictionary.row_chunk::<N>(k, at), V::splat(h));
            for n in 0..N {
                rates[n] = V::load(&w[n].0).fused(h, rates[n]);
            }
        }
        self.follow(counts, rates, at);
    }

    /// The last part of a rebuild.
    #[inline(always)]
    pub(crate) fn finish_rebuild<V: Lanes>(&mut self, dictionary: &Dictionary) {
        self.active = self.parts.len();
        self.expected = 0.0;
        for &(k, h) in &self.parts {
            self.expected += f64::from(h) * dictionary.sum(k);
        }
        self.rate_error = (self.active as f32 + 4.0) * ROUNDING;
        self.settle::<V>();
    }

    /// Makes ready what counts are shared out by, the same bits on every machine: as the sweep has left it, or built anew if
    /// that is not good enough. The components that are on are in `column`. Not for compact columns.
    #[inline(always)]
    pub(crate) fn make_ready<V: Lanes>(
        &mut self,
        counts: &Counts,
        dictionary: &Dictionary,
        column: ActiveColumn<'_>,
    ) {
        if self.is_unchanged() {
            return;
        }
        if self.rate_error <= SHARED_ERROR {
            column.list(&mut self.parts);
        } else {
            self.start_rebuild(column);
            for_each_chunk!(self.tiles(), at, N => self.rebuild_tiles::<V, N>(counts, dictionary, at));
            self.finish_rebuild::<V>(dictionary);
        }
    }

    /// Keeps the scores of the components of a tile that are on, unless the column has changed.
    #[inline(always)]
    pub(crate) fn keep_scores<V: Lanes>(&mut self, on: u16, scores: &Tile) {
        if self.flips == 0 && on != 0 {
            if self.scores.len() < self.kept + LANES {
                self.scores.resize(self.kept + 4 * LANES, 0);
            }
            let into = self.scores[self.kept..].first_chunk_mut().expect("room for a tile");
            V::keep(on, words_of(scores), into);
            self.kept += on.count_ones() as usize;
        }
    }

    /// Whether the column is as it was taken up for a sweep.
    #[inline(always)]
    pub(crate) fn is_unchanged(&self) -> bool {
        self.flips == 0 && self.rate_error < f32::INFINITY
    }

    /// The score of the i-th component that is on, if the column is unchanged.
    #[inline(always)]
    pub(crate) fn kept_score(&self, i: usize) -> f32 {
        f32::from_bits(self.scores[..self.kept][i])
    }

    /// Gives away the list of the components that are on, which is up to date once all is ready, for memory.
    #[inline(always)]
    pub(crate) fn swap_parts(&mut self, with: &mut Vec<(usize, f32)>) {
        core::mem::swap(&mut self.parts, with);
    }

    /// Gives away count / rate for memory of the same size.
    #[inline(always)]
    pub(crate) fn swap_ratio(&mut self, with: &mut Vec<Tile>) {
        core::mem::swap(&mut self.ratio, with);
    }

    /// Whether all rates are in range, and their inverses at most `largest`.
    #[inline(always)]
    pub(crate) fn is_tame<V: Lanes>(&self, largest: f32) -> bool {
        !self.wild && V::load(&self.largest.0).gt(V::splat(largest)) == 0
    }

    /// Sets what follows from `N` tiles of rates from tile `at` on: the same bits on every machine.
    #[inline(always)]
    fn follow<V: Lanes, const N: usize>(&mut self, counts: &Counts, rates: [V; N], at: usize) {
        let Self { inverse, ratio, largest, own_x, .. } = self;
        let x: &[Tile; N] = chunk(x_of(own_x, counts, self.t), at);
        let inverse: &mut [Tile; N] = chunk_mut(inverse, at);
        let ratio: &mut [Tile; N] = chunk_mut(ratio, at);
        let mut most = V::load(&largest.0);
        for n in 0..N {
            let x = V::load(&x[n].0);
            let least = rates[n].max(V::splat(f32::MIN_POSITIVE));
            let inverted = V::splat(1.0).div(least).where_positive(x);
            most = most.max(inverted);
            inverted.store(&mut inverse[n].0);
            x.mul(inverted).store(&mut ratio[n].0);
        }
        most.store(&mut largest.0);
    }

    /// Brings up to date what follows from all rates together.
    #[inline(always)]
    fn settle<V: Lanes>(&mut self) {
        let far = V::load(&self.largest.0).gt(V::splat(LIMIT)) != 0;
        // Asked this way round so that NaN, too, is out of range.
        let in_range = self.expected <= f64::from(LIMIT);
        self.wild = far || !in_range;
        // The error of a term is that of the rate and of a few roundings; a sum adds half an epsilon for every addition.
        // Logarithms of 1 + v multiply it by v / ((1 + v) log(1 + v)): at most 1 where v > 0, at most 9.3 where v > -0.97.
        let term = self.rate_error * 1.01 + 4.0 * f32::EPSILON;
        let additions = |number: usize| (number as f32 * 0.5 + 12.0) * f32::EPSILON;
        self.error = term + additions(self.entries);
        let logarithms = LN_ERROR + additions(self.tiles());
        self.log_errors = [logarithms + term, logarithms + 10.0 * term];
    }

    /// Changes the status of component k, whose W at the entries is `w`, in what is kept of the rates, or builds that anew if
    /// too many digits are lost. `column` is as it is after the change.
    #[inline(always)]
    pub(crate) fn switch<V: Lanes>(
        &mut self,
        counts: &Counts,
        dictionary: &Dictionary,
        (k, w): (usize, &[Tile]),
        h: f32,
        on: bool,
        column: ActiveColumn<'_>,
    ) {
        let was_wild = self.wild;
        let (one, step) = (V::splat(1.0), V::splat(if on { h } else { -h }));
        // How much smaller a rate has become is how much larger its relative error is now.
        let (mut shrinkage, mut largest) = (one, V::splat(0.0));
        for ((w, inverse), ratio) in w.iter().zip(&mut self.inverse).zip(&mut self.ratio) {
            let before = V::load(&inverse.0);
            // 1 / (rate + w h) = (1 / rate) / (1 + w h / rate), the same bits on every machine.
            let growth = V::load(&w.0).mul(step).fused(before, one);
            let scale = one.div(growth.max(V::splat(f32::MIN_POSITIVE)));
            let after = before.mul(scale);
            after.store(&mut inverse.0);
            V::load(&ratio.0).mul(scale).store(&mut ratio.0);
            shrinkage = shrinkage.max(scale);
            largest = largest.max(after);
        }
        largest.store(&mut self.largest.0);
        self.flips += 1;
        if on {
            self.active += 1;
            self.expected += f64::from(h) * dictionary.sum(k);
        } else {
            self.active -= 1;
        }
        // Two roundings of the product, of which the sum makes that much more, and three after it.
        self.rate_error = (self.rate_error + 2.0 * ROUNDING) * 1.0001 * shrinkage.largest() + 3.0 * ROUNDING;
        // Asked this way round so that NaN, too, means to build anew.
        let sound = self.rate_error <= RATE_ERROR;
        if was_wild || !sound {
            self.rebuild::<V>(counts, dictionary, column);
        } else {
            self.settle::<V>();
        }
    }

    /// All columns, without rates.
    #[cfg(test)]
    pub(crate) fn all_of(counts: &Counts, compact: bool) -> Vec<Self> {
        let column = |t: usize| {
            let mut work = Self::default();
            work.load(counts, t, compact);
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

/// The counts of column `t`: its own, or as they are held anyway.
#[inline(always)]
fn x_of<'a>(own: &'a Option<Vec<Tile>>, counts: &'a Counts, t: usize) -> &'a [Tile] {
    match own {
        Some(own) => own,
        None => counts.single(t),
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
