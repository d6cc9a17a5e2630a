//! The negative binomial process factor model of Zhou, Hannah, Dunson and Carin (2012): exact Gibbs sampling with table counts.
//! It has no mask; which components are used, their weights say.

use super::activations::Activations;
use super::conditionals::Conditionals;
use super::dictionary::{Dictionary, stored};
use super::draws::{Place, draw_row, draw_sites};
use super::gibbs::start_means;
use super::local::{Allocation, GROUP, Workspace};
use super::mask::{Odds, Tiers};
use super::state::{Averages, Slots, Spread, least_usage};
use super::{Batch, Engine, Info, Init, Jumped, State};
use crate::counts::Counts;
use crate::error::Error;
use crate::kernel::exact::sum_ln;
use crate::kernel::{Lanes, Simd, dispatch, flat_mut};
use crate::plan::EngineKind;
use crate::prior::CheckedPrior;
use crate::random::tables::Seats;
use crate::random::{Key, Site};
use crate::search::Found;
use crate::special::{ln, ln_1p, ln_beta, ln_gamma};
use crate::statistics::Sums;
use crate::workers::Workers;

/// The exact Gibbs sampler of the negative binomial process factor model:
///
/// X_ft ~ Poisson(sum_k Phi_fk Theta_kt), Phi_k ~ Dirichlet(a), Theta_kt ~ Gamma(r_k, (1 - p_k) / p_k),
/// p_k ~ Beta(a0 / K, b0 (K - 1) / K), r_k ~ Gamma(c, d).
///
/// One step: Z given Phi and Theta; p given the counts of the components and r, with Theta summed out; r by way of table
/// counts, likewise; Theta given all of these; Phi given Z. Theta must come after p and r, which were drawn without it.
///
/// A component counts in a column if it has counts there. The model has no mask, no missing entries and no other noise:
/// that counts of a column scatter is what p is for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NbProcess {
    /// Steps before states are averaged.
    pub burn_in: u32,
    /// Where the chain starts.
    pub init: Init,
}

impl Default for NbProcess {
    fn default() -> Self {
        Self { burn_in: 200, init: Init::Random }
    }
}

/// The logit of a mask that is always on: no count can outweigh it, and it is in the range of single precision.
const ALWAYS: f64 = 1e30;

/// The least r: keeps its logarithm finite.
const LEAST_SHAPE: f64 = 1e-200;

/// -log(1 - p) from logit(p).
fn softplus(logit: f64) -> f64 {
    if logit > 0.0 { logit + ln_1p((-logit).exp()) } else { ln_1p(logit.exp()) }
}

/// What the parts of an iteration are given beside the state.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) counts: &'a Counts,
    pub(super) prior: &'a CheckedPrior,
    pub(super) key: Key,
    pub(super) workers: &'a Workers,
}

dispatch! {
    /// The table counts of a column: of `counts` customers of every component, with the concentrations `shapes`.
    fn tables [] (seats: &mut Seats, counts: &[f64], shapes: &[f64], out: &mut [f64]) = tables_of
}

#[inline(always)]
fn tables_of<V: Lanes>(seats: &mut Seats, counts: &[f64], shapes: &[f64], out: &mut [f64]) {
    for (k, ((out, &n), &r)) in out.iter_mut().zip(counts).zip(shapes).enumerate() {
        *out = seats.tables::<V>(n as u64, r, k) as f64;
    }
}

/// Z given Phi and Theta: its sums over columns in `workspace.stats`, those over features in `workspace.kept_shares`.
pub(super) fn allocate(given: Given<'_>, state: &mut State, workspace: &mut Workspace) {
    let Given { counts, prior, key, workers } = given;
    let State { dictionary, activations, iteration, .. } = state;
    let always = Odds::new(vec![ALWAYS; dictionary.components()]);
    let conditionals = Conditionals { counts, prior, key, iteration: *iteration, workers };
    conditionals.mask_and_counts(Allocation::Sampled, dictionary, activations, &always, workspace);
}

