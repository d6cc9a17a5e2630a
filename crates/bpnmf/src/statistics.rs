//! What the columns tell the rest: additive sums, the unit of threads, blocks of columns, minibatches, disk and machines.
//! Knows nothing of engines.

mod travel;

use crate::counts::Counts;
use crate::infer::activations::Activations;
use crate::infer::dictionary::Dictionary;
use crate::infer::mask::Tiers;
use core::ops::Range;

/// Columns of a block. Sums over the columns of a block are taken in their order, sums over blocks by a tree.
pub(crate) const BLOCK_COLUMNS: usize = 4096;

/// The blocks that `columns` lie in: the number of each, and which of the columns are in it.
pub(crate) fn blocks_of(columns: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let blocks = columns.start / BLOCK_COLUMNS..columns.end.div_ceil(BLOCK_COLUMNS);
    blocks.map(move |block| {
        let (from, to) = (block * BLOCK_COLUMNS, (block + 1) * BLOCK_COLUMNS);
        (block, from.max(columns.start)..to.min(columns.end))
    })
}

/// Sums over columns of the allocated counts, the activations and the mask.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sums {
    /// sum over t of Z_ftk (or its expectation) at `k * F + f`.
    pub(crate) allocated: Vec<f64>,
    /// sum over t of H_kt S_kt.
    pub(crate) activation: Vec<f64>,
    /// sum over t of H_kt S_kt times the exposure that (f, t) has lost, at `k * F + f`; empty if no entry has lost any.
    unseen: Vec<f64>,
    /// sum over t of S_kt.
    pub(crate) usage: Vec<f64>,
    /// sum over t, k with S_kt = 1 of log H_kt.
    pub(crate) ln_activation: f64,
    /// sum over t, f of X log Xhat - Xhat.
    pub(crate) log_likelihood: f64,
    /// sum over the observed entries of Xhat, only where counts scatter.
    pub(crate) expected_scattered: f64,
    /// How the sites were decided.
    pub(crate) tiers: Tiers,
}

impl Sums {
    /// All zero, for F x K.
    pub(crate) fn clear(&mut self, features: usize, components: usize, unexposed: bool) {
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
        unseen.clear();
        unseen.resize(if unexposed { features * components } else { 0 }, 0.0);
        allocated.clear();
        allocated.resize(features * components, 0.0);
        activation.clear();
        activation.resize(components, 0.0);
        usage.clear();
        usage.resize(components, 0.0);
        (*ln_activation, *log_likelihood, *expected_scattered) = (0.0, 0.0, 0.0);
        *tiers = Tiers::default();
    }

    /// Adds the sums over other columns, of the same F x K.
    fn add(&mut self, other: &Self) {
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
        if unseen.len() < other.unseen.len() {
            // Nothing is missing in the blocks that are in it so far.
            unseen.resize(other.unseen.len(), 0.0);
        }
        let vectors = [allocated, activation, unseen, usage];
        for (sums, more) in
            vectors.into_iter().zip([&other.allocated, &other.activation, &other.unseen, &other.usage])
        {
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        *ln_activation += other.ln_activation;
        *log_likelihood += other.log_likelihood;
        *expected_scattered += other.expected_scattered;
        tiers.add(&other.tiers);
    }

    /// [`Self::unseen`] for writing.
    pub(crate) fn unseen_mut(&mut self) -> &mut [f64] {
        &mut self.unseen
    }

    /// sum over t of H_kt S_kt times the exposure of (f, t), for the feature and component at `k * F + f`.
    #[inline(always)]
    pub(crate) fn observed_activation(&self, k: usize, at: usize) -> f64 {
        self.activation[k] - self.unseen.get(at).map_or(0.0, |unseen| unseen.min(self.activation[k]))
    }

    /// Adds the sums of H over `columns`.
    pub(crate) fn sum_activations(
        &mut self,
        counts: &Counts,
        activations: &Activations,
        columns: Range<usize>,
    ) {
        let features = counts.features();
        for t in columns {
            let unexposed = counts.unexposed(t);
            for (k, h) in activations.column(t).iter() {
                self.activation[k] += f64::from(h);
                if !self.unseen.is_empty() {
                    let row = &mut self.unseen[k * features..][..features];
                    unexposed.iter().for_each(|(f, lost)| row[f] += f64::from(h) * lost);
                }
            }
        }
    }

    /// Takes the sums of H from others, and leaves its own there.
    pub(crate) fn swap_activations(&mut self, with: &mut Self) {
        core::mem::swap(&mut self.activation, &mut with.activation);
        core::mem::swap(&mut self.unseen, &mut with.unseen);
    }

    /// The counts that W expects: sum over f, k of W times what [`Self::observed_activation`] says.
    pub(crate) fn expected(&self, dictionary: &Dictionary, k: usize) -> f64 {
        let all = self.activation[k] * dictionary.sum(k);
        if self.unseen.is_empty() {
            return all;
        }
        let row = dictionary.row(k);
        let unseen = &self.unseen[k * row.len()..][..row.len()];
        all - row.iter().zip(unseen).map(|(&w, unseen)| f64::from(w) * unseen).sum::<f64>()
    }
}

/// Sums over blocks of columns, which add up to the same bits in whatever order and by whatever groups: whole pairs of
/// blocks are added first, then whole pairs of these, and so on, and what has no partner comes last, from the right.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Statistics {
    /// By their first block; no two of them are a pair.
    nodes: Vec<Node>,
}

