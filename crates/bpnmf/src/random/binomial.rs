//! Binomial draws from a stream, for any number up to 2^53: exact but for the rounding of doubles.

use super::Stream;
use crate::special::{exp, ln, ln_1p};
use core::f64::consts::TAU;

/// From this mean on draws are made by rejection, whose hat is good from 10 on; below it by inversion.
const LARGE_MEAN: f64 = 12.0;

/// With a mean below [`LARGE_MEAN`] more than this has a probability of less than 1e-60.
const MOST: f64 = 110.0;

/// 1 / k for k = 1, 2, ...: a division in every step would be half of its time.
const RECIPROCALS: [f64; MOST as usize + 2] = {
    let mut out = [0.0; MOST as usize + 2];
    let mut k = 1;
    while k < out.len() {
        out[k] = 1.0 / k as f64;
        k += 1;
    }
    out
};

impl Stream {
    /// Binomial(n, p); p is clamped to [0, 1].
    pub fn binomial(&mut self, n: u64, p: f64) -> u64 {
        if n == 0 || p <= 0.0 {
            return 0;
        } else if p >= 1.0 {
            return n;
        } else if p > 0.5 {
            return n - self.binomial(n, 1.0 - p);
        }
        let draw = if n as f64 * p < LARGE_MEAN {
            self.invert(n as f64, p)
        } else {
            self.reject(&Rejection::new(n as f64, p))
        };
        draw as u64
    }

    /// The k at which the sum of the probabilities of 0, 1, ... exceeds a uniform number.
    fn invert(&mut self, n: f64, p: f64) -> f64 {
        let mut u = self.uniform();
        // (1 - p)^n is at least 1 - n p: small means need no power.
        if u <= 1.0 - n * p {
            return 0.0;
        }
        let odds = p / (1.0 - p);
        let first = exp(-n * ln_1p(odds));
        loop {
            let (mut rest, mut probability, mut k) = (u, first, 0.0);
            while rest > probability && k <= MOST {
                rest -= probability;
                k += 1.0;
                probability *= odds * (n + 1.0 - k) * RECIPROCALS[k as usize];
            }
            // Else what is left is the rounding of the sum.
            if k <= MOST.min(n) {
                return k;
            }
            u = self.uniform();
        }
    }

    fn reject(&mut self, hat: &Rejection) -> f64 {
        loop {
            let (u, v) = (self.uniform() - 0.5, self.uniform());
            let k = hat.candidate(u);
            if hat.surely(u, v) {
                return k;
            }
            if (0.0..=hat.n).contains(&k) && ln(v) <= hat.ln_acceptance(u, k) {
                return k;
            }
        }
    }
}

/// Transformed rejection with a squeeze (Hörmann 1993, algorithm BTRS), for p <= 1/2 and a mean of 10 or more.
#[derive(Debug)]
struct Rejection {
    n: f64,
    p: f64,
    spread: f64,
    a: f64,
    b: f64,
    squeeze: f64,
}

impl Rejection {
    #[inline(always)]
    fn new(n: f64, p: f64) -> Self {
        let spread = (n * p * (1.0 - p)).sqrt();
        let b = 1.15 + 2.53 * spread;
        Self { n, p, spread, a: -0.0873 + 0.0248 * b + 0.01 * p, b, squeeze: 0.92 - 4.2 / b }
    }

    /// The candidate of u, -1/2 < u < 1/2; it may be below 0 or above n.
    #[inline(always)]
    fn candidate(&self, u: f64) -> f64 {
        let us = 0.5 - u.abs();
        ((2.0 * self.a / us + self.b) * u + self.n * self.p + 0.5).floor()
    }

    /// True if v is so small that the candidate of u is taken whatever its probability.
    #[inline(always)]
    fn surely(&self, u: f64, v: f64) -> bool {
        0.5 - u.abs() >= 0.07 && v <= self.squeeze
    }

    /// The logarithm of the probability with which k, the candidate of u, is to be taken.
    fn ln_acceptance(&self, u: f64, k: f64) -> f64 {
        let us = 0.5 - u.abs();
        let alpha = (2.83 + 5.1 / self.b) * self.spread;
        let mode = ((self.n + 1.0) * self.p).floor();
        ln((self.a / (us * us) + self.b) / alpha) + self.ln_probability(k) - self.ln_probability(mode)
    }

    /// log of the probability of k by its distance from the mean (Loader 2000): no digits are lost for large n, as they
    /// are in differences of logarithms of factorials.
    fn ln_probability(&self, k: f64) -> f64 {
        let (n, p) = (self.n, self.p);
        if k == 0.0 {
            return -n * ln_1p(p / (1.0 - p));
        } else if k == n {
            return n * ln(p);
        }
        let corrections = stirling_rest(n) - stirling_rest(k) - stirling_rest(n - k);
        let deviances = deviance(k, n * p) + deviance(n - k, n * (1.0 - p));
        corrections - deviances - 0.5 * ln(TAU * k * ((n - k) / n))
    }
}

/// k log(k / mean) + mean - k.
fn deviance(k: f64, mean: f64) -> f64 {
    let distance = k - mean;
    if distance.abs() >= 0.1 * (k + mean) {
        return k * ln(k / mean) - distance;
    }
    // 2 k (v + v^3 / 3 + v^5 / 5 + ...) - distance with v = distance / (k + mean).
    let v = distance / (k + mean);
    let mut sum = distance * v;
    let mut term = 2.0 * k * v;
    for odd in [3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0, 17.0] {
        term *= v * v;
        sum += term / odd;
    }
    sum
}

/// log(k!) - (k log k - k + log(2 pi k) / 2) for k = 1, 2, ...
fn stirling_rest(k: f64) -> f64 {
    if k < 16.0 {
        return STIRLING_RESTS[k as usize];
    }
    let z = 1.0 / (k * k);
    (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z * (1.0 / 1680.0 - z / 1188.0)))) / k
}

/// [`stirling_rest`] below 16.
const STIRLING_RESTS: [f64; 16] = [
    0.0,
    0.081_061_466_795_327_26,
    0.041_340_695_955_409_29,
    0.027_677_925_684_998_34,
    0.020_790_672_103_765_093,
    0.016_644_691_189_821_193,
    0.013_876_128_823_070_748,
    0.011_896_709_945_891_77,
    0.010_411_265_261_972_096,
    0.009_255_462_182_712_733,
    0.008_330_563_433_362_87,
    0.007_573_675_487_951_841,
    0.006_942_840_107_209_53,
    0.006_408_994_188_004_207,
    0.005_951_370_112_758_848,
    0.005_554_733_551_962_801,
];

#[cfg(test)]
#[path = "binomial_tests.rs"]
pub(crate) mod tests;
