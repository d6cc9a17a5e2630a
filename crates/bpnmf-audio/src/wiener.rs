//! The Wiener filter: how much of every bin belongs to which part and to which stem. Knows nothing of samples.

use crate::parts::Parts;

/// Gains for all parts and for stems that are sums of them.
///
/// Part k gets W_fk H_kt / sum_j W_fj H_jt of bin f in frame t, a stem the sum of its parts. Where that sum is 0, all parts
/// get the same share, and so do all stems. With a residual the sum is the magnitude where that is larger, and the
/// residual gets what is missing: max(x - sum_j W_fj H_jt, 0) over it.
#[derive(Debug, Clone)]
pub struct Wiener<'a> {
    parts: &'a Parts,
    stems: usize,
    /// The stem of every part.
    stem_of: Vec<Option<usize>>,
    residual: Option<&'a [f32]>,
}

impl<'a> Wiener<'a> {
    /// With stems that are lists of parts, each part in one of them at most. All of them add up to the whole if every
    /// part is in one.
    pub fn new(parts: &'a Parts, stems: &[Vec<usize>]) -> Self {
        let mut stem_of = vec![None; parts.components];
        for (stem, members) in stems.iter().enumerate() {
            members.iter().for_each(|&k| stem_of[k] = Some(stem));
        }
        Self { parts, stems: stems.len(), stem_of, residual: None }
    }

    /// With one more stem at the end for what the parts do not explain of `magnitudes`, bins x frames, in the units of
    /// W H.
    pub fn with_residual(mut self, magnitudes: &'a [f32]) -> Self {
        self.residual = Some(magnitudes);
        self
    }

    /// Parts, stems and, if there is one, the residual.
    pub fn outputs(&self) -> usize {
        self.parts.components + self.stems + usize::from(self.residual.is_some())
    }

    /// The gains of frame `t`: bins x outputs, output after output, parts first.
    pub fn gains(&self, t: usize, gains: &mut [f32]) {
        let (parts, bins) = (self.parts, self.parts.bins);
        let (of_parts, of_stems) = gains.split_at_mut(parts.components * bins);
        of_parts.fill(0.0);
        let mut whole = vec![0.0f64; bins];
        parts.expected(t, |_| true, &mut whole);
        let stems = self.stems + usize::from(self.residual.is_some());
        if let Some(magnitudes) = self.residual {
            let residual = &mut of_stems[self.stems * bins..];
            for ((gain, whole), &x) in residual.iter_mut().zip(&mut whole).zip(&magnitudes[t * bins..]) {
                let (x, explained) = (f64::from(x), *whole);
                *whole = explained.max(x);
                *gain = if *whole > 0.0 {
                    ((x - explained).max(0.0) / *whole) as f32
                } else {
                    1.0 / stems as f32
                };
            }
        }
        let reciprocal: Vec<f64> =
            whole.iter().map(|&whole| if whole > 0.0 { 1.0 / whole } else { 0.0 }).collect();
        for (k, h) in parts.on(t) {
            let gains = of_parts[k * bins..][..bins].iter_mut();
            for ((gain, &w), reciprocal) in gains.zip(parts.spectrum(k)).zip(&reciprocal) {
                *gain = (f64::from(w) * f64::from(h) * reciprocal) as f32;
            }
        }
        let mut sum = vec![0.0f64; bins];
        for (stem, gains) in of_stems.chunks_exact_mut(bins).take(self.stems).enumerate() {
            parts.expected(t, |k| self.stem_of[k] == Some(stem), &mut sum);
            let values = sum.iter().zip(&reciprocal).map(|(sum, reciprocal)| (sum * reciprocal) as f32);
            gains.iter_mut().zip(values).for_each(|(gain, value)| *gain = value);
        }
        for f in (0..bins).filter(|&f| whole[f] <= 0.0) {
            of_parts[f..].iter_mut().step_by(bins).for_each(|gain| *gain = 1.0 / parts.components as f32);
            let of_stems = of_stems.iter_mut().skip(f).step_by(bins);
            of_stems.for_each(|gain| *gain = 1.0 / stems as f32);
        }
    }
}
