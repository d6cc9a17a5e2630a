//! The stop rule: whether an objective has settled. Knows nothing of models.

/// When to stop: the objective is averaged over windows, and two windows in a row must agree with the one before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StopRule {
    /// Iterations in a window.
    pub window: usize,
    /// Relative change below which two windows agree.
    pub tolerance: f64,
}

impl Default for StopRule {
    fn default() -> Self {
        Self { window: 20, tolerance: 1e-4 }
    }
}

impl StopRule {
    /// Whether the objective, one value an iteration, and the number of components have settled.
    ///
    /// Windows agree when their means differ by less than the tolerance or by less than two standard errors of the
    /// difference, and the number of components differs by no more than one.
    pub fn settled(&self, objective: &[f64], components: &[usize]) -> bool {
        let w = self.window;
        if w < 2 || !objective.len().is_multiple_of(w) || objective.len() < 3 * w {
            return false;
        }
        let windows = objective.len() / w;
        let agree = |last: usize| {
            let (mean, variance) = moments(&objective[last * w..(last + 1) * w]);
            let (before, variance_before) = moments(&objective[(last - 1) * w..last * w]);
            let error = ((variance + variance_before) / w as f64).sqrt();
            let moved = components[(last + 1) * w - 1].abs_diff(components[last * w - 1]);
            (mean - before).abs() < (self.tolerance * mean.abs()).max(2.0 * error) && moved <= 1
        };
        agree(windows - 1) && agree(windows - 2)
    }
}

fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rising_objective_does_not_stop_and_a_flat_one_does() {
        let rule = StopRule::default();
        let rising: Vec<f64> = (0..100).map(|i| -1e6 + 1e4 * f64::from(i)).collect();
        let wobble = |i: i32| if i % 2 == 0 { 3.0 } else { -3.0 };
        let flat: Vec<f64> = (0..60).map(|i| -1e6 + wobble(i)).collect();
        assert!(!rule.settled(&rising, &[5; 100]));
        assert!(rule.settled(&flat, &[5; 60]));
        assert!(!rule.settled(&flat[..40], &[5; 40]), "two windows are not enough");
        let mut falling = vec![50; 60];
        falling[59] = 40;
        assert!(!rule.settled(&flat, &falling), "the number of components still moves");
    }
}
