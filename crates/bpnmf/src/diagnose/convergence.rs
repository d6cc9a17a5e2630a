//! Whether chains agree: R-hat and effective sample size. Knows numbers only, not what they measure.
//!
//! A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Buerkner, "Rank-normalization, folding, and localization:
//! an improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16 (2021).

use crate::special::normal_quantile;

/// The fewest values of a chain from which anything is said: its halves need two each.
const LEAST_LENGTH: usize = 4;

/// R-hat of one quantity over chains of equal length: 1 when the chains cannot be told apart, above it when they can.
///
/// Chains are split in halves, so one chain is enough. Values are replaced by normal scores of their ranks, and the
/// larger one of two R-hats is given: that of the values, and that of their distances from the median, which also sees
/// chains that differ in spread alone.
///
/// A quantity that never moves has R-hat 1; one that stands still in every half-chain, but at different values, has
/// an infinite one. `None` if the chains have fewer than four values or different lengths, or a value is not finite.
///
/// ```
/// let apart = [vec![1.0, 2.0, 1.5, 1.2, 1.9, 1.1], vec![8.0, 9.0, 8.5, 8.2, 8.9, 8.1]];
/// assert!(bpnmf::r_hat(&apart).is_some_and(|r_hat| r_hat > 1.5));
/// assert_eq!(bpnmf::r_hat(&[vec![1.0, 2.0, 3.0]]), None);
/// ```
pub fn r_hat(chains: &[Vec<f64>]) -> Option<f64> {
    let halves = split(chains)?;
    let median = median(&halves);
    let folded: Vec<Vec<f64>> =
        halves.iter().map(|half| half.iter().map(|value| (value - median).abs()).collect()).collect();
    let of_ranks = |halves: &[Vec<f64>]| if constant(halves) { 1.0 } else { plain_r_hat(&scores(halves)) };
    Some(of_ranks(&halves).max(of_ranks(&folded)))
}

/// Effective sample size of one quantity over chains of equal length, for the bulk of its distribution.
///
/// `None` if the chains have fewer than four values or different lengths, if a value is not finite, or if the quantity
/// never moves.
///
/// ```
/// let chain: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 40)).collect();
/// assert!(bpnmf::bulk_ess(&[chain]).is_some_and(|ess| ess > 10.0));
/// assert_eq!(bpnmf::bulk_ess(&[vec![5.0; 40]]), None);
/// ```
pub fn bulk_ess(chains: &[Vec<f64>]) -> Option<f64> {
    let halves = split(chains)?;
    if constant(&halves) {
        return None;
    }
    let scores = scores(&halves);
    let (n, draws) = (scores[0].len(), (scores.len() * scores[0].len()) as f64);
    let moments: Vec<(f64, f64)> = scores.iter().map(|half| moments(half)).collect();
    let centred: Vec<Vec<f64>> = scores
        .iter()
        .zip(&moments)
        .map(|(half, (mean, _))| half.iter().map(|value| value - mean).collect())
        .collect();
    let within = mean(moments.iter().map(|(_, variance)| *variance));
    let total = total_variance(&moments, n);
    // rho_t of the paper: the correlation at a lag, from the autocovariances of all halves.
    let correlation = |lag: usize| {
        let covariance = mean(centred.iter().map(|half| {
            half.iter().zip(&half[lag..]).map(|(early, late)| early * late).sum::<f64>() / n as f64
        }));
        1.0 - (within - covariance) / total
    };
    // Geyer's initial monotone sequence: sums of neighbours, as long as they are positive, and never rising.
    let (mut even, mut odd) = (1.0, correlation(1));
    let (mut lag, mut least, mut pairs) = (2, f64::INFINITY, 0.0);
    while even + odd > 0.0 && lag + 2 < n {
        least = (even + odd).min(least);
        pairs += least;
        (even, odd) = (correlation(lag), correlation(lag + 1));
        lag += 2;
    }
    // The pair that ends the sequence: its even half still lowers the bias.
    let end = if even > 0.0 || even + odd >= 0.0 { even } else { 0.0 };
    let time = 2.0 * pairs - 1.0 + end;
    // An antithetic chain can beat independent draws, but not by more than can be told from so few.
    Some(draws / time.max(1.0 / draws.log10()))
}

