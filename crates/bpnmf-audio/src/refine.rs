//! Parts polished on the full magnitudes: the model was found on coarse counts, the filter shall be as fine as the sound.
//!
//! Multiplicative updates of plain KL-NMF (Lee & Seung 2001) from the posterior means, with the mask held fixed.

use rayon::prelude::*;

use crate::parts::Parts;

/// The frames are dealt to so many blocks, whatever the threads: sums over frames are taken block by block.
const BLOCKS: usize = 16;

/// Updates that polish the parts of a fit for the filter: more change little.
const REFINEMENTS: usize = 30;

/// No entry of W starts below this share of the mean of its part: products never leave zero, and what a fit to coarse counts
/// calls zero may be a partial under a louder one.
const FLOOR: f64 = 0.3;

/// Below this an expected magnitude is taken for it, so that no quotient overflows.
const LEAST: f32 = 1e-30;

impl Parts {
    /// Makes the parts of a fit ready for the filter: no entry of W starts below 0.3 of the mean of its part, and then come
    /// thirty updates. See [`Self::refine`].
    pub fn polish(&mut self, magnitudes: &[f32]) {
        for spectrum in self.spectra.chunks_exact_mut(self.bins.max(1)) {
            let least = (FLOOR * total(spectrum) / spectrum.len() as f64) as f32;
            spectrum.iter_mut().for_each(|w| *w = w.max(least));
        }
        self.refine(magnitudes, REFINEMENTS);
    }

    /// Brings W H nearer to `magnitudes` (bins x frames, frame after frame; at most 1e6): `iterations` updates of H, then
    /// W, none of which raises the KL divergence. A part that is off in a frame stays off. Uses the threads of the rayon
    /// pool it is called in; what comes out does not depend on their number.
    pub fn refine(&mut self, magnitudes: &[f32], iterations: usize) {
        if self.components == 0 || self.active.is_empty() {
            return;
        }
        let (bins, length) = (self.bins, self.frames.div_ceil(BLOCKS));
        let frames: Vec<usize> = (0..=BLOCKS).map(|block| (block * length).min(self.frames)).collect();
        let mut numerators = vec![0.0f32; BLOCKS * self.spectra.len()];
        for _ in 0..iterations {
            let columns: Vec<f64> = self.spectra.chunks_exact(bins).map(total).collect();
            let (spectra, starts, active) = (&self.spectra, &self.starts, &self.active);
            let mut blocks = Vec::with_capacity(BLOCKS);
            let mut rest = &mut self.strength[..];
            for (range, numerator) in frames.windows(2).zip(numerators.chunks_exact_mut(spectra.len())) {
                let (strength, after) = rest.split_at_mut(starts[range[1]] - starts[range[0]]);
                rest = after;
                blocks.push((range[0]..range[1], strength, numerator));
            }
            blocks.into_par_iter().for_each(|(range, strength, numerator)| {
                numerator.fill(0.0);
                let (mut ratio, offset) = (vec![0.0f32; bins], starts[range.start]);
                for t in range {
                    let on = &active[starts[t]..starts[t + 1]];
                    if on.is_empty() {
                        continue;
                    }
                    let strength = &mut strength[starts[t] - offset..starts[t + 1] - offset];
                    let column = &magnitudes[t * bins..][..bins];
                    let spectrum = |k: u32| &spectra[k as usize * bins..][..bins];
                    quotients(column, on, strength, spectrum, &mut ratio);
                    for (&k, h) in on.iter().zip(strength.iter_mut()) {
                        let size = columns[k as usize];
                        if size > 0.0 {
                            *h *= (f64::from(product(spectrum(k), &ratio)) / size) as f32;
                        }
                    }
                    quotients(column, on, strength, spectrum, &mut ratio);
                    for (&k, &h) in on.iter().zip(strength.iter()) {
                        let numerator = &mut numerator[k as usize * bins..][..bins];
                        numerator.iter_mut().zip(&ratio).for_each(|(sum, &ratio)| *sum += h * ratio);
                    }
                }
            });
            let mut rows = vec![0.0f64; self.components];
            for (&k, &h) in self.active.iter().zip(&self.strength) {
                rows[k as usize] += f64::from(h);
            }
            let size = self.spectra.len();
            let spectra = self.spectra.par_chunks_mut(bins).enumerate();
            spectra.filter(|(k, _)| rows[*k] > 0.0).for_each(|(k, spectrum)| {
                for (f, w) in spectrum.iter_mut().enumerate() {
                    let at = k * bins + f;
                    let sum: f64 = (0..BLOCKS).map(|block| f64::from(numerators[block * size + at])).sum();
                    *w *= (sum / rows[k]) as f32;
                }
            });
        }
    }

    /// The KL divergence of `magnitudes` from W H, in frames where a part is on: sum of x ln(x / y) - x + y.
    pub fn divergence(&self, magnitudes: &[f32]) -> f64 {
        let mut expected = vec![0.0; self.bins];
        let mut divergence = 0.0;
        for (t, column) in magnitudes.chunks_exact(self.bins.max(1)).enumerate() {
            if self.on(t).next().is_none() {
                continue;
            }
            self.expected(t, |_| true, &mut expected);
            for (&x, &y) in column.iter().zip(&expected) {
                let (x, y) = (f64::from(x), y.max(f64::from(LEAST)));
                divergence += y - x + if x > 0.0 { x * (x / y).ln() } else { 0.0 };
            }
        }
        divergence
    }
}

/// x / (W H) of one frame.
fn quotients<'a>(
    column: &[f32],
    on: &[u32],
    strength: &[f32],
    spectrum: impl Fn(u32) -> &'a [f32],
    ratio: &mut [f32],
) {
    ratio.fill(0.0);
    for (&k, &h) in on.iter().zip(strength) {
        ratio.iter_mut().zip(spectrum(k)).for_each(|(sum, &w)| *sum += w * h);
    }
    ratio.iter_mut().zip(column).for_each(|(ratio, &x)| *ratio = x / ratio.max(LEAST));
}

/// The inner product, in eight sums so that the compiler can take them side by side.
fn product(one: &[f32], two: &[f32]) -> f32 {
    let mut sums = [0.0f32; 8];
    let (ones, twos) = (one.chunks_exact(8), two.chunks_exact(8));
    let rest: f32 = ones.remainder().iter().zip(twos.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in ones.zip(twos) {
        for i in 0..8 {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum::<f32>() + rest
}

fn total(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value)).sum()
}
