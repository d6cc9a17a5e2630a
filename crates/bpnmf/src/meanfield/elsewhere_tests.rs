//! A model of some columns says of a change in them what the model of all columns says.

use super::elsewhere::Whole;
use super::model::{Model, Part};
use super::tests::{fitted, kinds, scattered, workers};
use super::view::View;
use crate::workers::Workers;

/// The bound and the evidence.
fn judged(model: &Model, view: &View, workers: &Workers) -> [f64; 2] {
    [model.bound(view, workers), model.evidence(view, workers)]
}

fn whole(model: &Model, view: &View, workers: &Workers) -> Whole {
    Whole::new(model, model.evidence_in_full(view, workers).squares)
}

/// Every second component half as strong again in the given columns.
fn louder(model: &mut Model, columns: impl Iterator<Item = usize>) {
    for t in columns {
        for part in model.parts[t].iter_mut().filter(|part| part.k % 2 == 0) {
            *part = Part::new(part.k, 1.5 * part.shape, part.rate);
        }
    }
}

#[test]
fn a_change_of_h_in_some_columns_is_worth_the_same_with_and_without_the_others() {
    let workers = workers(1);
    for (name, counts) in kinds() {
        let (mut model, view) = fitted(&counts, 6, &workers);
        model.converge(&view, 60, 0.01, &workers);
        let mut of_weighed = model.clone();
        let weighed = scattered(&mut of_weighed, &view, 5.0, &workers);
        of_weighed.converge(&weighed, 60, 0.01, &workers);
        for (model, view) in [(&model, &view), (&of_weighed, &weighed)] {
            let columns: Vec<usize> = (0..model.observations()).step_by(3).collect();
            let whole = whole(model, view, &workers);
            let (mut some, some_view) = model.within(view, &columns, &whole, &workers);
            let mut all = model.clone();
            let before = [judged(model, view, &workers), judged(&some, &some_view, &workers)];
            louder(&mut some, 0..columns.len());
            louder(&mut all, columns.iter().copied());
            let after = [judged(&all, view, &workers), judged(&some, &some_view, &workers)];
            for i in 0..2 {
                let [of_all, of_some] = [0, 1].map(|which| after[which][i] - before[which][i]);
                let difference = (of_all - of_some).abs();
                assert!(difference < 1e-4 * (1.0 + of_all.abs()), "{name}, {i}: {of_all} {of_some}");
            }
        }
    }
}

#[test]
fn what_some_columns_gain_all_columns_gain() {
    let workers = workers(1);
    // The largest do not converge in so few steps, and what was claimed some steps ago is not what is claimed now.
    for (name, counts) in kinds().into_iter().filter(|(name, _)| *name != "large") {
        let (mut model, view) = fitted(&counts, 6, &workers);
        model.converge(&view, 900, 1e-6, &workers);
        let columns: Vec<usize> = (0..model.observations()).step_by(3).collect();
        let (mut some, some_view) = model.within(&view, &columns, &whole(&model, &view, &workers), &workers);
        louder(&mut some, 0..columns.len());
        let mut all = model.clone();
        louder(&mut all, columns.iter().copied());
        let before = [all.bound(&view, &workers), some.bound(&some_view, &workers)];
        some.ascend(&some_view, 6, &workers);
        let gain = some.bound(&some_view, &workers) - before[1];
        let after = model.with(some, &columns, &workers);
        let whole_gain = after.bound(&view, &workers) - before[0];
        assert!(gain > 0.0 && whole_gain > gain - 0.02 * gain.max(1.0), "{name}: {gain} {whole_gain}");
    }
}

#[test]
fn a_component_that_goes_where_it_is_on_is_gone_everywhere() {
    let workers = workers(1);
    for (name, counts) in kinds() {
        let (model, view) = fitted(&counts, 6, &workers);
        for k in 0..model.components() {
            let columns: Vec<usize> = model.columns_of(k).into_iter().map(|(t, _)| t).collect();
            let (mut some, _) = model.within(&view, &columns, &whole(&model, &view, &workers), &workers);
            some.parts.iter_mut().for_each(|parts| parts.retain(|part| part.k != k));
            some.drop_empty();
            let after = model.with(some, &columns, &workers);
            let kept: Vec<usize> = (0..model.components()).filter(|&j| j != k).collect();
            let mut plain = model.clone();
            plain.keep(&kept);
            plain.settle(&workers);
            assert!(after.shape == plain.shape && after.parts == plain.parts, "{name}, {k}");
            assert_eq!(after.sum, plain.sum, "{name}, {k}");
        }
    }
}
