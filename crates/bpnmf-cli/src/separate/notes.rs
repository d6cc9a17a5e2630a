//! The notes of a recording as files: a table, and a MIDI file with a track a stem.

use super::stems::Named;
use crate::failure::Failure;
use crate::folder::Folder;
use bpnmf_audio::{Note, Track, Transcription, write_midi};
use bpnmf_report::PlayedNote;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;

/// The files.
pub(crate) const FILES: [&str; 2] = ["notes.csv", "notes.mid"];

/// The columns of the table.
const COLUMNS: &str =
    "onset_s,offset_s,midi,note,hertz,part,stem,loudness,probability,pitch_sure,stem_sure,events\n";

/// The notes, and which stem each is in.
pub(crate) struct Notes<'a> {
    pub(crate) heard: &'a Transcription,
    pub(crate) stems: &'a Named,
}

impl Notes<'_> {
    /// Writes both files.
    pub(crate) fn write(&self, folder: &Folder) -> Result<(), Failure> {
        let [table, midi] = FILES.map(|name| folder.file(name));
        let write = |path, bytes: &[u8]| {
            bpnmf_io::write_atomically(path, |writer| writer.write_all(bytes)).map_err(Failure::writing)
        };
        write(&table, self.table().as_bytes())?;
        write(&midi, &write_midi(&self.tracks()))
    }

    /// The stem of a note, and how sure that is if it was found.
    fn stem(&self, note: &Note) -> Option<(usize, f64)> {
        let stems = &self.stems.stems;
        if let Some(events) = &stems.events {
            return note.events.first().map(|&event| events[event]);
        }
        // A part that several stems share belongs to none of them.
        let mut own = (0..stems.members.len()).filter(|&stem| stems.members[stem].contains(&note.part));
        own.next().filter(|_| own.next().is_none()).map(|stem| (stem, 1.0))
    }

    fn table(&self) -> String {
        let mut table = COLUMNS.to_owned();
        for note in &self.heard.notes {
            let stem = self.stem(note);
            // Commas would make two cells of a name.
            let name =
                stem.map_or(String::new(), |(stem, _)| self.stems.names[stem].replace([',', '"'], " "));
            let sure = stem.map_or(String::new(), |(_, sure)| format!("{sure:.3}"));
            let events: Vec<String> = note.events.iter().map(usize::to_string).collect();
            let _ = writeln!(
                table,
                "{:.3},{:.3},{:.0},{},{:.2},{},{name},{:.4},{:.3},{:.3},{sure},{}",
                note.played.onset,
                note.played.offset,
                note.played.midi,
                note.name(),
                note.hertz,
                note.part,
                note.loudness,
                note.probability,
                note.sure,
                events.join(" "),
            );
        }
        table
    }

    fn tracks(&self) -> Vec<Track> {
        let track = |name: &str, stem: Option<usize>| Track {
            name: name.to_owned(),
            notes: self
                .heard
                .notes
                .iter()
                .filter(|note| self.stem(note).map(|(stem, _)| stem) == stem)
                .map(|note| (note.played, note.velocity()))
                .collect(),
        };
        let names = self.stems.names.iter().enumerate();
        let mut tracks: Vec<Track> = names.map(|(stem, name)| track(name, Some(stem))).collect();
        let others = track("notes", None);
        if tracks.is_empty() || !others.notes.is_empty() {
            tracks.push(others);
        }
        tracks
    }

    /// For the page.
    pub(crate) fn roll(&self) -> Vec<PlayedNote> {
        let note = |note: &Note| PlayedNote {
            onset: note.played.onset,
            offset: note.played.offset,
            midi: note.played.midi,
            name: note.name(),
            part: note.part,
            sure: note.sure,
            stem: self.stem(note),
        };
        self.heard.notes.iter().map(note).collect()
    }

    /// The pitch of every part, for summary.json.
    pub(crate) fn pitches(&self) -> Value {
        let offset = 12.0 * (self.heard.a4 / 440.0).log2();
        let pitch = |pitch: &bpnmf_audio::Pitch| {
            let midi = (pitch.midi - offset).round();
            json!({
                "kind": pitch.kind.name(),
                "note": bpnmf_audio::note_name(midi as i32),
                "midi": midi as i32,
                "hertz": (100.0 * pitch.hertz()).round() / 100.0,
                "sure": (1000.0 * pitch.sure).round() / 1000.0,
            })
        };
        self.heard.pitches.iter().map(pitch).collect()
    }
}
