//! `cargo bench`: the mask sweep and the iterations built on it, next to one matrix product of the same size.
//! `./run bench` has the rivals in other languages.

use bpnmf::bench::MaskSweep;
use bpnmf::{Batch, Engine, Gibbs, Init, Key, Prior, Recipe, Simd, Ssmf, Workers};
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
}

criterion_group!(all, benches);
criterion_main!(all);
