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
}
