//! Simulation-based calibration (Cook, Gelman & Rubin 2006; Talts et al. 2018): the truth is a draw from the posterior,
//! so its rank among the chain's draws is uniform.

use super::{
    FEATURES, OBSERVATIONS, chi_square_tail, counts_given, dense_values, inclusion, prior_draw, rate,
    tiny_prior,
};
use crate::counts::Counts;
use crate::infer::scatter::Scatter;
use crate::infer::{Batch, Engine, Gibbs, State};
use crate::random::{Key, Site, Stream};
use crate::workers::Workers;

const REPLICATES: u64 = 5000;
const DRAWS: usize = 19;
const THIN: u32 = 60;
pub(super) const NAMES: [&str; 8] =
    ["W00", "pi0", "sum log W", "sum H S", "sum S", "log p(X)", "sum Xhat", "used"];

/// `x` is dense, column after column.
fn statistics(state: &State, x: &[f64]) -> [f64; NAMES.len()] {
    let w = &state.dictionary;
    let (mut activation, mut on, mut log_likelihood, mut rates) = (0.0, 0.0, 0.0, 0.0);
    for t in 0..OBSERVATIONS {
        for (_, h) in state.activations.column(t).iter() {
            activation += f64::from(h);
            on += 1.0;
        }
        for f in 0..FEATURES {
            let (x, rate) = (x[t * FEATURES + f], rate(state, f, t));
            rates += rate;
            log_likelihood += if x > 0.0 { x * rate.ln() } else { 0.0 } - rate;
        }
    }
    let logs = (0..w.components()).map(|k| w.row(k).iter().map(|&w| f64::from(w)).product::<f64>().ln());
    let pi = inclusion(state.odds.logit()[0]);
    let used = state.activations.usage().iter().filter(|&&usage| usage > 0).count() as f64;
    [f64::from(w.row(0)[0]), pi, logs.sum(), activation, on, log_likelihood, rates, used]
}

/// p of the chi-square test that ranks are uniform, for every statistic. `redraw` draws X given the state.
pub(super) fn tails(
    engine: &Gibbs,
    scatter: Option<&Scatter>,
    redraw: impl Fn(&State, &mut Stream) -> Counts,
    (replicates, thin): (u64, u32),
    seed: u64,
) -> [f64; NAMES.len()] {
    let (prior, workers) = (tiny_prior(), Workers::serial());
    let mut seen = [[0.0; DRAWS + 1]; NAMES.len()];
    for replicate in 0..replicates {
        let key = Key::new(seed).derived(replicate);
        let mut stream = key.stream(Site::Synthesis, 0, 0, 0);
        let mut state = State { scatter: scatter.cloned(), ..prior_draw(&prior, &mut stream) };
        let counts = redraw(&state, &mut stream);
        let x = dense_values(&counts);
        let truth = statistics(&state, &x);
        let (mut below, mut ties) = ([0; NAMES.len()], [0; NAMES.len()]);
        for _ in 0..DRAWS {
            for _ in 0..thin {
                engine.step(&mut state, &Batch::all(&counts), &prior, key, &workers).unwrap();
            }
            for (i, value) in statistics(&state, &x).into_iter().enumerate() {
                below[i] += usize::from(value < truth[i]);
                ties[i] += usize::from(value == truth[i]);
            }
        }
        for i in 0..NAMES.len() {
            let above_ties = (stream.uniform() * (ties[i] + 1) as f64) as usize;
            seen[i][below[i] + above_ties] += 1.0;
        }
    }
    let expected = replicates as f64 / (DRAWS + 1) as f64;
    core::array::from_fn(|i| {
        let value: f64 = seen[i].iter().map(|n: &f64| (n - expected).powi(2) / expected).sum();
        let p = chi_square_tail(value, DRAWS);
        println!("{:>15} {:<9} chi-square {value:6.1} p {p:.2e}", engine.name(), NAMES[i]);
        p
    })
}

#[test]
fn gibbs_with_sampled_counts_ranks_the_truth_uniformly() {
    let tails =
        tails(&Gibbs { expected: false, ..Gibbs::default() }, None, counts_given, (REPLICATES, THIN), 200);
    let least = tails.into_iter().fold(1.0, f64::min);
    assert!(least * NAMES.len() as f64 > 1e-3, "least p {least:e}");
}

/// What the test above is worth: the same criterion refuses Algorithm 2 as printed.
#[test]
fn gibbs_with_expected_counts_does_not_rank_the_truth_uniformly() {
    let tails =
        tails(&Gibbs { expected: true, ..Gibbs::default() }, None, counts_given, (REPLICATES, THIN), 201);
    let sum_log_w = NAMES.iter().position(|name| *name == "sum log W").unwrap();
    assert!(tails[sum_log_w] * (NAMES.len() as f64) < 1e-3, "p {:e}", tails[sum_log_w]);
}
