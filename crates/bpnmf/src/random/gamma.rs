//! Gamma draws, many at once or one alone: the same bits either way, on every machine.
//!
//! Marsaglia & Tsang (2000) in plain arithmetic without fused products, one place after the other or sixteen side by
//! side. A place (key, site, sweep, i, j) has its own numbers; it must not be shared with a [`super::Stream`].

use super::{Key, Site, philox};
use crate::kernel::{LANES, Lanes, Simd, dispatch};
use crate::special::ln;

/// The first word of a counter holds the site below and the number of the block above this bit. Attempt n at a place
/// takes block 2 n, and block 2 n + 1 if the first one does not decide it.
const BLOCK: u32 = 1 << 8;

/// Draws that are settled together if the cheap test does not settle them; their numbers fit in a byte.
const CHUNK: usize = 256;

/// First attempts that are made side by side: more than a register holds, for one of them waits most of the time.
const WIDE: usize = 2 * LANES;

/// So many draws are not worth a block of lanes.
const FEW: usize = 2;

/// Bits of the acceptance in the first block.
const ACCEPT_BITS: u32 = 11;

/// -log(U) / y, U = (high + (low + 1/2) / 2^BITS) / 2^31 with 31 bits in `high` and BITS in `low`. The relative error
/// is some 2^-23 for U near 0 and for U near 1. y between 1e-30 and 1e30.
#[inline(always)]
fn exponential<const BITS: u32>(high: u32, low: u32, y: f32) -> f32 {
    let unit = 1.0 / (1u32 << 31) as f32;
    let fraction = (low as i32 as f32 + 0.5) * (1.0 / (1u32 << BITS) as f32);
    let u = (high as i32 as f32 + fraction) * unit;
    let one_minus_u = ((0x7fff_ffff - high) as i32 as f32 + (1.0 - fraction)) * unit;
    // U = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
    let bits = u.to_bits() as i32;
    let e = (bits - 0x3f35_04f3) >> 23;
    let f = f32::from_bits((bits - (e << 23)) as u32) - 1.0;
    // e is not above 0. If it is 0, f is known better; by a mask, or a single draw would branch on it.
    let (f, better) = (f.to_bits(), (-one_minus_u).to_bits());
    let f = f32::from_bits(better ^ ((better ^ f) & (e >> 31) as u32));
    // log(1 + f) = 2 atanh(s), s = f / (2 + f). The division by y is the same division.
    let g = 2.0 + f;
    let inverse = 1.0 / (g * y);
    let s = (f * y) * inverse;
    let z = s * s;
    // Chebyshev fit, relative error 3e-9 of the logarithm before rounding.
    let p = (0.295_800_54 * z + 0.399_887_77) * z + 0.666_666_87;
    let log = 2.0 * s + s * (z * p);
    -(e as f32 * core::f32::consts::LN_2 + log) * (g * inverse)
}

/// sin(pi s), |s| <= 1/2: Chebyshev fit, relative error 5e-9 before rounding.
#[inline(always)]
fn sin_pi(s: f32) -> f32 {
    let z = s * s;
    let a = core::f32::consts::PI - z * 5.167_710_3;
    let b = 2.550_077_4 - z * 0.598_290_4;
    let z2 = z * z;
    ((0.077_655_91 * z2 + b) * z2 + a) * s
}

/// d of a shape. A shape below 1 is drawn as one more, and boosted.
#[inline(always)]
fn excess(shape: f64) -> f64 {
    (if shape < 1.0 { shape + 1.0 } else { shape }) - 1.0 / 3.0
}

/// d in single precision, within the range in which [`normal_over`] gives numbers: whatever the shape, draws end.
#[inline(always)]
fn single(d: f64) -> f32 {
    let d = d as f32;
    let d = if d > 0.5 { d } else { 0.5 };
    if d < 1e30 { d } else { 1e30 }
}

