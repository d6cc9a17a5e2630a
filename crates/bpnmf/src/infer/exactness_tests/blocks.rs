//! Blocks of columns: that it makes no difference how they are grouped, and in which order they are worked on.

use super::{compressed, matrix};
use crate::counts::Counts;
use crate::infer::conditionals::Conditionals;
use crate::infer::local::{Allocation, Workspace};
use crate::infer::ssmf::{self, Given};
use crate::infer::{Batch, Engine, Gibbs, Init, Ssmf, State};
use crate::noise::Noise;
use crate::prior::{CheckedPrior, Prior};
use crate::random::Key;
use crate::statistics::{BLOCK_COLUMNS, Sums, blocks_of};
use crate::workers::Workers;

const BLOCKS: usize = 7;
const STEPS: u32 = 2;
const KEY: u64 = 700;

/// Seven blocks, the last of them short.
fn counts() -> Counts {
    matrix(5, (BLOCKS - 1) * BLOCK_COLUMNS + 77, 0.5, 6.0, 701)
}

fn prior() -> CheckedPrior {
    Prior { components: 4, ..Prior::default() }.check().unwrap()
}

fn stepped(engine: &dyn Engine, counts: &Counts, workers: &Workers) -> State {
    let (prior, key) = (prior(), Key::new(KEY));
    let mut state = engine.init(counts, &prior, key);
    for _ in 0..STEPS {
        engine.step(&mut state, &Batch::all(counts), &prior, key, workers).unwrap();
    }
    state
}

/// The blocks in one group, in two by turns, and one by one, the last group first.
fn groupings() -> [Vec<Vec<usize>>; 3] {
    [1, 2, BLOCKS]
        .map(|groups| (0..groups).rev().map(|group| (group..BLOCKS).step_by(groups).collect()).collect())
}

/// The local halves of every group by itself, and then the sums over all of them.
fn sums_of_groups(groups: &[Vec<usize>], mut local: impl FnMut(usize, &mut Workspace)) -> Workspace {
    let (mut all, mut of_groups) = (Workspace::default(), Vec::new());
    for group in groups {
        for &block in group {
            local(block, &mut all);
            all.keep(block);
        }
        of_groups.push(all.take_kept());
    }
    of_groups.into_iter().for_each(|of_group| all.keep_all(of_group));
    all.total();
    all
}

#[test]
fn halves_over_blocks_in_any_groups_make_the_bits_of_a_step() {
    let (counts, prior, key, workers) = (counts(), prior(), Key::new(KEY), &Workers::new(2).unwrap());
    let columns: Vec<_> = blocks_of(0..counts.observations()).map(|(_, columns)| columns).collect();
    assert_eq!(columns.len(), BLOCKS);
    for expected in [false, true] {
        let engine = Gibbs { expected, burn_in: 1, init: Init::Scaled, ..Gibbs::default() };
        let whole = stepped(&engine, &counts, workers);
        for groups in groupings() {
            let mut state = engine.init(&counts, &prior, key);
            for _ in 0..STEPS {
                let iteration = state.iteration;
                let conditionals = Conditionals { counts: &counts, prior: &prior, key, iteration, workers };
                let workspace = sums_of_groups(&groups, |block, workspace| {
                    engine.local(conditionals, columns[block].clone(), None, &mut state, workspace);
                });
                engine.global(conditionals, &workspace.stats, None, &counts, &mut state);
                for &block in groups.iter().flatten() {
                    engine.follow(conditionals, columns[block].clone(), &workspace.kept_shares, &mut state);
                }
            }
            assert!(state == whole, "{}, {groups:?}", engine.name());
        }
    }
    let engine = Ssmf { init: Init::Scaled, ..Ssmf::default() };
    let whole = stepped(&engine, &counts, workers);
    for groups in groupings() {
        let mut state = engine.init(&counts, &prior, key);
        for _ in 0..STEPS {
            let given = Given { counts: &counts, prior: &prior, key, workers };
            ssmf::draw_dictionary(key, &mut state, workers);
            let workspace = sums_of_groups(&groups, |block, workspace| {
                ssmf::draw_activations(columns[block].clone(), key, &mut state, workers);
                engine.local(given, columns[block].clone(), &mut state, workspace);
            });
            engine.global(given, &Batch::all(&counts), &workspace.stats, &mut state);
        }
        assert!(state == whole, "ssmf, {groups:?}");
    }
}

#[test]
fn threads_portions_and_storage_do_not_change_a_bit_of_many_blocks() {
    let (dense, noise) = (counts(), Noise::Scattered { alpha: 4.0 });
    let sparse = compressed(&dense);
    let gibbs = Gibbs { burn_in: 1, init: Init::Scaled, ..Gibbs::default() };
    let ssmf = Ssmf { init: Init::Scaled, ..Ssmf::default() };
    let engines: [&dyn Engine; 4] = [&gibbs, &ssmf, &Gibbs { noise, ..gibbs }, &Ssmf { noise, ..ssmf }];
    for engine in engines {
        let expected = stepped(engine, &dense, &Workers::serial());
        for (threads, portion, counts) in [(2, 64, &sparse), (3, 1000, &dense), (1, 100_000, &sparse)] {
            let workers = Workers::new(threads).unwrap().with_block(portion);
            let ours = stepped(engine, counts, &workers);
            assert!(ours == expected, "{}, {threads} threads, portions of {portion}", engine.name());
        }
    }
}

/// What is counted is the same exactly, what is measured but for rounding, as if all columns were one block.
#[test]
fn sums_over_blocks_are_those_over_all_columns() {
    let (counts, prior, key, workers) = (counts(), prior(), Key::new(KEY), &Workers::serial());
    let start = Gibbs { init: Init::Scaled, ..Gibbs::default() }.init(&counts, &prior, key);
    let conditionals = Conditionals { counts: &counts, prior: &prior, key, iteration: 0, workers };
    for allocation in [Allocation::Sampled, Allocation::Expected] {
        let (mut by_blocks, mut at_once) = (Workspace::default(), Workspace::default());
        let [mut one, mut other] = [start.clone(), start.clone()];
        let State { dictionary, activations, odds, .. } = &mut one;
        conditionals.mask_and_counts(allocation, dictionary, activations, odds, &mut by_blocks);
        let State { dictionary, activations, odds, .. } = &mut other;
        let all = 0..counts.observations();
        conditionals.mask_and_counts_of(all, allocation, dictionary, activations, odds, &mut at_once);
        assert!(one.activations == other.activations);
        assert_eq!(by_blocks.kept_shares, at_once.kept_shares);
        let (ours, theirs): (&Sums, &Sums) = (&by_blocks.stats, &at_once.stats);
        assert_eq!((&ours.usage, ours.tiers), (&theirs.usage, theirs.tiers));
        if allocation == Allocation::Sampled {
            assert_eq!(ours.allocated, theirs.allocated);
        }
        let near = |x: f64, y: f64| assert!((x - y).abs() <= 1e-12 * y.abs(), "{x} {y}");
        ours.allocated.iter().zip(&theirs.allocated).for_each(|(&x, &y)| near(x, y));
        ours.activation.iter().zip(&theirs.activation).for_each(|(&x, &y)| near(x, y));
        near(ours.log_likelihood, theirs.log_likelihood);
        near(ours.ln_activation, theirs.ln_activation);
    }
}
