//! Engines behind one trait: state is carried on, info is returned. An engine knows nothing of time, files or stopping.

pub(crate) mod activations;
pub(crate) mod allocate;
mod chunks;
mod conditionals;
pub(crate) mod dictionary;
pub(crate) mod draws;
mod encode;
#[cfg(test)]
mod exactness_tests;
mod full;
pub(crate) mod gibbs;
mod jumps;
pub(crate) mod local;
pub(crate) mod map;
pub(crate) mod mask;
#[cfg(test)]
mod mask_tests;
pub(crate) mod nb_process;
pub(crate) mod project;
pub(crate) mod scatter;
pub(crate) mod ssmf;
pub(crate) mod state;
mod stateless;
pub(crate) mod work;

use crate::counts::Counts;
use crate::error::Error;
use crate::noise::Noise;
use crate::prior::CheckedPrior;
use crate::random::Key;
use crate::search::Found;
use crate::workers::Workers;
use core::ops::Range;
pub use gibbs::Gibbs;
pub use jumps::{Jumped, Jumps};
pub use map::Map;
pub use mask::Tiers;
pub use nb_process::NbProcess;
pub use project::{AssignOptions, Assigned, Basis, ProjectOptions, Projection};
pub use ssmf::{Gradient, Ssmf};
use state::Slots;
pub use state::{Info, State};
pub use stateless::{BlockKey, Effort, Local, Shared};

/// Where a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Init {
    /// "Randomly", as the authors' code reads it: W and H near 1 whatever the scale of the data, every second site on.
    #[default]
    Random,
    /// On the scale of the data: W is noise around the mean column, five components are on in a column.
    Scaled,
}

/// The columns a step works on.
#[derive(Debug, Clone)]
pub struct Batch<'a> {
    /// The whole matrix.
    pub counts: &'a Counts,
    /// The columns of this step.
    pub columns: Range<usize>,
}

impl<'a> Batch<'a> {
    /// All columns.
    pub fn all(counts: &'a Counts) -> Self {
        Self { counts, columns: 0..counts.observations() }
    }

    /// T over the number of columns in the batch.
    pub(crate) fn scale(&self) -> f64 {
        self.counts.observations() as f64 / self.columns.len() as f64
    }
}

/// An inference algorithm.
pub trait Engine: Sync {
    /// Its name on the command line and in reports.
    fn name(&self) -> &'static str;

    /// Errors if it cannot work on this data.
    fn check(&self, counts: &Counts) -> Result<(), Error>;

    /// Iterations below which the result means nothing yet.
    fn least_iterations(&self) -> usize {
        0
    }

    /// Of a run that ended after `iterations`, how many at its beginning say nothing about the result.
    fn burn_in(&self, iterations: usize) -> usize {
        iterations / 2
    }

    /// The state a run starts from.
    fn init(&self, counts: &Counts, prior: &CheckedPrior, key: Key) -> State;

    /// One iteration over a batch of columns.
    fn step(
        &self,
        state: &mut State,
        batch: &Batch<'_>,
        prior: &CheckedPrior,
        key: Key,
        workers: &Workers,
    ) -> Result<Info, Error>;

    /// The noise of the counts without a search before it, which says what it is.
    fn noise(&self) -> Noise {
        Noise::Poisson
    }

    /// Whether it knows counts that scatter more than Poisson counts.
    fn scatters(&self) -> bool {
        false
    }

    /// The state a run starts from when a search went before it.
    fn start(&self, found: &Found) -> State {
        found.state()
    }

    /// What the state says about the model.
    fn slots<'a>(&self, state: &'a State) -> Slots<'a>;
}
