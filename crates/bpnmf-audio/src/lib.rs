//! From a recording to counts, and from parts back to sounds. Knows nothing of inference, of tables or of the command line.
//!
//! ```no_run
//! use bpnmf::{Plan, TraceRow, Workers};
//! use bpnmf_audio::{Channel, Framing, Grouping, Levels, Recording, Sound, read, separate, wav};
//!
//! // A recording becomes a spectrogram of counts, its parts are notes, and notes make two stems.
//! let sound = read("mix.wav".as_ref(), Channel::Mean)?;
//! let rate = sound.rate;
//! let stft = Framing::default().of(rate, sound.samples.len())?;
//! let (recording, counts) = Recording::new(sound, stft, Levels::Typical).expect("it is not silent");
//! let (chains, parts) =
//!     separate(&recording, &counts, &Plan::default(), &Workers::new(0)?, |_| |_: &TraceRow| true)?;
//! let found = &chains.fit().posterior;
//! let notes = recording.transcription(&parts, &found.inclusion);
//! let wanted = Grouping::Voices { wanted: 2, polyphonic: false };
//! let stems = recording.stems(&parts, &notes, &found.activations, &wanted);
//! for (number, samples) in recording.sounds(&parts, &stems).into_iter().enumerate() {
//!     wav::write(format!("{number}.wav").as_ref(), &Sound { samples, rate }, wav::Depth::Float32)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | read and write sounds | [`read`], [`wav`], [`resample`] |
//! | go between samples and frames | [`Stft`], [`default_window`] |
//! | make counts of magnitudes | [`to_counts`], [`Levels`] |
//! | take a recording apart | [`Recording`], [`separate`], [`Parts`] |
//! | group parts and notes into stems | [`Grouping`], [`Stems`], [`Voices`] |
//! | hear notes | [`Transcription`], [`Note`], [`write_midi`] |
//! | score a separation or notes | [`bss_eval`], [`note_scores`] |
//! | try it without a file | [`piece`] |

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
