//! From a recording to counts, and from parts back to sounds. Knows nothing of inference, of tables or of the command line.

mod bss_eval;
mod decode;
mod error;
mod levels;
pub mod notes;
mod overlap;
mod parts;
mod piece;
mod refine;
mod resample;
mod separate;
mod sound;
mod sources;
mod split;
mod stft;
mod transcription;
mod voices;
pub mod wav;
mod wiener;

#[doc(hidden)]
pub use bss_eval::best_rows;
pub use bss_eval::{BssEval, Doubt, Scores, Unscorable, bss_eval};
#[doc(hidden)]
pub use decode::read_bytes;
pub use decode::{Channel, read, read_within};
pub use error::{Error, Fault};
pub use levels::{Levels, to_counts, to_units};
pub use parts::Parts;
pub use piece::{Piece, PieceNote, piece};
pub use realfft::num_complex::Complex;
pub use resample::resample;
pub use separate::{Framing, Grouping, Recording, Stems, separate};
pub use sound::Sound;
pub use sources::{PickOne, pick_one, power_envelope};
pub use split::{Pieces, by_events, pick_all};
pub use stft::{Stft, default_window};
pub use transcription::{
    Agreement, BadNotes, Event, Kind, Note, NoteScores, Pitch, Played, Track, Transcription, note_name,
    note_scores, read_midi, read_note_table, write_midi,
};
pub use voices::Voices;
pub use wiener::Wiener;
