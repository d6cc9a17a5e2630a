//! Columns with all features, in single precision: a start need not be better than that. Products and sums are rounded one
//! after the other in a fixed order, so they give the same bits on every machine.

use crate::kernel::{LANES, Lanes, Simd, Tile, dispatch, each, flat, flat_mut};

/// Tiles of a row that are handled at once.
const CHUNK: usize = 5;

/// Keeps quotients finite where nothing is explained.
const TINY: f32 = 1e-30;

/// W as the columns with all features read it.
#[derive(Debug, Default)]
pub(super) struct Tiled {
    /// The features of a component side by side, filled up with zeros.
    rows: Vec<Tile>,
    /// The components of a feature side by side, likewise.
    turned: Vec<Tile>,
}

impl Tiled {
    /// Takes over W, which is by components.
    pub(super) fn fill(&mut self, w: &[f64], features: usize) {
        let components = w.len() / features;
        let (wide, tall) = (features.div_ceil(LANES), components.div_ceil(LANES));
        self.rows.resize(components * wide, Tile::ZERO);
        self.turned.resize(features * tall, Tile::ZERO);
        let turned = flat_mut(&mut self.turned);
        for (k, (row, w)) in self.rows.chunks_mut(wide).zip(w.chunks(features)).enumerate() {
            for (f, (to, w)) in flat_mut(row).iter_mut().zip(w).enumerate() {
                *to = *w as f32;
                turned[f * tall * LANES + k] = *w as f32;
            }
        }
    }
}

/// Updates the h of a column by `update`, which is given the products of W with x over what is explained; `out` is that
/// ratio with the new h, zero behind the last feature.
pub(super) fn update_h(
    simd: Simd,
    w: &Tiled,
    x: &[f64],
    h: &mut [f64],
    out: &mut [Tile],
    update: impl FnOnce(&mut [f64], &[f32]),
) {
    ratios(simd, w, x, h, out);
    let mut products = vec![Tile::ZERO; h.len().div_ceil(LANES)];
    add_rows(simd, &w.turned, &flat(out)[..x.len()], &mut products);
    update(h, flat(&products));
    ratios(simd, w, x, h, out);
}

dispatch! {
    /// out = x over the sum of the rows of W, each times its h; zero behind the last feature.
    fn ratios [] (w: &Tiled, x: &[f64], h: &[f64], out: &mut [Tile]) = ratios_of
}
dispatch! {
    /// out += the rows, each times its scale, one after the other.
    pub(super) fn add_rows [] (rows: &[Tile], scales: &[f32], out: &mut [Tile]) = add_rows_of
}

#[inline(always)]
fn ratios_of<V: Lanes>(w: &Tiled, x: &[f64], h: &[f64], out: &mut [Tile]) {
    out.fill(Tile::ZERO);
    let h: Vec<f32> = h.iter().map(|h| *h as f32).collect();
    add_rows_of::<V>(&w.rows, &h, out);
    for (out, x) in out.iter_mut().zip(x.chunks(LANES)) {
        let mut counts = [0.0; LANES];
        counts.iter_mut().zip(x).for_each(|(to, x)| *to = *x as f32);
        let rate = V::load(&out.0).add(V::splat(TINY));
        V::load(&counts).div(rate).store(&mut out.0);
    }
}

#[inline(always)]
fn add_rows_of<V: Lanes>(rows: &[Tile], scales: &[f32], out: &mut [Tile]) {
    let tiles = out.len();
    let mut at = 0;
    while at < tiles {
        at += match tiles - at {
            1 => add_chunk::<V, 1>(rows, scales, out, at),
            2 => add_chunk::<V, 2>(rows, scales, out, at),
            3 => add_chunk::<V, 3>(rows, scales, out, at),
            4 => add_chunk::<V, 4>(rows, scales, out, at),
            _ => add_chunk::<V, CHUNK>(rows, scales, out, at),
        };
    }
}

/// Tiles `at .. at + N` of [`add_rows`].
#[inline(always)]
fn add_chunk<V: Lanes, const N: usize>(rows: &[Tile], scales: &[f32], out: &mut [Tile], at: usize) -> usize {
    let tiles = out.len();
    let out: &mut [Tile; N] = (&mut out[at..at + N]).try_into().expect("so many");
    let mut sums = each!(V, N, n => V::load(&out[n].0));
    for (row, &scale) in rows.chunks_exact(tiles).zip(scales) {
        let (row, scale) = (&row[at..at + N], V::splat(scale));
        for n in 0..N {
            sums[n] = V::load(&row[n].0).mul(scale).add(sums[n]);
        }
    }
    for n in 0..N {
        sums[n].store(&mut out[n].0);
    }
    N
}
