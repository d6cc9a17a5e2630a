//! Sounds to spectra and back, frame by frame, as librosa cuts them. Knows nothing of models and files.
//!
//! Frame t is centred on sample t times the hop, the sound being silent before its start and after its end; the window
//! is the periodic Hann window.

use std::sync::Arc;

use rayon::prelude::*;
use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

use crate::error::Error;
use crate::overlap::Overlap;

/// Frames that are in memory at a time.
const BLOCK: usize = 32;

/// How long a frame is, in seconds, unless somebody asks.
const FRAME: f64 = 0.046;

/// A recording with fewer frames than this, each half over the next, is cut into frames of half that length.
const FEW: usize = 200;

/// The window for a sound of so many samples, `rate` of them a second: the power of two nearest to 46 ms, by its ratio,
/// or half of it for a recording of less than 200 such frames (4.6 s); at least 16.
///
/// What is short is short of frames, and its notes are short too: a note of 0.3 s and the silence around it are seen in a
/// dozen frames of 46 ms, of which a third hold its beginning or its end.
///
/// ```
/// use bpnmf_audio::default_window;
/// let minute = [8000, 16_000, 22_050, 44_100, 48_000, 1].map(|rate| default_window(rate, 60 * rate as usize));
/// assert_eq!(minute, [512, 1024, 1024, 2048, 2048, 16]);
/// assert_eq!(default_window(22_050, 3 * 22_050), 512);
/// assert_eq!(default_window(1_000_000, 0), 16_384);
/// ```
pub fn default_window(rate: u32, samples: usize) -> usize {
    let window = 1 << (FRAME * f64::from(rate)).log2().round().max(4.0) as u32;
    if samples < FEW * window / 2 { (window / 2).max(16) } else { window }
}

/// A way to cut sounds into frames.
#[derive(Clone)]
pub struct Stft {
    window: usize,
    hop: usize,
    hann: Vec<f32>,
    forward: Arc<dyn RealToComplex<f32>>,
    inverse: Arc<dyn ComplexToReal<f32>>,
}

impl Stft {
    /// Frames of `window` samples, one every `hop` samples.
    pub fn new(window: usize, hop: usize) -> Result<Self, Error> {
        let wrong = |advice| Err(Error::Frames { window, hop, advice });
        if window < 2 || window % 2 == 1 || window > 1 << 20 {
            return wrong("use an even window of at least 2 samples, at most 1048576");
        }
        if hop == 0 || hop > window / 2 {
            return wrong("use a hop of at least 1 and at most half a window, or no sound can be got back");
        }
        let mut planner = RealFftPlanner::new();
        Ok(Self {
            window,
            hop,
            hann: hann(window),
            forward: planner.plan_fft_forward(window),
            inverse: planner.plan_fft_inverse(window),
        })
    }

    /// Samples in a frame.
    pub fn window(&self) -> usize {
        self.window
    }

    /// Samples from one frame to the next.
    pub fn hop(&self) -> usize {
        self.hop
    }

    /// Frequencies in a frame, from 0 to half the rate, both included.
    pub fn bins(&self) -> usize {
        self.window / 2 + 1
    }

    /// Frames in a sound of `len` samples.
    pub fn frames(&self, len: usize) -> usize {
        1 + len / self.hop
    }

    /// The magnitudes of all frames: bins x frames, frame after frame. Uses the threads of the rayon pool it is called in.
    ///
    /// ```
    /// let stft = bpnmf_audio::Stft::new(1024, 512)?;
    /// let magnitudes = stft.magnitudes(&[0.5; 22_050]);
    /// assert_eq!(magnitudes.len(), 513 * 44);
    /// # Ok::<(), bpnmf_audio::Error>(())
    /// ```
    pub fn magnitudes(&self, samples: &[f32]) -> Vec<f32> {
        let bins = self.bins();
        let mut magnitudes = vec![0.0; bins * self.frames(samples.len())];
        let blocks = magnitudes.par_chunks_mut(bins * BLOCK).enumerate();
        blocks.for_each_init(
            || (self.scratch(), self.forward.make_output_vec()),
            |(scratch, spectrum), (block, magnitudes)| {
                for (frame, magnitudes) in magnitudes.chunks_exact_mut(bins).enumerate() {
                    self.analyse(samples, block * BLOCK + frame, scratch, spectrum);
                    for (magnitude, value) in magnitudes.iter_mut().zip(&*spectrum) {
                        *magnitude = value.norm();
                    }
                }
            },
        );
        magnitudes
    }

    /// Calls `each` with the number and the spectrum of every frame, in order.
    pub fn for_each_frame(&self, samples: &[f32], mut each: impl FnMut(usize, &[Complex<f32>])) {
        let (mut scratch, mut spectrum) = (self.scratch(), self.forward.make_output_vec());
        for frame in 0..self.frames(samples.len()) {
            self.analyse(samples, frame, &mut scratch, &mut spectrum);
            each(frame, &spectrum);
        }
    }

