//! The mean field: its bound is a bound that coordinate ascent and extrapolation raise, its evidence is that of a plain twin,
//! and all of it has the same bits on any machine.

use super::hyper;
use super::model::{Model, Part};
use super::nmf::{Updates, mixture, nmf, updated};
use super::scatter;
use super::view::{Ratios, View};
use crate::counts::Counts;
use crate::kernel::{Simd, flat};
use crate::prior::Prior;
use crate::random::{Key, Site};
use crate::special::{digamma, ln_beta};
use crate::workers::Workers;

/// X = Poisson(W H), W and H ~ Gamma(0.5), with this mean count.
pub(crate) fn low_rank(features: usize, observations: usize, rank: usize, mean: f64, seed: u64) -> Counts {
    let key = Key::new(seed);
    let draw = |part: u32, n: usize| -> Vec<f64> {
        (0..n).map(|i| key.stream(Site::Synthesis, part, i as u32, 0).gamma(0.5)).collect()
    };
    let (w, h) = (draw(0, features * rank), draw(1, observations * rank));
    let rate = |f: usize, t: usize| (0..rank).map(|k| w[f * rank + k] * h[t * rank + k]).sum::<f64>();
    let places = || (0..observations).flat_map(|t| (0..features).map(move |f| (f, t)));
    let scale = mean * (features * observations) as f64 / places().map(|(f, t)| rate(f, t)).sum::<f64>();
    let draw = |(f, t): (usize, usize)| {
        key.stream(Site::Synthesis, 2, t as u32, f as u32).poisson(scale * rate(f, t))
    };
    Counts::from_dense(features, observations, places().map(draw).collect()).unwrap()
}

/// The same counts with this share of the entries missing, and all of the second row.
pub(crate) fn without_some(counts: &Counts, share: f64, seed: u64) -> Counts {
    let mut stream = Key::new(seed).stream(Site::Synthesis, 3, 0, 0);
    let (mut starts, mut rows) = (vec![0], Vec::new());
    for _ in 0..counts.observations() {
        rows.extend((0..counts.features() as u32).filter(|&f| stream.uniform() < share || f == 1));
        starts.push(rows.len());
    }
    counts.clone().with_missing(starts, rows).unwrap()
}

/// Workers with the best instructions of this machine, on so many threads.
pub(crate) fn workers(threads: usize) -> Workers {
    Workers::new(threads).unwrap()
}

/// A model with a sparse mask some steps of coordinate ascent after an NMF.
pub(crate) fn fitted<'a>(counts: &'a Counts, components: usize, workers: &Workers) -> (Model, View<'a>) {
    let (features, observations) = (counts.features(), counts.observations());
    let mut stream = Key::new(1).stream(Site::Init, 0, 0, 0);
    let mut w: Vec<f64> = (0..components * features).map(|_| 0.05 + stream.uniform()).collect();
    for row in w.chunks_mut(features) {
        let total: f64 = row.iter().sum();
        row.iter_mut().for_each(|w| *w /= total);
    }
    let view = View::new(counts);
    let updates = Updates { iterations: 20, held: 0, sharpness: 1.0 };
    let factors = updated(&view, w, &updates, workers.simd, workers);
    let (a, b, c, d) = (0.5, 0.4, 1.5, 1.2);
    let prior = Prior { a, b, c, d, components: 60, ..Prior::default() }.check().unwrap();
    let mut model = Model::empty(workers.simd, features, observations, prior);
    for (k, row) in factors.w.chunks(features).enumerate() {
        let explained: f64 = factors.h.iter().map(|h| h[k]).sum();
        model.push(row.iter().map(|w| a + w * explained), b + observations as f64);
        let sum = explained / observations as f64;
        for ((parts, h), column) in model.parts.iter_mut().zip(&factors.h).zip(&view.columns) {
            // A column without counts has one component, so that it has a share in the bound, too.
            if h[k] > 0.05 * column.total || (k == 0 && column.total == 0.0) {
                parts.push(Part::new(k, c + h[k], d + sum));
            }
        }
    }
    model.settle(workers);
    model.ascend(&view, 3, workers);
    (model, view)
}

