//! The bounds from moments, with thresholds just on either side of what they bound.

use super::*;
use crate::kernel::{Simd, dispatch};
use crate::random::{Key, Site, Stream};

#[inline(always)]
fn judged<V: Lanes>(batch: &Batch, scores: &[Tile], sites: &Sites) -> [u16; 2] {
    let mut list = [0; LANES];
    V::list(u16::MAX, 0, &mut list);
    judge::<V>(batch, &list, scores, sites)
}

dispatch! { fn judged_on [] (batch: &Batch, scores: &[Tile], sites: &Sites) -> [u16; 2] = judged }

/// Sixteen sites that are on or off, and their s. Parts are of about the given size.
fn problem(stream: &mut Stream, on: bool, size: f64, shape: f64) -> (Batch, Tile, [f64; LANES]) {
    let (mut batch, mut score, mut exact) = (Batch::default(), Tile::ZERO, [0.0; LANES]);
    for n in 0..LANES {
        let (mut total, mut sum, mut square, mut largest) = (0.0, 0.0, 0.0, 0.0f64);
        for _ in 0..1 + (60.0 * stream.uniform()) as usize {
            let (x, part) = (1.0 + stream.poisson(5.0), size * stream.gamma(shape));
            let part = if on { 0.99 * part / (1.0 + part) } else { part };
            total += x;
            sum += x * part;
            square += x * part * part;
            largest = largest.max(part);
            exact[n] += x * (if on { -part } else { part }).ln_1p();
        }
        batch.total.0[n] = total as f32;
        batch.inverse_total.0[n] = (1.0 / total) as f32;
        batch.error.0[n] = 16.0 * f32::EPSILON;
        batch.square.0[n] = square as f32;
        batch.largest.0[n] = largest as f32;
        score.0[n] = sum as f32;
    }
    (batch, score, exact)
}

#[test]
fn bounds_from_moments_are_on_the_right_side_and_near() {
    let mut stream = Key::new(5).stream(Site::Synthesis, 0, 0, 0);
    let (mut decided, mut all) = ([0; 2], 0);
    for round in 0..20_000 {
        let (size, shape) = (10f64.powf(6.0 * stream.uniform() - 4.0), [0.1, 1.0, 10.0][round % 3]);
        let on = round % 2 == 0;
        let (batch, score, exact) = problem(&mut stream, on, size, shape);
        let scores = [score; MOST_COLUMNS];
        let mut sites = Sites::default();
        sites.signed_h[0] = Tile([if on { -1.0 } else { 1.0 }; LANES]);
        // A threshold at a share of s below it for what stays, above it for what changes.
        let mut judged_at = |simd: Simd, share: f64| {
            for n in 0..LANES {
                sites.stay[0].0[n] = (exact[n] - share * exact[n].abs()) as f32;
                sites.change[0].0[n] = (exact[n] + share * exact[n].abs()) as f32;
            }
            judged_on(simd, &batch, &scores, &sites)
        };
        for simd in [Simd::Avx512, Simd::Avx2, Simd::Plain] {
            let wrong = judged_at(simd, 1e-6);
            assert_eq!(wrong, [0; 2], "{simd:?}, round {round}: on {on}, size {size}, shape {shape}");
            let right = judged_at(simd, -0.1);
            (0..2).for_each(|i| decided[i] += right[i].count_ones());
            all += LANES as u32;
        }
    }
    assert!(decided.iter().all(|&decided| 2 * decided > all), "{decided:?} of {all}");
}
