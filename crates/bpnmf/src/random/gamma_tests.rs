//! Gamma draws: lanes against single draws, and both against the distribution.

use super::*;
use crate::special::ln_gamma;

const ALL: [Simd; 3] = [Simd::Avx512, Simd::Avx2, Simd::Plain];

/// `n` draws of one shape.
fn sample(seed: u64, shape: f64, n: usize) -> Vec<f64> {
    let (shapes, mut out) = (vec![shape; 1000], vec![0.0; n]);
    for (i, out) in out.chunks_mut(1000).enumerate() {
        gamma_row(Simd::Auto, Key::new(seed), Site::Synthesis, 0, i as u32, 0, &shapes[..out.len()], out);
    }
    out
}

/// Shapes from 1e-6 to 1e15, most of them where attempts fail.
fn shapes(n: usize) -> Vec<f64> {
    let exponents = [0.0, -0.1, 0.05, -6.0, 15.0, 0.3, -0.3, 1.0, -2.0, 4.0, 0.0];
    (0..n).map(|i| libm::pow(10.0, exponents[i % 11] + 0.001 * (i % 7) as f64)).collect()
}

/// The distribution function of Gamma(shape, 1): series below the mean, continued fraction above.
fn distribution(shape: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let front = (shape * x.ln() - x - ln_gamma(shape)).exp();
    if x < shape + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / shape, 1.0 / shape, shape);
        while term > 1e-16 * sum {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        front * sum
    } else {
        let tiny = 1e-300;
        let mut b = x + 1.0 - shape;
        let (mut c, mut d) = (1.0 / tiny, 1.0 / b);
        let mut h = d;
        for i in 1..10_000 {
            let a = -f64::from(i) * (f64::from(i) - shape);
            b += 2.0;
            d = 1.0 / (a * d + b);
            c = b + a / c;
            h *= c * d;
            if (c * d - 1.0).abs() < 1e-15 {
                break;
            }
        }
        1.0 - front * h
    }
}

/// Draws below this may have become 0.
const UNDERFLOW: f64 = 1e-300;

/// The Kolmogorov-Smirnov distance of draws from Gamma(shape, 1), where they do not underflow.
fn ks_distance(mut draws: Vec<f64>, shape: f64) -> f64 {
    draws.sort_by(f64::total_cmp);
    let n = draws.len() as f64;
    let gap = |i: usize| {
        let p = distribution(shape, draws[i]);
        (p - i as f64 / n).abs().max(((i + 1) as f64 / n - p).abs())
    };
    (draws.partition_point(|&x| x < UNDERFLOW)..draws.len()).map(gap).fold(0.0, f64::max)
}

#[test]
fn lanes_equal_single_draws_bit_for_bit() {
    let key = Key::new(77);
    for length in (0..50).chain([255, 256, 257, 700, 3001]) {
        let shapes = shapes(length);
        let places: Vec<[u32; 2]> =
            (0..length as u32).map(|n| [6 + n % 3, n.wrapping_mul(2_654_435_761)]).collect();
        // The row runs over the end of the counter, too.
        let first = u32::MAX - 20;
        let row = |n: usize| first.wrapping_add(n as u32);
        let single =
            |[i, j]: [u32; 2], n: usize| gamma_at(key, Site::Dictionary, 5, i, j, shapes[n]).to_bits();
        for simd in ALL {
            let mut out = vec![f64::NAN; length];
            gamma_row(simd, key, Site::Dictionary, 5, 6, first, &shapes, &mut out);
            assert!(
                (0..length).all(|n| out[n].to_bits() == single([6, row(n)], n)),
                "{simd:?}, row of {length}"
            );
            gamma_sites(simd, key, Site::Dictionary, 5, &places, &shapes, &mut out);
            assert!(
                (0..length).all(|n| out[n].to_bits() == single(places[n], n)),
                "{simd:?}, {length} sites"
            );
        }
    }
}

/// Frozen when the code was written: a change here changes every run of every user.
#[test]
fn draws_are_the_same_bits_as_ever() {
    let draw = |j: u32, shape: f64| gamma_at(Key::new(1), Site::Activation, 2, 3, j, shape).to_bits();
    let hash = shapes(20_000).iter().enumerate().fold(0u64, |hash, (n, &shape)| {
        hash.rotate_left(5).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ draw(n as u32, shape)
    });
    assert_eq!(hash, 0xe6a9_9060_cdd9_4934, "{hash:#x}");
}

#[test]
fn no_two_places_share_numbers() {
    let draw = |seed, site, sweep, i, j| gamma_at(Key::new(seed), site, sweep, i, j, 3.0);
    let all = [
        draw(5, Site::Dictionary, 3, 4, 5),
        draw(5, Site::Activation, 3, 4, 5),
        draw(5, Site::OffActivation, 3, 4, 5),
        draw(5, Site::Dictionary, 4, 4, 5),
        draw(5, Site::Dictionary, 3, 5, 4),
        draw(5, Site::Dictionary, 3, 5, 5),
        draw(6, Site::Dictionary, 3, 4, 5),
    ];
    for i in 0..all.len() {
        for j in 0..i {
            assert_ne!(all[i], all[j]);
        }
    }
    assert_eq!(all[0], draw(5, Site::Dictionary, 3, 4, 5));
}

