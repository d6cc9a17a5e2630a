//! How often intervals of rates cover the true ones.

use bpnmf::{Observer, Standing, TraceRow};

/// Smaller rates are not asked for: their intervals are the prior's.
pub(super) const LEAST_RATE: f64 = 5.0;

/// The ends of an interval.
const QUANTILES: (f64, f64) = (0.05, 0.95);

/// The rates of every iteration at the entries whose true rate is known and large enough.
pub(super) struct Draws<'a> {
    /// The true rates, column after column; empty if they are not known.
    truth: &'a [f64],
    rates: Vec<Vec<f64>>,
}

impl<'a> Draws<'a> {
    pub(super) fn new(truth: &'a [f64]) -> Self {
        Self { truth, rates: Vec::new() }
    }

    /// The share of the true rates within the intervals of the draws after the burn-in; `None` if there is none to ask for.
    pub(super) fn coverage(&self, burn_in: usize) -> Option<f64> {
        let truth: Vec<f64> = self.truth.iter().copied().filter(|rate| *rate > LEAST_RATE).collect();
        let draws = self.rates.get(burn_in..).filter(|draws| !draws.is_empty())?;
        let covers = |(i, truth): (usize, &f64)| {
            let mut drawn: Vec<f64> = draws.iter().map(|rates| rates[i]).collect();
            drawn.sort_by(f64::total_cmp);
            (quantile(&drawn, QUANTILES.0)..=quantile(&drawn, QUANTILES.1)).contains(truth)
        };
        let covered = truth.iter().enumerate().filter(|entry| covers(*entry)).count();
        (!truth.is_empty()).then(|| covered as f64 / truth.len() as f64)
    }
}

impl Observer for Draws<'_> {
    fn step(&mut self, _: &TraceRow) -> bool {
        true
    }

    fn stands(&mut self, standing: &Standing<'_>) -> bool {
        // Rows and columns without counts are not sampled: then entries would be mistaken for each other.
        if let Some(rates) = standing.rates().filter(|rates| rates.len() == self.truth.len()) {
            let asked = rates.into_iter().zip(self.truth).filter(|(_, truth)| **truth > LEAST_RATE);
            self.rates.push(asked.map(|(rate, _)| rate).collect());
        }
        true
    }
}

/// The quantile p of n sorted draws, at p (n + 1) counted from one: of so many draws and the truth, all from one distribution,
/// the truth is below it with the probability p.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let at = (p * (sorted.len() + 1) as f64 - 1.0).clamp(0.0, (sorted.len() - 1) as f64);
    let (below, between) = (at as usize, at.fract());
    let above = sorted[(below + 1).min(sorted.len() - 1)];
    sorted[below] + between * (above - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_and_draws_of_one_distribution_are_covered_as_often_as_they_should() {
        let mut stream = bpnmf::bench::stream(7);
        let mut draw = || (0..4000).map(|_| 10.0 + stream.gamma(3.0)).collect::<Vec<f64>>();
        let truth = draw();
        let rates: Vec<Vec<f64>> = (0..45).map(|_| draw()).collect();
        let coverage = Draws { truth: &truth, rates: rates.clone() }.coverage(5).unwrap();
        assert!((coverage - 0.9).abs() < 0.02, "{coverage}");
        assert_eq!(Draws { truth: &truth, rates }.coverage(45), None);
    }

    #[test]
    fn small_rates_are_not_asked_for() {
        let draws = Draws { truth: &[1.0, 20.0], rates: vec![vec![19.0], vec![21.0]] };
        assert_eq!((draws.coverage(0), draws.coverage(1)), (Some(1.0), Some(0.0)));
        assert_eq!(Draws { truth: &[1.0], rates: vec![vec![]] }.coverage(0), None);
    }
}
