//! The arguments of `bpnmf assign`.

use super::TableArgs;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  bpnmf assign new.tsv --signatures COSMIC.txt --out new       published signatures, a table
  bpnmf assign new.tsv --signatures result --out new           the components of a fit
  bpnmf assign new.tsv --signatures COSMIC.txt --noise poisson --out new
  bpnmf assign cells.h5ad --layer counts --signatures programs.tsv --out new

Written to the output folder:
  exposures.tsv   observations x signatures: how many counts are expected of each signature
  exposures_low.tsv, exposures_high.tsv
                  the ends of their 90 % intervals
  inclusion.tsv   observations x signatures: the probability that a signature is present
  samples.tsv     a row an observation: counts, how many signatures are present, the cosine of the
                  counts with what is expected of them, and the log-likelihood
  summary.json    what was done, and for every signature its share and how often it is present";

/// Find known signatures in new samples: how much of each, whether it is there, and how sure that is
///
/// INPUT is a matrix of counts as bpnmf fit reads it, features x observations. The signatures are a table of features x
/// signatures, as COSMIC publishes them, or the folder of a fit. Rows are matched by their names.
///
/// Of a table, how often signatures are present, how their exposures vary and how the counts scatter is learned from the
/// new samples together; of a fit all of that is as it was found there. The same seed gives the same result, whatever the
/// number of threads.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = "More, with examples: bpnmf assign --help")]
pub(crate) struct AssignArgs {
    /// The counts of the new samples, features x observations
    #[arg(value_name = "INPUT")]
    pub(crate) input: PathBuf,

    /// The signatures: a table of features x signatures, or the output folder of bpnmf fit
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) signatures: PathBuf,

    /// The folder for the results; made if it does not exist
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,

    /// Overwrite results that are already in the folder, and read what needs more memory than there is
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) table: TableArgs,

    /// How counts scatter about their rates: auto learns it, or takes that of the fit; poisson is counting noise alone, and
    /// with a number ALPHA a count scatters by 1 / sqrt(ALPHA) of its rate beyond that
    #[arg(long, value_name = "auto|poisson|ALPHA", default_value = "auto", allow_negative_numbers = true)]
    pub(crate) noise: String,

    /// The seed of every random number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Sweeps of the sampler that are averaged; more are more exact
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub(crate) draws: u32,

    /// Threads to use [default: all cores]; the result does not depend on it
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// Say nothing but warnings and errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
