//! The mean field with a point mask: q(W) q(H) given S, its coordinate ascent and its bound.

use super::columns::{
    Explained, ascend_column, ascend_dense, field, geometric_row, geometric_row_of_rates, products,
};
use super::elsewhere::Elsewhere;
use super::kernels::{add_scaled, kl_gamma, kl_gammas, kl_gammas_of_rates};
use super::single::{add_listed, tiled};
use super::view::{BATCH, BLOCK, Column, Ratios, View, by_feature};
use crate::kernel::{LANES, Simd, Tile};
use crate::prior::{CheckedPrior, Prior};
use crate::special::{exp_digamma, ln, ln_beta};
use crate::workers::Workers;
use std::sync::{Arc, OnceLock};

/// A component that is on in a column: q(h) = Gamma(shape, rate), and exp E log h.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Part {
    pub(crate) k: usize,
    pub(crate) shape: f64,
    pub(crate) rate: f64,
    pub(crate) geometric: f64,
}

impl Part {
    pub(crate) fn new(k: usize, shape: f64, rate: f64) -> Self {
        Self { k, shape, rate, geometric: geometric(shape, rate) }
    }

    pub(crate) fn mean(&self) -> f64 {
        self.shape / self.rate
    }
}

/// exp E log of a Gamma(shape, rate) variable.
#[inline(always)]
pub(crate) fn geometric(shape: f64, rate: f64) -> f64 {
    exp_digamma(shape) / rate
}

/// The components that are on somewhere, of those with the given usage.
pub(crate) fn used(usage: &[usize]) -> usize {
    usage.iter().filter(|m| **m > 0).count()
}

/// Puts a part in its place among those of a column.
pub(crate) fn insert(parts: &mut Vec<Part>, part: Part) {
    let at = parts.partition_point(|other| other.k < part.k);
    parts.insert(at, part);
}

/// The prior with other a, b, c and d, brought into its range.
pub(crate) fn with_numbers(prior: &CheckedPrior, numbers: [f64; 4]) -> CheckedPrior {
    let [a, b, c, d] = numbers.map(|value| value.clamp(1e-6, 1e9));
    Prior { a, b, c, d, ..prior.get() }.check().expect("clamped into the range of a prior")
}

/// exp E log W as some kernels read it; made when it is asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layouts {
    turned: OnceLock<Vec<f64>>,
    single: OnceLock<Vec<Tile>>,
    squares: OnceLock<Vec<Tile>>,
    means: OnceLock<Vec<f64>>,
}

/// Steps of q(H) for every step of q(W): with one, weak data end with more or fewer components than there are.
const TIMES: usize = 2;

/// The least part of a rate that a difference can have.
const ROUNDING: f64 = 1e-12;

/// The least exp E log W in single precision.
const LEAST_SINGLE: f32 = 1e-30;

/// q(W), q(H) and the mask.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) simd: Simd,
    pub(crate) features: usize,
    /// The prior; the search learns a, b, c, d.
    pub(crate) prior: CheckedPrior,
    /// The variance of a count is mean + mean^2 / alpha; infinite for Poisson counts.
    pub(crate) alpha: f64,
    /// How large activations are expected to be in every column: h_kt ~ Gamma(c, d / size). Empty if all are one.
    pub(crate) sizes: Arc<[f64]>,
    /// q(W_fk) = Gamma(shape[k F + f], rate[k] - unseen[k F + f]).
    pub(crate) shape: Vec<f64>,
    pub(crate) rate: Vec<f64>,
    /// The activation of a component in the columns where a feature is missing, and the share of it that an entry which
    /// weighs less than one lacks; empty if all are observed in full.
    pub(crate) unseen: Vec<f64>,
    /// exp E log W.
    pub(crate) geometric: Vec<f64>,
    /// sum over f of E W.
    pub(crate) sum: Vec<f64>,
    pub(crate) layouts: Layouts,
    /// If these are not all columns: what it claims in the others.
    pub(crate) elsewhere: Option<Arc<Elsewhere>>,
    /// What is on in each column, by component.
    pub(crate) parts: Vec<Vec<Part>>,
}

