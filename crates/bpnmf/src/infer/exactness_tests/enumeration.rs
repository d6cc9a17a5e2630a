//! The mask against its enumerated distribution: W and H fixed, every state of a column (or of the matrix) listed.

use super::{batch_means, inclusion};
use crate::counts::Counts;
use crate::infer::activations::Activations;
use crate::infer::dictionary::{Dictionary, stored};
use crate::infer::mask::{Known, Odds, Scratch, Sweep, compact, sweep};
use crate::infer::{Batch, Engine, Gibbs};
use crate::kernel::Simd;
use crate::prior::Prior;
use crate::random::{Key, Site};
use crate::special::ln_beta;
use crate::workers::Workers;

const SWEEPS: u32 = 400_000;
const BATCHES: usize = 100;

/// Three features, two columns, as many components as `w` has rows.
pub(super) struct Fixed {
    pub(super) w: Vec<[f64; 3]>,
    /// H of component k in column t at `h[t][k]`.
    pub(super) h: [Vec<f64>; 2],
    pub(super) logit: Vec<f64>,
    /// NaN where it is missing.
    pub(super) x: [[f64; 3]; 2],
}

impl Fixed {
    pub(super) fn components(&self) -> usize {
        self.w.len()
    }

    pub(super) fn counts(&self) -> Counts {
        Counts::from_dense_with_missing(3, 2, self.x.concat()).unwrap()
    }

    pub(super) fn dictionary(&self) -> Dictionary {
        let mut dictionary = Dictionary::new(3, self.components());
        for (k, row) in self.w.iter().enumerate() {
            dictionary.row_mut(k).copy_from_slice(&row.map(stored));
        }
        dictionary.settle();
        dictionary
    }

    /// Every H in place, the sites of `masks` on.
    pub(super) fn activations(&self, masks: [usize; 2]) -> Activations {
        let mut activations = Activations::new(self.components(), 2);
        for t in 0..2 {
            for k in 0..self.components() {
                activations.set(k, t, Some(stored(self.h[t][k])));
                if masks[t] >> k & 1 == 0 {
                    activations.set(k, t, None);
                }
            }
        }
        activations
    }

    /// log p(x_t | W, h_t, s_t) without the factorials, for the values as they are stored.
    pub(super) fn log_likelihood(&self, t: usize, mask: usize) -> f64 {
        let on = (0..self.components()).filter(|k| mask >> k & 1 == 1);
        let mut rates = [0.0; 3];
        for k in on {
            for f in 0..3 {
                rates[f] += f64::from(stored(self.w[k][f])) * f64::from(stored(self.h[t][k]));
            }
        }
        let term = |f: usize| if self.x[t][f] > 0.0 { self.x[t][f] * rates[f].ln() } else { 0.0 } - rates[f];
        (0..3).filter(|&f| !self.x[t][f].is_nan()).map(term).sum()
    }

    /// p(s_t | x_t, W, h_t, pi) of every state.
    pub(super) fn column_distribution(&self, t: usize) -> Vec<f64> {
        normalised((0..1 << self.components()).map(|mask| {
            let odds = (0..self.components()).filter(|k| mask >> k & 1 == 1).map(|k| self.logit[k]);
            odds.sum::<f64>() + self.log_likelihood(t, mask)
        }))
    }
}

/// Probabilities from their logarithms up to a constant.
pub(super) fn normalised(logs: impl Iterator<Item = f64>) -> Vec<f64> {
    let logs: Vec<f64> = logs.collect();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logs.iter().map(|log| (log - largest).exp()).sum();
    logs.iter().map(|log| (log - largest).exp() / total).collect()
}

/// Checks a chain of states against their distribution, every state by itself and in total variation. The standard
/// error is that of batch means, and never below that of independent draws: a state too rare for its batches to tell
/// has no other. A chain too slow for its length would make the total variation a matter of luck, and is refused.
pub(super) fn compare(name: &str, visited: &[u16], distribution: &[f64]) {
    let (mut worst, mut variation, mut chance) = (0.0f64, 0.0, 0.0);
    let mut indicator = vec![0.0; visited.len()];
    for (state, &p) in distribution.iter().enumerate() {
        for (out, &at) in indicator.iter_mut().zip(visited) {
            *out = f64::from(u8::from(usize::from(at) == state));
        }
        let (frequency, error) = batch_means(&indicator, BATCHES);
        if p == 0.0 {
            assert_eq!(frequency, 0.0, "{name}: state {state:b} is impossible");
            continue;
        }
        let error = error.max((p * (1.0 - p) / visited.len() as f64).sqrt());
        let z = (frequency - p) / error;
        worst = worst.max(z.abs());
        variation += 0.5 * (frequency - p).abs();
        // The mean of |N(0, error)|.
        chance += 0.5 * error * core::f64::consts::FRAC_2_PI.sqrt();
        assert!(z.abs() < 4.0, "{name}: state {state:b} has {frequency} for {p}, z {z:.2}");
    }
    println!("{name}: max |z| {worst:.2}, total variation {variation:.5}, by chance {chance:.5}");
    assert!(chance < 0.005, "{name}: the chain is too slow to judge");
    assert!(variation < 0.01, "{name}: total variation {variation}");
}

