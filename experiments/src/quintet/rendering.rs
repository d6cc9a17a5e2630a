//! The notes of the quintet once more, played by other instruments: five that are made up in code, so that what is tuned on one
//! rendering can be judged on another. Knows nothing of separation.

use crate::files;
use crate::recording::{Recording, Trouble};
use bpnmf_audio::{Played, Sound};
use std::f64::consts::TAU;

const RATE: u32 = 22_050;

/// Seconds of sound after the last note.
const REST: f64 = 0.5;

/// A note of the score.
pub(crate) struct Note {
    instrument: String,
    onset: f64,
    offset: f64,
    midi: f64,
}

impl Note {
    /// When and which.
    pub(crate) fn played(&self) -> Played {
        Played { onset: self.onset, offset: self.offset, midi: self.midi }
    }
}

/// The instruments, as their stems are called.
pub(crate) const NAMES: [&str; 5] = ["flute", "oboe", "clarinet", "horn", "bassoon"];

/// The quintet on these instruments, its stems and their sum.
pub(crate) fn recording() -> Result<Recording, Trouble> {
    let stems = render(&notes()?, &NAMES);
    let mut mixture = Sound { samples: vec![0.0; stems[0].samples.len()], rate: RATE };
    for stem in &stems {
        mixture.samples.iter_mut().zip(&stem.samples).for_each(|(sum, sample)| *sum += sample);
    }
    Recording::of(mixture, NAMES.to_vec(), stems, None)
}

/// How an instrument sounds.
struct Instrument {
    name: &'static str,
    /// Levels of the odd and of the even partials; each partial is `decay` of the one of its kind before.
    odd: f64,
    even: f64,
    decay: f64,
    /// Frequencies around which its body sounds louder, how wide in octaves, and by which factor.
    formants: &'static [(f64, f64, f64)],
    /// Seconds until a note sounds, and until it is over.
    attack: f64,
    release: f64,
    /// How much softer a note is after a second, as a factor.
    fades: f64,
    /// Vibrato: times a second, and cents.
    vibrato: (f64, f64),
    /// Breath beside the tone.
    breath: f64,
    level: f64,
}

const INSTRUMENTS: [Instrument; 5] = [
    Instrument {
        name: "flute",
        odd: 1.0,
        even: 0.5,
        decay: 0.3,
        formants: &[(900.0, 1.0, 1.5)],
        attack: 0.06,
        release: 0.06,
        fades: 0.9,
        vibrato: (5.3, 14.0),
        breath: 0.02,
        level: 0.08,
    },
    Instrument {
        name: "oboe",
        odd: 0.8,
        even: 1.0,
        decay: 0.72,
        formants: &[(1100.0, 0.5, 4.0), (2900.0, 0.4, 3.0)],
        attack: 0.025,
        release: 0.05,
        fades: 1.0,
        vibrato: (4.6, 7.0),
        breath: 0.004,
        level: 0.025,
    },
    Instrument {
        name: "clarinet",
        odd: 1.0,
        even: 0.06,
        decay: 0.62,
        formants: &[(1600.0, 0.8, 1.8)],
        attack: 0.04,
        release: 0.07,
        fades: 1.0,
        vibrato: (0.0, 0.0),
        breath: 0.006,
        level: 0.065,
    },
    Instrument {
        name: "horn",
        odd: 1.0,
        even: 0.9,
        decay: 0.45,
        formants: &[(380.0, 0.7, 3.0)],
        attack: 0.05,
        release: 0.09,
        fades: 0.8,
        vibrato: (0.0, 0.0),
        breath: 0.003,
        level: 0.055,
    },
    Instrument {
        name: "bassoon",
        odd: 0.7,
        even: 0.8,
        decay: 0.82,
        formants: &[(500.0, 0.5, 5.0), (1200.0, 0.5, 2.0)],
        attack: 0.03,
        release: 0.05,
        fades: 0.85,
        vibrato: (4.0, 4.0),
        breath: 0.004,
        level: 0.03,
    },
];

