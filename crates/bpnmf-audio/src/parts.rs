//! The parts of a spectrogram as the filter uses them: a spectrum each, and when and how strongly they are on.

use bpnmf::Posterior;

/// Parts that are on with less probability than this are off.
const LEAST_INCLUSION: f32 = 0.05;

/// What every entry of a spectrum is raised by, as a share of the mean: an update multiplies, and what is 0 stays so.
const FLOOR: f64 = 1e-4;

/// Non-negative spectra W and sparse activations H, so that W H is near the magnitudes of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts {
    pub(crate) bins: usize,
    pub(crate) frames: usize,
    pub(crate) components: usize,
    /// W, part after part: bin f of part k at `k * bins + f`.
    pub(crate) spectra: Vec<f32>,
    /// Frame t has the entries `starts[t] .. starts[t + 1]` of the two below.
    pub(crate) starts: Vec<usize>,
    /// Parts that are on, increasing within a frame.
    pub(crate) active: Vec<u32>,
    /// How strongly, above 0.
    pub(crate) strength: Vec<f32>,
}

impl From<&Posterior> for Parts {
    fn from(found: &Posterior) -> Self {
        Self::new(&found.dictionary, &found.activations, &found.inclusion, found.components())
    }
}

impl Parts {
    /// From W (bins x K, by rows), the masked activations H S and the probabilities of S = 1 (K x frames, by rows): a
    /// part is on in a frame where that probability is above 0.05, and W is raised by 1e-4 of the mean of its column.
    pub fn new(dictionary: &[f32], activations: &[f32], inclusion: &[f32], components: usize) -> Self {
        if components == 0 {
            let starts = vec![0];
            return Self {
                bins: 0,
                frames: 0,
                components,
                spectra: vec![],
                starts,
                active: vec![],
                strength: vec![],
            };
        }
        let (bins, frames) = (dictionary.len() / components, activations.len() / components);
        let mut spectra = Vec::with_capacity(dictionary.len());
        for k in 0..components {
            let column = || dictionary.iter().skip(k).step_by(components);
            let floor = FLOOR * column().map(|&w| f64::from(w)).sum::<f64>() / bins as f64;
            spectra.extend(column().map(|&w| (f64::from(w) + floor) as f32));
        }
        let (mut starts, mut active, mut strength) = (vec![0], Vec::new(), Vec::new());
        for t in 0..frames {
            for k in 0..components {
                let at = k * frames + t;
                if inclusion[at] > LEAST_INCLUSION && activations[at] > 0.0 {
                    active.push(k as u32);
                    strength.push(activations[at]);
                }
            }
            starts.push(active.len());
        }
        Self { bins, frames, components, spectra, starts, active, strength }
    }

    /// Parts as [`dictionary`](Self::dictionary) and [`activations`](Self::activations) give them, to the bit: what is not 0 is on.
    pub fn polished(dictionary: &[f32], activations: &[f32], components: usize) -> Self {
        let on: Vec<f32> = activations.iter().map(|&h| f32::from(u8::from(h > 0.0))).collect();
        let mut parts = Self::new(dictionary, activations, &on, components);
        for k in 0..components {
            let column = dictionary.iter().skip(k).step_by(components);
            parts.spectra[k * parts.bins..].iter_mut().zip(column).for_each(|(w, &value)| *w = value);
        }
        parts
    }

    /// Bins of a spectrum.
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// Frames of the recording.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// K, the number of parts.
    pub fn components(&self) -> usize {
        self.components
    }

    /// The spectrum of part `k`, one value a bin.
    pub fn spectrum(&self, k: usize) -> &[f32] {
        &self.spectra[k * self.bins..][..self.bins]
    }

    /// (part, strength) of those that are on in frame `t`, parts increasing.
    pub fn on(&self, t: usize) -> impl Iterator<Item = (usize, f32)> + '_ {
        let range = self.starts[t]..self.starts[t + 1];
        self.active[range.clone()].iter().map(|&k| k as usize).zip(self.strength[range].iter().copied())
    }

    /// W, bins x K by rows.
    pub fn dictionary(&self) -> Vec<f32> {
        (0..self.bins)
            .flat_map(|f| (0..self.components).map(move |k| self.spectra[k * self.bins + f]))
            .collect()
    }

    /// H, K x frames by rows.
    pub fn activations(&self) -> Vec<f32> {
        let mut rows = vec![0.0; self.components * self.frames];
        for t in 0..self.frames {
            self.on(t).for_each(|(k, h)| rows[k * self.frames + t] = h);
        }
        rows
    }

    /// W H of frame `t` and of the parts that are `wanted`, in double precision: in single precision it can come out 0.
    pub(crate) fn expected(&self, t: usize, wanted: impl Fn(usize) -> bool, sum: &mut [f64]) {
        sum.fill(0.0);
        for (k, h) in self.on(t).filter(|&(k, _)| wanted(k)) {
            let h = f64::from(h);
            sum.iter_mut().zip(self.spectrum(k)).for_each(|(sum, &w)| *sum += f64::from(w) * h);
        }
    }
}
