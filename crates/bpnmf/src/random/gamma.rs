//! Gamma draws, many at once or one alone: the same bits either way, on every machine.
//!
//! Marsaglia & Tsang (2000) in plain double-precision arithmetic, one place after the other or sixteen side by side.
//! A place (key, site, sweep, i, j) has its own numbers. It must not be shared with a [`super::Stream`].

use super::{Key, Site, philox};
use crate::kernel::{LANES, Lanes, Simd, dispatch};
use crate::special::{exp_negative, ln, ln_over, sin_pi};

/// The first word of a counter holds the site below and the number of the block above this bit. Attempt n of a place
/// takes block 2 n, and block 2 n + 1 if the first one does not decide it.
const BLOCK: u32 = 1 << 8;

/// Draws that are made together: those that one cheap test does not settle are collected and settled side by side.
const CHUNK: usize = 16 * LANES;

/// `bits` as the mantissa of a number in [1, 2).
#[inline(always)]
fn mantissa(bits: u64) -> f64 {
    f64::from_bits(bits | 0x3ff0_0000_0000_0000)
}

/// Where the 128 bits of an attempt go: 52 to the boost, whose logarithm is divided by a shape that may be tiny; 12 to
/// the acceptance, where they settle all but one case in 4096 of those that any number of bits would settle; 40 to the radius and 24 to the angle of a
/// normal draw. That normal is cut at 7.5 standard deviations (probability 5e-14), and its distribution function is
/// off by less than 1e-8 anywhere.
///
/// With d = shape - 1/3 and a standard normal x, the candidate is d v, v = (1 + y)^3, y = x / sqrt(9 d), and it is
/// taken with probability exp(d g(y)), g(y) = 9 y^2 / 2 + 1 - v + log v.
struct Attempt {
    d: f64,
    y2: f64,
    root: f64,
    /// The acceptance in [0, 1), its first 12 bits: it is between this and 1/4096 more.
    accept: f64,
}

impl Attempt {
    #[inline(always)]
    fn new(words: [u32; 4], shape: f64) -> Self {
        let d = (if shape < 1.0 { shape + 1.0 } else { shape }) - 1.0 / 3.0;
        let normal = u64::from(words[2]) << 32 | u64::from(words[3]);
        // Box-Muller: sqrt(-2 log u) sin(pi s), u in (0, 1) and s in (-1/2, 1/2), both at the middle of their cells.
        let u = mantissa(normal >> 24 << 12) - (1.0 - 0.5 / (1u64 << 40) as f64);
        let s = mantissa(normal << 40 >> 12) - (1.5 - 0.5 / (1u64 << 24) as f64);
        let sine = sin_pi(s);
        let y = ln_over(u, -4.5 * d).sqrt() * sine;
        let accept = mantissa(u64::from(words[1] & 0xfff) << 40) - 1.0;
        Self { d, y2: y * y, root: 1.0 + y, accept }
    }

    /// True if the candidate is taken whatever the other bits of the acceptance are.
    ///
    /// g'(y) = -3 y^3 / (1 + y), so -g(y) <= 3/4 y^4 / min(1, 1 + y), and exp(d g) >= 1 + d g. This is tighter than
    /// the usual 1 - 0.0331 x^4, the more so the larger the shape.
    #[inline(always)]
    fn surely(&self) -> bool {
        let least = if self.root < 1.0 { self.root } else { 1.0 };
        4.0 * self.accept * least > 3.0 * self.d * (self.y2 * self.y2)
    }

    /// True if the candidate is taken; `tail` has the next 32 bits of the acceptance.
    #[inline(always)]
    fn exactly(&self, tail: u32) -> bool {
        let cell = 1.0 / 4096.0;
        let below = (f64::from(tail) + 0.5) * (cell / (1u64 << 32) as f64);
        let root = if self.root > 0.0 { self.root } else { 1.0 };
        let v = root * root * root;
        let bound = self.d * (((1.0 - v) + ln(v)) + 4.5 * self.y2);
        (self.root > 0.0) & (ln(1.0 - (self.accept + below)) < bound)
    }

    #[inline(always)]
    fn value(&self) -> f64 {
        self.d * (self.root * self.root * self.root)
    }
}

