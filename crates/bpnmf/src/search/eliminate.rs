//! Backward elimination: components go while the evidence gains by it. Before a component is judged, its content is given to
//! the others, once by what it looks like and once by when it is on; both are tried.

use super::mask::{remask, remask_columns};
use crate::meanfield::hyper::learn_scale;
use crate::meanfield::model::{Model, Part, insert, used};
use crate::meanfield::nmf::{Updates, divergence, updated};
use crate::meanfield::view::{Column, View};
use crate::special::ln;
use crate::workers::Workers;

/// How the content of a component is given to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Its W is a mixture of the others' W: they get its activations.
    Dictionary,
    /// Its activations are a mixture of the others': they get its W.
    Activations,
}

pub(super) const SIDES: [Side; 2] = [Side::Dictionary, Side::Activations];

/// One component given to the others in one way.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    k: usize,
    side: Side,
}

/// Multiplicative updates of a mixture.
const MIXTURE_UPDATES: usize = 60;

/// Who takes over at least this share of what a component explains in a column is switched on there.
const TAKES_OVER: f64 = 0.05;

/// `target` as a mixture of rows of the same length, each in units of its own: the KL projection; and the divergence that is
/// left.
pub(super) fn mixture(target: Vec<f64>, rows: Vec<f64>, workers: &Workers) -> (Vec<f64>, f64) {
    let length = target.len();
    let sums: Vec<f64> = rows.chunks(length).map(|row| row.iter().sum::<f64>().max(1e-300)).collect();
    let mut shapes = rows;
    shapes.chunks_mut(length).zip(&sums).for_each(|(row, sum)| row.iter_mut().for_each(|w| *w /= sum));
    let own: f64 = target.iter().map(|&x| if x > 0.0 { x * ln(x) } else { 0.0 } - x).sum();
    let view = View::of(length, vec![Column::dense(target)]);
    let updates = Updates { iterations: MIXTURE_UPDATES, held: MIXTURE_UPDATES, sharpness: 1.0 };
    let factors = updated(&view, shapes, &updates, workers.simd, workers);
    let left = own + divergence(&view, &factors, workers);
    (factors.h[0].iter().zip(&sums).map(|(h, sum)| h / sum).collect(), left)
}

/// Who takes over a component, each with its share; and the log-likelihood that is lost by that, if nothing follows.
struct Takeover {
    takers: Vec<(usize, f64)>,
    loss: f64,
}

impl Takeover {
    /// By the components that `stay`.
    fn new(model: &Model, candidate: Candidate, stay: &[bool], workers: &Workers) -> Self {
        let Candidate { k, side } = candidate;
        let others: Vec<usize> = (0..model.components()).filter(|&j| j != k && stay[j]).collect();
        let (shares, left, scale) = match side {
            Side::Dictionary => {
                let rows = others.iter().flat_map(|&j| model.means(j)).collect();
                let (shares, left) = mixture(model.means(k).collect(), rows, workers);
                let all: f64 = model.columns_of(k).iter().map(|(_, part)| part.mean()).sum();
                (shares, left, all)
            }
            Side::Activations => {
                let columns = model.columns_of(k);
                let (shares, left) = mixture_within(model, k, &columns, &others, workers);
                (shares, left, model.sum[k])
            }
        };
        let takers = others.into_iter().zip(shares).filter(|(_, share)| *share > 0.0).collect();
        Self { takers, loss: left.max(0.0) * scale }
    }
}

/// The model without some components: the content of each is given to the others, which then follow for some `steps`, and the
/// columns they were on in choose their mask anew.
fn without(model: &Model, view: &View, candidates: &[Candidate], steps: usize, workers: &Workers) -> Model {
    let mut after = model.clone();
    let mut stay = vec![true; model.components()];
    let mut touched = vec![false; model.observations()];
    for candidate in candidates {
        let k = candidate.k;
        let columns = after.columns_of(k);
        let Takeover { takers, .. } = Takeover::new(&after, *candidate, &stay, workers);
        match candidate.side {
            Side::Dictionary => give_activations(&mut after, view, k, &columns, &takers),
            Side::Activations => {
                give_dictionary(&mut after, k, &takers);
                after.settle(workers);
            }
        }
        stay[k] = false;
        for (t, _) in columns {
            after.parts[t].retain(|part| part.k != k);
            touched[t] = true;
        }
    }
    let kept: Vec<usize> = (0..stay.len()).filter(|&k| stay[k]).collect();
    after.keep(&kept);
    after.settle(workers);
    let touched: Vec<usize> = (0..touched.len()).filter(|&t| touched[t]).collect();
    let bare: Vec<usize> = touched
        .iter()
        .copied()
        .filter(|&t| after.parts[t].is_empty() && view.columns[t].total > 0.0)
        .collect();
    remask_columns(&mut after, view, &bare, workers);
    learn_scale(&mut after);
    after.ascend(view, steps, workers);
    learn_scale(&mut after);
    remask_columns(&mut after, view, &touched, workers);
    after.drop_empty();
    after.ascend(view, 1, workers);
    after
}