/// y = x / sqrt(9 d) for a standard normal x.
///
/// x is sqrt(-2 log U) sin(pi s) with 39 bits of U and 24 of s (Box & Muller), in single precision: the draws are
/// stored so. It is cut at 7.4 standard deviations (probability 1e-13).
#[inline(always)]
fn normal_over(words: [u32; 4], d: f32) -> f32 {
    let s = ((words[3] >> 8) as i32 as f32 - (8_388_608.0 - 0.5)) * (1.0 / (1u32 << 24) as f32);
    exponential::<8>(words[2] >> 1, words[3] & 0xff, 4.5 * d).sqrt() * sin_pi(s)
}

/// True if the candidate d (1 + y)^3 is taken whatever the bits of the acceptance behind the first are.
///
/// It is to be taken with probability exp(d g(y)), g(y) = 9 y^2 / 2 + 1 - v + log v, v = (1 + y)^3. As
/// g'(y) = -3 y^3 / (1 + y), that is at least 1 - 3/4 d y^4 / min(1, 1 + y): tighter than the usual 1 - 0.0331 x^4, and
/// the more so the larger the shape. The factor is a little above 3 to cover the rounding.
#[inline(always)]
fn surely(words: [u32; 4], d: f32, y: f32) -> bool {
    let accept = (words[1] & ((1 << ACCEPT_BITS) - 1)) as i32 as f32;
    let root = 1.0 + y;
    let least = if root < 1.0 { root } else { 1.0 };
    let y2 = y * y;
    (4.0 / (1u32 << ACCEPT_BITS) as f32) * accept * least > (3.000_01 * d * y2) * y2
}

/// True if the candidate is taken; `tail` has the next 32 bits of the acceptance.
#[inline(always)]
fn exactly(words: [u32; 4], tail: u32, d: f64, y: f64) -> bool {
    let accept =
        f64::from(words[1] & ((1 << ACCEPT_BITS) - 1)) + (f64::from(tail) + 0.5) / (1u64 << 32) as f64;
    let root = 1.0 + y;
    let inside = if root > 0.0 { root } else { 1.0 };
    let v = inside * inside * inside;
    let bound = d * (((1.0 - v) + ln(v)) + 4.5 * (y * y));
    (root > 0.0) & (ln(1.0 - accept / (1u64 << ACCEPT_BITS) as f64) < bound)
}

/// d (1 + y)^3.
#[inline(always)]
fn candidate(d: f64, y: f64) -> f64 {
    let root = 1.0 + y;
    d * (root * root * root)
}

/// U^(1 / shape), which takes a draw of shape + 1 to one of shape: a factor near 1, and the upper half of a power of
/// two in double precision. 52 bits of U.
#[inline(always)]
fn boost(words: [u32; 4], shape: f32) -> (f32, u32) {
    let shape = if shape > 1e-30 { shape } else { 1e-30 };
    let exponent = exponential::<21>(words[0] >> 1, words[1] >> ACCEPT_BITS, shape);
    // Behind this the draw is 0: so is a number whose exponent bits are all 0.
    const LAST: f32 = 1023.0 * core::f32::consts::LN_2;
    let exponent = if exponent < LAST { exponent } else { LAST };
    // -exponent = n log 2 + r, |r| <= log(2) / 2. Adding this number rounds to an integer and leaves it in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let sum = ROUND - exponent * core::f32::consts::LOG2_E;
    let n = sum - ROUND;
    let r = (-exponent - n * 0.693_359_4) + n * 2.121_944_4e-4;
    // Chebyshev fit, relative error 5e-10 before rounding.
    let r2 = r * r;
    let a = 0.5 + r * 0.166_666_67;
    let b = 4.166_646_3e-2 + r * 8.333_31e-3;
    let c = 1.393_373_1e-3 + r * 1.989_108e-4;
    let near_one = (((c * r2 + b) * r2 + a) * r2 + r) + 1.0;
    (near_one, sum.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(1023) << 20)
}

/// A candidate with its boost.
#[inline(always)]
fn boosted(value: f64, shape: f64, (near_one, power): (f32, u32)) -> f64 {
    let factor = f64::from(near_one) * f64::from_bits(u64::from(power) << 32);
    value * if shape < 1.0 { factor } else { 1.0 }
}

