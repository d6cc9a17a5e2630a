//! Where blocks come from. Knows no files: those who read them say what is wrong.

use super::{blocks_of, columns_of};
use crate::counts::Counts;
use crate::error::Error;
use core::ops::Range;

/// A matrix whose columns are had block by block: in memory, in a file, anywhere.
pub trait BlockSource: Sync {
    /// F, the number of rows.
    fn features(&self) -> usize;

    /// T, the number of columns.
    fn observations(&self) -> usize;

    /// Some columns, which the fit asks for block by block, several at a time from several threads, and again in every round.
    fn read(&self, columns: Range<usize>) -> Result<Counts, Error>;

    /// A block.
    fn block(&self, block: usize) -> Result<Counts, Error> {
        self.read(columns_of(block, self.observations()))
    }

    /// How many blocks there are.
    fn blocks(&self) -> usize {
        blocks_of(self.observations())
    }
}

impl BlockSource for Counts {
    fn features(&self) -> usize {
        Counts::features(self)
    }

    fn observations(&self) -> usize {
        Counts::observations(self)
    }

    fn read(&self, columns: Range<usize>) -> Result<Counts, Error> {
        Ok(self.picked(&columns.collect::<Vec<_>>()))
    }
}