impl Model {
    /// No component yet.
    pub(crate) fn empty(simd: Simd, features: usize, observations: usize, prior: CheckedPrior) -> Self {
        Self {
            simd,
            features,
            prior,
            alpha: f64::INFINITY,
            sizes: Arc::new([]),
            shape: Vec::new(),
            rate: Vec::new(),
            unseen: Vec::new(),
            geometric: Vec::new(),
            sum: Vec::new(),
            layouts: Layouts::default(),
            elsewhere: None,
            parts: vec![Vec::new(); observations],
        }
    }

    /// Becomes a copy of `other` in the memory it has.
    pub(crate) fn take_place_of(&mut self, other: &Self) {
        let Self {
            simd,
            features,
            prior,
            alpha,
            sizes,
            shape,
            rate,
            unseen,
            geometric,
            sum,
            layouts,
            elsewhere,
            parts,
        } = self;
        elsewhere.clone_from(&other.elsewhere);
        (*simd, *features, *prior, *alpha) = (other.simd, other.features, other.prior, other.alpha);
        *layouts = Layouts::default();
        *sizes = Arc::clone(&other.sizes);
        shape.clone_from(&other.shape);
        rate.clone_from(&other.rate);
        unseen.clone_from(&other.unseen);
        geometric.clone_from(&other.geometric);
        sum.clone_from(&other.sum);
        parts.clone_from(&other.parts);
    }

    pub(crate) fn components(&self) -> usize {
        self.rate.len()
    }

    pub(crate) fn observations(&self) -> usize {
        self.parts.len()
    }

    /// exp E log W of a component.
    #[inline(always)]
    pub(crate) fn row(&self, k: usize) -> &[f64] {
        &self.geometric[k * self.features..][..self.features]
    }

    /// exp E log W with the components of a feature side by side.
    pub(crate) fn turned(&self) -> &[f64] {
        self.layouts.turned.get_or_init(|| by_feature(&self.geometric, self.features))
    }

    /// exp E log W by components, in tiles of single precision.
    pub(crate) fn single(&self) -> &[Tile] {
        self.layouts.single.get_or_init(|| tiled(&self.geometric, self.features, LEAST_SINGLE))
    }

    /// The squares of exp E log W, likewise.
    pub(crate) fn squares(&self) -> &[Tile] {
        self.layouts.squares.get_or_init(|| {
            let squares: Vec<f64> = self.geometric.iter().map(|g| g * g).collect();
            tiled(&squares, self.features, 0.0)
        })
    }

    /// exp E log W of a component, likewise.
    pub(crate) fn single_row(&self, k: usize) -> &[Tile] {
        let wide = self.features.div_ceil(LANES);
        &self.single()[k * wide..][..wide]
    }

    /// The shapes of q(W) of a component.
    pub(crate) fn shapes(&self, k: usize) -> &[f64] {
        &self.shape[k * self.features..][..self.features]
    }

    /// The rates of q(W) of a component.
    pub(crate) fn rates(&self, k: usize) -> impl Iterator<Item = f64> {
        let unseen = self.unseen.get(k * self.features..(k + 1) * self.features).unwrap_or(&[]);
        let rate = self.rate[k];
        // What rounding leaves of a difference is no rate.
        (0..self.features).map(move |f| (rate - unseen.get(f).unwrap_or(&0.0)).max(ROUNDING * rate))
    }

    /// E W of a component.
    pub(crate) fn means(&self, k: usize) -> impl Iterator<Item = f64> {
        self.shapes(k).iter().zip(self.rates(k)).map(|(shape, rate)| shape / rate)
    }

    /// E W of a component, ready made.
    #[inline(always)]
    pub(crate) fn mean_row(&self, k: usize) -> &[f64] {
        let means = || (0..self.components()).flat_map(|k| self.means(k)).collect();
        &self.layouts.means.get_or_init(means)[k * self.features..][..self.features]
    }

    /// The sum of E W of a component over the features that were observed in a column, each with its weight.
    #[inline(always)]
    pub(crate) fn sum_in(&self, column: &Column, k: usize) -> f64 {
        if column.is_whole() {
            return self.sum[k];
        }
        (self.sum[k] - column.unseen(self.simd, self.mean_row(k))).max(0.0)
    }

    /// The mean of every entry of a column with the given parts.
    pub(crate) fn expected(&self, parts: &[Part]) -> Vec<f64> {
        let mut mean = vec![0.0; self.features];
        for part in parts {
            add_scaled(self.simd, &mut mean, self.mean_row(part.k), part.mean());
        }
        mean
    }

