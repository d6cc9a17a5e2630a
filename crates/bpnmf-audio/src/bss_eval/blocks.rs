//! Signals in blocks: the transforms that correlations and filters share. Knows nothing of scores.

use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use std::sync::Arc;

/// Parts a signal is cut into for the threads; fixed, so that sums come in an order that no number of threads changes.
const PARTS: usize = 32;

/// A signal and the power of two that brings its energy near 1: products of loud and faint signals lose nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signal<'a> {
    samples: &'a [f64],
    scale: f64,
}

impl<'a> Signal<'a> {
    /// `None` if all samples are 0.
    pub(super) fn new(samples: &'a [f64]) -> Option<Self> {
        let loudest = samples.iter().fold(0.0, |most: f64, sample| most.max(sample.abs()));
        if loudest == 0.0 {
            return None;
        }
        let first = power_of_two(loudest);
        let energy: f64 = samples.iter().map(|sample| (sample * first) * (sample * first)).sum();
        // The faintest numbers of all need more than the largest power there is.
        let scale = (first * power_of_two(energy.sqrt())).min(f64::MAX);
        Some(Self { samples, scale })
    }

    /// Writes the samples from `start` on (0 outside of the signal) to `out`.
    pub(super) fn copy(&self, start: isize, out: &mut [f64]) {
        let (length, first) = (self.samples.len() as isize, start.max(0));
        let last = (start + out.len() as isize).clamp(first, length.max(first));
        if first >= length {
            return out.fill(0.0);
        }
        let (lead, end) = ((first - start) as usize, (last - start) as usize);
        out[..lead].fill(0.0);
        out[end..].fill(0.0);
        for (to, from) in out[lead..end].iter_mut().zip(&self.samples[first as usize..last as usize]) {
            *to = from * self.scale;
        }
    }
}

/// The power of two that brings a positive number into [1, 2); at the ends of the range of f64, near it.
fn power_of_two(number: f64) -> f64 {
    2f64.powi(-(number.log2().floor() as i32).clamp(-1000, 1000))
}

/// How signals of one length are cut, and the transforms of a block.
pub(super) struct Blocks {
    /// Samples that a block adds.
    pub(super) step: usize,
    /// Samples of a transform.
    pub(super) size: usize,
    pub(super) taps: usize,
    count: usize,
    forward: Arc<dyn RealToComplex<f64>>,
    inverse: Arc<dyn ComplexToReal<f64>>,
}

impl Blocks {
    /// For signals of `samples` samples and what filters of `taps` taps let ring after them.
    pub(super) fn new(samples: usize, taps: usize) -> Self {
        // Eight filters long: larger transforms leave the cache, smaller ones overlap more.
        let size = (8 * taps).next_power_of_two().max(256);
        let (step, mut planner) = (size - taps + 1, RealFftPlanner::new());
        let count = (samples + taps - 1).div_ceil(step);
        let (forward, inverse) = (planner.plan_fft_forward(size), planner.plan_fft_inverse(size));
        Self { step, size, taps, count, forward, inverse }
    }

    /// The first samples of the blocks of every part.
    pub(super) fn parts(&self) -> Vec<Vec<isize>> {
        let each = self.count.div_ceil(PARTS);
        let starts: Vec<isize> = (0..self.count).map(|block| (block * self.step) as isize).collect();
        starts.chunks(each).map(<[isize]>::to_vec).collect()
    }

    /// Frequencies of a transform.
    pub(super) fn bins(&self) -> usize {
        self.size / 2 + 1
    }

    /// An empty spectrum.
    pub(super) fn spectrum(&self) -> Vec<Complex<f64>> {
        vec![Complex::default(); self.bins()]
    }

    /// Memory for one thread.
    pub(super) fn desk(&self) -> Desk<'_> {
        Desk { blocks: self, time: vec![0.0; self.size], scratch: self.spectrum() }
    }
}

/// Where one thread transforms.
pub(super) struct Desk<'a> {
    blocks: &'a Blocks,
    /// One block of samples.
    pub(super) time: Vec<f64>,
    scratch: Vec<Complex<f64>>,
}

impl Desk<'_> {
    /// The spectrum of `time`, which is lost.
    pub(super) fn forward(&mut self, spectrum: &mut [Complex<f64>]) {
        let done = self.blocks.forward.process_with_scratch(&mut self.time, spectrum, &mut self.scratch);
        done.expect("buffers of the planned sizes");
    }

    /// `time` from a spectrum, which is lost; as samples, not `size` times as large.
    pub(super) fn inverse(&mut self, spectrum: &mut [Complex<f64>]) {
        let last = spectrum.len() - 1;
        // Real by construction, but for the rounding of products.
        (spectrum[0].im, spectrum[last].im) = (0.0, 0.0);
        let done = self.blocks.inverse.process_with_scratch(spectrum, &mut self.time, &mut self.scratch);
        done.expect("buffers of the planned sizes");
        let share = 1.0 / self.blocks.size as f64;
        self.time.iter_mut().for_each(|sample| *sample *= share);
    }
}
