//! How counts scatter about their rates. Knows nothing of engines.

use crate::error::Error;

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
