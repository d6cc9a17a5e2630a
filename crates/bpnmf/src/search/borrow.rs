//! A component that lacks a piece borrows it: another one that has little else is then on, quietly, wherever the first is.
//!
//! If W of A lacks a feature, and B is mostly that feature, B is on with A in all columns of A, where it has no business.
//! Switching B off in one of them leaves the feature unexplained there, and W of A does not grow while B explains it. So
//! both are changed at once: A gets as much of B as it borrowed, and its columns are explained anew.

use super::model::{Model, Part};
use super::moves::{remask_columns, uncertain};
use super::trial::Trials;
use super::view::View;
use crate::workers::Workers;

/// The lender is on in at least this share of the borrower's columns ...
const TOGETHER: f64 = 0.55;
/// ... and in at least this much more of them than of the other columns.
const EXCESS: f64 = 0.2;

/// The borrower is on in at least this many columns: of fewer nothing can be said.
const LEAST_COLUMNS: f64 = 10.0;

/// What is taken for the loan: in this share of the borrower's columns it is less. Where both are on with good reason it is
/// more.
const QUANTILE: f64 = 0.45;

/// Pairs of borrower and lender, with the loan: the lender's h in units of the borrower's.
fn loans(model: &Model) -> Vec<(usize, usize, f64)> {
    let (usage, components) = (model.usage(), model.components());
    let mut loans = Vec::new();
    for i in 0..components {
        let columns = model.columns_of(i);
        let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); components];
        for (t, borrower) in &columns {
            for lender in model.parts[*t].iter().filter(|part| part.k != i) {
                ratios[lender.k].push(lender.mean() / borrower.mean());
            }
        }
        for (j, mut ratios) in ratios.into_iter().enumerate() {
            let (own, others) = (columns.len() as f64, (model.observations() - columns.len()) as f64);
            let together = ratios.len() as f64 / own;
            let apart = (usage[j] - ratios.len()) as f64 / others.max(1.0);
            if own < LEAST_COLUMNS || together < TOGETHER || together < apart + EXCESS {
                continue;
            }
            ratios.resize(columns.len(), 0.0);
            ratios.sort_by(f64::total_cmp);
            let loan = ratios[(QUANTILE * own) as usize];
            if loan > 0.0 {
                loans.push((i, j, loan));
            }
        }
    }
    loans
}

/// Ends loans while the bound gains by it.
pub(super) fn borrow_pass(model: &mut Model, view: &View, workers: &Workers) {
    let mut trials = Trials::default();
    for (i, j, loan) in loans(model) {
        let columns = model.columns_of(i);
        let mut without = model.clone();
        end(&mut without, i, j, loan, &columns);
        without.settle(workers);
        let touched: Vec<usize> = columns.iter().map(|(t, _)| *t).collect();
        remask_columns(&mut without, view, &touched, workers);
        trials.judge(model, without, &touched, uncertain(model, touched.len()), view, workers);
    }
    model.drop_empty();
}

/// Gives `i` what it borrowed from `j`; where that is all that `j` did, `j` is off.
fn end(model: &mut Model, i: usize, j: usize, loan: f64, columns: &[(usize, Part)]) {
    let features = model.features;
    let lent: Vec<f64> = model.means(j).map(|w| loan * w).collect();
    let gained: Vec<f64> = model.rates(i).zip(lent).map(|(rate, w)| rate * w).collect();
    model.shape[i * features..(i + 1) * features]
        .iter_mut()
        .zip(gained)
        .for_each(|(nu, gained)| *nu += gained);
    let c = model.prior.c();
    for (t, borrower) in columns {
        let parts = &mut model.parts[*t];
        let Ok(at) = parts.binary_search_by_key(&j, |part| part.k) else { continue };
        let left = parts[at].mean() - loan * borrower.mean();
        let shape = left * parts[at].rate;
        if shape > c {
            parts[at] = Part::new(j, shape, parts[at].rate);
        } else {
            parts.remove(at);
        }
    }
}
