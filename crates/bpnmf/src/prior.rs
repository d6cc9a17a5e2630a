//! The prior: six positive numbers and the truncation level. Unchecked in, checked out.

use crate::error::Error;
use crate::special::{ln, ln_gamma};

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
}

impl Default for Prior {
    fn default() -> Self {
        Self { a: 0.5, b: 0.5, c: 5.0, d: 5.0, a0: 1.0, b0: 1.0, components: 500 }
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
    /// The numbers as they were given.
    pub fn get(&self) -> Prior {
        self.numbers
    }
}
