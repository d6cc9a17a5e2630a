//! The prior: six positive numbers and the truncation level. Unchecked in, checked out.

use crate::error::Error;
use crate::special::{ln, ln_gamma};

/// The prior of the number of components.
///
/// Under the beta process prior no number is asked for: pi_k ~ Beta(a0 / K, b0 (K - 1) / K) for all K slots of the truncated
/// model, and most are never on. With any other, a slot is in the model or not, the number of those that are has the
/// distribution that is named, which ones is uniform, and pi_k ~ Beta(a0, b0) for those that are.
///
/// ```
/// use bpnmf::ComponentsPrior;
/// assert_eq!(ComponentsPrior::read("poisson:8")?, ComponentsPrior::Poisson(8.0));
/// assert!(ComponentsPrior::read("poisson").is_err() && ComponentsPrior::read("geometric:1").is_err());
/// # Ok::<(), bpnmf::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum ComponentsPrior {
    /// What the beta process says.
    #[default]
    BetaProcess,
    /// Every number is as probable as every other.
    Uniform,
    /// Poisson with this mean.
    Poisson(f64),
    /// Each number less probable than the one before by the factor 1 - p.
    Geometric(f64),
}

impl ComponentsPrior {
    /// From `beta-process`, `uniform`, `poisson:MEAN` or `geometric:P`.
    pub fn read(text: &str) -> Result<Self, Error> {
        let (name, number) = match text.trim().split_once(':') {
            Some((name, number)) => (name, Some(number.trim().parse::<f64>().unwrap_or(f64::NAN))),
            None => (text.trim(), None),
        };
        match (name, number) {
            ("beta-process", None) => Ok(Self::BetaProcess),
            ("uniform", None) => Ok(Self::Uniform),
            ("poisson", Some(mean)) if mean > 0.0 && mean <= 1e6 => Ok(Self::Poisson(mean)),
            ("geometric", Some(p)) if p > 0.0 && p < 1.0 => Ok(Self::Geometric(p)),
            _ => Err(Error::BadComponentsPrior { text: text.to_owned() }),
        }
    }

    /// Its name, as it is read.
    pub fn name(self) -> String {
        match self {
            Self::BetaProcess => "beta-process".to_owned(),
            Self::Uniform => "uniform".to_owned(),
            Self::Poisson(mean) => format!("poisson:{mean}"),
            Self::Geometric(p) => format!("geometric:{p}"),
        }
    }

    /// log of the probability that this set of `number` slots of `slots` is in the model, but for a constant.
    pub(crate) fn ln_of_set(self, number: usize, slots: usize) -> f64 {
        let n = number as f64;
        let of_number = match self {
            Self::BetaProcess | Self::Uniform => 0.0,
            Self::Poisson(mean) => n * ln(mean) - ln_gamma(n + 1.0),
            Self::Geometric(p) => n * ln(1.0 - p),
        };
        of_number + ln_gamma(n + 1.0) + ln_gamma((slots - number) as f64 + 1.0) - ln_gamma(slots as f64 + 1.0)
    }
}

/// The parameters of the model as a person gives them; [`Prior::check`] makes them usable.
///
/// `W_fk ~ Gamma(a, b)`, `H_kt ~ Gamma(c, d)` (shape, rate), `pi_k ~ Beta(a0 / K, b0 (K - 1) / K)`. The default is the
/// paper's.
///
/// ```
/// let prior = bpnmf::Prior { components: 50, ..Default::default() }.check()?;
/// assert_eq!(prior.a(), 0.5);
/// assert!(bpnmf::Prior { components: 0, ..Default::default() }.check().is_err());
/// # Ok::<(), bpnmf::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prior {
    /// Shape of W.
    pub a: f64,
    /// Rate of W.
    pub b: f64,
    /// Shape of H.
    pub c: f64,
    /// Rate of H.
    pub d: f64,
    /// Mass of the beta process: about a0 / b0 components are on in a column a priori.
    pub a0: f64,
    /// Concentration of the beta process.
    pub b0: f64,
    /// K, the truncation level: the most components there can be.
    pub components: usize,
    /// The prior of the number of components. Any but the beta process prior needs [`crate::Gibbs`] with
    /// [`crate::Jumps`].
    pub number: ComponentsPrior,
}

