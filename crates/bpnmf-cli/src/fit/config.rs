//! From what was typed to what can run: every flag checked, every default filled in.

use crate::args::{EngineName, FitArgs, InitName, PresetName, PriorName, SimdName};
use crate::failure::Failure;
use bpnmf::{
    CheckedPrior, Counts, Engine, Gibbs, HeldOut, Init, Prior, RunOptions, Simd, Ssmf, StopRule, Workers,
};

/// The most threads the library starts.
const MOST_THREADS: usize = 1024;

/// The most chains: above, somebody mistyped.
const MOST_CHAINS: usize = 1000;

/// A request that can run, but for the data.
pub(crate) struct Config {
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) prior: CheckedPrior,
    pub(crate) options: RunOptions,
    pub(crate) chains: usize,
    pub(crate) workers: Workers,
    pub(crate) preset: &'static str,
    pub(crate) held_out: Option<f64>,
}

impl Config {
    /// Checks what can be checked without the data.
    pub(crate) fn check(args: &FitArgs) -> Result<Self, Failure> {
        refuse_foreign_flags(args)?;
        let iterations = args.iterations.unwrap_or(match args.engine {
            EngineName::Ssmf => 200,
            EngineName::Gibbs | EngineName::GibbsExpected => 400,
        });
        if iterations == 0 || iterations > 1 << 30 {
            let sentence = format!("--iterations is {iterations}: it must be between 1 and 2^30");
            return Err(Failure::Request(sentence));
        }
        if !(1..=MOST_CHAINS).contains(&args.chains) {
            let sentence = format!("--chains is {}: it must be between 1 and {MOST_CHAINS}", args.chains);
            return Err(Failure::Request(sentence));
        }
        let options =
            RunOptions { iterations, seed: args.seed, stop: stop_rule(args)?, ..RunOptions::default() };
        Ok(Self {
            engine: engine(args, iterations)?,
            prior: prior(args).check()?,
            options,
            chains: args.chains,
            workers: workers(args.threads, args.simd)?,
            preset: match args.preset {
                PresetName::Paper => "paper",
                PresetName::Auto => "auto",
            },
            held_out: args.held_out,
        })
    }

    /// Checks the request against the data, and gives the counts to fit: what is not held out.
    pub(crate) fn meet(&mut self, counts: Counts, args: &FitArgs) -> Result<Counts, Failure> {
        self.engine.check(&counts).map_err(|error| placed(error, args))?;
        check_memory(&counts, self.prior.components(), self.chains)?;
        let Some(fraction) = self.held_out else {
            return Ok(counts);
        };
        if let Some((feature, observation, value)) = counts.first_fraction() {
            let (row, column) = in_file(feature, observation, args.transpose);
            return Err(Failure::Request(format!(
                "{}: entry ({row}, {column}) is {value}, which is not a whole number: --held-out splits counts; \
                 round the data or leave --held-out out",
                args.input.display()
            )));
        }
        let (kept, held_out) = HeldOut::split(&counts, fraction, self.options.seed)?;
        self.options.held_out = Some(held_out);
        Ok(kept)
    }
}

/// Threads and instructions.
pub(crate) fn workers(threads: Option<usize>, simd: SimdName) -> Result<Workers, Failure> {
    if let Some(threads) = threads.filter(|threads| !(1..=MOST_THREADS).contains(threads)) {
        return Err(Failure::Request(format!(
            "--threads is {threads}: it must be between 1 and {MOST_THREADS}; leave it out to use all cores"
        )));
    }
    let workers = Workers::new(threads.unwrap_or(0))?;
    Ok(workers.with_simd(match simd {
        SimdName::Auto => Simd::Auto,
        SimdName::Avx512 => Simd::Avx512,
        SimdName::Avx2 => Simd::Avx2,
        SimdName::Plain => Simd::Plain,
    }))
}

