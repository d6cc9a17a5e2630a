//! A changed model against the one it was made from: the larger moves are tried on a copy, brought to rest and judged.

use super::correction::corrected_bound;
use super::model::{Model, used};
use super::moves::{SECOND_LOOK, remask_columns};
use super::view::View;
use crate::workers::Workers;

/// Trials of one pass. The bounds of the model are computed once.
#[derive(Default)]
pub(super) struct Trials {
    plain: Option<f64>,
    corrected: Option<f64>,
}

impl Trials {
    /// Puts `changed` in the place of the model if the bound gains by it, and more than `margin` if it has fewer
    /// components. The columns that were `touched` are explained anew; W follows. A change that is hopeless at the first
    /// look is dropped.
    pub(super) fn judge(
        &mut self,
        model: &mut Model,
        mut changed: Model,
        touched: &[usize],
        margin: f64,
        view: &View,
        workers: &Workers,
    ) {
        changed.ascend(view, 1, workers);
        let plain = *self.plain.get_or_insert_with(|| model.bound(view, workers));
        if changed.bound(view, workers) < plain - SECOND_LOOK {
            return;
        }
        changed.ascend(view, 2, workers);
        remask_columns(&mut changed, view, touched, workers);
        changed.ascend(view, 3, workers);
        let before = *self.corrected.get_or_insert_with(|| corrected_bound(model, view, workers));
        let after = corrected_bound(&changed, view, workers);
        let needed = if used(&changed.usage()) < used(&model.usage()) { margin } else { 0.0 };
        if after > before + needed {
            *model = changed;
            *self = Self { plain: None, corrected: Some(after) };
        }
    }
}
