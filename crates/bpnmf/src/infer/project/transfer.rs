//! Exchanges between known components that resemble each other, in one column: a component hands its activation to one that
//! is off, shares it with one, or takes all of it. Single sites of the mask hardly ever do that where counts are many.
//!
//! Every move is proposed and accepted with its exact ratio, so that the sampler stays exact. Let n components be on, i one
//! of them (1/n), and j one of its partners (q(j | i)). If j is off, h_i goes to j as a whole, or u h_i does, u uniform,
//! each with probability 1/2; if it is on, i takes all of h_j, or h_i + h_j is shared out anew. Sharing with a new one and
//! taking all are each other's inverse: the ratio of their proposals is n / (n + 1), and that of the volumes h_i.

use super::Own;
use crate::counts::Counts;
use crate::infer::activations::Activations;
use crate::infer::dictionary::{Dictionary, stored};
use crate::noise::LEAST_RATE;
use crate::random::{Key, Site};
use crate::special::{ln, ln_gamma};

/// Partners are chosen by this power of their cosine.
const POWER: i32 = 4;

/// And each with at least this weight: every exchange is possible.
const LEAST_WEIGHT: f64 = 0.01;

/// Exchanges tried in a sweep: so many, and one for each component that is on.
const TRIES: u32 = 4;

/// Whom each component exchanges counts with.
pub(super) struct Partners {
    /// q(j | i) at i * K + j.
    chance: Vec<f64>,
    components: usize,
}

impl Partners {
    pub(super) fn new(dictionary: &Dictionary) -> Self {
        let components = dictionary.components();
        let row = |k: usize| dictionary.row(k)[..dictionary.features()].iter().map(|&w| f64::from(w));
        let norms: Vec<f64> = (0..components).map(|k| row(k).map(|w| w * w).sum::<f64>().sqrt()).collect();
        let mut chance = vec![0.0; components * components];
        for i in 0..components {
            for j in (0..components).filter(|&j| j != i) {
                let dot: f64 = row(i).zip(row(j)).map(|(x, y)| x * y).sum();
                let cosine = dot / (norms[i] * norms[j]).max(f64::MIN_POSITIVE);
                chance[i * components + j] = cosine.powi(POWER) + LEAST_WEIGHT;
            }
            let sum: f64 = chance[i * components..][..components].iter().sum();
            chance[i * components..][..components].iter_mut().for_each(|q| *q /= sum.max(f64::MIN_POSITIVE));
        }
        Self { chance, components }
    }

    fn of(&self, i: usize) -> &[f64] {
        &self.chance[i * self.components..][..self.components]
    }

    /// A partner of `i`, by a uniform number.
    fn drawn(&self, i: usize, mut uniform: f64) -> usize {
        let mut last = i;
        for (j, chance) in self.of(i).iter().enumerate().filter(|&(j, _)| j != i) {
            last = j;
            uniform -= chance;
            if uniform < 0.0 {
                break;
            }
        }
        last
    }
}

/// The exchanges of one column.
pub(super) struct Transfer<'a> {
    partners: &'a Partners,
    dictionary: &'a Dictionary,
    /// The positive entries, and their rates now and as proposed.
    entries: Vec<(usize, f64)>,
    rates: Vec<f64>,
    proposed: Vec<f64>,
    /// What is on, and how much.
    on: Vec<(usize, f64)>,
}

/// A proposal: what `i` and `j` become, and the log ratio of proposals and volumes.
struct Move {
    i: f64,
    j: f64,
    log_ratio: f64,
}

impl<'a> Transfer<'a> {
    pub(super) fn new(partners: &'a Partners, dictionary: &'a Dictionary) -> Self {
        let (entries, rates, proposed, on) = Default::default();
        Self { partners, dictionary, entries, rates, proposed, on }
    }

