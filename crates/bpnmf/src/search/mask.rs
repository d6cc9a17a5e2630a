//! The mask chosen anew, column by column.

use super::pursuit::{Buffers, pursue};
use crate::meanfield::model::Model;
use crate::meanfield::view::{BATCH, View};
use crate::workers::Workers;

/// Every column explained anew; says in which the mask changed. Components may be off everywhere afterwards.
pub(super) fn remask(model: &mut Model, view: &View, workers: &Workers) -> Vec<usize> {
    let log_odds = model.log_odds(&model.usage());
    remask_some(model, view, &log_odds, |_| true, workers)
}

/// Some columns explained anew at the given log odds of the components.
pub(crate) fn remask_some(
    model: &mut Model,
    view: &View,
    log_odds: &[f64],
    chosen: impl Fn(usize) -> bool + Sync + Send,
    workers: &Workers,
) -> Vec<usize> {
    let mut all = core::mem::take(&mut model.parts);
    let blocks = all.chunks_mut(BATCH).zip(view.columns.chunks(BATCH)).enumerate();
    let changed = workers.map(blocks, |(first, (block, columns))| {
        let mut buffers = Buffers::default();
        let mut changed = Vec::with_capacity(block.len());
        for (t, (parts, column)) in block.iter_mut().zip(columns).enumerate() {
            if !chosen(first * BATCH + t) {
                changed.push(false);
                continue;
            }
            let before: Vec<usize> = parts.iter().map(|part| part.k).collect();
            pursue(model, column, parts, log_odds, None, &mut buffers);
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