/// Dense counts, sparse ones, both with entries missing, ones that need several blocks, and large ones.
pub(crate) fn kinds() -> Vec<(&'static str, Counts)> {
    let (dense, sparse) = (low_rank(37, 60, 4, 6.0, 1), low_rank(37, 60, 4, 0.3, 2));
    let large = low_rank(37, 60, 4, 1e6, 3);
    // One column of zeros, and one of which nothing was observed.
    let mut values: Vec<f64> = (0..60).flat_map(|t| View::new(&dense).columns[t].to_dense(37)).collect();
    values[5 * 37..6 * 37].fill(0.0);
    let zeros = Counts::from_dense(37, 60, values).unwrap();
    let rows: Vec<u32> = (0..37).collect();
    let starts = (0..=60).map(|t| if t > 8 { 37 } else { 0 }).collect();
    let unseen = zeros.clone().with_missing(starts, rows).unwrap();
    vec![
        ("dense with missing entries", without_some(&dense, 0.2, 1)),
        ("sparse with missing entries", without_some(&sparse, 0.2, 2)),
        ("dense", dense),
        ("sparse", sparse),
        ("of several blocks", low_rank(11, 2100, 3, 1.0, 4)),
        ("large", large),
        ("with a column of zeros", zeros),
        ("with a column of which nothing was observed", unseen),
    ]
}

/// KL(Gamma(shape, rate) || Gamma(a, b)).
fn kl(shape: f64, rate: f64, a: f64, b: f64) -> f64 {
    (shape - a) * digamma(shape) - libm::lgamma(shape)
        + libm::lgamma(a)
        + a * libm::log(rate / b)
        + shape * (b - rate) / rate
}

/// The bound and its correction, entry by entry in double precision.
///
/// For counts that scatter the weights are those of the model itself; the third number is what the likelihood of such counts
/// has more than its quadratic approximation in the bound.
fn plain_evidence(model: &Model, counts: &Counts) -> (f64, f64, f64) {
    let alpha = model.alpha;
    let (features, observations) = (counts.features(), counts.observations());
    let (a, b, c, d) = (model.prior.a(), model.prior.b(), model.prior.c(), model.prior.d());
    let log_mean = |shape: f64, rate: f64| libm::exp(digamma(shape)) / rate;
    let given_back = |prior: f64, once: f64, twice: f64, paid: f64| {
        f64::min(0.5 * libm::log((prior + once) / (prior + f64::min(twice, once))), paid)
    };
    let mut w = vec![(0.0, 0.0); model.components() * features];
    for k in 0..model.components() {
        for (f, (shape, rate)) in model.shapes(k).iter().zip(model.rates(k)).enumerate() {
            w[k * features + f] = (shape / rate, log_mean(*shape, rate));
        }
    }
    let (mut bound, mut correction, mut beyond) = (0.0, 0.0, 0.0);
    let mut twice_w = vec![0.0; w.len()];
    for (t, parts) in model.parts.iter().enumerate() {
        let mut x = vec![0.0; features];
        counts.column(t).positive().for_each(|(f, value)| x[f] = value);
        let compressed = 2 * x.iter().filter(|x| **x > 0.0).count() < features;
        let mut twice_h = vec![0.0; parts.len()];
        for f in (0..features).filter(|f| !counts.missing(t).contains(&(*f as u32))) {
            let share = |part: &Part| w[part.k * features + f].1 * log_mean(part.shape, part.rate);
            let field: f64 = parts.iter().map(share).sum();
            let mean = parts.iter().map(|part| w[part.k * features + f].0 * part.mean()).sum::<f64>();
            let weight = if compressed && x[f] == 0.0 && mean < 0.02 * alpha {
                1.0
            } else {
                1.0 / (1.0 + mean / alpha)
            };
            if weight < 1.0 {
                let gap = if x[f] > 0.0 { libm::log(mean) + weight * libm::log(field / mean) } else { 0.0 };
                let own = if x[f] > 0.0 { weight * x[f] * libm::log(field) } else { 0.0 };
                beyond += x[f] * gap - (alpha + x[f]) * libm::log1p(mean / alpha) - own + weight * mean;
            }
            bound -= weight * mean;
            x[f] *= weight;
            if x[f] > 0.0 {
                bound += x[f] * libm::log(field);
                for (part, twice_h) in parts.iter().zip(&mut twice_h) {
                    let squared = x[f] * (share(part) / field) * (share(part) / field);
                    *twice_h += squared;
                    twice_w[part.k * features + f] += squared;
                }
            }
        }
        for (part, twice) in parts.iter().zip(twice_h) {
            let paid = kl(part.shape, part.rate, c, d / model.size(t));
            bound -= paid;
            correction += given_back(c, part.shape - c, twice, paid);
        }
    }
    let (on, off) = (model.prior.pi_on(), model.prior.pi_off());
    for (k, m) in model.usage().into_iter().enumerate().filter(|(_, m)| *m > 0) {
        let (m, all) = (m as f64, observations as f64);
        bound += ln_beta(on + m, off + all - m) - ln_beta(on, off + all);
        for (f, (shape, rate)) in model.shapes(k).iter().zip(model.rates(k)).enumerate() {
            let paid = kl(*shape, rate, a, b);
            bound -= paid;
            correction += given_back(a, shape - a, twice_w[k * features + f], paid);
        }
    }
    (bound, correction, beyond)
}

