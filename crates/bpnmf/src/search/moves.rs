//! Moves that change the mask and the number of components, judged by the bound. They are a search, not a sampler.

use super::correction::{Curvature, corrected_bound};
use super::model::{Model, Part, used};
use super::pursuit::{Buffers, pursue};
use super::view::{BATCH, View};
use crate::infer::state::least_usage;
use crate::workers::Workers;
use std::sync::OnceLock;

/// Columns handled before the first look at whether a deletion is hopeless; later it is up to [`BATCH`].
const FIRST_LOOK: usize = 4;

/// Every column explained anew; says in which the mask changed. Components may be off everywhere afterwards.
pub(super) fn remask(model: &mut Model, view: &View, workers: &Workers) -> Vec<usize> {
    let log_odds = model.log_odds(&model.usage());
    let mut all = core::mem::take(&mut model.parts);
    let blocks = all.chunks_mut(BATCH).zip(view.columns.chunks(BATCH));
    let changed = workers.map(blocks, |(block, columns)| {
        let mut buffers = Buffers::default();
        let mut changed = Vec::with_capacity(block.len());
        for (parts, column) in block.iter_mut().zip(columns) {
            let before: Vec<usize> = parts.iter().map(|part| part.k).collect();
            pursue(model, column, parts, &log_odds, None, &mut buffers);
            changed.push(!parts.iter().map(|part| part.k).eq(before));
        }
        changed
    });
    model.parts = all;
    changed.into_iter().flatten().enumerate().filter(|(_, changed)| *changed).map(|(t, _)| t).collect()
}

/// The given columns explained anew.
pub(super) fn remask_columns(model: &mut Model, view: &View, columns: &[usize], workers: &Workers) {
    let log_odds = model.log_odds(&model.usage());
    let explained = workers.map(columns.iter(), |&t| {
        let mut parts = model.parts[t].clone();
        pursue(model, &view.columns[t], &mut parts, &log_odds, None, &mut Buffers::default());
        parts
    });
    model.replace(columns.iter().copied().zip(explained).collect());
}

/// The share of every column in the bound, computed when it is asked for.
struct Shares(Vec<OnceLock<f64>>);

impl Shares {
    fn new(model: &Model) -> Self {
        Self(vec![OnceLock::new(); model.observations()])
    }

    fn of(&self, model: &Model, view: &View, t: usize, buffers: &mut Buffers) -> f64 {
        let Buffers { explained, row, .. } = buffers;
        let share = || model.column_value(&view.columns[t], &model.parts[t], &mut explained.field, row);
        *self.0[t].get_or_init(share)
    }
}

/// A component gone and its columns explained by the others.
pub(super) struct Deletion {
    /// What the bound gains.
    gain: f64,
    /// Whether all columns were looked at; if not, the gain is that of those that were.
    complete: bool,
    columns: Vec<(usize, Vec<Part>)>,
}

/// Deletes `k` on paper: W of the others stays, the columns it was on in are explained anew. The attempt ends as soon as
/// the loss is sure to be above `hopeless`.
fn deletion(
    model: &Model,
    view: &View,
    k: usize,
    usage: &[usize],
    shares: &Shares,
    hopeless: f64,
    workers: &Workers,
) -> Deletion {
    let log_odds = model.log_odds(usage);
    // The columns where it explains most come first: they show soonest that it is needed.
    let mut order = model.columns_of(k);
    order.sort_by(|(t, x), (u, y)| y.shape.total_cmp(&x.shape).then(t.cmp(u)));
    // Costs that go whatever the columns say, and what the columns to come can save at most.
    let mut gain = model.kl_w(k);
    let mut to_come: f64 =
        order.len() as f64 * (-log_odds[k]).max(0.0) - model.mask_term(order.len()).min(0.0);
    let mut columns: Vec<(usize, Vec<Part>)> = Vec::with_capacity(order.len());
    while columns.len() < order.len() {
        if gain + to_come < -hopeless {
            return Deletion { gain, complete: false, columns };
        }
        // Few columns show that most components are needed.
        let next = columns.len().clamp(FIRST_LOOK, BATCH).min(order.len() - columns.len());
        let batch = &order[columns.len()..columns.len() + next];
        let results = workers.map(batch.iter(), |&(t, _)| {
            let mut buffers = Buffers::default();
            let column = &view.columns[t];
            let before = shares.of(model, view, t, &mut buffers);
            let mut parts: Vec<Part> = model.parts[t].iter().copied().filter(|part| part.k != k).collect();
            pursue(model, column, &mut parts, &log_odds, Some(k), &mut buffers);
            let after = model.column_value(column, &parts, &mut buffers.explained.field, &mut buffers.row);
            (after - before, parts)
        });
        for (&(t, _), (change, parts)) in batch.iter().zip(results) {
            gain += change;
            to_come -= (-log_odds[k]).max(0.0);
            columns.push((t, parts));
        }
    }
    let mut change = vec![0i64; usage.len()];
    for (t, parts) in &columns {
        model.parts[*t].iter().for_each(|part| change[part.k] -= 1);
        parts.iter().for_each(|part| change[part.k] += 1);
    }
    for (&usage, &change) in usage.iter().zip(&change).filter(|(_, change)| **change != 0) {
        gain += model.mask_term((usage as i64 + change) as usize) - model.mask_term(usage);
    }
    Deletion { gain, complete: true, columns }
}

