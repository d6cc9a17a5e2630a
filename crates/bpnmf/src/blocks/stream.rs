//! A fit to columns that come one batch after the other, and of which nobody knows how many there will be.

use super::BlockStatistics;
use super::leader::{BlockFit, KAPPA};
use super::{BlockSource, blocks_of};
use crate::counts::Counts;
use crate::error::Error;
use crate::infer::{BlockKey, Effort};
use crate::workers::Workers;

/// Sweeps of every column of a batch.
const EFFORT: Effort = Effort { burn_in: 4, kept: 4 };

impl BlockFit {
    /// One step with the columns of a batch that has not been seen before, as if all columns so far were like these.
    ///
    /// ```
    /// use bpnmf::*;
    /// let recipe = Recipe { features: 20, observations: 400, components: 4, gamma: GammaReading::Scale };
    /// let counts = recipe.draw(3)?.counts;
    /// let (first, next) = (counts.read(0..200)?, counts.read(200..400)?);
    /// let (job, _) = Plan { chains: Some(1), ..Plan::default() }.job(&first)?;
    /// let chains = job.run(&first, &Workers::serial(), |_| None, |_| |_: &TraceRow| true)?;
    /// let mut fit = BlockFit::begin(chains.fit(), &job.prior, &first, 200, 0);
    /// fit.partial_fit(&next, &Workers::serial())?;
    /// assert_eq!(fit.observations(), 400);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn partial_fit(&mut self, counts: &Counts, workers: &Workers) -> Result<(), Error> {
        let shared = self.drawn(self.steps);
        let (round, seed) = (self.steps, self.seed);
        let locals = workers.map(0..blocks_of(counts.observations()), |block| {
            let key = BlockKey { seed, round, block, place: block };
            shared.local(&BlockSource::block(counts, block)?, key, EFFORT, false, &workers.alone())
        });
        let mut all = BlockStatistics::empty(shared.features(), shared.components(), 0, 0);
        for local in locals {
            all.add(local?.statistics)?;
        }
        let before = self.observations as f64 / counts.observations() as f64;
        self.observations += counts.observations();
        self.steps += 1;
        // No more than the share of these columns in all so far, or early batches would be forgotten.
        let step = f64::from(self.steps + 1).powf(-KAPPA).min(1.0 / (1.0 + before).powf(KAPPA));
        self.blend(all, self.observations as f64, step)
    }

    /// How many columns it is a fit of.
    pub fn observations(&self) -> usize {
        self.observations
    }
}
