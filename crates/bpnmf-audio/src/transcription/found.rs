//! The notes of a recording: events of parts with a pitch, in seconds.

use super::events::Event;
use super::pitch::{Kind, Pitch, pitch, tuning};
use super::{Played, note_name};
use crate::parts::Parts;
use crate::separate::Recording;

/// A note begins where its part has this share of its loudest in the attack, and ends where it has this share of its loudest.
const BEGINS: f64 = 0.15;
const ENDS: f64 = 0.25;

/// Frames of an attack.
const ATTACK: usize = 5;

/// An event whose loudest frame is below this share of that of a loud event is no note.
const LEAST: f64 = 0.25;

/// How loud a loud event is: the quantile of all events, by frame.
const LOUD: f64 = 0.9;

/// An event of fewer frames is no note.
const FEWEST_FRAMES: usize = 2;

/// Events of one pitch that begin within so many seconds are one note.
const TOGETHER: f64 = 0.06;

/// The notes of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcription {
    /// The frequency that A4 has in its tuning.
    pub a4: f64,
    /// The pitch of every part.
    pub pitches: Vec<Pitch>,
    /// When parts are on.
    pub events: Vec<Event>,
    /// What is heard of them as notes, in the order of their onsets.
    pub notes: Vec<Note>,
}

/// A note that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// When, and which key it is in the tuning of the recording; to the millisecond.
    pub played: Played,
    /// The frequency of its part.
    pub hertz: f64,
    /// The events it is made of, the loudest first.
    pub events: Vec<usize>,
    /// The part of the loudest one.
    pub part: usize,
    /// How loud it is at its loudest, relative to the loudest note.
    pub loudness: f64,
    /// How probable it is that its part is on, see [`Event::probability`].
    pub probability: f64,
    /// How sure its pitch is, see [`Pitch::sure`].
    pub sure: f64,
}

impl Note {
    /// Its name, as A4.
    pub fn name(&self) -> String {
        note_name(self.played.midi as i32)
    }

    /// How hard a key is struck to sound as loud: 100 for the loudest note, and 40 for one 40 dB softer.
    pub fn velocity(&self) -> u8 {
        (100.0 + 30.0 * self.loudness.max(1e-3).log10()).round().clamp(1.0, 127.0) as u8
    }
}

impl Recording {
    /// The notes of parts of this recording; `inclusion` are the probabilities of S = 1, K x frames by rows.
    pub fn transcription(&self, parts: &Parts, inclusion: &[f32]) -> Transcription {
        let (rate, window) = (self.sound().rate, self.stft().window());
        let passing = window.div_ceil(self.stft().hop());
        let events = parts.events(inclusion);
        let pitches: Vec<Pitch> = (0..parts.components())
            .map(|k| {
                let found = pitch(parts.spectrum(k), rate, window);
                let longest = events.iter().filter(|event| event.part == k).map(Event::frames).max();
                let click = found.kind == Kind::Noise && longest.unwrap_or(0) <= passing;
                Pitch { kind: if click { Kind::Click } else { found.kind }, ..found }
            })
            .collect();
        let weight = |event: &Event| {
            let pitch = &pitches[event.part];
            if pitch.kind == Kind::Note { event.strength * pitch.sure } else { 0.0 }
        };
        let a4 = tuning(events.iter().map(|event| (pitches[event.part].midi, weight(event))));
        let seconds = self.stft().hop() as f64 / f64::from(rate);
        let notes = notes(parts, &events, &pitches, a4, seconds, self.sound().seconds());
        Transcription { a4, pitches, events, notes }
    }
}

/// The course of an event: what its part adds to W H in its frames.
fn course(parts: &Parts, rows: &[f32], event: &Event) -> Vec<f64> {
    let weight: f64 = parts.spectrum(event.part).iter().map(|&w| f64::from(w)).sum();
    let row = &rows[event.part * parts.frames()..][event.first..event.end];
    row.iter().map(|&h| weight * f64::from(h)).collect()
}

