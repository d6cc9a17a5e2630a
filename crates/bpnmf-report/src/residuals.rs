//! Residuals against expected counts, with the band in which most of them should be. Knows nothing of how they are laid out.

use crate::chart;
use crate::frame::{Axis, Height, figure, framed};
use crate::report::{Data, Model, Report};
use bpnmf::{Counts, Noise};

/// The most points.
const MOST_POINTS: usize = 2500;

/// Entries that are expected to have less than this say little one by one.
const LEAST_EXPECTED: f64 = 0.5;

/// The residuals that are shown go from minus this to this; those beyond stand at the edge.
const EDGE: f64 = 5.0;

/// Half the width of the band: about 95 % are within it.
const BAND: f64 = 2.0;

/// An entry: the count that was expected, and the residual over its standard deviation.
type Point = (f64, f64);

/// How counts scatter: their noise, and by how much its variance is multiplied.
type Scatter = (Noise, f64);

/// The standard deviation of a count.
fn deviation((noise, factor): Scatter, expected: f64) -> f64 {
    let variance = noise.alpha().map_or(expected, |alpha| expected + expected * expected / alpha);
    (factor * variance).sqrt()
}

/// Observed entries, evenly chosen if there are many.
fn points(counts: &Counts, model: &Model<'_>, scatter: Scatter) -> Vec<Point> {
    let entries = counts.features() * counts.observations();
    // Twice as many, since some are expected to have next to nothing.
    let every = entries.div_ceil(2 * MOST_POINTS).max(1);
    let mut points = Vec::new();
    for t in 0..counts.observations() {
        // Other features in every column, or some would never be seen.
        let first = t % every;
        let (mut positive, mut missing) =
            (counts.column(t).positive().peekable(), counts.missing(t).iter().peekable());
        for f in (first..counts.features()).step_by(every) {
            while positive.next_if(|at| at.0 < f).is_some() {}
            while missing.next_if(|at| (**at as usize) < f).is_some() {}
            let x = positive.peek().filter(|at| at.0 == f).map_or(0.0, |at| at.1);
            let part = |k: usize| model.weight(f, k) * f64::from(model.activation(k)[t]);
            let expected: f64 = (0..model.components()).map(part).sum();
            let observed = missing.peek().is_none_or(|at| **at as usize != f);
            if observed && expected >= LEAST_EXPECTED {
                points.push((expected, (x - expected) / deviation(scatter, expected)));
            }
        }
    }
    let step = points.len().div_ceil(MOST_POINTS).max(1);
    points.into_iter().step_by(step).collect()
}

/// The figure; nothing if the data are no counts, or hardly anything is expected anywhere.
pub(crate) fn section(report: &Report<'_>) -> String {
    let (Data::Counts(counts), None) = (report.data, &report.sound) else {
        return String::new();
    };
    let scatter = (report.noise, report.variance_factor.unwrap_or(1.0));
    let points = points(counts, &report.model, scatter);
    let most = points.iter().map(|point| point.0).fold(0.0, f64::max);
    if points.len() < 10 || most < 2.0 * LEAST_EXPECTED {
        return String::new();
    }
    let range = (most / LEAST_EXPECTED).ln();
    let place = |(expected, residual): Point| {
        let y = residual.clamp(-EDGE, EDGE) / (2.0 * EDGE) + 0.5;
        ((expected / LEAST_EXPECTED).ln() / range, y)
    };
    let line = |of: &dyn Fn(f64) -> f64| -> Vec<(f64, f64)> {
        let along = (0..=40).map(|i| LEAST_EXPECTED * (range * f64::from(i) / 40.0).exp());
        along.map(|expected| place((expected, of(expected)))).collect()
    };
    let mut curves: Vec<chart::Curve> = vec![(line(&|_| BAND), "curve"), (line(&|_| -BAND), "curve")];
    let inside = points.iter().filter(|point| point.1.abs() <= BAND).count();
    let mut about = format!(
        "Each dot is an entry: the count less what was expected, over the standard deviation that the model expects. \
         About 95 of 100 should be between the two lines; here it is {:.0} of 100.",
        100.0 * inside as f64 / points.len() as f64
    );
    if scatter != (Noise::Poisson, 1.0) {
        let counting = |expected: f64| BAND * expected.sqrt() / deviation(scatter, expected);
        curves.push((line(&counting), "counting"));
        curves.push((line(&|expected| -counting(expected)), "counting"));
        about += " The dashed ones are where counting noise alone would end.";
    }
    let dots: Vec<(f64, f64)> = points.into_iter().map(place).collect();
    let picture = chart::dots(&dots, &curves, "residuals by expected count");
    let x = Axis::logarithmic("expected count", LEAST_EXPECTED, most);
    let y = Axis::numbers("residual", -EDGE, EDGE, 5);
    let body = framed(&picture, &x, &y, Height::Tall);
    format!(
        "<section>\n<h2>How counts scatter</h2>\n<div class=\"pair\">\n{}</div>\n</section>\n",
        figure("Residuals", &body, &about)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residuals_are_of_observed_entries_and_over_the_deviation_of_the_noise() {
        let counts = Counts::from_dense(3, 2, vec![4.0, 1.0, 0.0, 9.0, 16.0, 0.0]).unwrap();
        let counts = counts.with_missing(vec![0, 0, 1], vec![1]).unwrap();
        let each = [1.0];
        let model = Model {
            features: 3,
            observations: 2,
            dictionary: &[4.0, 1.0, 0.1],
            activations: &[1.0, 4.0],
            inclusion: &[1.0, 1.0],
            pi: &each,
            share: &each,
            usage: &each,
            evidence: None,
        };
        let found = points(&counts, &model, (Noise::Poisson, 1.0));
        assert_eq!(found, [(4.0, 0.0), (1.0, 0.0), (16.0, -7.0 / 4.0)]);
        let found = points(&counts, &model, (Noise::Scattered { alpha: 16.0 }, 1.0));
        assert_eq!(found[2], (16.0, -7.0 / 32.0f64.sqrt()));
        let found = points(&counts, &model, (Noise::Poisson, 4.0));
        assert_eq!(found[2], (16.0, -7.0 / 8.0));
    }
}
