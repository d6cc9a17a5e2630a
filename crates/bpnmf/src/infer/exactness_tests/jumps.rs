//! Moves between numbers of components: against enumeration of all masks with W and H integrated out, against the prior, by
//! simulation-based calibration of the number itself; and that a wrong ratio is caught.

use super::geweke::{self, FUNCTIONALS};
use super::scatter::{exposure, frozen};
use super::{OBSERVATIONS, batch_means, compressed, matrix, sbc, without_some};
use crate::counts::Counts;
use crate::infer::jumps::{Neglected, neglect};
use crate::infer::{Batch, Engine, Gibbs, Init, Jumped, Jumps};
use crate::kernel::Simd;
use crate::noise::Noise;
use crate::prior::{CheckedPrior, ComponentsPrior, Prior};
use crate::random::Key;
use crate::special::{ln_beta, ln_gamma};
use crate::workers::Workers;
use std::collections::HashMap;

const JUMPS: Jumps = Jumps { levels: 4, every: 1 };

fn engine() -> Gibbs {
    Gibbs { burn_in: 0, jumps: Some(JUMPS), ..Gibbs::default() }
}

fn prior(components: usize, number: ComponentsPrior) -> CheckedPrior {
    Prior { a: 2.0, b: 1.0, c: 2.0, d: 1.0, a0: 2.0, b0: 1.5, components, number }.check().unwrap()
}

/// Counts so few that every way to give them out can be listed; two features.
struct Tiny {
    /// A column after the other; NaN where it is missing.
    x: Vec<[f64; 2]>,
    /// The dispersion of every entry, 0 for a Poisson count.
    e: Vec<[f64; 2]>,
}

impl Tiny {
    fn poisson(x: &[[f64; 2]]) -> Self {
        Self { x: x.to_vec(), e: vec![[0.0; 2]; x.len()] }
    }

    fn counts(&self) -> Counts {
        Counts::from_dense_with_missing(2, self.x.len(), self.x.concat()).unwrap()
    }

    fn exposure(&self, f: usize, t: usize) -> f64 {
        if self.x[t][f].is_nan() { 0.0 } else { exposure(self.e[t][f]) }
    }

    /// The probability of each number of used components given X.
    fn distribution(&self, prior: &CheckedPrior) -> Vec<f64> {
        let (slots, columns) = (prior.components(), self.x.len());
        let mut held = Held { tiny: self, prior, known: HashMap::new() };
        let mut of_number = vec![0.0; slots + 1];
        for mask in 0..1usize << (slots * columns) {
            let on: Vec<usize> = (0..slots).map(|k| mask >> (k * columns) & ((1 << columns) - 1)).collect();
            let ways = held.ways(&on, 0, &mut vec![vec![0; 2 * columns]; slots]);
            let used = on.iter().filter(|&&sites| sites > 0).count();
            of_number[used] += ways * mask_probability(prior, &on, columns as f64);
        }
        let total: f64 = of_number.iter().sum();
        of_number.iter().map(|p| p / total).collect()
    }
}

/// p(S), but for a constant, pi and the set of slots in the model summed out.
fn mask_probability(prior: &CheckedPrior, on: &[usize], columns: f64) -> f64 {
    let slots = on.len();
    let (alpha, beta) = match prior.number() {
        ComponentsPrior::BetaProcess => (prior.pi_on(), prior.pi_off()),
        _ => (prior.get().a0, prior.get().b0),
    };
    let of = |sites: usize| {
        let m = f64::from(sites.count_ones());
        (ln_beta(alpha + m, beta + columns - m) - ln_beta(alpha, beta)).exp()
    };
    if prior.number() == ComponentsPrior::BetaProcess {
        return on.iter().map(|&sites| of(sites)).product();
    }
    // Every set of slots that holds the used ones.
    let sets = 0..1usize << slots;
    let holds = |set: &usize| (0..slots).all(|k| on[k] == 0 || set >> k & 1 == 1);
    let probability = |set: usize| {
        let n = set.count_ones();
        let of_number = match prior.number() {
            ComponentsPrior::Poisson(mean) => mean.powi(n as i32) / (1..=n).map(f64::from).product::<f64>(),
            ComponentsPrior::Geometric(p) => (1.0 - p).powi(n as i32),
            _ => 1.0,
        };
        let choose: f64 = (0..n).map(|i| (slots as f64 - f64::from(i)) / f64::from(i + 1)).product();
        let masks: f64 = (0..slots).filter(|k| set >> k & 1 == 1).map(|k| of(on[k])).product();
        of_number / choose * masks
    };
    sets.filter(holds).map(probability).sum()
}

