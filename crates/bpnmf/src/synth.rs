//! Synthetic counts with known truth: the recipe of section 4.1 of the paper.

use crate::counts::Counts;
use crate::error::Error;
use crate::random::{Key, Site};

/// How `Gamma(A, B)` in the recipe is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GammaReading {
    /// Shape and rate, as everywhere else in the paper. 1 / B has no mean: single counts go above 10^5.
    #[default]
    Rate,
    /// Shape and scale: mild counts, 5 to 7 on average.
    Scale,
}

/// What to synthesise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recipe {
    /// F.
    pub features: usize,
    /// T.
    pub observations: usize,
    /// L, the components of the generator; about a fifth of them are on in more than 1 % of the columns.
    pub components: usize,
    /// How the gamma distributions are read.
    pub gamma: GammaReading,
}

impl Default for Recipe {
    fn default() -> Self {
        Self { features: 75, observations: 1000, components: 100, gamma: GammaReading::Rate }
    }
}

/// Counts and the parameters they were drawn from.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Synthetic {
    /// X.
    pub counts: Counts,
    /// W, F x L by rows.
    pub dictionary: Vec<f64>,
    /// H, L x T by rows.
    pub activations: Vec<f64>,
    /// S, L x T by rows.
    pub mask: Vec<bool>,
    /// pi, length L.
    pub pi: Vec<f64>,
}

impl Synthetic {
    /// The true components that are on in at least 1 % of the columns, and in at least one.
    pub fn true_components(&self) -> usize {
        let observations = self.counts.observations();
        let least = crate::infer::state::least_usage(observations);
        self.mask
            .chunks(observations)
            .filter(|on| on.iter().filter(|on| **on).count() as f64 >= least)
            .count()
    }
}

impl Recipe {
    /// Draws parameters and counts.
    ///
    /// ```
    /// let synthetic = bpnmf::Recipe { observations: 50, ..Default::default() }.draw(1)?;
    /// assert_eq!(synthetic.counts.features(), 75);
    /// # Ok::<(), bpnmf::Error>(())
    /// ```
    pub fn draw(&self, seed: u64) -> Result<Synthetic, Error> {
        let (features, observations, components) = (self.features, self.observations, self.components);
        if components == 0 {
            return Err(Error::BadOption { name: "components", value: 0.0, range: "at least 1" });
        }
        let key = Key::new(seed);
        // A gamma draw whose shape and second parameter are themselves Gamma(hyper, hyper) draws.
        let draw = |part: u32, i: usize, j: usize, hyper: f64| {
            let mut stream = key.stream(Site::Synthesis, part, i as u32, j as u32);
            let shape = stream.gamma(hyper) / hyper;
            let second = stream.gamma(hyper) / hyper;
            let unit = stream.gamma(shape);
            match self.gamma {
                GammaReading::Rate => unit / second,
                GammaReading::Scale => unit * second,
            }
        };
        let dictionary: Vec<f64> =
            (0..features * components).map(|i| draw(0, i / components, i % components, 1.0)).collect();
        let activations: Vec<f64> = (0..components * observations)
            .map(|i| draw(1, i / observations, i % observations, 5.0))
            .collect();
        let pi: Vec<f64> = (0..components)
            .map(|l| {
                1.0 / (1.0 + (-key.stream(Site::Synthesis, 2, l as u32, 0).logit_beta(0.05, 0.95)).exp())
            })
            .collect();
        let mask: Vec<bool> = (0..components * observations)
            .map(|i| {
                let (l, t) = (i / observations, i % observations);
                key.stream(Site::Synthesis, 3, l as u32, t as u32).uniform() < pi[l]
            })
            .collect();
        let mut values = Vec::with_capacity(features.saturating_mul(observations));
        for t in 0..observations {
            let mut stream = key.stream(Site::Synthesis, 4, t as u32, 0);
            for f in 0..features {
                let rate: f64 = (0..components)
                    .filter(|l| mask[l * observations + t])
                    .map(|l| dictionary[f * components + l] * activations[l * observations + t])
                    .sum();
                values.push(stream.poisson(rate));
            }
        }
        let counts = Counts::from_dense(features, observations, values)?;
        Ok(Synthetic { counts, dictionary, activations, mask, pi })
    }
}