/// The sums over all of 2^level blocks, from one on whose number is a multiple of that.
#[derive(Debug, Clone, PartialEq)]
struct Node {
    first: usize,
    level: u32,
    sums: Sums,
}

impl Node {
    fn blocks(&self) -> usize {
        1 << self.level
    }

    /// Whether the other one is its partner on the right.
    fn precedes(&self, other: &Self) -> bool {
        self.level == other.level
            && self.first + self.blocks() == other.first
            && self.first.is_multiple_of(2 * self.blocks())
    }
}

impl Statistics {
    /// Adds the sums over a block that is not in it yet. What is no longer needed goes to `spare`.
    pub(crate) fn insert(&mut self, block: usize, sums: Sums, spare: &mut Vec<Sums>) {
        self.put(Node { first: block, level: 0, sums }, spare);
    }

    /// Adds those over other blocks.
    pub(crate) fn add(&mut self, other: Self, spare: &mut Vec<Sums>) {
        other.nodes.into_iter().for_each(|node| self.put(node, spare));
    }

    fn put(&mut self, mut node: Node, spare: &mut Vec<Sums>) {
        loop {
            let at = self.nodes.partition_point(|other| other.first < node.first);
            let apart = |left: &Node, right: &Node| left.first + left.blocks() <= right.first;
            assert!(
                (at == 0 || apart(&self.nodes[at - 1], &node))
                    && self.nodes.get(at).is_none_or(|right| apart(&node, right)),
                "a block is counted once"
            );
            if at > 0 && self.nodes[at - 1].precedes(&node) {
                let mut left = self.nodes.remove(at - 1);
                left.sums.add(&node.sums);
                spare.push(node.sums);
                node = Node { level: left.level + 1, ..left };
            } else if self.nodes.get(at).is_some_and(|right| node.precedes(right)) {
                let right = self.nodes.remove(at);
                node.sums.add(&right.sums);
                spare.push(right.sums);
                node.level += 1;
            } else {
                return self.nodes.insert(at, node);
            }
        }
    }

    /// The sums over all blocks that are in it, which it forgets; `None` if there are none.
    pub(crate) fn take(&mut self, spare: &mut Vec<Sums>) -> Option<Sums> {
        let mut total = self.nodes.pop()?.sums;
        while let Some(Node { mut sums, .. }) = self.nodes.pop() {
            sums.add(&total);
            spare.push(core::mem::replace(&mut total, sums));
        }
        Some(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers whose sum depends on the order.
    fn sums(block: usize) -> Sums {
        let number = |salt: usize| 1.0 / (1.0 + ((block * 37 + salt) % 23) as f64).powi(3);
        let mut sums = Sums::default();
        sums.clear(3, 2, true);
        sums.allocated.iter_mut().enumerate().for_each(|(i, sum)| *sum = number(i));
        sums.unseen.iter_mut().enumerate().for_each(|(i, sum)| *sum = number(i + 6));
        sums.activation.iter_mut().enumerate().for_each(|(i, sum)| *sum = number(i + 12));
        sums.log_likelihood = number(20);
        sums
    }

    fn of(blocks: impl Iterator<Item = usize>) -> Statistics {
        let (mut statistics, spare) = (Statistics::default(), &mut Vec::new());
        blocks.for_each(|block| statistics.insert(block, sums(block), spare));
        statistics
    }

    #[test]
    fn sums_over_blocks_have_the_same_bits_in_any_order_and_by_any_groups() {
        let spare = &mut Vec::new();
        for number in 1..40 {
            let whole = of(0..number);
            assert_eq!(of((0..number).rev()), whole);
            let total = whole.clone().take(spare);
            for groups in [1, 2, 3, 7] {
                let strided = (0..groups).map(|group| of((group..number).step_by(groups)));
                let length = number.div_ceil(groups);
                let in_a_row = (0..groups).map(|group| {
                    let from = (group * length).min(number);
                    of(from..(from + length).min(number))
                });
                for mut of_groups in [strided.collect::<Vec<_>>(), in_a_row.rev().collect()] {
                    let mut all = of_groups.pop().unwrap();
                    of_groups.into_iter().for_each(|group| all.add(group, spare));
                    assert_eq!(all, whole, "{number} blocks in {groups} groups");
                    assert_eq!(all.take(spare), total);
                }
            }
        }
    }

    #[test]
    fn the_tree_is_that_of_pairs_and_what_has_no_partner_comes_last() {
        let mut expected = sums(4);
        expected.add(&sums(5));
        expected.add(&sums(6));
        let (mut left, mut pair) = (sums(0), sums(2));
        left.add(&sums(1));
        pair.add(&sums(3));
        left.add(&pair);
        left.add(&expected);
        assert_eq!(of(0..7).take(&mut Vec::new()), Some(left));
        assert_eq!(Statistics::default().take(&mut Vec::new()), None);
    }

    #[test]
    #[should_panic = "a block is counted once"]
    fn no_block_is_counted_twice() {
        of([3, 2, 3].into_iter());
    }

    #[test]
    fn blocks_are_the_same_whatever_the_columns() {
        let blocks = |columns: Range<usize>| blocks_of(columns).collect::<Vec<_>>();
        let size = BLOCK_COLUMNS;
        assert_eq!(blocks(0..10), [(0, 0..10)]);
        assert_eq!(blocks(0..size), [(0, 0..size)]);
        assert_eq!(blocks(9..2 * size + 1), [(0, 9..size), (1, size..2 * size), (2, 2 * size..2 * size + 1)]);
        assert_eq!(blocks(size + 3..size + 5), [(1, size + 3..size + 5)]);
    }
}