    /// Some exchanges in the only column of `counts`.
    pub(super) fn sweep(
        &mut self,
        counts: &Counts,
        own: &Own<'_>,
        sums_of_w: &[f64],
        activations: &mut Activations,
        key: Key,
        iteration: u32,
    ) {
        self.start(counts, activations);
        if self.entries.is_empty() || self.on.is_empty() || self.partners.components < 2 {
            return;
        }
        let mut stream = key.stream(Site::Transfer, iteration, 0, 0);
        for _ in 0..TRIES + self.on.len() as u32 {
            let at = ((stream.uniform() * self.on.len() as f64) as usize).min(self.on.len() - 1);
            let (i, h_i) = self.on[at];
            let j = self.partners.drawn(i, stream.uniform());
            let other = self.on.iter().position(|&(k, _)| k == j);
            let h_j = other.map_or(0.0, |other| self.on[other].1);
            let proposal = self.proposal([i, j], h_i, other.map(|_| h_j), stream.uniform(), stream.uniform());
            let gain = self.gain(own, sums_of_w, [i, j], [h_i, h_j], &proposal);
            // The number is drawn whether it is needed or not: what comes later does not depend on it.
            if ln(stream.uniform()) >= gain + proposal.log_ratio {
                continue;
            }
            std::mem::swap(&mut self.rates, &mut self.proposed);
            self.on.retain(|&(k, _)| k != i && k != j);
            for (k, h) in [(i, proposal.i), (j, proposal.j)] {
                activations.set(k, 0, (h > 0.0).then_some(h as f32));
                if h > 0.0 {
                    self.on.push((k, h));
                }
            }
            self.on.sort_unstable_by_key(|&(k, _)| k);
        }
    }

    fn start(&mut self, counts: &Counts, activations: &Activations) {
        self.entries.clear();
        self.entries.extend(counts.column(0).positive());
        self.on.clear();
        self.on.extend(activations.column(0).iter().map(|(k, h)| (k, f64::from(h))));
        self.rates.clear();
        self.rates.resize(self.entries.len(), 0.0);
        for &(k, h) in &self.on {
            let w = self.dictionary.row(k);
            self.rates.iter_mut().zip(&self.entries).for_each(|(rate, &(f, _))| *rate += h * f64::from(w[f]));
        }
    }

    /// What is tried: `kind` decides between two ways, `part` how much.
    fn proposal(&self, [i, j]: [usize; 2], h_i: f64, h_j: Option<f64>, kind: f64, part: f64) -> Move {
        let n = self.on.len() as f64;
        let held = |h: f64| f64::from(stored(h));
        match h_j {
            None if kind < 0.5 => {
                let log_ratio = ln(self.partners.of(j)[i]) - ln(self.partners.of(i)[j]);
                Move { i: 0.0, j: held(h_i), log_ratio }
            }
            None => Move {
                i: held((1.0 - part) * h_i),
                j: held(part * h_i),
                log_ratio: ln(n) - ln(n + 1.0) + ln(h_i),
            },
            Some(h_j) if kind < 0.5 => {
                Move { i: held(h_i + h_j), j: 0.0, log_ratio: ln(n) - ln(n - 1.0) - ln(h_i + h_j) }
            }
            Some(h_j) => {
                let total = h_i + h_j;
                Move { i: held((1.0 - part) * total), j: held(part * total), log_ratio: 0.0 }
            }
        }
    }

    /// What the log joint gains; leaves the proposed rates.
    fn gain(
        &mut self,
        own: &Own<'_>,
        sums_of_w: &[f64],
        [i, j]: [usize; 2],
        now: [f64; 2],
        next: &Move,
    ) -> f64 {
        let steps = [next.i - now[0], next.j - now[1]];
        let [w_i, w_j] = [i, j].map(|k| self.dictionary.row(k));
        let mut gain = -steps[0] * sums_of_w[i] - steps[1] * sums_of_w[j];
        self.proposed.clear();
        for (&(f, x), &rate) in self.entries.iter().zip(&self.rates) {
            let moved = rate + steps[0] * f64::from(w_i[f]) + steps[1] * f64::from(w_j[f]);
            // What is left of a difference is no rate.
            let moved = if moved > 1e-12 * rate { moved } else { LEAST_RATE };
            gain += x * (ln(moved) - ln(rate.max(LEAST_RATE)));
            self.proposed.push(moved);
        }
        let prior = |k: usize, h: f64| -> f64 {
            if h <= 0.0 {
                return 0.0;
            }
            let (shape, rate) = (own.shape, own.rate);
            own.odds.logit()[k] + shape * ln(rate) - ln_gamma(shape) + (shape - 1.0) * ln(h) - rate * h
        };
        gain + prior(i, next.i) + prior(j, next.j) - prior(i, now[0]) - prior(j, now[1])
    }
}
