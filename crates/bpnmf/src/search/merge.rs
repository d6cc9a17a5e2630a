//! Two components become one when that raises the bound: the counts of both, pooled.

use super::kernels::{add_scaled, dot, sum_x_ln};
use super::model::{Model, Part, geometric, insert};
use super::view::View;
use crate::workers::Workers;

/// Only pairs with a cosine above this, of W or of H, are tried.
const ALIKE: f64 = 0.6;

/// The most rounds of merges in a pass.
const ROUNDS: usize = 6;

/// Two components as one.
struct Union {
    gain: f64,
    shape: Vec<f64>,
    rate: f64,
    /// See [`Model::unseen`].
    unseen: Vec<f64>,
    parts: Vec<(usize, Part)>,
}

/// What explains a column: see [`Model::field`], and its share in the bound.
struct Explained {
    field: Vec<f64>,
    value: f64,
}

impl Explained {
    fn new(model: &Model, view: &View, t: usize) -> Self {
        let (mut field, column) = (Vec::new(), &view.columns[t]);
        model.field(column, &model.parts[t], &mut field, &mut Vec::new());
        Self { value: sum_x_ln(model.simd, &column.x, &field), field }
    }
}

/// What putting `j` into `i` gains; `None` as soon as it is clear that it does not.
fn union(model: &Model, view: &View, explained: &[Explained], i: usize, j: usize) -> Option<Union> {
    let prior = model.prior;
    let (a, b, c, d) = (prior.a(), prior.b(), prior.c(), prior.d());
    let shape: Vec<f64> = model.shapes(i).iter().zip(model.shapes(j)).map(|(x, y)| x + y - a).collect();
    let (first, second) = (model.columns_of(i), model.columns_of(j));
    let usage = (first.len(), second.len());
    let columns = joined(&first, &second);
    let pooled = |old: &[Option<Part>; 2]| c + old.iter().flatten().map(|part| part.shape - c).sum::<f64>();
    let total: f64 = columns.iter().map(|(_, old)| pooled(old)).sum();
    // The share of its activation that each feature did not see.
    let both = model.rate[i] + model.rate[j];
    let rates = model.rates(i).zip(model.rates(j));
    let unseen: Vec<f64> = if view.partial {
        rates.map(|(x, y)| ((both - x - y) / (both - 2.0 * b).max(1e-300)).clamp(0.0, 1.0)).collect()
    } else {
        Vec::new()
    };
    let rate_at = |rate: f64, f: usize| rate - unseen.get(f).map_or(0.0, |unseen| unseen * (rate - b));
    let sums_at = |rate: f64| {
        let seen = |f: usize| if unseen.is_empty() { 1.0 } else { rate_at(rate, f) / rate };
        Sums::new(view, &columns, shape.iter().enumerate().map(|(f, nu)| nu / seen(f)))
    };
    // The rates of a component alone with its counts: q(W) and q(H) each fitted to the other.
    let sums = sums_at(both);
    let mut rate = both;
    for _ in 0..200 {
        let next = b + match &sums.by_column {
            None => total / (d + sums.all / rate),
            Some(sums) => {
                columns.iter().zip(sums).map(|((_, old), sum)| pooled(old) / (d + sum / rate)).sum()
            }
        };
        let settled = (next - rate).abs() < 1e-10 * rate;
        rate = next;
        if settled {
            break;
        }
    }
    let sums = sums_at(rate);
    let mut gain = model.kl_w(i) + model.kl_w(j) + model.mask_term(columns.len())
        - model.mask_term(usage.0)
        - model.mask_term(usage.1)
        - model.kl_row(&shape, rate, (0..shape.len()).map(|f| rate_at(rate, f)));
    // q(h) of the union is known before any column is looked at: so is the most that the columns can save.
    let mut saved = Vec::with_capacity(columns.len());
    let mut parts = Vec::with_capacity(columns.len());
    for (at, (t, old)) in columns.iter().enumerate() {
        let column = &view.columns[*t];
        let sum = sums.of(at) / rate;
        let part = Part::new(i, pooled(old), d + sum);
        let before: f64 = old.iter().flatten().map(|part| model.cost(column, part)).sum();
        saved.push(before - sum * part.mean() - model.kl_h(&part));
        parts.push((*t, part));
    }
    let mut to_come: f64 = saved.iter().sum();
    let row: Vec<f64> = shape.iter().enumerate().map(|(f, &nu)| geometric(nu, rate_at(rate, f))).collect();
    let (mut field, mut buffer) = (Vec::new(), Vec::new());
    for (((t, old), (_, part)), saved) in columns.iter().zip(&parts).zip(&saved) {
        if gain + to_come < 0.0 {
            return None;
        }
        let column = &view.columns[*t];
        field.clone_from(&explained[*t].field);
        for part in old.iter().flatten() {
            add_scaled(
                model.simd,
                &mut field,
                column.gather(model.row(part.k), &mut buffer),
                -part.geometric,
            );
        }
        field.iter_mut().for_each(|v| *v = v.max(0.0));
        add_scaled(model.simd, &mut field, column.gather(&row, &mut buffer), part.geometric);
        gain += saved + sum_x_ln(model.simd, &column.x, &field) - explained[*t].value;
        to_come -= saved;
    }
    let unseen = unseen.iter().map(|share| share * (rate - b)).collect();
    (gain > 0.0).then_some(Union { gain, shape, rate, unseen, parts })
}

