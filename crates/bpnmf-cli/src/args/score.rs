//! The arguments of `bpnmf score`.

use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  bpnmf score --reference flute.wav horn.wav --estimate part1.wav part2.wav
  bpnmf score --reference stems/*.wav --estimate separated      a folder: files of the same names
  bpnmf score --reference a.wav b.wav --estimate x.wav y.wav --no-permutation
  bpnmf score --reference a.wav b.wav --estimate x.wav y.wav --json
  bpnmf score --notes played.mid --estimate parts/notes.csv     notes against those that were played

Higher is better, 0 dB is as much of the wrong as of the right:
  SDR  the reference, filtered, against all the rest
  SIR  the reference, filtered, against what is of the other references
  SAR  what is of any reference against what is of none

Of notes: precision (the share of the notes found that were played), recall (of those played that were
found) and F1, as mir_eval.transcription has them: right pitch to half a semitone and onset to 50 ms; and
the same with the offset, to 50 ms or a fifth of the note. A table needs the columns onset_s, offset_s and
midi (or hertz); other columns are not looked at.

With --json, a score that is infinite is the text \"Infinity\" or \"-Infinity\", and one that does not
exist (of a silent sound) is null. Means and standard errors are over the finite scores.";

/// Score separated sounds against the true ones: SDR, SIR and SAR; or notes: precision, recall and F1
///
/// As BSS Eval version 3 and mir_eval define them. All files must have the same rate and length; of several channels the
/// mean is taken. The scores do not depend on how loud the files are.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = "More, with examples: bpnmf score --help")]
pub(crate) struct ScoreArgs {
    /// The true sounds
    #[arg(long, short, value_name = "FILE", num_args = 1.., required_unless_present = "notes")]
    pub(crate) reference: Vec<PathBuf>,

    /// The notes that were played, a table (.csv) or a MIDI file: the estimate is another one, or a folder with notes.csv
    #[arg(long, value_name = "FILE", conflicts_with_all = ["reference", "no_permutation"])]
    pub(crate) notes: Option<PathBuf>,

    /// The separated sounds, one for each reference, in any order; or a folder that holds files of the same names
    #[arg(long, short, value_name = "FILE", num_args = 1.., required = true)]
    pub(crate) estimate: Vec<PathBuf>,

    /// The estimates are in the order of the references: do not look for the order with the best mean SIR
    #[arg(long)]
    pub(crate) no_permutation: bool,

    /// Print one JSON object instead of the table
    #[arg(long)]
    pub(crate) json: bool,

    /// Taps of the distortion filters: delays below this many samples and colourings that short are forgiven
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub(crate) taps: usize,

    /// Threads to use [default: all cores]; the scores do not depend on it
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
}
