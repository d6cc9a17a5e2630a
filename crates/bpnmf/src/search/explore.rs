//! The stages of a search: from an NMF with too many components to the ones that the evidence wants.

use super::model::{Model, used};
use super::view::View;
use super::{
    Journal, Search, SearchStep, Watch, absorb, births, borrow, composite, hyper, merge, moves, start,
};
use crate::infer::state::least_usage;
use crate::prior::{CheckedPrior, Prior};
use crate::random::Key;
use crate::workers::Workers;
use std::sync::Arc;

/// The most components of the NMF that the search starts from. Births can go beyond.
const MOST_AT_START: usize = 50;

/// The NMF has no more components than the counts could pay for: this many counts a parameter.
const COUNTS_A_PARAMETER: f64 = 1.5;

/// Multiplicative updates of the NMF.
const NMF_ITERATIONS: usize = 30;

/// Rounds of births that may fail in a row before the search ends, and the most rounds.
const FAILED_BROODS: usize = 1;
const MOST_BROODS: usize = 100;

/// A round of births that gains less than this, in nats, has failed.
const LEAST_GAIN: f64 = 10.0;

/// One search: what all its stages need.
pub(super) struct Run<'a> {
    pub(super) key: Key,
    pub(super) workers: &'a Workers,
    pub(super) start: std::time::Instant,
    pub(super) watch: &'a mut dyn Watch,
    /// Somebody asked to stop: finish with what there is.
    pub(super) stopped: bool,
    /// What came of every stage so far.
    pub(super) verdicts: Vec<u64>,
    /// Stages that were done before.
    pub(super) past: Option<Journal>,
}

impl Run<'_> {
    pub(super) fn say(&mut self, stage: &'static str, active: usize) {
        let step = SearchStep { stage, active, seconds: self.start.elapsed().as_secs_f64() };
        self.stopped |= !self.watch.step(&step);
    }

    /// A model fitted to `view` from an NMF, its number of components by merges, deletions and births.
    pub(super) fn explore(&mut self, view: &View, prior: &CheckedPrior, search: &Search) -> Model {
        let (workers, simd) = (self.workers, self.workers.simd);
        let mut model = Model::empty(simd, view.features, view.columns.len(), *prior);
        self.stage(&mut model, |run, model| {
            let fits = |guess: &&Arc<[f32]>| guess.len() <= prior.components() * view.features;
            let factors = match search.guess.as_ref().filter(fits) {
                Some(guess) => start::factorise_guess(view, guess, simd, workers),
                None => {
                    let most = most_at_start(view).min(prior.components());
                    start::factorise(view, most, NMF_ITERATIONS, run.key, simd, workers)
                }
            };
            let first = Prior { a: 0.5, b: 1.0, c: 1.0, d: 1.0, ..prior.get() }.check().expect("in range");
            *model = start::model(view, &factors, first, simd, workers);
            model.ascend(view, 5, workers);
            run.say("factors", active(model));
            0
        });
        for _ in 0..2 {
            self.stage(&mut model, |run, model| {
                moves::remask(model, view, workers);
                model.drop_empty();
                model.ascend(view, 3, workers);
                start::at_least_one(model, view, workers);
                run.simplify(model, view);
                0
            });
            if self.stopped {
                return model;
            }
        }
        self.stage(&mut model, |run, model| {
            moves::follow_pass(model, view, workers);
            run.say("follow", active(model));
            0
        });
        self.grow(&mut model, view);
        self.stage(&mut model, |run, model| {
            moves::follow_pass(model, view, workers);
            model.ascend(view, 3, workers);
            run.say("follow", active(model));
            0
        });
        // Who guessed the parts knows what they look like: these moves would make chords of notes.
        if search.guess.is_none() && !self.stopped {
            self.stage(&mut model, |run, model| {
                borrow::borrow_pass(model, view, workers);
                composite::composite_pass(model, view, workers);
                run.say("borrow", active(model));
                0
            });
        }
        while search.grows && !self.stopped && self.stage(&mut model, |_, model| widen(model)) == YES {
            self.grow(&mut model, view);
        }
        self.stage(&mut model, |_, model| {
            start::at_least_one(model, view, workers);
            0
        });
        model
    }

    /// Learns the prior, merges and deletes.
    fn simplify(&mut self, model: &mut Model, view: &View) {
        hyper::learn(model, self.workers);
        model.ascend(view, 2, self.workers);
        self.merge_and_delete(model, view);
        model.ascend(view, 3, self.workers);
    }

    /// Merges and deletes, and nothing else.
    pub(super) fn merge_and_delete(&mut self, model: &mut Model, view: &View) {
        merge::merge_pass(model, view, self.workers);
        moves::delete_pass(model, view, 0, self.workers);
        absorb::absorb_pass(model, view, 0, self.workers);
        self.say("merge, delete", active(model));
    }

    /// Births from what is unexplained, as long as the bound gains by them.
    fn grow(&mut self, model: &mut Model, view: &View) {
        let workers = self.workers;
        let mut failed = 0;
        for brood in 0..MOST_BROODS {
            let grew = self.stage(model, |run, model| {
                let room = model.prior.components().saturating_sub(model.components());
                let mut grown = model.clone();
                let key = run.key.derived(100 + brood as u64);
                // In turn: new components from the residual, and present ones split in two.
                let count = births::BROOD.min(room);
                let born = match brood % 2 {
                    0 => births::add(&mut grown, view, count, key, workers),
                    _ => births::split(&mut grown, view, count, key, workers),
                };
                if born == 0 {
                    return NO;
                }
                grown.ascend(view, 3, workers);
                let changed = moves::remask(&mut grown, view, workers);
                grown.ascend(view, 3, workers);
                moves::remask_columns(&mut grown, view, &changed, workers);
                let usage = grown.usage();
                let (old, new) = usage.split_at(model.components());
                if used(new) == 0 {
                    return NO;
                }
                let survivors = used(old);
                grown.drop_empty();
                grown.ascend(view, 2, workers);
                merge::merge_pass(&mut grown, view, workers);
                // The old ones were judged before; they are again when all broods are there.
                let old = grown.components().min(survivors);
                moves::delete_pass(&mut grown, view, old, workers);
                absorb::absorb_pass(&mut grown, view, old, workers);
                grown.ascend(view, 2, workers);
                let more = grown.components() > model.components();
                let gain = grown.bound(view, workers) - model.bound(view, workers);
                if gain > 0.0 {
                    *model = grown;
                    hyper::learn(model, workers);
                    model.ascend(view, 3, workers);
                }
                run.say(if brood % 2 == 0 { "births" } else { "splits" }, active(model));
                if more && gain > LEAST_GAIN { YES } else { NO }
            });
            failed = if grew == YES { 0 } else { failed + 1 };
            if failed > FAILED_BROODS || self.stopped {
                break;
            }
        }
        if !self.stopped {
            self.stage(model, |run, model| {
                moves::delete_pass(model, view, 0, workers);
                absorb::absorb_pass(model, view, 0, workers);
                run.say("delete", active(model));
                0
            });
        }
    }
}

