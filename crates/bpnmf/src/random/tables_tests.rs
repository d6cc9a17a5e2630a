//! Numbers of tables against their distribution.

use super::*;
use crate::kernel::Plain;
use crate::random::binomial::tests::chi_square_z;

/// Draws for one entry after the other of one column.
fn draws(customers: u64, concentration: f64, number: usize, seed: u64) -> Vec<u64> {
    let key = Key::new(seed);
    (0..number.div_ceil(100))
        .flat_map(|t| {
            let mut seats = Seats::new(key, 3, t);
            (0..100).map(move |f| seats.tables::<Plain>(customers, concentration, f))
        })
        .collect()
}

/// P(L = l) = |s(n, l)| r^l / (r (r + 1) ... (r + n - 1)) with unsigned Stirling numbers of the first kind, which are whole.
fn by_stirling_numbers(n: usize, r: f64) -> Vec<f64> {
    let mut stirling = vec![0u128; n + 1];
    stirling[0] = 1;
    for i in 0..n as u128 {
        for l in (0..=n).rev() {
            stirling[l] = i * stirling[l] + if l > 0 { stirling[l - 1] } else { 0 };
        }
    }
    let rising: f64 = (0..n).map(|i| r + i as f64).product();
    (0..=n).map(|l| stirling[l] as f64 * r.powi(l as i32) / rising).collect()
}

/// The same for any n, customer after customer.
fn by_customers(n: usize, r: f64) -> Vec<f64> {
    let mut p = vec![0.0; n + 1];
    p[0] = 1.0;
    for i in 0..n {
        let open = r / (r + i as f64);
        for l in (0..=i + 1).rev() {
            p[l] = p[l] * (1.0 - open) + if l > 0 { p[l - 1] * open } else { 0.0 };
        }
    }
    p
}

fn z_of(drawn: &[u64], probabilities: &[f64]) -> f64 {
    let mut observed = vec![0.0; probabilities.len()];
    drawn.iter().for_each(|&l| observed[l as usize] += 1.0);
    for (l, (&seen, &p)) in observed.iter().zip(probabilities).enumerate() {
        assert!(p > 0.0 || seen == 0.0, "{l} tables cannot be");
    }
    let expected: Vec<f64> = probabilities.iter().map(|p| p * drawn.len() as f64).collect();
    chi_square_z(&observed, &expected)
}

#[test]
fn few_customers_open_tables_with_the_probabilities_of_stirling_numbers() {
    for n in [1, 2, 3, 5, 12, 20] {
        for r in [1e-30, 1e-3, 0.3, 1.0, 7.5, 400.0] {
            let exact = by_stirling_numbers(n, r);
            let other = by_customers(n, r);
            assert!(exact.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-12));
            let drawn = draws(n as u64, r, 100_000, 900 + n as u64);
            if exact.iter().filter(|p| **p * 1e5 > 20.0).count() < 2 {
                let surely = exact.iter().position(|p| *p > 0.99).unwrap();
                assert!(drawn.iter().filter(|l| **l != surely as u64).count() < 40);
                continue;
            }
            let z = z_of(&drawn, &exact);
            println!("n = {n}, r = {r}: z of chi-square {z:+.2}");
            assert!(z < 4.0, "n = {n}, r = {r}: {z}");
        }
    }
    assert_eq!(Seats::new(Key::new(1), 0, 0).tables::<Plain>(0, 1.0, 0), 0);
}

#[test]
fn many_customers_open_tables_with_the_probabilities_of_their_bernoulli_draws() {
    for (seed, (n, r)) in
        [(500, 50.0), (1025, 2.0), (1500, 40.0), (3000, 0.2), (3000, 5.0), (2500, 3e3), (2000, 1e5)]
            .into_iter()
            .enumerate()
    {
        let z = z_of(&draws(n, r, 100_000, 920 + seed as u64), &by_customers(n as usize, r));
        println!("n = {n}, r = {r}: z of chi-square {z:+.2}");
        assert!(z < 4.0, "n = {n}, r = {r}: {z}");
    }
}

/// The mean r (psi(r + n) - psi(r)) and the variance, mean + r^2 (psi'(r + n) - psi'(r)), added up term by term.
#[test]
fn very_many_customers_open_tables_with_the_right_mean_and_variance() {
    const DRAWS: usize = 20_000;
    for (seed, (n, r)) in [(100_000, 50.0), (100_000, 1e4), (1_000_000, 0.5), (3_000_000, 1e6), (20_000, 1e7)]
        .into_iter()
        .enumerate()
    {
        let open = |i: u64| r / (r + i as f64);
        let mean: f64 = (0..n).rev().map(open).sum();
        let variance: f64 = (0..n).rev().map(|i| open(i) * (1.0 - open(i))).sum();
        assert!((expected_tables(n as f64, r) / mean - 1.0).abs() < 1e-9, "n = {n}, r = {r}");
        let errors: Vec<f64> =
            draws(n, r, DRAWS, 940 + seed as u64).into_iter().map(|l| l as f64 - mean).collect();
        let number = DRAWS as f64;
        let z_mean = errors.iter().sum::<f64>() / number / (variance / number).sqrt();
        let square = errors.iter().map(|error| error * error).sum::<f64>() / number;
        // The excess kurtosis of a sum of Bernoulli draws is below 1 / variance.
        let z_variance = (square / variance - 1.0) / ((2.0 + 1.0 / variance) / number).sqrt();
        println!(
            "n = {n}, r = {r}: mean {mean:.1}, z {z_mean:+.2}; variance {variance:.1}, z {z_variance:+.2}"
        );
        assert!(z_mean.abs() < 4.0 && z_variance.abs() < 4.0, "n = {n}, r = {r}: {z_mean} {z_variance}");
    }
}

#[test]
fn expected_numbers_of_tables_keep_their_digits() {
    for (n, r) in [(3.0, 0.01), (7.0, 7e5 - 1.0), (7.0, 7e5 + 1.0), (1.0, 1e9), (2000.0, 1e9), (40.0, 1e-9)] {
        let exact: f64 = (0..n as u32).map(|i| r / (r + f64::from(i))).sum();
        let ours = expected_tables(n, r);
        assert!((ours / exact - 1.0).abs() < 1e-9, "n = {n}, r = {r}: {ours}, {exact}");
    }
}
