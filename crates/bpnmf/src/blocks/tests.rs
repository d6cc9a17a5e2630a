//! Fits of blocks: that it makes no difference who works on which block, that the local half samples what it says, and that
//! the components are those that made the data.

use super::*;
use crate::counts::Counts;
use crate::error::Error;
use crate::infer::dictionary::Dictionary;
use crate::infer::mask::Odds;
use crate::infer::{BlockKey, Effort, Local, Shared};
use crate::meanfield::tests::{low_rank, without_some};
use crate::noise::Noise;
use crate::plan::Plan;
use crate::random::{Key, Site};
use crate::run::TraceRow;
use crate::special::ln_gamma;
use crate::workers::Workers;

struct Nobody;

impl BlockObserver for Nobody {
    type Chain = fn(&TraceRow) -> bool;
    fn chain(&self, _: usize) -> Self::Chain {
        |_| true
    }
}

const EFFORT: Effort = Effort { burn_in: 2, kept: 3 };

fn shared(w: &[&[f32]], logit: &[f64], (shape, rate): (f64, f64)) -> Shared {
    let mut dictionary = Dictionary::new(w[0].len(), w.len());
    w.iter().enumerate().for_each(|(k, row)| dictionary.row_mut(k).copy_from_slice(row));
    dictionary.settle();
    let odds = Odds::new(logit.to_vec());
    Shared { dictionary, odds, shape, rate, coarsening: 1.0, noise: Noise::Poisson, whole: true }
}

/// Three components of seven features, and counts of eight blocks, the last one short, a few of their columns empty.
fn many() -> (Shared, Counts) {
    let w: [&[f32]; 3] = [
        &[2.0, 1.0, 0.1, 0.1, 0.1, 0.5, 1.0],
        &[0.1, 0.1, 2.0, 1.0, 0.1, 0.5, 1.0],
        &[0.1, 0.1, 0.1, 0.2, 3.0, 0.5, 0.1],
    ];
    let counts = low_rank(7, 7 * BLOCK_OBSERVATIONS + 100, 3, 1.0, 11);
    (shared(&w, &[0.0, 0.5, -1.0], (1.5, 0.8)), counts)
}

fn compressed(counts: &Counts) -> Counts {
    let (mut starts, mut rows, mut values) = (vec![0], Vec::new(), Vec::new());
    for t in 0..counts.observations() {
        counts.column(t).positive().for_each(|(f, x)| {
            rows.push(f as u32);
            values.push(x);
        });
        starts.push(rows.len());
    }
    Counts::from_sparse(counts.features(), counts.observations(), starts, rows, values).unwrap()
}

fn local(shared: &Shared, source: &dyn BlockSource, block: usize, workers: &Workers) -> Local {
    let key = BlockKey { seed: 5, round: 3, block, place: block };
    shared.local(&source.block(block).unwrap(), key, EFFORT, true, workers).unwrap()
}

#[test]
fn sums_of_blocks_have_the_same_bits_grouped_in_any_way_and_after_a_journey() {
    let (shared, counts) = many();
    let workers = Workers::serial();
    let all: Vec<BlockStatistics> =
        (0..counts.blocks()).map(|block| local(&shared, &counts, block, &workers).statistics).collect();
    let empty = || BlockStatistics::empty(7, 3, 0, 0);
    let sum = |blocks: &mut dyn Iterator<Item = usize>| {
        blocks.fold(empty(), |mut sum, block| {
            sum.add(BlockStatistics::from_bytes(&all[block].to_bytes()).unwrap()).unwrap();
            sum
        })
    };
    let whole = sum(&mut (0..8));
    assert_eq!(whole.columns(), counts.observations() as u64);
    // What is added up is no longer than one of them.
    assert_eq!(whole.to_bytes().len(), all[0].to_bytes().len());
    for groups in [1, 2, 7] {
        let strided = (0..groups).rev().map(|group| sum(&mut (group..8).step_by(groups)));
        let together = strided.fold(empty(), |mut all, group| {
            all.add(BlockStatistics::from_bytes(&group.to_bytes()).unwrap()).unwrap();
            all
        });
        assert_eq!(together, whole, "{groups} groups");
        assert_eq!(together.into_sums(), whole.clone().into_sums());
    }
}

#[test]
fn the_local_half_of_a_block_has_the_same_bits_dense_and_compressed_and_with_any_workers() {
    let (poisson, counts) = many();
    let scattered = Shared { noise: Noise::Scattered { alpha: 3.0 }, ..poisson.clone() };
    let expected = Shared { whole: false, ..poisson.clone() };
    let coarse = Shared { coarsening: 0.5, ..poisson.clone() };
    for shared in [poisson, scattered, expected, coarse] {
        let of = |counts: &Counts, threads: usize| local(&shared, counts, 7, &Workers::new(threads).unwrap());
        let one = of(&counts, 1);
        assert_eq!(one, of(&counts, 3));
        assert_eq!(one, of(&compressed(&counts), 1));
        assert_eq!(one, of(&compressed(&counts), 2));
    }
}

