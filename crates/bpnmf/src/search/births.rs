//! New components from what the present ones leave unexplained.

use super::resolution::{deviance, expected_deviance};
use super::start::factorise;
use crate::meanfield::kernels::dot;
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

/// The mean of every entry of a column times its weight, zero where it is missing: what is expected of the entry as it is
/// held.
pub(super) fn expected(model: &Model, column: &Column, parts: &[Part]) -> Vec<f64> {
    let mut mean = model.expected(parts);
    column.expose(&mut mean);
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
    let (b, c) = (model.prior.b(), model.prior.c());
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
            let rate = model.d_in(&view.columns[t]) + mean;
            model.parts[t].push(Part::new(new, c + counts(t), rate));
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
    let (a, b, c) = (model.prior.a(), model.prior.b(), model.prior.c());
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
            let t = columns[i].0;
            let rate = model.d_in(&view.columns[t]) + mean;
            insert(&mut model.parts[t], Part::new(place, c + counts(i), rate));
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

/// Columns that may give a component its looks, and those that are asked whether they share it: no more than keep the work
/// within so many products.
const MOST_PRODUCTS: f64 = 2e8;

/// A column shares what another has too much of if its score is so many standard deviations above zero.
const SHARED: f64 = 1.5;

/// The most that one column adds to a direction's score, and the most columns a new component starts on in.
const MOST_SCORE: f64 = 50.0;
const MOST_SHARING: usize = 30;

/// Directions closer to each other than this cosine are the same.
const SAME: f64 = 0.85;

/// Adds up to `count` components, each from what one column has too much of and others share, and says how many.
///
/// With the rates R of the model and weights w the score of column t' for more of the direction e is
/// sum_f w (X / R - 1) e, with the variance sum_f w X / R^2 e^2. The directions are the excesses of the columns; the one
/// whose squared scores beyond [`SHARED`], added up over the other columns, are largest comes first. It finds components
/// that are on in a few columns only, which an NMF of the residual does not.
pub(super) fn share(model: &mut Model, view: &View, count: usize, workers: &Workers) -> usize {
    let (features, before) = (model.features, model.components());
    let looked: Vec<usize> = {
        let most = (MOST_PRODUCTS / (2.0 * features as f64)).sqrt() as usize;
        let every = view.columns.len().div_ceil(most.max(2)).max(1);
        (0..view.columns.len()).step_by(every).filter(|&t| view.columns[t].total > 0.0).collect()
    };
    // Slopes, curvatures and directions of all columns, each by features.
    let columns = workers.map(looked.iter(), |&t| {
        let column = &view.columns[t];
        let mean = model.expected(&model.parts[t]);
        let mut weights = vec![1.0; features];
        column.expose(&mut weights);
        let x = column.to_dense(features);
        let (mut slope, mut curve, mut excess) =
            (vec![0.0; features], vec![0.0; features], vec![0.0; features]);
        for f in 0..features {
            let (mean, weighed) = (mean[f].max(1e-9), x[f]);
            slope[f] = weighed / mean - weights[f];
            curve[f] = weighed / (mean * mean);
            // In counts, not in weighed ones.
            excess[f] = if weights[f] > 0.0 { (weighed / weights[f] - mean).max(0.0) } else { 0.0 };
        }
        (slope, curve, excess)
    });
    let total = |t: usize| columns[t].2.iter().sum::<f64>();
    let directions: Vec<Vec<f64>> = (0..columns.len())
        .map(|t| {
            let all = total(t).max(f64::MIN_POSITIVE);
            columns[t].2.iter().map(|excess| excess / all).collect()
        })
        .collect();
    let scores = workers.map(0..columns.len(), |t| {
        let squares: Vec<f64> = directions[t].iter().map(|e| e * e).collect();
        let score = |(slope, curve, _): &(Vec<f64>, Vec<f64>, Vec<f64>)| {
            let (up, variance) = (dot(model.simd, slope, &directions[t]), dot(model.simd, curve, &squares));
            (up / variance.max(1e-300).sqrt(), up / variance.max(1e-300))
        };
        columns.iter().map(score).collect::<Vec<(f64, f64)>>()
    });
    let strength = |t: usize| {
        let others = scores[t].iter().enumerate().filter(|(other, _)| *other != t);
        others.map(|(_, (score, _))| (score - SHARED).max(0.0).powi(2).min(MOST_SCORE)).sum::<f64>()
    };
    let mut order: Vec<(f64, usize)> = (0..columns.len()).map(|t| (strength(t), t)).collect();
    order.retain(|(strength, _)| *strength > 0.0);
    order.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
    let cosine = |s: usize, t: usize| {
        let (one, other) = (&directions[s], &directions[t]);
        dot(model.simd, one, other) / (dot(model.simd, one, one) * dot(model.simd, other, other)).sqrt()
    };
    let mut chosen: Vec<usize> = Vec::new();
    for &(_, t) in &order {
        if chosen.len() == count {
            break;
        }
        if chosen.iter().all(|&other| cosine(other, t) <= SAME) {
            chosen.push(t);
        }
    }
    let (a, b, c) = (model.prior.a(), model.prior.b(), model.prior.c());
    for t in chosen {
        let mut on: Vec<usize> = (0..columns.len()).filter(|&s| s != t && scores[t][s].0 > SHARED).collect();
        on.sort_by(|&r, &s| scores[t][s].0.total_cmp(&scores[t][r].0).then(r.cmp(&s)));
        on.truncate(MOST_SHARING);
        on.push(t);
        on.sort_unstable();
        let mut row = vec![0.0; features];
        for &s in &on {
            let all = total(s).max(1e-9);
            row.iter_mut().zip(&columns[s].2).for_each(|(row, excess)| *row += excess / all);
        }
        let sum: f64 = row.iter().sum();
        let counts: Vec<f64> =
            on.iter().map(|&s| scores[t][s].1.max(0.01 * view.columns[looked[s]].total).max(1e-6)).collect();
        let mean = counts.iter().sum::<f64>() / on.len() as f64;
        let rate = b + on.len() as f64;
        let new = model.push(row.iter().map(|w| a + w / sum * mean * rate), rate);
        for (&s, counts) in on.iter().zip(counts) {
            let t = looked[s];
            let rate = model.d_in(&view.columns[t]) + mean;
            model.parts[t].push(Part::new(new, c + counts, rate));
        }
    }
    model.settle(workers);
    model.components() - before
}
