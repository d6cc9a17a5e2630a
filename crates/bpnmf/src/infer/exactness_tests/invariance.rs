//! What must not change a bit: storage, instructions, threads, blocks; and the scale of W against that of H.

use super::{compressed, matrix, rate, without_some};
use crate::counts::Counts;
use crate::infer::{Batch, Engine, Gibbs, Init, Ssmf, State};
use crate::kernel::{Simd, flat_mut};
use crate::prior::{CheckedPrior, Prior};
use crate::random::Key;
use crate::workers::Workers;

const COMPONENTS: usize = 35;
const STEPS: u32 = 5;

fn prior() -> CheckedPrior {
    Prior { components: COMPONENTS, ..Prior::default() }.check().unwrap()
}

fn engines() -> [Box<dyn Engine>; 3] {
    [
        Box::new(Gibbs { burn_in: 2, ..Gibbs::default() }),
        Box::new(Gibbs { burn_in: 2, expected: true, ..Gibbs::default() }),
        Box::new(Ssmf { sweeps: 2, init: Init::Scaled, ..Ssmf::default() }),
    ]
}

fn run(engine: &dyn Engine, counts: &Counts, workers: &Workers) -> State {
    let (prior, key) = (prior(), Key::new(500));
    let mut state = engine.init(counts, &prior, key);
    for _ in 0..STEPS {
        engine.step(&mut state, &Batch::all(counts), &prior, key, workers).unwrap();
    }
    state
}

#[test]
fn storage_instructions_threads_and_blocks_do_not_change_a_bit_of_the_state() {
    let sparse_and_dense = [matrix(37, 140, 0.12, 4.0, 510), matrix(37, 140, 0.6, 4.0, 511)];
    assert!(sparse_and_dense[0].density() < 0.2 && sparse_and_dense[1].density() > 0.2);
    let partial = sparse_and_dense.each_ref().map(|counts| without_some(counts, 0.2, 512));
    for counts in sparse_and_dense.iter().chain(&partial) {
        let other = compressed(counts);
        for engine in engines() {
            let expected = run(&*engine, counts, &Workers::serial());
            for simd in [Simd::Avx512, Simd::Avx2, Simd::Plain] {
                for threads in [1, 2, 8] {
                    for block in [None, Some(1), Some(7), Some(8), Some(64)] {
                        let workers = Workers::new(threads).unwrap().with_simd(simd);
                        let workers = match block {
                            Some(block) => workers.with_block(block),
                            None => workers,
                        };
                        for counts in [counts, &other] {
                            assert!(
                                run(&*engine, counts, &workers) == expected,
                                "{}, {simd:?}, {threads} threads, blocks of {block:?}, sparse {}, density {}",
                                engine.name(),
                                counts.is_sparse(),
                                counts.density(),
                            );
                        }
                    }
                }
            }
        }
    }
}

/// The state with W times 2^power and H over 2^power: another name for the same model.
fn rescaled(state: &State, power: i32) -> State {
    let mut out = state.clone();
    let (up, down) = (2.0f32.powi(power), 2.0f32.powi(-power));
    for row in out.dictionary.rows_mut() {
        flat_mut(row).iter_mut().for_each(|w| *w *= up);
    }
    out.dictionary.settle();
    let observations = out.averages.masked.len() / out.activations.components();
    let (_, values) = out.activations.columns_mut(0, observations);
    flat_mut(values).iter_mut().for_each(|h| *h *= down);
    out.averages.dictionary.iter_mut().for_each(|w| *w *= up);
    out.averages.masked.iter_mut().for_each(|h| *h *= down);
    if let Some(q) = &mut out.variational {
        q.rho_w.iter_mut().for_each(|rho| *rho *= f64::from(down));
        q.rho_h.iter_mut().for_each(|rho| *rho *= f64::from(up));
    }
    out
}

#[test]
fn steps_commute_with_moving_a_power_of_two_from_h_to_w() {
    let before = prior().get();
    let key = Key::new(520);
    let workers = Workers::serial();
    for counts in [matrix(37, 50, 0.12, 4.0, 521), matrix(37, 50, 0.6, 4.0, 522)] {
        for engine in engines() {
            for power in [-7, 1, 3, 16] {
                let factor = 2.0f64.powi(power);
                let after = Prior { b: before.b / factor, d: before.d * factor, ..before };
                let (before, after) = (before.check().unwrap(), after.check().unwrap());
                let mut plain = engine.init(&counts, &before, key);
                let mut moved = rescaled(&plain, power);
                for step in 0..2 * STEPS {
                    engine.step(&mut plain, &Batch::all(&counts), &before, key, &workers).unwrap();
                    engine.step(&mut moved, &Batch::all(&counts), &after, key, &workers).unwrap();
                    for t in 0..counts.observations() {
                        let place = format!("{}, 2^{power}, step {step}, column {t}", engine.name());
                        let (ours, theirs) = (plain.activations.column(t), moved.activations.column(t));
                        assert_eq!(ours.on, theirs.on, "{place}");
                        for f in 0..counts.features() {
                            assert_eq!(rate(&plain, f, t), rate(&moved, f, t), "{place}, feature {f}");
                        }
                    }
                }
                assert!(rescaled(&plain, power) == moved, "{}, 2^{power}", engine.name());
            }
        }
    }
}