/// Runs the sweep and compares both columns.
fn check(name: &str, fixed: &Fixed, simd: Simd, seed: u64) {
    let (counts, dictionary) = (fixed.counts(), fixed.dictionary());
    let odds = Odds::new(fixed.logit.clone());
    let everything = (1 << fixed.components()) - 1;
    let mut activations = fixed.activations([everything; 2]);
    let mut visited = [Vec::new(), Vec::new()];
    let mut scratch = Scratch::default();
    for number in 0..SWEEPS {
        let job = Sweep {
            counts: &counts,
            dictionary: &dictionary,
            odds: &odds,
            proposal: &Known,
            key: Key::new(seed),
            number,
        };
        let (on, values) = activations.columns_mut(0, 2);
        sweep(simd, &job, 0, on, values, &mut scratch);
        visited[0].push(on[0]);
        visited[1].push(on[1]);
    }
    for t in 0..2 {
        let distribution = fixed.column_distribution(t);
        let empty = fixed.x[t].iter().all(|&x| x.is_nan() || x == 0.0);
        assert_eq!(distribution[0] > 0.0, empty, "only a column without counts may be all off");
        compare(&format!("{name}, column {t}"), &visited[t], &distribution);
    }
}

/// A random problem; a positive `logit` makes components likely.
pub(super) fn random_problem(components: usize, logit: f64, x: [[f64; 3]; 2], seed: u64) -> Fixed {
    let mut stream = Key::new(seed).stream(Site::Synthesis, 0, 0, 0);
    Fixed {
        w: (0..components).map(|_| [0; 3].map(|_| stream.gamma(1.0))).collect(),
        h: [0; 2].map(|_| (0..components).map(|_| stream.gamma(2.0) / 2.0).collect()),
        logit: (0..components).map(|_| logit + stream.normal()).collect(),
        x,
    }
}

#[test]
fn sweep_visits_every_mask_of_a_column_as_often_as_enumeration_says() {
    let x = [[3.0, 1.0, 2.0], [0.0, 1.0, 0.0]];
    for (i, simd) in [Simd::Avx512, Simd::Avx2, Simd::Plain].into_iter().enumerate() {
        let seed = i as u64;
        check(&format!("K = 3, {simd:?}"), &random_problem(3, 1.0, x, seed), simd, seed);
        check(&format!("K = 4, {simd:?}"), &random_problem(4, -1.0, x, 10 + seed), simd, seed);
    }
    let many = random_problem(4, 0.0, [[30.0, 5.0, 0.0], [9.0, 14.0, 8.0]], 20);
    check("K = 4, large counts", &many, Simd::Auto, 3);
}

#[test]
fn sweep_may_leave_only_a_column_without_counts_all_off() {
    let empty = [[2.0, 0.0, 1.0], [0.0; 3]];
    check("K = 3, no counts", &random_problem(3, 0.0, empty, 30), Simd::Auto, 4);
    check("K = 4, no counts", &random_problem(4, -0.5, empty, 31), Simd::Auto, 5);
    // One positive entry of six: swept by the positive entries alone.
    let lone = random_problem(4, -1.0, [[0.0, 2.0, 0.0], [0.0; 3]], 32);
    assert!(compact(&lone.counts()));
    check("K = 4, one entry", &lone, Simd::Auto, 6);
    let none = random_problem(3, -0.5, [[0.0; 3]; 2], 33);
    check("K = 3, nothing at all", &none, Simd::Auto, 7);
}

#[test]
fn sweep_leaves_missing_entries_out_of_the_likelihood() {
    let x = [[3.0, f64::NAN, 2.0], [f64::NAN, f64::NAN, 1.0]];
    for (i, simd) in [Simd::Auto, Simd::Plain].into_iter().enumerate() {
        let seed = i as u64;
        check(&format!("missing, {simd:?}"), &random_problem(4, 0.0, x, 80 + seed), simd, 80 + seed);
    }
    let lone = random_problem(4, -1.0, [[f64::NAN, 2.0, 0.0], [f64::NAN; 3]], 82);
    assert!(compact(&lone.counts()));
    check("missing, one entry", &lone, Simd::Auto, 82);
}

#[test]
fn sweep_is_exact_when_entries_of_w_are_at_the_floor() {
    // Components 0 and 1 need each other, 2 does it alone; 3 explains nothing and is on for its prior alone.
    let floored = |x| Fixed {
        w: vec![[1.3, 0.0, 0.4], [0.0, 0.7, 0.0], [0.9, 0.4, 0.6], [0.0, 0.0, 0.0]],
        h: [vec![1.1, 0.8, 0.7, 1.0], vec![0.4, 1.5, 1.2, 2.0]],
        logit: vec![0.3, -0.2, -0.5, 0.8],
        x,
    };
    check("floor", &floored([[2.0, 1.0, 0.0], [0.0, 2.0, 1.0]]), Simd::Auto, 8);
    check("floor, plain instructions", &floored([[2.0, 1.0, 0.0], [0.0, 2.0, 1.0]]), Simd::Plain, 9);
    check("floor, no counts", &floored([[1.0, 0.0, 0.0], [0.0; 3]]), Simd::Auto, 10);
}

