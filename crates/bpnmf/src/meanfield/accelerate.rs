//! Coordinate ascent, accelerated: SQUAREM (Varadhan & Roland 2008), scheme S3, on the logarithms of what q(W) and q(H)
//! claim. Plain coordinate ascent needs thousands of steps where counts are many.
//!
//! From z0 two steps lead to z1 and z2. With r = z1 - z0 and v = z2 - z1 - r the next point is z0 + 2 s r + s^2 v,
//! s = |r| / |v|, and one step from there. It is kept if the bound is not below what it was; else z2 is.

use super::kernels::TINY;
use super::model::{Model, geometric};
use super::view::{Ratios, View};
use crate::kernel::{Lanes, dispatch};
use crate::special::{exp, ln};
use crate::workers::Workers;

/// Keeps the logarithm of what a parameter claims finite, in counts.
const LITTLE: f64 = 0.01;

/// The longest step at first, and the least that it is brought down to when the bound falls.
const FIRST_STEP: f64 = 4.0;
const LEAST_STEP: f64 = 1.5;

/// Cycles after which the gain is looked at.
const LOOK: usize = 5;

/// The longest way that a logarithm may go in one extrapolation.
const FAR: f64 = 20.0;

dispatch! {
    /// The logarithms of values, in their place.
    fn logarithms [] (values: &mut [f64]) = logarithms_of
}

#[inline(always)]
fn logarithms_of<V: Lanes>(values: &mut [f64]) {
    values.iter_mut().for_each(|value| *value = ln(*value));
}

impl Model {
    /// Where the model stands: log((shape - prior + little) / rate) of every W and of every h that is on.
    fn point(&self, out: &mut Vec<f64>) {
        let (a, c) = (self.prior.a(), self.prior.c());
        out.clear();
        for k in 0..self.components() {
            let claims = self.shapes(k).iter().zip(self.rates(k));
            out.extend(claims.map(|(shape, rate)| ((shape - a).max(0.0) + LITTLE) / rate));
        }
        let parts = self.parts.iter().flat_map(|parts| parts.iter());
        out.extend(parts.map(|part| ((part.shape - c).max(0.0) + LITTLE) / part.rate));
        logarithms(self.simd, out);
    }

    /// Moves to a point; the rates stay.
    fn move_to(&mut self, point: &[f64], workers: &Workers) {
        let (a, c, features) = (self.prior.a(), self.prior.c(), self.features);
        let claim = |z: f64, rate: f64| (exp(z) * rate - LITTLE).max(0.0);
        for k in 0..self.components() {
            let rates: Vec<f64> = self.rates(k).collect();
            let row = self.shape[k * features..][..features].iter_mut().zip(&point[k * features..]);
            row.zip(rates).for_each(|((shape, z), rate)| *shape = a + claim(*z, rate));
        }
        let w = self.shape.len();
        for (part, z) in self.parts.iter_mut().flatten().zip(&point[w..]) {
            part.shape = c + claim(*z, part.rate);
            part.geometric = geometric(part.shape, part.rate).max(TINY);
        }
        self.settle(workers);
    }

    /// Coordinate ascent until five cycles of three steps gain less than `tolerance` nats, at most `most` steps. The bound
    /// that is reached.
    pub(crate) fn converge(&mut self, view: &View, most: usize, tolerance: f64, workers: &Workers) -> f64 {
        let mut ratios = Ratios::new(view);
        let mut bound = self.bound(view, workers);
        let (mut last, mut longest, mut steps, mut cycles) = (bound, FIRST_STEP, 0, 0);
        let mut plain = self.clone();
        let [mut z0, mut z1, mut z2] = [const { Vec::new() }; 3];
        while steps < most && !workers.late() {
            self.point(&mut z0);
            self.step(view, 1, &mut ratios, workers);
            self.point(&mut z1);
            self.step(view, 1, &mut ratios, workers);
            self.point(&mut z2);
            steps += 2;
            let (mut rr, mut vv) = (0.0, 0.0);
            for ((z0, z1), z2) in z0.iter().zip(&z1).zip(&z2) {
                let r = z1 - z0;
                let v = z2 - z1 - r;
                rr += r * r;
                vv += v * v;
            }
            let wanted = (rr / vv.max(1e-300)).sqrt().max(1.0);
            let (capped, length) = (wanted >= longest, wanted.min(longest));
            let mut reached = None;
            if length > 1.001 {
                plain.take_place_of(self);
                for ((z0, z1), z2) in z0.iter_mut().zip(&z1).zip(&z2) {
                    let r = z1 - *z0;
                    let v = z2 - z1 - r;
                    *z0 += (2.0 * length * r + length * length * v).clamp(-FAR, FAR);
                }
                self.move_to(&z0, workers);
                self.step(view, 1, &mut ratios, workers);
                steps += 1;
                let there = self.bound(view, workers);
                if there >= bound {
                    reached = Some(there);
                } else {
                    core::mem::swap(self, &mut plain);
                    longest = (longest / 2.0).max(LEAST_STEP);
                }
            }
            if capped && (reached.is_some() || length <= 1.001) {
                longest *= 2.0;
            }
            bound = reached.unwrap_or_else(|| self.bound(view, workers));
            cycles += 1;
            if cycles % LOOK == 0 {
                if bound - last < tolerance {
                    break;
                }
                last = bound;
            }
        }
        bound
    }

    /// Convergence and learning of the prior in turn, `rounds` over or until the bound gains less than `tolerance`.
    pub(crate) fn converge_learning(
        &mut self,
        view: &View,
        most: usize,
        tolerance: f64,
        rounds: usize,
        workers: &Workers,
    ) {
        let mut last = f64::NEG_INFINITY;
        for _ in 0..rounds {
            super::hyper::learn(self, workers);
            let bound = self.converge(view, most, tolerance, workers);
            if bound - last < tolerance.max(1e-6 * bound.abs()) {
                break;
            }
            last = bound;
        }
    }
}