    /// All columns, those that are not looked at among them.
    fn population(&self) -> usize {
        self.observations() + self.elsewhere.as_ref().map_or(0, |elsewhere| elsewhere.columns)
    }

    /// The number of columns each component is on in.
    pub(crate) fn usage(&self) -> Vec<usize> {
        let elsewhere = self.elsewhere.as_ref().map(|elsewhere| elsewhere.usage.clone());
        let mut usage = elsewhere.unwrap_or_else(|| vec![0; self.components()]);
        for part in self.parts.iter().flatten() {
            usage[part.k] += 1;
        }
        usage
    }

    /// The columns a component is on in, with its part there.
    pub(crate) fn columns_of(&self, k: usize) -> Vec<(usize, Part)> {
        let found = |(t, parts): (usize, &Vec<Part>)| {
            parts.binary_search_by_key(&k, |part| part.k).ok().map(|at| (t, parts[at]))
        };
        self.parts.iter().enumerate().filter_map(found).collect()
    }

    /// How large activations are expected to be in a column.
    pub(crate) fn size(&self, t: usize) -> f64 {
        self.sizes.get(t).copied().unwrap_or(1.0)
    }

    /// The same model of every so manieth column; components that are on in none of them are gone.
    pub(crate) fn sampled(&self, step: usize) -> Self {
        if step == 1 {
            return self.clone();
        }
        let sizes = self.sizes.iter().copied().step_by(step).collect();
        let parts = self.parts.iter().step_by(step).cloned().collect();
        let mut model = Self { sizes, parts, ..self.without_parts() };
        model.drop_empty();
        model
    }

    /// From the model of every so manieth column to that of all of `view`: a column begins as the one before it that was
    /// looked at, in proportion to its total.
    pub(crate) fn spread(&mut self, view: &View, step: usize, workers: &Workers) {
        let (a, b, c, times) = (self.prior.a(), self.prior.b(), self.prior.c(), step as f64);
        let some = core::mem::take(&mut self.parts);
        self.parts = (view.columns.iter().enumerate())
            .map(|(t, column)| {
                let scale = column.total / view.columns[t / step * step].total.max(1.0);
                let part = |part: &Part| {
                    let rate = self.d_in(column) + self.sum_in(column, part.k);
                    Part::new(part.k, c + (part.shape - c).max(0.0) * scale, rate)
                };
                some[t / step].iter().map(part).collect()
            })
            .collect();
        self.sizes = view.sizes();
        self.shape.iter_mut().for_each(|shape| *shape = a + (*shape - a).max(0.0) * times);
        self.rate.iter_mut().for_each(|rate| *rate = b + (*rate - b).max(0.0) * times);
        self.unseen.iter_mut().for_each(|unseen| *unseen *= times);
        self.settle(workers);
    }

    /// The rate of the prior of h in a column.
    #[inline(always)]
    pub(crate) fn d_in(&self, column: &Column) -> f64 {
        self.prior.d() / column.size
    }

    /// The sum of E h of every component, each relative to what is expected in its column.
    pub(crate) fn relative_means(&self) -> Vec<f64> {
        let mut means = vec![0.0; self.components()];
        for (t, parts) in self.parts.iter().enumerate() {
            let size = self.size(t);
            parts.iter().for_each(|part| means[part.k] += part.mean() / size);
        }
        means
    }

    /// Changes the prior's a, b, c and d.
    pub(crate) fn set_prior(&mut self, a: f64, b: f64, c: f64, d: f64) {
        self.prior = with_numbers(&self.prior, [a, b, c, d]);
    }

    /// The model of counts that are all larger by `factor`.
    pub(crate) fn lift(&mut self, factor: f64, workers: &Workers) {
        let (a, b, c, d) = (self.prior.a(), self.prior.b(), self.prior.c(), self.prior.d());
        self.shape.iter_mut().for_each(|nu| *nu = a + (*nu - a).max(0.0) * factor);
        for (t, parts) in self.parts.iter_mut().enumerate() {
            let d = d / self.sizes.get(t).unwrap_or(&1.0);
            for part in parts {
                let shape = c + (part.shape - c).max(0.0) * factor;
                *part = Part::new(part.k, shape, d + (part.rate - d).max(0.0) * factor);
            }
        }
        self.set_prior(a, b / factor, c, d);
        self.alpha *= factor;
        self.settle(workers);
    }

