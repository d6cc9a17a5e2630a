//! From what was typed to what can run: every flag checked, every default filled in.

use super::foreign;
use crate::args::{EngineName, InitName, ModelArgs, PresetName, PriorName, SearchArgs, SimdName};
use crate::failure::Failure;
use crate::{interrupt, memory};
use bpnmf::{
    CheckedPrior, ComponentsPrior, Counts, Engine, EngineKind, HeldOut, Init, Noise, Plan, Preset, Prior,
    RunOptions, Settings, Simd, Ssmf, StopRule, Workers,
};
use std::path::Path;
use std::time::Instant;

/// The most threads the library starts.
const MOST_THREADS: usize = 1024;

/// The most slots that a run after a search is expected to have, for the memory: parts that were found and a few more.
const SLOTS_AFTER_SEARCH: usize = 100;

/// A request that can run, but for the data.
pub(crate) struct Config {
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) prior: CheckedPrior,
    pub(crate) options: RunOptions,
    pub(crate) chains: usize,
    pub(crate) until_sure: bool,
    pub(crate) workers: Workers,
    pub(crate) preset: &'static str,
    plan: Plan,
    pub(crate) held_out: Option<f64>,
    /// Whether to try what needs more memory than there is.
    pub(crate) force: bool,
}

impl Config {
    /// Checks what can be checked without the data.
    pub(crate) fn check(args: &ModelArgs) -> Result<Self, Failure> {
        foreign::refuse_other_preset(args)?;
        let plan = plan(args)?;
        foreign::refuse_other_engine(args, plan.engine_kind())?;
        if !(0.0..=1e9).contains(&args.checkpoint_every) {
            return Err(Failure::Request(format!(
                "--checkpoint-every is {}: it must be at least 0, the seconds between two checkpoints",
                args.checkpoint_every
            )));
        }
        let deadline = deadline(args.time_budget.as_deref())?;
        let Settings { engine, prior, options } = plan.settings()?;
        Ok(Self {
            engine,
            prior,
            options,
            chains: plan.chains()?,
            until_sure: plan.until_sure,
            workers: workers(args.threads, args.simd)?
                .with_deadline(deadline)
                .with_stop(Some(interrupt::request())),
            preset: plan.preset.name(),
            plan,
            held_out: None,
            force: false,
        })
    }

    /// Whether the number of parts was given.
    pub(crate) fn forced(&self) -> bool {
        self.options.search.as_ref().is_some_and(|search| search.components.is_some())
    }

    /// Whether the truncation level grows when there are more parts than expected.
    pub(crate) fn grows(&self) -> bool {
        self.options.search.as_ref().is_some_and(|search| search.grows)
    }

    /// Checks the request against the data, and gives the counts to fit: what is not held out.
    pub(crate) fn meet(
        &mut self,
        counts: Counts,
        args: &ModelArgs,
        place: Place<'_>,
    ) -> Result<Counts, Failure> {
        let kind = self.plan.engine_kind_for(&counts);
        if kind != self.plan.engine_kind() {
            foreign::refuse_other_engine(args, kind)?;
        }
        let settings = self.plan.settings_for(&counts).map_err(|error| place.tell(error))?;
        (self.engine, self.options.iterations) = (settings.engine, settings.options.iterations);
        // A recording has asked for fewer chains than the plan has.
        self.chains = self.chains.min(self.plan.chains_for(&counts)?);
        let slots = match &self.options.search {
            Some(search) => {
                self.prior.components().min(SLOTS_AFTER_SEARCH.max(search.components.unwrap_or(0)))
            }
            None => self.prior.components(),
        };
        if !self.force {
            check_memory(&counts, slots, self.chains)?;
        }
        let Some(fraction) = self.held_out else {
            return Ok(counts);
        };
        if let Some((feature, observation, value)) = counts.first_fraction() {
            let (row, column) = place.of(feature, observation);
            return Err(Failure::Request(format!(
                "{}: entry ({row}, {column}) is {value}, which is not a whole number: --held-out splits counts; \
                 round the data or leave --held-out out",
                place.path.display()
            )));
        }
        let (kept, held_out) = HeldOut::split(&counts, fraction, self.options.seed)?;
        self.options.held_out = Some(held_out);
        Ok(kept)
    }
}

/// The flags as the library knows them.
fn plan(args: &ModelArgs) -> Result<Plan, Failure> {
    let SearchArgs { coarsening, force_components } = args.search;
    let (default, given) = (Ssmf::default(), &args.ssmf);
    let stop = StopRule::default();
    Ok(Plan {
        preset: match args.preset {
            PresetName::Auto => Preset::Auto,
            PresetName::Paper => Preset::Paper,
        },
        engine: args.engine.map(|name| match name {
            EngineName::Ssmf => EngineKind::Ssmf,
            EngineName::Gibbs => EngineKind::Gibbs,
            EngineName::GibbsExpected => EngineKind::GibbsExpected,
        }),
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
        prior: prior(args),
        components_prior: components_prior(args.prior.components_prior.as_deref())?,
        init: match args.paper.init {
            None | Some(InitName::Random) => Init::Random,
            Some(InitName::Scaled) => Init::Scaled,
        },
        ssmf: Ssmf {
            kappa: given.step_power.unwrap_or(default.kappa),
            t0: given.step_offset.unwrap_or(default.t0),
            sweeps: given.sweeps.unwrap_or(default.sweeps),
            prune: given.prune,
            prune_from: given.prune_from.unwrap_or(default.prune_from),
            ..default
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

fn prior(args: &ModelArgs) -> Prior {
    let (given, process) = (&args.paper, &args.prior);
    let default = match given.prior {
        None | Some(PriorName::Paper) => Prior::default(),
        Some(PriorName::Authors) => Prior::authors_code(),
    };
    Prior {
        a: given.a.unwrap_or(default.a),
        b: given.b.unwrap_or(default.b),
        c: given.c.unwrap_or(default.c),
        d: given.d.unwrap_or(default.d),
        a0: process.a0.unwrap_or(default.a0),
        b0: process.b0.unwrap_or(default.b0),
        ..default
    }
}

/// Errors if the states of all chains need more memory than there is. The arrays of a run are made in many places; this
/// asks once.
fn check_memory(counts: &Counts, components: usize, chains: usize) -> Result<(), Failure> {
    // Two parameters of q or two sums in double precision, averages, variances and states in single precision, and scratch: measured.
    const BYTES_A_SITE: usize = 52;
    let sites = components.saturating_mul(counts.observations().saturating_add(counts.features()));
    let bytes = sites.saturating_mul(BYTES_A_SITE).saturating_mul(chains) as u64;
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
    let (in_chains, or_chains) = match chains {
        1 => (String::new(), ""),
        n => (format!(" in {n} chains"), " or --chains"),
    };
    Err(Failure::Request(format!(
        "{components} components for {} features and {} observations{in_chains} need about {} of memory, {there_are}: \
         use fewer --max-components{or_chains}, or --force to try it",
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
                let error = bpnmf::Error::NotWhole { feature, observation, value, engine };
                Failure::Request(format!("{}: {error}", self.path.display()))
            }
            other => other.into(),
        }
    }

    /// (row, column) of an entry as the file has it.
    fn of(self, feature: usize, observation: usize) -> (usize, usize) {
        if self.transposed { (observation, feature) } else { (feature, observation) }
    }
}
