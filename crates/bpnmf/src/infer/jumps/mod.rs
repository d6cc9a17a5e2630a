//! Moves between numbers of components, as Metropolis-Hastings within the exact sampler: births and deaths along an annealed
//! path. They know no search, and claim to be exact.
//!
//! The sampler changes S one site at a time, so it can hardly open a component, or let one go whose content others could take
//! over. A jump goes from a state in which slot j is not used to one in which it is, or back, by way of models between the two:
//! at level s the prior of W_fj is Gamma(a, b_s), from b_0 infinite, where j explains nothing, to b_n = b. At each level *all*
//! components follow in one iteration of the sampler, so a birth may split what others held and a death merges it into them.
//! With W_j and pi_j summed out the joint density of (Z, H, S) is, but for factors that all levels share,
//!
//! ```text
//! p_s = prod_f b_s^a / (b_s + G_f)^(a + z_f)  B(on_s + m, off_s + T - m) / B(on_s, off_s)
//! ```
//!
//! with z_f = sum_t Z_ftj, G_f = sum_t omega_ft H_jt S_jt and m = sum_t S_jt. The product of p_(s+1) / p_s along the path takes the
//! place of the ratio of the two posterior densities (Neal 2001; Karagiannis & Andrieu 2013). A death is the time reversal of a birth, transition by transition: S with the components in
//! descending order, Z, H given Z and the old W, the ratio, W given Z and the new H, pi.

mod path;

use super::activations::Activations;
use super::conditionals::NEVER;
use super::dictionary::{Dictionary, stored};
use super::mask::Odds;
use crate::counts::Counts;
use crate::prior::{CheckedPrior, ComponentsPrior};
use crate::random::{Key, Site};
use crate::special::ln;
use crate::workers::Workers;
use path::Path;

/// How often the sampler tries to change the number of components, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jumps {
    /// Levels between the two models. The noise of the ratio falls with their number; a try costs as much as so many
    /// iterations and one more, unless it is given up early.
    pub levels: u32,
    /// Iterations from one try to the next.
    pub every: u32,
}

impl Default for Jumps {
    fn default() -> Self {
        Self { levels: 20, every: 70 }
    }
}

/// Tries of an iteration, or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Jumped {
    /// Births that were tried.
    pub births: u32,
    /// Those that were accepted.
    pub births_accepted: u32,
    /// Deaths that were tried.
    pub deaths: u32,
    /// Those that were accepted.
    pub deaths_accepted: u32,
}

impl Jumped {
    /// Adds those of another iteration.
    pub fn add(&mut self, other: &Self) {
        self.births += other.births;
        self.births_accepted += other.births_accepted;
        self.deaths += other.deaths;
        self.deaths_accepted += other.deaths_accepted;
    }
}

/// What a jump changes.
pub(super) struct Moving<'a> {
    pub(super) dictionary: &'a mut Dictionary,
    pub(super) activations: &'a mut Activations,
    pub(super) odds: &'a mut Odds,
}

/// Whether a slot may hold a component now: always under the beta process prior, and with an explicit prior if it is in the
/// model.
pub(super) fn in_model(odds: &Odds, k: usize) -> bool {
    odds.logit()[k] > NEVER
}

/// The shapes of pi of every slot, `None` for those that are not in the model.
pub(super) fn shapes(
    prior: &CheckedPrior,
    in_model: impl Fn(usize) -> bool,
) -> impl Fn(usize) -> Option<(f64, f64)> {
    let shapes = prior.shapes_of_pi();
    move |k| in_model(k).then_some(shapes)
}

/// Leaves only what is used in the model, if there is an explicit prior: where a chain starts.
pub(super) fn start(prior: &CheckedPrior, activations: &Activations, odds: &mut Odds) {
    if prior.number() == ComponentsPrior::BetaProcess {
        return;
    }
    let (usage, before) = (activations.usage(), odds.logit().to_vec());
    odds.fill(|k| if usage[k] > 0 { before[k] } else { NEVER });
}

/// With an explicit prior, lets slots that are not used enter and leave the model.
pub(super) fn admit(prior: &CheckedPrior, moving: &mut Moving<'_>, key: Key, iteration: u32) {
    if prior.number() == ComponentsPrior::BetaProcess {
        return;
    }
    let usage = moving.activations.usage();
    let slots = usage.len();
    let observations = moving.activations.observations() as f64;
    let (on, off) = prior.shapes_of_pi();
    let never_on = path::ln_mask((on, off), 0.0, observations);
    let mut logit = moving.odds.logit().to_vec();
    let mut number = logit.iter().filter(|&&logit| logit > NEVER).count();
    for k in (0..slots).filter(|&k| usage[k] == 0) {
        let mut stream = key.stream(Site::Jump, iteration, 1, k as u32);
        let is_in = logit[k] > NEVER;
        let without = number - usize::from(is_in);
        let gain = prior.number().ln_of_set(without + 1, slots) + never_on
            - prior.number().ln_of_set(without, slots);
        let wanted = if is_in { -gain } else { gain };
        if ln(stream.uniform()) < wanted {
            logit[k] = if is_in { NEVER } else { stream.logit_beta(on, off + observations) };
            number = without + usize::from(!is_in);
        }
    }
    moving.odds.fill(|k| logit[k]);
}

