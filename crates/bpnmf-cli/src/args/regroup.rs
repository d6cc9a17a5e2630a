//! What can be said to `bpnmf regroup`.

use super::FormatName;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  bpnmf separate mix.wav --out parts
  bpnmf regroup parts --groups groups.json             stems by the file, at once
  bpnmf regroup parts --groups groups.json --force     again, after a change

groups.json: {\"piano\": [0, 2, \"e17\"], \"voice\": [1]}: parts by their numbers, events by theirs, from notes.csv with an e
before them. An event that is named goes where it is named, whatever becomes of its part.

Written to DIR/regrouped, or to another folder:
  stems/        the files add up to the recording
  notes.csv, notes.mid, report.html   as those of the separation, with these stems";

/// Make other stems of a recording that was taken apart, without a fit
///
/// DIR is what `bpnmf separate` wrote. The stems are those of `bpnmf separate --groups` with the same seed and options,
/// sample for sample.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = "More, with examples: bpnmf regroup --help")]
pub(crate) struct RegroupArgs {
    /// The folder of a separation
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Which parts and events make which stem; what is in no group goes to the stem `rest`
    #[arg(long, value_name = "FILE")]
    pub(crate) groups: PathBuf,

    /// The folder for the stems [default: DIR/regrouped]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Overwrite what is already in that folder
    #[arg(long)]
    pub(crate) force: bool,

    /// One stem more, for what no part explains; without it that is shared out
    #[arg(long)]
    pub(crate) residual: bool,

    /// How samples are written
    #[arg(long, value_enum, default_value_t = FormatName::Float)]
    pub(crate) format: FormatName,

    /// Threads to use [default: all cores]; the stems do not depend on it
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
}
