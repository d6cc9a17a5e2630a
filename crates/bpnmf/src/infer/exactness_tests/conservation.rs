//! Every count is given to somebody, and to nobody twice.

use super::{compressed, matrix};
use crate::counts::Counts;
use crate::infer::activations::Activations;
use crate::infer::dictionary::{Dictionary, stored};
use crate::infer::local::{Allocation, LocalStep, Workspace};
use crate::infer::mask::{Known, Odds, Sweep};
use crate::random::{Key, Site};
use crate::workers::Workers;

const COMPONENTS: usize = 20;

/// Runs a local step on a random state; returns the mask it left and its sums.
fn allocate(
    counts: &Counts,
    allocation: Allocation,
    workers: &Workers,
    seed: u64,
) -> (Activations, Workspace) {
    let mut stream = Key::new(seed).stream(Site::Init, 0, 0, 0);
    let mut dictionary = Dictionary::new(counts.features(), COMPONENTS);
    for k in 0..COMPONENTS {
        // Small shapes put many entries at the floor.
        dictionary.row_mut(k).iter_mut().for_each(|w| *w = stored(stream.gamma(0.3)));
    }
    dictionary.settle();
    let mut activations = Activations::new(COMPONENTS, counts.observations());
    for t in 0..counts.observations() {
        for k in 0..COMPONENTS {
            activations.set(k, t, Some(stored(stream.gamma(1.0))));
            if stream.uniform() < 0.6 {
                activations.set(k, t, None);
            }
        }
    }
    let odds = Odds::new(vec![0.5; COMPONENTS]);
    let sweep = Sweep {
        counts,
        dictionary: &dictionary,
        odds: &odds,
        proposal: &Known,
        key: Key::new(seed),
        number: 0,
    };
    let local = LocalStep { sweep, sweeps: 1, allocation, iteration: 3 };
    let mut workspace = Workspace::default();
    workspace.start(counts, &dictionary);
    local.run(0..counts.observations(), &mut activations, workers, &mut workspace);
    workspace.finish(allocation, &dictionary);
    (activations, workspace)
}

/// The largest relative difference between the totals of X and those of Z, over rows and columns. Z of a zero row or
/// column must be zero itself.
fn largest_loss(counts: &Counts, allocation: Allocation, workers: &Workers, seed: u64) -> f64 {
    let (activations, workspace) = allocate(counts, allocation, workers, seed);
    let features = counts.features();
    let mut worst = 0.0f64;
    let mut compare = |given: f64, total: f64| {
        let error = if total == 0.0 { given } else { (given / total - 1.0).abs() };
        worst = worst.max(error);
    };
    for t in 0..counts.observations() {
        let given = activations.column(t).iter().map(|(k, _)| workspace.shares[t * COMPONENTS + k]).sum();
        compare(given, counts.column_totals()[t]);
    }
    for (f, total) in counts.row_totals().into_iter().enumerate() {
        compare((0..COMPONENTS).map(|k| workspace.stats.allocated[k * features + f]).sum(), total);
    }
    worst
}

fn matrices() -> Vec<Counts> {
    let mut all = Vec::new();
    for (features, observations, density, size) in
        [(40, 30, 0.6, 5.0), (40, 30, 0.1, 5.0), (1, 5, 1.0, 100.0), (9, 1, 1.0, 1e4), (30, 20, 0.5, 1e12)]
    {
        let dense = matrix(features, observations, density, size, 400);
        all.push(compressed(&dense));
        all.push(dense);
    }
    all.extend(awkward_matrices());
    all
}

/// Without counts, with one giant, with rows and columns that are empty or equal, with entries that are missing.
fn awkward_matrices() -> Vec<Counts> {
    let made = |value: &dyn Fn(usize, usize) -> f64| {
        let values = (0..12 * 10).map(|i| value(i % 12, i / 12)).collect();
        Counts::from_dense(12, 10, values).unwrap()
    };
    let every_third = || (0..=10).map(|t| 4 * t).collect();
    let thirds = [0, 3, 6, 9].repeat(10);
    vec![
        made(&|_, _| 0.0),
        made(&|f, t| if (f, t) == (5, 5) { 1e12 } else { 0.0 }),
        made(&|f, t| if (f, t) == (5, 5) { 1e12 } else { (f * t) as f64 }),
        made(&|f, _| 10f64.powi(f as i32)),
        made(&|_, t| 10f64.powi(t as i32 + 3)),
        made(&|f, t| if f == 2 || t == 7 { 0.0 } else { 1.0 }),
        made(&|f, t| (f + t) as f64).with_missing(every_third(), thirds).unwrap(),
    ]
}