    /// Makes `outputs` filtered versions of a sound in one pass, in little memory.
    ///
    /// `gains(frame, gains)` fills bins x outputs factors, output after output, for one of the frames of the sound; it
    /// is called for several frames at once. `sink(output, samples)` gets the next samples of an output; all of them
    /// together are as many as `samples`. The work is dealt to the threads of the rayon pool this is called in; what
    /// comes out does not depend on their number.
    ///
    /// ```
    /// let stft = bpnmf_audio::Stft::new(16, 8)?;
    /// let sound: Vec<f32> = (0..100).map(|i| (i as f32 * 0.3).sin()).collect();
    /// let mut parts = [Vec::new(), Vec::new()];
    /// let halves = |_frame: usize, gains: &mut [f32]| {
    ///     let (low, high) = gains.split_at_mut(9);
    ///     low[..4].fill(1.0);
    ///     high[4..].fill(1.0);
    /// };
    /// stft.filter(&sound, 2, halves, |output, samples| {
    ///     parts[output].extend_from_slice(samples);
    ///     Ok::<(), bpnmf_audio::Error>(())
    /// })?;
    /// assert!((parts[0][50] + parts[1][50] - sound[50]).abs() < 1e-6);
    /// # Ok::<(), bpnmf_audio::Error>(())
    /// ```
    pub fn filter<E>(
        &self,
        samples: &[f32],
        outputs: usize,
        gains: impl Fn(usize, &mut [f32]) + Sync,
        mut sink: impl FnMut(usize, &[f32]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (bins, frames) = (self.bins(), self.frames(samples.len()));
        // The last samples are under the edge of the last window alone, where to divide by it would blow up whatever
        // the filter put there. One frame more, filtered like the last, leaves every sample well covered.
        let total = frames + usize::from(!samples.len().is_multiple_of(self.hop));
        let mut spectra = vec![Complex::default(); bins * BLOCK];
        let mut factors = vec![0.0; bins * outputs * BLOCK];
        let mut overlaps: Vec<Overlap> = (0..outputs).map(|_| Overlap::new(self, samples.len())).collect();
        for first in (0..total).step_by(BLOCK) {
            let many = BLOCK.min(total - first);
            factors.fill(0.0);
            let columns = spectra.par_chunks_mut(bins).zip(factors.par_chunks_mut((bins * outputs).max(1)));
            columns.take(many).enumerate().for_each_init(
                || self.scratch(),
                |scratch, (at, (spectrum, factors))| {
                    self.analyse(samples, first + at, scratch, spectrum);
                    gains((first + at).min(frames - 1), factors);
                },
            );
            overlaps.par_iter_mut().enumerate().for_each(|(output, overlap)| {
                for at in 0..many {
                    let factors = &factors[(at * outputs + output) * bins..][..bins];
                    overlap.push(&spectra[at * bins..][..bins], factors);
                }
                if first + many == total {
                    overlap.finish();
                }
            });
            for (output, overlap) in overlaps.iter_mut().enumerate() {
                sink(output, overlap.ready())?;
                overlap.clear();
            }
        }
        Ok(())
    }

    pub(crate) fn hann(&self) -> &[f32] {
        &self.hann
    }

    pub(crate) fn inverse(&self) -> &Arc<dyn ComplexToReal<f32>> {
        &self.inverse
    }

    fn scratch(&self) -> Scratch {
        Scratch { frame: self.forward.make_input_vec(), fft: self.forward.make_scratch_vec() }
    }

    /// The spectrum of a frame.
    fn analyse(&self, samples: &[f32], frame: usize, scratch: &mut Scratch, spectrum: &mut [Complex<f32>]) {
        // In samples from half a window before the start, so that nothing is negative.
        let (start, half) = (frame * self.hop, self.window / 2);
        let silent = half.saturating_sub(start).min(self.window);
        let from = (start + silent - half).min(samples.len());
        let to = (from + self.window - silent).min(samples.len());
        let sounding = to - from;
        scratch.frame.fill(0.0);
        let (frame, hann) = (&mut scratch.frame[silent..][..sounding], &self.hann[silent..]);
        for ((value, sample), weight) in frame.iter_mut().zip(&samples[from..to]).zip(hann) {
            *value = sample * weight;
        }
        let done = self.forward.process_with_scratch(&mut scratch.frame, spectrum, &mut scratch.fft);
        debug_assert!(done.is_ok(), "all lengths are those the plan asked for");
    }
}

impl std::fmt::Debug for Stft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stft").field("window", &self.window).field("hop", &self.hop).finish()
    }
}

/// Memory for the analysis of a frame.
struct Scratch {
    frame: Vec<f32>,
    fft: Vec<Complex<f32>>,
}

/// The periodic Hann window.
fn hann(window: usize) -> Vec<f32> {
    let turn = std::f64::consts::TAU / window as f64;
    (0..window).map(|i| (0.5 - 0.5 * (turn * i as f64).cos()) as f32).collect()
}
