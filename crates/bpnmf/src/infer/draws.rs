//! Rows of W and columns of H drawn from gamma distributions, many entries at once.

use super::activations::{QUAD, sites_of};
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
        // The shapes have served: several divisions at once take as long as one.
        for (j, into) in shapes.iter_mut().enumerate() {
            *into = rate(first + j);
        }
        divide(draws, shapes, out);
    }
}

/// out = draws / rates, as entries are stored.
fn divide(draws: &[f64], rates: &[f64], out: &mut [f32]) {
    for ((out, draw), rate) in out.iter_mut().zip(draws).zip(rates) {
        *out = stored(draw / rate);
    }
}

/// values[k] ~ Gamma(shape(t, k), rate(t, k)) for the components that are on in the columns from `place.i` on.
pub(crate) fn draw_sites(
    place: Place,
    tiles: usize,
    on: &[u16],
    values: &mut [Tile],
    shape: impl Fn(usize, usize) -> f64,
    rate: impl Fn(usize, usize) -> f64,
) {
    let mut sites = [[0u32; 2]; MANY];
    let (mut n, mut t) = (0, place.i);
    let mut draw = |sites: &[[u32; 2]]| {
        draw_some(place, sites, &shape, &rate, |[t, k], draw| {
            let (c, k) = ((t - place.i) as usize, k as usize);
            values[c * tiles + k / LANES].0[k % LANES] = draw;
        });
    };
    for column in on.chunks_exact(tiles) {
        for (quad, words) in column.chunks(QUAD).enumerate() {
            if n + QUAD * LANES > MANY {
                draw(&sites[..n]);
                n = 0;
            }
            let mut rest = sites_of(words);
            while rest != 0 {
                sites[n] = [t, (quad * QUAD * LANES) as u32 + rest.trailing_zeros()];
                rest &= rest - 1;
                n += 1;
            }
        }
        t += 1;
    }
    draw(&sites[..n]);
}

/// Draws ~ Gamma(shape(t, k), rate(t, k)) at any [t, k], `place.i` notwithstanding.
pub(crate) fn draw_listed(
    place: Place,
    sites: &[[u32; 2]],
    out: &mut [f32],
    shape: impl Fn(usize, usize) -> f64,
    rate: impl Fn(usize, usize) -> f64,
) {
    let mut out = out.iter_mut();
    for sites in sites.chunks(MANY) {
        draw_some(place, sites, &shape, &rate, |_, draw| {
            *out.next().expect("one place for every draw") = draw;
        });
    }
}

/// At most [`MANY`] draws.
#[inline(always)]
fn draw_some(
    place: Place,
    sites: &[[u32; 2]],
    shape: &impl Fn(usize, usize) -> f64,
    rate: &impl Fn(usize, usize) -> f64,
    mut take: impl FnMut([u32; 2], f32),
) {
    let (mut shapes, mut draws, mut out) = ([0.0; MANY], [0.0; MANY], [0.0; MANY]);
    let (shapes, draws) = (&mut shapes[..sites.len()], &mut draws[..sites.len()]);
    for (into, &[t, k]) in shapes.iter_mut().zip(sites) {
        *into = shape(t as usize, k as usize);
    }
    gamma_sites(place.simd, place.key, place.site, place.iteration, sites, shapes, draws);
    for (into, &[t, k]) in shapes.iter_mut().zip(sites) {
        *into = rate(t as usize, k as usize);
    }
    divide(draws, shapes, &mut out[..sites.len()]);
    for (&site, draw) in sites.iter().zip(out) {
        take(site, draw);
    }
}