/// The notes of the quintet.
pub(crate) fn notes() -> Result<Vec<Note>, Trouble> {
    let path = files::data("quintet/notes.csv").map_err(|path| {
        Trouble::Absent(format!(
            "{} is not there; the variable BPNMF_DATA names the folder of the data",
            path.display()
        ))
    })?;
    let bad = |what: String| Trouble::Bad(format!("{}: {what}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| bad(error.to_string()))?;
    let note = |line: &str| {
        let mut cells = line.split(',');
        let instrument = cells.next()?.to_owned();
        let mut number = || cells.next()?.trim().parse().ok();
        Some(Note { instrument, onset: number()?, offset: number()?, midi: number()? })
    };
    text.lines().skip(1).map(|line| note(line).ok_or_else(|| bad(format!("{line:?} is no note")))).collect()
}

/// What each of `names` plays, all of the same length, on the grid of 16 bits.
fn render(notes: &[Note], names: &[&'static str]) -> Vec<Sound> {
    let end = notes.iter().map(|note| note.offset).fold(0.0, f64::max) + REST;
    let length = (end * f64::from(RATE)) as usize;
    names
        .iter()
        .map(|name| {
            let mut samples = vec![0.0; length];
            let instrument = INSTRUMENTS.iter().find(|instrument| instrument.name == *name);
            for (number, note) in notes.iter().enumerate().filter(|(_, note)| note.instrument == *name) {
                if let Some(instrument) = instrument {
                    instrument.play(note, number as u64, &mut samples);
                }
            }
            let grid = |sample: f64| ((sample * 32_768.0).round() / 32_768.0) as f32;
            Sound { samples: samples.into_iter().map(grid).collect(), rate: RATE }
        })
        .collect()
}

impl Instrument {
    fn play(&self, note: &Note, number: u64, samples: &mut [f64]) {
        let rate = f64::from(RATE);
        // No two notes are the same: up to 3 dB of level, 4 cents of pitch and 2 dB of every partial.
        let chance = |what: u64| chance(number << 8 | what);
        let level = self.level * (3.0 * chance(0) / 8.7).exp();
        let pitch = 440.0 * ((note.midi - 69.0 + 0.04 * chance(1)) / 12.0).exp2();
        let partials: Vec<(f64, f64, f64)> = (1..40u32)
            .map(|n| (f64::from(n), pitch * f64::from(n)))
            .take_while(|&(_, frequency)| frequency < 0.45 * rate)
            .map(|(n, frequency)| {
                let kind = if n as u32 % 2 == 1 { self.odd } else { self.even };
                let body: f64 = self
                    .formants
                    .iter()
                    .map(|&(centre, wide, louder)| {
                        let off = (frequency / centre).log2() / wide;
                        1.0 + (louder - 1.0) * (-off * off).exp()
                    })
                    .product();
                let own = (2.0 * chance(2 + n as u64) / 8.7).exp();
                (n, kind * self.decay.powf((n - 1.0) / 2.0) * body * own, TAU * chance(60 + n as u64))
            })
            .collect();
        let (first, last) = (note.onset * rate, (note.offset + self.release) * rate);
        let (first, last) = (first as usize, (last as usize).min(samples.len()));
        let (mut phase, mut breath) = (0.0, 0.0);
        for (at, sample) in samples.iter_mut().enumerate().take(last).skip(first) {
            let time = at as f64 / rate - note.onset;
            let (times, cents) = self.vibrato;
            // Vibrato begins when a note has sounded for a while.
            let bend = cents * (time / 0.3).min(1.0) * (TAU * times * time).sin();
            phase += TAU * pitch / rate * (bend / 1200.0).exp2();
            let begins = smooth(time / self.attack);
            let ends = 1.0 - smooth((time - (note.offset - note.onset)) / self.release);
            breath = 0.7 * breath + 0.3 * self::chance(at as u64 ^ number << 40);
            let tone: f64 = partials
                .iter()
                .map(|&(n, strength, shift)| {
                    // High partials come later.
                    strength * begins.powf(1.0 + 0.1 * n) * (n * phase + shift).sin()
                })
                .sum();
            *sample += level * ends * self.fades.powf(time) * (tone + self.breath * 8.0 * begins * breath);
        }
    }
}

/// From 0 at 0 up to 1 at 1.
fn smooth(time: f64) -> f64 {
    0.5 - 0.5 * (time.clamp(0.0, 1.0) * TAU / 2.0).cos()
}

/// A number between -1 and 1 that looks random, the same for the same key: splitmix64.
fn chance(key: u64) -> f64 {
    let mut z = key.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ z >> 31) as f64 / (u64::MAX as f64 / 2.0) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_heard_while_it_is_played_at_its_pitch() {
        let note = Note { instrument: "flute".into(), onset: 0.2, offset: 0.7, midi: 69.0 };
        let sound = &render(&[note], &["flute", "horn"]);
        let energy = |from: f64, to: f64| -> f64 {
            let range = (from * f64::from(RATE)) as usize..(to * f64::from(RATE)) as usize;
            sound[0].samples[range].iter().map(|&x| f64::from(x).powi(2)).sum()
        };
        assert!(energy(0.3, 0.6) > 1000.0 * (energy(0.0, 0.2) + energy(0.8, 1.2)).max(1e-12));
        assert!(
            sound[1].samples.iter().all(|&x| x == 0.0) && sound[1].samples.len() == sound[0].samples.len()
        );
        let at = |hertz: f64| {
            let part = |shift: f64| -> f64 {
                let turn = |(i, &x): (usize, &f32)| {
                    f64::from(x) * (TAU * hertz * i as f64 / f64::from(RATE) + shift).sin()
                };
                sound[0].samples.iter().enumerate().map(turn).sum()
            };
            part(0.0).hypot(part(TAU / 4.0))
        };
        assert!(at(440.0) > 5.0 * at(400.0) && at(440.0) > 5.0 * at(480.0));
    }
}
