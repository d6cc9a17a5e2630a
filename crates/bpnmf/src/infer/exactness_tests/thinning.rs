//! Binomial thinning of the data.

use super::{compressed, dense_values, matrix};
use crate::counts::Counts;
use crate::random::{Key, Site};

#[test]
fn thinned_parts_add_up_exactly_and_do_not_depend_on_storage() {
    for (density, size) in [(0.1, 3.0), (0.8, 1e3), (0.5, 1e12)] {
        let dense = matrix(30, 25, density, size, 600);
        let (kept, held) = dense.thinned(0.1, 601).unwrap();
        let sums: Vec<f64> =
            dense_values(&kept).iter().zip(dense_values(&held)).map(|(kept, held)| kept + held).collect();
        assert_eq!(sums, dense_values(&dense));
        assert!(kept.first_fraction().is_none() && held.first_fraction().is_none());
        let (kept_too, held_too) = compressed(&dense).thinned(0.1, 601).unwrap();
        assert_eq!(dense_values(&kept_too), dense_values(&kept));
        assert_eq!(dense_values(&held_too), dense_values(&held));
    }
}

#[test]
fn thinned_counts_have_the_mean_and_variance_of_the_binomial() {
    let (rows, columns) = (100, 400);
    let n = (rows * columns) as f64;
    let mut seed = 610;
    for size in [1.0, 3.0, 10.0, 50.0, 1e3, 1e6, 1e9, 1e12, 1e15] {
        for fraction in [0.05, 0.4, 0.9] {
            seed += 1;
            let counts = Counts::from_dense(rows, columns, vec![size; rows * columns]).unwrap();
            let (_, held) = counts.thinned(fraction, seed).unwrap();
            // Around the mean, so that no digit of a large count is lost.
            let errors: Vec<f64> =
                dense_values(&held).into_iter().map(|held| held - size * fraction).collect();
            let variance = size * fraction * (1.0 - fraction);
            let fourth = 3.0 * variance * variance + variance * (1.0 - 6.0 * fraction * (1.0 - fraction));
            let mean = errors.iter().sum::<f64>() / n;
            let square = errors.iter().map(|error| error * error).sum::<f64>() / n;
            let z_mean = mean / (variance / n).sqrt();
            let z_variance = (square - variance) / ((fourth - variance * variance) / n).sqrt();
            println!(
                "x = {size:e}, {fraction}: z of the mean {z_mean:+.2}, of the variance {z_variance:+.2}"
            );
            assert!(z_mean.abs() < 4.0, "x = {size:e}, {fraction}: z of the mean {z_mean}");
            assert!(z_variance.abs() < 4.0, "x = {size:e}, {fraction}: z of the variance {z_variance}");
        }
    }
}

#[test]
fn parts_of_a_thinned_poisson_matrix_are_uncorrelated() {
    let (rows, columns, rate, fraction) = (100, 1000, 4.0, 0.3);
    let mut stream = Key::new(690).stream(Site::Synthesis, 0, 0, 0);
    let values = (0..rows * columns).map(|_| stream.poisson(rate)).collect();
    let (kept, held) = Counts::from_dense(rows, columns, values).unwrap().thinned(fraction, 691).unwrap();
    let n = (rows * columns) as f64;
    let products = dense_values(&kept)
        .into_iter()
        .zip(dense_values(&held))
        .map(|(kept, held)| (kept - (1.0 - fraction) * rate) * (held - fraction * rate));
    let covariance = products.sum::<f64>() / n;
    // Independent parts: the product has variance fraction (1 - fraction) rate^2.
    let z = covariance / ((fraction * (1.0 - fraction)).sqrt() * rate / n.sqrt());
    println!("covariance {covariance:.4}, z {z:+.2}");
    assert!(z.abs() < 4.0);
}
