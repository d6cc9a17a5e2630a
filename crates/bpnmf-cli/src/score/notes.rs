//! `bpnmf score --notes`: how well notes that were found are those that were played.

use crate::failure::Failure;
use crate::text;
use bpnmf_audio::{Agreement, Played};
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The largest file of notes that is read: above, it is something else.
const MOST_BYTES: u64 = 1 << 26;

/// What a separation calls its notes.
pub(crate) const NOTES: &str = "notes.csv";

/// The scores as a table or as JSON.
pub(super) fn score(played: &Path, found: &[PathBuf], json: bool) -> Result<String, Failure> {
    let [found] = found else {
        return Err(Failure::Request(format!(
            "there are {} estimates: give one file of notes, or a folder with {NOTES}",
            found.len()
        )));
    };
    let found = if found.is_dir() { found.join(NOTES) } else { found.clone() };
    let (of_played, of_found) = (read(played)?, read(&found)?);
    let scores = bpnmf_audio::note_scores(&of_played, &of_found);
    let rows = [("onset", scores.onset), ("onset_offset", scores.offset)];
    if json {
        let rows = rows.into_iter().map(|(name, agreement)| (name.to_owned(), value(agreement)));
        let mut object: serde_json::Map<String, Value> = rows.collect();
        object.insert("played".to_owned(), of_played.len().into());
        object.insert("found".to_owned(), of_found.len().into());
        return Ok(format!("{}\n", Value::from(object)));
    }
    let mut page = format!(
        "{} played, {} found\n{:<20}{:>10}{:>10}{:>10}\n",
        text::plural(of_played.len(), "note", "notes"),
        text::grouped(of_found.len()),
        "",
        "precision",
        "recall",
        "F1"
    );
    for ((_, Agreement { precision, recall, f1 }), name) in rows.iter().zip(["onset", "onset and offset"]) {
        page += &format!("{name:<20}{precision:>10.3}{recall:>10.3}{f1:>10.3}\n");
    }
    Ok(page)
}

fn value(agreement: Agreement) -> Value {
    json!({ "precision": agreement.precision, "recall": agreement.recall, "f1": agreement.f1 })
}

/// The notes of a table or of a MIDI file: its first bytes say which.
fn read(path: &Path) -> Result<Vec<Played>, Failure> {
    let wrong = |what: String| Failure::Request(format!("{}: {what}", path.display()));
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => wrong("there is no such file".to_owned()),
        _ => wrong(error.to_string()),
    };
    let about = fs::metadata(path).map_err(unreadable)?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return Err(wrong("this is no file of notes: a table (.csv) or a MIDI file is needed".to_owned()));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    let notes = if bytes.starts_with(b"MThd") {
        bpnmf_audio::read_midi(&bytes)
    } else {
        let text = String::from_utf8(bytes).map_err(|_| {
            wrong("this is neither text nor a MIDI file: a table (.csv) or a MIDI file is needed".to_owned())
        })?;
        bpnmf_audio::read_note_table(&text)
    };
    notes.map_err(|error| wrong(error.to_string()))
}