#[test]
fn expected_allocations_add_up_to_the_counts_of_every_row_and_column() {
    let (serial, three) = (Workers::serial(), Workers::new(3).unwrap());
    let mut worst = 0.0f64;
    for (seed, counts) in matrices().iter().enumerate() {
        for workers in [&serial, &three] {
            worst = worst.max(largest_loss(counts, Allocation::Expected, workers, seed as u64));
        }
    }
    println!("largest relative loss {worst:.1e}");
    // In single precision: half an epsilon for every component in a rate, for each of 64 terms that are added up, and for six
    // roundings before and after. Of rates that a sweep has changed only 5e-6 is certain, but they are as good.
    assert!(worst < (COMPONENTS + 64 + 6) as f64 * f64::from(f32::EPSILON) / 2.0);
}

#[test]
fn sampled_allocations_add_up_exactly_even_for_counts_of_a_million_millions() {
    let (serial, three) = (Workers::serial(), Workers::new(3).unwrap());
    let mut largest = 0.0f64;
    for (seed, counts) in matrices().iter().enumerate() {
        largest = largest.max(counts.total());
        for workers in [&serial, &three] {
            assert_eq!(largest_loss(counts, Allocation::Sampled, workers, seed as u64), 0.0);
        }
    }
    assert!(largest > 1e13);
}

/// One column at a time is given out again and again: the mean and the variance of Z are those of the multinomial.
#[test]
fn sampled_allocations_have_the_mean_and_variance_of_the_multinomial() {
    const DRAWS: u32 = 20_000;
    let rows = [0.0, 1.0, 7.0, 500.0, 1e6, 1e12];
    let counts = Counts::from_dense(rows.len(), 1, rows.to_vec()).unwrap();
    let mut dictionary = Dictionary::new(rows.len(), 3);
    let mut stream = Key::new(410).stream(Site::Init, 0, 0, 0);
    for k in 0..3 {
        dictionary.row_mut(k).iter_mut().for_each(|w| *w = stored(0.2 + stream.gamma(1.0)));
    }
    dictionary.settle();
    let h = [0.5, 1.5, 1.0f32];
    // Odds so large that no site goes off.
    let odds = Odds::new(vec![1e15; 3]);
    let mut sums = vec![[0.0; 2]; 3 * rows.len()];
    let rate = |f: usize| (0..3).map(|k| f64::from(dictionary.row(k)[f]) * f64::from(h[k])).sum::<f64>();
    let p = |k: usize, f: usize| f64::from(dictionary.row(k)[f]) * f64::from(h[k]) / rate(f);
    let workers = Workers::serial();
    let mut workspace = Workspace::default();
    for iteration in 0..DRAWS {
        let mut activations = Activations::new(3, 1);
        (0..3).for_each(|k| activations.set(k, 0, Some(h[k])));
        let sweep = Sweep {
            counts: &counts,
            dictionary: &dictionary,
            odds: &odds,
            proposal: &Known,
            key: Key::new(411),
            number: 0,
        };
        let local = LocalStep { sweep, sweeps: 1, allocation: Allocation::Sampled, iteration };
        workspace.start(&counts, &dictionary);
        local.run(0..1, &mut activations, &workers, &mut workspace);
        workspace.finish(Allocation::Sampled, &dictionary);
        assert_eq!(activations.usage(), [1, 1, 1]);
        for k in 0..3 {
            for f in 0..rows.len() {
                let error = workspace.stats.allocated[k * rows.len() + f] - rows[f] * p(k, f);
                sums[k * rows.len() + f][0] += error;
                sums[k * rows.len() + f][1] += error * error;
            }
        }
    }
    let n = f64::from(DRAWS);
    for k in 0..3 {
        for f in 1..rows.len() {
            let variance = rows[f] * p(k, f) * (1.0 - p(k, f));
            let [mean, square] = sums[k * rows.len() + f].map(|sum| sum / n);
            let fourth = 3.0 * variance * variance + variance * (1.0 - 6.0 * p(k, f) * (1.0 - p(k, f)));
            let z_mean = mean / (variance / n).sqrt();
            let z_variance = (square - variance) / ((fourth - variance * variance) / n).sqrt();
            println!(
                "x = {:e}, k = {k}: z of the mean {z_mean:+.2}, of the variance {z_variance:+.2}",
                rows[f]
            );
            assert!(z_mean.abs() < 4.0 && z_variance.abs() < 4.0);
        }
    }
}
