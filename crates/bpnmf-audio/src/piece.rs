//! A short piece of music made in code, with its stems and its notes: sound whose truth is known. Knows nothing of
//! frames, models and files.

use std::f64::consts::TAU;

use crate::sound::Sound;
use crate::transcription::{hertz_of, note_name};

/// Samples a second.
const RATE: u32 = 22_050;

/// Seconds from one beat to the next.
const BEAT: f64 = 0.42;

/// Beats in the piece.
const BEATS: f64 = 18.0;

/// Seconds of silence before the first note and after the last.
const SILENCE: f64 = 0.1;

/// Seconds a piano string needs to fall silent under its damper, and a clarinet without breath.
const RELEASE: f64 = 0.08;

/// A piece and everything it is made of.
#[derive(Debug, Clone)]
pub struct Piece {
    /// All of it.
    pub mixture: Sound,
    /// One sound an instrument. They add up to the mixture exactly.
    pub stems: Vec<(String, Sound)>,
    /// The notes of the first instrument, from low to high, then those of the second.
    pub notes: Vec<PieceNote>,
}

/// A pitch of one instrument: everything that is played on it.
#[derive(Debug, Clone)]
pub struct PieceNote {
    /// As musicians write it: A4 is 440 Hz.
    pub name: String,
    /// Which stem it is in.
    pub instrument: usize,
    /// Its frequency in Hz.
    pub pitch: f64,
    /// From when to when it is played, in seconds, in the order of time.
    pub played: Vec<(f64, f64)>,
    /// What is heard of it. The sounds of the notes of a stem add up to the stem exactly.
    pub sound: Sound,
}

