//! Why the components are visited in a fixed order: the kernel of a sweep, written out as a matrix.

use super::chi_square_tail;
use super::enumeration::{Fixed, random_problem};
use crate::infer::dictionary::stored;
use crate::infer::mask::{Known, Odds, Scratch, Sweep, sweep};
use crate::kernel::Simd;
use crate::random::{Key, Site};

const STATES: usize = 16;
type Distribution = [f64; STATES];

/// Five random columns of four components, with counts.
fn problems() -> impl Iterator<Item = Fixed> {
    (0..5).map(|seed| {
        let mut stream = Key::new(70 + seed).stream(Site::Synthesis, 1, 0, 0);
        let x = [[1.0 + stream.poisson(3.0), stream.poisson(3.0), stream.poisson(3.0)], [0.0; 3]];
        random_problem(4, 0.0, x, 70 + seed)
    })
}

/// P(S_k0 = 1 | the other sites of `mask`): the rule of the sweep, in its own terms.
fn conditional(fixed: &Fixed, k: usize, mask: usize) -> f64 {
    let others = mask & !(1 << k);
    if others == 0 && fixed.x[0].iter().any(|&x| x > 0.0) {
        return 1.0;
    }
    let part = |j: usize, f: usize| f64::from(stored(fixed.w[j][f])) * f64::from(stored(fixed.h[0][j]));
    let mut logit = fixed.logit[k];
    for f in 0..3 {
        let rest: f64 = (0..4).filter(|j| others >> j & 1 == 1).map(|j| part(j, f)).sum();
        logit -= part(k, f);
        if fixed.x[0][f] > 0.0 {
            logit += fixed.x[0][f] * (part(k, f) / rest).ln_1p();
        }
    }
    1.0 / (1.0 + (-logit).exp())
}

/// One visit to component k, applied to a distribution over masks.
fn visit(fixed: &Fixed, k: usize, before: &Distribution) -> Distribution {
    let mut after = [0.0; STATES];
    for mask in 0..STATES {
        let p = conditional(fixed, k, mask);
        after[mask | 1 << k] += before[mask] * p;
        after[mask & !(1 << k)] += before[mask] * (1.0 - p);
    }
    after
}

/// The distribution after a sweep from `mask` whose order may depend on it.
fn row(fixed: &Fixed, mask: usize, order: impl Fn(usize) -> [usize; 4]) -> Distribution {
    let mut start = [0.0; STATES];
    start[mask] = 1.0;
    order(mask).into_iter().fold(start, |at, k| visit(fixed, k, &at))
}

fn step(kernel: &[Distribution], before: &[f64]) -> Distribution {
    core::array::from_fn(|to| (0..STATES).map(|from| before[from] * kernel[from][to]).sum())
}

fn variation(p: &[f64], q: &[f64]) -> f64 {
    0.5 * p.iter().zip(q).map(|(p, q)| (p - q).abs()).sum::<f64>()
}

fn in_order(_: usize) -> [usize; 4] {
    [0, 1, 2, 3]
}

fn active_first(mask: usize) -> [usize; 4] {
    let mut order = in_order(mask);
    order.sort_by_key(|k| 1 - (mask >> k & 1));
    order
}

#[test]
fn a_fixed_order_keeps_the_distribution_of_the_mask_and_active_first_does_not() {
    for fixed in problems() {
        let target = fixed.column_distribution(0);
        let stationary = |order: fn(usize) -> [usize; 4]| {
            let kernel: Vec<_> = (0..STATES).map(|mask| row(&fixed, mask, order)).collect();
            let once = variation(&step(&kernel, &target), &target);
            let mut at = step(&kernel, &target);
            for _ in 0..2000 {
                at = step(&kernel, &at);
            }
            (once, variation(&at, &target))
        };
        let (fixed_once, fixed_long) = stationary(in_order);
        let (first_once, first_long) = stationary(active_first);
        println!("fixed {fixed_once:.1e} {fixed_long:.1e}, active first {first_once:.4} {first_long:.4}");
        assert!(fixed_once < 1e-12 && fixed_long < 1e-12);
        assert!(first_once > 1e-3 && first_long > 1e-3);
    }
}

#[test]
fn one_sweep_moves_from_every_mask_by_the_kernel_of_the_fixed_order() {
    const DRAWS: u32 = 20_000;
    let (mut least, mut rows) = (1.0f64, 0.0);
    for fixed in problems() {
        let (counts, dictionary) = (fixed.counts(), fixed.dictionary());
        let odds = Odds::new(fixed.logit.clone());
        let mut scratch = Scratch::default();
        for from in 0..STATES {
            let expected = row(&fixed, from, in_order).map(|p| p * f64::from(DRAWS));
            let mut seen = [0.0; STATES];
            let start = fixed.activations([from, 0]);
            let mut activations = start.clone();
            for i in 0..DRAWS {
                activations.clone_from(&start);
                let job = Sweep {
                    counts: &counts,
                    dictionary: &dictionary,
                    odds: &odds,
                    proposal: &Known,
                    key: Key::new(80),
                    number: from as u32 * DRAWS + i,
                };
                let (on, values) = activations.columns_mut(0, 2);
                sweep(Simd::Auto, &job, 0, on, values, &mut scratch);
                seen[usize::from(on[0])] += 1.0;
            }
            // Cells too rare for the test are taken together.
            let (mut value, mut cells, mut rare) = (0.0, 0, (0.0, 0.0));
            for to in 0..STATES {
                if expected[to] == 0.0 {
                    assert_eq!(seen[to], 0.0, "{from:04b} cannot become {to:04b}");
                } else if expected[to] < 10.0 {
                    rare = (rare.0 + seen[to], rare.1 + expected[to]);
                } else {
                    value += (seen[to] - expected[to]).powi(2) / expected[to];
                    cells += 1;
                }
            }
            if rare.1 >= 5.0 {
                value += (rare.0 - rare.1).powi(2) / rare.1;
                cells += 1;
            }
            least = least.min(chi_square_tail(value, cells - 1));
            rows += 1.0;
        }
    }
    println!("{rows} rows of kernels: least p {least:.2e}");
    assert!(least * rows > 1e-3);
}