/// The first and the last half of every chain; the middle value of an odd number is left out.
fn split(chains: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let length = chains.first()?.len();
    let usable = |chain: &Vec<f64>| chain.len() == length && chain.iter().all(|value| value.is_finite());
    if length < LEAST_LENGTH || !chains.iter().all(usable) {
        return None;
    }
    let half = length / 2;
    let halves = chains.iter().flat_map(|chain| [&chain[..half], &chain[length - half..]]);
    Some(halves.map(<[f64]>::to_vec).collect())
}

fn constant(chains: &[Vec<f64>]) -> bool {
    chains.iter().flatten().all(|value| *value == chains[0][0])
}

fn median(chains: &[Vec<f64>]) -> f64 {
    let mut values: Vec<f64> = chains.concat();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { 0.5 * (values[middle - 1] + values[middle]) }
}

/// z of the paper: normal scores of the ranks among all chains; equal values share the mean of their ranks.
fn scores(chains: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let length = chains[0].len();
    let values = chains.concat();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let (mut scores, mut before) = (vec![0.0; values.len()], 0);
    for tied in order.chunk_by(|&i, &j| values[i] == values[j]) {
        let rank = before as f64 + (tied.len() + 1) as f64 / 2.0;
        let score = normal_quantile((rank - 0.375) / (values.len() as f64 + 0.25));
        tied.iter().for_each(|&i| scores[i] = score);
        before += tied.len();
    }
    scores.chunks(length).map(<[f64]>::to_vec).collect()
}

/// R-hat of values that are not all equal.
fn plain_r_hat(chains: &[Vec<f64>]) -> f64 {
    let moments: Vec<(f64, f64)> = chains.iter().map(|chain| moments(chain)).collect();
    let within = mean(moments.iter().map(|(_, variance)| *variance));
    (total_variance(&moments, chains[0].len()) / within).sqrt()
}

/// var+ of the paper: the variance of the quantity as all chains together see it, from the moments of chains of length `n`.
fn total_variance(moments_of_chains: &[(f64, f64)], n: usize) -> f64 {
    let within = mean(moments_of_chains.iter().map(|(_, variance)| *variance));
    let means: Vec<f64> = moments_of_chains.iter().map(|(mean, _)| *mean).collect();
    within * (n as f64 - 1.0) / n as f64 + moments(&means).1
}

