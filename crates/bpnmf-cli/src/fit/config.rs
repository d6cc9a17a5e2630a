//! From what was typed to what can run: the library's plan filled in, and its job taken over. Nothing is decided here that the
//! library knows.

use crate::args::{GradientName, InitName, ModelArgs, PriorName, SearchArgs, SimdName};
use crate::failure::Failure;
use crate::{interrupt, memory};
use bpnmf::{
    ComponentsPrior, Counts, Init, Job, Noise, Plan, PriorWish, Simd, SsmfWish, StopRule, WhosePrior, Workers,
};
use std::path::Path;
use std::time::Instant;

/// The most threads the library starts.
const MOST_THREADS: usize = 1024;

/// A request that can run, but for the data.
pub(crate) struct Request {
    pub(crate) plan: Plan,
    pub(crate) workers: Workers,
    /// Whether to try what needs more memory than there is.
    pub(crate) force: bool,
}

/// A request that can run.
pub(crate) struct Config {
    pub(crate) job: Job,
    pub(crate) workers: Workers,
}

impl Request {
    /// Checks what can be checked without the data.
    pub(crate) fn check(args: &ModelArgs) -> Result<Self, Failure> {
        let plan = plan(args)?;
        plan.check()?;
        if !(0.0..=1e9).contains(&args.checkpoint_every) {
            return Err(Failure::Request(format!(
                "--checkpoint-every is {}: it must be at least 0, the seconds between two checkpoints",
                args.checkpoint_every
            )));
        }
        let deadline = deadline(args.time_budget.as_deref())?;
        let workers =
            workers(args.threads, args.simd)?.with_deadline(deadline).with_stop(Some(interrupt::request()));
        Ok(Self { plan, workers, force: false })
    }

    /// Checks the request against the data, and gives the counts to fit: what is not held out.
    pub(crate) fn meet(self, counts: Counts, place: Place<'_>) -> Result<(Config, Counts), Failure> {
        let Self { plan, workers, force } = self;
        let (job, kept) = plan.job(&counts).map_err(|error| place.tell(error))?;
        let counts = kept.unwrap_or(counts);
        if !force {
            check_memory(&job, &counts, workers.threads())?;
        }
        Ok((Config { job, workers }, counts))
    }
}

/// The flags as the library knows them.
fn plan(args: &ModelArgs) -> Result<Plan, Failure> {
    let SearchArgs { coarsening, force_components } = args.search;
    let (given, stop) = (&args.ssmf, StopRule::default());
    Ok(Plan {
        preset: args.preset,
        engine: args.engine,
        components: args.components,
        forced: force_components,
        coarsening,
        noise: noise(&args.noise)?,
        iterations: args.iterations,
        burn_in: args.gibbs.burn_in,
        chains: args.chains,
        until_sure: args.until_sure,
        seed: args.seed,
        stop: (!args.no_stop)
            .then(|| StopRule { tolerance: args.tolerance.unwrap_or(stop.tolerance), ..stop }),
        held_out: None,
        prior: prior(args),
        components_prior: components_prior(args.prior.components_prior.as_deref())?,
        init: args.paper.init.map(|init| match init {
            InitName::Random => Init::Random,
            InitName::Scaled => Init::Scaled,
        }),
        ssmf: SsmfWish {
            kappa: given.step_power,
            t0: given.step_offset,
            sweeps: given.sweeps,
            prune: given.prune,
            prune_from: given.prune_from,
            full_gradient: given.gradient.map(|gradient| gradient == GradientName::Full),
            draws: given.draws,
        },
    })
}

/// The noise somebody wishes for; `None` if it is to be learned.
pub(crate) fn noise(text: &str) -> Result<Option<Noise>, Failure> {
    let given = match text {
        "auto" => return Ok(None),
        "poisson" => Some(Noise::Poisson),
        text => text.parse().ok().and_then(|alpha| Noise::Scattered { alpha }.check().ok()),
    };
    let refused = || format!("--noise is {text}: it must be auto, poisson or a finite number above 0");
    given.map(Some).ok_or_else(|| Failure::Request(refused()))
}

