//! The pitch of a spectrum: the fundamental whose partials hold most of it and whose gaps hold least. Knows nothing of time.

use core::f64::consts::TAU;

use super::hertz_of;

/// The pitches looked at, as MIDI numbers: from C1 to C8.
const LOWEST: f64 = 24.0;
const HIGHEST: f64 = 108.0;

/// Steps a semitone.
const STEPS: usize = 12;

/// Partials that are looked at; each counts this much as the one below it.
const PARTIALS: usize = 20;
const DECAY: f64 = 0.84;

/// What lies half-way between two partials counts against a pitch, this much.
const GAPS: f64 = 0.8;

/// A pitch whose odd partials have less than this share of its even ones is the octave below a note.
const ODD: f64 = 0.8;

/// Magnitudes are looked at with this power: a loud partial is not the whole of a note.
const POWER: f64 = 0.6;

/// A spectrum of which a pitch explains less than this is noise.
const LEAST_HARMONIC: f64 = 0.3;

/// Other pitches that explain at least this share of what the best one does, and of what it leaves, make a chord.
const CHORD: f64 = 0.75;

/// What a part sounds like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// One pitch.
    Note,
    /// Several pitches at once.
    Chord,
    /// No pitch.
    Noise,
    /// No pitch, and never on for longer than a click.
    Click,
}

impl Kind {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Chord => "chord",
            Self::Noise => "noise",
            Self::Click => "click",
        }
    }
}

/// The pitch of a part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pitch {
    /// What it sounds like; all but a note have the pitch that explains most all the same.
    pub kind: Kind,
    /// The pitch where A4, 69, has 440 Hz: a whole number is a semitone.
    pub midi: f64,
    /// How much better it explains the spectrum than the best pitch at least a semitone away, from 0, as good, to 1.
    pub sure: f64,
}

impl Pitch {
    /// Its frequency.
    pub fn hertz(&self) -> f64 {
        hertz_of(self.midi)
    }
}

/// The pitch of a spectrum of `window / 2 + 1` bins at `rate`: of all pitches from C1 to C8, in steps of a twelfth of a
/// semitone, the one with the largest sum over its partials n of 0.84^(n-1) (a_n - 0.8 b_n), where a_n is what the
/// spectrum, to the power 0.6, has at n times the fundamental and b_n what it has half a fundamental below. A pitch with
/// empty places between its partials does not win over the octave above: its odd partials must have at least 0.8 of what the
/// even ones have, or the sum is less by what is missing.
pub(crate) fn pitch(spectrum: &[f32], rate: u32, window: usize) -> Pitch {
    let largest = spectrum.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    let mut levels: Vec<f64> =
        spectrum.iter().map(|&w| (f64::from(w) / f64::from(largest)).powf(POWER)).collect();
    let bins_a_hertz = window as f64 / f64::from(rate);
    let scores = scores(&levels, bins_a_hertz);
    let Some(best) = largest_of(&scores, |_| true) else {
        return Pitch { kind: Kind::Noise, midi: LOWEST, sure: 0.0 };
    };
    let score = scores[best].score;
    let second = largest_of(&scores, |at| at.abs_diff(best) >= STEPS).map_or(0.0, |at| scores[at].score);
    let midi = LOWEST + (best as f64 + vertex(&scores, best)) / STEPS as f64;
    let sure = if score > 0.0 { (1.0 - second / score).clamp(0.0, 1.0) } else { 0.0 };
    // What is left beside its partials.
    take_out(&mut levels, hertz_of(midi) * bins_a_hertz);
    let left = self::scores(&levels, bins_a_hertz);
    let chord = largest_of(&left, |_| true)
        .is_some_and(|other| left[other].score >= CHORD * score && left[other].harmonic >= LEAST_HARMONIC);
    let kind = match scores[best].harmonic {
        harmonic if harmonic < LEAST_HARMONIC => Kind::Noise,
        _ if chord => Kind::Chord,
        _ => Kind::Note,
    };
    Pitch { kind, midi, sure }
}

/// How well a pitch explains a spectrum.
#[derive(Clone, Copy)]
struct Salience {
    score: f64,
    /// How much more there is at its partials than between them, from -1 to 1.
    harmonic: f64,
}

fn scores(levels: &[f64], bins_a_hertz: f64) -> Vec<Salience> {
    let last = (levels.len() - 1) as f64;
    let level = |place: f64| {
        let at = place.max(0.0).floor();
        let (low, share) = (at as usize, place.max(0.0) - at);
        (1.0 - share) * levels[low] + share * levels.get(low + 1).copied().unwrap_or(0.0)
    };
    let steps = ((HIGHEST - LOWEST) as usize) * STEPS;
    (0..=steps)
        .map(|step| hertz_of(LOWEST + step as f64 / STEPS as f64) * bins_a_hertz)
        .map(|fundamental| {
            let (mut at, mut between, mut weight) = (0.0, 0.0, 1.0);
            let (mut odd, mut even) = (0.0, 0.0);
            // One partial alone could be anything.
            if 2.0 * fundamental < last {
                for n in 1..=PARTIALS {
                    let place = n as f64 * fundamental;
                    if place >= last {
                        break;
                    }
                    at += weight * level(place);
                    if n % 2 == 1 {
                        odd += weight * level(place);
                    } else {
                        even += weight / DECAY * level(place);
                    }
                    between += weight * level(place - fundamental / 2.0);
                    weight *= DECAY;
                }
            }
            let whole = at + between;
            let harmonic = if whole > 0.0 { (at - between) / whole } else { -1.0 };
            let full = if even > 0.0 { (odd / (ODD * even)).min(1.0) } else { 1.0 };
            Salience { score: full * (at - GAPS * between), harmonic }
        })
        .collect()
}