/// The model of counts that scatter with alpha, their columns by their totals; and the counts as it weighs them.
pub(crate) fn scattered<'a>(model: &mut Model, view: &View<'a>, alpha: f64, workers: &Workers) -> View<'a> {
    let view = view.clone().sized();
    (model.alpha, model.sizes) = (alpha, view.sizes());
    view.weighed(model, workers).into_owned()
}

#[test]
fn the_evidence_is_that_of_a_plain_twin() {
    let workers = workers(1);
    for (name, counts) in kinds() {
        for (alpha, round) in [(f64::INFINITY, 0), (f64::INFINITY, 1), (5.0, 0), (5.0, 1)] {
            let (mut model, plain) = fitted(&counts, 6, &workers);
            // Once more with other masks: a component is off everywhere, and all others are on.
            if round == 1 {
                model.switch_all_on(&plain);
                model.parts.iter_mut().for_each(|parts| parts.retain(|part| part.k != 2));
                model.ascend(&plain, 2, &workers);
            }
            let view = if alpha.is_finite() { scattered(&mut model, &plain, alpha, &workers) } else { plain };
            let (bound, correction, beyond) = plain_evidence(&model, &counts);
            let ours = model.bound(&view, &workers);
            assert!((ours - bound).abs() <= 1e-9 * bound.abs(), "{name}: bound {ours}, plain {bound}");
            let given_back = model.evidence(&view, &workers) - ours - beyond;
            let error = (given_back - correction).abs();
            let rounding = 1e-13 * bound.abs();
            assert!(correction > 1.0, "{name}: {correction}");
            assert!(error <= 1e-6 * correction + rounding, "{name}: {given_back}, plain {correction}");
        }
    }
}

#[test]
fn coordinate_ascent_never_lowers_the_bound() {
    let workers = workers(1);
    for (name, counts) in kinds() {
        for alpha in [None, Some(5.0)] {
            let (mut model, plain) = fitted(&counts, 6, &workers);
            let view = alpha.map_or(plain.clone(), |alpha| scattered(&mut model, &plain, alpha, &workers));
            let mut before = model.bound(&view, &workers);
            for _ in 0..20 {
                model.ascend(&view, 1, &workers);
                let after = model.bound(&view, &workers);
                assert!(after > before - 1e-9 * before.abs(), "{name}: {before} -> {after}");
                before = after;
            }
        }
    }
}

#[test]
fn every_other_scale_between_w_and_h_lowers_the_bound() {
    let workers = workers(1);
    for (name, counts) in kinds() {
        let (model, view) = fitted(&counts, 6, &workers);
        let best = model.bound(&view, &workers);
        for k in 0..model.components() {
            for factor in [0.5, 0.9, 1.1, 2.0] {
                let mut other = model.clone();
                let mut scales = vec![1.0; model.components()];
                scales[k] = factor;
                other.scale(&scales);
                other.settle(&workers);
                let bound = other.bound(&view, &workers);
                assert!(bound < best, "{name}: component {k} times {factor}: {best} -> {bound}");
                // What is explained does not depend on it.
                let sum = |model: &Model| -> f64 {
                    let parts = model.parts.iter().flatten().filter(|part| part.k == k);
                    model.sum[k] * parts.map(Part::mean).sum::<f64>()
                };
                assert!((sum(&other) / sum(&model) - 1.0).abs() < 1e-12, "{name}");
            }
        }
    }
}