    /// Every component on in every column that has counts; where it was off, at a small part of its mean.
    pub(crate) fn switch_all_on(&mut self, view: &View) {
        /// Of the mean of the activations that are on.
        const QUIET: f64 = 0.05;
        let usage = self.usage();
        let mut means = vec![0.0; self.components()];
        self.parts.iter().flatten().for_each(|part| means[part.k] += part.mean());
        let mut all = core::mem::take(&mut self.parts);
        for (parts, column) in all.iter_mut().zip(&view.columns).filter(|(_, column)| column.total > 0.0) {
            for k in 0..self.components() {
                if parts.get(k).is_none_or(|part| part.k != k) {
                    let rate = self.d_in(column) + self.sum_in(column, k);
                    let h = QUIET * means[k] / usage[k].max(1) as f64;
                    parts.insert(k, Part::new(k, self.prior.c() + h * rate, rate));
                }
            }
        }
        self.parts = all;
    }

    /// Puts other parts in the given columns.
    pub(crate) fn replace(&mut self, columns: Vec<(usize, Vec<Part>)>) {
        for (t, parts) in columns {
            self.parts[t] = parts;
        }
    }

    /// Brings `geometric` and `sum` up to date with the shapes and rates.
    pub(crate) fn settle(&mut self, workers: &Workers) {
        let features = self.features;
        self.geometric.resize(self.shape.len(), 0.0);
        if !self.unseen.is_empty() {
            self.unseen.resize(self.shape.len(), 0.0);
        }
        let mut all = core::mem::take(&mut self.geometric);
        workers.for_each(all.chunks_mut(features).enumerate(), |(k, row), _| {
            if self.unseen.is_empty() {
                return geometric_row(self.simd, self.shapes(k), self.rate[k], row);
            }
            let rates: Vec<f64> = self.rates(k).collect();
            geometric_row_of_rates(self.simd, self.shapes(k), &rates, row);
        });
        (self.geometric, self.layouts) = (all, Layouts::default());
        self.sum = if self.unseen.is_empty() {
            let sums = self.shape.chunks(features).zip(&self.rate);
            sums.map(|(row, rate)| row.iter().sum::<f64>() / rate).collect()
        } else {
            (0..self.components()).map(|k| self.means(k).sum()).collect()
        };
    }

    /// Prior log odds of a component in one more column.
    pub(crate) fn log_odds(&self, usage: &[usize]) -> Vec<f64> {
        let observations = self.population() as f64;
        let odds = |&m: &usize| {
            let m = m as f64;
            ln((self.prior.pi_on() + m) / (self.prior.pi_off() + observations - m).max(0.5))
        };
        usage.iter().map(odds).collect()
    }

    /// Adds what `parts` explain of `column` to `field`, which is cleared first.
    pub(crate) fn field(&self, column: &Column, parts: &[Part], field: &mut Vec<f64>, buffer: &mut Vec<f64>) {
        self::field(self.simd, self, column, parts, field, buffer);
    }

    /// The products of `ratio`, which belongs to the entries of a column, with every component.
    pub(crate) fn products(&self, column: &Column, ratio: &[f64], out: &mut Vec<f64>) {
        out.resize(self.components(), 0.0);
        products(self.simd, self, column, ratio, out);
    }

    /// Coordinate ascent of q(H), twice, of q(W), and of the scale between them, the mask fixed; `times` over.
    pub(crate) fn ascend(&mut self, view: &View, times: usize, workers: &Workers) {
        let mut ratios = Ratios::new(view);
        for _ in 0..times {
            self.step(view, TIMES, &mut ratios, workers);
        }
    }