/// The prior of the number of components somebody wishes for.
fn components_prior(text: Option<&str>) -> Result<Option<ComponentsPrior>, Failure> {
    let read = |text| ComponentsPrior::read(text).map_err(|error| Failure::Request(error.to_string()));
    text.map(read).transpose()
}

/// When the time that somebody gives is over, counted from now.
fn deadline(text: Option<&str>) -> Result<Option<Instant>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let time = bpnmf::time_of(text).map_err(|error| Failure::Request(format!("--time-budget: {error}")))?;
    Ok(Instant::now().checked_add(time))
}

/// The threads asked for, 0 for all cores.
pub(crate) fn thread_count(threads: Option<usize>) -> Result<usize, Failure> {
    if let Some(threads) = threads.filter(|threads| !(1..=MOST_THREADS).contains(threads)) {
        return Err(Failure::Request(format!(
            "--threads is {threads}: it must be between 1 and {MOST_THREADS}; leave it out to use all cores"
        )));
    }
    Ok(threads.unwrap_or(0))
}

/// Threads and instructions.
fn workers(threads: Option<usize>, simd: SimdName) -> Result<Workers, Failure> {
    let workers = Workers::new(thread_count(threads)?)?;
    Ok(workers.with_simd(match simd {
        SimdName::Auto => Simd::Auto,
        SimdName::Avx512 => Simd::Avx512,
        SimdName::Avx2 => Simd::Avx2,
        SimdName::Plain => Simd::Plain,
    }))
}

fn prior(args: &ModelArgs) -> PriorWish {
    let (given, process) = (&args.paper, &args.prior);
    let whose = given.prior.map(|name| match name {
        PriorName::Paper => WhosePrior::Paper,
        PriorName::Authors => WhosePrior::Authors,
    });
    PriorWish { whose, a: given.a, b: given.b, c: given.c, d: given.d, a0: process.a0, b0: process.b0 }
}

/// Errors if the job needs more memory than there is. The arrays of a run are made in many places; this asks once.
fn check_memory(job: &Job, counts: &Counts, threads: usize) -> Result<(), Failure> {
    let bytes = job.bytes(counts, threads);
    let available = memory::available();
    let enough = match available {
        Some(available) => bytes <= available,
        None => Vec::<u8>::new().try_reserve_exact(bytes as usize).is_ok(),
    };
    if enough {
        return Ok(());
    }
    let there_are = available.map_or_else(
        || "more than this machine gives".to_owned(),
        |bytes| format!("there are {}", memory::text(bytes)),
    );
    let (in_chains, or_chains) = match job.chains {
        1 => (String::new(), ""),
        n => (format!(" in {n} chains"), " or --chains"),
    };
    Err(Failure::Request(format!(
        "{} components for {} features and {} observations{in_chains} need about {} of memory, {there_are}: \
         use fewer --max-components{or_chains}, or --force to try it",
        job.slots(),
        counts.features(),
        counts.observations(),
        memory::text(bytes)
    )))
}

/// Where the data are from, for those who have to be told about an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) path: &'a Path,
    /// Rows and columns of the file are exchanged.
    pub(crate) transposed: bool,
}

impl Place<'_> {
    /// Says which file an entry is in, and where the file has it.
    fn tell(self, error: bpnmf::Error) -> Failure {
        match error {
            bpnmf::Error::NotWhole { feature, observation, value, engine } => {
                let (feature, observation) = self.of(feature, observation);
                let sentence = match engine {
                    bpnmf::HeldOut::WHO => format!(
                        "entry ({feature}, {observation}) is {value}, which is not a whole number: --held-out splits \
                         counts; round the data or leave --held-out out"
                    ),
                    _ => bpnmf::Error::NotWhole { feature, observation, value, engine }.to_string(),
                };
                Failure::Request(format!("{}: {sentence}", self.path.display()))
            }
            other => other.into(),
        }
    }

    /// (row, column) of an entry as the file has it.
    fn of(self, feature: usize, observation: usize) -> (usize, usize) {
        if self.transposed { (observation, feature) } else { (feature, observation) }
    }
}