/// Mean and variance; of equal values exactly that value and zero.
fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values[0] + mean(values.iter().map(|value| value - values[0]));
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, squares / (values.len() as f64 - 1.0))
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sequence that any language makes to the last bit: x = keep x + u - 1/2 with u from a congruential generator.
    fn sequence(length: usize, seed: u64, keep: f64) -> Vec<f64> {
        let (mut state, mut x) = (seed, 0.0);
        (0..length)
            .map(|_| {
                state = (state * 1_103_515_245 + 12_345) % (1 << 31);
                x = keep * x + (state as f64 / f64::from(1u32 << 31) - 0.5);
                x
            })
            .collect()
    }

    fn sequences(length: usize, seeds: core::ops::RangeInclusive<u64>, keep: f64) -> Vec<Vec<f64>> {
        seeds.map(|seed| sequence(length, seed, keep)).collect()
    }

    /// The numbers are those of ArviZ 0.23.4 for the same sequences: `arviz.rhat(x, method="rank")` and
    /// `arviz.ess(x, method="bulk")`. It refuses R-hat for a single chain; there they are put together from its
    /// `_split_chains`, `_z_scale` and `_rhat`, as its `rhat` does.
    #[test]
    fn r_hat_and_ess_are_those_of_arviz() {
        let mut shifted = sequences(101, 1..=3, 0.5);
        for (i, chain) in shifted.iter_mut().enumerate() {
            chain.iter_mut().for_each(|x| *x += 0.2 * (i + 1) as f64);
        }
        let mut trend = sequences(80, 7..=7, 0.3);
        trend[0].iter_mut().enumerate().for_each(|(i, x)| *x += 0.02 * i as f64);
        let mut whole = sequences(120, 1..=4, 0.8);
        whole.iter_mut().flatten().for_each(|x| *x = (2.0 * *x).floor());
        let mut wider = sequences(100, 1..=2, 0.2);
        wider[1].iter_mut().for_each(|x| *x *= 4.0);
        let cases = [
            ("independent", sequences(100, 1..=4, 0.0), 0.999_025_639_047_651_4, 369.895_446_248_470_9),
            ("slow", sequences(250, 1..=4, 0.9), 1.037_927_593_391_528_6, 77.523_625_541_849_36),
            ("shifted, odd length", shifted, 1.099_833_296_152_300_5, 30.733_472_964_022_29),
            ("antithetic", sequences(60, 5..=6, -0.8), 0.990_739_033_046_479_6, 249.501_749_525_714_96),
            ("one chain, a trend", trend, 1.602_952_895_261_439_8, 1.827_907_050_657_812_1),
            ("whole numbers, many equal", whole, 1.040_325_336_107_567, 80.981_656_158_361_02),
            ("one wider than the other", wider, 1.286_261_330_565_199, 106.378_281_884_339_09),
            ("five values", sequences(5, 9..=9, 0.2), 0.899_562_406_440_356_8, 2.408_239_965_311_849_6),
            ("eight values", sequences(8, 9..=10, 0.2), 0.997_288_449_392_998_3, 19.265_919_722_494_797),
        ];
        for (name, chains, theirs, their_ess) in cases {
            let (ours, our_ess) = (r_hat(&chains).unwrap(), bulk_ess(&chains).unwrap());
            assert!((ours / theirs - 1.0).abs() < 1e-12, "{name}: R-hat {ours}, theirs {theirs}");
            assert!((our_ess / their_ess - 1.0).abs() < 1e-11, "{name}: ESS {our_ess}, theirs {their_ess}");
        }
    }

    #[test]
    fn what_never_moves_agrees_and_what_stands_still_elsewhere_does_not() {
        let still = vec![vec![7.0; 30]; 3];
        assert_eq!((r_hat(&still), bulk_ess(&still)), (Some(1.0), None));
        let elsewhere = vec![vec![7.0; 30], vec![7.0; 30], vec![8.0; 30]];
        assert_eq!(r_hat(&elsewhere), Some(f64::INFINITY));
        assert!(bulk_ess(&elsewhere).is_some_and(|ess| ess > 0.0 && ess < 30.0));
        // The distances from the median are all equal: only the values themselves count.
        let mirrored = vec![[1.0, 2.0].repeat(20), [2.0, 1.0].repeat(20)];
        assert!(r_hat(&mirrored).is_some_and(|r_hat| r_hat <= 1.0));
    }

    #[test]
    fn what_says_nothing_is_none_and_never_a_number() {
        assert_eq!(r_hat(&[]), None);
        assert_eq!(bulk_ess(&[vec![]]), None);
        for chains in [vec![vec![1.0, 2.0, 3.0]], vec![vec![1.0; 9], vec![2.0; 8]]] {
            assert_eq!((r_hat(&chains), bulk_ess(&chains)), (None, None));
        }
        for bad in [f64::NAN, f64::INFINITY] {
            let chains = [vec![1.0, 2.0, bad, 3.0, 4.0, 5.0]];
            assert_eq!((r_hat(&chains), bulk_ess(&chains)), (None, None));
        }
    }
}