/// p and then r given the counts of every component in every column, at `t * K + k` of `shares`, Theta summed out.
pub(super) fn weights(given: Given<'_>, shares: &[f64], state: &mut State) {
    let Given { prior, key, workers, .. } = given;
    let State { activations, odds, own: shapes, iteration, .. } = state;
    let (components, observations) = (activations.components(), activations.observations() as f64);
    let mut all = vec![0.0; components];
    for column in shares.chunks(components).take(activations.observations()) {
        all.iter_mut().zip(column).for_each(|(all, n)| *all += n);
    }
    odds.fill(|k| {
        let mut stream = key.stream(Site::Inclusion, *iteration, 0, k as u32);
        stream.logit_beta(prior.pi_on() + all[k], prior.pi_off() + observations * shapes[k])
    });
    let columns = shares.chunks(components).take(activations.observations()).enumerate();
    let opened = workers.map(columns, |(t, column)| {
        let mut out = vec![0.0; components];
        tables(workers.simd, &mut Seats::new(key, *iteration, t), column, shapes, &mut out);
        out
    });
    for (k, shape) in shapes.iter_mut().enumerate() {
        // Whole numbers: their sum is the same in any order.
        let opened: f64 = opened.iter().map(|column| column[k]).sum();
        let rate = prior.d() + observations * softplus(odds.logit()[k]);
        let draw = key.stream(Site::Inclusion, *iteration, 1, k as u32).gamma(prior.c() + opened);
        *shape = (draw / rate).max(LEAST_SHAPE);
    }
}

/// Theta given the counts of every component in every column, p, r and Phi.
pub(super) fn activate(given: Given<'_>, shares: &[f64], state: &mut State) {
    let Given { key, workers, .. } = given;
    let State { dictionary, activations, odds, own: shapes, iteration, .. } = state;
    let (components, tiles) = (dictionary.components(), activations.tiles());
    let rates: Vec<f64> =
        odds.logit().iter().enumerate().map(|(k, logit)| (-logit).exp() + dictionary.sum(k)).collect();
    let (on, values) = activations.columns_mut(0, shares.len() / components);
    let groups = on.chunks(GROUP * tiles).zip(values.chunks_mut(GROUP * tiles)).enumerate();
    workers.for_each(groups, |(group, (on, values)), _| {
        let i = (group * GROUP) as u32;
        let place = Place { simd: workers.simd, key, site: Site::Activation, iteration: *iteration, i };
        draw_sites(place, tiles, on, values, |t, k| shapes[k] + shares[t * components + k], |_, k| rates[k]);
    });
}

/// Phi given Z.
pub(super) fn draw_dictionary(given: Given<'_>, sums: &Sums, state: &mut State) {
    let Given { prior, key, workers, .. } = given;
    let State { dictionary, iteration, .. } = state;
    let features = dictionary.features();
    workers.for_each(dictionary.rows_mut().enumerate(), |(k, row), _| {
        let allocated = &sums.allocated[k * features..];
        let place =
            Place { simd: workers.simd, key, site: Site::Dictionary, iteration: *iteration, i: k as u32 };
        let row = &mut flat_mut(row)[..features];
        draw_row(place, row, |f| prior.a() + allocated[f], |_| 1.0);
        normalise(row);
    });
    dictionary.settle();
}

/// Makes the sum of a row one.
fn normalise(row: &mut [f32]) {
    let sum: f64 = row.iter().map(|&w| f64::from(w)).sum();
    row.iter_mut().for_each(|w| *w = stored(f64::from(*w) / sum));
}