struct Held<'a> {
    tiny: &'a Tiny,
    prior: &'a CheckedPrior,
    /// The integral over W_k and H_k, by the mask of the component and the counts it holds.
    known: HashMap<(usize, Vec<u8>), f64>,
}

impl Held<'_> {
    /// The sum over all ways to give out the entries from `at` on: prod over entries of 1 / prod z!, times the integrals.
    fn ways(&mut self, on: &[usize], at: usize, held: &mut Vec<Vec<u8>>) -> f64 {
        let columns = self.tiny.x.len();
        if at == 2 * columns {
            return (0..on.len()).map(|k| self.integral(on[k], &held[k])).product();
        }
        let (f, t) = (at % 2, at / 2);
        let (x, e) = (self.tiny.x[t][f], self.tiny.e[t][f]);
        let x = if x.is_nan() { 0 } else { x as usize };
        if e == 0.0 || x == 0 {
            return self.give(on, at, 0, x, held);
        }
        // L of X: the unsigned Stirling numbers of the first kind.
        let mut stirling = vec![1.0];
        for n in 0..x {
            let next = |l: usize| {
                let new = if l > 0 { stirling[l - 1] } else { 0.0 };
                new + n as f64 * stirling.get(l).copied().unwrap_or(0.0)
            };
            stirling = (0..=n + 1).map(next).collect();
        }
        let factorial = |n: usize| ln_gamma(n as f64 + 1.0).exp();
        let p = (e / (1.0 + e)).powi(x as i32) / factorial(x);
        (1..=x)
            .map(|l| stirling[l] * e.powi(-(l as i32)) * p * factorial(l) * self.give(on, at, 0, l, held))
            .sum()
    }

    /// The same, `rest` counts of entry `at` left for the components from `k` on.
    fn give(&mut self, on: &[usize], at: usize, k: usize, rest: usize, held: &mut Vec<Vec<u8>>) -> f64 {
        if k == on.len() {
            return if rest == 0 { self.ways(on, at + 1, held) } else { 0.0 };
        }
        let most = if on[k] >> (at / 2) & 1 == 1 { rest } else { 0 };
        let (mut sum, mut factorial) = (0.0, 1.0);
        for z in 0..=most {
            factorial *= z.max(1) as f64;
            held[k][at] = z as u8;
            sum += self.give(on, at, k + 1, rest - z, held) / factorial;
        }
        held[k][at] = 0;
        sum
    }

    fn integral(&mut self, on: usize, z: &[u8]) -> f64 {
        if on == 0 {
            return 1.0;
        }
        if let Some(&known) = self.known.get(&(on, z.to_vec())) {
            return known;
        }
        let (tiny, prior) = (self.tiny, self.prior);
        let columns: Vec<usize> = (0..tiny.x.len()).filter(|t| on >> t & 1 == 1).collect();
        // By the trapezoidal rule in log h.
        const POINTS: usize = 48;
        let step = 16.0 / POINTS as f64;
        let mut sum = 0.0;
        for point in 0..POINTS.pow(columns.len() as u32) {
            let (mut rest, mut ln_density, mut exposed) = (point, 0.0, [0.0; 2]);
            for &t in &columns {
                let ln_h = (rest % POINTS) as f64 * step - 12.0;
                rest /= POINTS;
                let shape = prior.c() + f64::from(z[2 * t]) + f64::from(z[2 * t + 1]);
                ln_density +=
                    shape * ln_h - prior.d() * ln_h.exp() + prior.c() * prior.d().ln() - ln_gamma(prior.c());
                (0..2).for_each(|f| exposed[f] += tiny.exposure(f, t) * ln_h.exp());
            }
            for f in 0..2 {
                let z: f64 = columns.iter().map(|&t| f64::from(z[2 * t + f])).sum();
                ln_density += prior.a() * prior.b().ln() - ln_gamma(prior.a()) + ln_gamma(prior.a() + z)
                    - (prior.a() + z) * (prior.b() + exposed[f]).ln();
            }
            sum += ln_density.exp();
        }
        let integral = sum * step.powi(columns.len() as i32);
        self.known.insert((on, z.to_vec()), integral);
        integral
    }
}

