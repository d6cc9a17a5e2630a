//! How counts scatter about their rates. Knows nothing of engines.

use crate::error::Error;
use crate::special::{ln, ln_1p, ln_gamma};

/// The distribution of a count about its rate.
///
/// ```
/// use bpnmf::Noise;
/// assert!(Noise::Scattered { alpha: 50.0 }.check().is_ok());
/// let error = Noise::Scattered { alpha: -1.0 }.check().unwrap_err();
/// assert_eq!(error.to_string(), "alpha is -1: it must be finite and above 0");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Noise {
    /// Variance lambda: the rate itself.
    #[default]
    Poisson,
    /// Negative binomial, variance lambda + lambda^2 / alpha: beyond counting noise a count scatters by 1 / sqrt(alpha) of
    /// its rate.
    Scattered {
        /// Finite and positive; the larger, the nearer to Poisson.
        alpha: f64,
    },
}

impl Noise {
    /// Errors unless alpha is finite and positive.
    pub fn check(self) -> Result<Self, Error> {
        match self {
            Self::Scattered { alpha } if !(alpha > 0.0 && alpha.is_finite()) => {
                Err(Error::BadOption { name: "alpha", value: alpha, range: "finite and above 0" })
            }
            _ => Ok(self),
        }
    }

    /// alpha; `None` for Poisson.
    pub fn alpha(self) -> Option<f64> {
        match self {
            Self::Poisson => None,
            Self::Scattered { alpha } => Some(alpha),
        }
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::Scattered { .. } => "scattered",
        }
    }

    /// log p(x) of a count with this rate. Every count where the rate is zero costs 691.
    pub fn ln_probability(self, x: f64, rate: f64) -> f64 {
        let ours = match self {
            Self::Poisson => x * ln(rate.max(LEAST_RATE)) - rate,
            Self::Scattered { alpha } => ln_scattered(x, rate, alpha),
        };
        ours - ln_gamma(x + 1.0)
    }

    /// How counts scatter, for people: one sentence.
    ///
    /// ```
    /// use bpnmf::Noise;
    /// let told = Noise::Scattered { alpha: 43.0 }.sentence();
    /// assert_eq!(told, "Counts scatter 15 % beyond counting noise (alpha = 43).");
    /// assert_eq!(Noise::Poisson.sentence(), "Counts scatter as Poisson counts do.");
    /// ```
    pub fn sentence(self) -> String {
        let Self::Scattered { alpha } = self else {
            return "Counts scatter as Poisson counts do.".to_owned();
        };
        let percent = 100.0 / alpha.sqrt();
        let percent = if percent < 0.1 { "less than 0.1".to_owned() } else { short(percent) };
        format!("Counts scatter {percent} % beyond counting noise (alpha = {}).", short(alpha))
    }
}

/// The smallest rate under a count, as bad as a rate can be.
pub(crate) const LEAST_RATE: f64 = 1e-300;

/// log p(x) of a count with the rate `rate` that scatters by `alpha`, without log x!.
pub(crate) fn ln_scattered(x: f64, rate: f64, alpha: f64) -> f64 {
    let silent = -alpha * ln_1p(rate / alpha);
    if x == 0.0 {
        silent
    } else {
        silent + ln_rising(alpha, x) + x * ln(rate.max(LEAST_RATE) / (alpha + rate))
    }
}

/// log (Gamma(alpha + x) / Gamma(alpha)), however large alpha is.
fn ln_rising(alpha: f64, x: f64) -> f64 {
    if alpha < 20.0 {
        return ln_gamma(alpha + x) - ln_gamma(alpha);
    }
    // Stirling's series, its large terms taken together.
    let rest = |z: f64| {
        let square = 1.0 / (z * z);
        (1.0 / 12.0 - square * (1.0 / 360.0 - square / 1260.0)) / z
    };
    let end = alpha + x;
    (alpha - 0.5) * ln_1p(x / alpha) - x + x * ln(end) + (rest(end) - rest(alpha))
}

/// A positive number for people: two digits, or all of those before the point while they are few.
fn short(value: f64) -> String {
    match value {
        1e-3..10.0 => format!("{value:.*}", (1.0 - value.log10().floor()) as usize),
        10.0..1e6 => format!("{value:.0}"),
        _ => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_of_scattered_counts_add_up_to_one_with_their_mean_and_variance() {
        for (rate, alpha) in [(0.3, 0.5), (7.0, 2.0), (7.0, 19.9), (7.0, 20.1), (40.0, 300.0), (3.0, 1e15)] {
            let [mut sum, mut mean, mut square] = [0.0; 3];
            for x in 0..4000 {
                let x = f64::from(x);
                let p = (ln_scattered(x, rate, alpha) - ln_gamma(x + 1.0)).exp();
                (sum, mean, square) = (sum + p, mean + x * p, square + x * x * p);
            }
            assert!((sum - 1.0).abs() < 1e-10, "{rate} {alpha}: {sum}");
            assert!((mean / rate - 1.0).abs() < 1e-9, "{rate} {alpha}: {mean}");
            let variance = square - mean * mean;
            assert!(
                (variance / (rate + rate * rate / alpha) - 1.0).abs() < 1e-8,
                "{rate} {alpha}: {variance}"
            );
        }
        // Where there is nearly no scatter the difference to a Poisson count is x (x - 1) / (2 alpha), and so on.
        let poisson = 5.0 * 3.0f64.ln() - 3.0;
        assert!((ln_scattered(5.0, 3.0, 1e15) - poisson).abs() < 1e-13);
        assert!(ln_scattered(1.0, 0.0, 8.0) < -680.0);
    }

    #[test]
    fn the_sentence_has_two_digits_at_any_scale() {
        for (alpha, told) in [
            (43.21, "15 % beyond counting noise (alpha = 43)."),
            (4.32, "48 % beyond counting noise (alpha = 4.3)."),
            (1.0, "100 % beyond counting noise (alpha = 1.0)."),
            (0.5, "141 % beyond counting noise (alpha = 0.50)."),
            (0.05, "447 % beyond counting noise (alpha = 0.050)."),
            (12_345.0, "0.90 % beyond counting noise (alpha = 12345)."),
            (1e15, "less than 0.1 % beyond counting noise (alpha = 1.0e15)."),
            (1e-9, "3.2e6 % beyond counting noise (alpha = 1.0e-9)."),
        ] {
            assert_eq!(Noise::Scattered { alpha }.sentence(), format!("Counts scatter {told}"));
        }
    }
}
