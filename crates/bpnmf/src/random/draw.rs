//! Draws from one stream: uniform, normal, gamma (also in log space), beta on the logit scale, Poisson.

use super::philox;
use core::convert::Infallible;
use rand::TryRng;
use rand_distr::{Distribution, Poisson, StandardNormal};

/// An endless stream of random numbers that belongs to one place.
#[derive(Debug, Clone)]
pub struct Stream {
    key: [u32; 2],
    counter: [u32; 4],
    buffer: [u32; 4],
    used: usize,
}

/// The first word of a counter holds the site below and the number of the block above this bit.
const BLOCK: u32 = 1 << 8;

impl Stream {
    pub(super) fn new(key: [u32; 2], counter: [u32; 4]) -> Self {
        Self { key, counter, buffer: [0; 4], used: 4 }
    }

    fn refill(&mut self) {
        self.buffer = philox::block(self.counter, self.key);
        self.counter[0] = self.counter[0].wrapping_add(BLOCK);
        self.used = 0;
    }

    /// The next 32 bits.
    #[inline]
    pub fn word(&mut self) -> u32 {
        if self.used == 4 {
            self.refill();
        }
        self.used += 1;
        self.buffer[self.used - 1]
    }

    /// Uniform on (0, 1), never 0 or 1.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        let bits = (u64::from(self.word()) << 32 | u64::from(self.word())) >> 11;
        (bits as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
    }

    /// Standard normal.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        StandardNormal.sample(self)
    }

    /// Gamma of shape >= 1 and rate 1 (Marsaglia & Tsang 2000).
    #[inline]
    fn gamma_from_one(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let root = 1.0 + c * x;
            if root <= 0.0 {
                continue;
            }
            let v = root * root * root;
            let u = self.uniform();
            let x2 = x * x;
            if u < 1.0 - 0.0331 * x2 * x2 || u.ln() < 0.5 * x2 + d * (1.0 - v + v.ln()) {
                return d * v;
            }
        }
    }

    /// Gamma(shape, rate 1).
    #[inline]
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape >= 1.0 {
            self.gamma_from_one(shape)
        } else {
            let boost = self.uniform().ln() / shape;
            self.gamma_from_one(shape + 1.0) * boost.exp()
        }
    }

    /// The logarithm of a Gamma(shape, rate 1) draw: safe for shapes so small that the draw itself underflows.
    #[inline]
    pub fn ln_gamma_draw(&mut self, shape: f64) -> f64 {
        if shape >= 1.0 {
            self.gamma_from_one(shape).ln()
        } else {
            let boost = self.uniform().ln() / shape;
            self.gamma_from_one(shape + 1.0).ln() + boost
        }
    }

    /// logit(p) of a Beta(alpha, beta) draw p.
    #[inline]
    pub fn logit_beta(&mut self, alpha: f64, beta: f64) -> f64 {
        self.ln_gamma_draw(alpha) - self.ln_gamma_draw(beta)
    }

    /// Poisson(rate); 0 for a rate of 0.
    pub fn poisson(&mut self, rate: f64) -> f64 {
        if rate > 0.0 { Poisson::new(rate).expect("a finite rate").sample(self) } else { 0.0 }
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.word())
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from(self.word()) | u64::from(self.word()) << 32)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(4) {
            let word = self.word().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Key, Site};

    fn moments(n: usize, mut draw: impl FnMut(u32) -> f64) -> (f64, f64) {
        let values: Vec<f64> = (0..n).map(|i| draw(i as u32)).collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64)
    }

    #[test]
    fn gamma_draws_have_the_mean_and_variance_of_their_shape() {
        let n = 200_000;
        for (j, shape) in [0.05, 0.5, 1.0, 2.5, 40.0, 1e6].into_iter().enumerate() {
            let (mean, variance) =
                moments(n, |i| Key::new(1).stream(Site::Synthesis, 0, i, j as u32).gamma(shape));
            let se = (shape / n as f64).sqrt();
            assert!((mean - shape).abs() < 4.0 * se, "shape {shape}: mean {mean}");
            // Var of the sample variance: (mu4 - sigma^4) / n with mu4 = 3 s^2 + 6 s.
            let se = ((2.0 * shape * shape + 6.0 * shape) / n as f64).sqrt();
            assert!((variance - shape).abs() < 4.0 * se, "shape {shape}: variance {variance}");
        }
    }

    /// E log G = digamma(shape), Var log G = trigamma(shape); for tiny shapes about -1/shape - 0.5772 and 1/shape^2 + 1.6449.
    #[test]
    fn logit_beta_is_finite_and_right_for_the_pi_of_a_dead_component() {
        let n = 200_000;
        let (alpha, beta) = (0.002, 1001.0);
        let (mean, variance) = moments(n, |i| {
            let value = Key::new(2).stream(Site::Inclusion, 0, i, 0).logit_beta(alpha, beta);
            assert!(value.is_finite());
            value
        });
        let expected =
            (-1.0 / alpha - 0.577_215_664_9 + 1.644_934 * alpha) - (f64::ln(1001.0) - 0.5 / 1001.0);
        let spread = 1.0 / (alpha * alpha) + 1.644_934;
        assert!((mean - expected).abs() < 4.0 * (spread / n as f64).sqrt(), "{mean} against {expected}");
        // log G is close to minus an exponential: mu4 = 9 sigma^4.
        assert!(
            (variance / spread - 1.0).abs() < 4.0 * (8.0 / n as f64).sqrt(),
            "{variance} against {spread}"
        );
    }

    /// Kolmogorov-Smirnov against P(logit(p) <= x) = x-th power law: for Beta(alpha, 1), P(p <= v) = v^alpha.
    #[test]
    fn logit_beta_follows_its_distribution_function() {
        let n = 100_000;
        let alpha = 0.01;
        let mut values: Vec<f64> = (0..n)
            .map(|i| Key::new(3).stream(Site::Inclusion, 0, i, 0).logit_beta(alpha, 1.0))
            // log p = -log(1 + e^-x), then v^alpha.
            .map(|x| (alpha * if x < -30.0 { x } else { -(-x).exp().ln_1p() }).exp())
            .collect();
        values.sort_by(f64::total_cmp);
        let ks = values
            .iter()
            .enumerate()
            .map(|(i, v)| (v - (i as f64 + 0.5) / n as f64).abs())
            .fold(0.0, f64::max);
        // 1.95 / sqrt(n) is the 0.1 % point.
        assert!(ks < 1.95 / (n as f64).sqrt(), "KS distance {ks}");
    }

    #[test]
    fn a_place_always_has_the_same_numbers_and_no_two_places_share_them() {
        let draw = |site, sweep, i, j| Key::new(5).stream(site, sweep, i, j).uniform();
        assert_eq!(draw(Site::Mask, 3, 4, 5), draw(Site::Mask, 3, 4, 5));
        let all = [
            draw(Site::Mask, 3, 4, 5),
            draw(Site::MaskTail, 3, 4, 5),
            draw(Site::Mask, 4, 4, 5),
            draw(Site::Mask, 3, 5, 4),
            Key::new(6).stream(Site::Mask, 3, 4, 5).uniform(),
            Key::new(5).derived(0).stream(Site::Mask, 3, 4, 5).uniform(),
        ];
        for i in 0..all.len() {
            for j in 0..i {
                assert_ne!(all[i], all[j]);
            }
        }
    }
}
