//! New components from what the present ones leave unexplained.

use super::resolution::{deviance, expected_deviance};
use super::start::factorise;
use crate::meanfield::model::{Model, Part, insert};
use crate::meanfield::view::{Column, View};
use crate::random::Key;
use crate::workers::Workers;

/// Counts must be this many standard deviations above what is expected to be called unexplained.
const ABOVE: f64 = 2.0;

/// The counts above what the model and Poisson noise make expected.
fn excess<'a>(model: &Model, view: &View<'a>, workers: &Workers) -> View<'a> {
    let features = model.features;
    let columns = workers.map(model.parts.iter().zip(&view.columns), |(parts, column)| {
        let mean = expected(model, column, parts);
        column.mapped(&mean, |x, mean| (x - mean - ABOVE * mean.sqrt()).max(0.0))
    });
    View::of(features, columns)
}

/// The mean of every entry of a column, zero where it is missing.
pub(super) fn expected(model: &Model, column: &Column, parts: &[Part]) -> Vec<f64> {
    let mut mean = vec![0.0; model.features];
    for part in parts {
        let h = part.mean();
        let entries = model.shapes(part.k).iter().zip(model.rates(part.k));
        mean.iter_mut().zip(entries).for_each(|(m, (shape, rate))| *m += h / rate * shape);
    }
    column.missing.iter().for_each(|&f| mean[f as usize] = 0.0);
    mean
}

/// Adds up to `count` components found in the excess, and says how many.
pub(super) fn add(model: &mut Model, view: &View, count: usize, key: Key, workers: &Workers) -> usize {
    if count == 0 {
        return 0;
    }
    let excess = excess(model, view, workers);
    if excess.total <= 0.0 {
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

/// Splits the components whose columns fit worst, up to `count` of them, and says how many.
pub(super) fn split(model: &mut Model, view: &View, count: usize, key: Key, workers: &Workers) -> usize {
    let misfit = workers.map(model.parts.iter().zip(&view.columns), |(parts, column)| {
        let mean = expected(model, column, parts);
        let entries = column.to_dense(model.features).into_iter().zip(&mean);
        let excess: f64 = entries.map(|(x, &mean)| deviance(x, mean) - expected_deviance(mean)).sum();
        let total: f64 = mean.iter().sum();
        parts
            .iter()
            .map(|part| (part.k, excess * model.sum_in(column, part.k) * part.mean() / total))
            .collect::<Vec<_>>()
    });
    let mut score = vec![0.0; model.components()];
    misfit.iter().flatten().for_each(|(k, misfit)| score[*k] += misfit);
    let mut order: Vec<usize> = (0..score.len()).filter(|&k| score[k] > 0.0).collect();
    order.sort_by(|&i, &j| score[j].total_cmp(&score[i]).then(i.cmp(&j)));
    order.truncate(count);
    let before = model.components();
    for (number, k) in order.into_iter().enumerate() {
        in_two(model, view, k, key.derived(number as u64), workers);
    }
    model.settle(workers);
    model.components() - before
}

/// Two components in the place of `k`: an NMF of the counts that are its own.
fn in_two(model: &mut Model, view: &View, k: usize, key: Key, workers: &Workers) {
    /// On where it explains at least this share of the counts of the two.
    const SHARE: f64 = 0.2;
    let features = model.features;
    let columns = model.columns_of(k);
    if columns.len() < 2 {
        return;
    }
    let own = columns.iter().map(|&(t, part)| {
        let column = &view.columns[t];
        let (mut shares, h) = (expected(model, column, &model.parts[t]), part.mean());
        for ((share, shape), rate) in shares.iter_mut().zip(model.shapes(k)).zip(model.rates(k)) {
            *share = h / rate * shape / share.max(1e-300);
        }
        column.mapped(&shares, |x, share| if x > 0.0 { x * share } else { 0.0 })
    });
    let own = View::of(features, own.collect());
    let factors = factorise(&own, 2, 20, key, model.simd, workers);
    let on = |half: usize| -> Vec<usize> {
        (0..columns.len()).filter(|&i| factors.h[i][half] > SHARE * own.columns[i].total).collect()
    };
    let halves = [on(0), on(1)];
    if halves.iter().any(Vec::is_empty) {
        return;
    }
    let (a, b, c, d) = (model.prior.a(), model.prior.b(), model.prior.c(), model.prior.d());
    for &(t, _) in &columns {
        model.parts[t].retain(|part| part.k != k);
    }
    for (half, on) in halves.iter().enumerate() {
        let counts = |i: usize| factors.h[i][half];
        let mean = on.iter().map(|&i| counts(i)).sum::<f64>() / on.len() as f64;
        let rate = b + on.len() as f64;
        let shapes: Vec<f64> =
            factors.w[half * features..][..features].iter().map(|w| a + w * mean * rate).collect();
        let place = if half == 0 {
            model.shape[k * features..(k + 1) * features].copy_from_slice(&shapes);
            model.rate[k] = rate;
            model.unseen.iter_mut().skip(k * features).take(features).for_each(|unseen| *unseen = 0.0);
            k
        } else {
            model.push(shapes.into_iter(), rate)
        };
        for &i in on {
            insert(&mut model.parts[columns[i].0], Part::new(place, c + counts(i), d + mean));
        }
    }
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
                insert(&mut model.parts[t], Part::new(k, part.shape * share, part.rate));
            }
        }
    }
    model.settle(workers);
}
