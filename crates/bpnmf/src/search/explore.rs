//! The stages of a search: from an NMF with too many components to the ones that the evidence wants.

use super::eliminate::{BULK, Patience, THOROUGH, delete_least, eliminate};
use super::journal::Done;
use super::mask::remask;
use super::rank::Rank;
use super::{Journal, Search, SearchStep, Watch, births, floor, rank, start, unmix};
use crate::infer::state::least_usage;
use crate::meanfield::hyper::learn;
use crate::meanfield::model::{Model, used};
use crate::meanfield::scatter;
use crate::meanfield::view::View;
use crate::noise::Noise;
use crate::prior::{CheckedPrior, Prior};
use crate::random::Key;
use crate::workers::Workers;
use std::borrow::Cow;
use std::sync::Arc;

/// The most components of the NMF that the search starts from. Births can go beyond.
const MOST_AT_START: usize = 50;

/// The NMF has no more components than the counts could pay for: this many counts a parameter.
const COUNTS_A_PARAMETER: f64 = 1.5;

/// Multiplicative updates of the NMF.
const NMF_ITERATIONS: usize = 30;

/// Where more than this share of the start is left after the first elimination, there may be more: the start grows.
const FULL: f64 = 0.7;

/// The start has at least so many times the components that singular values show.
const MORE_THAN_SHOWN: f64 = 1.5;

/// The mean of the positive entries at the first level, and the factor from one level to the next.
const FIRST_LEVEL: f64 = 100.0;
const LEVEL_FACTOR: f64 = 8.0;

/// Steps of convergence before components are judged thoroughly.
const CONVERGED: usize = 600;

/// Rounds of elimination in bulk and convergence before the start grows.
const MOST_BULKS: usize = 4;

/// Rounds of convergence and elimination.
const MOST_ROUNDS: usize = 10;

/// Counts are few below this many for every parameter.
const FEW_COUNTS: f64 = 30.0;

/// Where counts scatter, singular values that show more components than the evidence wants, by more than this share of them,
/// show that the noise is not what it is taken for.
const MOST_MORE: f64 = 0.2;

/// A sparse mask says enough by itself: the rank is asked where more than this share of the sites is on.
const DENSE: f64 = 0.25;

/// Of more columns every so manieth is enough to see whether components should be on everywhere.
const FEW_COLUMNS: usize = 200;

/// The search begins with every so manieth column where so many columns, and so many entries, are left.
const BEGINS_WITH_COLUMNS: usize = 1000;
const BEGINS_WITH_ENTRIES: usize = 1_000_000;

/// Steps of convergence with every component on everywhere.
const ALL_ON: usize = 90;
const FIRST_ALL_ON: usize = ALL_ON / 6;

/// Such a model is given up if it would need more than so many times the gain of its last steps.
const PACE: f64 = 16.0;

/// Steps of convergence after the mask was chosen anew, before and after the prior is learned.
const AFTER_MASK: usize = 60;

/// Rounds of choosing the mask anew.
const MOST_MASKS: usize = 8;

/// Components in the first round of births, and those that come at a time where a number was asked for.
const FIRST_BROOD: usize = 4;
const BROOD: usize = 8;

/// Rounds of taking components out of each other.
const MOST_POLISHES: usize = 3;

/// Rounds of births that may fail in a row before the search ends, and the most rounds.
const FAILED_BROODS: usize = 1;
const MOST_BROODS: usize = 100;

/// A round of births that gains less than this many times the tolerance has failed.
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
    pub(super) done: Vec<Done<&'static str>>,
    /// The first stage that is not the one that was done before.
    pub(super) astray: Option<&'static str>,
    /// Stages that were done before.
    pub(super) past: Option<Journal>,
    /// How counts scatter.
    pub(super) scatter: Scatter,
}

/// How counts scatter about their rates: alpha of the variance mean + mean^2 / alpha, infinite for Poisson counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scatter {
    /// Where the search starts. If it is learned, it never goes below: a model that lacks components takes what they explain
    /// for scatter, and with more scatter it would lose more of them.
    pub(super) alpha: f64,
    /// Whether it is learned on the way.
    pub(super) learned: bool,
}

