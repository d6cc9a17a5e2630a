//! `cargo bench`: the mask sweep and the iterations built on it, next to one matrix product of the same size; and what it
//! costs that counts scatter.
//! `./run bench` has the rivals in other languages.

use bpnmf::bench::MaskSweep;
use bpnmf::{Batch, Counts, Engine, Gibbs, Init, Key, Noise, Prior, Recipe, Simd, Ssmf, Workers};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use std::hint::black_box;

fn benches(criterion: &mut Criterion) {
    let counts = Recipe::default().draw(1).expect("a valid recipe").counts;
    let prior = Prior::default().check().expect("the default prior");
    let (key, workers, batch) = (Key::new(1), Workers::serial(), Batch::all(&counts));
    let ssmf = Ssmf { init: Init::Scaled, ..Ssmf::default() };
    let mut state = ssmf.init(&counts, &prior, key);
    for _ in 0..10 {
        ssmf.step(&mut state, &batch, &prior, key, &workers).expect("a valid step");
    }

    let mut group = criterion.benchmark_group("75 x 1000, K = 500");
    group.sample_size(20);
    let (f, t, k) = (counts.features(), counts.observations(), prior.components());
    let (a, b, mut c) = (vec![1.0f32; k * f], vec![1.0f32; f * t], vec![0.0f32; k * t]);
    group.bench_function("one matrix product", |bencher| {
        bencher.iter(|| {
            let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
            // SAFETY: the strides describe row-major matrices of exactly the sizes allocated above.
            unsafe {
                matrixmultiply::sgemm(
                    k, f, t, 1.0, a, f as isize, 1, b, t as isize, 1, 0.0, c, t as isize, 1,
                );
            }
        });
    });
    let mut sweep = MaskSweep::new(&counts, &state, 3);
    for (name, simd) in [("AVX-512", Simd::Avx512), ("AVX2", Simd::Avx2), ("plain", Simd::Plain)] {
        if simd.resolved() == simd {
            group.bench_function(format!("mask sweep, {name}"), |bencher| {
                bencher.iter_custom(|times| {
                    (0..times)
                        .map(|_| {
                            sweep.reset();
                            let start = std::time::Instant::now();
                            black_box(sweep.sweep(simd));
                            start.elapsed()
                        })
                        .sum()
                });
            });
        }
    }
    for engine in [&ssmf as &dyn Engine, &Gibbs { init: Init::Scaled, ..Gibbs::default() }] {
        let start = if engine.name() == "ssmf" { state.clone() } else { engine.init(&counts, &prior, key) };
        group.bench_function(format!("{} iteration", engine.name()), |bencher| {
            bencher.iter_batched(
                || start.clone(),
                |mut state| engine.step(&mut state, &batch, &prior, key, &workers),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
    scattered(criterion);
}

/// Negative binomial counts with alpha = 50 and a mean near 300, and the state of an engine after 60 iterations on them.
fn scattered(criterion: &mut Criterion) {
    const FEATURES: usize = 96;
    const OBSERVATIONS: usize = 540;
    const COMPONENTS: usize = 25;
    let mut stream = bpnmf::bench::stream(1);
    let w: Vec<f64> = (0..FEATURES * COMPONENTS).map(|_| stream.gamma(0.3)).collect();
    let mut values = Vec::new();
    for _ in 0..OBSERVATIONS {
        let on = |uniform: f64, gamma: f64| if uniform < 0.25 { gamma } else { 0.0 };
        let h: Vec<f64> = (0..COMPONENTS).map(|_| on(stream.uniform(), stream.gamma(1.0))).collect();
        for f in 0..FEATURES {
            let rate: f64 = (0..COMPONENTS).map(|k| w[f * COMPONENTS + k] * h[k]).sum();
            let scatter = stream.gamma(50.0) / 50.0;
            values.push(stream.poisson(150.0 * rate * scatter));
        }
    }
    let counts = Counts::from_dense(FEATURES, OBSERVATIONS, values).expect("valid counts");
    let prior = Prior { a: 0.3, b: 1.0, c: 1.0, d: 1.0, components: 29, ..Prior::default() };
    let prior = prior.check().expect("a valid prior");
    let (key, workers, batch) = (Key::new(1), Workers::serial(), Batch::all(&counts));
    let mut group = criterion.benchmark_group("96 x 540, K = 29");
    group.sample_size(20);
    for (name, noise) in [("Poisson", Noise::Poisson), ("alpha = 50", Noise::Scattered { alpha: 50.0 })] {
        let engine = Gibbs { init: Init::Scaled, burn_in: 40, noise, ..Gibbs::default() };
        let mut state = engine.init(&counts, &prior, key);
        for _ in 0..60 {
            engine.step(&mut state, &batch, &prior, key, &workers).expect("a valid step");
        }
        group.bench_function(format!("gibbs iteration, {name}"), |bencher| {
            bencher.iter(|| engine.step(&mut state, &batch, &prior, key, &workers));
        });
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