/// `steps` plain steps of coordinate ascent.
fn plain_steps(model: &mut Model, view: &View, steps: usize, workers: &Workers) -> f64 {
    let mut ratios = Ratios::new(view);
    (0..steps).for_each(|_| model.step(view, 1, &mut ratios, workers));
    model.bound(view, workers)
}

#[test]
fn convergence_is_no_slower_than_coordinate_ascent_and_the_bound_never_falls() {
    let workers = workers(1);
    for (name, counts) in kinds() {
        let (model, view) = fitted(&counts, 6, &workers);
        let mut before = model.bound(&view, &workers);
        for steps in [3, 6, 12, 30, 90, 180] {
            // The same way as before, and further: nothing is random.
            let mut accelerated = model.clone();
            let bound = accelerated.converge(&view, steps, f64::NEG_INFINITY, &workers);
            assert_eq!(bound, accelerated.bound(&view, &workers), "{name}");
            assert!(bound >= before - 1e-9 * before.abs(), "{name}, {steps} steps: {before} -> {bound}");
            before = bound;
            let plain = plain_steps(&mut model.clone(), &view, steps, &workers);
            assert!(
                bound > plain - 0.1 - 1e-9 * plain.abs(),
                "{name}, {steps} steps: {bound}, plain {plain}"
            );
        }
    }
}

#[test]
fn convergence_reaches_the_fixed_point_of_coordinate_ascent() {
    let workers = workers(1);
    for (name, counts) in kinds().into_iter().filter(|(name, _)| *name != "large") {
        // With no more components than there are the fixed point is near.
        let (mut accelerated, view) = fitted(&counts, 3, &workers);
        let mut plain = accelerated.clone();
        let reached = accelerated.converge(&view, 3000, 1e-7, &workers);
        let slowly = plain_steps(&mut plain, &view, 6000, &workers);
        assert!((reached - slowly).abs() < 1e-2, "{name}: {reached}, plain {slowly}");
        let largest = plain.shape.iter().copied().fold(0.0, f64::max);
        for (ours, theirs) in accelerated.shape.iter().zip(&plain.shape) {
            assert!((ours - theirs).abs() < 1e-3 * largest, "{name}: {ours}, plain {theirs}");
        }
        let still = plain_steps(&mut accelerated, &view, 1, &workers);
        assert!((still - reached).abs() < 1e-5, "{name}: {reached} -> {still}");
    }
}

#[test]
fn a_model_lifted_and_lowered_again_is_the_same() {
    let workers = workers(1);
    for (name, counts) in kinds() {
        let (mut model, view) = fitted(&counts, 6, &workers);
        // The scale step leaves rates below d where little or nothing was observed; a lift takes them for d.
        let d = model.prior.d();
        for part in model.parts.iter_mut().flatten() {
            *part = Part::new(part.k, part.shape, part.rate.max(d));
        }
        for factor in [8.0, 0.3] {
            let mut lifted = model.clone();
            lifted.lift(factor, &workers);
            let (a, c) = (model.prior.a(), model.prior.c());
            assert_eq!((lifted.prior.a(), lifted.prior.c(), lifted.prior.d()), (a, c, d), "{name}");
            let close = |ours: f64, theirs: f64| {
                assert!((ours - theirs).abs() <= 1e-12 * theirs.abs(), "{name}: {ours} {theirs}");
            };
            close(lifted.prior.b(), model.prior.b() / factor);
            for (new, old) in lifted.shape.iter().zip(&model.shape) {
                close(*new, a + factor * (old - a));
            }
            for (new, old) in lifted.parts.iter().flatten().zip(model.parts.iter().flatten()) {
                close(new.shape, c + factor * (old.shape - c));
                close(new.rate, d + factor * (old.rate - d));
            }
            lifted.lift(1.0 / factor, &workers);
            close(lifted.prior.b(), model.prior.b());
            close(lifted.bound(&view, &workers), model.bound(&view, &workers));
            for (new, old) in lifted.shape.iter().zip(&model.shape) {
                close(*new, *old);
            }
            for (new, old) in lifted.parts.iter().flatten().zip(model.parts.iter().flatten()) {
                assert_eq!(new.k, old.k);
                close(new.shape, old.shape);
                close(new.rate, old.rate);
            }
        }
    }
}

