//! Rows of W and columns of H drawn from gamma distributions, many entries at once.

use super::activations::ones;
use super::dictionary::stored;
use crate::kernel::{LANES, Simd, Tile};
use crate::random::gamma::{gamma_row, gamma_sites};
use crate::random::{Key, Site};

/// Draws made at once: the buffers live on the stack.
const MANY: usize = 256;

/// The place of a set of draws: what for, in which iteration, for which row or column.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) simd: Simd,
    pub(crate) key: Key,
    pub(crate) site: Site,
    pub(crate) iteration: u32,
    pub(crate) i: u32,
}

/// out[j] ~ Gamma(shape(j), rate(j)).
pub(crate) fn draw_row(
    place: Place,
    out: &mut [f32],
    shape: impl Fn(usize) -> f64,
    rate: impl Fn(usize) -> f64,
) {
    let (mut shapes, mut draws) = ([0.0; MANY], [0.0; MANY]);
    let Place { simd, key, site, iteration, i } = place;
    for (chunk, out) in out.chunks_mut(MANY).enumerate() {
        let first = chunk * MANY;
        let (shapes, draws) = (&mut shapes[..out.len()], &mut draws[..out.len()]);
        for (j, into) in shapes.iter_mut().enumerate() {
            *into = shape(first + j);
        }
        gamma_row(simd, key, site, iteration, i, first as u32, shapes, draws);
        for (j, (out, draw)) in out.iter_mut().zip(draws).enumerate() {
            *out = stored(*draw / rate(first + j));
        }
    }
}

/// values[k] ~ Gamma(shape(k), rate(k)) for the components that are on.
pub(crate) fn draw_sites(
    place: Place,
    on: &[u16],
    values: &mut [Tile],
    shape: impl Fn(usize) -> f64,
    rate: impl Fn(usize) -> f64,
) {
    let (mut sites, mut shapes, mut draws) = ([0u32; MANY], [0.0; MANY], [0.0; MANY]);
    let Place { simd, key, site, iteration, i } = place;
    let mut active = ones(on);
    loop {
        let mut n = 0;
        for k in active.by_ref().take(MANY) {
            (sites[n], shapes[n]) = (k as u32, shape(k));
            n += 1;
        }
        if n == 0 {
            return;
        }
        gamma_sites(simd, key, site, iteration, i, &sites[..n], &shapes[..n], &mut draws[..n]);
        for (&k, draw) in sites[..n].iter().zip(&draws) {
            let k = k as usize;
            values[k / LANES].0[k % LANES] = stored(draw / rate(k));
        }
    }
}
