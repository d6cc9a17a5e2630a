//! Expected counts for rates and counts of any size.

use super::*;
use crate::infer::dictionary::stored;
use crate::kernel::doubles::{Line, flat_lines};

const FEATURES: usize = 40;
const COLUMNS: usize = 70;
const COMPONENTS: usize = 3;

/// Counts, W and H: rates near 10^power in all places, or there and near 1 by turns.
fn problem(power: f64, mixed: bool, density: f64) -> (Counts, Dictionary, Vec<Tile>) {
    let near = |i: usize, j: usize| 10f64.powf(0.3 * ((i * 7 + j * 5) % 11) as f64 - 1.5);
    let mut dictionary = Dictionary::new(FEATURES, COMPONENTS);
    for k in 0..COMPONENTS {
        for (f, w) in dictionary.row_mut(k).iter_mut().enumerate() {
            let size = if mixed && f % 3 == 0 { 0.0 } else { 0.5 * power };
            *w = stored(near(f, k) * 10f64.powf(size));
        }
    }
    dictionary.settle();
    let values = (0..COLUMNS)
        .map(|t| {
            let mut tile = Tile::ZERO;
            let size = if mixed && t % 2 == 0 { 0.0 } else { 0.5 * power };
            (0..COMPONENTS).for_each(|k| tile.0[k] = stored(near(t, k) * 10f64.powf(size)));
            tile
        })
        .collect();
    let x = |i: usize| {
        let empty = ((i * 7) % 10) as f64 / 10.0 >= density;
        if empty { 0.0 } else { [1.0, 3.7, 1e-9, 1e12, 1e15, 250.0][i % 6] }
    };
    let counts = Counts::from_dense(FEATURES, COLUMNS, (0..FEATURES * COLUMNS).map(x).collect()).unwrap();
    (counts, dictionary, values)
}

/// The sums over features, those over columns (without W), and log-likelihoods.
fn allocated(
    simd: Simd,
    counts: &Counts,
    dictionary: &Dictionary,
    values: &[Tile],
) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let allocation = Allocation::Expected;
    let task = Task { counts, dictionary, allocation, key: Key::new(0), iteration: 0 };
    let (mut out, mut shares) = (vec![Allocated::default(); COLUMNS], vec![0.0; COLUMNS * COMPONENTS]);
    let mut scratch = Scratch::default();
    let mut works = Work::all_of(counts, compact(counts));
    share(simd, task, 0, &mut works, &[0b111; COLUMNS], values, &mut out, &mut shares, &mut scratch);
    let lines = 2 * FEATURES.div_ceil(LANES);
    let mut sums = vec![Line::ZERO; COMPONENTS * lines];
    add_up(simd, counts, &mut sums, 0, &out, &mut scratch);
    let sums = sums.chunks(lines).flat_map(|sums| flat_lines(sums)[..FEATURES].to_vec()).collect();
    (shares, sums, out.iter().map(|column| column.log_likelihood).collect())
}

/// Half an epsilon for the three components in a rate, for each of the 64 terms that are added up, and for six roundings.
const TOLERANCE: f64 = (3.0 + 64.0 + 6.0) * f32::EPSILON as f64 / 2.0;

#[test]
fn expected_counts_are_right_for_any_rate_and_the_same_bits_on_every_machine() {
    for density in [0.9, 0.1] {
        for mixed in [false, true] {
            for power in -76..=36 {
                let (counts, dictionary, values) = problem(f64::from(power), mixed, density);
                assert_eq!(compact(&counts), density < 0.2);
                let plain = allocated(Simd::Plain, &counts, &dictionary, &values);
                for simd in [Simd::Avx512, Simd::Avx2] {
                    let ours = allocated(simd, &counts, &dictionary, &values);
                    assert!(ours == plain, "{simd:?}, 1e{power}");
                }
                let (shares, sums, log_likelihoods) = plain;
                let part = |f: usize, t: usize, k: usize| {
                    f64::from(dictionary.row(k)[f]) * f64::from(values[t].0[k])
                };
                let mut exact = (vec![0.0; shares.len()], vec![0.0; sums.len()]);
                for t in 0..COLUMNS {
                    let (mut log, mut scale) = (0.0, 0.0);
                    for (f, x) in counts.column(t).positive() {
                        let rate: f64 = (0..COMPONENTS).map(|k| part(f, t, k)).sum();
                        for k in 0..COMPONENTS {
                            exact.0[t * COMPONENTS + k] += x * part(f, t, k) / rate;
                            exact.1[k * FEATURES + f] += x / rate * f64::from(values[t].0[k]);
                        }
                        log += x * rate.ln();
                        scale += x * (1.0 + rate.ln().abs());
                    }
                    let total: f64 = (0..FEATURES)
                        .flat_map(|f| (0..COMPONENTS).map(move |k| (f, k)))
                        .map(|(f, k)| part(f, t, k))
                        .sum();
                    let error = (log_likelihoods[t] - (log - total)).abs();
                    assert!(error <= 1e-6 * (scale + total), "1e{power}, column {t}: {error}");
                }
                for (what, ours, exact) in [("site", &shares, &exact.0), ("feature", &sums, &exact.1)] {
                    for (i, (&ours, &exact)) in ours.iter().zip(exact).enumerate() {
                        assert!(
                            (ours - exact).abs() <= TOLERANCE * exact,
                            "1e{power}, mixed {mixed}, density {density}, {what} {i}: {ours}, {exact}"
                        );
                    }
                }
            }
        }
    }
}