#[test]
fn all_components_are_switched_on_where_there_are_counts() {
    let workers = workers(1);
    for (name, counts) in kinds() {
        let (model, view) = fitted(&counts, 6, &workers);
        let usage = model.usage();
        let mean = |k: usize| {
            let parts = model.parts.iter().flatten().filter(|part| part.k == k);
            parts.map(Part::mean).sum::<f64>() / usage[k] as f64
        };
        let mut all = model.clone();
        all.switch_all_on(&view);
        for ((after, before), column) in all.parts.iter().zip(&model.parts).zip(&view.columns) {
            if column.total == 0.0 {
                assert_eq!(after, before, "{name}");
                continue;
            }
            assert!(after.iter().map(|part| part.k).eq(0..model.components()), "{name}");
            let mut were_on = before.iter().peekable();
            for part in after {
                if were_on.next_if(|other| other.k == part.k).is_some_and(|other| other == part) {
                    continue;
                }
                let expected = model.prior.c() / part.rate + 0.05 * mean(part.k);
                assert!((part.mean() / expected - 1.0).abs() < 1e-12, "{name}: {part:?}");
                assert!((part.rate / (model.prior.d() + model.sum_in(column, part.k)) - 1.0).abs() < 1e-12);
            }
            assert!(were_on.next().is_none(), "{name}: a part that was on has changed");
        }
        // What was on everywhere is left alone.
        let once = all.parts.clone();
        all.switch_all_on(&view);
        assert_eq!(all.parts, once, "{name}");
    }
}

#[test]
fn a_scaled_view_has_every_entry_times_the_power_and_the_same_entries_missing() {
    for (name, counts) in kinds() {
        let view = View::new(&counts);
        let scaled = view.scaled(0.125);
        assert_eq!((scaled.features, scaled.partial), (view.features, view.partial), "{name}");
        assert!((scaled.total / view.total - 0.125).abs() < 1e-15, "{name}");
        assert!(
            (scaled.mean_positive(f64::INFINITY) / view.mean_positive(f64::INFINITY) - 0.125).abs() < 1e-15,
            "{name}"
        );
        assert_eq!(scaled.columns.len(), view.columns.len());
        for (new, old) in scaled.columns.iter().zip(&view.columns) {
            assert_eq!((new.compressed(), new.missing), (old.compressed(), old.missing), "{name}");
            assert!(new.x.iter().zip(old.x.iter()).all(|(new, old)| *new == 0.125 * old), "{name}");
            assert_eq!((new.tiles.len(), new.total), (old.tiles.len(), 0.125 * old.total), "{name}");
            let tiles = flat(&new.tiles).iter().zip(flat(&old.tiles));
            assert!(tiles.into_iter().all(|(new, old)| *new == 0.125 * old), "{name}");
        }
    }
}

#[test]
fn the_same_bits_on_any_threads_and_instructions() {
    for (name, counts) in kinds() {
        let of = |threads: usize, simd: Simd| {
            let workers = workers(threads).with_simd(simd);
            let (mut model, view) = fitted(&counts, 6, &workers);
            model.switch_all_on(&view);
            let bound = model.converge(&view, 12, 1.0, &workers);
            hyper::learn(&mut model, &workers);
            let evidence = model.evidence(&view, &workers);
            let mut other = model.clone();
            let weighed = scattered(&mut other, &view, 5.0, &workers);
            other.converge(&weighed, 12, 1.0, &workers);
            hyper::learn(&mut other, &workers);
            let scattered = (other.evidence(&weighed, &workers), other.unseen, other.parts);
            let alpha = scatter::learned(&model, &view, 1.0, &workers);
            let Model { prior, shape, rate, unseen, geometric, sum, parts, .. } = model;
            (bound, evidence, prior, shape, rate, unseen, geometric, sum, parts, scattered, alpha)
        };
        let first = of(1, Simd::Auto);
        for simd in [Simd::Avx512, Simd::Avx2, Simd::Plain] {
            for threads in [1, 2, 8] {
                assert!(of(threads, simd) == first, "{name}: {threads} threads, {simd:?}");
            }
        }
    }
}

