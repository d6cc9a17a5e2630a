//! Backward elimination: components go while the evidence gains by it. Before a component is judged, its content is given to
//! the others, once by what it looks like and once by when it is on; both are tried.

use super::mask::{remask, remask_columns};
use crate::meanfield::elsewhere::Whole;
use crate::meanfield::evidence::Evidence;
use crate::meanfield::hyper::{learn, learn_scale};
use crate::meanfield::model::{Model, Part, insert, used};
use crate::meanfield::nmf::{Updates, divergence, updated};
use crate::meanfield::view::{Column, View};
use crate::special::ln;
use crate::workers::Workers;
use std::borrow::Cow;
use std::collections::BTreeMap;

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
    let mut totals = model.sums_of_means();
    if let Some(elsewhere) = &model.elsewhere {
        totals.iter_mut().zip(&elsewhere.means).for_each(|(total, elsewhere)| *total += elsewhere);
    }
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

/// The columns that a candidate is judged by: those that its component is on in, if they are few enough.
struct Excerpt<'m, 'v, 'a> {
    model: Cow<'m, Model>,
    view: Cow<'v, View<'a>>,
    /// Which columns they are; all if there are none.
    columns: Vec<usize>,
    /// The evidence there before.
    before: f64,
}

/// A component that is on in more than this share of the columns is judged by all of them.
const MOST_TOUCHED: f64 = 0.7;

/// A model whose components are judged.
struct Judged<'m, 'v, 'a> {
    model: &'m Model,
    view: &'v View<'a>,
    before: f64,
    whole: Whole,
}

impl<'m, 'v, 'a> Judged<'m, 'v, 'a> {
    fn new(model: &'m Model, view: &'v View<'a>, workers: &Workers) -> Self {
        let Evidence { evidence, squares, .. } = model.evidence_in_full(view, workers);
        Self { model, view, before: evidence, whole: Whole::new(model, squares) }
    }

    /// Where component `k` is judged.
    fn excerpt(&self, k: usize, workers: &Workers) -> Excerpt<'m, 'v, 'a> {
        let columns: Vec<usize> = self.model.columns_of(k).into_iter().map(|(t, _)| t).collect();
        let few = columns.len() as f64 <= MOST_TOUCHED * self.model.observations() as f64;
        if columns.is_empty() || !few {
            let (model, view) = (Cow::Borrowed(self.model), Cow::Borrowed(self.view));
            return Excerpt { model, view, columns: Vec::new(), before: self.before };
        }
        let (model, view) = self.model.within(self.view, &columns, &self.whole, workers);
        let before = model.evidence(&view, workers);
        Excerpt { model: Cow::Owned(model), view: Cow::Owned(view), columns, before }
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
        let components = model.components();
        let steps = if components > 15 { 1 } else { 3 };
        let candidates = screened(model, components.saturating_sub(last), workers);
        let (first, others) = candidates.split_at((candidates.len() / 4).max(FEWEST).min(candidates.len()));
        let judged = Judged::new(model, view, workers);
        let mut seen = looks(&judged, first, steps, workers);
        let mut after = first_looks(&judged, steps, &seen, workers);
        if after.is_none() {
            if patience.tournament == 0 {
                break;
            }
            seen.extend(looks(&judged, others, steps, workers));
            seen.sort_by(|x, y| y.0.total_cmp(&x.0));
            after = first_looks(&judged, steps, &seen, workers);
            after = after.or_else(|| tournament(&judged, view.effort(patience.tournament), &seen, workers));
        }
        let Some(after) = after else { break };
        *model = after;
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
        let Evidence { evidence: before, costs, .. } = model.evidence_in_full(view, workers);
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
    learn(model, workers);
    let mut masked = model.clone();
    remask(&mut masked, view, workers);
    masked.drop_empty();
    masked.converge(view, steps / 3, tolerance, workers);
    learn(&mut masked, workers);
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

/// Candidates in the order of what the evidence gains by them in a few steps.
fn looks(
    judged: &Judged<'_, '_, '_>,
    candidates: &[Candidate],
    steps: usize,
    workers: &Workers,
) -> Vec<(f64, Candidate)> {
    // Both candidates of a component are judged by the same columns.
    let mut of: BTreeMap<usize, Vec<Candidate>> = BTreeMap::new();
    candidates.iter().for_each(|candidate| of.entry(candidate.k).or_default().push(*candidate));
    let looks = workers.map(of.into_iter(), |(k, candidates)| {
        let alone = workers.alone();
        let Excerpt { model, view, before, .. } = judged.excerpt(k, &alone);
        let gain = |candidate: Candidate| {
            let after = without(&model, &view, &[candidate], steps, &alone).evidence(&view, &alone);
            (after - before, candidate)
        };
        candidates.into_iter().map(gain).collect::<Vec<_>>()
    });
    let mut looks: Vec<(f64, Candidate)> = looks.into_iter().flatten().collect();
    looks.sort_by(|x, y| y.0.total_cmp(&x.0));
    looks
}

/// The model after the candidates that gain at once, best first, each judged anew after those before it by all columns. `None` if
/// there are none.
fn first_looks(
    judged: &Judged<'_, '_, '_>,
    steps: usize,
    looks: &[(f64, Candidate)],
    workers: &Workers,
) -> Option<Model> {
    let Judged { model, view, before, .. } = judged;
    let most = a_round(model);
    let mut names: Vec<usize> = (0..model.components()).collect();
    let (mut reached, mut evidence, mut gone) = (None, *before, 0);
    for &(gain, Candidate { k, side }) in looks {
        if gain <= 0.0 || gone == most || names.len() < 2 {
            break;
        }
        let Some(at) = names.iter().position(|&name| name == k) else { continue };
        let now = reached.as_ref().unwrap_or(*model);
        let after = without(now, view, &[Candidate { k: at, side }], steps, workers);
        let there = after.evidence(view, workers);
        if there > evidence {
            names.remove(at);
            gone += 1;
            evidence = there;
            let others = after.components() != names.len();
            reached = Some(after);
            if others {
                break;
            }
        }
    }
    reached
}

/// One that takes part in a tournament.
struct Entrant<'m, 'v, 'a> {
    /// What the evidence gains by it, by now.
    gain: f64,
    after: Model,
    excerpt: Excerpt<'m, 'v, 'a>,
}