/// The activations of `k` as a mixture of those of the others, in the columns where it is on. What the others have elsewhere
/// is one more entry, where the target is 0.
fn mixture_within(
    model: &Model,
    k: usize,
    columns: &[(usize, Part)],
    others: &[usize],
    workers: &Workers,
) -> (Vec<f64>, f64) {
    let wide = columns.len() + 1;
    let mut rows = vec![0.0; model.components() * wide];
    let mut totals = vec![0.0; model.components()];
    model.parts.iter().flatten().for_each(|part| totals[part.k] += part.mean());
    for (i, (t, _)) in columns.iter().enumerate() {
        for part in &model.parts[*t] {
            rows[part.k * wide + i] = part.mean();
            totals[part.k] -= part.mean();
        }
    }
    let mut target = rows[k * wide..(k + 1) * wide].to_vec();
    target[wide - 1] = 0.0;
    let mut all = Vec::with_capacity(others.len() * wide);
    for &j in others {
        all.extend_from_slice(&rows[j * wide..(j + 1) * wide - 1]);
        all.push(totals[j].max(0.0));
    }
    mixture(target, all, workers)
}

/// Activations of `k` are added to those of the takers, each times its share.
fn give_activations(
    model: &mut Model,
    view: &View,
    k: usize,
    columns: &[(usize, Part)],
    takers: &[(usize, f64)],
) {
    let explains = model.sum[k];
    let c = model.prior.c();
    for (t, part) in columns {
        let h = part.mean();
        for &(j, share) in takers {
            let parts = &model.parts[*t];
            match parts.binary_search_by_key(&j, |part| part.k) {
                Ok(at) => {
                    let (shape, rate) = (parts[at].shape, parts[at].rate);
                    model.parts[*t][at] = Part::new(j, shape + share * h * rate, rate);
                }
                Err(_) if share * model.sum[j] > TAKES_OVER * explains => {
                    let column = &view.columns[*t];
                    let rate = model.d_in(column) + model.sum_in(column, j);
                    insert(&mut model.parts[*t], Part::new(j, c + share * h * rate, rate));
                }
                Err(_) => {}
            }
        }
    }
}

/// W of `k` is added to that of the takers, each times its share.
fn give_dictionary(model: &mut Model, k: usize, takers: &[(usize, f64)]) {
    let features = model.features;
    let own: Vec<f64> = model.means(k).collect();
    for &(j, share) in takers {
        let rates: Vec<f64> = model.rates(j).collect();
        let row = model.shape[j * features..][..features].iter_mut();
        row.zip(&own).zip(rates).for_each(|((shape, w), rate)| *shape += share * w * rate);
    }
}

/// How long deletions are followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Steps of the longest trial of a tournament; 0 for no tournament.
    tournament: usize,
    /// Steps of convergence between rounds.
    between: usize,
    /// Only so many components are judged, the last ones.
    last: usize,
}

impl Patience {
    /// The same for the last components only.
    pub(super) fn with_last(self, last: usize) -> Self {
        Self { last, ..self }
    }
}

/// In bulk, far from convergence.
pub(super) const BULK: Patience = Patience { tournament: 0, between: 30, last: usize::MAX };
/// To the end.
pub(super) const THOROUGH: Patience = Patience { tournament: 1280, between: 90, last: usize::MAX };

/// The share of the components that may go in one round.
const A_ROUND: f64 = 0.2;

/// The least candidates that are looked at first.
const FEWEST: usize = 12;

