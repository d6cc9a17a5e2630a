//! Sums over blocks as bytes, to be sent from one process to another. A reader never takes a length for granted.

use super::{Node, Statistics, Sums};
use crate::checkpoint::bytes::{Reader, Writer, bad};
use crate::error::Error;
use crate::infer::mask::Tiers;
use std::io;

impl Sums {
    /// Divides every sum by `number`, but for the tiers.
    pub(crate) fn divide(&mut self, number: f64) {
        let Self {
            allocated,
            activation,
            unseen,
            usage,
            ln_activation,
            log_likelihood,
            expected_scattered,
            ..
        } = self;
        let vectors = [allocated, activation, unseen, usage];
        vectors.into_iter().flatten().for_each(|sum| *sum /= number);
        [ln_activation, log_likelihood, expected_scattered].into_iter().for_each(|sum| *sum /= number);
    }

    fn write(&self, out: &mut Writer<'_>) -> io::Result<()> {
        let Self {
            allocated,
            activation,
            unseen,
            usage,
            ln_activation,
            log_likelihood,
            expected_scattered,
            tiers,
        } = self;
        for vector in [allocated, activation, unseen, usage] {
            out.length(vector.len())?;
            out.f64s(vector)?;
        }
        [ln_activation, log_likelihood, expected_scattered].into_iter().try_for_each(|&sum| out.f64(sum))?;
        numbers_of(tiers).into_iter().try_for_each(|number| out.u64(number))
    }

    /// Reads sums for F x K.
    fn read(from: &mut Reader<'_>, features: usize, components: usize) -> Result<Self, Error> {
        let sites = features.checked_mul(components).ok_or_else(|| bad("a size that no memory has"))?;
        let mut vector = |allowed: &[usize]| {
            let length = from.length()?;
            if !allowed.contains(&length) {
                return Err(bad("sums of another size"));
            }
            from.f64s(length)
        };
        let allocated = vector(&[sites])?;
        let activation = vector(&[components])?;
        let unseen = vector(&[0, sites])?;
        let usage = vector(&[components])?;
        let (ln_activation, log_likelihood, expected_scattered) = (from.f64()?, from.f64()?, from.f64()?);
        let mut tiers = [0; 8];
        for number in &mut tiers {
            *number = from.u64()?;
        }
        Ok(Self {
            allocated,
            activation,
            unseen,
            usage,
            ln_activation,
            log_likelihood,
            expected_scattered,
            tiers: tiers_of(tiers),
        })
    }
}

fn numbers_of(tiers: &Tiers) -> [u64; 8] {
    let Tiers { h_free, linear, jensen, moments, logarithms, exact, forced, flips } = *tiers;
    [h_free, linear, jensen, moments, logarithms, exact, forced, flips]
}

fn tiers_of([h_free, linear, jensen, moments, logarithms, exact, forced, flips]: [u64; 8]) -> Tiers {
    Tiers { h_free, linear, jensen, moments, logarithms, exact, forced, flips }
}

impl Statistics {
    /// Writes the sums of all its blocks.
    pub(crate) fn write(&self, out: &mut Writer<'_>) -> io::Result<()> {
        out.length(self.nodes.len())?;
        for Node { first, level, sums } in &self.nodes {
            out.length(*first)?;
            out.u64(u64::from(*level))?;
            sums.write(out)?;
        }
        Ok(())
    }

    /// Reads what [`Self::write`] wrote of sums for F x K.
    pub(crate) fn read(from: &mut Reader<'_>, features: usize, components: usize) -> Result<Self, Error> {
        let mut statistics = Self::default();
        for _ in 0..from.length()? {
            let (first, level) = (from.length()?, from.u64()?);
            let level = u32::try_from(level).ok().filter(|level| *level < usize::BITS - 2);
            let level = level.ok_or_else(|| bad("a group of blocks that is too large"))?;
            let node = Node { first, level, sums: Sums::read(from, features, components)? };
            let last =
                first.checked_add(node.blocks()).ok_or_else(|| bad("a block number that is too large"))?;
            let after = statistics.nodes.last().is_none_or(|node| node.first + node.blocks() <= first);
            if !(after && first.is_multiple_of(node.blocks()) && last < usize::MAX / 2) {
                return Err(bad("blocks out of their order"));
            }
            statistics.nodes.push(node);
        }
        Ok(statistics)
    }

    /// Whether both hold the sums of one and the same block.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let within = |node: &Node| node.first..node.first + node.blocks();
        let (mut ours, mut theirs) = (self.nodes.iter().peekable(), other.nodes.iter().peekable());
        while let (Some(our), Some(their)) = (ours.peek(), theirs.peek()) {
            let (our, their) = (within(our), within(their));
            if our.end <= their.start {
                ours.next();
            } else if their.end <= our.start {
                theirs.next();
            } else {
                return true;
            }
        }
        false
    }
}