/// The joint probability of S = (s1, s2) and of x with H summed out on a grid, and the mean of H_1 S_1 times it.
fn on_a_grid(x: &[f64; 2], shared: &Shared, mask: [bool; 2]) -> (f64, f64) {
    let (c, d) = (shared.shape, shared.rate);
    let density = |h: f64| (c * d.ln() + (c - 1.0) * h.ln() - d * h - ln_gamma(c)).exp();
    const CELLS: usize = 1500;
    const END: f64 = 25.0;
    let width = END / CELLS as f64;
    let values = |on: bool| -> Vec<(f64, f64)> {
        if !on {
            return vec![(0.0, 1.0)];
        }
        (0..CELLS).map(|i| (i as f64 + 0.5) * width).map(|h| (h, density(h) * width)).collect()
    };
    let w = |k: usize, f: usize| f64::from(shared.dictionary.row(k)[f]);
    let (first, second) = (values(mask[0]), values(mask[1]));
    let (mut sum, mut mean) = (0.0, 0.0);
    for &(h, p) in &first {
        for &(j, q) in &second {
            let term = |f: usize| {
                let rate = w(0, f) * h + w(1, f) * j;
                if rate == 0.0 {
                    return if x[f] == 0.0 { 0.0 } else { f64::NEG_INFINITY };
                }
                x[f] * rate.ln() - rate
            };
            let mass = p * q * (term(0) + term(1)).exp();
            sum += mass;
            mean += mass * h;
        }
    }
    (sum, mean)
}

#[test]
fn the_local_half_averages_over_the_posterior_of_s_and_h_given_w_and_pi() {
    let w: [&[f32]; 2] = [&[2.0, 0.5], &[0.7, 1.5]];
    let shared = shared(&w, &[0.4, -0.3], (2.0, 0.9));
    let x = [4.0, 2.0];
    let odds = [0.4f64.exp(), (-0.3f64).exp()];
    let (mut total, mut on, mut mean) = (0.0, 0.0, 0.0);
    for mask in [[true, false], [false, true], [true, true]] {
        let prior = odds.iter().zip(mask).map(|(odds, on)| if on { *odds } else { 1.0 }).product::<f64>();
        let (sum, of_h) = on_a_grid(&x, &shared, mask);
        total += prior * sum;
        if mask[0] {
            on += prior * sum;
            mean += prior * of_h;
        }
    }
    let counts = Counts::from_dense(2, BLOCK_OBSERVATIONS, x.repeat(BLOCK_OBSERVATIONS)).unwrap();
    let effort = Effort { burn_in: 60, kept: 60 };
    let (mut usage, mut activation) = (Vec::new(), Vec::new());
    for block in 0..20 {
        let key = BlockKey { seed: 9, round: 0, block, place: block };
        let found = shared.local(&counts, key, effort, true, &Workers::serial()).unwrap();
        let average = |values: &[f32]| {
            values.iter().step_by(2).map(|&x| f64::from(x)).sum::<f64>() / BLOCK_OBSERVATIONS as f64
        };
        usage.push(average(&found.inclusion));
        activation.push(average(&found.activations));
        let sums = found.statistics.into_sums().unwrap();
        // Every count is given out, and what is on in the sums is what is on in the means.
        let given: f64 = sums.allocated.iter().sum();
        assert!((given / counts.total() - 1.0).abs() < 1e-12, "{given}");
        let columns = BLOCK_OBSERVATIONS as f64;
        assert!((sums.usage[0] / columns - usage[block]).abs() < 1e-6);
        // H itself and its mean given Z differ by noise alone.
        assert!((sums.activation[0] / columns / activation[block] - 1.0).abs() < 0.05);
    }
    let check = |name: &str, found: &[f64], expected: f64| {
        let n = found.len() as f64;
        let mean = found.iter().sum::<f64>() / n;
        let variance = found.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let error = (variance / n).sqrt();
        assert!((mean - expected).abs() < 4.0 * error, "{name}: {mean} +- {error}, not {expected}");
        assert!(error < 0.01 * expected, "{name}: an error of {error} tells nothing");
    };
    check("usage", &usage, on / total);
    check("activation", &activation, mean / total);
}

#[test]
fn missing_entries_and_empty_columns_are_left_out_of_the_sums() {
    let (shared, counts) = many();
    let counts = counts.picked(&(0..300).collect::<Vec<_>>());
    let key = BlockKey { seed: 1, round: 0, block: 0, place: 0 };
    let local = |counts: &Counts| shared.local(counts, key, EFFORT, true, &Workers::serial()).unwrap();
    let holes = without_some(&counts, 0.2, 3);
    let sums = local(&holes).statistics.into_sums().unwrap();
    let given: f64 = sums.allocated.iter().sum();
    assert!((given / holes.total() - 1.0).abs() < 1e-12);
    // The second feature was never observed: no activation was seen by it.
    assert!(sums.observed_activation(0, 1) < 1e-9 * sums.activation[0]);

    let empty = Counts::from_dense(7, 1, vec![0.0; 7]).unwrap();
    let with_empty = Counts::joined(&[empty.clone(), counts.clone(), empty.clone()]).unwrap();
    let found = local(&with_empty);
    let (columns, occupied) = (found.statistics.columns(), found.statistics.occupied());
    assert_eq!(columns, 302);
    assert_eq!(occupied, counts.column_totals().iter().filter(|total| **total > 0.0).count() as u64);
    assert!(found.inclusion[..3].iter().chain(&found.inclusion[301 * 3..]).all(|on| *on == 0.0));
    assert_eq!(found.statistics.into_sums(), local(&counts).statistics.into_sums());
    assert_eq!(local(&empty).statistics.into_sums(), None);
}