impl Default for Prior {
    fn default() -> Self {
        Self {
            a: 0.5,
            b: 0.5,
            c: 5.0,
            d: 5.0,
            a0: 1.0,
            b0: 1.0,
            components: 500,
            number: ComponentsPrior::BetaProcess,
        }
    }
}

/// A [`Prior`] whose numbers are in range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CheckedPrior {
    numbers: Prior,
    /// log Gamma(a) - a log b of W, and the same of H.
    constants: [f64; 2],
}

impl Prior {
    /// The prior of the authors' published code: sparser in both factors than the paper's.
    pub fn authors_code() -> Self {
        Self { a: 0.1, b: 0.1, c: 0.1, d: 0.1, ..Self::default() }
    }

    /// Errors unless every parameter is positive and K is between 1 and a million.
    pub fn check(self) -> Result<CheckedPrior, Error> {
        let numbers =
            [("a", self.a), ("b", self.b), ("c", self.c), ("d", self.d), ("a0", self.a0), ("b0", self.b0)];
        for (name, value) in numbers {
            if !(1e-6..=1e9).contains(&value) {
                return Err(Error::BadPrior { name, value, range: "between 1e-6 and 1e9" });
            }
        }
        if !(1..=1_000_000).contains(&self.components) {
            return Err(Error::BadPrior {
                name: "K",
                value: self.components as f64,
                range: "between 1 and 1000000 components",
            });
        }
        let constant = |shape: f64, rate: f64| ln_gamma(shape) - shape * ln(rate);
        Ok(CheckedPrior { numbers: self, constants: [constant(self.a, self.b), constant(self.c, self.d)] })
    }
}

impl CheckedPrior {
    /// Shape of W.
    pub fn a(&self) -> f64 {
        self.numbers.a
    }
    /// Rate of W.
    pub fn b(&self) -> f64 {
        self.numbers.b
    }
    /// Shape of H.
    pub fn c(&self) -> f64 {
        self.numbers.c
    }
    /// Rate of H.
    pub fn d(&self) -> f64 {
        self.numbers.d
    }
    /// log Gamma(a) - a log b.
    pub(crate) fn constant_w(&self) -> f64 {
        self.constants[0]
    }
    /// log Gamma(c) - c log d.
    pub(crate) fn constant_h(&self) -> f64 {
        self.constants[1]
    }
    /// K.
    pub fn components(&self) -> usize {
        self.numbers.components
    }
    /// a0 / K, the first parameter of pi.
    pub fn pi_on(&self) -> f64 {
        self.numbers.a0 / self.numbers.components as f64
    }
    /// b0 (K - 1) / K, the second parameter of pi. For K = 1, where the paper's formula gives 0 and no
    /// distribution, it is b0.
    pub fn pi_off(&self) -> f64 {
        let k = self.numbers.components as f64;
        if self.numbers.components == 1 { self.numbers.b0 } else { self.numbers.b0 * (k - 1.0) / k }
    }
    /// The prior of the number of components.
    pub fn number(&self) -> ComponentsPrior {
        self.numbers.number
    }
    /// The shapes of pi of a slot that is in the model.
    pub(crate) fn shapes_of_pi(&self) -> (f64, f64) {
        match self.numbers.number {
            ComponentsPrior::BetaProcess => (self.pi_on(), self.pi_off()),
            _ => (self.numbers.a0, self.numbers.b0),
        }
    }
    /// The numbers as they were given.
    pub fn get(&self) -> Prior {
        self.numbers
    }
}
