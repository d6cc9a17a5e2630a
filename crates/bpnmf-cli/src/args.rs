//! The arguments as they are typed: plain values and their help, nothing checked beyond their type.

mod assign;
mod model;
mod regroup;
mod resume;
mod score;
mod separate;

pub(crate) use assign::AssignArgs;
use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use model::{GradientName, InitName, ModelArgs, PriorName, SearchArgs, SimdName};
pub(crate) use regroup::RegroupArgs;
pub(crate) use resume::ResumeArgs;
pub(crate) use score::ScoreArgs;
pub(crate) use separate::{FormatName, PickName, SeparateArgs};
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
  bpnmf assign new.csv --signatures result --out new    known signatures in new samples
  bpnmf separate mix.wav --stems 2 --out two  the parts of a recording, to listen to
  bpnmf regroup two --groups groups.json      other stems of it, at once
  bpnmf resume result                         go on with a run that was stopped or killed
  bpnmf synth --out data --seed 1             counts with known parts, to try things on
  bpnmf score -r true.wav -e found.wav        how good is a separated sound?

Exit codes: 0 done, 2 the request or the data is wrong, 1 anything else.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Fit(Box<FitArgs>),
    Assign(AssignArgs),
    Separate(Box<SeparateArgs>),
    Regroup(RegroupArgs),
    Resume(ResumeArgs),
    Synth(SynthArgs),
    Demo(DemoArgs),
    Score(ScoreArgs),
    Completions(CompletionsArgs),
    Man(ManualArgs),
}

const FIT_EXAMPLES: &str = "\
Examples:
  bpnmf fit counts.csv --out result
  bpnmf fit counts.csv --out result --report             see it in a browser
  bpnmf fit mutations.tsv --catalogue COSMIC.txt --report --out result    which signatures are known
  bpnmf fit cells.mtx.gz --transpose --out result --seed 7
  bpnmf fit cells.h5ad --layer counts --out result       anndata: cells are the observations
  bpnmf fit atlas.h5ad --blocks --out result             a million cells, block by block
  bpnmf fit ratings.csv --missing --out result           empty cells were not observed
  bpnmf fit excel.csv --decimal comma --out result       0,5 and 1.885 as in German Excel
  zcat cells.tsv.gz | bpnmf fit - --out result           from standard input
  bpnmf fit counts.npy --out result --chains 12          a better interval of the number of components
  bpnmf fit counts.npy --out result --until-sure         as many chains as it takes
  bpnmf fit counts.npy --out result --until-sure --time-budget 5m
  bpnmf fit counts.npy --out result --chains 1           quick; how sure it is, is not known
  bpnmf fit sound.npy --out result --coarsening 1        no coarser reading of smooth data
  bpnmf fit counts.csv --out result --noise poisson      counting noise alone
  bpnmf fit counts.npy --out result --force-components 8
  bpnmf fit counts.npy --out result --preset paper       the paper's algorithm as printed
  bpnmf fit counts.npz --out result --held-out 0.1 --json-progress

Written to the output folder:
  signatures.tsv  features x components: what each component looks like, columns add up to 1
  exposures.tsv   observations x components: how many counts are expected of each component
  inclusion.tsv   observations x components: the probability that a component is present
  signatures_low.tsv, signatures_high.tsv, exposures_low.tsv, exposures_high.tsv
                  the ends of 90 % intervals (engine gibbs)
  matches.tsv     with --catalogue: what each component is, and how near that is
  model.npz     for numpy, in the units of the model: W (features x components), H and S (components x
                observations), pi, and W_low, W_high, H_low and H_high
  summary.json  how many components there are and how sure that is, how large each is and
                how many chains found it, and how the run went
  trace.csv     the number of components by resolution, then one row an iteration and chain
  names.json    the names of features and observations, if the input has them
  report.html   with --report: all of it in pictures; needs no network";

