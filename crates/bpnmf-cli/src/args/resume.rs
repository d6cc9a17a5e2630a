//! What can be said to `bpnmf resume`.

use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  bpnmf resume result                  go on with what bpnmf fit ... --out result began
  bpnmf resume result --threads 2      on other threads: the result does not depend on it";

/// Go on with a run that was stopped or killed
///
/// `bpnmf fit` and `bpnmf separate` keep a checkpoint in the folder of their results until they are complete. This goes on
/// from it, and ends with the same result, bit for bit, as if nothing had happened. The command line is in the checkpoint;
/// the files it reads must be what they were.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct ResumeArgs {
    /// The folder that was given to --out
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,

    /// Threads to use [default: as the run began]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// Seconds between two checkpoints, 0 for none [default: as the run began]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub(crate) checkpoint_every: Option<f64>,

    /// Say nothing but errors
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Tell of every checkpoint, its size and its time
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Print one JSON object a step of the search and an iteration on stdout, and one at the end
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) json_progress: bool,
}
