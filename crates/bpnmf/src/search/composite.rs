//! A component that is the sum of others, on where they are on together, says nothing that they do not say: it is taken
//! apart.
//!
//! Deleting it is not enough. The others must be on in its place, all of them and as strongly, before a column is as well
//! explained as it was.

use super::correction::corrected_bound;
use super::model::{Model, Part, insert};
use super::moves::{remask_columns, uncertain};
use super::view::View;
use crate::special::ln;
use crate::workers::Workers;

/// Multiplicative updates of the mixture.
const UPDATES: usize = 100;

/// Others with less than this share of a component are not part of it.
const AUDIBLE: f64 = 0.02;

/// The counts may speak against a mixture by this many times what W of a component costs: the others can change, too.
const WORTH_A_LOOK: f64 = 10.0;

/// The others that `k` is the sum of, each in units of its own W, if it nearly is.
fn mixture(model: &Model, k: usize) -> Option<Vec<(usize, f64)>> {
    let others: Vec<usize> = (0..model.components()).filter(|&j| j != k).collect();
    let rows: Vec<Vec<f64>> = others.iter().map(|&j| model.means(j).collect()).collect();
    let own: Vec<f64> = model.means(k).collect();
    let total = model.sum[k];
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
    let divergence: f64 = own.iter().zip(&field).map(|(w, v)| w * ln(w / v) - w + v).sum::<f64>() / total;
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
    let mut bound = None;
    for k in (0..model.components()).rev() {
        let columns = model.columns_of(k);
        if columns.is_empty() || model.components() < 2 {
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
        without.ascend(view, 3, workers);
        remask_columns(&mut without, view, &touched, workers);
        without.ascend(view, 3, workers);
        let before = *bound.get_or_insert_with(|| corrected_bound(model, view, workers));
        let after = corrected_bound(&without, view, workers);
        if after > before + uncertain(model, columns.len()) {
            *model = without;
            bound = Some(after);
        }
    }
    model.drop_empty();
}
