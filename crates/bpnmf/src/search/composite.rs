//! A component that is the sum of others, on where they are on together, says nothing that they do not say: it is taken
//! apart.
//!
//! Deleting it is not enough. The others must be on in its place, all of them and as strongly, before a column is as well
//! explained as it was.

use super::model::{Model, Part, insert};
use super::moves::uncertain;
use super::trial::Trials;
use super::view::View;
use crate::special::ln;
use crate::workers::Workers;

/// Multiplicative updates of the mixture.
const UPDATES: usize = 100;

/// The features a mixture is found by: those with most of W.
const MOST_FEATURES: usize = 1000;

/// Others with less than this share of a component are not part of it.
const AUDIBLE: f64 = 0.02;

/// The counts may speak against a mixture by this many times what W of a component costs: the others can change, too.
const WORTH_A_LOOK: f64 = 10.0;

/// The others that `k` is the sum of, each in units of its own W, if it nearly is.
fn mixture(model: &Model, k: usize) -> Option<Vec<(usize, f64)>> {
    let usage = model.usage();
    let others: Vec<usize> = (0..model.components()).filter(|&j| j != k && usage[j] > 0).collect();
    if others.is_empty() {
        return None;
    }
    let own: Vec<f64> = model.means(k).collect();
    let mut at: Vec<usize> = (0..own.len()).collect();
    at.sort_by(|&f, &g| own[g].total_cmp(&own[f]).then(f.cmp(&g)));
    at.truncate(MOST_FEATURES);
    at.sort_unstable();
    let there = |values: Vec<f64>| -> Vec<f64> { at.iter().map(|&f| values[f]).collect() };
    let rows: Vec<Vec<f64>> = others.iter().map(|&j| there(model.means(j).collect())).collect();
    let (own, total) = (there(own), model.sum[k]);
    let mut mixture: Vec<f64> =
        others.iter().map(|&j| total / (others.len() as f64 * model.sum[j])).collect();
    let mut field = vec![0.0; own.len()];
    for update in 0..=UPDATES {
        field.fill(1e-12 * total / own.len() as f64);
        for (row, &scale) in rows.iter().zip(&mixture) {
            field.iter_mut().zip(row).for_each(|(v, w)| *v += scale * w);
        }
        if update == UPDATES {
            break;
        }
        let ratio: Vec<f64> = own.iter().zip(&field).map(|(w, v)| w / v).collect();
        for ((row, &j), scale) in rows.iter().zip(&others).zip(&mut mixture) {
            *scale *= row.iter().zip(&ratio).map(|(w, r)| w * r).sum::<f64>() / model.sum[j];
            if *scale * model.sum[j] < 1e-3 / UPDATES as f64 * total {
                *scale = 0.0;
            }
        }
    }
    let counts: f64 = model.shapes(k).iter().map(|nu| nu - model.prior.a()).sum();
    let in_all: f64 = others.iter().zip(&mixture).map(|(&j, scale)| scale * model.sum[j]).sum();
    let divergence =
        (own.iter().zip(&field).map(|(w, v)| w * ln(w / v)).sum::<f64>() - total + in_all) / total;
    let found: Vec<(usize, f64)> = others
        .iter()
        .zip(mixture)
        .filter(|&(&j, scale)| scale * model.sum[j] > AUDIBLE * total)
        .map(|(&j, scale)| (j, scale))
        .collect();
    (counts * divergence < WORTH_A_LOOK * model.kl_w(k)).then_some(found)
}

/// Takes components apart while the bound gains by it.
pub(super) fn composite_pass(model: &mut Model, view: &View, workers: &Workers) {
    let mut trials = Trials::default();
    for k in (0..model.components()).rev() {
        let columns = model.columns_of(k);
        if columns.is_empty() {
            continue;
        }
        let Some(mixture) = mixture(model, k) else { continue };
        let mut without = model.clone();
        for (t, part) in &columns {
            let parts = &mut without.parts[*t];
            parts.retain(|part| part.k != k);
            for &(j, scale) in &mixture {
                match parts.binary_search_by_key(&j, |part| part.k) {
                    Ok(at) => {
                        let rate = parts[at].rate;
                        parts[at] = Part::new(j, parts[at].shape + scale * part.mean() * rate, rate);
                    }
                    Err(_) => {
                        let rate = model.prior.d() + model.sum_in(&view.columns[*t], j);
                        insert(parts, Part::new(j, model.prior.c() + scale * part.mean() * rate, rate));
                    }
                }
            }
        }
        let touched: Vec<usize> = columns.iter().map(|(t, _)| *t).collect();
        trials.judge(model, without, &touched, uncertain(model, touched.len()), view, workers);
    }
    model.drop_empty();
}
