//! New components from what the present ones leave unexplained.

use super::model::{Model, Part};
use super::start::factorise;
use super::view::{Column, View};
use crate::random::Key;
use crate::workers::Workers;

/// Counts must be this many standard deviations above what is expected to be called unexplained.
const ABOVE: f64 = 2.0;

/// Components tried at a time.
pub(super) const BROOD: usize = 8;

/// The counts above what the model and Poisson noise make expected.
fn excess(model: &Model, view: &View, workers: &Workers) -> View {
    let features = model.features;
    let columns = workers.map(model.parts.iter().zip(&view.columns), |(parts, column)| {
        let mut x = column.to_dense(features);
        let mean = expected(model, parts);
        x.iter_mut().zip(&mean).for_each(|(x, m)| *x = (*x - m - ABOVE * m.sqrt()).max(0.0));
        Column::dense(x)
    });
    View::of(features, columns)
}

/// The mean of every entry of a column.
pub(super) fn expected(model: &Model, parts: &[Part]) -> Vec<f64> {
    let mut mean = vec![0.0; model.features];
    for part in parts {
        let scale = part.mean() / model.rate[part.k];
        mean.iter_mut().zip(model.shapes(part.k)).for_each(|(m, shape)| *m += scale * shape);
    }
    mean
}

/// Adds up to `count` components found in the excess, and says how many.
pub(super) fn add(model: &mut Model, view: &View, count: usize, key: Key, workers: &Workers) -> usize {
    let excess = excess(model, view, workers);
    if excess.total <= 0.0 || count == 0 {
        return 0;
    }
    let features = model.features;
    let (b, c, d) = (model.prior.b(), model.prior.c(), model.prior.d());
    let factors = factorise(&excess, count, 15, key, model.simd, workers);
    let before = model.components();
    for k in 0..count {
        let counts = |t: usize| factors.h[t][k];
        let noticed = |t: usize| {
            counts(t) > 1.0
                && counts(t) > 0.2 * excess.columns[t].total
                && counts(t) > 0.01 * view.columns[t].total
        };
        let on: Vec<usize> = (0..excess.columns.len()).filter(|&t| noticed(t)).collect();
        if on.is_empty() {
            continue;
        }
        let mean = on.iter().map(|&t| counts(t)).sum::<f64>() / on.len() as f64;
        let rate = b + on.len() as f64;
        let a = model.prior.a();
        let row = &factors.w[k * features..][..features];
        let new = model.push(row.iter().map(|w| a + w * mean * rate), rate);
        for t in on {
            model.parts[t].push(Part::new(new, c + counts(t), d + mean));
        }
    }
    model.settle(workers);
    model.components() - before
}

/// Splits the component that explains most into two halves, one for each half of its columns.
pub(super) fn halve_largest(model: &mut Model, workers: &Workers) {
    let mut size = vec![0.0; model.components()];
    for part in model.parts.iter().flatten() {
        size[part.k] += part.mean() * model.sum[part.k];
    }
    let largest = (0..size.len()).max_by(|&i, &j| size[i].total_cmp(&size[j])).expect("not empty");
    let columns = model.columns_of(largest);
    let shapes = model.shapes(largest).to_vec();
    let new = model.push(shapes.into_iter(), model.rate[largest]);
    let (front, back) = columns.split_at(columns.len() / 2);
    for (half, of) in [(front, 0.75), (back, 0.25)] {
        for &(t, part) in half {
            for (k, share) in [(largest, of), (new, 1.0 - of)] {
                model.parts[t].retain(|part| part.k != k);
                let at = model.parts[t].partition_point(|other| other.k < k);
                model.parts[t].insert(at, Part::new(k, part.shape * share, part.rate));
            }
        }
    }
    model.settle(workers);
}
