//! A component that only ever sounds together with others is a shared piece of them: it is given back to them.
//!
//! Three components {C, A', B'} can explain what two, A = C + A' and B = C + B', would explain with fewer parameters.
//! Neither merging a pair nor deleting C with the others' W fixed gets from the one to the other.

use super::model::{Model, Part};
use super::trial::Trials;
use super::view::View;
use crate::workers::Workers;

/// A companion is on together with the shared piece in at least this share of its own columns.
const TOGETHER: f64 = 0.7;

/// Companions must cover at least this share of the columns of the shared piece.
const COVERED: f64 = 0.8;

/// The components that `k` could be a piece of, and the columns each would take it over in.
fn companions(
    model: &Model,
    k: usize,
    columns: &[(usize, Part)],
    usage: &[usize],
) -> Option<Vec<(usize, usize)>> {
    let mut together = vec![0usize; model.components()];
    for (t, _) in columns {
        model.parts[*t].iter().for_each(|part| together[part.k] += 1);
    }
    let companion = |j: usize| j != k && together[j] > 1 && together[j] as f64 >= TOGETHER * usage[j] as f64;
    let mut takers = Vec::new();
    for (t, _) in columns {
        // Of several companions the rarest: the others have reasons of their own to be on.
        let rarest = model.parts[*t]
            .iter()
            .filter(|part| companion(part.k))
            .min_by_key(|part| (usage[part.k], part.k));
        takers.extend(rarest.map(|part| (*t, part.k)));
    }
    (takers.len() as f64 >= COVERED * columns.len() as f64).then_some(takers)
}

/// Gives shared pieces, the components from `from` on, back to those they are pieces of, while the bound gains by it.
pub(super) fn absorb_pass(model: &mut Model, view: &View, from: usize, workers: &Workers) {
    let mut trials = Trials::default();
    for k in (from..model.components()).rev() {
        let (columns, usage) = (model.columns_of(k), model.usage());
        let Some(takers) = companions(model, k, &columns, &usage) else { continue };
        let mut without = model.clone();
        give(&mut without, k, &columns, &takers);
        without.settle(workers);
        let touched: Vec<usize> = columns.iter().map(|(t, _)| *t).collect();
        trials.judge(model, without, &touched, 0.0, view, workers);
    }
    model.drop_empty();
}

/// Moves the counts of `k` to the components that take it over; `k` is off everywhere afterwards.
fn give(model: &mut Model, k: usize, columns: &[(usize, Part)], takers: &[(usize, usize)]) {
    let (features, a, c) = (model.features, model.prior.a(), model.prior.c());
    let own: Vec<f64> = model.shapes(k).iter().map(|nu| (nu - a).max(0.0)).collect();
    let all: f64 = columns.iter().map(|(_, part)| part.shape - c).sum::<f64>().max(1e-300);
    let mut taken = vec![0.0; model.components()];
    let mut taker = takers.iter().peekable();
    for (t, part) in columns {
        let counts = (part.shape - c).max(0.0);
        if let Some((_, j)) = taker.next_if(|(u, _)| u == t) {
            taken[*j] += counts;
            let parts = &mut model.parts[*t];
            let at = parts.binary_search_by_key(j, |part| part.k).expect("a companion is on");
            parts[at] = Part::new(*j, parts[at].shape + counts, parts[at].rate);
        }
        // A column must not be left with nothing: there the piece stays on for now.
        if model.parts[*t].len() > 1 {
            model.parts[*t].retain(|part| part.k != k);
        }
    }
    for (j, taken) in taken.into_iter().enumerate().filter(|(_, taken)| *taken > 0.0) {
        let row = &mut model.shape[j * features..(j + 1) * features];
        row.iter_mut().zip(&own).for_each(|(shape, own)| *shape += own * taken / all);
    }
}
