//! From what was typed to what can run: every flag checked, every default filled in.

use super::foreign;
use crate::args::{EngineName, InitName, ModelArgs, PresetName, PriorName, SearchArgs, SimdName};
use crate::failure::Failure;
use crate::memory;
use bpnmf::{
    CheckedPrior, Counts, Engine, Gibbs, HeldOut, Init, Prior, RunOptions, Search, Simd, Ssmf, StopRule,
    Workers,
};
use std::path::Path;

/// The most threads the library starts.
const MOST_THREADS: usize = 1024;

/// The most parts that can be forced: above, somebody mistyped.
const MOST_FORCED: usize = 10_000;

/// The most chains: above, somebody mistyped.
const MOST_CHAINS: usize = 1000;

/// The most parts unless told otherwise.
const COMPONENTS: usize = 500;

/// With a search before it a run is short: it starts where it should end.
const ITERATIONS_AFTER_SEARCH: usize = 100;
const BURN_IN_AFTER_SEARCH: usize = 30;

/// The most slots that a run after a search is expected to have, for the memory: parts that were found and a few more.
const SLOTS_AFTER_SEARCH: usize = 100;

/// A request that can run, but for the data.
pub(crate) struct Config {
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) prior: CheckedPrior,
    pub(crate) options: RunOptions,
    pub(crate) chains: usize,
    pub(crate) workers: Workers,
    pub(crate) preset: &'static str,
    pub(crate) held_out: Option<f64>,
    /// Whether to try what needs more memory than there is.
    pub(crate) force: bool,
}

impl Config {
    /// Checks what can be checked without the data.
    pub(crate) fn check(args: &ModelArgs) -> Result<Self, Failure> {
        foreign::refuse_other_preset(args)?;
        let engine_name = default_engine(args);
        foreign::refuse_other_engine(args, engine_name)?;
        let iterations = args.iterations.unwrap_or(match (args.preset, engine_name) {
            (PresetName::Auto, _) => ITERATIONS_AFTER_SEARCH,
            (PresetName::Paper, EngineName::Ssmf) => 200,
            (PresetName::Paper, EngineName::Gibbs | EngineName::GibbsExpected) => 400,
        });
        if iterations == 0 || iterations > 1 << 30 {
            let sentence = format!("--iterations is {iterations}: it must be between 1 and 2^30");
            return Err(Failure::Request(sentence));
        }
        if !(1..=MOST_CHAINS).contains(&args.chains) {
            let sentence = format!("--chains is {}: it must be between 1 and {MOST_CHAINS}", args.chains);
            return Err(Failure::Request(sentence));
        }
        if !(0.0..=1e9).contains(&args.checkpoint_every) {
            return Err(Failure::Request(format!(
                "--checkpoint-every is {}: it must be at least 0, the seconds between two checkpoints",
                args.checkpoint_every
            )));
        }
        let prior = prior(args).check()?;
        let (stop, search) = (stop_rule(args)?, search(args)?);
        Ok(Self {
            engine: engine(args, engine_name, iterations)?,
            prior,
            options: RunOptions { iterations, seed: args.seed, stop, search, ..RunOptions::default() },
            chains: args.chains,
            workers: workers(args.threads, args.simd)?,
            preset: match args.preset {
                PresetName::Paper => "paper",
                PresetName::Auto => "auto",
            },
            held_out: None,
            force: false,
        })
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
        if args.engine.is_none() && self.engine.check(&counts).is_err() {
            // Fractions: what nobody chose gives way to what can work on them.
            foreign::refuse_other_engine(args, EngineName::Ssmf)?;
            self.engine = engine(args, EngineName::Ssmf, self.options.iterations)?;
        }
        self.engine.check(&counts).map_err(|error| place.tell(error))?;
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

/// The engine that was asked for, or the preset's.
fn default_engine(args: &ModelArgs) -> EngineName {
    args.engine.unwrap_or(match args.preset {
        PresetName::Auto => EngineName::Gibbs,
        PresetName::Paper => EngineName::Ssmf,
    })
}

/// The search before the run, if the preset has one.
fn search(args: &ModelArgs) -> Result<Option<Search>, Failure> {
    if args.preset == PresetName::Paper {
        return Ok(None);
    }
    let SearchArgs { coarsening, force_components } = args.search;
    if let Some(power) = coarsening.filter(|power| !(*power > 0.0 && *power <= 1.0)) {
        let sentence = format!("--coarsening is {power}: it must be above 0 and at most 1");
        return Err(Failure::Request(sentence));
    }
    let most = args.components.unwrap_or(MOST_FORCED);
    if let Some(wanted) = force_components.filter(|wanted| !(1..=most).contains(wanted)) {
        let limit = if args.components.is_some() { ", the number of --components" } else { "" };
        let sentence = format!("--force-components is {wanted}: it must be between 1 and {most}{limit}");
        return Err(Failure::Request(sentence));
    }
    let grows = args.components.is_none();
    Ok(Some(Search { coarsening, components: force_components, grows, guess: None }))
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

fn engine(args: &ModelArgs, name: EngineName, iterations: usize) -> Result<Box<dyn Engine>, Failure> {
    let init = match args.paper.init {
        None | Some(InitName::Random) => Init::Random,
        Some(InitName::Scaled) => Init::Scaled,
    };
    if name == EngineName::Ssmf {
        let (given, default) = (&args.ssmf, Ssmf::default());
        return Ok(Box::new(Ssmf {
            kappa: given.step_power.unwrap_or(default.kappa),
            t0: given.step_offset.unwrap_or(default.t0),
            sweeps: given.sweeps.unwrap_or(default.sweeps),
            init,
            prune: given.prune,
            prune_from: given.prune_from.unwrap_or(default.prune_from),
        }));
    }
    let burn_in = args.gibbs.burn_in.unwrap_or(match args.preset {
        PresetName::Auto => BURN_IN_AFTER_SEARCH.min(iterations / 2),
        PresetName::Paper => iterations / 2,
    });
    if burn_in >= iterations {
        return Err(Failure::Request(format!(
            "--burn-in is {burn_in}: it must be below the number of iterations, {iterations}"
        )));
    }
    let expected = name == EngineName::GibbsExpected;
    Ok(Box::new(Gibbs { expected, burn_in: burn_in as u32, init }))
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
        components: args.components.unwrap_or(COMPONENTS.max(args.search.force_components.unwrap_or(0))),
    }
}

fn stop_rule(args: &ModelArgs) -> Result<Option<StopRule>, Failure> {
    let default = StopRule::default();
    let tolerance = args.tolerance.unwrap_or(default.tolerance);
    if !(0.0..1.0).contains(&tolerance) {
        let sentence = format!("--tolerance is {tolerance}: it must be at least 0 and below 1");
        return Err(Failure::Request(sentence));
    }
    Ok((!args.no_stop).then_some(StopRule { tolerance, ..default }))
}

/// Errors if the states of all chains need more memory than there is. The arrays of a run are made in many places; this
/// asks once.
fn check_memory(counts: &Counts, components: usize, chains: usize) -> Result<(), Failure> {
    // Two parameters of q or two sums in double precision, averages and states in single precision, and scratch: measured.
    const BYTES_A_SITE: usize = 44;
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
         use fewer --components{or_chains}, or --force to try it",
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