#[test]
fn draws_of_neighbouring_places_are_not_correlated() {
    let n = 1_000_000;
    let draws = sample(31, 2.0, n + 16);
    for lag in [1, 2, 8, 15, 16] {
        let sum: f64 = (0..n).map(|i| (draws[i] - 2.0) * (draws[i + lag] - 2.0) / 2.0).sum();
        assert!(sum.abs() < 4.0 * (n as f64).sqrt(), "lag {lag}: {}", sum / n as f64);
    }
}

#[test]
fn draws_have_the_mean_and_variance_of_their_shape() {
    let n = 1_000_000;
    for (seed, shape) in [0.05, 0.5, 1.0, 1.5, 5.0, 40.0, 1e4, 1e9].into_iter().enumerate() {
        let draws = sample(seed as u64, shape, n);
        let mean = draws.iter().map(|x| x - shape).sum::<f64>() / n as f64;
        let variance = draws.iter().map(|x| (x - shape).powi(2)).sum::<f64>() / n as f64;
        let se = (shape / n as f64).sqrt();
        assert!(mean.abs() < 4.0 * se, "shape {shape}: mean off by {mean}");
        // Var of the sample variance: (mu4 - sigma^4) / n with mu4 = 3 s^2 + 6 s.
        let se = ((2.0 * shape * shape + 6.0 * shape) / n as f64).sqrt();
        assert!((variance - shape).abs() < 4.0 * se, "shape {shape}: variance {variance}");
    }
}

#[test]
fn draws_follow_the_distribution_function() {
    let n = 1_000_000;
    for (seed, shape) in [0.002, 0.05, 0.3, 0.5, 0.99, 1.0, 2.0, 5.0, 50.0, 1000.0].into_iter().enumerate() {
        let ks = ks_distance(sample(100 + seed as u64, shape, n), shape);
        // 1.95 / sqrt(n) is the 0.1 % point.
        assert!(ks < 1.95 / (n as f64).sqrt(), "shape {shape}: KS distance {ks}");
    }
}

/// For a shape of 1e-6 that is one draw in 1400, and their logarithms are nearly uniform.
#[test]
fn draws_of_the_smallest_shape_follow_the_distribution_function_where_they_do_not_underflow() {
    let (n, shape) = (8_000_000, 1e-6);
    let draws = sample(200, shape, n);
    let cuts = [UNDERFLOW, 1e-200, 1e-100, 1e-50, 1e-10, 1.0, f64::INFINITY];
    for cut in cuts.windows(2) {
        let count = draws.iter().filter(|&&x| cut[0] <= x && x < cut[1]).count() as f64;
        let above = if cut[1] < 2.0 { distribution(shape, cut[1]) } else { 1.0 };
        let expected = n as f64 * (above - distribution(shape, cut[0]));
        assert!((count - expected).abs() < 4.0 * expected.sqrt() + 1.0, "{cut:?}: {count} of {expected}");
    }
}

/// Counts of |x| > 1 ... 5, and the moments, of the normal draw inside.
#[test]
fn the_normal_draw_has_its_moments_and_its_tails() {
    let n = 5_000_000;
    let tails = [0.317_310_507_863, 0.045_500_263_896, 0.002_699_796_063, 6.334_248_367e-5, 5.733_031_438e-7];
    let (mut moments, mut counts) = ([0.0; 4], [0.0; 5]);
    for j in 0..n {
        let words = philox::block([1, 2, 3, j], [4, 5]);
        let x = f64::from(normal_over(words, 1.0 / 9.0));
        let mut power = 1.0;
        for moment in &mut moments {
            power *= x;
            *moment += power;
        }
        for (sigma, count) in counts.iter_mut().enumerate() {
            *count += f64::from(u8::from(x.abs() > (sigma + 1) as f64));
        }
    }
    let n = f64::from(n);
    // Mean and variance of x, x^2, x^3, x^4.
    for (power, (mean, variance)) in
        [(0.0, 1.0), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0)].into_iter().enumerate()
    {
        let off = moments[power] / n - mean;
        assert!(off.abs() < 4.0 * f64::sqrt(variance / n), "x^{}: {off}", power + 1);
    }
    for (sigma, (count, tail)) in counts.into_iter().zip(tails).enumerate() {
        let off = count - n * tail;
        assert!(off.abs() < 4.0 * (n * tail).sqrt(), "{count} beyond {}, not {}", sigma + 1, n * tail);
    }
}

#[test]
fn the_cheap_test_takes_nothing_that_the_exact_one_does_not() {
    for shape in [1e-6, 0.3, 0.999, 1.0, 1.1, 2.0, 7.0, 300.0, 1e7, 1e15] {
        let d = excess(shape);
        let mut taken = 0;
        for j in 0..200_000 {
            let words = philox::block([9, 2, 3, j], [4, 5]);
            let y = normal_over(words, single(d));
            if surely(words, single(d), y) {
                taken += 1;
                assert!(exactly(words, 0, d, f64::from(y)), "shape {shape}, {words:?}");
            }
        }
        assert!(taken > 180_000, "shape {shape}: only {taken} by the cheap test");
    }
}

