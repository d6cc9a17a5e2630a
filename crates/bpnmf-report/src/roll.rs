//! The notes of a recording as a piano roll. Knows no sounds.

use crate::frame::{Axis, Height, figure, framed};
use crate::report::{PlayedNote, SoundPage};
use crate::text::{escaped, percent};
use std::fmt::Write as _;

/// The width of the drawing in its own units; it is stretched to what the page has.
const WIDTH: f64 = 1000.0;

/// The height of a semitone in the same units, and of a note in it.
const SEMITONE: f64 = 10.0;

/// Degrees of hue from one part or stem to the next: neighbours differ most by the golden angle.
const TURN: f64 = 137.508;

/// The section, empty if there are no notes.
pub(crate) fn section(sound: Option<&SoundPage<'_>>) -> String {
    let Some(sound) = sound.filter(|sound| !sound.notes.is_empty() && sound.rate > 0) else {
        return String::new();
    };
    let notes = &sound.notes;
    let seconds = sound.mixture.len() as f64 / f64::from(sound.rate);
    let low = notes.iter().map(|note| note.midi).fold(f64::INFINITY, f64::min) - 1.0;
    let high = notes.iter().map(|note| note.midi).fold(0.0, f64::max) + 1.0;
    let height = (high - low + 1.0) * SEMITONE;
    let mut inside = String::new();
    for note in notes {
        let x = WIDTH * note.onset / seconds;
        let width = (WIDTH * (note.offset - note.onset) / seconds).max(0.5);
        let y = (high - note.midi) * SEMITONE + 0.5;
        let which = note.stem.map_or(note.part, |(stem, _)| stem);
        let sure = note.stem.map_or(note.sure, |(_, sure)| sure);
        let _ = write!(
            inside,
            "<rect x=\"{x:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{}\" fill=\"hsl({:.0} 62% 50%)\" \
             fill-opacity=\"{:.2}\"><title>{}</title></rect>",
            SEMITONE - 1.0,
            (210.0 + TURN * which as f64) % 360.0,
            0.25 + 0.75 * sure.clamp(0.0, 1.0),
            escaped(&told(note, sound.stems.get(which).map(|stem| stem.name.as_str()))),
        );
    }
    let picture = format!(
        "<svg viewBox=\"0 0 {WIDTH:.0} {height:.0}\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"piano roll\">{inside}</svg>"
    );
    let place = |midi: f64| (midi - low + 0.5) / (high - low + 1.0);
    let octaves = (0..11)
        .map(|octave| (f64::from(12 * (octave + 1)), format!("C{octave}")))
        .filter(|(midi, _)| (low..=high).contains(midi))
        .map(|(midi, name)| (place(midi), name));
    let y = Axis::given("pitch", octaves.collect());
    let x = Axis::numbers("seconds", 0.0, seconds, 8);
    let (what, fainter) = if notes.iter().any(|note| note.stem.is_some()) {
        ("stem", "its stem")
    } else {
        ("part", "its pitch")
    };
    let about = format!(
        "One colour a {what}; the fainter a note, the less sure is {fainter}. Point at a note to read it. The notes are in \
         notes.csv and notes.mid, too."
    );
    let figure = figure("When which note is heard", &framed(&picture, &x, &y, Height::Tall), &about);
    format!("<section>\n<h2>Notes</h2>\n{figure}</section>\n")
}

/// A note in words.
fn told(note: &PlayedNote, stem: Option<&str>) -> String {
    let mut words = format!("{}, {:.2} to {:.2} s, part {}", note.name, note.onset, note.offset, note.part);
    if let (Some((_, sure)), Some(stem)) = (note.stem, stem) {
        let _ = write!(words, ", stem {stem} ({})", percent(sure));
    }
    words
}
