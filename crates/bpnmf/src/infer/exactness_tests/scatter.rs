//! Counts that scatter: the sampler against its prior, against enumeration and against itself, given frozen dispersions.

use super::enumeration::{Fixed, compare, normalised, random_problem};
use super::geweke::{self, FUNCTIONALS, Joint};
use super::{
    FEATURES, OBSERVATIONS, compressed, dense_values, inclusion, matrix, prior_draw, rate, sbc, tiny_prior,
    without_some,
};
use crate::counts::{Counts, Unexposed};
use crate::infer::local::Allocation;
use crate::infer::mask::{Known, Odds, Scratch, Sweep, compact, sweep};
use crate::infer::scatter::{Place, Scatter};
use crate::infer::{Batch, Engine, Gibbs, Info, Init, Ssmf, State};
use crate::kernel::Simd;
use crate::noise::Noise;
use crate::prior::Prior;
use crate::random::{Key, Site, Stream};
use crate::special::ln_gamma;
use crate::statistics::Sums;
use crate::workers::Workers;

const ALPHA: f64 = 2.0;

/// The dispersion of an entry of the small problems; the first column and one more entry are Poisson.
fn dispersion(f: usize, t: usize) -> f64 {
    [[0.0, 0.4, 1.5, 6.0], [0.0, 0.1, 3.0, 0.8], [0.0, 0.0, 0.3, 2.0]][f][t]
}

/// Dispersions e(f, t) frozen for counts with these missing entries.
pub(super) fn frozen(data: &Counts, e: impl Fn(usize, usize) -> f64 + Sync + Send) -> Scatter {
    let mut scatter = Scatter::new(Noise::Scattered { alpha: ALPHA }).unwrap();
    scatter.freeze_at(data, &Workers::serial(), |t, rates| {
        rates.iter_mut().enumerate().for_each(|(f, rate)| *rate = ALPHA * e(f, t));
    });
    scatter
}

/// omega.
pub(super) fn exposure(e: f64) -> f64 {
    if e == 0.0 { 1.0 } else { e.ln_1p() / e }
}

/// log p(x) for a count with the rate lambda and the dispersion e, 0 for a Poisson count; without log x!.
fn ln_probability(x: f64, lambda: f64, e: f64) -> f64 {
    if x == 0.0 {
        -exposure(e) * lambda
    } else if lambda == 0.0 {
        f64::NEG_INFINITY
    } else if e == 0.0 {
        x * lambda.ln() - lambda
    } else {
        let r = lambda / e;
        ln_gamma(r + x) - ln_gamma(r) + x * (e / (1.0 + e)).ln() - r * (1.0 + e).ln()
    }
}

/// X of the tiny model: a Poisson count whose rate is gamma distributed, with shape lambda / e and mean lambda.
fn scattered_counts(state: &State, stream: &mut Stream) -> Counts {
    let mut values = Vec::new();
    for t in 0..OBSERVATIONS {
        for f in 0..FEATURES {
            let (lambda, e) = (rate(state, f, t), dispersion(f, t));
            let scattered = if e > 0.0 && lambda > 0.0 { stream.gamma(lambda / e) * e } else { lambda };
            values.push(stream.poisson(scattered));
        }
    }
    Counts::from_dense(FEATURES, OBSERVATIONS, values).unwrap()
}

