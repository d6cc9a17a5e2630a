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

/// Blocks of sixteen that are worked on together: more of them are more independent work for the processor.
const CHUNK: usize = 4;

/// Room for draws that the cheap test has not settled.
const OPEN: usize = 2 * CHUNK * LANES;

/// So many draws are not worth a block of lanes.
const FEW: usize = 2;

/// The half of an element that holds a word.
const LOW: u64 = u32::MAX as u64;

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
    fn new([normal, rest]: [u64; 2], shape: f64) -> Self {
        let d = (if shape < 1.0 { shape + 1.0 } else { shape }) - 1.0 / 3.0;
        // Box-Muller: sqrt(-2 log u) sin(pi s), u in (0, 1) and s in (-1/2, 1/2), both at the middle of their cells.
        let u = mantissa(normal >> 24 << 12) - (1.0 - 0.5 / (1u64 << 40) as f64);
        let s = mantissa(normal << 40 >> 12) - (1.5 - 0.5 / (1u64 << 24) as f64);
        let sine = sin_pi(s);
        let y = ln_over(u, -4.5 * d).sqrt() * sine;
        let accept = mantissa((rest & 0xfff) << 40) - 1.0;
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
    fn exactly(&self, tail: u64) -> bool {
        let cell = 1.0 / 4096.0;
        let below = (mantissa((tail & LOW) << 20) - (1.0 - 0.5 / (1u64 << 32) as f64)) * cell;
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
fn boost(rest: u64, shape: f64) -> f64 {
    let u = mantissa(rest >> 12) - (1.0 - 0.5 / (1u64 << 52) as f64);
    let power = exp_negative(ln_over(u, shape));
    if shape < 1.0 { power } else { 1.0 }
}

/// Gamma(shape, rate 1) at one place, from attempt `attempt` on.
#[inline(always)]
fn alone(key: [u32; 2], [first, sweep, i]: [u32; 3], j: u32, shape: f64, attempt: u32) -> f64 {
    debug_assert!(shape > 0.0 && shape.is_finite(), "the shape of a gamma draw is {shape}");
    let mut counter = [first.wrapping_add(2 * BLOCK * attempt), sweep, i, j];
    loop {
        let words = philox::block(counter, key).map(u64::from);
        counter[0] = counter[0].wrapping_add(BLOCK);
        let (normal, rest) = (words[2] << 32 | words[3], words[0] << 32 | words[1]);
        let candidate = Attempt::new([normal, rest], shape);
        if candidate.surely() || candidate.exactly(u64::from(philox::block(counter, key)[0])) {
            let value = candidate.value();
            return if shape < 1.0 { value * boost(rest, shape) } else { value };
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

    /// Sixteen places from the `n`-th on; those behind the last are anything.
    #[inline(always)]
    fn block(self, n: usize) -> [u32; LANES] {
        let mut j = [0; LANES];
        match self {
            Self::From(first) => {
                for l in 0..LANES {
                    j[l] = first.wrapping_add((n + l) as u32);
                }
            }
            Self::At(js) => match js[n..].first_chunk() {
                Some(js) => j = *js,
                None => {
                    for (a, b) in j.iter_mut().zip(&js[n..]) {
                        *a = *b;
                    }
                }
            },
        }
        j
    }
}

dispatch! { fn fill_on [] (key: [u32; 2], counter: [u32; 3], places: Places<'_>, shapes: &[f64], out: &mut [f64]) = fill }

#[inline(always)]
fn fill<V: Lanes>(key: [u32; 2], counter: [u32; 3], places: Places<'_>, shapes: &[f64], out: &mut [f64]) {
    assert_eq!(shapes.len(), out.len(), "one draw for every shape");
    let mut bits = [Bits { normal: [0; LANES], rest: [0; LANES] }; CHUNK];
    let mut settled = [0; CHUNK * LANES];
    let mut open = [0; OPEN];
    let mut opens = 0;
    for at in (0..shapes.len()).step_by(CHUNK * LANES) {
        let count = (shapes.len() - at).min(CHUNK * LANES);
        for (block, bits) in bits[..count.div_ceil(LANES)].iter_mut().enumerate() {
            *bits = Bits::new(key, counter, &places.block(at + block * LANES));
        }
        let shape_blocks = shapes[at..at + count].chunks_exact(LANES);
        let shape_rest = shape_blocks.remainder();
        let mut out_blocks = out[at..at + count].chunks_exact_mut(LANES);
        let settled_blocks = settled.chunks_exact_mut(LANES);
        for (((bits, shape), out), settled) in
            bits.iter().zip(shape_blocks).zip(&mut out_blocks).zip(settled_blocks)
        {
            first_attempts(
                bits,
                shape.try_into().unwrap(),
                out.try_into().unwrap(),
                settled.try_into().unwrap(),
            );
        }
        let out_rest = out_blocks.into_remainder();
        if !shape_rest.is_empty() {
            let (mut shape, mut values) = ([1.0; LANES], [0.0; LANES]);
            for (a, b) in shape.iter_mut().zip(shape_rest) {
                *a = *b;
            }
            let block = count / LANES;
            first_attempts(
                &bits[block],
                &shape,
                &mut values,
                (&mut settled[block * LANES..][..LANES]).try_into().unwrap(),
            );
            for (a, b) in out_rest.iter_mut().zip(values) {
                *a = b;
            }
        }
        for (l, settled) in settled[..count].iter().enumerate() {
            open[opens] = (at + l) as u32;
            opens += usize::from(*settled == 0);
        }
        if opens > OPEN - CHUNK * LANES || at + count == shapes.len() {
            settle(key, counter, places, shapes, &mut open[..opens], out);
            opens = 0;
        }
    }
}

#[derive(Clone, Copy)]
struct Bits {
    normal: [u64; LANES],
    rest: [u64; LANES],
}

impl Bits {
    #[inline(always)]
    fn new(key: [u32; 2], counter: [u32; 3], j: &[u32; LANES]) -> Self {
        let words = philox::blocks(counter, j, key);
        let mut bits = Bits { normal: [0; LANES], rest: [0; LANES] };
        for l in 0..LANES {
            bits.normal[l] = words[2][l] << 32 | words[3][l] & LOW;
            bits.rest[l] = words[0][l] << 32 | words[1][l] & LOW;
        }
        bits
    }
}

/// Draws at sixteen places by their first attempts, and for each if the cheap test took it.
#[inline(always)]
fn first_attempts(bits: &Bits, shape: &[f64; LANES], out: &mut [f64; LANES], settled: &mut [u64; LANES]) {
    let mut values = [0.0; LANES];
    for l in 0..LANES {
        let candidate = Attempt::new([bits.normal[l], bits.rest[l]], shape[l]);
        values[l] = candidate.value();
        settled[l] = u64::from(candidate.surely());
    }
    boost_lanes(&bits.rest, shape, &mut values);
    *out = values;
}

#[inline(always)]
fn boost_lanes(rest: &[u64; LANES], shape: &[f64; LANES], values: &mut [f64; LANES]) {
    if shape.iter().fold(false, |any, &shape| any | (shape < 1.0)) {
        for l in 0..LANES {
            values[l] *= boost(rest[l], shape[l]);
        }
    }
}

/// Draws at the places `open`, whose first attempt has failed the cheap test.
#[inline(always)]
fn settle(
    key: [u32; 2],
    [first, sweep, i]: [u32; 3],
    places: Places<'_>,
    shapes: &[f64],
    open: &mut [u32],
    out: &mut [f64],
) {
    let mut left = open.len();
    let mut attempt = 0;
    while left > FEW {
        let block = first.wrapping_add(2 * BLOCK * attempt);
        let (count, mut kept) = (left, 0);
        for at in (0..count).step_by(LANES) {
            let lanes = LANES.min(count - at);
            let (mut j, mut shape) = ([0; LANES], [1.0; LANES]);
            for l in 0..lanes {
                j[l] = places.get(open[at + l] as usize);
                shape[l] = shapes[open[at + l] as usize];
            }
            let bits = Bits::new(key, [block, sweep, i], &j);
            let tails = philox::blocks([block.wrapping_add(BLOCK), sweep, i], &j, key);
            let (mut values, mut settled) = ([0.0; LANES], [0; LANES]);
            for l in 0..LANES {
                let candidate = Attempt::new([bits.normal[l], bits.rest[l]], shape[l]);
                values[l] = candidate.value();
                settled[l] = u64::from(candidate.surely() | candidate.exactly(tails[0][l]));
            }
            boost_lanes(&bits.rest, &shape, &mut values);
            for l in 0..lanes {
                let n = open[at + l];
                out[n as usize] = values[l];
                open[kept] = n;
                kept += usize::from(settled[l] == 0);
            }
        }
        left = kept;
        attempt += 1;
    }
    for &n in &open[..left] {
        let n = n as usize;
        out[n] = alone(key, [first, sweep, i], places.get(n), shapes[n], attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timings() {
        use std::time::Instant;
        let n = 1024;
        for (name, base, step) in
            [("5..", 5.0, 0.01), ("1..2", 1.0, 1.0 / 1024.0), ("0.5", 0.5, 0.0), ("0..1", 0.01, 0.9 / 1024.0)]
        {
            let shapes: Vec<f64> = (0..n).map(|i| base + step * i as f64).collect();
            let js: Vec<u32> = (0..n as u32).map(|i| i * 3).collect();
            let mut out = vec![0.0; n];
            let mut times: Vec<(String, Vec<f64>)> = Vec::new();
            for rep in 0..801u32 {
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
#[cfg(test)]
mod parts {
    use super::*;
    use std::hint::black_box;
    use std::time::Instant;
    macro_rules! part {
        ($name:ident, $body:ident, $e:expr) => {
            dispatch! { fn $name [] (shapes: &[f64], out: &mut [f64]) = $body }
            #[inline(always)]
            fn $body<V: Lanes>(shapes: &[f64], out: &mut [f64]) {
                let f = $e;
                for (out, shapes) in out.iter_mut().zip(shapes) {
                    *out = f(*shapes);
                }
            }
        };
    }
    part!(p_copy, b_copy, |x: f64| x + 1.0);
    part!(p_ln, b_ln, |x: f64| ln_over(x, 2.0 + x));
    part!(p_exp, b_exp, |x: f64| exp_negative(x));
    part!(p_sin, b_sin, |x: f64| sin_pi(x));
    part!(p_div, b_div, |x: f64| 1.0 / x);
    part!(p_sqrt, b_sqrt, |x: f64| x.sqrt());
    part!(p_attempt, b_attempt, |x: f64| {
        let c = Attempt::new([x.to_bits(), x.to_bits()], x);
        if c.surely() { c.value() } else { 0.0 }
    });
    part!(p_boost, b_boost, |x: f64| boost(x.to_bits(), x));
    dispatch! { fn p_philox [] (out: &mut [f64]) = b_philox }
    #[inline(always)]
    fn b_philox<V: Lanes>(out: &mut [f64]) {
        for (b, out) in out.chunks_exact_mut(LANES).enumerate() {
            let mut j = [0; LANES];
            for l in 0..LANES {
                j[l] = (b * LANES + l) as u32;
            }
            let w = philox::blocks([1, 2, 3], &j, [4, 5]);
            for l in 0..LANES {
                out[l] = f64::from_bits((w[0][l] ^ w[1][l] ^ w[2][l] ^ w[3][l]) & LOW);
            }
        }
    }
    #[test]
    fn parts() {
        let n = 1024;
        let shapes: Vec<f64> = (0..n).map(|i| 0.3 + 0.0001 * i as f64).collect();
        let mut out = vec![0.0; n];
        for simd in [Simd::Avx512, Simd::Avx2, Simd::Plain] {
            let mut best = [f64::INFINITY; 12];
            for _ in 0..1000 {
                let mut slot = 0;
                let mut t = |f: &mut dyn FnMut()| {
                    let s = Instant::now();
                    f();
                    best[slot] = best[slot].min(s.elapsed().as_secs_f64() * 1e9 / n as f64);
                    slot += 1;
                };
                t(&mut || p_philox(simd, black_box(&mut out)));
                t(&mut || p_attempt(simd, black_box(&shapes), black_box(&mut out)));
                t(&mut || p_ln(simd, black_box(&shapes), black_box(&mut out)));
                t(&mut || p_sin(simd, black_box(&shapes), black_box(&mut out)));
                t(&mut || p_div(simd, black_box(&shapes), black_box(&mut out)));
                t(&mut || p_sqrt(simd, black_box(&shapes), black_box(&mut out)));
                t(&mut || p_boost(simd, black_box(&shapes), black_box(&mut out)));
                t(&mut || p_exp(simd, black_box(&shapes), black_box(&mut out)));
                t(&mut || p_copy(simd, black_box(&shapes), black_box(&mut out)));
                t(&mut || {
                    let mut x = shapes[0];
                    for _ in 0..n {
                        x = x * 1.1;
                    }
                    out[0] = x;
                });
            }
            println!(
                "{:8} philox {:.2} attempt {:.2} ln_over {:.2} sin {:.2} div {:.2} sqrt {:.2} boost {:.2} exp {:.2} copy {:.2} mul-chain {:.2}",
                simd.name(),
                best[0],
                best[1],
                best[2],
                best[3],
                best[4],
                best[5],
                best[6],
                best[7],
                best[8],
                best[9]
            );
        }
    }
}
