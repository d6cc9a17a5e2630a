//! From parts to notes: their pitches, when they are played, and lists of notes in and out. Knows nothing of files.

mod events;
mod found;
mod midi;
mod pitch;
mod score;
mod table;

pub use events::Event;
pub use found::{Note, Transcription};
pub use midi::{Track, read_midi, write_midi};
pub use pitch::{Kind, Pitch};
pub use score::{Agreement, NoteScores, note_scores};
pub use table::read_note_table;

/// What is wrong with a list of notes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadNotes {
    /// It is something else, or damaged.
    #[error("this is no standard MIDI file that can be read ({0})")]
    NotMidi(String),
    /// Nothing is played in it.
    #[error("there are no notes in it")]
    NoNotes,
    /// A table without a column.
    #[error("it has no column {0}: a table of notes has the columns onset_s, offset_s and midi (or hertz)")]
    NoColumn(&'static str),
    /// A cell that is no number.
    #[error("line {line} has {text:?} as {column}: it must be a number")]
    NoNumber {
        /// From 1.
        line: usize,
        /// The name of its column.
        column: String,
        /// What stands there.
        text: String,
    },
    /// Numbers that are no note.
    #[error("line {line} is no note: it must begin at 0 or later, end after it begins, and have a pitch")]
    NoNote {
        /// From 1.
        line: usize,
    },
}

/// A note: when, and which.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Played {
    /// When it begins, in seconds.
    pub onset: f64,
    /// When it ends, in seconds.
    pub offset: f64,
    /// Its pitch: 69 is A4, a semitone is 1.
    pub midi: f64,
}

impl Played {
    /// Its frequency where A4 has 440 Hz.
    pub fn hertz(&self) -> f64 {
        hertz_of(self.midi)
    }
}

/// The frequency of a pitch where A4, 69, has 440 Hz.
pub(crate) fn hertz_of(midi: f64) -> f64 {
    440.0 * ((midi - 69.0) / 12.0).exp2()
}

/// The name of a pitch, as musicians write it: 69 is A4.
///
/// ```
/// assert_eq!(bpnmf_audio::note_name(69), "A4");
/// assert_eq!(bpnmf_audio::note_name(36), "C2");
/// assert_eq!(bpnmf_audio::note_name(0), "C-1");
/// ```
pub fn note_name(midi: i32) -> String {
    let names = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"];
    format!("{}{}", names[midi.rem_euclid(12) as usize], midi.div_euclid(12) - 1)
}
