//! Which note sounds when in the two clips, and the spectra of the notes. Knows nothing of fits.

use crate::recording::Recording;

/// A clip: how it is divided in time, and the note of each instrument in each division.
pub(super) struct Clip {
    pub(super) folder: &'static str,
    /// What is to be known of how many parts it has.
    pub(super) truth: &'static str,
    /// Divisions of equal length; a letter is a note, a dot is silence. In the order of `INSTRUMENTS`.
    score: [&'static str; 2],
}

pub(super) const INSTRUMENTS: [&str; 2] = ["clarinet", "piano"];

pub(super) const CLIPS: [Clip; 2] = [
    Clip { folder: "clip_identifiable", truth: "10", score: ["abbccddeeaa.", "AABBCCDDEE.A"] },
    Clip { folder: "clip_paper", truth: "7 to 10", score: ["abcdedcba", "CADAEBADC"] },
];

impl Clip {
    /// The spectrum of every note: the mean of the stem's magnitudes over the frames that lie within its divisions.
    pub(super) fn spectra(&self, recording: &Recording) -> Vec<Vec<f64>> {
        let (bins, window) = (recording.bins(), recording.mixture.stft().window());
        let length = recording.mixture.sound().samples.len();
        let mut spectra = Vec::new();
        for (score, magnitudes) in self.score.iter().zip(&recording.sources) {
            let division = |sample: usize| score.as_bytes().get(sample * score.len() / length).copied();
            let sounding = |frame: usize| {
                let middle = frame * recording.mixture.stft().hop();
                let from = division(middle.checked_sub(window / 2)?)?;
                (division(middle + window / 2)? == from).then_some(from)
            };
            let mut names: Vec<u8> = score.bytes().filter(|name| *name != b'.').collect();
            names.sort_unstable();
            names.dedup();
            spectra.extend(names.into_iter().map(|name| {
                let mut sum = vec![0.0; bins];
                for (_, frame) in
                    magnitudes.chunks_exact(bins).enumerate().filter(|(t, _)| sounding(*t) == Some(name))
                {
                    sum.iter_mut().zip(frame).for_each(|(sum, &magnitude)| *sum += f64::from(magnitude));
                }
                sum
            }));
        }
        spectra
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_instrument_has_five_notes_in_each_clip() {
        for clip in &CLIPS {
            for (score, first) in clip.score.iter().zip([b'a', b'A']) {
                assert!((first..first + 5).all(|note| score.bytes().any(|name| name == note)));
                assert!(score.bytes().all(|name| name == b'.' || (first..first + 5).contains(&name)));
            }
            assert_eq!(clip.score[0].len(), clip.score[1].len());
        }
    }
}