#[test]
fn single_precision_functions_are_good_to_4e_7() {
    for i in 0..400_000u32 {
        let words = philox::block([0, 0, 0, i], [1, 2]);
        // Every size of U and of 1 - U.
        let high = (words[0] >> 1 >> (i % 31)) ^ (if i % 2 == 0 { 0x7fff_ffff } else { 0 });
        let low = words[1] >> 11;
        let from_below = (f64::from(high) + (f64::from(low) + 0.5) / 2_097_152.0) / 2_147_483_648.0;
        let truth = -libm::log(from_below);
        let ours = f64::from(exponential::<21>(high, low, 1.0));
        assert!((ours - truth).abs() <= 4e-7 * truth, "-ln({from_below:e}) = {ours:e}, {truth:e}");

        let s = f64::from(words[2]) / 4_294_967_296.0 - 0.5;
        let (ours, truth) =
            (f64::from(sin_pi(s as f32)), libm::sin(core::f64::consts::PI * f64::from(s as f32)));
        assert!((ours - truth).abs() <= 4e-7 * truth.abs(), "sin(pi {s}) = {ours}, {truth}");

        let shape = 0.01 + f64::from(words[3] >> 8) / 16_777_216.0;
        let u = (f64::from(words[0] >> 1) + (f64::from(low) + 0.5) / 2_097_152.0) / 2_147_483_648.0;
        let exponent = -libm::log(u) / shape;
        let ours = boosted(1.0, 0.5, boost(words, shape as f32));
        let truth = libm::exp(-exponent);
        assert!(
            (ours / truth - 1.0).abs() <= 4e-7 * (1.0 + exponent) || exponent > 708.0,
            "{ours:e} {truth:e}"
        );
    }
}

#[test]
fn no_shape_gives_less_than_zero_or_more_than_any_number() {
    for shape in [1e-300, 1e-30, 1e-6, 1e-3, 0.1, 1.0 - 1e-16, 1.0, 1e6, 1e15, 1e30, 1e100] {
        for x in sample(300, shape, 20_000) {
            assert!(x >= 0.0 && x.is_finite(), "{x} of shape {shape}");
        }
    }
}

/// `cargo test --release -p bpnmf --lib gamma -- --ignored --nocapture`
#[test]
#[ignore = "prints times"]
fn times() {
    let n = 256;
    let key = Key::new(1);
    for (class, shape) in [(">= 5", 5.0), ("1 to 2", 1.0), ("0.5", 0.5), ("below 1", 0.01)] {
        let spread = if class == "0.5" { 0.0 } else { 0.98 / n as f64 };
        let shapes: Vec<f64> = (0..n).map(|i| shape + spread * f64::from(i)).collect();
        let places: Vec<[u32; 2]> = (0..n).map(|i| [3, 3 * i]).collect();
        let mut out = vec![0.0; n as usize];
        let mut times = Vec::<(String, Vec<f64>)>::new();
        for sweep in 0..4000 {
            let mut slot = 0;
            let mut time = |name: String, draw: &mut dyn FnMut()| {
                // Once unmeasured: wide units sleep when they are not used.
                draw();
                let start = std::time::Instant::now();
                draw();
                let spent = start.elapsed().as_secs_f64() * 1e9 / f64::from(n);
                if times.len() == slot {
                    times.push((name, Vec::new()));
                }
                times[slot].1.push(spent);
                slot += 1;
            };
            for simd in ALL {
                time(format!("row, {}", simd.name()), &mut || {
                    gamma_row(simd, key, Site::Dictionary, sweep, 3, 0, &shapes, &mut out);
                });
                for size in [16, 128] {
                    time(format!("sites by {size}, {}", simd.name()), &mut || {
                        let parts = places.chunks(size).zip(shapes.chunks(size)).zip(out.chunks_mut(size));
                        for ((places, shapes), out) in parts {
                            gamma_sites(simd, key, Site::Dictionary, sweep, places, shapes, out);
                        }
                    });
                }
            }
            time("single".into(), &mut || {
                for j in 0..n {
                    out[j as usize] = gamma_at(key, Site::Dictionary, sweep, 3, j, shapes[j as usize]);
                }
            });
            time("stream".into(), &mut || {
                for j in 0..n {
                    out[j as usize] = key.stream(Site::Dictionary, sweep, 3, j).gamma(shapes[j as usize]);
                }
            });
        }
        let median = |times: &mut [f64]| *times.select_nth_unstable_by(2000, f64::total_cmp).1;
        let stream = median(&mut times.last_mut().expect("it was timed").1);
        for (name, times) in &mut times {
            let time = median(times);
            println!("{class:8} {name:20} {time:6.1} ns, stream / this {:5.2}", stream / time);
        }
    }
}
