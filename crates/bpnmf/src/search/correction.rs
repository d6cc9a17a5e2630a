//! What the mean field takes too much: it prices every parameter as if the counts were already allocated.
//!
//! A parameter that shares its counts with other components is known less well than that, so it costs less evidence.
//! The complete-data curvature of log w_fk is a + sum_t x phi, the observed one about a + sum_t x phi^2; half the log
//! of their ratio is given back. On data with few counts a component this decides whether true components survive.

use super::kernels::add_shares;
use super::model::{Model, Part};
use super::view::View;
use crate::special::ln;
use crate::workers::Workers;

/// Half the log of complete over observed information.
fn given_back(prior: f64, once: f64, twice: f64) -> f64 {
    let once = once.max(0.0);
    0.5 * ln((prior + once) / (prior + twice.clamp(0.0, once)))
}

/// sum_t x phi and sum_t x phi^2 for every entry of W.
#[derive(Debug, Clone)]
pub(super) struct Curvature {
    once: Vec<f64>,
    twice: Vec<f64>,
}

/// The bound with what is given back.
pub(super) fn corrected_bound(model: &Model, view: &View, workers: &Workers) -> f64 {
    let (curvature, h) = Curvature::with_h(model, view);
    let entries = curvature.once.iter().zip(&curvature.twice);
    let w: f64 = entries.map(|(once, twice)| given_back(model.prior.a(), *once, *twice)).sum();
    model.bound(view, workers) + w + h
}

impl Curvature {
    fn zero(model: &Model) -> Self {
        Self { once: vec![0.0; model.shape.len()], twice: vec![0.0; model.shape.len()] }
    }

    pub(super) fn of(model: &Model, view: &View) -> Self {
        Self::with_h(model, view).0
    }

    /// That of W, and what is given back for all h.
    fn with_h(model: &Model, view: &View) -> (Self, f64) {
        let mut curvature = Self::zero(model);
        let columns = model.parts.iter().enumerate();
        let h = columns.map(|(t, parts)| curvature.add_column(model, view, t, parts, 1.0)).sum();
        (curvature, h)
    }

    /// Adds a column explained by `parts`, `sign` times; returns what is given back for its h.
    fn add_column(&mut self, model: &Model, view: &View, t: usize, parts: &[Part], sign: f64) -> f64 {
        let (mut field, mut buffer) = (Vec::new(), Vec::new());
        let column = &view.columns[t];
        model.field(column, parts, &mut field, &mut buffer);
        let mut back = 0.0;
        let Self { once, twice } = self;
        let (mut own, mut squares) = (Vec::new(), Vec::new());
        for part in parts {
            let row = column.gather(model.row(part.k), &mut buffer);
            let at = part.k * model.features..(part.k + 1) * model.features;
            let (once, twice) = (&mut once[at.clone()], &mut twice[at]);
            let shares = |sign: f64, once: &mut [f64], twice: &mut [f64]| {
                add_shares(model.simd, &column.x, &field, row, part.geometric, sign, once, twice)
            };
            let (all, squared) = if column.has_all(model.features) {
                shares(sign, once, twice)
            } else {
                for values in [&mut own, &mut squares] {
                    values.clear();
                    values.resize(column.x.len(), 0.0);
                }
                let sums = shares(1.0, &mut own, &mut squares);
                column.scatter(model.simd, once, &own, sign);
                column.scatter(model.simd, twice, &squares, sign);
                sums
            };
            back += given_back(model.prior.c(), all, squared);
        }
        back
    }

    /// How much less is given back when `k` goes and `columns` are explained anew, positive for a loss; and the curvature
    /// then.
    pub(super) fn lost(
        &self,
        model: &Model,
        view: &View,
        k: usize,
        columns: &[(usize, Vec<Part>)],
    ) -> (f64, Self) {
        let mut after = self.clone();
        let mut lost = 0.0;
        for (t, parts) in columns {
            lost += after.add_column(model, view, *t, &model.parts[*t], -1.0);
            lost -= after.add_column(model, view, *t, parts, 1.0);
        }
        let a = model.prior.a();
        for i in 0..model.shape.len() {
            let before = || given_back(a, self.once[i], self.twice[i]);
            if i / model.features == k {
                lost += before();
            } else if after.once[i] != self.once[i] {
                lost += before() - given_back(a, after.once[i], after.twice[i]);
            }
        }
        (lost, after)
    }
}