/// What is played on one pitch: its number (69 is A4) and beats from, beats long.
type Line = (u8, &'static [(f64, f64)]);

/// Every chord of the piano is a stack of thirds out of these.
const PIANO: [Line; 5] = [
    (53, &[(4.0, 2.0), (11.0, 2.0), (14.0, 1.0)]),
    (57, &[(0.0, 2.0), (6.0, 2.0), (14.0, 1.0)]),
    (60, &[(2.0, 2.0), (5.0, 1.0), (8.0, 2.0), (13.0, 2.0), (16.0, 1.0)]),
    (64, &[(1.0, 2.0), (7.0, 1.0), (10.0, 1.0), (16.0, 1.0)]),
    (67, &[(3.0, 1.0), (9.0, 2.0), (12.0, 1.0), (15.0, 1.0)]),
];

/// The tune. It rests where the piano begins, and the last bars bring every note back over another one of the piano.
const CLARINET: [Line; 5] = [
    (72, &[(6.5, 1.0), (16.5, 1.5)]),
    (74, &[(2.5, 1.0), (11.5, 1.0), (15.5, 1.0)]),
    (76, &[(1.5, 1.0), (8.5, 1.5), (13.5, 1.0)]),
    (79, &[(5.5, 1.0), (10.5, 1.0), (14.5, 1.0)]),
    (81, &[(3.5, 1.5), (7.5, 1.0), (12.5, 1.0)]),
];

/// Five notes of a piano and five of a clarinet, struck and blown in so many combinations that their number, ten, can be
/// known from the sound alone: the table of notes and moments has rank ten. Some 8 seconds at 22,050 samples a second.
///
/// Samples are multiples of 2^-15, so sums of them are exact, in files of 16 bits too.
///
/// ```
/// let piece = bpnmf_audio::piece();
/// assert_eq!(piece.notes.len(), 10);
/// let (piano, clarinet) = (&piece.stems[0].1, &piece.stems[1].1);
/// assert_eq!(piece.mixture.samples[40_000], piano.samples[40_000] + clarinet.samples[40_000]);
/// ```
pub fn piece() -> Piece {
    let mut notes = Vec::new();
    for (instrument, lines) in [PIANO, CLARINET].iter().enumerate() {
        for &(number, beats) in lines {
            notes.push(note(instrument, number, beats));
        }
    }
    let stem = |instrument: usize| {
        sum(notes.iter().filter(|note| note.instrument == instrument).map(|note| &note.sound))
    };
    let stems = vec![("piano".to_owned(), stem(0)), ("clarinet".to_owned(), stem(1))];
    let mixture = sum(stems.iter().map(|(_, sound)| sound));
    Piece { mixture, stems, notes }
}

fn note(instrument: usize, number: u8, beats: &[(f64, f64)]) -> PieceNote {
    let pitch = hertz_of(f64::from(number));
    let length = ((BEATS * BEAT + RELEASE + 2.0 * SILENCE) * f64::from(RATE)).round() as usize;
    let mut samples = vec![0.0; length];
    let played: Vec<(f64, f64)> = beats
        .iter()
        .map(|&(start, beats)| (SILENCE + start * BEAT, SILENCE + (start + beats) * BEAT))
        .collect();
    for &(start, end) in &played {
        let first = (start * f64::from(RATE)).round() as usize;
        let last = ((end + RELEASE) * f64::from(RATE)).round() as usize;
        for (at, sample) in samples[first..last].iter_mut().enumerate() {
            let time = at as f64 / f64::from(RATE);
            let sound = if instrument == 0 { piano(pitch, time) } else { clarinet(pitch, time) };
            *sample += sound * damped(time, end - start);
        }
    }
    // On the grid of 16 bits sums are exact in any order.
    let samples = samples.into_iter().map(|sample| ((sample * 32_768.0).round() / 32_768.0) as f32).collect();
    PieceNote {
        name: note_name(number.into()),
        instrument,
        pitch,
        played,
        sound: Sound { samples, rate: RATE },
    }
}

/// A struck string: stiff, so that its partials are a little too high, and the higher ones fade sooner.
fn piano(pitch: f64, time: f64) -> f64 {
    let struck = smooth(time / 0.03);
    let partials =
        (1..=14).map(|k| (f64::from(k), pitch * f64::from(k) * (1.0 + 4e-4 * f64::from(k * k)).sqrt()));
    let sound: f64 = partials
        .take_while(|&(_, frequency)| frequency < 6000.0)
        .map(|(k, frequency)| {
            let fades = (-time * (1.1 + 0.12 * k)).exp();
            0.2 * k.powf(-1.15) * fades * (TAU * frequency * time + k * k).sin()
        })
        .sum();
    struck * sound
}

/// A blown tube that is closed at one end: odd partials, a soft start and a little vibrato.
fn clarinet(pitch: f64, time: f64) -> f64 {
    const PARTIALS: [f64; 9] = [1.0, 0.05, 0.5, 0.06, 0.3, 0.08, 0.14, 0.05, 0.08];
    let breath = smooth(time / 0.05) * (1.0 - 0.08 * (TAU * 5.0 * time).cos());
    // The phase of a pitch that goes up and down by 3 cents five times a second.
    let phase = TAU * pitch * (time - 0.0017 / (TAU * 5.0) * ((TAU * 5.0 * time).cos() - 1.0));
    let sound: f64 = PARTIALS
        .iter()
        .zip(1..)
        .take_while(|&(_, k)| f64::from(k) * pitch < 7000.0)
        .map(|(strength, k)| 0.18 * strength * (f64::from(k) * phase + f64::from(k * k)).sin())
        .sum();
    breath * sound
}

/// 1 as long as the note is played, then down to 0.
fn damped(time: f64, length: f64) -> f64 {
    1.0 - smooth((time - length) / RELEASE)
}

/// From 0 at 0 up to 1 at 1.
fn smooth(time: f64) -> f64 {
    0.5 - 0.5 * (time.clamp(0.0, 1.0) * TAU / 2.0).cos()
}

fn sum<'a>(sounds: impl Iterator<Item = &'a Sound>) -> Sound {
    let mut samples: Vec<f32> = Vec::new();
    for sound in sounds {
        samples.resize(sound.samples.len(), 0.0);
        samples.iter_mut().zip(&sound.samples).for_each(|(sum, sample)| *sum += sample);
    }
    Sound { samples, rate: RATE }
}

#[cfg(test)]
mod tests {
    use super::{Piece, piece};