/// One try. A birth or a death with the same probability.
pub(super) fn jump(
    jumps: Jumps,
    counts: &Counts,
    prior: &CheckedPrior,
    moving: &mut Moving<'_>,
    key: Key,
    iteration: u32,
    workers: &Workers,
) -> Jumped {
    let mut stream = key.stream(Site::Jump, iteration, 0, 0);
    let birth = stream.uniform() < 0.5;
    let (choice, threshold) = (stream.uniform(), ln(stream.uniform()));
    let tried = Jumped { births: u32::from(birth), deaths: u32::from(!birth), ..Jumped::default() };
    let usage = moving.activations.usage();
    let slots = usage.len();
    let path = Path {
        levels: path::ladder(jumps.levels, prior, counts),
        counts,
        prior,
        key: Key::drawn(&mut stream),
        workers,
    };
    let explicit = prior.number() != ComponentsPrior::BetaProcess;
    let is_out = |k: usize| if explicit { !in_model(moving.odds, k) } else { usage[k] == 0 };
    let out: Vec<usize> = (0..slots).filter(|&k| is_out(k)).collect();
    // What the number of components contributes to the density of a state with j, less that of one without j.
    let observations = counts.observations() as f64;
    let of_number = |with: usize| {
        #[cfg(test)]
        if neglects(Neglected::Number) {
            return 0.0;
        }
        if explicit {
            prior.number().ln_of_set(with, slots) - prior.number().ln_of_set(with - 1, slots)
        } else {
            -path::ln_mask(prior.shapes_of_pi(), 0.0, observations)
        }
    };
    if birth {
        let Some(&j) = pick(&out, choice) else { return tried };
        let Some((state, gain)) = path.birth(moving, j) else { return tried };
        let used = state.activations.usage().iter().filter(|&&usage| usage > 0).count();
        let ratio = gain + of_number(slots - out.len() + 1) + ln_choice(out.len(), used);
        if threshold < ratio {
            state.put(moving);
            return Jumped { births_accepted: 1, ..tried };
        }
        return tried;
    }
    let used: Vec<usize> = (0..slots).filter(|&k| usage[k] > 0).collect();
    let Some(&j) = pick(&used, choice) else { return tried };
    let Some((mut state, gain)) = path.death(moving, j) else { return tried };
    let out_after = if explicit {
        out.len() + 1
    } else {
        state.activations.usage().iter().filter(|&&usage| usage == 0).count()
    };
    let ratio = gain - of_number(slots - out.len()) - ln_choice(out_after, used.len());
    if threshold < ratio {
        // What is not used is as its prior has it.
        for w in state.dictionary.row_mut(j) {
            *w = stored(stream.gamma(prior.a()) / prior.b());
        }
        state.dictionary.settle();
        let (on, off) = prior.shapes_of_pi();
        state.logit[j] = if explicit { NEVER } else { stream.logit_beta(on, off + observations) };
        state.put(moving);
        return Jumped { deaths_accepted: 1, ..tried };
    }
    tried
}

fn pick(of: &[usize], uniform: f64) -> Option<&usize> {
    of.get((uniform * of.len() as f64) as usize)
}

/// log of the probability that a death takes the slot back over that of the birth to have chosen it, uniform in both.
fn ln_choice(out_before: usize, used_after: usize) -> f64 {
    #[cfg(test)]
    if neglects(Neglected::Choice) {
        return 0.0;
    }
    ln(out_before as f64) - ln(used_after.max(1) as f64)
}

/// A term that a wrong ratio lacks: for the tests that such a ratio is caught.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Neglected {
    /// The probabilities to choose the slot.
    Choice,
    /// The prior of the number of components.
    Number,
}

#[cfg(test)]
std::thread_local! {
    static NEGLECTED: core::cell::Cell<Option<Neglected>> = const { core::cell::Cell::new(None) };
}

/// Makes the ratios of this thread wrong, or right again.
#[cfg(test)]
pub(super) fn neglect(term: Option<Neglected>) {
    NEGLECTED.set(term);
}

#[cfg(test)]
fn neglects(term: Neglected) -> bool {
    NEGLECTED.get() == Some(term)
}