fn refuse_foreign_flags(args: &FitArgs) -> Result<(), Failure> {
    let ssmf = &args.ssmf;
    let (owner, flags) = match args.engine {
        EngineName::Ssmf => ("the Gibbs engines", vec![("--burn-in", args.gibbs.burn_in.is_some())]),
        EngineName::Gibbs | EngineName::GibbsExpected => (
            "the ssmf engine",
            vec![
                ("--sweeps", ssmf.sweeps.is_some()),
                ("--step-power", ssmf.step_power.is_some()),
                ("--step-offset", ssmf.step_offset.is_some()),
                ("--prune", ssmf.prune.is_some()),
                ("--prune-from", ssmf.prune_from.is_some()),
            ],
        ),
    };
    match flags.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::Request(format!(
            "{flag} belongs to {owner}: leave it out or choose another --engine"
        ))),
        None => Ok(()),
    }
}

fn engine(args: &FitArgs, iterations: usize) -> Result<Box<dyn Engine>, Failure> {
    let init = match args.init {
        InitName::Random => Init::Random,
        InitName::Scaled => Init::Scaled,
    };
    if args.engine == EngineName::Ssmf {
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
    let burn_in = args.gibbs.burn_in.unwrap_or(iterations / 2);
    if burn_in >= iterations {
        return Err(Failure::Request(format!(
            "--burn-in is {burn_in}: it must be below the number of iterations, {iterations}"
        )));
    }
    let expected = args.engine == EngineName::GibbsExpected;
    Ok(Box::new(Gibbs { expected, burn_in: burn_in as u32, init }))
}

fn prior(args: &FitArgs) -> Prior {
    let given = &args.prior;
    let default = match given.prior {
        PriorName::Paper => Prior::default(),
        PriorName::Authors => Prior::authors_code(),
    };
    Prior {
        a: given.a.unwrap_or(default.a),
        b: given.b.unwrap_or(default.b),
        c: given.c.unwrap_or(default.c),
        d: given.d.unwrap_or(default.d),
        a0: given.a0.unwrap_or(default.a0),
        b0: given.b0.unwrap_or(default.b0),
        components: args.components,
    }
}

fn stop_rule(args: &FitArgs) -> Result<Option<StopRule>, Failure> {
    let default = StopRule::default();
    let tolerance = args.tolerance.unwrap_or(default.tolerance);
    if !(0.0..1.0).contains(&tolerance) {
        let sentence = format!("--tolerance is {tolerance}: it must be at least 0 and below 1");
        return Err(Failure::Request(sentence));
    }
    Ok((!args.no_stop).then_some(StopRule { tolerance, ..default }))
}

/// Errors if the states of all chains cannot fit in memory. The arrays of a run are made in many places; this asks once.
fn check_memory(counts: &Counts, components: usize, chains: usize) -> Result<(), Failure> {
    // Two parameters of q in double precision, three averages or states in single precision, and scratch.
    const BYTES_A_SITE: usize = 32;
    let sites = components.saturating_mul(counts.observations().saturating_add(counts.features()));
    let bytes = sites.saturating_mul(BYTES_A_SITE).saturating_mul(chains);
    if Vec::<u8>::new().try_reserve_exact(bytes).is_ok() {
        return Ok(());
    }
    let (in_chains, or_chains) = match chains {
        1 => (String::new(), ""),
        n => (format!(" in {n} chains"), " or --chains"),
    };
    Err(Failure::Request(format!(
        "{components} components for {} features and {} observations{in_chains} need {:.1e} bytes of memory, more \
         than this machine gives: use fewer --components{or_chains}",
        counts.features(),
        counts.observations(),
        bytes as f64
    )))
}

/// Says which file an entry is in, and where the file has it.
fn placed(error: bpnmf::Error, args: &FitArgs) -> Failure {
    match error {
        bpnmf::Error::NotWhole { feature, observation, value, engine } => {
            let (feature, observation) = in_file(feature, observation, args.transpose);
            let error = bpnmf::Error::NotWhole { feature, observation, value, engine };
            Failure::Request(format!("{}: {error}", args.input.display()))
        }
        other => other.into(),
    }
}

/// (row, column) of an entry as the file has it.
fn in_file(feature: usize, observation: usize, transposed: bool) -> (usize, usize) {
    if transposed { (observation, feature) } else { (feature, observation) }
}
