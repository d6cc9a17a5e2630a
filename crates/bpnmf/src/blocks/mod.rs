//! A fit of data that are larger than memory, or on several machines: a search on a sample of the columns, and then rounds over
//! blocks of columns, of which each gives sums that add up. It knows no files, no engines' loops and no network.

mod additive;
mod leader;
mod outcome;
mod rounds;
mod run;
mod sample;
mod source;
mod stream;
#[cfg(test)]
mod tests;
mod travel;

pub use additive::BlockStatistics;
pub use leader::BlockFit;
pub use outcome::{BlockMeans, Found as BlockFound, Survey};
pub use rounds::{Round, Stage};
pub use run::{BlockObserver, Blocks, fit_blocks};
pub use sample::{SAMPLE, sample_columns};
pub use source::BlockSource;

use core::ops::Range;

/// Columns of a block.
pub const BLOCK_OBSERVATIONS: usize = 1024;

/// How many blocks there are of so many columns.
pub fn blocks_of(observations: usize) -> usize {
    observations.div_ceil(BLOCK_OBSERVATIONS)
}

/// The columns of a block.
pub fn columns_of(block: usize, observations: usize) -> Range<usize> {
    let first = block * BLOCK_OBSERVATIONS;
    first..(first + BLOCK_OBSERVATIONS).min(observations)
}