/// What a step reports: of the state before it, whose counts are in `sums` and `shares`. Components without a count are
/// left out of the joint density.
fn report(given: Given<'_>, sums: &Sums, shares: &[f64], state: &State) -> Info {
    let Given { counts, prior, workers, .. } = given;
    let State { dictionary, activations, odds, own: shapes, .. } = state;
    let (features, components) = (dictionary.features(), dictionary.components());
    let (mut usage, mut logs) = (vec![0.0; components], vec![0.0; components]);
    for (t, column) in shares.chunks(components).take(activations.observations()).enumerate() {
        let values = activations.column(t).values;
        for k in 0..components {
            usage[k] += f64::from(u8::from(column[k] > 0.0));
            logs[k] += ln(f64::from(values[k]));
        }
    }
    let log_likelihood = sums.log_likelihood - counts.ln_factorials();
    let (mut log_joint, least) = (log_likelihood, least_usage(counts.observations()));
    let (on, off, n) = (prior.pi_on(), prior.pi_off(), features as f64);
    for k in (0..components).filter(|&k| usage[k] > 0.0) {
        let (r, logit, observations) = (shapes[k], odds.logit()[k], counts.observations() as f64);
        log_joint += (prior.a() - 1.0) * sum_ln(workers.simd, dictionary.row(k)) + ln_gamma(n * prior.a())
            - n * ln_gamma(prior.a());
        log_joint += observations * (-r * logit - ln_gamma(r)) + (r - 1.0) * logs[k];
        log_joint -= (-logit).exp() * sums.activation[k];
        log_joint += (prior.c() - 1.0) * ln(r) - prior.d() * r - prior.constant_h();
        // log p and log (1 - p).
        log_joint -= on * softplus(-logit) + off * softplus(logit) + ln_beta(on, off);
    }
    Info {
        active: usage.iter().filter(|used| **used > 0.0 && **used >= least).count(),
        on_anywhere: usage.iter().filter(|used| **used > 0.0).count(),
        sites_on: usage.iter().sum::<f64>() as u64,
        log_likelihood,
        log_joint,
        activation: (0..components).map(|k| sums.activation[k] * dictionary.sum(k)).sum(),
        tiers: Tiers::default(),
        jumped: Jumped::default(),
    }
}

impl NbProcess {
    /// Takes the state into the averages.
    fn average(&self, info: &Info, shares: &[f64], state: &mut State, simd: Simd) {
        let State { dictionary, activations, odds, averages, iteration, .. } = state;
        let (features, components) = (dictionary.features(), dictionary.components());
        let observations = activations.observations();
        // Until the burn-in is over the average is the last state itself.
        averages.draws = if *iteration <= self.burn_in { 1 } else { averages.draws + 1 };
        let rate = 1.0 / f64::from(averages.draws);
        for k in 0..components {
            let means = &mut averages.dictionary[k * features..][..features];
            for (mean, &w) in means.iter_mut().zip(dictionary.row(k)) {
                *mean += (rate * f64::from(w - *mean)) as f32;
            }
            let p = 1.0 / (1.0 + (-odds.logit()[k]).exp());
            averages.pi[k] += rate * (p - averages.pi[k]);
        }
        for t in 0..observations {
            let (values, at) = (activations.column(t).values, t * components);
            for k in 0..components {
                let used = f32::from(u8::from(shares[at + k] > 0.0));
                averages.masked[at + k] += (rate * f64::from(values[k] - averages.masked[at + k])) as f32;
                averages.inclusion[at + k] += rate as f32 * (used - averages.inclusion[at + k]);
            }
        }
        averages.log_likelihood += rate * (info.log_likelihood - averages.log_likelihood);
        if *iteration >= self.burn_in {
            let new = || Spread::new(features, components, observations);
            let spread = averages.spread.get_or_insert_with(new);
            spread.blend_signatures(simd, dictionary, rate);
            spread.blend_exposures(simd, dictionary, activations, 0..observations, rate);
        }
    }
}

