//! Binomial draws: the probabilities, the hat and the squeeze of the rejection, and the draws against all of them.

use super::*;
use crate::random::{Key, Site};

/// The numbers are those of log-gamma functions with 60 digits.
#[test]
fn probabilities_have_their_digits_up_to_a_million_millions() {
    for (n, p, k, expected) in [
        (40.0, 0.3, 0.0, -14.266_997_757_549_294),
        (40.0, 0.3, 40.0, -48.158_912_173_037_44),
        (40.0, 0.3, 5.0, -5.106_514_691_197_056),
        (129.0, 0.1, 31.0, -13.071_486_598_459_22),
        (1000.0, 0.5, 500.0, -3.679_918_992_094_129),
        (1e6, 1.3e-5, 20.0, -4.036_643_811_800_089),
        (1e6, 0.25, 251_000.0, -9.655_336_669_013_305),
        (1e12, 0.3, 3e11, -13.954_125_217_036_926),
        (1e12, 0.3, 300_001_500_000.0, -19.311_264_400_799_154),
        (1e12, 1.5e-11, 3.0, -8.667_608_865_991_925),
        (1e12, 0.5, 499_998_000_000.0, -22.041_301_910_622_585),
    ] {
        let ours = Rejection::new(n, p).ln_probability(k);
        assert!((ours - expected).abs() < 1e-9, "{k} of {n} with {p}: {ours}, {expected}");
    }
}

/// If the hat were too low somewhere, draws there would be too rare; if the squeeze were too high, too frequent.
#[test]
fn the_hat_is_above_the_probabilities_and_the_squeeze_below() {
    let (mut highest, mut lowest) = (f64::NEG_INFINITY, f64::INFINITY);
    for p in [1e-11, 1e-4, 0.01, 0.1, 0.3, 0.5] {
        for mean in [LARGE_MEAN, 12.6, 13.3, 15.0, 20.0, 50.0, 200.0, 1e3, 1e5, 1e8] {
            let hat = Rejection::new((mean / p).ceil(), p);
            for i in 1..20_000 {
                let u = f64::from(i) / 20_000.0 - 0.5;
                let k = hat.candidate(u);
                if (0.0..=hat.n).contains(&k) {
                    let acceptance = hat.ln_acceptance(u, k);
                    highest = highest.max(acceptance);
                    if hat.surely(u, 0.0) {
                        lowest = lowest.min(acceptance - ln(hat.squeeze));
                    }
                }
            }
        }
    }
    println!("acceptance at most e^{highest:.2e}, above the squeeze by a factor of e^{lowest:.2e}");
    assert!(highest <= 0.0 && lowest >= 0.0);
}

/// Draws that are off by 1 % in some places would be 9 standard errors off.
#[test]
fn draws_follow_their_distribution() {
    const DRAWS: usize = 1_000_000;
    for (seed, (n, p)) in [
        (1, 0.3),
        (7, 0.6),
        (130, 0.01),
        (130, 0.09),
        (130, 0.095),
        (130, 0.5),
        (130, 0.93),
        (1000, 0.0121),
        (40_000, 0.25),
        (1_000_000, 1.1e-5),
        (1_000_000, 3e-5),
        (1_000_000_000_000, 3e-12),
        (1_000_000_000_000, 5e-11),
        (1_000_000_000_000, 0.2),
        (1_000_000_000_000, 0.5),
        (1_000_000_000_000, 0.999),
    ]
    .into_iter()
    .enumerate()
    {
        let mut stream = Key::new(720 + seed as u64).stream(Site::Synthesis, 0, 0, 0);
        let draws: Vec<f64> = (0..DRAWS).map(|_| stream.binomial(n, p) as f64).collect();
        let z = binomial_z(n as f64, p, &draws);
        println!("Binomial({n}, {p}): z of chi-square {z:+.2}");
        assert!(z < 4.0, "Binomial({n}, {p}): {z}");
    }
}

/// How far draws are from Binomial(n, p), in standard errors of chi-square.
pub(crate) fn binomial_z(n: f64, p: f64, draws: &[f64]) -> f64 {
    let distribution = Rejection::new(n, p);
    // Cells of an eighth of the standard deviation or of one number; those in the tails become one.
    let width = (distribution.spread / 8.0).ceil();
    let first = (n * p - 6.0 * distribution.spread - 4.0).max(0.0).floor();
    let cells = ((12.0 * distribution.spread + 40.0) / width).ceil() as usize;
    let mut observed = vec![0.0; cells + 2];
    for draw in draws {
        let cell = ((draw - first) / width).floor() + 1.0;
        observed[cell.clamp(0.0, (cells + 1) as f64) as usize] += 1.0;
    }
    let mut expected = vec![0.0; cells + 2];
    for cell in 0..cells {
        // Wide cells are smooth: the middles of 64 pieces say it to 1e-6.
        let pieces = width.min(64.0);
        for piece in 0..pieces as usize {
            let k = first + cell as f64 * width + (piece as f64 + 0.5) * width / pieces - 0.5;
            if k <= n {
                let probability = libm::exp(distribution.ln_probability(k)) * width / pieces;
                expected[cell + 1] += probability * draws.len() as f64;
            }
        }
    }
    chi_square_z(&observed, &expected)
}

/// Chi-square of counts against expected ones as a standard normal number (Wilson & Hilferty 1931). Cells are pooled until
/// ten counts are expected in each.
pub(crate) fn chi_square_z(observed: &[f64], expected: &[f64]) -> f64 {
    let (mut cells, mut rest) = (Vec::<[f64; 2]>::new(), [0.0; 2]);
    for (&observed, &expected) in observed.iter().zip(expected) {
        rest = [rest[0] + observed, rest[1] + expected];
        if rest[1] >= 10.0 {
            cells.push(core::mem::take(&mut rest));
        }
    }
    let last = cells.last_mut().expect("ten counts");
    *last = [last[0] + rest[0], last[1] + rest[1]];
    let chi_square: f64 = cells.iter().map(|[o, e]| (o - e) * (o - e) / e).sum();
    let freedom = (cells.len() - 1) as f64;
    let spread = 2.0 / (9.0 * freedom);
    ((chi_square / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
}