    /// One step of coordinate ascent: q(H) `times` over, q(W), and the scale of every component between W and H. `ratios` is
    /// scratch.
    pub(crate) fn step(&mut self, view: &View, times: usize, ratios: &mut Ratios, workers: &Workers) {
        let (prior, features, simd) = (self.prior, self.features, self.simd);
        let claimed = self.claim(view, times, ratios, workers);
        let mut means = self.sums_of_means();
        for ((nu, claimed), g) in self.shape.iter_mut().zip(&claimed).zip(&self.geometric) {
            *nu = prior.a() + claimed * g;
        }
        if let Some(elsewhere) = &self.elsewhere {
            self.shape.iter_mut().zip(&elsewhere.claims).for_each(|(nu, claims)| *nu += claims);
            means.iter_mut().zip(&elsewhere.means).for_each(|(mean, elsewhere)| *mean += elsewhere);
        }
        for (rate, mean) in self.rate.iter_mut().zip(&means) {
            *rate = prior.b() + mean;
        }
        let lacking = self.elsewhere.as_ref().map_or(&[][..], |elsewhere| &elsewhere.unseen);
        if view.partial || !lacking.is_empty() {
            self.unseen.clear();
            self.unseen.extend_from_slice(lacking);
            self.unseen.resize(self.shape.len(), 0.0);
            let mut lists: Vec<Vec<(usize, f64)>> = vec![Vec::new(); self.components()];
            for (t, parts) in self.parts.iter().enumerate() {
                parts.iter().for_each(|part| lists[part.k].push((t, part.mean())));
            }
            let rows = self.unseen.chunks_mut(features).zip(&lists).zip(&means);
            workers.for_each(rows, |((unseen, list), all), _| {
                for &(t, h) in list {
                    view.columns[t].add_unseen(simd, h, unseen);
                }
                unseen.iter_mut().for_each(|unseen| *unseen = unseen.min(*all));
            });
        }
        if self.elsewhere.is_none() {
            if !self.sizes.is_empty() {
                means = self.relative_means();
            }
            self.rescale(&means);
        }
        self.settle(workers);
    }

    /// q(H) brought up to date, `times` over, and what every entry of W then claims, over its exp E log W. `ratios` is scratch.
    pub(crate) fn claim(
        &mut self,
        view: &View,
        times: usize,
        ratios: &mut Ratios,
        workers: &Workers,
    ) -> Vec<f64> {
        let (features, simd) = (self.features, self.simd);
        let mut all = core::mem::take(&mut self.parts);
        let mut claimed = vec![0.0; self.shape.len()];
        for (block, columns) in all.chunks_mut(BLOCK).zip(view.columns.chunks(BLOCK)) {
            let batches = block.chunks_mut(BATCH).zip(columns.chunks(BATCH)).zip(ratios.batches());
            workers.for_each(batches, |((block, columns), ratios), _| {
                let mut explained = Explained::default();
                for ((parts, column), (tiles, list)) in block.iter_mut().zip(columns).zip(ratios) {
                    if column.compressed().is_none() {
                        ascend_dense(simd, self, column, parts, times, tiles);
                        continue;
                    }
                    ascend_column(simd, self, column, parts, times, &mut explained);
                    core::mem::swap(list, &mut explained.ratio);
                }
            });
            let ratios = &*ratios;
            let mut lists: Vec<[Vec<(usize, f32)>; 2]> = vec![Default::default(); self.components()];
            for (t, parts) in block.iter().enumerate() {
                let compressed = usize::from(columns[t].compressed().is_some());
                parts.iter().for_each(|part| lists[part.k][compressed].push((t, part.geometric as f32)));
            }
            workers.for_each(
                claimed.chunks_mut(features).zip(&lists),
                |(claimed, [dense, compressed]), _| {
                    if !dense.is_empty() {
                        add_listed(simd, &ratios.tiles, ratios.wide, dense, claimed);
                    }
                    for &(t, h) in compressed {
                        columns[t].scatter(simd, claimed, &ratios.lists[t], f64::from(h));
                    }
                },
            );
        }
        self.parts = all;
        claimed
    }

    /// The best scale of every component between W and H, in closed form: the likelihood does not depend on it, and with
    /// p = a F - c m the bound is largest where W is multiplied and H divided by
    /// (p + sqrt(p^2 + 4 b d sum E W sum E H)) / (2 b sum E W). `means` is the sum of E H of every component, each
    /// relative to the size of its column. What is
    /// derived from q(W) is not brought up to date.
    fn rescale(&mut self, means: &[f64]) {
        let (a, b, c, d) = (self.prior.a(), self.prior.b(), self.prior.c(), self.prior.d());
        let usage = self.usage();
        let scales: Vec<f64> = (0..self.components())
            .map(|k| {
                let (w, m) = (self.means(k).sum::<f64>(), usage[k] as f64);
                let p = a * self.features as f64 - c * m;
                let scale = (p + (p * p + 4.0 * b * d * w * means[k]).sqrt()) / (2.0 * b * w);
                if m > 0.0 && scale.is_finite() && scale > 0.0 { scale } else { 1.0 }
            })
            .collect();
        self.scale(&scales);
    }

