//! Parts polished on the full magnitudes: the model was found on coarse counts, the filter shall be as fine as the sound.
//!
//! Multiplicative updates of plain KL-NMF, [`bpnmf::nmf`], from the posterior means, with the mask held fixed.

use bpnmf::Workers;

use crate::parts::Parts;

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
    /// W, none of which raises the KL divergence. A part that is off in a frame stays off. Uses as many threads as the
    /// rayon pool it is called in has; what comes out does not depend on their number.
    pub fn refine(&mut self, magnitudes: &[f32], iterations: usize) {
        if self.components == 0 || self.active.is_empty() {
            return;
        }
        // Where in H, with all its zeros, the parts are that are on.
        let frame = |t: usize| self.active[self.starts[t]..self.starts[t + 1]].iter();
        let components = self.components;
        let sites: Vec<usize> =
            (0..self.frames).flat_map(|t| frame(t).map(move |&k| t * components + k as usize)).collect();
        let mut h = vec![0.0; self.frames * components];
        sites.iter().zip(&self.strength).for_each(|(&site, &strength)| h[site] = strength);
        let threads = rayon::current_num_threads().min(1024);
        let workers = Workers::new(threads).unwrap_or_else(|_| Workers::serial());
        let x = &magnitudes[..self.bins * self.frames];
        bpnmf::nmf(x, self.bins, &mut self.spectra, &mut h, iterations, &workers).expect("lengths that fit");
        self.strength.iter_mut().zip(sites).for_each(|(strength, site)| *strength = h[site]);
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

fn total(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value)).sum()
}
