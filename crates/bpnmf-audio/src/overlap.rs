//! Frames back to a sound: weighted overlap-add, one frame after the other, in the memory of one window.

use std::sync::Arc;

use realfft::ComplexToReal;
use realfft::num_complex::Complex;

use crate::stft::Stft;

/// A sound under construction.
pub(crate) struct Overlap {
    hop: usize,
    hann: Vec<f32>,
    fft: Arc<dyn ComplexToReal<f32>>,
    scratch: Vec<Complex<f32>>,
    spectrum: Vec<Complex<f32>>,
    frame: Vec<f32>,
    /// The windowed frames so far, from the start of the next frame on.
    sum: Vec<f32>,
    /// The squares of their windows.
    weight: Vec<f32>,
    /// Samples to leave out: those before the start of the sound.
    skip: usize,
    /// Samples still to come.
    left: usize,
    ready: Vec<f32>,
}

impl Overlap {
    /// For a sound of `len` samples.
    pub(crate) fn new(stft: &Stft, len: usize) -> Self {
        let (window, fft) = (stft.window(), stft.inverse().clone());
        Self {
            hop: stft.hop(),
            hann: stft.hann().to_vec(),
            scratch: fft.make_scratch_vec(),
            spectrum: fft.make_input_vec(),
            frame: fft.make_output_vec(),
            fft,
            sum: vec![0.0; window],
            weight: vec![0.0; window],
            skip: window / 2,
            left: len,
            ready: Vec::new(),
        }
    }

    /// The next frame: a spectrum times real gains.
    pub(crate) fn push(&mut self, spectrum: &[Complex<f32>], gains: &[f32]) {
        for ((product, value), gain) in self.spectrum.iter_mut().zip(spectrum).zip(gains) {
            *product = value * gain;
        }
        // The two bins that are real in the spectrum of any real frame.
        let last = self.spectrum.len() - 1;
        self.spectrum[0].im = 0.0;
        self.spectrum[last].im = 0.0;
        let done = self.fft.process_with_scratch(&mut self.spectrum, &mut self.frame, &mut self.scratch);
        debug_assert!(done.is_ok(), "all lengths are those the plan asked for");
        for ((sum, value), weight) in self.sum.iter_mut().zip(&self.frame).zip(&self.hann) {
            *sum += value * weight;
        }
        for (sum, weight) in self.weight.iter_mut().zip(&self.hann) {
            *sum += weight * weight;
        }
        self.release(self.hop);
        for buffer in [&mut self.sum, &mut self.weight] {
            buffer.copy_within(self.hop.., 0);
            let kept = buffer.len() - self.hop;
            buffer[kept..].fill(0.0);
        }
    }

    /// There are no more frames.
    pub(crate) fn finish(&mut self) {
        self.release(self.sum.len());
        self.left = 0;
    }

    /// The samples that are final and were not cleared yet.
    pub(crate) fn ready(&self) -> &[f32] {
        &self.ready
    }

    /// The final samples were used.
    pub(crate) fn clear(&mut self) {
        self.ready.clear();
    }

    /// The first `many` samples of the sum are final.
    fn release(&mut self, many: usize) {
        let from = self.skip.min(many);
        let to = (from + self.left).min(many);
        self.skip -= from;
        self.left -= to - from;
        // The transform there and back multiplies by the length of the window.
        let scale = self.sum.len() as f32;
        let sums = self.sum[from..to].iter().zip(&self.weight[from..to]);
        self.ready.extend(sums.map(|(sum, weight)| if *weight > 0.0 { sum / (weight * scale) } else { 0.0 }));
    }
}