/// Evidence above this is beyond doubt, and is not measured to its end.
const BEYOND_DOUBT: f64 = 1000.0;

/// What deleting each component costs: the bound with the correction, the others free to take over. Values above 1000
/// are at least that.
pub(super) fn evidence(model: &Model, view: &View, workers: &Workers) -> Vec<f64> {
    let usage = model.usage();
    if model.components() == 1 {
        // Without its only component the data have no explanation at all.
        return vec![f64::INFINITY];
    }
    let (curvature, shares) = (Curvature::of(model, view), Shares::new(model));
    (0..model.components())
        .map(|k| {
            let deletion = deletion(model, view, k, &usage, &shares, BEYOND_DOUBT, workers);
            let lost =
                if deletion.complete { curvature.lost(model, view, k, &deletion.columns).0 } else { 0.0 };
            lost - deletion.gain
        })
        .collect()
}

/// Deletes components, rarest first and only those from `from` on, while the evidence gains by it.
pub(super) fn delete_pass(model: &mut Model, view: &View, from: usize, workers: &Workers) {
    let mut usage = model.usage();
    let mut order: Vec<usize> = (from..model.components()).collect();
    order.sort_by_key(|&k| (usage[k], k));
    let mut left = used(&usage);
    let (mut curvature, mut shares) = (None, Shares::new(model));
    for k in order {
        if usage[k] == 0 || left < 2 {
            continue;
        }
        let Deletion { gain, complete, columns } = deletion(model, view, k, &usage, &shares, 0.0, workers);
        if !complete || gain <= 0.0 {
            continue;
        }
        let (lost, after) =
            curvature.get_or_insert_with(|| Curvature::of(model, view)).lost(model, view, k, &columns);
        if gain > lost {
            model.replace(columns);
            usage = model.usage();
            left = used(&usage);
            model.ascend(view, 1, workers);
            // That of the other columns hardly changes.
            (curvature, shares) = (Some(after), Shares::new(model));
        }
    }
    model.drop_empty();
}

/// A loss above this is not worth a second look.
pub(super) const SECOND_LOOK: f64 = 3000.0;

/// The nats a parameter that a second look must gain: below, the bound of a weak component is not to be trusted.
const UNCERTAIN: f64 = 2.0;

/// What the bound must gain before a component on in so many columns goes, where W of the others is free to follow.
pub(super) fn uncertain(model: &Model, usage: usize) -> f64 {
    UNCERTAIN * (model.features + usage) as f64
}

/// Second looks that may fail in a row.
const FAILED_LOOKS: usize = 4;

/// Deletions with W of the others free to follow, for components that count and whose loss with W fixed is small.
///
/// A slightly wrong W breeds companions that mend it. With W fixed they are needed; without them W comes right.
pub(super) fn follow_pass(model: &mut Model, view: &View, workers: &Workers) {
    let least = least_usage(model.observations());
    let (usage, shares) = (model.usage(), Shares::new(model));
    let mut looks: Vec<(f64, usize)> = (0..model.components())
        .filter(|&k| usage[k] as f64 >= least)
        .map(|k| (deletion(model, view, k, &usage, &shares, SECOND_LOOK, workers), k))
        .filter(|(deletion, _)| deletion.complete && deletion.gain > -SECOND_LOOK)
        .map(|(deletion, k)| (-deletion.gain, k))
        .collect();
    looks.sort_by(|x, y| x.0.total_cmp(&y.0).then(x.1.cmp(&y.1)));
    let mut bound = corrected_bound(model, view, workers);
    let mut failed = 0;
    for (_, k) in looks {
        let usage = model.usage();
        if used(&usage) < 2 {
            break;
        }
        let mut without = model.clone();
        let columns = deletion(model, view, k, &usage, &Shares::new(model), f64::INFINITY, workers).columns;
        let touched: Vec<usize> = columns.iter().map(|(t, _)| *t).collect();
        without.replace(columns);
        without.ascend(view, 3, workers);
        remask_columns(&mut without, view, &touched, workers);
        without.ascend(view, 3, workers);
        let after = corrected_bound(&without, view, workers);
        // Where the bound is not sure enough the component stays.
        if after > bound + uncertain(model, usage[k]) {
            (*model, bound, failed) = (without, after, 0);
        } else {
            failed += 1;
            if failed >= FAILED_LOOKS {
                break;
            }
        }
    }
    model.drop_empty();
}

/// Deletes a component whatever it costs.
pub(super) fn delete(model: &mut Model, view: &View, k: usize, workers: &Workers) {
    let deletion = deletion(model, view, k, &model.usage(), &Shares::new(model), f64::INFINITY, workers);
    model.replace(deletion.columns);
    model.drop_empty();
    model.ascend(view, 3, workers);
}

/// The gain of a complete deletion and the columns without the component.
#[cfg(test)]
pub(super) fn deletion_of(
    model: &Model,
    view: &View,
    k: usize,
    workers: &Workers,
) -> (f64, Vec<(usize, Vec<Part>)>) {
    let deletion = deletion(model, view, k, &model.usage(), &Shares::new(model), f64::INFINITY, workers);
    (deletion.gain, deletion.columns)
}
