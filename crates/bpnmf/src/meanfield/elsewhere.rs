//! A model of some columns at a time, what it explains of the others held as it is.
//!
//! With phi_kft of the other columns fixed, what they add to the bound is a sum over the entries of W: sum_t x phi log g(W) less
//! the counts that E W makes expected there, but for a constant. It is below the bound and touches it where phi is up to date,
//! so a gain with these columns alone is a gain (Neal & Hinton 1998: incremental EM), at the cost of these columns.

use super::kernels::sum_x_ln;
use super::model::Model;
use super::view::View;
use crate::workers::Workers;
use std::sync::Arc;

/// What a model claims in the columns that are not looked at.
#[derive(Debug, Clone)]
pub(crate) struct Elsewhere {
    /// sum x phi and sum x phi^2 of every entry of W.
    pub(crate) claims: Vec<f64>,
    pub(crate) squares: Vec<f64>,
    /// The sum of E h of every component, and what of it every entry of W lacks; the latter empty if none lacks any.
    pub(crate) means: Vec<f64>,
    pub(crate) unseen: Vec<f64>,
    /// The columns that every component is on in, and all of them.
    pub(crate) usage: Vec<usize>,
    pub(crate) columns: usize,
    /// The components by their places in the model of all columns.
    names: Vec<usize>,
}

impl Elsewhere {
    /// Keeps the given components, in that order.
    pub(crate) fn keep(&mut self, kept: &[usize], features: usize) {
        let rows = |values: &[f64]| -> Vec<f64> {
            let kept = kept.iter().filter(|_| !values.is_empty());
            kept.flat_map(|&k| &values[k * features..(k + 1) * features]).copied().collect()
        };
        (self.claims, self.squares) = (rows(&self.claims), rows(&self.squares));
        self.unseen = rows(&self.unseen);
        self.means = kept.iter().map(|&k| self.means[k]).collect();
        self.usage = kept.iter().map(|&k| self.usage[k]).collect();
        self.names = kept.iter().map(|&k| self.names[k]).collect();
    }
}

/// What is added up over all columns of a model, for models of some of them.
pub(crate) struct Whole {
    /// sum x phi^2 of every entry of W.
    pub(crate) squares: Vec<f64>,
    /// The sum of E h of every component.
    means: Vec<f64>,
    usage: Vec<usize>,
}

impl Whole {
    /// `squares` are those of [`Model::evidence_in_full`].
    pub(crate) fn new(model: &Model, squares: Vec<f64>) -> Self {
        Self { squares, means: model.sums_of_means(), usage: model.usage() }
    }
}

impl Model {
    /// The sum of E h of every component over the columns at hand.
    pub(crate) fn sums_of_means(&self) -> Vec<f64> {
        let mut means = vec![0.0; self.components()];
        self.parts.iter().flatten().for_each(|part| means[part.k] += part.mean());
        means
    }

    /// The model of the given columns, and their view.
    pub(crate) fn within<'a>(
        &self,
        view: &View<'a>,
        columns: &[usize],
        whole: &Whole,
        workers: &Workers,
    ) -> (Self, View<'a>) {
        let view = view.only(columns);
        let sizes = if self.sizes.is_empty() { Arc::clone(&self.sizes) } else { view.sizes() };
        let parts = columns.iter().map(|&t| self.parts[t].clone()).collect();
        let mut model = Self { parts, sizes, ..self.without_parts() };
        let (here, squares) = model.claims_and_squares(&view, workers);
        let a = self.prior.a();
        let usage: Vec<usize> = whole.usage.iter().zip(model.usage()).map(|(all, here)| all - here).collect();
        let mut claims: Vec<f64> =
            self.shape.iter().zip(&here).map(|(shape, here)| (shape - a - here).max(0.0)).collect();
        for (claims, _) in claims.chunks_mut(self.features).zip(&usage).filter(|(_, usage)| **usage == 0) {
            claims.fill(0.0);
        }
        let squares = whole.squares.iter().zip(squares).zip(&claims);
        let squares = squares.map(|((all, here), claims)| (all - here).clamp(0.0, *claims)).collect();
        let mut unseen = self.unseen.clone();
        if !unseen.is_empty() {
            for (parts, column) in model.parts.iter().zip(&view.columns) {
                for part in parts {
                    let row = &mut unseen[part.k * self.features..][..self.features];
                    column.add_unseen(self.simd, -part.mean(), row);
                }
            }
            unseen.iter_mut().for_each(|unseen| *unseen = unseen.max(0.0));
        }
        let means = whole.means.iter().zip(model.sums_of_means());
        let means = means.map(|(all, here)| (all - here).max(0.0)).collect();
        model.elsewhere = Some(Arc::new(Elsewhere {
            claims,
            squares,
            means,
            unseen,
            usage,
            columns: self.observations() - columns.len(),
            names: (0..self.components()).collect(),
        }));
        (model, view)
    }

    /// The same model without its columns.
    pub(super) fn without_parts(&self) -> Self {
        Self {
            simd: self.simd,
            features: self.features,
            prior: self.prior,
            alpha: self.alpha,
            sizes: Arc::clone(&self.sizes),
            shape: self.shape.clone(),
            rate: self.rate.clone(),
            unseen: self.unseen.clone(),
            geometric: self.geometric.clone(),
            sum: self.sum.clone(),
            layouts: self.layouts.clone(),
            elsewhere: None,
            parts: Vec::new(),
        }
    }

    /// The model of all columns with what became of a model of some of them.
    pub(crate) fn with(&self, part: Self, columns: &[usize], workers: &Workers) -> Self {
        let mut model = self.clone();
        if let Some(elsewhere) = &part.elsewhere {
            model.keep(&elsewhere.names);
        }
        (model.prior, model.shape, model.rate, model.unseen) =
            (part.prior, part.shape, part.rate, part.unseen);
        model.replace(columns.iter().copied().zip(part.parts).collect());
        model.settle(workers);
        model
    }

    /// What the columns that are not looked at add to the bound, but for a constant.
    pub(crate) fn bound_elsewhere(&self) -> f64 {
        let Some(elsewhere) = &self.elsewhere else { return 0.0 };
        let expected: f64 = self.sum.iter().zip(&elsewhere.means).map(|(sum, h)| sum * h).sum();
        let mut lacks = 0.0;
        for (k, unseen) in elsewhere.unseen.chunks(self.features).enumerate() {
            lacks += unseen.iter().zip(self.means(k)).map(|(unseen, w)| unseen * w).sum::<f64>();
        }
        sum_x_ln(self.simd, &elsewhere.claims, &self.geometric) - (expected - lacks)
    }
}
