//! The arguments as they are typed: plain values and their help, nothing checked beyond their type.

mod score;

use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use score::ScoreArgs;
use std::path::PathBuf;

/// Finds the parts a matrix of counts is made of, how many there are, and when each is on
#[derive(Debug, Parser)]
#[command(name = "bpnmf", version, after_help = TOP_EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const TOP_EXAMPLES: &str = "\
Examples:
  bpnmf demo                                  see it work, no files needed
  bpnmf fit counts.csv --out result           the parts of a table, rows are features
  bpnmf synth --out data --seed 1             counts with known parts, to try things on
  bpnmf score -r true.wav -e found.wav        how good is a separated sound?

Exit codes: 0 done, 2 the request or the data is wrong, 1 anything else.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Fit(Box<FitArgs>),
    Synth(SynthArgs),
    Demo(DemoArgs),
    Score(ScoreArgs),
}

const FIT_EXAMPLES: &str = "\
Examples:
  bpnmf fit counts.csv --out result
  bpnmf fit cells.mtx.gz --transpose --out result --seed 7
  bpnmf fit counts.npy --out result --chains 4           how sure is the number of parts?
  bpnmf fit sound.npy --out result --coarsening 1        no coarser reading of smooth data
  bpnmf fit counts.npy --out result --force-components 8
  bpnmf fit counts.npy --out result --preset paper       the paper's algorithm as printed
  bpnmf fit counts.npz --out result --held-out 0.1 --json-progress

Written to the output folder:
  model.npz     W (features x parts), H and S (parts x observations), pi (parts):
                posterior means of the dictionary, of the masked activation, and of the mask
  summary.json  how many parts there are and how sure that is, how large each is, and how
                the run went
  trace.csv     the number of parts by resolution, then one row an iteration of every chain
  names.json    the names of features and observations, if the input has them";

/// Find the parts of a matrix of counts
///
/// INPUT is a .npy, .npz, .csv, .tsv, .txt or .mtx file (the text formats also with .gz after it): dense or sparse,
/// rows are features and columns are observations. Parts that are on in at least 1 % of the observations count, if the
/// evidence wants them.
///
/// The same seed gives the same result, whatever the number of threads.
#[derive(Debug, Args)]
#[command(after_long_help = FIT_EXAMPLES, after_help = "More, with examples: bpnmf fit --help")]
pub(crate) struct FitArgs {
    /// The matrix of counts, features x observations
    #[arg(value_name = "INPUT")]
    pub(crate) input: PathBuf,

    /// The folder for the results; made if it does not exist
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,

    /// Overwrite results that are already in the folder
    #[arg(long)]
    pub(crate) force: bool,

    /// The file is observations x features: exchange rows and columns
    #[arg(long)]
    pub(crate) transpose: bool,

    /// How the number of parts is found
    #[arg(long, value_enum, default_value_t = PresetName::Auto)]
    pub(crate) preset: PresetName,

    /// The algorithm [default: gibbs; ssmf if the data have fractions, and with --preset paper]
    #[arg(long, value_enum)]
    pub(crate) engine: Option<EngineName>,

    /// The most parts there can be (K, the truncation level) [default: 500, and with --preset auto more if there are
    /// more]
    #[arg(long, short = 'k', value_name = "K")]
    pub(crate) components: Option<usize>,

    /// The most iterations after the search [default: 100; with --preset paper 200 for ssmf, 400 for the Gibbs engines]
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) iterations: Option<usize>,

    /// The seed of every random number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Runs to make, each from a start of its own: the number of parts is counted over all of them, R-hat says whether
    /// they agree, and the best one of the right size becomes the model. They share the threads; the first has the plain
    /// seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) chains: usize,

    /// Threads to use [default: all cores]; the result does not depend on it
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// Put this fraction of the counts aside by binomial thinning and score every iteration on it
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true)]
    pub(crate) held_out: Option<f64>,

    /// Run all iterations, even when the objective has settled
    #[arg(long)]
    pub(crate) no_stop: bool,

    /// Relative change of the objective below which it has settled [default: 1e-4]
    #[arg(long, value_name = "X", conflicts_with = "no_stop", allow_negative_numbers = true)]
    pub(crate) tolerance: Option<f64>,

    /// Say nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Print one JSON object a step of the search and an iteration on stdout, and one at the end
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) json_progress: bool,

    #[command(flatten)]
    pub(crate) search: SearchArgs,

    #[command(flatten)]
    pub(crate) prior: PriorArgs,

    #[command(flatten)]
    pub(crate) paper: PaperArgs,

    #[command(flatten)]
    pub(crate) ssmf: SsmfArgs,

    #[command(flatten)]
    pub(crate) gibbs: GibbsArgs,

    /// The instructions to use; the result does not depend on it
    #[arg(long, value_enum, default_value_t = SimdName::Auto, hide = true)]
    pub(crate) simd: SimdName,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Only with --preset auto")]
pub(crate) struct SearchArgs {
    /// The power of the likelihood, above 0 and at most 1: 1 reads the data in full, 0.1 at a tenth of their resolution
    /// [default: 1 for counts, less for data too smooth to be counts]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) coarsening: Option<f64>,