/// U^(1 / shape), which takes a draw of shape + 1 to one of shape; 1 if the shape is not below 1.
#[inline(always)]
fn boost(words: [u32; 4], shape: f64) -> f64 {
    let bits = u64::from(words[0]) << 32 | u64::from(words[1]);
    let u = mantissa(bits >> 12) - (1.0 - 0.5 / (1u64 << 52) as f64);
    let power = exp_negative(ln_over(u, shape));
    if shape < 1.0 { power } else { 1.0 }
}

/// Gamma(shape, rate 1) at one place, from attempt `attempt` on.
#[inline(always)]
fn alone(key: [u32; 2], [first, sweep, i]: [u32; 3], j: u32, shape: f64, attempt: u32) -> f64 {
    debug_assert!(shape > 0.0 && shape.is_finite(), "the shape of a gamma draw is {shape}");
    let mut counter = [first.wrapping_add(2 * BLOCK * attempt), sweep, i, j];
    loop {
        let words = philox::block(counter, key);
        counter[0] = counter[0].wrapping_add(BLOCK);
        let candidate = Attempt::new(words, shape);
        if candidate.surely() || candidate.exactly(philox::block(counter, key)[0]) {
            let value = candidate.value();
            return if shape < 1.0 { value * boost(words, shape) } else { value };
        }
        counter[0] = counter[0].wrapping_add(BLOCK);
    }
}

/// Gamma(shape, rate 1) at one place, shape between 1e-300 and 1e300. Tiny shapes may give 0.
#[inline]
pub(crate) fn gamma_at(key: Key, site: Site, sweep: u32, i: u32, j: u32, shape: f64) -> f64 {
    alone(key.words(), [site as u32, sweep, i], j, shape, 0)
}

/// Gamma(shape, rate 1) at the places j = first_j, first_j + 1 ...: `out[n]` is [`gamma_at`] of `shapes[n]`.
pub(crate) fn gamma_row(
    simd: Simd,
    key: Key,
    site: Site,
    sweep: u32,
    i: u32,
    first_j: u32,
    shapes: &[f64],
    out: &mut [f64],
) {
    fill_on(simd, key.words(), [site as u32, sweep, i], Places::From(first_j), shapes, out);
}

/// Gamma(shape, rate 1) at the places `js`: `out[n]` is [`gamma_at`] of `js[n]` and `shapes[n]`.
pub(crate) fn gamma_sites(
    simd: Simd,
    key: Key,
    site: Site,
    sweep: u32,
    i: u32,
    js: &[u32],
    shapes: &[f64],
    out: &mut [f64],
) {
    assert_eq!(js.len(), shapes.len(), "one shape for every place");
    fill_on(simd, key.words(), [site as u32, sweep, i], Places::At(js), shapes, out);
}

/// The last words of the counters.
#[derive(Clone, Copy)]
enum Places<'a> {
    From(u32),
    At(&'a [u32]),
}

impl Places<'_> {
    #[inline(always)]
    fn get(self, n: usize) -> u32 {
        match self {
            Self::From(first) => first.wrapping_add(n as u32),
            Self::At(js) => js[n],
        }
    }
}

