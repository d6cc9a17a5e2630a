//! What can be said about the model and its inference, the same for every command that fits one.

use bpnmf::{EngineKind, Preset};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// How the number of parts is found
    #[arg(long, value_parser = presets(), default_value = Preset::Auto.name())]
    pub(crate) preset: Preset,

    /// The algorithm [default: gibbs; ssmf if the data have fractions, and with --preset paper]
    #[arg(long, value_parser = engines())]
    pub(crate) engine: Option<EngineKind>,

    /// The most parts there can be (K, the truncation level) [default: 500, and with --preset auto more if there are
    /// more]
    #[arg(long = "max-components", alias = "components", short = 'k', value_name = "K")]
    pub(crate) components: Option<usize>,

    /// The most iterations after the search [default: 40, up to 120 for few counts; with --preset paper 200 for ssmf and map, 400 for the Gibbs engines; 400 for nb-process]
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) iterations: Option<usize>,

    /// How counts scatter about their rates: auto learns it, poisson is counting noise alone, and with a number ALPHA a
    /// count scatters by 1 / sqrt(ALPHA) of its rate beyond that. With --preset paper auto means poisson
    #[arg(long, value_name = "auto|poisson|ALPHA", default_value = "auto", allow_negative_numbers = true)]
    pub(crate) noise: String,

    /// The seed of every random number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Runs to make, each from a start of its own: they tell how sure the number of parts is, and which parts come back in
    /// every run; the best one of the right size becomes the model. They share the threads; the first has the plain seed.
    /// One chain says nothing about how sure it is [default: 4; 2 of data with more than
    /// 200,000 positive entries; 1 with --preset paper, and of a recording]
    #[arg(long, value_name = "N")]
    pub(crate) chains: Option<usize>,

    /// Make more chains until they say the same: twice as many while the last half of them changed the number of parts or its
    /// interval, at most 64. The result does not depend on time or threads
    #[arg(long)]
    pub(crate) until_sure: bool,

    /// Stop after this time, as 60s, 5m, 2h or seconds, with what there is by then. On its own it is a limit; with --until-sure
    /// there are as many chains as it takes and there is time for
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) time_budget: Option<String>,

    /// Threads to use [default: all cores]; the result does not depend on it
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// Run all iterations, even when the objective has settled
    #[arg(long)]
    pub(crate) no_stop: bool,

    /// Relative change of the objective below which it has settled [default: 1e-4]
    #[arg(long, value_name = "X", conflicts_with = "no_stop", allow_negative_numbers = true)]
    pub(crate) tolerance: Option<f64>,

    /// Seconds between two checkpoints, from which bpnmf resume goes on; 0 for none
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, allow_negative_numbers = true)]
    pub(crate) checkpoint_every: f64,

    /// Say nothing but warnings and errors
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Tell of every checkpoint, its size and its time
    #[arg(long, short)]
    pub(crate) verbose: bool,

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

    /// Sample the number of parts, too, with this prior: beta-process, as --a0 and --b0 have it; uniform; poisson:MEAN; or
    /// geometric:P, each number less probable than the one before by the factor 1 - P. Only for --engine gibbs; takes more
    /// iterations [default: each chain keeps about the number that its search found]
    #[arg(long, value_name = "PRIOR")]
    pub(crate) components_prior: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    next_help_heading = "Only with --preset paper, or an engine without a search, where they are not learned"
)]
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
    /// The gradient it steps along: the paper's approximation, or in full, several draws an iteration; after a search at once, else
    /// in the second half of the iterations [default: approximate]
    #[arg(long, value_enum)]
    pub(crate) gradient: Option<GradientName>,

    /// Draws in an iteration with --gradient full [default: 4]
    #[arg(long, value_name = "N")]
    pub(crate) draws: Option<u32>,

    /// Sweeps over the mask in an iteration, or for every draw [default: 1; 3 with --gradient full]
    #[arg(long, value_name = "N")]
    pub(crate) sweeps: Option<u32>,

    /// Exponent of the step size (T0 + iteration)^-KAPPA [default: 0.5; 0.7 with --gradient full]
    #[arg(long, value_name = "KAPPA", allow_negative_numbers = true)]
    pub(crate) step_power: Option<f64>,

    /// Offset of the step size [default: 1; 10 with --gradient full]
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
#[command(next_help_heading = "Only with --engine gibbs, gibbs-expected or nb-process")]
pub(crate) struct GibbsArgs {
    /// Iterations before states are averaged [default: a fifth of the iterations; with --preset paper half]
    #[arg(long, value_name = "N")]
    pub(crate) burn_in: Option<usize>,
}

/// Reads one of the library's names, which are listed with what they are.
fn named<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    about: fn(T) -> (&'static str, &'static str),
    read: fn(&str) -> Result<T, bpnmf::Error>,
) -> impl TypedValueParser<Value = T> {
    let value = |&one: &T| PossibleValue::new(about(one).0).help(about(one).1);
    PossibleValuesParser::new(all.iter().map(value)).try_map(move |name| read(&name))
}

fn presets() -> impl TypedValueParser<Value = Preset> {
    named(&Preset::ALL, |preset| (preset.name(), preset.about()), Preset::read)
}

fn engines() -> impl TypedValueParser<Value = EngineKind> {
    named(&EngineKind::ALL, |kind| (kind.name(), kind.about()), EngineKind::read)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InitName {
    Random,
    Scaled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GradientName {
    Approximate,
    Full,
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
