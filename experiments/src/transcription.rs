//! The notes found in recordings whose notes are known, as `bpnmf separate` finds them: precision, recall and F1.

use crate::flags::Flags;
use crate::quintet::rendering;
use crate::recording::{Recording, Trouble};
use crate::spread::Spread;
use bpnmf::Workers;
use bpnmf_audio::{NoteScores, Played, note_scores, piece};
use std::process::ExitCode;

const HELP: &str = "\
usage: cargo run --release -p experiments -- notes [OPTIONS]

  --quick       one seed, and not the quintet
  --only NAMES  only these, with commas in between: demo, clip, quintet, rendering
  --seeds N     seeds of the fits, from 1 on; 10
  --threads N   threads of a fit; by default all there are

Precision, recall and F1 of the notes of `bpnmf separate`, pitch to half a semitone and onset to 50 ms; and F1 with the offset, to
50 ms or a fifth of the note. The variable BPNMF_DATA names the folder of the data that is read, by default ../shared/data.
";

/// The notes of clip_identifiable, heard alone in its stems: a letter of the clarinet, then of the piano.
const CLIP: [(&str, [f64; 5]); 2] =
    [("abbccddeeaa.", [73.0, 75.0, 77.0, 78.0, 80.0]), ("AABBCCDDEE.A", [61.0, 63.0, 65.0, 66.0, 70.0])];

/// Seconds of the clip.
const CLIP_SECONDS: f64 = 60_740.0 / 22_050.0;

/// `notes ...`: 2 if it could not be run.
pub(crate) fn command(arguments: &[String]) -> ExitCode {
    if matches!(arguments.first().map(String::as_str), Some("--help" | "-h" | "help")) {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let done = Flags::parse("notes", arguments, &["--seeds", "--only"]).and_then(|flags| study(&flags));
    done.map_or_else(
        |reason| {
            eprintln!("{reason}");
            ExitCode::from(2)
        },
        |()| ExitCode::SUCCESS,
    )
}

fn study(flags: &Flags) -> Result<(), String> {
    let seeds = flags.number("--seeds")?.unwrap_or(if flags.quick { 1 } else { 10 });
    let threads = flags.number("--threads")?.unwrap_or(0) as usize;
    let workers = Workers::new(threads).map_err(|error| error.to_string())?;
    let every = if flags.quick { "demo,clip" } else { "demo,clip,quintet,rendering" };
    println!(
        "| recording | notes | found | precision | recall | F1 | F1 with offsets |\n|---|---|---|---|---|---|---|"
    );
    for name in flags.text("--only").unwrap_or(every).split(',') {
        let (recording, played) = match load(name) {
            Ok(found) => found,
            Err(Trouble::Absent(reason)) => {
                println!("| {name} | not run: {reason} | | | | | |");
                continue;
            }
            Err(Trouble::Bad(reason)) => return Err(reason),
        };
        let mut scores: Vec<(usize, NoteScores)> = Vec::new();
        for seed in 1..=seeds {
            let notes = recording.separated(seed, &workers)?.heard.notes;
            let found: Vec<Played> = notes.iter().map(|note| note.played).collect();
            scores.push((found.len(), note_scores(&played, &found)));
        }
        let told = |figure: &dyn Fn(&NoteScores) -> f64| {
            Spread::of(scores.iter().map(|(_, scores)| figure(scores))).told(3)
        };
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} |",
            played.len(),
            Spread::of(scores.iter().map(|(many, _)| *many as f64)).told(0),
            told(&|scores| scores.onset.precision),
            told(&|scores| scores.onset.recall),
            told(&|scores| scores.onset.f1),
            told(&|scores| scores.offset.f1),
        );
    }
    Ok(())
}

/// A recording and the notes that are played in it.
fn load(name: &str) -> Result<(Recording, Vec<Played>), Trouble> {
    match name {
        "demo" => {
            let piece = piece();
            let played = piece.notes.iter().flat_map(|note| {
                let midi = (69.0 + 12.0 * (note.pitch / 440.0).log2()).round();
                note.played.iter().map(move |&(onset, offset)| Played { onset, offset, midi })
            });
            let played = played.collect();
            let stems = piece.stems.into_iter().map(|(_, sound)| sound).collect();
            Ok((Recording::of(piece.mixture, vec!["piano", "clarinet"], stems, None)?, played))
        }
        "clip" => Ok((Recording::load("clip_identifiable", &["clarinet", "piano"], 512, None)?, clip())),
        "quintet" => {
            let played = rendering::notes()?.iter().map(rendering::Note::played).collect();
            Ok((Recording::load("quintet", &rendering::NAMES, 1024, None)?, played))
        }
        "rendering" => {
            let played = rendering::notes()?.iter().map(rendering::Note::played).collect();
            Ok((rendering::recording()?, played))
        }
        _ => Err(Trouble::Bad(format!("there is no recording {name}; notes --help lists them"))),
    }
}

/// The notes of the clip: divisions of equal length, in which a letter that stays sounds on.
fn clip() -> Vec<Played> {
    let mut notes: Vec<Played> = Vec::new();
    for (score, keys) in CLIP {
        let division = CLIP_SECONDS / score.len() as f64;
        let mut before = b'.';
        for (at, letter) in score.bytes().enumerate() {
            let onset = at as f64 * division;
            if letter == before && letter != b'.' {
                notes.last_mut().expect("a letter before it").offset = onset + division;
            } else if letter != b'.' {
                let midi = keys[usize::from(letter.to_ascii_lowercase() - b'a')];
                notes.push(Played { onset, offset: onset + division, midi });
            }
            before = letter;
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clip_has_twelve_notes_of_ten_pitches() {
        let notes = clip();
        let mut keys: Vec<f64> = notes.iter().map(|note| note.midi).collect();
        keys.sort_by(f64::total_cmp);
        keys.dedup();
        assert_eq!((notes.len(), keys.len()), (12, 10));
        assert!(notes.iter().all(|note| note.offset > note.onset && note.offset < CLIP_SECONDS + 1e-9));
    }
}
