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
    /// What stems are sums of.
    pieces: &'a Parts,
    stems: usize,
    /// The stem of every piece.
    stem_of: Vec<Option<usize>>,
    residual: Option<&'a [f32]>,
}

impl<'a> Wiener<'a> {
    /// With stems that are lists of parts, each part in one of them at most. All of them add up to the whole if every
    /// part is in one.
    pub fn new(parts: &'a Parts, stems: &[Vec<usize>]) -> Self {
        Self::of_pieces(parts, parts, stems)
    }

    /// With stems that are lists of `pieces`, another model of the same recording.
    pub fn of_pieces(parts: &'a Parts, pieces: &'a Parts, stems: &[Vec<usize>]) -> Self {
        let mut stem_of = vec![None; pieces.components];
        for (stem, members) in stems.iter().enumerate() {
            members.iter().for_each(|&k| stem_of[k] = Some(stem));
        }
        Self { parts, pieces, stems: stems.len(), stem_of, residual: None }
    }

    /// With one more stem at the end for what is not explained of `magnitudes`, bins x frames, in the units of W H.
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
        let (of_parts, of_stems) = gains.split_at_mut(self.parts.components * self.parts.bins);
        self.gains_of_parts(t, of_parts);
        self.gains_of_stems(t, of_stems);
    }

    /// What the shares of frame `t` are taken of.
    fn whole(&self, model: &Parts, t: usize) -> Vec<f64> {
        let mut whole = vec![0.0f64; model.bins];
        model.expected(t, |_| true, &mut whole);
        if let Some(magnitudes) = self.residual {
            for (whole, &x) in whole.iter_mut().zip(&magnitudes[t * model.bins..]) {
                *whole = whole.max(f64::from(x));
            }
        }
        whole
    }

    fn gains_of_parts(&self, t: usize, gains: &mut [f32]) {
        let (parts, bins) = (self.parts, self.parts.bins);
        gains.fill(0.0);
        let whole = self.whole(parts, t);
        for (k, h) in parts.on(t) {
            let gains = gains[k * bins..][..bins].iter_mut();
            for ((gain, &w), &whole) in gains.zip(parts.spectrum(k)).zip(&whole) {
                if whole > 0.0 {
                    *gain = (f64::from(w) * f64::from(h) / whole) as f32;
                }
            }
        }
        share_evenly(&whole, parts.components, gains);
    }

    /// The gains of frame `t` for the stems alone.
    pub fn gains_of_stems(&self, t: usize, gains: &mut [f32]) {
        let (pieces, bins) = (self.pieces, self.pieces.bins);
        let whole = self.whole(pieces, t);
        let mut sum = vec![0.0f64; bins];
        for (stem, gains) in gains.chunks_exact_mut(bins).enumerate() {
            if stem < self.stems {
                pieces.expected(t, |k| self.stem_of[k] == Some(stem), &mut sum);
            } else {
                // The residual: what all pieces leave.
                pieces.expected(t, |_| true, &mut sum);
                sum.iter_mut().zip(&whole).for_each(|(sum, whole)| *sum = whole - *sum);
            }
            for ((gain, sum), &whole) in gains.iter_mut().zip(&sum).zip(&whole) {
                *gain = if whole > 0.0 { (sum / whole) as f32 } else { 0.0 };
            }
        }
        share_evenly(&whole, self.stems + usize::from(self.residual.is_some()), gains);
    }
}

/// The same gain for everybody in bins where there is nothing to share.
fn share_evenly(whole: &[f64], outputs: usize, gains: &mut [f32]) {
    let bins = whole.len();
    for f in (0..bins).filter(|&f| whole[f] <= 0.0) {
        gains.iter_mut().skip(f).step_by(bins).for_each(|gain| *gain = 1.0 / outputs as f32);
    }
}