/// The sum of W times its rate over the features of a column.
struct Sums {
    all: f64,
    /// Without the features that are missing; only if some are.
    by_column: Option<Vec<f64>>,
}

impl Sums {
    fn new(view: &View, columns: &[(usize, [Option<Part>; 2])], w: impl Iterator<Item = f64>) -> Self {
        if !view.partial {
            return Self { all: w.sum(), by_column: None };
        }
        let w: Vec<f64> = w.collect();
        let all: f64 = w.iter().sum();
        let observed = |(t, _): &(usize, _)| (all - view.columns[*t].unseen(&w)).max(0.0);
        Self { all, by_column: Some(columns.iter().map(observed).collect()) }
    }

    fn of(&self, column: usize) -> f64 {
        self.by_column.as_ref().map_or(self.all, |sums| sums[column])
    }
}

/// Two lists of columns as one, with the part of each where it is on.
fn joined(first: &[(usize, Part)], second: &[(usize, Part)]) -> Vec<(usize, [Option<Part>; 2])> {
    let mut out = Vec::with_capacity(first.len() + second.len());
    let (mut i, mut j) = (0, 0);
    while i < first.len() || j < second.len() {
        let next = |at: Option<&(usize, Part)>| at.map_or(usize::MAX, |(t, _)| *t);
        let (t, u) = (next(first.get(i)), next(second.get(j)));
        let both = [(t <= u).then(|| first[i].1), (u <= t).then(|| second[j].1)];
        out.push((t.min(u), both));
        i += usize::from(t <= u);
        j += usize::from(u <= t);
    }
    out
}

/// The pairs with W or H alike.
fn candidates(model: &Model) -> Vec<(usize, usize)> {
    let (n, observations) = (model.components(), model.observations());
    let mut activation = vec![0.0; n * observations];
    for (t, parts) in model.parts.iter().enumerate() {
        for part in parts {
            activation[part.k * observations + t] = part.mean();
        }
    }
    let cosines = |values: &[f64], length: usize| {
        let row = |k: usize| &values[k * length..(k + 1) * length];
        let norms: Vec<f64> = (0..n).map(|k| dot(model.simd, row(k), row(k)).sqrt().max(1e-300)).collect();
        let mut alike = vec![false; n * n];
        for i in 0..n {
            for j in i + 1..n {
                alike[i * n + j] = dot(model.simd, row(i), row(j)) > ALIKE * norms[i] * norms[j];
            }
        }
        alike
    };
    let (w, h) = (cosines(&model.shape, model.features), cosines(&activation, observations));
    (0..n * n).filter(|&at| w[at] || h[at]).map(|at| (at / n, at % n)).collect()
}

fn explained_by(model: &Model, view: &View, workers: &Workers) -> Vec<Explained> {
    workers.map(0..view.columns.len(), |t| Explained::new(model, view, t))
}

/// Merges pairs, best first, while the bound gains by it.
pub(super) fn merge_pass(model: &mut Model, view: &View, workers: &Workers) {
    for _ in 0..ROUNDS {
        let pairs = candidates(model);
        let mut explained = explained_by(model, view, workers);
        let gain = |&(i, j): &(usize, usize)| union(model, view, &explained, i, j).map(|union| union.gain);
        let unions = workers.map(pairs.iter(), gain);
        let mut gains: Vec<(f64, usize, usize)> =
            pairs.iter().zip(unions).filter_map(|(&(i, j), gain)| gain.map(|gain| (gain, i, j))).collect();
        gains.sort_by(|x, y| y.0.total_cmp(&x.0).then((x.1, x.2).cmp(&(y.1, y.2))));
        let mut touched = vec![false; model.components()];
        let mut merged = false;
        for (_, i, j) in gains {
            if touched[i] || touched[j] {
                continue;
            }
            // Others may have merged since: judge it again.
            let Some(union) = union(model, view, &explained, i, j) else { continue };
            let columns: Vec<usize> = union.parts.iter().map(|(t, _)| *t).collect();
            apply(model, i, j, union, workers);
            columns.into_iter().for_each(|t| explained[t] = Explained::new(model, view, t));
            (touched[i], touched[j], merged) = (true, true, true);
        }
        model.drop_empty();
        if !merged {
            break;
        }
        model.ascend(view, 2, workers);
    }
}

/// Puts the union of `i` and `j` in the place of `i`; `j` is off everywhere.
fn apply(model: &mut Model, i: usize, j: usize, union: Union, workers: &Workers) {
    let features = model.features;
    model.shape[i * features..(i + 1) * features].copy_from_slice(&union.shape);
    model.rate[i] = union.rate;
    if !model.unseen.is_empty() {
        model.unseen[i * features..(i + 1) * features].copy_from_slice(&union.unseen);
    }
    for (t, part) in union.parts {
        let parts = &mut model.parts[t];
        parts.retain(|part| part.k != i && part.k != j);
        insert(parts, part);
    }
    model.settle(workers);
}

/// What merging two components gains and the model afterwards, if it gains anything.
#[cfg(test)]
pub(super) fn merged(
    model: &Model,
    view: &View,
    i: usize,
    j: usize,
    workers: &Workers,
) -> Option<(f64, Model)> {
    let union = union(model, view, &explained_by(model, view, workers), i, j)?;
    let (gain, mut after) = (union.gain, model.clone());
    apply(&mut after, i, j, union, workers);
    Some((gain, after))
}
