//! In which rounds the blocks are worked on: a plan that depends on their number alone.

use super::blocks_of;
use crate::infer::Effort;

/// Passes over all blocks in steps, before the whole pass.
const PASSES: usize = 2;

/// Steps of a pass, if there are so many blocks.
const STEPS: usize = 12;

/// Sweeps of a column in a step, in the whole pass, and in the last one.
const STEP: Effort = Effort { burn_in: 3, kept: 3 };
const WHOLE: Effort = Effort { burn_in: 4, kept: 4 };
const LAST: Effort = Effort { burn_in: 8, kept: 16 };

/// What a round is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// A step along the natural gradient on some of the blocks, W and pi drawn from q.
    Step,
    /// W and pi from all blocks at once, given their means.
    Whole,
    /// The means of H S and S of every column, given W and pi as they are found.
    Means,
}

/// One round: local work on some blocks, all of which can be done at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Round {
    /// From 0.
    pub number: u32,
    /// What it is for.
    pub stage: Stage,
    /// The numbers of its blocks, increasing.
    pub blocks: Vec<usize>,
    /// Sweeps of every column.
    pub effort: Effort,
}

impl Stage {
    /// Its name for those who watch.
    pub fn name(self) -> &'static str {
        match self {
            Self::Step => "passes",
            Self::Whole => "whole pass",
            Self::Means => "last pass",
        }
    }
}

/// All rounds of a fit of so many columns. A step takes blocks at equal distances, so that each sees all
/// stretches of the data.
pub(super) fn rounds(observations: usize) -> Vec<Round> {
    let blocks = blocks_of(observations);
    let steps = blocks.min(STEPS);
    let of_step = |step: usize| (step..blocks).step_by(steps).collect();
    let mut rounds: Vec<(Stage, Vec<usize>, Effort)> =
        (0..PASSES * steps).map(|i| (Stage::Step, of_step(i % steps), STEP)).collect();
    rounds.push((Stage::Whole, (0..blocks).collect(), WHOLE));
    rounds.push((Stage::Means, (0..blocks).collect(), LAST));
    let numbered = |(number, (stage, blocks, effort))| Round { number, stage, blocks, effort };
    (0..).zip(rounds).map(numbered).collect()
}