/// The verdicts of a stage.
const NO: u64 = 0;
const YES: u64 = 1;

/// Makes room for more components when those that there can be are nearly used up.
fn widen(model: &mut Model) -> u64 {
    if 10 * model.components() < 9 * model.prior.components() {
        return NO;
    }
    let wider = Prior { components: 2 * model.prior.components(), ..model.prior.get() };
    let Ok(wider) = wider.check() else { return NO };
    model.prior = wider;
    YES
}

/// The components that the NMF of the search starts with.
fn most_at_start(view: &View) -> usize {
    let parameters = (view.features + view.columns.len()) as f64;
    let affordable = (view.total / (COUNTS_A_PARAMETER * parameters)) as usize;
    MOST_AT_START.min(view.features).min(view.columns.len()).min(affordable).max(1)
}

/// Components on in at least 1 % of the columns.
pub(super) fn active(model: &Model) -> usize {
    let least = least_usage(model.observations());
    model.usage().iter().filter(|&&m| m as f64 >= least).count()
}

/// Brings the model to `wanted` components: the least needed go, new ones come from the residual or by halving the
/// largest.
pub(super) fn force(model: &mut Model, view: &View, wanted: usize, key: Key, workers: &Workers) {
    start::at_least_one(model, view, workers);
    while model.components() > wanted {
        let evidence = moves::evidence(model, view, workers);
        let least =
            (0..evidence.len()).min_by(|&i, &j| evidence[i].total_cmp(&evidence[j])).expect("not empty");
        moves::delete(model, view, least, workers);
    }
    let mut tries = 0;
    while model.components() < wanted {
        let missing = wanted - model.components();
        births::add(model, view, missing.min(births::BROOD), key.derived(tries), workers);
        if tries > 3 && model.components() < wanted {
            births::halve_largest(model, workers);
        }
        model.ascend(view, 5, workers);
        model.drop_empty();
        tries += 1;
    }
}