/// One in so many of the candidates enters the tournament, the best of the first looks, and at least so many.
const ENTRANTS: usize = 4;
const LEAST_ENTRANTS: usize = 8;

/// Components go while the evidence gains. `heard` is told what is left after every round.
pub(super) fn eliminate(
    model: &mut Model,
    view: &View,
    patience: Patience,
    workers: &Workers,
    heard: &mut dyn FnMut(&Model),
) {
    let mut last = patience.last;
    if patience.tournament == 0 {
        eliminate_sure(model, view, patience, workers, heard);
    }
    while used(&model.usage()) > 1 && last > 0 && !workers.late() {
        let (before, components) = (model.evidence(view, workers), model.components());
        let steps = if model.components() > 15 { 1 } else { 3 };
        let candidates = screened(model, components.saturating_sub(last), workers);
        let (first, others) = candidates.split_at((candidates.len() / 4).max(FEWEST).min(candidates.len()));
        let mut seen = looks(model, view, first, steps, workers);
        if !first_looks(model, view, before, steps, &seen, workers) {
            if patience.tournament == 0 {
                break;
            }
            seen.extend(looks(model, view, others, steps, workers));
            seen.sort_by(|x, y| y.0.total_cmp(&x.0));
            if !first_looks(model, view, before, steps, &seen, workers) {
                let most = view.effort(patience.tournament);
                let winner = tournament(model, view, before, most, &seen, workers);
                let Some(winner) = winner else { break };
                *model = winner;
            }
        }
        follow(model, view, view.effort(patience.between), workers);
        last = last.saturating_sub(components.saturating_sub(model.components()));
        heard(model);
    }
}

/// The first part of an elimination far from convergence: components go that cost more evidence than is lost at most when the
/// others take over, several at once. It ends when there is none, or when the evidence does not confirm it.
fn eliminate_sure(
    model: &mut Model,
    view: &View,
    patience: Patience,
    workers: &Workers,
    heard: &mut dyn FnMut(&Model),
) {
    while used(&model.usage()) > 1 && !workers.late() {
        let (before, costs) = model.evidence_and_costs(view, workers);
        let mut sure: Vec<(f64, Candidate)> = losses(model, 0, workers)
            .into_iter()
            .map(|(loss, candidate)| (costs[candidate.k] - loss, candidate))
            .filter(|(gain, _)| *gain > 0.0)
            .collect();
        sure.sort_by(|x, y| y.0.total_cmp(&x.0));
        let mut seen = vec![false; model.components()];
        sure.retain(|(_, candidate)| !core::mem::replace(&mut seen[candidate.k], true));
        sure.truncate(a_round(model));
        let mut chosen: Vec<Candidate> = sure.into_iter().map(|(_, candidate)| candidate).collect();
        let after = loop {
            if chosen.is_empty() {
                return;
            }
            let after = without(model, view, &chosen, 1, workers);
            if after.evidence(view, workers) > before {
                break after;
            }
            chosen.truncate(chosen.len() / 2);
        };
        *model = after;
        follow(model, view, view.effort(patience.between), workers);
        heard(model);
    }
}

/// The most components that go in one round.
fn a_round(model: &Model) -> usize {
    ((A_ROUND * model.components() as f64) as usize).max(1)
}

/// After components went: convergence, the prior learned, and the mask chosen anew if the evidence gains by it.
fn follow(model: &mut Model, view: &View, steps: usize, workers: &Workers) {
    let tolerance = view.tolerance();
    model.converge(view, steps, tolerance, workers);
    crate::meanfield::hyper::learn(model, workers);
    let mut masked = model.clone();
    remask(&mut masked, view, workers);
    masked.drop_empty();
    masked.converge(view, steps / 3, tolerance, workers);
    crate::meanfield::hyper::learn(&mut masked, workers);
    if masked.evidence(view, workers) > model.evidence(view, workers) {
        *model = masked;
    }
}

/// All candidates from component `from` on, with what is lost by them if nothing follows.
fn losses(model: &Model, from: usize, workers: &Workers) -> Vec<(f64, Candidate)> {
    let candidates = (from..model.components()).flat_map(|k| SIDES.map(|side| Candidate { k, side }));
    let stay = vec![true; model.components()];
    workers.map(candidates, |candidate| {
        let alone = workers.alone();
        (Takeover::new(model, candidate, &stay, &alone).loss, candidate)
    })
}