impl Scatter {
    pub(super) const POISSON: Self = Self { alpha: f64::INFINITY, learned: false };

    /// As it was asked for. If it was not, the bulk of the singular values says whether counts scatter more than Poisson
    /// counts.
    pub(super) fn new(noise: Option<Noise>, view: &View) -> Self {
        match noise {
            Some(noise) => Self { alpha: noise.alpha().unwrap_or(f64::INFINITY), learned: false },
            None => {
                let alpha = rank::alpha(view);
                Self { alpha, learned: alpha.is_finite() }
            }
        }
    }
}

/// The counts at a level of the search: all of them times a power.
#[derive(Clone, Copy)]
pub(super) struct Level<'v, 'a> {
    /// The counts themselves.
    counts: &'v View<'a>,
    /// Times the power.
    view: &'v View<'a>,
    power: f64,
}

impl<'v, 'a> Level<'v, 'a> {
    pub(super) fn of(counts: &'v View<'a>) -> Self {
        Self { counts, view: counts, power: 1.0 }
    }
}

impl Run<'_> {
    pub(super) fn say(&mut self, stage: &'static str, active: usize) {
        let step = SearchStep { stage, active, seconds: self.start.elapsed().as_secs_f64() };
        self.stopped |= !self.watch.step(&step);
    }

    /// The counts as the moves see them: weighed by the model if they scatter, for which alpha is learned anew.
    pub(super) fn weigh<'v, 'a>(&self, model: &mut Model, level: Level<'v, 'a>) -> Cow<'v, View<'a>> {
        if self.scatter.learned {
            let first = self.scatter.alpha * level.power;
            let alpha = scatter::learned(model, level.counts, level.power, self.workers);
            model.alpha = alpha.max(first);
        }
        level.view.weighed(model, self.workers)
    }

    /// A model fitted to `view` from an NMF, its number of components by elimination and births.
    pub(super) fn explore(&mut self, view: &View, prior: &CheckedPrior, search: &Search) -> Model {
        let workers = self.workers;
        let mut model = Model::empty(workers.simd, view.features, view.columns.len(), *prior);
        model.sizes = view.sizes();
        let level = Level::of(view);
        let step = first_columns(view);
        if step < 2 {
            self.climb(&mut model, view, prior, search);
        } else {
            let some = view.sampled(step);
            model.sizes = some.sizes();
            self.climb(&mut model, &some, prior, search);
            self.stage("all-columns", &mut model, |run, model| {
                model.spread(view, step, workers);
                let view = run.weigh(model, level);
                model.ascend(&view, 1, workers);
                remask(model, &view, workers);
                model.drop_empty();
                learn(model, workers);
                run.say("all-columns", active(model));
                0
            });
            // A search that goes on from there has been told nothing of them.
            model.sizes = view.sizes();
            self.finish(&mut model, level);
        }
        self.grow(&mut model, level);
        while search.grows && !self.stopped && self.stage("widen", &mut model, |_, model| widen(model)) == YES
        {
            self.grow(&mut model, level);
        }
        for _ in 0..search.restarts {
            let again = |run: &mut Self, model: &mut Model| run.restart(model, level, search);
            if self.stopped || self.stage("restart", &mut model, again) == NO {
                break;
            }
        }
        for _ in 0..MOST_POLISHES {
            if self.stopped || self.stage("unmix", &mut model, |run, model| run.unmix(model, level)) == NO {
                break;
            }
            self.finish(&mut model, level);
            self.grow(&mut model, level);
        }
        self.stage("at-least-one", &mut model, |_, model| {
            start::at_least_one(model, view, workers);
            0
        });
        model
    }

    /// From the start to the data themselves, level by level, without births.
    fn climb(&mut self, model: &mut Model, view: &View, prior: &CheckedPrior, search: &Search) {
        let workers = self.workers;
        let levels = levels(view, self.scatter.alpha);
        for (i, power) in levels.iter().enumerate() {
            let scaled = (*power < 1.0).then(|| view.scaled(*power));
            let level = Level { counts: view, view: scaled.as_ref().unwrap_or(view), power: *power };
            if i == 0 {
                self.begin(model, level, prior, search);
            } else {
                self.stage("finer", model, |run, model| {
                    model.lift(power / levels[i - 1], workers);
                    run.say("finer", active(model));
                    0
                });
            }
            self.stage("mask", model, |run, model| {
                run.mask(model, level);
                0
            });
            self.finish(model, level);
        }
    }

    /// Convergence, and every component on everywhere if the evidence gains by it.
    fn mask(&mut self, model: &mut Model, level: Level<'_, '_>) {
        let view = self.weigh(model, level);
        settle(model, &view, self.workers);
        let view = self.weigh(model, level);
        try_all_on(model, &view, self.workers);
        self.say("mask", active(model));
    }

    /// As many components as singular values show, if these are more than the evidence wants: where counts are few it wants
    /// fewer than there are. How many that is, 0 if singular values say nothing, and the range of [`Rank`].
    pub(super) fn raise(&mut self, model: &mut Model, view: &View) -> (usize, Option<(usize, usize)>) {
        if self.stopped {
            return (0, None);
        }
        let (key, workers) = (self.key.derived(400), self.workers);
        let filled = view.filled(model, key.derived(1), workers);
        let Rank { components, poisson, range } = rank::rank(&filled, model.alpha);
        let components = components.min(model.prior.components());
        let parameters = components * (view.features + view.columns.len());
        let few = model.alpha.is_infinite() && view.total < FEW_COUNTS * parameters as f64;
        let usage = model.usage();
        let here = used(&usage);
        let dense = usage.iter().sum::<usize>() as f64 > DENSE * (here * view.columns.len()) as f64;
        let near = components <= here + (MOST_MORE * here as f64).ceil() as usize;
        let scattered = model.alpha.is_finite() && dense && near;
        if !few && !poisson && !scattered {
            return (0, None);
        }
        if dense && components > here {
            if !scattered {
                *model = floor::model(view, components, model.prior, key, workers.simd, workers);
                model.ascend(view, 5, workers);
            } else {
                let view = view.weighed(model, workers);
                force(model, &view, components, key, workers);
                settle(model, &view, workers);
            }
            self.say("rank", active(model));
        }
        // Rare components are among those that singular values show, and do not count.
        (components.min(active(model)), range.filter(|_| dense))
    }

    /// The start, as large as it has to be, and what goes of it at once.
    fn begin(&mut self, model: &mut Model, level: Level<'_, '_>, prior: &CheckedPrior, search: &Search) {
        let balanced = level.view.balanced(self.scatter.alpha * level.power);
        let view = &balanced.0;
        let mut most = most_at_start(view).min(prior.components());
        let shown =
            if search.guess.is_none() { rank::rank(level.counts, self.scatter.alpha).components } else { 1 };
        if shown > 1 {
            most = most.max((MORE_THAN_SHOWN * shown as f64) as usize).min(largest_start(view, prior));
        }
        loop {
            self.stage("factors", model, |run, model| {
                run.start(model, level, &balanced, prior, search, most);
                0
            });
            let again = self.stage("bulk", model, |run, model| {
                // Far from convergence that many are left says little, if singular values show that there are fewer.
                let full = run.bulk(model, level, most) && (shown <= 1 || shown as f64 > FULL * most as f64);
                u64::from(search.guess.is_none() && full && most < largest_start(view, prior))
            });
            if again == NO || self.stopped {
                break;
            }
            most = (2 * most).min(largest_start(view, prior));
        }
    }

    /// What goes of a start with `most` components at once; whether so much is left that there may be more.
    fn bulk(&mut self, model: &mut Model, level: Level<'_, '_>, most: usize) -> bool {
        // Far from convergence too few may go: what is left is brought nearer to it before it is called too many.
        for _ in 0..MOST_BULKS {
            let before = model.components();
            let view = self.weigh(model, level);
            self.eliminate(model, &view, BULK);
            if model.components() as f64 <= FULL * most as f64 {
                return false;
            }
            if model.components() == before {
                break;
            }
            let view = self.weigh(model, level);
            settle(model, &view, self.workers);
            choose_mask(model, &view, self.workers);
        }
        true
    }

    /// An NMF with `most` components, or with those that were guessed.
    fn start(
        &mut self,
        model: &mut Model,
        level: Level<'_, '_>,
        (balanced, weights): &(Cow<'_, View<'_>>, Vec<f64>),
        prior: &CheckedPrior,
        search: &Search,
        most: usize,
    ) {
        let (workers, simd) = (self.workers, self.workers.simd);
        let fits = |guess: &&Arc<[f32]>| guess.len() <= prior.components() * balanced.features;
        let mut factors = match search.guess.as_ref().filter(fits) {
            Some(guess) => start::factorise_guess(balanced, guess, simd, workers),
            None => start::factorise(balanced, most, NMF_ITERATIONS, self.key, simd, workers),
        };
        let scaled = factors.h.iter_mut().zip(weights);
        scaled.for_each(|(h, weight)| h.iter_mut().for_each(|h| *h /= weight));
        let first = Prior { a: 0.5, b: 1.0, c: 1.0, d: 1.0, ..prior.get() }.check().expect("in range");
        *model = start::model(level.view, &factors, first, simd, workers);
        model.alpha = self.scatter.alpha * level.power;
        let view = level.view.weighed(model, workers);
        model.ascend(&view, 5, workers);
        learn(model, workers);
        let view = self.weigh(model, level);
        model.ascend(&view, 5, workers);
        remask(model, &view, workers);
        model.drop_empty();
        start::at_least_one(model, &view, workers);
        learn(model, workers);
        model.converge(&view, view.effort(60), view.tolerance(), workers);
        self.say("factors", active(model));
    }

    /// Components go while the evidence gains by it.
    pub(super) fn eliminate(&mut self, model: &mut Model, view: &View, patience: Patience) {
        let workers = self.workers;
        // A request to stop ends a search between stages, so that every stage is whole.
        eliminate(model, view, patience, workers, &mut |model| self.say("eliminate", active(model)));
    }

    /// Convergence and thorough elimination in turn, until no component goes.
    fn finish(&mut self, model: &mut Model, level: Level<'_, '_>) {
        for round in 0..MOST_ROUNDS {
            let went = self.stage("finish", model, |run, model| run.finish_once(model, level, round));
            if went == NO || self.stopped {
                break;
            }
        }
    }

    /// One round of that.
    fn finish_once(&mut self, model: &mut Model, level: Level<'_, '_>, round: usize) -> u64 {
        let workers = self.workers;
        let view = &self.weigh(model, level);
        let (before, last) = (model.components(), model.evidence(view, workers));
        settle(model, view, workers);
        choose_mask(model, view, workers);
        let gain = model.evidence(view, workers) - last;
        if round > 0 && gain < LEAST_GAIN * view.tolerance() {
            // Nothing has changed since all components were judged.
            return NO;
        }
        self.eliminate(model, view, THOROUGH);
        u64::from(model.components() < before)
    }

    /// Births from what is unexplained, as long as the evidence gains by them; then all components are judged again.
    fn grow(&mut self, model: &mut Model, level: Level<'_, '_>) {
        let changed = self.broods(model, |run, model, brood, count| {
            run.stage("brood", model, |run, model| run.brood(model, level, brood, count))
        });
        if changed && !self.stopped {
            self.finish(model, level);
        }
    }

    /// Rounds of births, as long as there is reason to; whether one of them was kept.
    fn broods(
        &mut self,
        model: &mut Model,
        mut once: impl FnMut(&mut Self, &mut Model, usize, usize) -> u64,
    ) -> bool {
        let (mut count, mut failed, mut changed) = (FIRST_BROOD, 0, false);
        for brood in 0..MOST_BROODS {
            let verdict = once(self, model, brood, count);
            changed |= verdict != NO;
            // Better, but not more: that is worth keeping, but no reason to go on.
            failed = if verdict <= YES { failed + 1 } else { 0 };
            if failed > FAILED_BROODS + usize::from(self.scatter.alpha.is_finite()) || self.stopped {
                break;
            }
            if verdict.saturating_sub(YES) > count as u64 / 2 {
                count *= 2;
            }
        }
        changed
    }

    /// A search from the dictionary that was found, which is kept if the evidence gains by it: what a search finds depends on
    /// where it starts, and a start from what it found is a better one.
    pub(super) fn restart(&mut self, model: &mut Model, level: Level<'_, '_>, search: &Search) -> u64 {
        let view = self.weigh(model, level);
        let before = model.evidence(&view, self.workers);
        let mut again = self.again(model, level, search);
        let view = self.weigh(&mut again, level);
        let gain = again.evidence(&view, self.workers) - before;
        if gain > 0.0 {
            *model = again;
        }
        self.say("restart", active(model));
        if gain > LEAST_GAIN * view.tolerance() { YES } else { NO }
    }

    /// The outcome of a search from the dictionary of `model`, masks and activations anew.
    fn again(&mut self, model: &Model, level: Level<'_, '_>, search: &Search) -> Model {
        let most = model.components();
        let guess: Vec<f32> = (0..most).flat_map(|k| model.means(k)).map(|w| w as f32).collect();
        let search = Search { guess: Some(guess.into()), ..search.clone() };
        let balanced = level.view.balanced(self.scatter.alpha * level.power);
        let mut again = model.clone();
        self.start(&mut again, level, &balanced, &model.prior, &search, most);
        self.bulk(&mut again, level, most);
        self.mask(&mut again, level);
        let finish = |run: &mut Self, model: &mut Model| {
            let ends = |round| run.finish_once(model, level, round) == NO || run.stopped;
            (0..MOST_ROUNDS).any(ends)
        };
        finish(self, &mut again);
        if self.broods(&mut again, |run, model, brood, count| run.brood(model, level, brood, count)) {
            finish(self, &mut again);
        }
        again
    }

    /// Components taken out of each other, if counts scatter.
    fn unmix(&mut self, model: &mut Model, level: Level<'_, '_>) -> u64 {
        let view = &self.weigh(model, level);
        if model.alpha.is_infinite() {
            return NO;
        }
        let before = model.evidence(view, self.workers);
        unmix::unmix(model, view, self.workers);
        let gain = model.evidence(view, self.workers) - before;
        self.say("unmix", active(model));
        if gain > LEAST_GAIN * view.tolerance() { YES } else { NO }
    }

    /// New components from the residual, or present ones split in two, in turn. Only the new ones are judged: the others were
    /// before. [`NO`], or [`YES`] and how many more there are.
    fn brood(&mut self, model: &mut Model, level: Level<'_, '_>, brood: usize, count: usize) -> u64 {
        let workers = self.workers;
        let view = &self.weigh(model, level);
        let room = model.prior.components().saturating_sub(model.components());
        let key = self.key.derived(100 + brood as u64);
        let mut grown = model.clone();
        let kinds = if self.scatter.alpha.is_finite() { 3 } else { 2 };
        let (stage, born) = match brood % kinds {
            0 => ("births", births::add(&mut grown, view, count.min(room), key, workers)),
            1 => ("splits", births::split(&mut grown, view, count.min(room), key, workers)),
            _ => ("shared", births::share(&mut grown, view, view.effort(3 * count).min(room), workers)),
        };
        if born == 0 {
            return NO;
        }
        grown.ascend(view, if stage == "shared" { 8 } else { 3 }, workers);
        remask(&mut grown, view, workers);
        grown.drop_empty();
        let new = grown.components().saturating_sub(model.components());
        settle(&mut grown, view, workers);
        self.eliminate(&mut grown, view, THOROUGH.with_last(new));
        let gain = grown.evidence(view, workers) - model.evidence(view, workers);
        let more = grown.components().saturating_sub(model.components());
        if gain > 0.0 {
            *model = grown;
        }
        self.say(stage, active(model));
        if gain > LEAST_GAIN * view.tolerance() { YES + more as u64 } else { NO }
    }
}