#[test]
fn the_bound_is_below_the_evidence_it_bounds() {
    // One entry, one component that is on: log p(x, S = 1) by quadrature over w and h.
    let workers = workers(1);
    let (x, prior) = (4.0, Prior { a: 1.5, b: 0.5, c: 2.0, d: 1.0, components: 2, ..Prior::default() });
    let prior = prior.check().unwrap();
    let counts = Counts::from_dense(1, 1, vec![x]).unwrap();
    let view = View::new(&counts);
    let mut model = Model::empty(Simd::Plain, 1, 1, prior);
    model.push([3.0].into_iter(), 1.0);
    model.parts[0].push(Part::new(0, 3.0, 2.0));
    model.settle(&workers);
    model.ascend(&view, 100, &workers);
    let never_on = |on: f64, off: f64| ln_beta(on, off + 1.0) - ln_beta(on, off);
    let constants = f64::from(prior.components() as u32) * never_on(prior.pi_on(), prior.pi_off())
        - counts.ln_factorials();
    let bound = model.bound(&view, &workers) + constants;

    let density = |shape: f64, rate: f64, v: f64| {
        (shape * rate.ln() - libm::lgamma(shape) + (shape - 1.0) * v.ln() - rate * v).exp()
    };
    let grid: Vec<f64> = (0..2000).map(|i| (f64::from(i) + 0.5) * 0.02).collect();
    let mut integral = 0.0;
    for &w in &grid {
        for &h in &grid {
            let poisson = (x * (w * h).ln() - w * h).exp() / 24.0;
            integral += poisson * density(1.5, 0.5, w) * density(2.0, 1.0, h) * 0.02 * 0.02;
        }
    }
    let (on, off) = (prior.pi_on(), prior.pi_off());
    let mask = ln_beta(on + 1.0, off) - ln_beta(on, off) + never_on(on, off);
    let evidence = integral.ln() + mask;
    assert!(bound < evidence, "{bound} must be below {evidence}");
    assert!(bound > evidence - 1.0, "{bound} is far below {evidence}");
    // A single component shares no counts, so nothing is given back.
    let corrected = model.evidence(&view, &workers) + constants;
    assert!((corrected - bound).abs() < 1e-5, "{corrected} {bound}");
}

#[test]
fn the_learned_shape_is_that_of_a_gamma_distribution_with_this_gap() {
    for shape in [0.05, 0.5, 3.0, 100.0] {
        let gap = libm::log(shape) - digamma(shape);
        assert!((hyper::shape_of(gap, hyper::A) / shape - 1.0).abs() < 1e-9, "{shape}");
    }
    assert!((hyper::shape_of(0.0, hyper::C) / hyper::C.1 - 1.0).abs() < 1e-9);
    assert!((hyper::shape_of(1e9, hyper::C) / hyper::C.0 - 1.0).abs() < 1e-9);
}

#[test]
fn learning_the_prior_leaves_activations_of_mean_one_and_what_is_explained_as_it_is() {
    let workers = workers(1);
    for (name, counts) in kinds() {
        let (mut model, _) = fitted(&counts, 6, &workers);
        let usage = model.usage();
        let explained = |model: &Model| -> Vec<f64> {
            let part = |part: &Part| model.sum[part.k] * part.mean();
            model.parts.iter().map(|parts| parts.iter().map(part).sum()).collect()
        };
        let before = explained(&model);
        hyper::learn(&mut model, &workers);
        for (after, before) in explained(&model).iter().zip(&before) {
            assert!((after - before).abs() <= 1e-12 * before.abs(), "{name}: {before} -> {after}");
        }
        for (k, usage) in usage.into_iter().enumerate().filter(|(_, m)| *m > 0) {
            let parts = model.parts.iter().flatten().filter(|part| part.k == k);
            let mean = parts.map(Part::mean).sum::<f64>() / usage as f64;
            assert!((mean - 1.0).abs() < 1e-12, "{name}: component {k} has mean {mean}");
        }
        assert_eq!(model.prior.c(), model.prior.d(), "{name}");
    }
}