/// The same in the order of what is lost.
fn screened(model: &Model, from: usize, workers: &Workers) -> Vec<Candidate> {
    let mut losses = losses(model, from, workers);
    losses.sort_by(|x, y| x.0.total_cmp(&y.0));
    losses.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Candidates in the order of the evidence after a few steps.
fn looks(
    model: &Model,
    view: &View,
    candidates: &[Candidate],
    steps: usize,
    workers: &Workers,
) -> Vec<(f64, Candidate)> {
    let mut looks = workers.map(candidates.iter(), |&candidate| {
        let alone = workers.alone();
        (without(model, view, &[candidate], steps, &alone).evidence(view, &alone), candidate)
    });
    looks.sort_by(|x, y| y.0.total_cmp(&x.0));
    looks
}

/// The candidates that gain at once go, best first, each judged anew after those before it. Whether any did.
fn first_looks(
    model: &mut Model,
    view: &View,
    before: f64,
    steps: usize,
    looks: &[(f64, Candidate)],
    workers: &Workers,
) -> bool {
    let most = a_round(model);
    let mut names: Vec<usize> = (0..model.components()).collect();
    let (mut evidence, mut gone) = (before, 0);
    for &(gain, Candidate { k, side }) in looks {
        if gain <= before || gone == most || names.len() < 2 {
            break;
        }
        let Some(at) = names.iter().position(|&name| name == k) else { continue };
        let after = without(model, view, &[Candidate { k: at, side }], steps, workers);
        let there = after.evidence(view, workers);
        if there > evidence {
            names.remove(at);
            gone += 1;
            evidence = there;
            *model = after;
            if model.components() != names.len() {
                break;
            }
        }
    }
    gone > 0
}

/// The best candidates of the first looks followed for ten steps; the better half for twice as many, and so on. The first
/// whose evidence is above `before` wins.
fn tournament(
    model: &Model,
    view: &View,
    before: f64,
    most: usize,
    looks: &[(f64, Candidate)],
    workers: &Workers,
) -> Option<Model> {
    const FIRST: usize = 10;
    if most < FIRST {
        return None;
    }
    let entrants = (looks.len() / ENTRANTS).max(LEAST_ENTRANTS);
    let candidates = looks.iter().take(entrants).map(|(_, candidate)| *candidate);
    let mut left = workers.map(candidates, |candidate| {
        let alone = workers.alone();
        let after = without(model, view, &[candidate], FIRST, &alone);
        (after.evidence(view, &alone), after)
    });
    let mut steps = FIRST;
    loop {
        left.sort_by(|x, y| y.0.total_cmp(&x.0));
        if left.first()?.0 > before {
            return Some(left.swap_remove(0).1);
        }
        if steps >= most || workers.late() {
            return None;
        }
        left.truncate((left.len() / 2).max(1));
        steps *= 2;
        let followed = workers.map(left.into_iter(), |(last, mut after)| {
            let alone = workers.alone();
            after.converge(view, steps, f64::NEG_INFINITY, &alone);
            let evidence = after.evidence(view, &alone);
            // Beyond reach at the pace of these steps.
            let hopeless = evidence + f64::max(6.0, 320.0 / steps as f64) * (evidence - last) <= before;
            (!hopeless || evidence > before).then_some((evidence, after))
        });
        left = followed.into_iter().flatten().collect();
    }
}

/// What deleting each component costs: the difference of the evidence, the others free to follow for some steps.
pub(super) fn evidence(model: &Model, view: &View, workers: &Workers) -> Vec<f64> {
    if model.components() == 1 {
        // Without its only component the data have no explanation at all.
        return vec![f64::INFINITY];
    }
    let before = model.evidence(view, workers);
    let mut out = vec![f64::INFINITY; model.components()];
    for (after, Candidate { k, .. }) in looks(model, view, &screened(model, 0, workers), 3, workers) {
        out[k] = out[k].min(before - after);
    }
    out
}

/// Deletes the component whose loss is least.
pub(super) fn delete_least(model: &mut Model, view: &View, workers: &Workers) {
    let (_, candidate) = looks(model, view, &screened(model, 0, workers), 3, workers)[0];
    *model = without(model, view, &[candidate], 3, workers);
}