/// The first of the best ones that are wanted.
fn largest_of(scores: &[Salience], wanted: impl Fn(usize) -> bool) -> Option<usize> {
    (0..scores.len())
        .rev()
        .filter(|&at| wanted(at))
        .max_by(|&a, &b| scores[a].score.total_cmp(&scores[b].score))
}

/// Where the parabola through a score and its neighbours has its vertex, in steps.
fn vertex(scores: &[Salience], at: usize) -> f64 {
    let (Some(left), Some(right)) = (at.checked_sub(1).and_then(|i| scores.get(i)), scores.get(at + 1))
    else {
        return 0.0;
    };
    let bend = left.score - 2.0 * scores[at].score + right.score;
    if bend < 0.0 { (0.5 * (left.score - right.score) / bend).clamp(-0.5, 0.5) } else { 0.0 }
}

/// Removes all partials of a fundamental, in bins.
fn take_out(levels: &mut [f64], fundamental: f64) {
    let last = (levels.len() - 1) as f64;
    let mut place = fundamental;
    while place <= last + 2.0 {
        let first = (place - 2.0).ceil().max(0.0) as usize;
        let end = ((place + 2.0).floor() as usize + 1).min(levels.len());
        levels[first.min(end)..end].fill(0.0);
        place += fundamental;
    }
}

/// The frequency that A4 has in the tuning of these pitches: the circular mean of how far they are from semitones, by weight.
pub(crate) fn tuning(pitches: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut sine, mut cosine) = (0.0, 0.0);
    for (midi, weight) in pitches {
        sine += weight * (TAU * midi).sin();
        cosine += weight * (TAU * midi).cos();
    }
    if sine == 0.0 && cosine == 0.0 { 440.0 } else { hertz_of(69.0 + sine.atan2(cosine) / TAU) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 22_050;
    const WINDOW: usize = 1024;

    /// Partials of these levels at a pitch, as a Hann window shows them.
    fn tone(midi: f64, levels: &[f64]) -> Vec<f32> {
        let fundamental = hertz_of(midi) * WINDOW as f64 / f64::from(RATE);
        (0..WINDOW / 2 + 1)
            .map(|bin| {
                let part = |(n, level): (usize, &f64)| {
                    let off = bin as f64 - (n + 1) as f64 * fundamental;
                    level * crate::notes::hann(off) * f64::from(u8::from(off.abs() < 2.0))
                };
                (levels.iter().enumerate().map(part).sum::<f64>() + 1e-4) as f32
            })
            .collect()
    }

    fn timbres() -> [Vec<f64>; 4] {
        let falling = |decay: f64| (0..16).map(|n| f64::powi(decay, n)).collect::<Vec<f64>>();
        let odd = [1.0, 0.05, 0.5, 0.06, 0.3, 0.08, 0.14, 0.05, 0.08].to_vec();
        let weak = [0.3, 0.8, 1.0, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1].to_vec();
        [falling(0.3), falling(0.8), odd, weak]
    }

    #[test]
    fn the_pitch_of_a_tone_is_found_to_half_a_semitone_whatever_its_timbre() {
        // From where partials are six bins apart: nearer ones are not told apart by a window of four.
        for key in 48..=93 {
            for (number, levels) in timbres().iter().enumerate() {
                let midi = f64::from(key) + 0.2;
                let found = pitch(&tone(midi, levels), RATE, WINDOW);
                assert!((found.midi - midi).abs() < 0.5, "{midi} of timbre {number}: {found:?}");
            }
        }
    }

    #[test]
    fn noise_and_chords_are_no_notes() {
        assert_eq!(pitch(&[1.0; WINDOW / 2 + 1], RATE, WINDOW).kind, Kind::Noise);
        let [_, levels, ..] = timbres();
        let note = |midi: f64| tone(midi, &levels);
        let chord: Vec<f32> = note(60.0).iter().zip(&note(66.0)).map(|(a, b)| a + b).collect();
        assert_eq!(pitch(&chord, RATE, WINDOW).kind, Kind::Chord);
        assert_eq!(pitch(&note(60.0), RATE, WINDOW).kind, Kind::Note);
    }

    #[test]
    fn the_tuning_is_that_of_the_pitches() {
        let a4 = tuning([57.2, 60.2, 64.25, 81.15].into_iter().map(|midi| (midi, 2.0)));
        assert!((a4 - hertz_of(69.2)).abs() < 0.1, "{a4}");
        assert!((tuning([58.9, 71.1].into_iter().map(|midi| (midi, 1.0))) - 440.0).abs() < 1e-9);
        assert_eq!(tuning(std::iter::empty()), 440.0);
    }
}
