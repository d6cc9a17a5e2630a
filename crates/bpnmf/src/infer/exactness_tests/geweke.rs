//! Geweke's joint test (2004): step the engine given X, redraw X given the state, and the state must keep its prior.

use super::{
    COMPONENTS, FEATURES, OBSERVATIONS, batch_means, counts_given, dense_values, inclusion, is_on, masked,
    prior_draw, rate, tiny_prior,
};
use crate::counts::Counts;
use crate::infer::{Batch, Engine, Gibbs, State};
use crate::random::{Key, Site, Stream};
use crate::workers::Workers;

const DRAWS: usize = 200_000;
const THIN: u32 = 5;
const BATCHES: usize = 100;
pub(super) const FUNCTIONALS: usize = 21;

/// digamma(2) = 1 - Euler's constant: E log of a Gamma(2, 1).
const LOG_GAMMA_2: f64 = 1.0 - 0.577_215_664_901_532_9;

/// e E_1(1), Gompertz's constant.
const GOMPERTZ: f64 = 0.596_347_362_323_194_1;

/// Functionals with their exact expectation under a = c = 2, b = d = 1, pi ~ Beta(1, 2).
pub(super) fn expectations() -> [(&'static str, f64); FUNCTIONALS] {
    let square_of_part: f64 = 6.0 * 6.0 / 3.0;
    let part: f64 = 2.0 * 2.0 / 3.0;
    // E exp(-W H S) = 2/3 + 1/3 E (1 + W)^-2.
    let silent = 2.0 / 3.0 + (2.0 * GOMPERTZ - 1.0) / 3.0;
    [
        ("W00", 2.0),
        ("W21^2", 6.0),
        ("sum log W", 9.0 * LOG_GAMMA_2),
        ("W00 W01", 4.0),
        ("W00 W10", 4.0),
        ("pi0", 1.0 / 3.0),
        ("pi2^2", 1.0 / 6.0),
        ("S00", 1.0 / 3.0),
        ("S00 S01", 1.0 / 6.0),
        ("pi0 S00", 1.0 / 6.0),
        ("(sum S)^2", 3.0 * (12.0 / 6.0 + 4.0 / 3.0) + 6.0 * (4.0f64 / 3.0).powi(2)),
        ("sum H S", 12.0 * 2.0 / 3.0),
        ("sum H^2 S", 12.0 * 6.0 / 3.0),
        ("H00 S00 H01 S01", 4.0 / 6.0),
        ("sum S log H", 4.0 * LOG_GAMMA_2),
        ("W00 H00 S00", part),
        ("mean rate", 3.0 * part),
        ("mean X", 3.0 * part),
        ("mean X(X-1)", 3.0 * square_of_part + 6.0 * part.powi(2)),
        ("share of X = 0", silent.powi(3)),
        ("column 0 all off", 8.0 / 27.0),
    ]
}

fn evaluate(state: &State, counts: &Counts) -> [f64; FUNCTIONALS] {
    let w = |f: usize, k: usize| f64::from(state.dictionary.row(k)[f]);
    let pi = |k: usize| inclusion(state.odds.logit()[k]);
    let on = |k: usize, t: usize| f64::from(u8::from(is_on(state, k, t)));
    let active = |value: fn(f64) -> f64| -> f64 {
        (0..OBSERVATIONS)
            .flat_map(|t| state.activations.column(t).iter())
            .map(|(_, h)| value(f64::from(h)))
            .sum()
    };
    let x = dense_values(counts);
    let entries = (FEATURES * OBSERVATIONS) as f64;
    let mean = |value: fn(f64) -> f64| x.iter().map(|&x| value(x)).sum::<f64>() / entries;
    let rates: f64 = (0..OBSERVATIONS).map(|t| (0..FEATURES).map(|f| rate(state, f, t)).sum::<f64>()).sum();
    [
        w(0, 0),
        w(2, 1).powi(2),
        (0..COMPONENTS).map(|k| (0..FEATURES).map(|f| w(f, k)).product::<f64>().ln()).sum(),
        w(0, 0) * w(0, 1),
        w(0, 0) * w(1, 0),
        pi(0),
        pi(2).powi(2),
        on(0, 0),
        on(0, 0) * on(0, 1),
        pi(0) * on(0, 0),
        active(|_| 1.0).powi(2),
        active(|h| h),
        active(|h| h * h),
        masked(state, 0, 0) * masked(state, 0, 1),
        active(f64::ln),
        w(0, 0) * masked(state, 0, 0),
        rates / entries,
        mean(|x| x),
        mean(|x| x * (x - 1.0)),
        mean(|x| f64::from(u8::from(x == 0.0))),
        f64::from(u8::from(state.activations.column(0).iter().next().is_none())),
    ]
}

/// A chain over (state, X) that should leave the prior as it is.
pub(super) struct Joint<'a> {
    pub(super) name: &'a str,
    /// Features that are missing in each column of the X that the engine sees.
    pub(super) missing: [&'a [u32]; OBSERVATIONS],
    pub(super) draws: usize,
    pub(super) seed: u64,
}

impl Joint<'_> {
    /// z of every functional, the chain against its expectation. `step` makes one step given X, `redraw` draws X given the
    /// state.
    pub(super) fn scores(
        &self,
        expectations: [(&'static str, f64); FUNCTIONALS],
        mut state: State,
        mut step: impl FnMut(&mut State, &Counts, Key),
        redraw: impl Fn(&State, &mut Stream) -> Counts,
    ) -> Vec<(&'static str, f64)> {
        let (key, data) = (Key::new(self.seed), Key::new(self.seed).derived(1));
        let mut counts = redraw(&state, &mut data.stream(Site::Synthesis, 0, 0, 0));
        let starts: Vec<usize> = (0..=OBSERVATIONS).map(|t| self.missing[..t].concat().len()).collect();
        let mut traces = vec![Vec::new(); FUNCTIONALS];
        for _ in 0..self.draws {
            for _ in 0..THIN {
                let seen = counts.with_missing(starts.clone(), self.missing.concat()).unwrap();
                step(&mut state, &seen, key);
                counts = redraw(&state, &mut data.stream(Site::Synthesis, state.iteration, 0, 0));
            }
            for (trace, value) in traces.iter_mut().zip(evaluate(&state, &counts)) {
                trace.push(value);
            }
        }
        let mut scores = Vec::new();
        for ((name, exact), trace) in expectations.into_iter().zip(&traces) {
            let (mean, error) = batch_means(trace, BATCHES);
            let z = (mean - exact) / error;
            println!("{:>15} {name:<17} prior {exact:8.4} chain {mean:8.4} z {z:+.2}", self.name);
            scores.push((name, z));
        }
        scores
    }
}

/// z of every functional for Poisson counts.
pub(super) fn scores(
    engine: &Gibbs,
    missing: [&[u32]; OBSERVATIONS],
    draws: usize,
    seed: u64,
) -> Vec<(&'static str, f64)> {
    let (prior, workers) = (tiny_prior(), Workers::serial());
    let start = prior_draw(&prior, &mut Key::new(seed).derived(1).stream(Site::Init, 0, 0, 0));
    let step = |state: &mut State, seen: &Counts, key: Key| {
        engine.step(state, &Batch::all(seen), &prior, key, &workers).unwrap();
    };
    let joint = Joint { name: engine.name(), missing, draws, seed };
    joint.scores(expectations(), start, step, counts_given)
}

#[test]
fn gibbs_with_sampled_counts_keeps_the_prior_of_everything() {
    for (name, z) in scores(&Gibbs { expected: false, ..Gibbs::default() }, [&[]; OBSERVATIONS], DRAWS, 100) {
        assert!(z.abs() < 4.0, "{name}: z {z}");
    }
}

#[test]
fn gibbs_with_missing_entries_keeps_the_prior_of_everything() {
    let missing: [&[u32]; OBSERVATIONS] = [&[0], &[], &[0, 2], &[0, 1, 2]];
    for (name, z) in scores(&Gibbs::default(), missing, DRAWS, 102) {
        assert!(z.abs() < 4.0, "{name}: z {z}");
    }
}

/// What the test above is worth: it sees that Algorithm 2 as printed is not a Gibbs sampler.
#[test]
fn gibbs_with_expected_counts_does_not_keep_the_prior_of_w() {
    let scores = scores(&Gibbs { expected: true, ..Gibbs::default() }, [&[]; OBSERVATIONS], DRAWS, 101);
    let (_, z) = scores.into_iter().find(|(name, _)| *name == "sum log W").unwrap();
    assert!(z.abs() > 10.0, "sum log W: z {z}");
}