fn notes(parts: &Parts, events: &[Event], pitches: &[Pitch], a4: f64, seconds: f64, end: f64) -> Vec<Note> {
    let rows = parts.activations();
    let loudest = |course: &[f64]| course.iter().copied().fold(0.0, f64::max);
    let courses: Vec<Vec<f64>> = events.iter().map(|event| course(parts, &rows, event)).collect();
    let mut peaks: Vec<(f64, usize)> = courses.iter().map(|c| (loudest(c), c.len())).collect();
    peaks.sort_by(|a, b| a.0.total_cmp(&b.0));
    let frames: usize = peaks.iter().map(|peak| peak.1).sum();
    let mut passed = 0;
    let loud = peaks
        .iter()
        .find(|peak| {
            passed += peak.1;
            passed as f64 >= LOUD * frames as f64
        })
        .map_or(0.0, |peak| peak.0);
    let offset = 12.0 * (a4 / 440.0).log2();
    let mut notes: Vec<Note> = Vec::new();
    for (at, (event, course)) in events.iter().zip(&courses).enumerate() {
        let (pitch, peak) = (&pitches[event.part], loudest(course));
        if pitch.kind != Kind::Note || course.len() < FEWEST_FRAMES || peak < LEAST * loud {
            continue;
        }
        let (from, to) = span(course);
        let time = |frame: f64| ((event.first as f64 + frame) * seconds).clamp(0.0, end);
        let thousandth = |seconds: f64| (1000.0 * seconds).round() / 1000.0;
        let (onset, offset_s) = (thousandth(time(from)), thousandth(time(to)));
        notes.push(Note {
            played: Played {
                onset,
                offset: offset_s.max(onset + 0.001),
                midi: (pitch.midi - offset).round(),
            },
            hertz: pitch.hertz(),
            events: vec![at],
            part: event.part,
            loudness: peak,
            probability: event.probability,
            sure: pitch.sure,
        });
    }
    let top = notes.iter().map(|note| note.loudness).fold(f64::MIN_POSITIVE, f64::max);
    notes.iter_mut().for_each(|note| note.loudness /= top);
    joined(notes)
}

/// From where to where an event is heard, in frames from its first one; between frames by the line through their values.
fn span(course: &[f64]) -> (f64, f64) {
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let (begins, ends) = (BEGINS * most(&course[..ATTACK.min(course.len())]), ENDS * most(course));
    let first = course.iter().position(|&value| value >= begins).unwrap_or(0);
    let last = course.iter().rposition(|&value| value >= ends).unwrap_or(course.len() - 1);
    let before = first.checked_sub(1).map_or(0.0, |at| course[at]);
    let after = course.get(last + 1).copied().unwrap_or(0.0);
    let share = |value: f64, beyond: f64, limit: f64| {
        if value > beyond { ((value - limit) / (value - beyond)).clamp(0.0, 1.0) } else { 0.0 }
    };
    let from = first as f64 - share(course[first], before, begins);
    (from, last as f64 + share(course[last], after, ends))
}

/// Events of one pitch that begin together are one note: parts can share one.
fn joined(mut notes: Vec<Note>) -> Vec<Note> {
    notes.sort_by(|a, b| {
        a.played.onset.total_cmp(&b.played.onset).then(a.played.midi.total_cmp(&b.played.midi))
    });
    let mut kept: Vec<Note> = Vec::new();
    for note in notes {
        let same = |other: &Note| {
            other.played.midi == note.played.midi
                && note.played.onset - other.played.onset < TOGETHER
                && other.played.offset > note.played.onset
        };
        let from = kept.partition_point(|other| note.played.onset - other.played.onset >= TOGETHER);
        let Some(other) = kept[from..].iter_mut().find(|other| same(other)) else {
            kept.push(note);
            continue;
        };
        other.played.offset = other.played.offset.max(note.played.offset);
        if note.loudness > other.loudness {
            let (played, events) = (other.played, [&note.events[..], &other.events].concat());
            *other = Note { played, events, ..note };
        } else {
            other.events.extend(note.events);
        }
    }
    kept
}