/// KL divergence of counts from W H, over the entries that were observed.
fn divergence(counts: &Counts, w: &[f64], h: &[f64]) -> f64 {
    let features = counts.features();
    let components = w.len() / features;
    let mut sum = 0.0;
    for t in 0..counts.observations() {
        let mut x = vec![0.0; features];
        counts.column(t).positive().for_each(|(f, value)| x[f] = value);
        for f in (0..features).filter(|f| !counts.missing(t).contains(&(*f as u32))) {
            let rate: f64 = (0..components).map(|k| w[k * features + f] * h[t * components + k]).sum();
            sum += rate - x[f] + if x[f] > 0.0 { x[f] * libm::log(x[f] / rate) } else { 0.0 };
        }
    }
    sum
}

#[test]
fn no_update_of_the_nmf_raises_the_divergence() {
    let workers = workers(1);
    for (name, counts) in kinds() {
        let (features, components, view) = (counts.features(), 5, View::new(&counts));
        let mut stream = Key::new(2).stream(Site::Init, 0, 0, 0);
        let mut w: Vec<f64> = (0..components * features).map(|_| 0.05 + stream.uniform()).collect();
        for row in w.chunks_mut(features) {
            let total: f64 = row.iter().sum();
            row.iter_mut().for_each(|w| *w /= total);
        }
        let mut before = f64::INFINITY;
        for iterations in 1..12 {
            let updates = Updates { iterations, held: 3, sharpness: 1.0 };
            let factors = updated(&view, w.clone(), &updates, workers.simd, &workers);
            assert_eq!(factors.w == w, iterations <= 3, "{name}: W is held three times");
            let after = divergence(&counts, &factors.w, &factors.h.concat());
            assert!(after <= before * (1.0 + 1e-6), "{name}: {before} -> {after}");
            before = after;
        }
    }
}

#[test]
fn plain_nmf_equals_its_updates_written_out_in_double_precision() {
    // Few components on, so that products are taken one by one, and all on; more columns than a block.
    for (features, observations, components, every) in [(37, 30, 9, 5), (19, 1100, 3, 1)] {
        let mut stream = Key::new(6).stream(Site::Init, 0, 0, 0);
        let mut draw = |n: usize| -> Vec<f32> { (0..n).map(|_| 0.1 + stream.uniform() as f32).collect() };
        let (x, mut w) = (draw(features * observations), draw(features * components));
        let mut h = draw(observations * components);
        w[3] = 0.0;
        h.iter_mut().enumerate().for_each(|(i, h)| *h *= f32::from(u8::from(i % every == 0)));
        // A component that is on nowhere, and a column in which none is.
        h.iter_mut().skip(1).step_by(components).for_each(|h| *h = 0.0);
        h[2 * components..3 * components].fill(0.0);
        let wide = |values: &[f32]| values.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>();
        let (mut plain_w, mut plain_h) = (wide(&w), wide(&h));
        let start = (w.clone(), h.clone());
        nmf(&x, features, &mut w, &mut h, 3, &workers(1)).unwrap();
        for _ in 0..3 {
            let ratios = |w: &[f64], h: &[f64]| -> Vec<f64> {
                let rate = |i: usize| -> f64 {
                    let (t, f) = (i / features, i % features);
                    (0..components).map(|k| w[k * features + f] * h[t * components + k]).sum()
                };
                (0..x.len()).map(|i| if rate(i) > 0.0 { f64::from(x[i]) / rate(i) } else { 0.0 }).collect()
            };
            let ratio = ratios(&plain_w, &plain_h);
            for (i, h) in plain_h.iter_mut().enumerate() {
                let (row, column) = (&plain_w[i % components * features..][..features], i / components);
                let product: f64 = row.iter().zip(&ratio[column * features..]).map(|(w, r)| w * r).sum();
                *h *= product / row.iter().sum::<f64>();
            }
            let ratio = ratios(&plain_w, &plain_h);
            for (i, w) in plain_w.iter_mut().enumerate() {
                let h = || plain_h.iter().skip(i / features).step_by(components);
                let product: f64 = h().enumerate().map(|(t, h)| h * ratio[t * features + i % features]).sum();
                if h().sum::<f64>() > 0.0 {
                    *w *= product / h().sum::<f64>();
                }
            }
        }
        for (found, expected) in w.iter().chain(&h).zip(plain_w.iter().chain(&plain_h)) {
            assert!((f64::from(*found) - expected).abs() <= 1e-5 * expected, "{found} {expected}");
        }
        // Three at once are three, on any threads and instructions.
        for (threads, simd) in [(2, Simd::Avx512), (8, Simd::Avx2), (1, Simd::Plain)] {
            let (mut other_w, mut other_h) = start.clone();
            let workers = workers(threads).with_simd(simd);
            for _ in 0..3 {
                nmf(&x, features, &mut other_w, &mut other_h, 1, &workers).unwrap();
            }
            assert!(other_w == w && other_h == h, "{threads} threads, {simd:?}");
        }
        assert!(nmf(&x[1..], features, &mut w, &mut h, 1, &workers(1)).is_err());
        assert!(nmf(&x, features, &mut w[1..], &mut h, 1, &workers(1)).is_err());
        assert!(nmf(&x, features, &mut w, &mut h[1..], 1, &workers(1)).is_err());
    }
    nmf(&[], 0, &mut [], &mut [], 1, &workers(1)).unwrap();
    nmf(&[1.0, 2.0], 2, &mut [], &mut [], 1, &workers(1)).unwrap();
}