/// Every so manieth column is where the search begins: 1 where there are not many.
fn first_columns(view: &View) -> usize {
    let entries: usize = view.columns.iter().map(|column| column.x.len()).sum();
    (view.columns.len() / BEGINS_WITH_COLUMNS).min(entries / BEGINS_WITH_ENTRIES)
}

/// The powers of the likelihood that the search goes through: from where the mean of the positive entries is
/// [`FIRST_LEVEL`] to the data themselves. Convergence takes long where counts are many; what a component looks like is
/// known with few.
fn levels(view: &View, alpha: f64) -> Vec<f64> {
    let mut levels = vec![1.0];
    let mut mean = view.mean_positive(alpha);
    while mean > 1.5 * FIRST_LEVEL {
        let factor = (FIRST_LEVEL / mean).max(1.0 / LEVEL_FACTOR);
        levels.insert(0, levels[0] * factor);
        mean *= factor;
    }
    levels
}

/// Every component on everywhere, which is kept if the evidence gains by it. A mask that was chosen where little was known, and
/// the W that goes with it, are hard to leave one site at a time.
fn try_all_on(model: &mut Model, view: &View, workers: &Workers) {
    let step = view.columns.len() / FEW_COLUMNS;
    if step > 1 {
        let (some, mut masked) = (view.sampled(step), model.sampled(step));
        let mut on = masked.clone();
        on.switch_all_on(&some);
        masked.converge(&some, 2 * some.effort(FIRST_ALL_ON), some.tolerance(), workers);
        if !gains_in_time(&mut on, &some, masked.evidence(&some, workers), workers) {
            return;
        }
    }
    let before = model.evidence(view, workers);
    let mut on = model.clone();
    on.switch_all_on(view);
    if !gains_in_time(&mut on, view, before, workers) {
        return;
    }
    let left = view.effort(ALL_ON).saturating_sub(2 * view.effort(FIRST_ALL_ON));
    on.converge(view, left, view.tolerance(), workers);
    if on.evidence(view, workers) > before {
        *model = on;
        return;
    }
    remask(&mut on, view, workers);
    on.drop_empty();
    after_mask(&mut on, view, workers);
    if on.evidence(view, workers) > before {
        *model = on;
    }
}