dispatch! { fn fill_on [] (key: [u32; 2], counter: [u32; 3], places: Places<'_>, shapes: &[f64], out: &mut [f64]) = fill }

#[inline(always)]
fn fill<V: Lanes>(key: [u32; 2], counter: [u32; 3], places: Places<'_>, shapes: &[f64], out: &mut [f64]) {
    assert_eq!(shapes.len(), out.len(), "one draw for every shape");
    let mut open = [0; CHUNK];
    for start in (0..shapes.len()).step_by(CHUNK) {
        let end = shapes.len().min(start + CHUNK);
        let mut opens = 0;
        for at in (start..end).step_by(LANES) {
            let count = LANES.min(end - at);
            let (mut j, mut shape) = ([0; LANES], [1.0; LANES]);
            match places {
                Places::From(first) => {
                    for l in 0..LANES {
                        j[l] = first.wrapping_add((at + l) as u32);
                    }
                }
                Places::At(js) => j[..count].copy_from_slice(&js[at..at + count]),
            }
            shape[..count].copy_from_slice(&shapes[at..at + count]);
            let (values, settled) = first_attempts::<V>(key, counter, &j, &shape);
            out[at..at + count].copy_from_slice(&values[..count]);
            for l in 0..count {
                open[opens] = at + l;
                opens += usize::from(settled[l] == 0);
            }
        }
        settle::<V>(key, counter, places, shapes, &mut open[..opens], out);
    }
}

/// The first attempts at sixteen places, and for each if the cheap test took it.
#[inline(always)]
fn first_attempts<V: Lanes>(
    key: [u32; 2],
    counter: [u32; 3],
    j: &[u32; LANES],
    shape: &[f64; LANES],
) -> ([f64; LANES], [u64; LANES]) {
    let mut words = [[0; LANES]; 4];
    philox::lanes_at::<V>(counter, j, key, &mut words);
    let (mut values, mut settled) = ([0.0; LANES], [0; LANES]);
    for l in 0..LANES {
        let candidate = Attempt::new([0, 1, 2, 3].map(|w| words[w][l]), shape[l]);
        values[l] = candidate.value();
        settled[l] = u64::from(candidate.surely());
    }
    boost_lanes(&words, shape, &mut values);
    (values, settled)
}

#[inline(always)]
fn boost_lanes(words: &[[u32; LANES]; 4], shape: &[f64; LANES], values: &mut [f64; LANES]) {
    if shape.iter().fold(false, |any, &shape| any | (shape < 1.0)) {
        for l in 0..LANES {
            values[l] *= boost([0, 1, 2, 3].map(|w| words[w][l]), shape[l]);
        }
    }
}

/// Draws at the places `open`, whose first attempt has failed the cheap test.
#[inline(always)]
fn settle<V: Lanes>(
    key: [u32; 2],
    counter: [u32; 3],
    places: Places<'_>,
    shapes: &[f64],
    open: &mut [usize],
    out: &mut [f64],
) {
    for &n in &*open {
        out[n] = alone(key, counter, places.get(n), shapes[n], 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timings() {
        use std::time::Instant;
        let n = 4096;
        for (name, base, step) in
            [("5..", 5.0, 0.01), ("1..2", 1.0, 1.0 / 4096.0), ("0.5", 0.5, 0.0), ("0..1", 0.01, 0.9 / 4096.0)]
        {
            let shapes: Vec<f64> = (0..n).map(|i| base + step * i as f64).collect();
            let js: Vec<u32> = (0..n as u32).map(|i| i * 3).collect();
            let mut out = vec![0.0; n];
            let mut times: Vec<(String, Vec<f64>)> = Vec::new();
            for rep in 0..101u32 {
                let mut slot = 0;
                let mut add = |label: String, f: &mut dyn FnMut()| {
                    let t = Instant::now();
                    f();
                    let ns = t.elapsed().as_secs_f64() * 1e9 / n as f64;
                    if times.len() <= slot {
                        times.push((label, Vec::new()));
                    }
                    times[slot].1.push(ns);
                    slot += 1;
                };
                let key = Key::new(1);
                for simd in [Simd::Avx512, Simd::Avx2, Simd::Plain] {
                    add(format!("row {}", simd.name()), &mut || {
                        gamma_row(simd, key, Site::Dictionary, rep, 3, 0, &shapes, &mut out)
                    });
                    add(format!("sites16 {}", simd.name()), &mut || {
                        for at in (0..n).step_by(16) {
                            gamma_sites(
                                simd,
                                key,
                                Site::Dictionary,
                                rep,
                                3,
                                &js[at..at + 16],
                                &shapes[at..at + 16],
                                &mut out[at..at + 16],
                            )
                        }
                    });
                    add(format!("sites128 {}", simd.name()), &mut || {
                        for at in (0..n).step_by(128) {
                            gamma_sites(
                                simd,
                                key,
                                Site::Dictionary,
                                rep,
                                3,
                                &js[at..at + 128],
                                &shapes[at..at + 128],
                                &mut out[at..at + 128],
                            )
                        }
                    });
                }
                add("single".into(), &mut || {
                    for l in 0..n {
                        out[l] = gamma_at(key, Site::Dictionary, rep, 3, l as u32, shapes[l])
                    }
                });
                add("stream".into(), &mut || {
                    for l in 0..n {
                        out[l] = key.stream(Site::Dictionary, rep, 3, l as u32).gamma(shapes[l])
                    }
                });
            }
            for (label, mut t) in times {
                t.sort_by(f64::total_cmp);
                println!("{name:6} {label:18} {:6.2} ns (min {:6.2})", t[t.len() / 2], t[0]);
            }
        }
    }
}
