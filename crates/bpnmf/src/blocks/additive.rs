//! The sums over blocks as everybody sees them: they add up to the same bits in whatever order, and travel as bytes.

use crate::checkpoint::bytes::{Reader, Writer, bad};
use crate::error::Error;
use crate::statistics::{Statistics, Sums};

/// How these bytes begin, and their version.
const MAGIC: u64 = u64::from_le_bytes(*b"bpnmfST1");

/// Sums over the columns of some blocks of the allocated counts, the activations and the mask: all that a round asks of the data.
///
/// They add up by a fixed tree over the numbers of the blocks, so it makes no difference who had which blocks and who added
/// what first. Every block may be in it once.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockStatistics {
    features: usize,
    components: usize,
    /// Columns of these blocks, and those of them with counts.
    columns: u64,
    occupied: u64,
    sums: Statistics,
}

impl BlockStatistics {
    /// Of columns that are known by their number alone.
    pub(crate) fn empty(features: usize, components: usize, columns: usize, occupied: usize) -> Self {
        let (columns, occupied) = (columns as u64, occupied as u64);
        Self { features, components, columns, occupied, sums: Statistics::default() }
    }

    pub(crate) fn put(&mut self, sums: Statistics) {
        self.sums = sums;
    }

    /// How many columns it is of.
    pub fn columns(&self) -> u64 {
        self.columns
    }

    /// How many of them have counts.
    pub(crate) fn occupied(&self) -> u64 {
        self.occupied
    }

    /// F and K.
    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.features, self.components)
    }

    /// The sums over all blocks that are in it; `None` if they have no counts.
    pub(crate) fn into_sums(mut self) -> Option<Sums> {
        self.sums.take(&mut Vec::new())
    }

    /// Adds those over other blocks. Errors if a block is in both, or if they are of another model.
    pub fn add(&mut self, other: Self) -> Result<(), Error> {
        if self.shape() != other.shape() {
            return Err(Error::BadBlock {
                reason: "sums over blocks of different models cannot be added".into(),
            });
        }
        if self.sums.overlaps(&other.sums) {
            return Err(Error::BadBlock { reason: "a block would be counted twice".into() });
        }
        self.columns += other.columns;
        self.occupied += other.occupied;
        self.sums.add(other.sums, &mut Vec::new());
        Ok(())
    }

    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = Writer::new(&mut bytes);
        let numbers = [MAGIC, self.features as u64, self.components as u64, self.columns, self.occupied];
        let written = numbers.into_iter().try_for_each(|number| out.u64(number));
        written.and_then(|()| self.sums.write(&mut out)).expect("memory takes all bytes");
        bytes
    }

    /// From the bytes of [`Self::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut from = Reader::new(bytes);
        let read = |from: &mut Reader<'_>| {
            if from.u64()? != MAGIC {
                return Err(bad("they are no sums of this version"));
            }
            let (features, components) = (from.length()?, from.length()?);
            let (columns, occupied) = (from.u64()?, from.u64()?);
            let sums = Statistics::read(from, features, components)?;
            Ok(Self { features, components, columns, occupied, sums })
        };
        read(&mut from).map_err(sent)
    }
}

/// An error of bytes that were sent.
pub(super) fn sent(error: Error) -> Error {
    match error {
        Error::BadCheckpoint { reason } => {
            Error::BadBlock { reason: format!("bytes that were sent cannot be read: {reason}") }
        }
        other => other,
    }
}
