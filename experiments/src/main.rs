//! Experiments
use bpnmf::*;
use std::time::Instant;

fn main() {
    let iterations: u32 = std::env::args().nth(1).map_or(10, |a| a.parse().unwrap());
    let synthetic = Recipe::default().draw(1).unwrap();
    let counts = &synthetic.counts;
    println!("true {} total {} density {}", synthetic.true_components(), counts.total(), counts.density());
    let prior = Prior::default().check().unwrap();
    let engine = Ssmf::default();
    let key = Key::new(1);
    let workers = Workers::serial();
    let mut state = engine.init(counts, &prior, key);
    for i in 0..iterations {
        let now = Instant::now();
        let info = engine.step(&mut state, &Batch::all(counts), &prior, key, &workers).unwrap();
        println!("{i} {:.1} ms K {} on/col {:.1} ll {:.0} joint {:.0} {:?}", now.elapsed().as_secs_f64() * 1e3, info.active, info.sites_on as f64 / 1000.0, info.log_likelihood, info.log_joint, info.tiers);
    }
    let mut bench = bench::MaskSweep::new(counts, &state, 3);
    if std::env::args().nth(2).is_some() {
        for _ in 0..600 { bench.reset(); bench.sweep(Simd::Auto); }
        return;
    }
    let (f, t, k) = (75, 1000, 500);
    let a = vec![1.0f32; k * f];
    let b = vec![1.0f32; f * t];
    let mut c = vec![0.0f32; k * t];
    let mut times: Vec<Vec<f64>> = vec![vec![]; 5];
    for _ in 0..15 {
        let now = Instant::now();
        unsafe { matrixmultiply::sgemm(k, f, t, 1.0, a.as_ptr(), f as isize, 1, b.as_ptr(), t as isize, 1, 0.0, c.as_mut_ptr(), t as isize, 1) };
        times[0].push(now.elapsed().as_secs_f64() * 1e3);
        for (i, simd) in [Simd::Avx512, Simd::Avx2, Simd::Plain].into_iter().enumerate() {
            bench.reset();
            let now = Instant::now();
            let tiers = bench.sweep(simd);
            times[1 + i].push(now.elapsed().as_secs_f64() * 1e3);
            if times[1 + i].len() == 1 { println!("{tiers:?}"); }
        }
    }
    bench.reset();
    let now = Instant::now();
    bench.sweep_plainly();
    times[4].push(now.elapsed().as_secs_f64() * 1e3);
    for (name, t) in ["gemm", "avx512", "avx2", "plain", "exact rule"].iter().zip(&mut times) {
        t.sort_by(f64::total_cmp);
        println!("{name} {:.3} ms", t[t.len() / 2]);
    }
}