/// The functionals of the Poisson model; two of them have another expectation.
fn expectations() -> [(&'static str, f64); FUNCTIONALS] {
    let places = || (0..FEATURES).flat_map(|f| (0..OBSERVATIONS).map(move |t| dispersion(f, t)));
    let entries = (FEATURES * OBSERVATIONS) as f64;
    // E exp(- omega W H S) = 2/3 + 1/3 E (1 + omega W)^-2, by the trapezoidal rule.
    let silent = |e: f64| {
        let step = 1e-3;
        let density = |w: f64| w * (-w).exp() / (1.0 + exposure(e) * w).powi(2);
        let mean = (1..60_000).map(|i| step * density(step * f64::from(i))).sum::<f64>();
        (2.0 / 3.0 + mean / 3.0).powi(3)
    };
    geweke::expectations().map(|(name, exact)| match name {
        "mean X(X-1)" => (name, exact + 4.0 * places().sum::<f64>() / entries),
        "share of X = 0" => (name, places().map(silent).sum::<f64>() / entries),
        _ => (name, exact),
    })
}

/// A step that is wrong.
type WrongStep = fn(&Gibbs, &mut Scatter, &mut State, &Counts, Key, &Workers);

/// z of all functionals, for the engine or for a step that is wrong.
fn scores(
    name: &str,
    missing: [&[u32]; OBSERVATIONS],
    wrong: Option<WrongStep>,
    draws: usize,
    seed: u64,
) -> Vec<(&'static str, f64)> {
    let (prior, workers) = (tiny_prior(), Workers::serial());
    let engine = Gibbs { burn_in: 0, ..Gibbs::default() };
    let start = prior_draw(&prior, &mut Key::new(seed).stream(Site::Init, 0, 0, 0));
    let mut scatter = None;
    let step = |state: &mut State, seen: &Counts, key: Key| {
        let mut now = scatter.take().unwrap_or_else(|| frozen(seen, dispersion));
        match wrong {
            Some(step) => step(&engine, &mut now, state, seen, key, &workers),
            None => {
                state.scatter = Some(now);
                engine.step(state, &Batch::all(seen), &prior, key, &workers).unwrap();
                now = state.scatter.take().unwrap();
            }
        }
        scatter = Some(now);
    };
    Joint { name, missing, draws, seed }.scores(expectations(), start, step, scattered_counts)
}

const NONE: [&[u32]; OBSERVATIONS] = [&[]; OBSERVATIONS];
const SOME: [&[u32]; OBSERVATIONS] = [&[0], &[], &[0, 2], &[1]];

#[test]
fn gibbs_keeps_the_prior_of_everything_when_counts_scatter() {
    for (missing, seed) in [(NONE, 110), (SOME, 111)] {
        for (name, z) in scores("scattered", missing, None, 150_000, seed) {
            assert!(z.abs() < 4.0, "{name}: z {z}");
        }
    }
}

fn redraw(scatter: &mut Scatter, state: &State, seen: &Counts, key: Key, workers: &Workers) {
    let place = Place { key, iteration: state.iteration, allocation: Allocation::Sampled };
    scatter.redraw(seen, &state.dictionary, &state.activations, place, workers);
}

/// What the test above is worth: L is drawn after the sweep, W and H, for the next step, when X is another. (With X as it was
/// this would be slow but right: L would be a part of the state.)
fn with_l_of_the_step_before(
    engine: &Gibbs,
    scatter: &mut Scatter,
    state: &mut State,
    seen: &Counts,
    key: Key,
    workers: &Workers,
) {
    if scatter.latent().is_none() {
        redraw(scatter, state, seen, key, workers);
    }
    let latent = scatter.latent().unwrap().clone();
    engine.step_given(&latent, None, state, seen, &tiny_prior(), key, workers);
    redraw(scatter, state, seen, key, workers);
}

/// L is right but every entry has its full exposure.
fn without_exposures(
    engine: &Gibbs,
    scatter: &mut Scatter,
    state: &mut State,
    seen: &Counts,
    key: Key,
    workers: &Workers,
) {
    redraw(scatter, state, seen, key, workers);
    let latent = scatter.latent().unwrap().clone().missing_like(seen);
    engine.step_given(&latent, None, state, seen, &tiny_prior(), key, workers);
}

#[test]
fn steps_that_draw_latent_counts_too_late_or_forget_exposures_do_not_keep_the_prior() {
    let wrong: [(&str, WrongStep); 2] =
        [("L too late", with_l_of_the_step_before), ("no exposures", without_exposures)];
    for (name, step) in wrong {
        let worst = scores(name, NONE, Some(step), 6_000, 112).iter().fold(0.0, |z: f64, s| z.max(s.1.abs()));
        assert!(worst > 10.0, "{name}: {worst}");
    }
}

#[test]
fn gibbs_ranks_the_truth_uniformly_when_counts_scatter() {
    let engine = Gibbs { burn_in: 0, ..Gibbs::default() };
    let some = Counts::from_dense(FEATURES, OBSERVATIONS, vec![1.0; FEATURES * OBSERVATIONS]).unwrap();
    let scatter = frozen(&some, dispersion);
    let tails = sbc::tails(&engine, Some(&scatter), scattered_counts, (2000, 40), 210);
    let least = tails.into_iter().fold(1.0, f64::min);
    assert!(least * sbc::NAMES.len() as f64 > 1e-3, "least p {least:e}");
}

/// Dispersions of the enumerated problems.
fn of_two_columns(f: usize, t: usize) -> f64 {
    [[0.5, 4.0], [0.0, 1.0], [2.0, 0.3]][f][t]
}

/// log p(x_t) of a mask.
fn log_likelihood(fixed: &Fixed, t: usize, mask: usize) -> f64 {
    let part = |k: usize, f: usize| f64::from(fixed.w[k][f] as f32) * f64::from(fixed.h[t][k] as f32);
    let on = |f: usize| (0..fixed.components()).filter(|k| mask >> k & 1 == 1).map(move |k| part(k, f));
    let seen = (0..3).filter(|&f| !fixed.x[t][f].is_nan());
    seen.map(|f| ln_probability(fixed.x[t][f], on(f).sum(), of_two_columns(f, t))).sum()
}

/// Draws of L and sweeps over the mask in turn, W and H fixed, against p(S | X) with L summed out.
fn check(name: &str, fixed: &Fixed, data: &Counts, simd: Simd, seed: u64) {
    const SWEEPS: u32 = 150_000;
    let (dictionary, odds) = (fixed.dictionary(), Odds::new(fixed.logit.clone()));
    let mut activations = fixed.activations([(1 << fixed.components()) - 1; 2]);
    let mut scatter = frozen(data, of_two_columns);
    let (mut scratch, mut visited) = (Scratch::default(), [Vec::new(), Vec::new()]);
    let (key, workers) = (Key::new(seed), Workers::serial().with_simd(simd));
    for number in 0..SWEEPS {
        let place = Place { key, iteration: number, allocation: Allocation::Sampled };
        scatter.redraw(data, &dictionary, &activations, place, &workers);
        let counts = scatter.latent().unwrap();
        let job = Sweep { counts, dictionary: &dictionary, odds: &odds, proposal: &Known, key, number };
        let (on, values) = activations.columns_mut(0, 2);
        sweep(simd, &job, 0, on, values, &mut scratch);
        visited[0].push(on[0]);
        visited[1].push(on[1]);
    }
    for t in 0..2 {
        let masks = 0..1 << fixed.components();
        let distribution = normalised(masks.map(|mask: usize| {
            let odds = (0..fixed.components()).filter(|k| mask >> k & 1 == 1).map(|k| fixed.logit[k]);
            odds.sum::<f64>() + log_likelihood(fixed, t, mask)
        }));
        compare(&format!("{name}, column {t}"), &visited[t], &distribution);
    }
}

#[test]
fn sweeps_and_draws_of_latent_counts_visit_masks_as_often_as_enumeration_says() {
    let nan = f64::NAN;
    let full = random_problem(3, 0.5, [[3.0, 1.0, 2.0], [0.0, 9.0, 1.0]], 120);
    check("scattered, dense", &full, &full.counts(), Simd::Auto, 120);
    check("scattered, compressed", &full, &compressed(&full.counts()), Simd::Plain, 121);
    let partial = random_problem(4, 0.0, [[nan, 7.0, 2.0], [5.0, nan, 0.0]], 122);
    check("scattered, missing", &partial, &partial.counts(), Simd::Avx2, 122);
    let sparse = random_problem(3, 0.0, [[0.0, 0.0, 4.0], [nan, 0.0, 0.0]], 123);
    assert!(compact(&sparse.counts()));
    check("scattered, one entry", &sparse, &compressed(&sparse.counts()), Simd::Auto, 123);
}

/// Shapes of 1e9 pin W and H to their prior mean within 3e-5, and leave L, S and pi to the engine as it is.
#[test]
fn gibbs_with_pinned_factors_samples_the_masks_of_scattered_counts() {
    let (w, h) = (0.8, 0.9);
    let prior =
        Prior { a: w * 1e9, b: 1e9, c: h * 1e9, d: 1e9, a0: 3.0, b0: 3.0, components: 3, ..Prior::default() };
    let prior = prior.check().unwrap();
    let x = [[2.0, 4.0, 0.0], [1.0, f64::NAN, 3.0]];
    let fixed = Fixed { w: vec![[w; 3]; 3], h: [vec![h; 3], vec![h; 3]], logit: vec![0.0; 3], x };
    let (counts, key, workers) = (fixed.counts(), Key::new(130), Workers::serial());
    let engine = Gibbs { burn_in: 0, ..Gibbs::default() };
    let mut state = engine.init(&counts, &prior, key);
    state.scatter = Some(frozen(&counts, of_two_columns));
    let (mut visited, mut pi) = (Vec::new(), Vec::new());
    for i in 0..500_100 {
        engine.step(&mut state, &Batch::all(&counts), &prior, key, &workers).unwrap();
        if i >= 100 {
            let on = [0, 1].map(|t| state.activations.column(t).on[0]);
            visited.push(on[1] << 3 | on[0]);
            pi.push(inclusion(state.odds.logit()[0]));
        }
    }
    let distribution = normalised((0..64usize).map(|masks| {
        let usage = (0..3).map(|k| (masks >> k & 1) as f64 + (masks >> (k + 3) & 1) as f64);
        let pi = usage.map(|on| crate::special::ln_beta(prior.pi_on() + on, prior.pi_off() + 2.0 - on));
        pi.sum::<f64>() + log_likelihood(&fixed, 0, masks & 7) + log_likelihood(&fixed, 1, masks >> 3)
    }));
    compare("scattered, pinned factors", &visited, &distribution);
}

fn step(
    engine: &dyn Engine,
    state: &mut State,
    counts: &Counts,
    components: usize,
    seed: u64,
    workers: &Workers,
) -> Info {
    let prior = Prior { components, ..Prior::default() }.check().unwrap();
    engine.step(state, &Batch::all(counts), &prior, Key::new(seed), workers).unwrap()
}

fn init(engine: &dyn Engine, counts: &Counts, components: usize, seed: u64) -> State {
    let prior = Prior { components, ..Prior::default() }.check().unwrap();
    engine.init(counts, &prior, Key::new(seed))
}

/// All engines.
fn engines(noise: Noise) -> [Box<dyn Engine>; 4] {
    let init = Init::Scaled;
    [
        Box::new(Gibbs { burn_in: 3, init, expected: false, noise, jumps: None }),
        Box::new(Gibbs { burn_in: 3, init, expected: true, noise, jumps: None }),
        Box::new(Ssmf { init, noise, ..Ssmf::default() }),
        Box::new(Ssmf { noise, sweeps: 2, prune: Some(0.05), prune_from: 4, ..Ssmf::default() }),
    ]
}

#[test]
fn an_alpha_without_scatter_gives_the_poisson_chain_bit_for_bit() {
    for counts in [matrix(20, 40, 0.6, 30.0, 140), without_some(&matrix(20, 40, 0.1, 30.0, 141), 0.2, 142)] {
        let workers = Workers::serial();
        let little = Noise::Scattered { alpha: 1e15 };
        for (poisson, scattered) in engines(Noise::Poisson).iter().zip(&engines(little)) {
            let [mut one, mut other] =
                [poisson, scattered].map(|engine| init(engine.as_ref(), &counts, 12, 143));
            for _ in 0..12 {
                let info = step(poisson.as_ref(), &mut one, &counts, 12, 143, &workers);
                assert_eq!(step(scattered.as_ref(), &mut other, &counts, 12, 143, &workers), info);
            }
            assert_eq!(other.noise(), little);
            assert!(State { scatter: None, ..other } == one, "{}", poisson.name());
        }
    }
}

#[test]
fn storage_instructions_threads_and_blocks_do_not_change_a_bit_when_counts_scatter() {
    let dense = matrix(37, 140, 0.6, 200.0, 150);
    let sparse = matrix(37, 140, 0.12, 200.0, 151);
    for counts in [&dense, &sparse, &without_some(&dense, 0.2, 152), &without_some(&sparse, 0.2, 153)] {
        for engine in engines(Noise::Scattered { alpha: 30.0 }) {
            let run = |counts: &Counts, workers: &Workers| {
                let mut state = init(engine.as_ref(), counts, 20, 154);
                let infos = [(); 8].map(|()| step(engine.as_ref(), &mut state, counts, 20, 154, workers));
                (state, infos.map(|info| info.log_joint))
            };
            let other = compressed(counts);
            let ours = run(counts, &Workers::serial());
            assert!(ours.0.noise() == Noise::Scattered { alpha: 30.0 });
            for (simd, threads, block) in
                [(Simd::Avx512, 2, Some(7)), (Simd::Avx2, 1, None), (Simd::Plain, 3, Some(64))]
            {
                let workers = Workers::new(threads).unwrap().with_simd(simd);
                let workers = match block {
                    Some(block) => workers.with_block(block),
                    None => workers,
                };
                for counts in [counts, &other] {
                    assert!(
                        run(counts, &workers) == ours,
                        "{simd:?}, {}, {}",
                        engine.name(),
                        counts.is_sparse()
                    );
                }
            }
        }
    }
}

/// What is added to the log-likelihood of L makes it that of X, entry by entry; L is at least 1 where X is, at most X.
#[test]
fn the_log_likelihood_is_that_of_negative_binomial_counts() {
    let dense = matrix(23, 30, 0.5, 40.0, 160);
    for data in [dense.clone(), compressed(&dense), without_some(&dense, 0.2, 161)] {
        let engine =
            Gibbs { init: Init::Scaled, noise: Noise::Scattered { alpha: 20.0 }, ..Gibbs::default() };
        let workers = Workers::new(2).unwrap();
        let mut state = init(&engine, &data, 8, 162);
        step(&engine, &mut state, &data, 8, 162, &workers);
        let mut scatter = state.scatter.take().unwrap();
        scatter.freeze(&data, &state.dictionary, &state.activations, &workers);
        // Frozen at rates that have changed since.
        for row in state.dictionary.rows_mut() {
            row.iter_mut().for_each(|tile| tile.0.iter_mut().for_each(|w| *w *= 1.3));
        }
        state.dictionary.settle();
        redraw(&mut scatter, &state, &data, Key::new(163), &workers);
        let latent = scatter.latent().unwrap();
        let (x, l) = (dense_values(&data), dense_values(latent));
        let (mut exact, mut scattered) = (0.0, 0);
        for t in 0..30 {
            let Unexposed { rows, lost } = latent.unexposed(t);
            for f in (0..23).filter(|f| !data.missing(t).contains(&(*f as u32))) {
                let (at, lambda) = (t * 23 + f, rate(&state, f, t));
                let e = lambda / 1.3 / 20.0;
                let listed = rows.iter().position(|row| *row as usize == f);
                assert_eq!(listed.is_some(), e >= 0.02, "{e}");
                assert!(l[at] <= x[at] && (l[at] > 0.0) == (x[at] > 0.0));
                if let Some(listed) = listed {
                    assert!((1.0 - lost[listed] - exposure(e)).abs() < 1e-6);
                    let poisson = if x[at] > 0.0 { l[at] * lambda.ln() } else { 0.0 } - exposure(e) * lambda;
                    exact += ln_probability(x[at], lambda, e) - poisson;
                    scattered += 1;
                } else {
                    assert_eq!(l[at], x[at]);
                }
            }
        }
        assert!(scattered > 100);
        let (w, h) = (&state.dictionary, &state.activations);
        let ours = {
            let mut sums = Sums::default();
            scatter.put_right(&data, w, h, 0..data.observations(), &mut sums, &mut Vec::new(), &workers);
            sums.log_likelihood
        };
        assert!((ours / exact - 1.0).abs() < 1e-5, "{ours} {exact}");
    }
}

#[test]
fn dispersions_follow_the_rates_in_the_burn_in_and_are_frozen_after_it() {
    let counts = matrix(20, 30, 0.7, 60.0, 170);
    let noise = Noise::Scattered { alpha: 10.0 };
    let engine = Gibbs { burn_in: 12, init: Init::Scaled, noise, ..Gibbs::default() };
    let mut state = init(&engine, &counts, 8, 171);
    let mut changes = Vec::new();
    for i in 0..25 {
        let before = state.scatter.clone();
        step(&engine, &mut state, &counts, 8, 171, &Workers::serial());
        if state.scatter != before {
            changes.push(i);
        }
    }
    assert_eq!(changes, [0, 5, 10]);
}