/// Gamma(shape, rate 1) at one place, from an attempt on.
#[inline(always)]
fn alone(key: [u32; 2], [first, sweep, i]: [u32; 3], j: u32, shape: f64, attempt: u32) -> f64 {
    let d = excess(shape);
    let mut counter = [first.wrapping_add(2 * BLOCK * attempt), sweep, i, j];
    loop {
        let words = philox::block(counter, key);
        counter[0] = counter[0].wrapping_add(BLOCK);
        let y = normal_over(words, single(d));
        if surely(words, single(d), y) || exactly(words, philox::block(counter, key)[0], d, f64::from(y)) {
            let value = candidate(d, f64::from(y));
            return if shape < 1.0 { boosted(value, shape, boost(words, shape as f32)) } else { value };
        }
        counter[0] = counter[0].wrapping_add(BLOCK);
    }
}

/// Gamma(shape, rate 1) at one place, shape between 1e-30 and 1e30. Tiny shapes may give 0.
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
    fill_on(simd, key.words(), [site as u32, sweep], Places::From([i, first_j]), shapes, out);
}

/// Gamma(shape, rate 1) at the places [i, j]: `out[n]` is [`gamma_at`] of `places[n]` and `shapes[n]`.
pub(crate) fn gamma_sites(
    simd: Simd,
    key: Key,
    site: Site,
    sweep: u32,
    places: &[[u32; 2]],
    shapes: &[f64],
    out: &mut [f64],
) {
    assert_eq!(places.len(), shapes.len(), "one shape for every place");
    fill_on(simd, key.words(), [site as u32, sweep], Places::At(places), shapes, out);
}

/// The last words of the counters.
#[derive(Clone, Copy)]
enum Places<'a> {
    From([u32; 2]),
    At(&'a [[u32; 2]]),
}

impl Places<'_> {
    #[inline(always)]
    fn get(self, n: usize) -> [u32; 2] {
        match self {
            Self::From([i, first]) => [i, first.wrapping_add(n as u32)],
            Self::At(places) => places[n],
        }
    }
}