#[test]
fn a_mixture_explains_its_column_whatever_the_size_of_its_entries() {
    // Rows of 1e-38 and less in the first entry: only their shares matter.
    let rows = [1e-38, 0.5, 0.2, 3e-38, 0.1, 0.6, 0.0, 0.0, 0.0];
    let (x, components) = ([4.0, 10.0, 12.0], 3);
    let mut plain = vec![26.0 / 3.0; components];
    for _ in 0..20 {
        let rate = |h: &[f64], f: usize| -> f64 { (0..components).map(|k| rows[k * 3 + f] * h[k]).sum() };
        let product =
            |h: &[f64], k: usize| -> f64 { (0..3).map(|f| rows[k * 3 + f] * x[f] / rate(h, f)).sum() };
        plain = (0..components).map(|k| plain[k] * product(&plain, k)).collect();
    }
    let ours = mixture(&x, rows.to_vec(), 20, Simd::Auto);
    for (ours, plain) in ours.iter().zip(&plain) {
        assert!((ours - plain).abs() <= 1e-5 * plain, "{ours} {plain}");
    }
}

#[test]
fn the_scatter_of_counts_is_learned() {
    let workers = workers(1);
    let (features, observations) = (60, 150);
    for (truth, tolerance) in [(3.0, 0.1), (20.0, 0.1), (100.0, 0.15), (f64::INFINITY, 0.0)] {
        let key = Key::new(9);
        let draw = |(f, t): (usize, usize)| {
            let mut stream = key.stream(Site::Synthesis, 5, t as u32, f as u32);
            let rate = 20.0 * (1.0 + (f % 7) as f64) * (1.0 + (t % 5) as f64);
            let eps = if truth.is_finite() { stream.gamma(truth) / truth } else { 1.0 };
            stream.poisson(rate * eps)
        };
        let places = (0..observations).flat_map(|t| (0..features).map(move |f| (f, t)));
        let counts = Counts::from_dense(features, observations, places.map(draw).collect()).unwrap();
        let (mut model, view) = fitted(&counts, 2, &workers);
        model.switch_all_on(&view);
        let mut alpha = f64::INFINITY;
        for _ in 0..4 {
            model.alpha = alpha;
            model.converge(&view.weighed(&model, &workers), 60, 0.1, &workers);
            alpha = scatter::learned(&model, &view, 1.0, &workers);
        }
        assert!(alpha == truth || (alpha / truth - 1.0).abs() < tolerance, "{truth}: {alpha}");
    }
}
