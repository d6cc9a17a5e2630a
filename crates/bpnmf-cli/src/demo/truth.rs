//! The files of the piece itself: what is heard, what it was made of, and when every note is played.

use crate::failure::Failure;
use bpnmf_audio::Piece;
use bpnmf_audio::wav::{self, Depth};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// What is taken apart.
pub(super) const MIXTURE: &str = "mixture.wav";

/// The names of the instruments, in the order of the piece.
const INSTRUMENTS: [&str; 2] = ["piano", "clarinet"];

/// When every note is played. Where it stands, the folder is that of a demo.
const NOTES: &str = "truth/notes.csv";

/// The first line of it.
const COLUMNS: &str = "instrument,note,hertz,onset_s,offset_s\n";

/// The true stems, from the folder on.
pub(super) fn stems() -> impl Iterator<Item = PathBuf> {
    INSTRUMENTS.into_iter().map(|name| Path::new("truth").join(format!("{name}.wav")))
}

/// Errors if the folder holds anything but an earlier demo.
pub(super) fn check_ours(folder: &Path) -> Result<(), Failure> {
    let ours = || fs::read_to_string(folder.join(NOTES)).is_ok_and(|text| text.starts_with(COLUMNS));
    let empty = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        Err(error) => return Err(failure(folder, &error)),
    };
    if empty || ours() {
        return Ok(());
    }
    Err(Failure::Request(format!(
        "{} holds files that are not of a demo: choose another folder with --out",
        folder.display()
    )))
}

/// Writes the piece; what an earlier demo left is replaced.
pub(super) fn write(folder: &Path, piece: &Piece) -> Result<(), Failure> {
    fs::create_dir_all(folder.join("truth")).map_err(|error| failure(folder, &error))?;
    bpnmf_io::write_atomically(&folder.join(NOTES), |writer| writer.write_all(table(piece).as_bytes()))
        .map_err(Failure::writing)?;
    // Samples of a piece are whole numbers of 16 bits: nothing is rounded here.
    let sounds = stems().zip(piece.stems.iter().map(|(_, sound)| sound));
    for (file, sound) in sounds.chain([(PathBuf::from(MIXTURE), &piece.mixture)]) {
        wav::write(&folder.join(file), sound, Depth::Int16).map_err(Failure::sound_out)?;
    }
    Ok(())
}

/// A line a time that a note is played.
fn table(piece: &Piece) -> String {
    let mut table = COLUMNS.to_owned();
    for note in &piece.notes {
        for (from, to) in &note.played {
            let instrument = &piece.stems[note.instrument].0;
            let _ = writeln!(table, "{instrument},{},{:.3},{from:.3},{to:.3}", note.name, note.pitch);
        }
    }
    table
}

fn failure(folder: &Path, error: &std::io::Error) -> Failure {
    Failure::Other(format!("cannot write to {}: {error}; choose another --out folder", folder.display()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_files_of_the_stems_have_their_names() {
        let names = bpnmf_audio::piece().stems.into_iter().map(|(name, _)| name);
        assert_eq!(names.collect::<Vec<_>>(), super::INSTRUMENTS);
    }
}