/// Cells of some of eight programs, the features of each by themselves but for some that all share.
fn cells(observations: usize) -> (Vec<f64>, Counts) {
    let (features, programs) = (60, 8);
    let key = Key::new(77);
    let w: Vec<f64> = (0..programs * features)
        .map(|i| {
            let (k, f) = (i / features, i % features);
            let base = key.stream(Site::Synthesis, 0, k as u32, f as u32).gamma(0.4);
            if f % programs == k { base + 1.0 } else { 0.3 * base }
        })
        .collect();
    let mut values = Vec::new();
    for t in 0..observations {
        let mut stream = key.stream(Site::Synthesis, 1, t as u32, 0);
        let on: Vec<f64> = (0..programs)
            .map(|k| {
                if stream.uniform() < 0.2 || k == t % programs { 8.0 * stream.gamma(3.0) / 3.0 } else { 0.0 }
            })
            .collect();
        for f in 0..features {
            let rate: f64 = (0..programs).map(|k| w[k * features + f] * on[k]).sum();
            values.push(stream.poisson(rate));
        }
    }
    (w, Counts::from_dense(features, observations, values).unwrap())
}

#[test]
fn a_fit_of_blocks_finds_the_programs_and_has_the_same_bits_with_any_threads_and_compressed() {
    let (w, counts) = cells(6000);
    let plan = Plan { seed: 2, chains: Some(1), ..Plan::default() };
    let fit = |counts: &Counts, threads: usize| {
        fit_blocks(counts, &plan, 1000, &Workers::new(threads).unwrap(), &Nobody).unwrap()
    };
    let found = fit(&counts, 2);
    let again = fit(&compressed(&counts), 1);
    assert_eq!(found.posterior, again.posterior);
    assert_eq!(found.fit, again.fit);
    let posterior = &found.posterior;
    assert_eq!((posterior.components(), found.survey.nonzeros), (8, counts.nonzeros()));
    assert!(posterior.share.is_sorted_by(|one, next| one >= next));
    for k in 0..8 {
        let program = &w[k * 60..][..60];
        let cosine = |j: usize| {
            let column: Vec<f64> = (0..60).map(|f| f64::from(posterior.dictionary[f * 8 + j])).collect();
            let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
            dot(&column, program) / (dot(&column, &column) * dot(program, program)).sqrt()
        };
        let best = (0..8).map(cosine).fold(0.0, f64::max);
        assert!(best > 0.999, "program {k}: {best}");
    }
    // The sums over columns are those of the means.
    let of_row =
        |values: &[f32], k: usize| values[k * 6000..][..6000].iter().map(|&x| f64::from(x)).sum::<f64>();
    for k in 0..8 {
        assert!((of_row(&posterior.inclusion, k) / posterior.usage[k] - 1.0).abs() < 1e-4);
    }
}

#[test]
fn what_cannot_be_used_is_refused_in_a_sentence() {
    let (shared, counts) = many();
    let key = BlockKey { seed: 5, round: 0, block: 0, place: 0 };
    let one = local(&shared, &counts, 0, &Workers::serial()).statistics;
    let mut twice = one.clone();
    let error = twice.add(one.clone()).unwrap_err();
    assert_eq!(error.to_string(), "a block would be counted twice");
    let other = BlockStatistics::empty(7, 2, 0, 0);
    assert!(twice.add(other).unwrap_err().to_string().contains("different models"));
    let bytes = one.to_bytes();
    for end in [0, 7, 40, bytes.len() / 2, bytes.len() - 1] {
        let error = BlockStatistics::from_bytes(&bytes[..end]).unwrap_err();
        assert!(matches!(error, Error::BadBlock { .. }), "{error}");
    }
    let fraction = Counts::from_dense(7, 1, vec![0.5; 7]).unwrap();
    let error = shared.local(&fraction, key, EFFORT, false, &Workers::serial()).unwrap_err();
    assert!(error.to_string().contains("which is not a whole number"), "{error}");
    let narrow = Counts::from_dense(2, 1, vec![1.0; 2]).unwrap();
    let error = shared.local(&narrow, key, EFFORT, false, &Workers::serial()).unwrap_err();
    assert_eq!(error.to_string(), "number of features is 2: it must be that of the fit");
}