/// Find the parts of a matrix of counts
///
/// INPUT is a .npy, .npz, .csv, .tsv, .txt or .mtx file (the text formats also gzipped), or - for standard input: dense or
/// sparse, rows are features and columns are observations; or an .h5ad file, or an .h5 file or a folder of 10x Genomics,
/// whose observations are the cells. How a table was understood is said when it is read. Components that are on in at least
/// 1 % of the observations count, if the evidence supports them.
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

    /// Overwrite results or an unfinished run that are already in the folder, and try what needs more memory than there is
    #[arg(long)]
    pub(crate) force: bool,

    /// Also write report.html: the result in pictures, one page for any browser
    #[arg(long)]
    pub(crate) report: bool,

    /// Fit data block by block, a sample first: chains on --sample observations find the components, and passes over all
    /// blocks fit them to all observations. Done without being asked for .h5ad and .h5 files that do not fit into memory
    #[arg(long)]
    pub(crate) blocks: bool,

    /// With blocks: the observations that the components are looked for in
    #[arg(long, value_name = "N", default_value_t = bpnmf::SAMPLE)]
    pub(crate) sample: usize,

    /// Compare every component with known signatures, a table of features x signatures as COSMIC's: matches.tsv
    #[arg(long, value_name = "FILE")]
    pub(crate) catalogue: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) table: TableArgs,

    /// Put this fraction of the counts aside by binomial thinning and score every iteration on it
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true)]
    pub(crate) held_out: Option<f64>,

    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// How a matrix of counts is read, the same for every command that reads one.
#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    /// The file is observations x features: exchange rows and columns
    #[arg(long)]
    pub(crate) transpose: bool,

    /// Of an .h5ad file, the layer that has the counts [default: X]
    #[arg(long, value_name = "NAME")]
    pub(crate) layer: Option<String>,

    /// Tables of text: this many columns at the beginning hold names, 0 for none [default: found by their looks]
    #[arg(long, value_name = "N")]
    pub(crate) names: Option<usize>,

    /// Tables of text: whether the first line holds names [default: found by its looks]
    #[arg(long, value_enum, value_name = "yes|no")]
    pub(crate) header: Option<HeaderName>,

    /// Tables of text: the mark before fractions, point (0.5) or comma (0,5; 1.885 is then 1885) [default: found by the
    /// looks of all numbers]
    #[arg(long, value_enum, value_name = "point|comma")]
    pub(crate) decimal: Option<DecimalName>,

    /// Entries may be missing: empty cells and NA in text, NaN anywhere. They are left out of the likelihood
    #[arg(long)]
    pub(crate) missing: bool,
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
  bpnmf demo                  everything into bpnmf-demo/
  bpnmf demo --seed 3         other random numbers, the same piece
  bpnmf demo --out there      another folder

Written to the folder:
  mixture.wav   the piece
  truth/        its two stems, and notes.csv: when every note is played
  components/, stems/, report.html, ...
                what `bpnmf separate` writes: bpnmf separate --help";

/// Play a piece of ten notes, take it apart and compare; needs no files
///
/// The program is told neither the notes nor their number. It takes a few seconds, and replaces what an earlier demo left
/// in the folder.
#[derive(Debug, Args)]
#[command(after_long_help = DEMO_EXAMPLES, after_help = DEMO_EXAMPLES)]
pub(crate) struct DemoArgs {
    /// The folder for the piece and the result [default: bpnmf-demo]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// The seed of every random number
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Say nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  bpnmf completions bash > ~/.local/share/bash-completion/completions/bpnmf
  bpnmf completions zsh > ~/.zfunc/_bpnmf             with ~/.zfunc in fpath
  bpnmf completions fish > ~/.config/fish/completions/bpnmf.fish";

/// Print what a shell needs to complete commands and options
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

const MANUAL_EXAMPLES: &str = "\
Examples:
  bpnmf man | man -l -
  bpnmf man --out ~/.local/share/man/man1     a page for every command, for man bpnmf-fit";

/// Print the manual page, or write one for every command
#[derive(Debug, Args)]
#[command(after_help = MANUAL_EXAMPLES)]
pub(crate) struct ManualArgs {
    /// The folder for the pages of all commands; made if it does not exist
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeaderName {
    Yes,
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecimalName {
    Point,
    Comma,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GammaName {
    Rate,
    Scale,
}
