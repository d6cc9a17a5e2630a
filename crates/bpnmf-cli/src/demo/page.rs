//! The pages of the demo: text in, text out.

use super::comparison::{Comparison, Found};
use crate::text;
use bpnmf_audio::Piece;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

/// Characters a picture of the whole piece takes.
const PICTURE: usize = 35;

/// The most characters of a line.
const WIDTH: usize = 80;

/// What the program is given.
pub(super) fn opening(piece: &Piece, command: &[OsString]) -> String {
    let mut page = text::wrapped(
        &format!(
            "A piece of {}: five notes of a piano and five of a clarinet, made up and mixed. The program is told \
             neither the notes nor their number: its search starts from all keys from C2 to E7.",
            text::duration(piece.mixture.seconds())
        ),
        WIDTH,
    )
    .replace("\n  ", "\n");
    let typed = command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let _ = writeln!(
        page,
        "\n  {}\n",
        typed.replace(" --reference", " \\\n    --reference").replace(" --seed", " \\\n    --seed")
    );
    page
}

/// What was found, beside the truth.
pub(super) fn findings(piece: &Piece, comparison: &Comparison) -> String {
    let summary = &comparison.summary;
    let mut page = format!(
        "Found {}, in {}; the piece has {} notes.\n\n",
        text::plural(summary.n_components, "part", "parts"),
        text::duration(summary.seconds),
        piece.notes.len(),
    );
    page += " part  share  is            spectrum  time   when it sounds\n";
    for (k, found) in comparison.found.iter().enumerate() {
        page += &part(piece, comparison, k, found);
    }
    page += "Cosines, of the part with the note: 1 is the same.\n";
    let is_missed =
        |i: &usize| !comparison.found.iter().flat_map(|found| &found.note).any(|twin| twin.index == *i);
    let missed: Vec<String> = (0..piece.notes.len()).filter(is_missed).map(|i| name(piece, i)).collect();
    if !missed.is_empty() {
        let _ = writeln!(page, "Played but not found: {}.", missed.join(", "));
    }
    page + &stems(piece, comparison)
}

/// A line a part.
fn part(piece: &Piece, comparison: &Comparison, k: usize, found: &Found) -> String {
    let share = comparison.summary.components.get(k).map_or(0.0, |component| component.share);
    let what = match &found.note {
        Some(twin) => {
            format!("{:<12}  {:>8.3}  {:>5.3}", name(piece, twin.index), twin.in_pitch, twin.in_time)
        }
        None => {
            let stem = comparison.stem(k).map_or("", |stem| &piece.stems[stem].0);
            format!("{:<29}", format!("one more, in {stem}"))
        }
    };
    let line =
        format!("{k:>5}  {:>4.1}%  {what}  {}", 100.0 * share, text::sparkline(&found.course, PICTURE));
    format!("{}\n", line.trim_end())
}

/// The stems, and how good they are.
fn stems(piece: &Piece, comparison: &Comparison) -> String {
    let mut page =
        "\nTwo stems out of the parts; the true ones were asked which part is whose:\n\n".to_owned();
    page += " stem       SDR dB  SIR dB  SAR dB\n";
    let score = |score: Option<f64>| score.map_or_else(|| "–".to_owned(), |score| format!("{score:.1}"));
    let scores = &comparison.scores;
    for (i, (name, _)) in piece.stems.iter().enumerate() {
        let _ = writeln!(
            page,
            " {name:<10} {:>6}  {:>6}  {:>6}",
            score(scores.sdr[i]),
            score(scores.sir[i]),
            score(scores.sar[i])
        );
    }
    let untold = match comparison.astray(piece) {
        0 => "--stems 2, which asks nobody, keeps the two instruments apart.".to_owned(),
        astray => {
            let of = comparison.found.len();
            format!("--stems 2, which asks nobody, puts {astray} of the {of} parts to the other instrument.")
        }
    };
    format!("{page}\n{untold}\n")
}

/// Where to go from here.
pub(super) fn what_next(folder: &Path) -> String {
    format!(
        "\nYour own recording:  bpnmf separate your.wav --out parts --stems 2\n\
         See and listen:      {}\n",
        folder.join("report.html").display()
    )
}

fn name(piece: &Piece, note: usize) -> String {
    let note = &piece.notes[note];
    format!("{} {}", piece.stems[note.instrument].0, note.name)
}