/// Whether a model can reach the evidence `before`, at the pace of its first steps.
fn gains_in_time(model: &mut Model, view: &View, before: f64, workers: &Workers) -> bool {
    let steps = view.effort(FIRST_ALL_ON);
    model.converge(view, steps, view.tolerance(), workers);
    let early = model.evidence(view, workers);
    model.converge(view, steps, view.tolerance(), workers);
    let late = model.evidence(view, workers);
    late + PACE * (late - early) >= before
}

/// Convergence after the mask was chosen anew.
fn after_mask(model: &mut Model, view: &View, workers: &Workers) {
    model.converge(view, view.effort(AFTER_MASK), view.tolerance(), workers);
    learn(model, workers);
    model.converge(view, view.effort(AFTER_MASK), view.tolerance(), workers);
}

/// The mask of every column chosen anew and convergence in turn, as long as the evidence gains.
fn choose_mask(model: &mut Model, view: &View, workers: &Workers) {
    let mut evidence = model.evidence(view, workers);
    for _ in 0..MOST_MASKS {
        let mut masked = model.clone();
        remask(&mut masked, view, workers);
        masked.drop_empty();
        after_mask(&mut masked, view, workers);
        let after = masked.evidence(view, workers);
        let gain = after - evidence;
        if gain > 0.0 {
            (*model, evidence) = (masked, after);
        }
        if gain < LEAST_GAIN * view.tolerance() {
            break;
        }
    }
}

/// Convergence with the prior learned on the way.
fn settle(model: &mut Model, view: &View, workers: &Workers) {
    model.converge_learning(view, view.effort(CONVERGED), view.tolerance(), 3, workers);
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
    MOST_AT_START.min(affordable(view))
}

/// The components that the start may grow to.
fn largest_start(view: &View, prior: &CheckedPrior) -> usize {
    affordable(view).min(prior.components())
}

/// The components that the counts could pay for, and no more than there are rows or columns.
fn affordable(view: &View) -> usize {
    let parameters = (view.features + view.columns.len()) as f64;
    let affordable = (view.total / (COUNTS_A_PARAMETER * parameters)) as usize;
    affordable.min(view.features).min(view.columns.len()).max(1)
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
        delete_least(model, view, workers);
    }
    let mut tries = 0;
    while model.components() < wanted {
        let missing = wanted - model.components();
        births::add(model, view, missing.min(BROOD), key.derived(tries), workers);
        if tries > 3 && model.components() < wanted {
            births::halve_largest(model, workers);
        }
        model.ascend(view, 5, workers);
        model.drop_empty();
        tries += 1;
    }
}