/// p(S | X, W, H) of all masks of both columns with pi summed out; column 1 is above column 0 in the bits.
fn matrix_distribution(fixed: &Fixed, alpha: f64, beta: f64) -> Vec<f64> {
    let components = fixed.components();
    normalised((0..1usize << (2 * components)).map(|state| {
        let masks = [state & ((1 << components) - 1), state >> components];
        let pi: f64 = (0..components)
            .map(|k| masks.iter().filter(|&mask| mask >> k & 1 == 1).count() as f64)
            .map(|usage| ln_beta(alpha + usage, beta + 2.0 - usage))
            .sum();
        pi + fixed.log_likelihood(0, masks[0]) + fixed.log_likelihood(1, masks[1])
    }))
}

#[test]
fn sweeps_and_draws_of_pi_together_sample_the_mask_with_pi_summed_out() {
    let (alpha, beta) = (1.0, 2.0);
    let data = [[[3.0, 1.0, 2.0], [0.0, 1.0, 0.0]], [[2.0, 0.0, 1.0], [0.0; 3]]];
    for (seed, x) in data.into_iter().enumerate() {
        let fixed = random_problem(3, 0.0, x, 40 + seed as u64);
        let (counts, dictionary) = (fixed.counts(), fixed.dictionary());
        let key = Key::new(50 + seed as u64);
        let mut odds = Odds::new(vec![0.0; 3]);
        let mut activations = fixed.activations([0b111; 2]);
        let mut scratch = Scratch::default();
        let mut visited = Vec::new();
        for number in 0..SWEEPS {
            let job = Sweep {
                counts: &counts,
                dictionary: &dictionary,
                odds: &odds,
                proposal: &Known,
                key,
                number,
            };
            let (on, values) = activations.columns_mut(0, 2);
            sweep(Simd::Auto, &job, 0, on, values, &mut scratch);
            visited.push(on[1] << 3 | on[0]);
            let usage = activations.usage();
            odds.fill(|k| {
                let on = f64::from(usage[k]);
                key.stream(Site::Inclusion, number, 0, k as u32).logit_beta(alpha + on, beta + 2.0 - on)
            });
        }
        compare("pi summed out", &visited, &matrix_distribution(&fixed, alpha, beta));
    }
}

/// Shapes of 1e9 pin W and H to their prior mean within 3e-5, and leave S and pi to the engine as it is.
#[test]
fn gibbs_with_pinned_factors_samples_the_enumerated_masks() {
    let (w, h) = (0.8, 0.9);
    let prior =
        Prior { a: w * 1e9, b: 1e9, c: h * 1e9, d: 1e9, a0: 3.0, b0: 3.0, components: 3, ..Prior::default() };
    let prior = prior.check().unwrap();
    let data = [[[2.0, 1.0, 0.0], [1.0, 0.0, 3.0]], [[0.0, 1.0, 0.0], [0.0; 3]]];
    for (seed, x) in data.into_iter().enumerate() {
        let fixed = Fixed { w: vec![[w; 3]; 3], h: [vec![h; 3], vec![h; 3]], logit: vec![0.0; 3], x };
        let counts = fixed.counts();
        let (engine, key, workers) = (Gibbs::default(), Key::new(60 + seed as u64), Workers::serial());
        let mut state = engine.init(&counts, &prior, key);
        let mut visited = Vec::new();
        let mut pi = Vec::new();
        for i in 0..2 * SWEEPS + 100 {
            engine.step(&mut state, &Batch::all(&counts), &prior, key, &workers).unwrap();
            if i >= 100 {
                let on = [0, 1].map(|t| state.activations.column(t).on[0]);
                visited.push(on[1] << 3 | on[0]);
                pi.push(inclusion(state.odds.logit()[0]));
            }
        }
        let distribution = matrix_distribution(&fixed, prior.pi_on(), prior.pi_off());
        compare("pinned factors", &visited, &distribution);
        // E pi_0 = E (alpha + m_0) / (alpha + beta + T).
        let exact: f64 = (0..64usize)
            .map(|s| distribution[s] * (prior.pi_on() + (s & 1) as f64 + (s >> 3 & 1) as f64))
            .sum::<f64>()
            / (prior.pi_on() + prior.pi_off() + 2.0);
        let (mean, error) = batch_means(&pi, BATCHES);
        println!("pinned factors: pi_0 {mean:.5} for {exact:.5}, z {:.2}", (mean - exact) / error);
        assert!((mean - exact).abs() < 4.0 * error);
    }
}