impl Engine for NbProcess {
    fn name(&self) -> &'static str {
        EngineKind::NbProcess.name()
    }

    fn check(&self, counts: &Counts) -> Result<(), Error> {
        if counts.has_missing() {
            return Err(Error::NoMissing { engine: self.name() });
        }
        counts.require_whole(self.name())
    }

    /// A chain that has just burnt in has not been averaged over: run on for as long again.
    fn least_iterations(&self) -> usize {
        2 * self.burn_in as usize
    }

    fn burn_in(&self, iterations: usize) -> usize {
        let burn_in = self.burn_in as usize;
        if burn_in < iterations { burn_in } else { iterations / 2 }
    }

    fn init(&self, counts: &Counts, prior: &CheckedPrior, key: Key) -> State {
        let (features, observations) = (counts.features(), counts.observations());
        let components = prior.components();
        let (mut dictionary, means) = (Dictionary::new(features, components), start_means(self.init, counts));
        for k in 0..components {
            for (f, w) in dictionary.row_mut(k).iter_mut().enumerate() {
                let mut stream = key.stream(Site::Init, 0, k as u32, f as u32);
                *w = stored(match self.init {
                    Init::Random => stream.gamma(100.0) / 100.0,
                    Init::Scaled => stream.gamma(1.0) * means[f],
                });
            }
            normalise(dictionary.row_mut(k));
        }
        dictionary.settle();
        let mut activations = Activations::new(components, observations);
        for (t, total) in counts.column_totals().iter().enumerate() {
            for k in 0..components {
                let draw = key.stream(Site::Init, 1, t as u32, k as u32).gamma(1.0);
                activations.set(k, t, Some(stored((draw + 0.1) * (total + 1.0) / components as f64)));
            }
        }
        State {
            dictionary,
            activations,
            odds: Odds::new(vec![0.0; components]),
            variational: None,
            averages: Averages::new(features, components, observations),
            scatter: None,
            own: vec![prior.c() / prior.d(); components],
            iteration: 0,
        }
    }

    /// What the search found, scaled so that every component adds up to one; what was off is on, but low.
    fn start(&self, found: &Found) -> State {
        const QUIET: f32 = 0.01;
        let mut state = found.state();
        let State { dictionary, activations, odds, own, .. } = &mut state;
        let prior = found.discovery.prior;
        for k in 0..dictionary.components() {
            let sum = dictionary.sum(k);
            normalise(dictionary.row_mut(k));
            for t in 0..activations.observations() {
                let theta = f64::from(activations.at(k, t).max(QUIET)) * sum;
                activations.set(k, t, Some(stored(theta)));
            }
        }
        dictionary.settle();
        odds.fill(|_| 0.0);
        *own = vec![prior.c() / prior.d(); dictionary.components()];
        state
    }

    fn step(
        &self,
        state: &mut State,
        batch: &Batch<'_>,
        prior: &CheckedPrior,
        key: Key,
        workers: &Workers,
    ) -> Result<Info, Error> {
        let counts = batch.counts;
        if batch.columns != (0..counts.observations()) {
            let (given, all) = (batch.columns.len(), counts.observations());
            return Err(Error::PartialBatch { engine: self.name(), given, all });
        }
        let given = Given { counts, prior, key, workers };
        let workspace = &mut *workers.workspace();
        allocate(given, state, workspace);
        let Workspace { stats, kept_shares, .. } = workspace;
        let shares = &kept_shares[..counts.observations() * state.dictionary.components()];
        let info = report(given, stats, shares, state);
        weights(given, shares, state);
        activate(given, shares, state);
        draw_dictionary(given, stats, state);
        self.average(&info, shares, state, workers.simd);
        state.iteration += 1;
        Ok(info)
    }

    fn slots<'a>(&self, state: &'a State) -> Slots<'a> {
        let averages = &state.averages;
        Slots {
            dictionary: averages.dictionary.iter().map(|&w| f64::from(w)).collect(),
            masked: &averages.masked,
            inclusion: &averages.inclusion,
            pi: averages.pi.clone(),
            log_likelihood: averages.log_likelihood,
            spread: averages.spread.as_ref().filter(|_| averages.draws > 1),
        }
    }
}