    /// Notes x moments: which notes are played from one onset or end of any note to the next.
    fn design(piece: &Piece) -> Vec<Vec<f64>> {
        let mut times: Vec<f64> =
            piece.notes.iter().flat_map(|note| &note.played).flat_map(|&(start, end)| [start, end]).collect();
        times.sort_by(f64::total_cmp);
        times.dedup_by(|later, earlier| *later - *earlier < 1e-6);
        let middles: Vec<f64> = times.windows(2).map(|ends| (ends[0] + ends[1]) / 2.0).collect();
        let on =
            |played: &[(f64, f64)], time: f64| played.iter().any(|&(start, end)| start < time && time < end);
        piece
            .notes
            .iter()
            .map(|note| middles.iter().map(|&time| f64::from(u8::from(on(&note.played, time)))).collect())
            .collect()
    }

    /// By elimination, with the largest entry of a column first.
    fn rank(mut rows: Vec<Vec<f64>>) -> usize {
        let mut rank = 0;
        for column in 0..rows[0].len() {
            let Some(at) =
                (rank..rows.len()).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))
            else {
                break;
            };
            if rows[at][column].abs() < 1e-9 {
                continue;
            }
            rows.swap(rank, at);
            let pivot = rows[rank].clone();
            for row in &mut rows[rank + 1..] {
                let factor = row[column] / pivot[column];
                row.iter_mut().zip(&pivot).for_each(|(value, pivot)| *value -= factor * pivot);
            }
            rank += 1;
        }
        rank
    }

    #[test]
    fn the_number_of_notes_can_be_known_from_the_sound() {
        let piece = piece();
        let design = design(&piece);
        assert_eq!((piece.notes.len(), rank(design.clone())), (10, 10));
        let mut without_solos = design;
        let both = |moment: usize| {
            let any = |instrument: usize| (0..5).any(|i| without_solos[5 * instrument + i][moment] > 0.0);
            any(0) && any(1)
        };
        let moments: Vec<usize> = (0..without_solos[0].len()).filter(|&moment| both(moment)).collect();
        assert!(4 * moments.len() > 3 * without_solos[0].len(), "the instruments play together");
        without_solos =
            without_solos.iter().map(|row| moments.iter().map(|&moment| row[moment]).collect()).collect();
        assert_eq!(rank(without_solos), 10, "the notes differ even where none is alone");
    }

    #[test]
    fn the_stems_are_the_sums_of_their_notes_and_the_mixture_is_the_sum_of_the_stems() {
        let piece = piece();
        for (i, (name, stem)) in piece.stems.iter().enumerate() {
            for (at, &sample) in stem.samples.iter().enumerate() {
                let notes = piece.notes.iter().filter(|note| note.instrument == i);
                assert_eq!(
                    notes.map(|note| note.sound.samples[at]).sum::<f32>(),
                    sample,
                    "{name}, sample {at}"
                );
            }
        }
        for (at, &sample) in piece.mixture.samples.iter().enumerate() {
            assert_eq!(piece.stems[0].1.samples[at] + piece.stems[1].1.samples[at], sample);
            assert_eq!((sample * 32_768.0).fract(), 0.0, "sample {at} is on the grid of 16 bits");
        }
    }

    #[test]
    fn the_piece_is_loud_but_not_clipped_and_always_the_same() {
        let loudest = |samples: &[f32]| samples.iter().fold(0.0_f32, |most, sample| most.max(sample.abs()));
        let first = piece();
        let peak = loudest(&first.mixture.samples);
        assert!(peak > 0.5 && peak < 0.95, "peak {peak}");
        assert!((7.0..8.0).contains(&first.mixture.seconds()) && first.mixture.rate == 22_050);
        assert_eq!(first.mixture, piece().mixture);
    }

    #[test]
    fn a_note_is_silent_when_it_is_not_played() {
        for note in piece().notes {
            let rate = f64::from(note.sound.rate);
            for (at, &sample) in note.sound.samples.iter().enumerate() {
                let time = at as f64 / rate;
                let near =
                    |&(start, end): &(f64, f64)| start - 0.001 < time && time < end + super::RELEASE + 0.001;
                assert!(sample == 0.0 || note.played.iter().any(near), "{} at {time} s", note.name);
            }
        }
        assert_eq!(
            piece().notes.iter().map(|note| note.name.as_str()).collect::<Vec<_>>()[1..6],
            ["A3", "C4", "E4", "G4", "C5"]
        );
    }
}
