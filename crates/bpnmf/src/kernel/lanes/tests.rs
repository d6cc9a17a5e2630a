//! The errors that the bounds count on.

use super::*;
use crate::kernel::{Simd, Tile, dispatch, flat_mut};

fn logarithms<V: Lanes>(values: &mut [Tile]) {
    for tile in values {
        let [log] = V::ln_1p([V::load(&tile.0)]);
        log.store(&mut tile.0);
    }
}

fn upper_bounds<V: Lanes>(values: &mut [Tile]) {
    for tile in values {
        let [bound] = V::ln_1p_above([V::load(&tile.0)]);
        bound.store(&mut tile.0);
    }
}

fn reciprocals<V: Lanes>(values: &mut [Tile]) {
    for tile in values {
        V::load(&tile.0).reciprocal().store(&mut tile.0);
    }
}

fn logits<V: Lanes>(words: &[[u32; LANES]], out: &mut [Tile]) {
    for (words, out) in words.iter().zip(out) {
        let [logit] = V::logit([words]);
        logit.store(&mut out.0);
    }
}

fn exact_logarithms<V: Lanes>(values: &mut [Tile]) {
    for tile in values {
        V::load(&tile.0).ln_exactly().store(&mut tile.0);
    }
}

dispatch! { fn exact_logarithms_on [] (values: &mut [Tile]) = exact_logarithms }
dispatch! { fn logarithms_on [] (values: &mut [Tile]) = logarithms }
dispatch! { fn upper_bounds_on [] (values: &mut [Tile]) = upper_bounds }
dispatch! { fn reciprocals_on [] (values: &mut [Tile]) = reciprocals }
dispatch! { fn logits_on [] (words: &[[u32; LANES]], out: &mut [Tile]) = logits }

const ALL: [Simd; 3] = [Simd::Avx512, Simd::Avx2, Simd::Plain];

/// From 1e-30 to 1e30, and below zero from -1e-30 to -0.97.
fn grid() -> Vec<f32> {
    let sizes = (0..1_600_000).map(|i| 10f64.powf(i as f64 * 60.0 / 1.6e6 - 30.0) as f32);
    let negative = (0..400_000).map(|i| -0.97 * 10f64.powf(-(i as f64) * 30.0 / 4e5) as f32);
    sizes.chain(negative).collect()
}

fn tiles(values: &[f32]) -> Vec<Tile> {
    let mut tiles = vec![Tile::ZERO; values.len().div_ceil(LANES)];
    flat_mut(&mut tiles)[..values.len()].copy_from_slice(values);
    tiles
}

#[test]
fn logarithms_are_within_their_error() {
    for simd in ALL {
        let grid = grid();
        let mut out = tiles(&grid);
        logarithms_on(simd, &mut out);
        for (&v, &log) in grid.iter().zip(flat_mut(&mut out).iter()) {
            let truth = f64::from(v).ln_1p();
            let error = (f64::from(log) - truth).abs();
            assert!(
                error <= 0.97 * f64::from(LN_ERROR) * truth.abs(),
                "{simd:?}: log(1 + {v}) = {truth}, not {log}"
            );
        }
    }
}

#[test]
fn upper_bounds_are_above_the_logarithm_and_near_it() {
    for simd in ALL {
        let grid = grid();
        let mut out = tiles(&grid);
        upper_bounds_on(simd, &mut out);
        for (&v, &bound) in grid.iter().zip(flat_mut(&mut out).iter()) {
            let (v, bound) = (f64::from(v), f64::from(bound));
            let (truth, above) = (v.ln_1p(), v * (30.0 + v * (21.0 + v)) / (30.0 + v * (36.0 + 9.0 * v)));
            assert!(above >= truth - 4e-16 * truth.abs(), "log(1 + {v}) = {truth}, above {above}");
            let error = (bound - above).abs();
            // Beyond this it is infinite, or NaN, which decides nothing.
            assert!(
                error <= 0.97 * f64::from(ABOVE_ERROR) * above.abs() || v > 1e12,
                "{simd:?}: above log(1 + {v}) is {above}, not {bound}"
            );
            let near = !(-0.8..=2.0).contains(&v) || above - truth <= 0.02 * truth.abs();
            assert!(near, "{above} is far above log(1 + {v})");
            assert!(v <= 1e12 || bound.is_nan() || bound >= truth, "log(1 + {v}) = {truth}, above {bound}");
        }
    }
}

