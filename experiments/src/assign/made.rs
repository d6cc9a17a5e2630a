//! Samples made of known signatures.

use bpnmf::{Counts, Stream};
use std::fmt;

/// Types of mutations.
pub(super) const FEATURES: usize = 96;

/// Known signatures.
pub(super) const SIGNATURES: usize = 60;

/// Of so many signatures the first have few peaks, the next more, and the last are nearly flat: shapes of their entries.
const SHAPES: [(usize, f64); 3] = [(40, 0.08), (54, 0.4), (SIGNATURES, 3.0)];

/// Alpha of counts that scatter.
const ALPHA: f64 = 30.0;

/// A kind of set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    /// Signatures in a sample, or in the cohort.
    present: usize,
    mutations: f64,
    cohort: bool,
    scattered: bool,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.cohort { "cohort" } else { "each" };
        let scattered = if self.scattered { ", scattered" } else { "" };
        write!(f, "{how} {} of {SIGNATURES}, {} mutations{scattered}", self.present, self.mutations)
    }
}

/// All kinds, or a few of them.
pub(super) fn kinds(quick: bool) -> Vec<Kind> {
    let kind = |present, mutations, cohort, scattered| Kind { present, mutations, cohort, scattered };
    if quick {
        return vec![kind(5, 2000.0, false, false), kind(10, 20_000.0, true, false)];
    }
    let mut kinds = Vec::new();
    for cohort in [false, true] {
        for present in [5, 10, 20] {
            for mutations in [200.0, 2000.0, 20_000.0] {
                kinds.push(kind(present, mutations, cohort, false));
            }
        }
    }
    for mutations in [200.0, 2000.0, 20_000.0] {
        kinds.push(kind(10, mutations, false, true));
    }
    kinds
}

/// A set.
pub(super) struct Cohort {
    /// F x K by rows.
    pub(super) signatures: Vec<f32>,
    pub(super) counts: Counts,
    /// Component k in sample t at t * K + k.
    pub(super) exposures: Vec<f64>,
}

impl Cohort {
    pub(super) fn new(kind: Kind, samples: usize, seed: u64) -> Result<Self, String> {
        let mut stream = bpnmf::bench::stream(60 + seed);
        let signatures = signatures(&mut stream);
        let active = chosen(&mut stream, &(0..SIGNATURES).collect::<Vec<_>>(), kind.present);
        let mut exposures = vec![0.0; samples * SIGNATURES];
        let mut values = Vec::with_capacity(samples * FEATURES);
        for of in exposures.chunks_exact_mut(SIGNATURES) {
            let here = if kind.cohort {
                chosen(&mut stream, &active, kind.present.div_ceil(2))
            } else {
                chosen(&mut stream, &(0..SIGNATURES).collect::<Vec<_>>(), kind.present)
            };
            here.iter().for_each(|&k| of[k] = stream.gamma(1.0));
            let sum: f64 = of.iter().sum();
            of.iter_mut().for_each(|h| *h *= kind.mutations / sum);
            for f in 0..FEATURES {
                let row = &signatures[f * SIGNATURES..][..SIGNATURES];
                let rate: f64 = row.iter().zip(&*of).map(|(w, h)| f64::from(*w) * h).sum();
                let scatter = if kind.scattered { stream.gamma(ALPHA) / ALPHA } else { 1.0 };
                values.push(stream.poisson(rate * scatter));
            }
        }
        let counts = Counts::from_dense(FEATURES, samples, values).map_err(|error| error.to_string())?;
        Ok(Self { signatures, counts, exposures })
    }
}

/// Columns that add up to 1.
fn signatures(stream: &mut Stream) -> Vec<f32> {
    let shape = |k: usize| SHAPES.iter().find(|(below, _)| k < *below).map_or(1.0, |(_, shape)| *shape);
    let raw: Vec<f64> =
        (0..FEATURES * SIGNATURES).map(|i| stream.gamma(shape(i % SIGNATURES)) + 1e-5).collect();
    let mut sums = vec![0.0; SIGNATURES];
    raw.iter().enumerate().for_each(|(i, w)| sums[i % SIGNATURES] += w);
    raw.iter().enumerate().map(|(i, w)| (w / sums[i % SIGNATURES]) as f32).collect()
}

/// `number` different ones of `all`.
fn chosen(stream: &mut Stream, all: &[usize], number: usize) -> Vec<usize> {
    let mut rest = all.to_vec();
    (0..number.min(all.len()))
        .map(|_| rest.swap_remove(((stream.uniform() * rest.len() as f64) as usize).min(rest.len() - 1)))
        .collect()
}