    /// Multiplies W of every component by its scale and divides H by it. What is derived from q(W) is not brought up to
    /// date.
    pub(crate) fn scale(&mut self, scales: &[f64]) {
        let features = self.features;
        for (k, scale) in scales.iter().enumerate() {
            self.rate[k] /= scale;
            let unseen = self.unseen.iter_mut().skip(k * features).take(features);
            unseen.for_each(|unseen| *unseen /= scale);
        }
        for part in self.parts.iter_mut().flatten() {
            part.rate *= scales[part.k];
            part.geometric /= scales[part.k];
        }
    }

    /// What a part costs a column: the counts it expects and KL of q(h).
    pub(crate) fn cost(&self, column: &Column, part: &Part) -> f64 {
        self.sum_in(column, part.k) * part.mean() + self.kl_h(column, part)
    }

    /// KL of q(h).
    pub(crate) fn kl_h(&self, column: &Column, part: &Part) -> f64 {
        let (c, d) = (self.prior.c(), self.prior.d());
        kl_gamma(&[part.shape], &[part.rate * column.size], c, d, self.prior.constant_h())[0]
    }

    /// log p(S_k) for a component on in `usage` columns, relative to one that is off everywhere.
    pub(crate) fn mask_term(&self, usage: usize) -> f64 {
        let (m, t) = (usage as f64, self.population() as f64);
        let (on, off) = (self.prior.pi_on(), self.prior.pi_off());
        ln_beta(on + m, off + t - m) - ln_beta(on, off + t)
    }

    /// KL of q(W_k).
    pub(crate) fn kl_w(&self, k: usize) -> f64 {
        self.kl_row(self.shapes(k), self.rate[k], self.rates(k))
    }

    /// KL of a row of q(W) with the given shapes, all of one rate or, if features were not observed, each of its own.
    pub(crate) fn kl_row(&self, shapes: &[f64], rate: f64, rates: impl Iterator<Item = f64>) -> f64 {
        let (a, b, constant) = (self.prior.a(), self.prior.b(), self.prior.constant_w());
        if self.unseen.is_empty() {
            return kl_gammas(self.simd, shapes, rate, a, b, constant);
        }
        let rates: Vec<f64> = rates.collect();
        kl_gammas_of_rates(self.simd, shapes, &rates, a, b, constant)
    }

    /// Adds a component: W has the given shapes and rate; the caller says where it is on.
    pub(crate) fn push(&mut self, shapes: impl Iterator<Item = f64>, rate: f64) -> usize {
        self.shape.extend(shapes);
        self.rate.push(rate);
        self.layouts = Layouts::default();
        self.rate.len() - 1
    }

    /// Keeps the given components, in that order.
    pub(crate) fn keep(&mut self, kept: &[usize]) {
        let mut place = vec![usize::MAX; self.components()];
        for (new, &old) in kept.iter().enumerate() {
            place[old] = new;
        }
        let features = self.features;
        let rows = |values: &[f64]| -> Vec<f64> {
            kept.iter().flat_map(|&k| &values[k * features..(k + 1) * features]).copied().collect()
        };
        (self.shape, self.geometric) = (rows(&self.shape), rows(&self.geometric));
        self.layouts = Layouts::default();
        if !self.unseen.is_empty() {
            self.unseen = rows(&self.unseen);
        }
        if let Some(elsewhere) = &mut self.elsewhere {
            Arc::make_mut(elsewhere).keep(kept, features);
        }
        self.rate = kept.iter().map(|&k| self.rate[k]).collect();
        self.sum = kept.iter().map(|&k| self.sum[k]).collect();
        for parts in &mut self.parts {
            parts.retain_mut(|part| {
                part.k = place[part.k];
                part.k != usize::MAX
            });
            parts.sort_by_key(|part| part.k);
        }
    }

    /// Drops the components that are off everywhere.
    pub(crate) fn drop_empty(&mut self) {
        let usage = self.usage();
        let kept: Vec<usize> = (0..usage.len()).filter(|&k| usage[k] > 0).collect();
        if kept.len() < usage.len() {
            self.keep(&kept);
        }
    }
}