    /// Exactly this many parts, whatever the evidence says
    #[arg(long, value_name = "N")]
    pub(crate) force_components: Option<usize>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Prior")]
pub(crate) struct PriorArgs {
    /// Mass of the beta process: about a0 / b0 parts are on in an observation a priori [default: 1]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) a0: Option<f64>,

    /// Concentration of the beta process [default: 1]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) b0: Option<f64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Only with --preset paper, where they are not learned")]
pub(crate) struct PaperArgs {
    /// Whose defaults: the paper's (0.5, 0.5, 5, 5) or those of the authors' code (0.1 each) [default: paper]
    #[arg(long, value_enum)]
    pub(crate) prior: Option<PriorName>,

    /// Shape of the dictionary W
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) a: Option<f64>,

    /// Rate of the dictionary W
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) b: Option<f64>,

    /// Shape of the activations H
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) c: Option<f64>,

    /// Rate of the activations H
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub(crate) d: Option<f64>,

    /// Where the run starts: as the authors' code does, or on the scale of the data [default: random]
    #[arg(long, value_enum)]
    pub(crate) init: Option<InitName>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Only with --engine ssmf")]
pub(crate) struct SsmfArgs {
    /// Sweeps over the mask in an iteration [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) sweeps: Option<u32>,

    /// Exponent of the step size (T0 + iteration)^-KAPPA [default: 0.5]
    #[arg(long, value_name = "KAPPA", allow_negative_numbers = true)]
    pub(crate) step_power: Option<f64>,

    /// Offset of the step size [default: 1]
    #[arg(long, value_name = "T0", allow_negative_numbers = true)]
    pub(crate) step_offset: Option<f64>,

    /// Drop parts whose inclusion is at most this share of the largest, for good
    #[arg(long, value_name = "CUTOFF", allow_negative_numbers = true)]
    pub(crate) prune: Option<f64>,

    /// The first iteration after which parts are dropped, counted from 0 [default: 0]
    #[arg(long, value_name = "N", requires = "prune")]
    pub(crate) prune_from: Option<u32>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Only with --engine gibbs or gibbs-expected")]
pub(crate) struct GibbsArgs {
    /// Iterations before states are averaged [default: 30 and at most half of the iterations; with --preset paper half]
    #[arg(long, value_name = "N")]
    pub(crate) burn_in: Option<usize>,
}

const SYNTH_EXAMPLES: &str = "\
Examples:
  bpnmf synth --out data --seed 1
  bpnmf synth --out small --seed 2 --features 30 --observations 200 --gamma scale
  bpnmf synth --out data --seed 1 && bpnmf fit data/X.npy --out result

Written to the output folder:
  X.npy      the counts, features x observations
  truth.npz  what they were drawn from: W, H, S, pi, and n_components, the number of
             parts that are on in at least 1 % of the observations";

/// Write synthetic counts with known parts
///
/// They are drawn by the recipe of section 4.1 of the paper.
#[derive(Debug, Args)]
#[command(after_long_help = SYNTH_EXAMPLES, after_help = "More, with examples: bpnmf synth --help")]
pub(crate) struct SynthArgs {
    /// The folder for the files; made if it does not exist
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,

    /// The seed of every random number
    #[arg(long, value_name = "N")]
    pub(crate) seed: u64,

    /// Rows
    #[arg(long, value_name = "F", default_value_t = 75)]
    pub(crate) features: usize,

    /// Columns
    #[arg(long, value_name = "T", default_value_t = 1000)]
    pub(crate) observations: usize,

    /// Parts of the generator; about a fifth of them are on in more than 1 % of the observations
    #[arg(long, short = 'k', value_name = "L", default_value_t = 100)]
    pub(crate) components: usize,

    /// How the recipe's Gamma(A, B) is read: B as a rate (a few enormous counts) or as a scale (mild counts)
    #[arg(long, value_enum, default_value_t = GammaName::Rate)]
    pub(crate) gamma: GammaName,

    /// Overwrite files that are already in the folder
    #[arg(long)]
    pub(crate) force: bool,
}

const DEMO_EXAMPLES: &str = "\
Examples:
  bpnmf demo
  bpnmf demo --seed 3         another tune
  bpnmf demo --out demo       also keep the counts, the truth and the result";

/// Make up a tune, count its sounds and find its notes; needs no files
///
/// The program is told neither the notes nor their number. It takes a few seconds and writes nothing unless --out is
/// given.
#[derive(Debug, Args)]
#[command(after_long_help = DEMO_EXAMPLES, after_help = DEMO_EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Keep the counts, the truth and the result in this folder
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// The seed of the tune and of the fit
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Overwrite files that are already in the folder
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// Stochastic structured mean field, Algorithm 1 of the paper: fast
    Ssmf,
    /// Gibbs sampling, exact; needs whole counts
    Gibbs,
    /// Gibbs sampling with expected counts as the paper prints it: too sure of itself, kept for comparison
    GibbsExpected,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PresetName {
    /// A search comes first: for the parts that the evidence wants, and for the prior; then the engine samples from there
    Auto,
    /// As the paper prints it: no search, the prior as it is given; keeps many copies of each part
    Paper,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InitName {
    Random,
    Scaled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PriorName {
    Paper,
    Authors,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimdName {
    Auto,
    Avx512,
    Avx2,
    Plain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GammaName {
    Rate,
    Scale,
}