/// The largest |z| of the frequencies of the numbers of used components and of births less deaths, and what was tried.
fn worst(name: &str, tiny: &Tiny, prior: &CheckedPrior, iterations: usize, seed: u64) -> (f64, Jumped) {
    let (counts, key, workers) = (tiny.counts(), Key::new(seed), Workers::serial());
    let engine = engine();
    let mut state = engine.init(&counts, prior, key);
    if tiny.e.concat().iter().any(|&e| e > 0.0) {
        state.scatter = Some(frozen(&counts, |f, t| tiny.e[t][f]));
    }
    let (mut numbers, mut jumped) = (Vec::new(), Jumped::default());
    for _ in 0..iterations {
        let info = engine.step(&mut state, &Batch::all(&counts), prior, key, &workers).unwrap();
        numbers.push(info.on_anywhere);
        jumped.add(&info.jumped);
    }
    let mut worst = 0.0f64;
    for (number, p) in tiny.distribution(prior).into_iter().enumerate() {
        let is: Vec<f64> = numbers.iter().map(|&n| f64::from(u8::from(n == number))).collect();
        let (frequency, error) = batch_means(&is, 100);
        let error = error.max((p * (1.0 - p) / iterations as f64).sqrt());
        let z = if error > 0.0 { (frequency - p) / error } else { 0.0 };
        println!("{name}, {}: {number} used {frequency:.4} for {p:.4}, z {z:+.2}", prior.number().name());
        assert!(p > 0.0 || frequency == 0.0);
        worst = worst.max(z.abs());
    }
    // In equilibrium a reversible move goes as often one way as the other. Sweeps alone can mend frequencies that a wrong
    // move would leave, but not this.
    let (births, deaths) = (f64::from(jumped.births_accepted), f64::from(jumped.deaths_accepted));
    let balance = (births - deaths) / (births + deaths).max(1.0).sqrt();
    println!("{name}: {jumped:?}, z {balance:+.2}");
    (worst.max(balance.abs()), jumped)
}

const PRIORS: [ComponentsPrior; 4] = [
    ComponentsPrior::BetaProcess,
    ComponentsPrior::Uniform,
    ComponentsPrior::Poisson(1.5),
    ComponentsPrior::Geometric(0.6),
];