#[test]
fn reciprocals_are_within_their_error() {
    for simd in ALL {
        let grid = grid();
        let mut out = tiles(&grid);
        reciprocals_on(simd, &mut out);
        for (&v, &inverse) in grid.iter().zip(flat_mut(&mut out).iter()) {
            assert!(
                (f64::from(v) * f64::from(inverse) - 1.0).abs() < 1e-7,
                "{simd:?}: 1 / {v} is not {inverse}"
            );
        }
    }
}

#[test]
fn logits_are_within_their_error() {
    let steps = (0..400_000u32).map(|i| i.wrapping_mul(10_737) ^ i);
    let ends = (0..5000u32).flat_map(|i| [i, i << 8, !i, !(i << 8)]);
    let words: Vec<u32> = steps.chain(ends).collect();
    let (words, _) = words.as_chunks::<LANES>();
    for simd in ALL {
        let mut out = vec![Tile::ZERO; words.len()];
        logits_on(simd, words, &mut out);
        for (&word, &logit) in words.iter().flatten().zip(flat_mut(&mut out).iter()) {
            let truth = (f64::from(word) / f64::from(!word)).ln();
            let fine = if truth.abs() < 14.0 {
                (f64::from(logit) - truth).abs() < 8e-5
            } else {
                logit.is_nan() || logit.abs() > 13.99
            };
            assert!(fine, "{simd:?}: logit of {word} is {truth}, not {logit}");
        }
    }
}

#[test]
fn kept_logarithms_are_good_to_2e_7_and_the_same_bits_on_every_machine() {
    let grid: Vec<f32> = grid().into_iter().filter(|v| *v > 0.0).collect();
    let mut plain = tiles(&grid);
    // What fills up the last tile must be positive, too.
    flat_mut(&mut plain)[grid.len()..].fill(1.0);
    let start = plain.clone();
    exact_logarithms_on(Simd::Plain, &mut plain);
    for simd in ALL {
        let mut ours = start.clone();
        exact_logarithms_on(simd, &mut ours);
        assert!(ours == plain, "{simd:?}");
    }
    for (&v, &log) in grid.iter().zip(flat_mut(&mut plain).iter()) {
        let exact = f64::from(v).ln();
        assert!((f64::from(log) - exact).abs() < 2e-7 * (1.0 + exact.abs()), "{v}: {log}, {exact}");
    }
}

fn compare<V: Lanes>(words: &[u16; WORDS], with: u16) -> [[u32; 2]; 2] {
    [V::compare_words(words, with), V::compare_half(words, with)]
}

dispatch! { fn compare_on [] (words: &[u16; WORDS], with: u16) -> [[u32; 2]; 2] = compare }

#[test]
fn words_are_compared_without_signs() {
    let mut words = [0; WORDS];
    for i in 0..WORDS {
        words[i] = [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x1234][i * i % 7];
    }
    for with in words {
        for simd in ALL {
            let [all, half] = compare_on(simd, &words, with);
            for ([less, equal], number) in [(all, WORDS), (half, WORDS / 2)] {
                for (i, &word) in words[..number].iter().enumerate() {
                    assert_eq!(
                        (less >> i & 1 == 1, equal >> i & 1 == 1),
                        (word < with, word == with),
                        "{simd:?}"
                    );
                }
            }
        }
    }
}

fn moved<V: Lanes>(mask: u16, words: &[u32; LANES], tiles: &[Tile; 8]) -> ([u32; LANES], Tile, [f32; 4]) {
    let (mut kept, mut gathered) = ([0; LANES], Tile::ZERO);
    V::keep(mask, words, &mut kept);
    kept[mask.count_ones() as usize..].fill(0);
    V::gather(tiles, words).store(&mut gathered.0);
    let largest = V::largests(each!(V, 4, n => V::load(&tiles[n].0)));
    (kept, gathered, largest)
}

dispatch! {
    fn moved_on [] (mask: u16, words: &[u32; LANES], tiles: &[Tile; 8]) -> ([u32; LANES], Tile, [f32; 4]) = moved
}

#[test]
fn words_are_kept_and_values_gathered_the_same_way_on_every_machine() {
    for round in 0..1000u32 {
        let number = |i: usize| (i as u32 * 40_503 + round * 9_973) % 65_521;
        let mask = number(7) as u16;
        let mut words = [0; LANES];
        for i in 0..LANES {
            words[i] = number(i) % 200;
        }
        let mut values = [Tile::ZERO; 8];
        flat_mut(&mut values).iter_mut().enumerate().for_each(|(i, value)| *value = number(i + 100) as f32);
        let plain = moved_on(Simd::Plain, mask, &words, &values);
        for simd in ALL {
            assert_eq!(moved_on(simd, mask, &words, &values), plain, "{simd:?}");
        }
    }
}
