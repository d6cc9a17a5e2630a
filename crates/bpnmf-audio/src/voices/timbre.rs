//! What notes of one instrument have in common whatever their pitch: levels of partials by number, which are its tone, and by
//! frequency, which are its body.

use crate::transcription::hertz_of;

/// Partials that are looked at.
pub(super) const PARTIALS: usize = 12;

/// Bands of frequency, so many an octave above the lowest.
const BANDS: usize = 12;
const BANDS_AN_OCTAVE: f64 = 1.5;
const LOWEST_BAND: f64 = 80.0;

/// Levels are looked at down to this below the loudest, as a factor: 50 dB.
const FAINTEST: f64 = 3.2e-3;

/// Rounds in which the levels by number and by frequency are learned in turns.
const ROUNDS: usize = 4;

/// What is known of a voice before any note of it: as much as this share of its notes says that all levels are 0.
const PRIOR: f64 = 0.03;

/// The least variance of a level, in square decibels.
const LEAST_VARIANCE: f64 = 9.0;

/// The levels of the partials of a note in decibels, and the band of each; `None` above the highest frequency.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Levels(Vec<(f64, usize)>);

/// The levels of a spectrum at multiples of a pitch.
pub(super) fn levels(spectrum: &[f64], midi: f64, bins_a_hertz: f64) -> Levels {
    let fundamental = hertz_of(midi);
    let mut found = Vec::new();
    for n in 1..=PARTIALS {
        let hertz = n as f64 * fundamental;
        let bin = (hertz * bins_a_hertz).round() as usize;
        if bin + 2 >= spectrum.len() || bin == 0 {
            break;
        }
        let level = spectrum[bin - 1..=bin + 1].iter().copied().fold(0.0, f64::max);
        let band = ((hertz / LOWEST_BAND).log2() * BANDS_AN_OCTAVE).clamp(0.0, (BANDS - 1) as f64);
        found.push((level, band as usize));
    }
    let loudest = found.iter().map(|level| level.0).fold(f64::MIN_POSITIVE, f64::max);
    found.iter_mut().for_each(|level| level.0 = 20.0 * (level.0 / loudest + FAINTEST).log10());
    Levels(found)
}

/// How a voice sounds.
pub(super) struct Timbre {
    tone: [f64; PARTIALS],
    body: [f64; BANDS],
    variance: f64,
}

impl Timbre {
    /// Learned from notes, each with a weight; `whole` is the weight of all notes by the number of voices.
    pub(super) fn learned<'a>(notes: impl Iterator<Item = (&'a Levels, f64)> + Clone, whole: f64) -> Self {
        let mut timbre = Self { tone: [0.0; PARTIALS], body: [0.0; BANDS], variance: 0.0 };
        for round in 0..ROUNDS {
            let (mut sums, mut weights) = ([0.0; PARTIALS], [PRIOR * whole; PARTIALS]);
            for (levels, weight) in notes.clone() {
                let own = timbre.loudness(levels);
                for (n, &(level, band)) in levels.0.iter().enumerate() {
                    let (place, other) =
                        if round % 2 == 0 { (n, timbre.body[band]) } else { (band, timbre.tone[n]) };
                    sums[place] += weight * (level - own - other);
                    weights[place] += weight;
                }
            }
            let place = if round % 2 == 0 { &mut timbre.tone } else { &mut timbre.body };
            for (value, (sum, weight)) in place.iter_mut().zip(sums.into_iter().zip(weights)) {
                *value = if weight > 0.0 { sum / weight } else { 0.0 };
            }
        }
        let (mut sum, mut weights) = (0.0, 1e-9);
        for (levels, weight) in notes {
            sum += weight * timbre.apart(levels);
            weights += weight;
        }
        timbre.variance = sum / weights + LEAST_VARIANCE;
        timbre
    }

    /// How unlike it a note is, as minus the logarithm of a density, up to a constant, for one level.
    pub(super) fn unlike(&self, levels: &Levels) -> f64 {
        self.apart(levels) / (2.0 * self.variance) + 0.5 * self.variance.ln()
    }

    fn expected(&self, n: usize, band: usize) -> f64 {
        self.tone[n] + self.body[band]
    }

    /// How much louder a note is than this timbre at its own loudness.
    fn loudness(&self, levels: &Levels) -> f64 {
        let many = levels.0.len().max(1) as f64;
        levels.0.iter().enumerate().map(|(n, &(level, band))| level - self.expected(n, band)).sum::<f64>()
            / many
    }

    /// The mean square of what is left of the levels of a note.
    fn apart(&self, levels: &Levels) -> f64 {
        let (own, many) = (self.loudness(levels), levels.0.len().max(1) as f64);
        let left = |(n, &(level, band)): (usize, &(f64, usize))| level - own - self.expected(n, band);
        levels.0.iter().enumerate().map(|level| left(level).powi(2)).sum::<f64>() / many
    }
}

const _: () = assert!(PARTIALS == BANDS, "sums by number and by band are taken in one place");
