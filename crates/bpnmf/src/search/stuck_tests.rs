//! Moves that get out of places where single moves are stuck, each from such a place.

use super::model::Model;
use super::view::View;
use super::{borrow, chain, composite};
use crate::counts::Counts;
use crate::prior::Prior;
use crate::random::{Key, Site};
use crate::workers::Workers;

/// The components that are on in each column, and their h.
type Columns = Vec<Vec<(usize, f64)>>;

/// Counts of parts with the given W, each on where `on` says, as strong as `h` draws it; and what is on in each column.
fn planted(parts: &[[f64; 12]], observations: usize, on: impl Fn(usize, usize) -> bool) -> (Counts, Columns) {
    let key = Key::new(9);
    let columns: Columns = (0..observations)
        .map(|t| {
            let h = |k: usize| key.stream(Site::Synthesis, 0, t as u32, k as u32).gamma(2.0) / 2.0;
            (0..parts.len()).filter(|&k| on(k, t)).map(|k| (k, h(k))).collect()
        })
        .collect();
    let draw = |t: usize, f: usize| {
        let rate: f64 = columns[t].iter().map(|&(k, h)| h * parts[k][f]).sum();
        key.stream(Site::Synthesis, 1, t as u32, f as u32).poisson(rate)
    };
    let values = (0..observations).flat_map(|t| (0..12).map(move |f| (t, f))).map(|(t, f)| draw(t, f));
    (Counts::from_dense(12, observations, values.collect()).unwrap(), columns)
}

/// A model at the given W and h, as far as coordinate ascent takes it from there.
fn at<'a>(
    counts: &'a Counts,
    parts: &[[f64; 12]],
    columns: &[Vec<(usize, f64)>],
    workers: &Workers,
) -> (Model, View<'a>) {
    let view = View::new(counts);
    let prior =
        Prior { a: 0.3, b: 0.02, c: 2.0, d: 2.0, components: 50, ..Prior::default() }.check().unwrap();
    let mut model = Model::empty(workers.simd, 12, counts.observations(), prior);
    chain::fill(&mut model, &view, parts.len(), &|k, f| parts[k][f], columns, workers);
    model.ascend(&view, 10, workers);
    (model, view)
}

const PLANTED: [[f64; 12]; 3] = [
    [40.0, 30.0, 20.0, 30.0, 0.0, 12.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [0.0, 0.0, 0.0, 0.0, 0.0, 90.0, 3.0, 3.0, 0.0, 0.0, 0.0, 0.0],
    [0.0, 0.0, 0.0, 0.0, 20.0, 0.0, 20.0, 0.0, 30.0, 30.0, 20.0, 40.0],
];

#[test]
fn a_part_that_borrows_gets_what_it_lacks() {
    let workers = Workers::serial();
    let on = |k: usize, t: usize| [t % 4 < 1, t % 3 < 1, t % 2 == 1 || t % 5 < 1][k];
    let (counts, mut columns) = planted(&PLANTED, 120, on);
    // The first part lacks its sixth feature and has it from the second, on in all its columns.
    let mut wrong = PLANTED;
    wrong[0][5] = 1e-6;
    for column in &mut columns {
        if let Some(&(0, h)) = column.first() {
            match column.iter_mut().find(|(k, _)| *k == 1) {
                Some((_, lent)) => *lent += h * 12.0 / 90.0,
                None => column.insert(1, (1, h * 12.0 / 90.0)),
            }
        }
    }
    let (mut model, view) = at(&counts, &wrong, &columns, &workers);
    assert_eq!(model.usage()[1], 60, "the start is stuck");
    let before = model.bound(&view, &workers);
    borrow::borrow_pass(&mut model, &view, &workers);
    assert!(model.bound(&view, &workers) > before + 20.0);
    assert!((39..=42).contains(&model.usage()[1]), "{:?}", model.usage());
    let w: Vec<f64> = model.means(0).collect();
    assert!((w[5] / w[0] / 0.3 - 1.0).abs() < 0.1, "{w:?}");
}

#[test]
fn a_part_that_is_the_sum_of_others_is_taken_apart() {
    let workers = Workers::serial();
    let on = |k: usize, t: usize| [t % 2 < 1, t % 3 < 1, t % 5 < 2][k];
    let (counts, mut columns) = planted(&PLANTED, 240, on);
    // A fourth part is the first two together, and is on in the place of the weaker of them.
    let mut sum = PLANTED[0];
    sum.iter_mut().zip(PLANTED[1]).for_each(|(w, other)| *w += other);
    let wrong = [PLANTED[0], PLANTED[1], PLANTED[2], sum];
    for column in &mut columns {
        if column.len() > 1 && column[1].0 == 1 && column[0].0 == 0 {
            let both = column[0].1.min(column[1].1);
            let weaker = usize::from(column[1].1 < column[0].1);
            column[1 - weaker].1 -= both;
            column.remove(weaker);
            column.push((3, both));
        }
    }
    let (mut model, view) = at(&counts, &wrong, &columns, &workers);
    assert_eq!((model.components(), model.usage()[3]), (4, 40), "the start is stuck");
    let before = model.bound(&view, &workers);
    composite::composite_pass(&mut model, &view, &workers);
    assert_eq!(model.components(), 3);
    assert!(model.bound(&view, &workers) > before);
    // And what is not a sum of others stays.
    let right = model.clone();
    composite::composite_pass(&mut model, &view, &workers);
    assert_eq!(model.components(), right.components());
}
