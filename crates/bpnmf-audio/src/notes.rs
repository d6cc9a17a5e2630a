//! What notes look like in a spectrum: a first guess for the search, which would otherwise start from whole frames, and
//! those are chords. Knows nothing of any recording.

use bpnmf::{Noise, Search};
use core::f64::consts::PI;

/// Chains of a recording unless told otherwise. The search begins with all keys, whatever the seed, and takes longer than
/// that of a table; what is asked of it are sounds.
pub const CHAINS: usize = 1;

/// The keys guessed, as MIDI numbers: from C2 to E7.
const KEYS: core::ops::RangeInclusive<i32> = 36..=100;

/// Every partial is this much weaker than the one below it.
const DECAY: f64 = 0.7;

/// The most partials of a note.
const PARTIALS: u32 = 30;

/// The spectrum of one note for every key whose fundamental is below half the rate, and a flat one for what is no note:
/// one after the other, each of `window / 2 + 1` bins.
pub fn guess(rate: u32, window: usize) -> Vec<f32> {
    let bins = window / 2 + 1;
    let bins_a_hertz = window as f64 / f64::from(rate);
    let mut spectra = Vec::new();
    for key in KEYS {
        let fundamental = 440.0 * ((f64::from(key) - 69.0) / 12.0).exp2() * bins_a_hertz;
        if fundamental >= (bins - 1) as f64 {
            break;
        }
        let mut spectrum = vec![0.0; bins];
        for partial in 1..=PARTIALS {
            let centre = f64::from(partial) * fundamental;
            let first = (centre - 3.0).ceil().max(0.0) as usize;
            for bin in first..bins.min((centre + 3.0) as usize + 1) {
                spectrum[bin] += DECAY.powi(partial as i32 - 1) * hann(bin as f64 - centre);
            }
        }
        spectra.extend(spectrum.into_iter().map(|value| value as f32));
    }
    spectra.extend(vec![1.0; bins]);
    spectra
}

/// Prepares a search in the spectrogram of a recording, frames of `window` samples at `rate`, one every `hop`: its counts
/// were given the resolution they shall be read at; frames are chords, so that notes are a better start; and a quiet part
/// that is never on for longer than a click would be is the beginning or the end of others.
pub fn prepare(search: &mut Search, rate: u32, window: usize, hop: usize) {
    search.coarsening = search.coarsening.or(Some(1.0));
    // Levels are no counts: how they scatter says nothing.
    search.noise = search.noise.or(Some(Noise::Poisson));
    search.guess = Some(guess(rate, window).into());
    // The guess is a start of its own; another search from what was found costs nearly as much as the first.
    search.restarts = 0;
    search.passing = window.div_ceil(hop.max(1));
}

/// The magnitude that a Hann window gives a sine `distance` bins away, relative to the middle.
pub(crate) fn hann(distance: f64) -> f64 {
    let distance = distance.abs();
    if distance < 1e-6 {
        return 1.0;
    }
    if (distance - 1.0).abs() < 1e-6 {
        return 0.5;
    }
    let angle = PI * distance;
    (angle.sin() / (angle * (1.0 - distance * distance))).abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stft;

    #[test]
    fn a_sine_looks_as_the_window_says() {
        let (rate, window, key) = (22_050, 1024, 81);
        let hertz = 440.0 * ((f64::from(key) - 69.0) / 12.0).exp2();
        let sine: Vec<f32> =
            (0..8192).map(|i| (2.0 * PI * hertz * f64::from(i) / f64::from(rate)).sin() as f32).collect();
        let stft = Stft::new(window, 512).unwrap();
        let seen = &stft.magnitudes(&sine)[5 * stft.bins()..6 * stft.bins()];
        let centre = hertz * window as f64 / f64::from(rate);
        let near = centre.round() as usize;
        for bin in near - 2..=near + 2 {
            let ratio = f64::from(seen[bin] / seen[near]);
            let expected = hann(bin as f64 - centre) / hann(near as f64 - centre);
            assert!((ratio - expected).abs() < 2e-3, "{bin}: {ratio} {expected}");
        }
    }

    #[test]
    fn every_guess_has_its_strongest_bin_at_the_fundamental() {
        let window = 2048;
        let guess = guess(44_100, window);
        let bins = window / 2 + 1;
        assert_eq!(guess.len(), (KEYS.count() + 1) * bins);
        for (key, spectrum) in KEYS.zip(guess.chunks(bins)).skip(12) {
            let strongest = (0..bins).max_by(|&i, &j| spectrum[i].total_cmp(&spectrum[j])).unwrap();
            let fundamental = 440.0 * ((f64::from(key) - 69.0) / 12.0).exp2() * window as f64 / 44_100.0;
            assert!((strongest as f64 - fundamental).abs() < 1.0, "{key}");
        }
    }

    #[test]
    fn keys_above_half_the_rate_are_left_out() {
        assert_eq!(guess(2000, 64).len() % 33, 0);
        assert!(guess(2000, 64).len() / 33 < KEYS.count());
        assert_eq!(guess(100, 4), [1.0; 3]);
    }
}