/// The best candidates of the first looks followed for ten steps; the better half for twice as many, and so on. The first
/// by which the evidence gains wins.
fn tournament(
    judged: &Judged<'_, '_, '_>,
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
        let excerpt = judged.excerpt(candidate.k, &alone);
        let after = without(&excerpt.model, &excerpt.view, &[candidate], FIRST, &alone);
        Entrant { gain: after.evidence(&excerpt.view, &alone) - excerpt.before, after, excerpt }
    });
    let mut steps = FIRST;
    loop {
        left.sort_by(|x, y| y.gain.total_cmp(&x.gain));
        while left.first()?.gain > 0.0 {
            let Entrant { after, excerpt, .. } = left.remove(0);
            if excerpt.columns.is_empty() {
                return Some(after);
            }
            let mut winner = judged.model.with(after, &excerpt.columns, workers);
            winner.ascend(judged.view, 1, workers);
            if winner.evidence(judged.view, workers) > judged.before {
                return Some(winner);
            }
        }
        if steps >= most || workers.late() {
            return None;
        }
        left.truncate((left.len() / 2).max(1));
        steps *= 2;
        let followed = workers.map(left.into_iter(), |Entrant { gain: last, mut after, excerpt }| {
            let alone = workers.alone();
            after.converge(&excerpt.view, steps, f64::NEG_INFINITY, &alone);
            let gain = after.evidence(&excerpt.view, &alone) - excerpt.before;
            // Beyond reach at the pace of these steps.
            let hopeless = gain + f64::max(6.0, 320.0 / steps as f64) * (gain - last) <= 0.0;
            (!hopeless || gain > 0.0).then_some(Entrant { gain, after, excerpt })
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
    let mut out = vec![f64::INFINITY; model.components()];
    let judged = Judged::new(model, view, workers);
    for (gain, Candidate { k, .. }) in looks(&judged, &screened(model, 0, workers), 3, workers) {
        out[k] = out[k].min(-gain);
    }
    out
}

/// Deletes the component whose loss is least.
pub(super) fn delete_least(model: &mut Model, view: &View, workers: &Workers) {
    let judged = Judged::new(model, view, workers);
    let (_, candidate) = looks(&judged, &screened(model, 0, workers), 3, workers)[0];
    *model = without(model, view, &[candidate], 3, workers);
}