fn problems() -> [(&'static str, Tiny, usize); 5] {
    let nan = f64::NAN;
    [
        ("two columns", Tiny::poisson(&[[3.0, 0.0], [0.0, 2.0]]), 3),
        ("three columns", Tiny::poisson(&[[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), 3),
        ("four slots", Tiny::poisson(&[[2.0, 0.0], [0.0, 1.0]]), 4),
        ("missing", Tiny::poisson(&[[2.0, nan], [nan, 2.0]]), 3),
        ("scattered", Tiny { x: vec![[3.0, 1.0], [nan, 2.0]], e: vec![[1.5, 0.0], [0.0, 0.6]] }, 3),
    ]
}

#[test]
fn jumps_visit_numbers_of_components_as_often_as_enumeration_says() {
    for (i, (name, tiny, slots)) in problems().iter().enumerate() {
        for (j, number) in PRIORS.into_iter().enumerate() {
            let (worst, jumped) =
                worst(name, tiny, &prior(*slots, number), 40_000, 700 + (10 * i + j) as u64);
            assert!(worst < 4.0, "{name}, {}: z {worst}", number.name());
            assert!(jumped.births_accepted > 100 && jumped.deaths_accepted > 100, "{name}: {jumped:?}");
        }
    }
}

/// What the test above is worth: a ratio that lacks one of its terms does not pass.
#[test]
fn a_ratio_that_lacks_a_term_does_not_visit_numbers_as_often_as_enumeration_says() {
    let (name, tiny, slots) = &problems()[0];
    for (term, number) in [
        (Neglected::Choice, ComponentsPrior::BetaProcess),
        (Neglected::Number, ComponentsPrior::Geometric(0.6)),
    ] {
        neglect(Some(term));
        let (worst, _) = worst(name, tiny, &prior(*slots, number), 40_000, 750);
        neglect(None);
        println!("without {term:?}: z {worst}");
        assert!(worst > 6.0, "{term:?}: z {worst}");
    }
}

#[test]
fn jumps_keep_the_prior_of_everything() {
    let missing: [&[u32]; OBSERVATIONS] = [&[0], &[], &[0, 2], &[]];
    for (missing, seed) in [([&[][..]; OBSERVATIONS], 760), (missing, 761)] {
        let scores = geweke::scores(&engine(), missing, 20_000, seed);
        assert_eq!(scores.len(), FUNCTIONALS);
        for (name, z) in scores {
            assert!(z.abs() < 4.0, "{name}: z {z}");
        }
    }
}

#[test]
fn jumps_rank_the_truth_uniformly() {
    let tails = sbc::tails(&engine(), None, super::counts_given, (2000, 8), 770);
    let least = tails.into_iter().fold(1.0, f64::min);
    assert!(least * sbc::NAMES.len() as f64 > 1e-3, "least p {least:e}");
}

#[test]
fn storage_instructions_threads_and_blocks_do_not_change_a_bit_of_a_jump() {
    let dense = matrix(20, 60, 0.6, 20.0, 780);
    let sparse = matrix(20, 60, 0.12, 20.0, 781);
    for counts in [&dense, &sparse, &without_some(&dense, 0.2, 782)] {
        for (noise, number) in [
            (Noise::Poisson, ComponentsPrior::BetaProcess),
            (Noise::Scattered { alpha: 30.0 }, ComponentsPrior::Uniform),
        ] {
            let prior = Prior { components: 9, number, ..Prior::default() }.check().unwrap();
            let jumps = Some(Jumps { levels: 3, every: 2 });
            let engine = Gibbs { burn_in: 3, init: Init::Scaled, noise, jumps, ..Gibbs::default() };
            let run = |counts: &Counts, workers: &Workers| {
                let key = Key::new(783);
                let mut state = engine.init(counts, &prior, key);
                let infos = [(); 30]
                    .map(|()| engine.step(&mut state, &Batch::all(counts), &prior, key, workers).unwrap());
                (state, infos.map(|info| (info.log_joint, info.jumped)))
            };
            let ours = run(counts, &Workers::serial());
            assert_eq!(ours.1.iter().map(|(_, jumped)| jumped.births + jumped.deaths).sum::<u32>(), 15);
            for (simd, threads, block) in [(Simd::Avx512, 2, 7), (Simd::Avx2, 1, 64), (Simd::Plain, 3, 16)] {
                let workers = Workers::new(threads).unwrap().with_simd(simd).with_block(block);
                for counts in [counts, &compressed(counts)] {
                    assert!(run(counts, &workers) == ours, "{simd:?}, {threads} threads");
                }
            }
        }
    }
}
