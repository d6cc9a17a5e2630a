//! Lists of notes as text: a line a note, cells with commas in between, names of columns first.

use super::{BadNotes, Played};

/// The notes of a table with the columns `onset_s`, `offset_s` (seconds) and `midi` or, without it, `hertz`; other columns are
/// not looked at.
///
/// ```
/// let notes = bpnmf_audio::read_note_table("instrument,onset_s,offset_s,midi\nflute,0.5,1.25,81\n")?;
/// assert_eq!((notes[0].onset, notes[0].offset, notes[0].midi), (0.5, 1.25, 81.0));
/// # Ok::<(), bpnmf_audio::BadNotes>(())
/// ```
pub fn read_note_table(text: &str) -> Result<Vec<Played>, BadNotes> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let cells = |line: &str| -> Vec<String> {
        line.trim_start_matches('\u{feff}')
            .split(',')
            .map(|cell| cell.trim().trim_matches('"').to_owned())
            .collect()
    };
    let names = lines.next().map(|(_, line)| cells(line)).unwrap_or_default();
    let place = |wanted: &str| names.iter().position(|name| name == wanted);
    let needed = |wanted: &'static str| place(wanted).ok_or(BadNotes::NoColumn(wanted));
    let (onset, offset) = (needed("onset_s")?, needed("offset_s")?);
    let (pitch, hertz) = match place("midi") {
        Some(midi) => (midi, false),
        None => (place("hertz").ok_or(BadNotes::NoColumn("midi"))?, true),
    };
    let mut notes = Vec::new();
    for (at, line) in lines {
        let cells = cells(line);
        let number = |place: usize| {
            let text = cells.get(place).map_or("", String::as_str);
            let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
            value.ok_or_else(|| BadNotes::NoNumber {
                line: at + 1,
                column: names[place].clone(),
                text: text.to_owned(),
            })
        };
        let value = number(pitch)?;
        let midi = if hertz { 69.0 + 12.0 * (value / 440.0).log2() } else { value };
        let note = Played { onset: number(onset)?, offset: number(offset)?, midi };
        if !midi.is_finite() || note.offset < note.onset || note.onset < 0.0 {
            return Err(BadNotes::NoNote { line: at + 1 });
        }
        notes.push(note);
    }
    if notes.is_empty() { Err(BadNotes::NoNotes) } else { Ok(notes) }
}