dispatch! { fn fill_on [] (key: [u32; 2], counter: [u32; 2], places: Places<'_>, shapes: &[f64], out: &mut [f64]) = fill }

/// First attempts at all places; what the cheap test does not settle is settled chunk by chunk.
#[inline(always)]
fn fill<V: Lanes>(key: [u32; 2], counter: [u32; 2], places: Places<'_>, shapes: &[f64], out: &mut [f64]) {
    assert_eq!(shapes.len(), out.len(), "one draw for every shape");
    for start in (0..shapes.len()).step_by(CHUNK) {
        let end = shapes.len().min(start + CHUNK);
        let mut settled = [0; CHUNK];
        let mut at = start;
        while end - at >= WIDE {
            first_attempts::<WIDE>(key, counter, places, shapes, at, out, &mut settled[at - start..]);
            at += WIDE;
        }
        while end - at >= LANES {
            first_attempts::<LANES>(key, counter, places, shapes, at, out, &mut settled[at - start..]);
            at += LANES;
        }
        if at < end {
            // Lanes behind the last place draw for nobody.
            let (mut rest, mut shape, mut values) = ([[0; 2]; LANES], [1.0; LANES], [0.0; LANES]);
            for l in 0..end - at {
                rest[l] = places.get(at + l);
                shape[l] = shapes[at + l];
            }
            first_attempts::<LANES>(
                key,
                counter,
                Places::At(&rest),
                &shape,
                0,
                &mut values,
                &mut settled[at - start..],
            );
            out[at..end].copy_from_slice(&values[..end - at]);
        }
        // Only now, for what was drawn cannot be predicted: a branch on it would stop the next block.
        settle(key, counter, places, shapes, start, &settled[..end - start], out);
    }
}

/// The first attempts at N places from the `at`-th on.
#[inline(always)]
fn first_attempts<const N: usize>(
    key: [u32; 2],
    counter: [u32; 2],
    places: Places<'_>,
    shapes: &[f64],
    at: usize,
    out: &mut [f64],
    settled: &mut [u32],
) {
    let words = match places {
        Places::From([i, first]) => {
            let first = first.wrapping_add(at as u32);
            philox::blocks(counter, |l| [i, first.wrapping_add(l as u32)], key)
        }
        Places::At(places) => {
            let places: &[[u32; 2]; N] = places[at..at + N].try_into().expect("N of them");
            philox::blocks(counter, |l| places[l], key)
        }
    };
    let shape: &[f64; N] = shapes[at..at + N].try_into().expect("N of them");
    let (values, taken) = attempts(&words, None, shape);
    out[at..at + N].copy_from_slice(&values);
    settled[..N].copy_from_slice(&taken);
}

/// One attempt at each of N places, and for each if it was taken: by the cheap test, or given `tails` by the exact one.
#[inline(always)]
fn attempts<const N: usize>(
    words: &[[u32; N]; 4],
    tails: Option<&[u32; N]>,
    shape: &[f64; N],
) -> ([f64; N], [u32; N]) {
    let word = |l: usize| [words[0][l], words[1][l], words[2][l], words[3][l]];
    let (mut d, mut d_single) = ([0.0; N], [0.0; N]);
    for l in 0..N {
        d[l] = excess(shape[l]);
        d_single[l] = single(d[l]);
    }
    let (mut y, mut settled) = ([0.0; N], [0; N]);
    for l in 0..N {
        y[l] = normal_over(word(l), d_single[l]);
        settled[l] = u32::from(surely(word(l), d_single[l], y[l]));
    }
    if let Some(tails) = tails {
        for l in 0..N {
            settled[l] |= u32::from(exactly(word(l), tails[l], d[l], f64::from(y[l])));
        }
    }
    let mut values = [0.0; N];
    for l in 0..N {
        values[l] = candidate(d[l], f64::from(y[l]));
    }
    if shape.iter().fold(false, |any, &shape| any | (shape < 1.0)) {
        let (mut near_one, mut power) = ([0.0; N], [0; N]);
        let mut shape_single = [0.0; N];
        for l in 0..N {
            shape_single[l] = shape[l] as f32;
        }
        for l in 0..N {
            (near_one[l], power[l]) = boost(word(l), shape_single[l]);
        }
        for l in 0..N {
            values[l] = boosted(values[l], shape[l], (near_one[l], power[l]));
        }
    }
    (values, settled)
}

/// Draws at the places from `start` on that are not settled: their first attempt has failed the cheap test.
#[inline(always)]
fn settle(
    key: [u32; 2],
    [first, sweep]: [u32; 2],
    places: Places<'_>,
    shapes: &[f64],
    start: usize,
    settled: &[u32],
    out: &mut [f64],
) {
    let mut left = [0; CHUNK];
    let mut count = 0;
    for (block, settled) in settled.chunks(LANES).enumerate() {
        if settled.iter().fold(1, |all, &one| all & one) == 1 {
            continue;
        }
        for (l, &settled) in settled.iter().enumerate() {
            left[count] = (block * LANES + l) as u8;
            count += usize::from(settled == 0);
        }
    }
    let mut attempt = 0;
    while count > FEW {
        let number = first.wrapping_add(2 * BLOCK * attempt);
        let mut kept = 0;
        for at in (0..count).step_by(LANES) {
            let lanes = LANES.min(count - at);
            let (mut at_once, mut shape) = ([[0; 2]; LANES], [1.0; LANES]);
            for l in 0..lanes {
                let n = start + usize::from(left[at + l]);
                at_once[l] = places.get(n);
                shape[l] = shapes[n];
            }
            let words = philox::blocks([number, sweep], |l| at_once[l], key);
            let tails = philox::blocks([number.wrapping_add(BLOCK), sweep], |l| at_once[l], key)[0];
            let (values, settled) = attempts(&words, Some(&tails), &shape);
            for l in 0..lanes {
                let n = left[at + l];
                out[start + usize::from(n)] = values[l];
                left[kept] = n;
                kept += usize::from(settled[l] == 0);
            }
        }
        count = kept;
        attempt += 1;
    }
    for &n in &left[..count] {
        let n = start + usize::from(n);
        let [i, j] = places.get(n);
        out[n] = alone(key, [first, sweep, i], j, shapes[n], attempt);
    }
}

#[cfg(test)]
#[path = "gamma_tests.rs"]
mod tests;
