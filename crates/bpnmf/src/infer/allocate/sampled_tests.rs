//! Multinomial draws against their distribution, and the same on every machine.

use super::*;
use crate::counts::Counts;
use crate::infer::allocate::{self, Allocation};
use crate::infer::mask::compact;
use crate::infer::work::Work;
use crate::kernel::{Simd, Tile};
use crate::random::binomial::tests::{binomial_z, chi_square_z};

const FEATURES: usize = 32;
const COLUMNS: usize = 1000;

/// The components in a column of many others, the rest of the mask is off.
const ON: [usize; 5] = [19, 2, 7, 33, 16];
const COMPONENTS: usize = 40;

/// Z of the components [`ON`] at all entries of a matrix with `n` in some places and nothing elsewhere. `weights` are those
/// of the components in every column.
fn drawn(simd: Simd, n: u64, weights: &[f64], density: f64, iteration: u32) -> Vec<Vec<f64>> {
    let values: Vec<f64> = (0..FEATURES * COLUMNS)
        .map(|i| if ((i * 7) % 10) as f64 / 10.0 < density { n as f64 } else { 0.0 })
        .collect();
    let counts = Counts::from_dense(FEATURES, COLUMNS, values).unwrap();
    let mut dictionary = Dictionary::new(FEATURES, COMPONENTS);
    for k in 0..COMPONENTS {
        dictionary.row_mut(k).fill(1.0);
    }
    // Half of a weight is in W, half in H.
    let root = |i: usize| weights[i].sqrt() as f32;
    let (mut on, mut values) = ([0u16; 3], [Tile::ZERO; 3]);
    for (i, &k) in ON.iter().enumerate().take(weights.len()) {
        dictionary.row_mut(k).fill(root(i));
        on[k / LANES] |= 1 << (k % LANES);
        values[k / LANES].0[k % LANES] = root(i);
    }
    dictionary.settle();
    let task = Task {
        counts: &counts,
        dictionary: &dictionary,
        allocation: Allocation::Sampled,
        key: Key::new(800),
        iteration,
    };
    let (on, values) = (on.repeat(COLUMNS), values.repeat(COLUMNS));
    let (mut out, mut shares) = (vec![Allocated::default(); COLUMNS], vec![0.0; COLUMNS * COMPONENTS]);
    let mut scratch = allocate::Scratch::default();
    let mut works = Work::all_of(&counts, compact(&counts));
    allocate::share(simd, task, 0, &mut works, &on, &values, &mut out, &mut shares, &mut scratch);
    let mut given: Vec<Vec<f64>> = vec![Vec::new(); weights.len()];
    for (t, column) in out.iter().enumerate() {
        let mut sums = vec![0.0; FEATURES * COMPONENTS];
        add_up_drawn(simd, FEATURES, 0, &mut sums, core::slice::from_ref(column));
        for (i, given) in given.iter_mut().enumerate() {
            let row = &sums[ON[i] * FEATURES..][..FEATURES];
            assert_eq!(shares[t * COMPONENTS + ON[i]], row.iter().sum::<f64>());
            given.extend(counts.column(t).positive().map(|(f, _)| row[f]));
        }
    }
    given
}

/// Several iterations of [`drawn`].
fn many_drawn(n: u64, weights: &[f64], iterations: u32) -> Vec<Vec<f64>> {
    let mut all = vec![Vec::new(); weights.len()];
    for iteration in 0..iterations {
        // Columns of which all features are looked at, and those of which only the positive ones are.
        let density = if iteration % 2 == 0 { 0.9 } else { 0.1 };
        for (all, some) in all.iter_mut().zip(drawn(Simd::Auto, n, weights, density, iteration)) {
            all.extend(some);
        }
    }
    all
}

/// The probabilities that the weights in single precision stand for.
fn probabilities(weights: &[f64]) -> Vec<f64> {
    let rounded: Vec<f64> = weights.iter().map(|w| f64::from(w.sqrt() as f32).powi(2)).collect();
    let sum: f64 = rounded.iter().sum();
    rounded.iter().map(|w| w / sum).collect()
}

#[test]
fn few_counts_are_given_out_with_the_probabilities_of_all_outcomes() {
    for weights in [[0.5, 0.3, 0.2], [0.98, 0.0199, 0.0001], [1e-9, 1.0, 1e-3]] {
        let p = probabilities(&weights);
        for n in [1, 2, 3] {
            let given = many_drawn(n, &weights, 20);
            let (mut observed, mut expected) = (Vec::new(), Vec::new());
            for first in 0..=n {
                for second in 0..=n - first {
                    let outcome = [first, second, n - first - second].map(|z| z as f64);
                    let arrangements = [1.0, 1.0, 2.0, 6.0][n as usize]
                        / outcome.iter().map(|&z| [1.0, 1.0, 2.0, 6.0][z as usize]).product::<f64>();
                    let probability: f64 =
                        arrangements * outcome.iter().zip(&p).map(|(&z, &p)| p.powf(z)).product::<f64>();
                    let hits = (0..given[0].len()).filter(|&i| (0..3).all(|k| given[k][i] == outcome[k]));
                    observed.push(hits.count() as f64);
                    expected.push(probability * given[0].len() as f64);
                }
            }
            let z = chi_square_z(&observed, &expected);
            println!("{n} by {weights:?}: z of chi-square {z:+.2}");
            assert!(z < 4.0, "{n} by {weights:?}: {z}");
        }
    }
}

/// Every component by itself and every two of them together are binomial.
#[test]
fn any_number_of_counts_is_given_out_as_the_multinomial_says() {
    let thousandths = [0.4, 0.001, 0.25, 0.3, 0.049];
    // The first 16 bits of a count say nothing about 1e-5; about one of 1e12 counts goes to 1e-12.
    let tiny = [1e-5, 0.7, 1e-12, 2e-4, 0.3];
    let even = [1.0; 5];
    let mut tests = 0;
    for weights in [&thousandths[..], &tiny, &even, &even[..2], &even[..1]] {
        let p = probabilities(weights);
        for n in [1, 5, 31, 32, 33, 100, 128, 129, 150, 1000, 100_000, 1_000_000_000, 1_000_000_000_000] {
            let given = many_drawn(n, weights, 6);
            for i in 0..given.len() {
                for j in i..given.len() {
                    let together = if i == j { p[i] } else { p[i] + p[j] };
                    if together * given[0].len() as f64 * (n as f64) < 20.0 || together > 1.0 - 1e-9 {
                        continue;
                    }
                    let sums: Vec<f64> = given[i]
                        .iter()
                        .zip(&given[j])
                        .map(|(first, second)| if i == j { *first } else { first + second })
                        .collect();
                    let z = binomial_z(n as f64, together, &sums);
                    tests += 1;
                    // One of some 500 would be above 4 in one run of 60.
                    assert!(z < 4.5, "{n} by {weights:?}, components {i} and {j}: {z}");
                }
            }
            for at in 0..given[0].len() {
                assert_eq!(given.iter().map(|given| given[at]).sum::<f64>(), n as f64);
            }
        }
    }
    println!("{tests} tests of chi-square");
    assert!(tests > 500);
}

#[test]
fn every_machine_gives_out_the_same_counts() {
    let weights = [0.4, 1e-5, 0.25, 0.3, 0.049];
    for density in [0.1, 0.9] {
        for n in [1, 20, 128, 129, 10_000] {
            let plain = drawn(Simd::Plain, n, &weights, density, 3);
            for simd in [Simd::Avx512, Simd::Avx2] {
                assert!(drawn(simd, n, &weights, density, 3) == plain, "{simd:?}, {n}, {density}");
            }
        }
    }
}
