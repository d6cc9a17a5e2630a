//! From wishes to what can run: presets, engines and their defaults, in one place for every front end. It knows no data
//! but to ask whether the counts are whole.

use crate::counts::Counts;
use crate::diagnose::StopRule;
use crate::error::Error;
use crate::infer::{Engine, Gibbs, Init, Jumps, Ssmf};
use crate::noise::Noise;
use crate::prior::{CheckedPrior, ComponentsPrior, Prior};
use crate::run::RunOptions;
use crate::search::Search;
use std::time::Duration;

/// The most parts that can be forced: above, somebody mistyped.
const MOST_FORCED: usize = 10_000;

/// The most parts unless told otherwise.
const COMPONENTS: usize = 500;

/// With a search before it a run is short: it starts where it should end, and the search ends with sweeps of its own.
const ITERATIONS_AFTER_SEARCH: (f64, f64) = (40.0, 120.0);

/// Counts that these iterations may give out: weak data need many to make up their mind, and there they are cheap.
const COUNTS_GIVEN_OUT: f64 = 1e7;

/// So many times as many where the number of components is sampled: a jump is tried every few dozen iterations.
const ITERATIONS_TO_JUMP: usize = 20;

/// Of the iterations after a search, one in so many is burn-in.
const BURN_IN_AFTER_SEARCH: usize = 5;

/// Chains after a search: as many as take less than twice the time of one on two cores. The paper's algorithm keeps copies
/// of components and is slow; one chain of it is enough to look at.
const CHAINS: usize = 4;

/// With more positive entries than this one chain keeps two threads busy, and only so many take less than twice its time.
const MANY_ENTRIES: usize = 200_000;
const CHAINS_OF_MANY_ENTRIES: usize = 2;

/// The most chains: above, somebody mistyped.
const MOST_CHAINS: usize = 1000;

/// How the number of parts is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preset {
    /// A search comes first: for the parts that the evidence wants, and for the prior.
    #[default]
    Auto,
    /// As the paper prints it: no search, the prior as it is given.
    Paper,
}

impl Preset {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Paper => "paper",
        }
    }
}

/// The engines by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// [`Ssmf`].
    Ssmf,
    /// [`Gibbs`], exact; needs whole counts.
    Gibbs,
    /// [`Gibbs`] with expected counts.
    GibbsExpected,
}

/// What somebody wants; what is `None` is left to the preset.
///
/// ```
/// use bpnmf::*;
/// let counts = Recipe { features: 10, observations: 20, ..Default::default() }.draw(3)?.counts;
/// let Settings { engine, prior, options } = Plan { seed: 1, ..Default::default() }.settings_for(&counts)?;
/// assert_eq!((engine.name(), prior.components(), options.iterations), ("gibbs", 500, 120));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// How the number of parts is found.
    pub preset: Preset,
    /// `None`: Gibbs, or SSMF if the data have fractions; with the paper's preset SSMF.
    pub engine: Option<EngineKind>,
    /// The most parts. `None`: 500, and with a search more if there are more.
    pub components: Option<usize>,
    /// Exactly this many parts.
    pub forced: Option<usize>,
    /// See [`Search::coarsening`].
    pub coarsening: Option<f64>,
    /// How counts scatter about their rates. `None`: learned by the search; Poisson without one.
    pub noise: Option<Noise>,
    /// The most iterations. `None`: 40 after a search, up to 120 for data with few counts, and 20 times as many if
    /// `components_prior` is given; else 200 for SSMF, 400 for the
    /// Gibbs engines.
    pub iterations: Option<usize>,
    /// Iterations before states are averaged, for the Gibbs engines. `None`: a fifth after a search, else half of
    /// them.
    pub burn_in: Option<usize>,
    /// Runs from starts of their own. `None`: 4, and 2 of data with more than 200,000 positive entries; with the paper's preset
    /// 1.
    pub chains: Option<usize>,
    /// Whether to make more of them [until they are sure](crate::run_until_sure).
    pub until_sure: bool,
    /// The seed of every random number.
    pub seed: u64,
    /// When to stop before the last iteration; `None` for never, as with `components_prior`.
    pub stop: Option<StopRule>,
    /// The prior; K is not read from it but from `components`, and the prior of the number from `components_prior`.
    pub prior: Prior,
    /// The prior of the number of components, which the chains then sample by [`Jumps`]. `None`: the beta process prior, without
    /// jumps. Only for Gibbs.
    pub components_prior: Option<ComponentsPrior>,
    /// Where a run without a search starts.
    pub init: Init,
    /// SSMF, but for where it starts and the noise.
    pub ssmf: Ssmf,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            preset: Preset::Auto,
            engine: None,
            components: None,
            forced: None,
            coarsening: None,
            noise: None,
            iterations: None,
            burn_in: None,
            chains: None,
            until_sure: false,
            seed: 0,
            stop: Some(StopRule::default()),
            prior: Prior::default(),
            components_prior: None,
            init: Init::Random,
            ssmf: Ssmf::default(),
        }
    }
}

/// The time that a text says: `60s`, `5m`, `2h`, or a number of seconds.
///
/// ```
/// use bpnmf::time_of;
/// use std::time::Duration;
/// assert_eq!(time_of("1.5m")?, Duration::from_secs(90));
/// assert_eq!(time_of("60")?, time_of("60s")?);
/// assert!(time_of("soon").is_err() && time_of("0s").is_err() && time_of("-3m").is_err());
/// # Ok::<(), bpnmf::Error>(())
/// ```
pub fn time_of(text: &str) -> Result<Duration, Error> {
    let trimmed = text.trim();
    let (number, unit) = match trimmed.char_indices().last() {
        Some((at, 's')) => (&trimmed[..at], 1.0),
        Some((at, 'm')) => (&trimmed[..at], 60.0),
        Some((at, 'h')) => (&trimmed[..at], 3600.0),
        _ => (trimmed, 1.0),
    };
    let seconds = number.trim().parse::<f64>().ok().map(|number| unit * number);
    // A hundred years are for ever.
    let time = seconds.filter(|&seconds| seconds > 0.0 && seconds < 3.2e9).map(Duration::from_secs_f64);
    time.filter(|time| !time.is_zero()).ok_or_else(|| Error::BadTime { text: text.to_owned() })
}

/// A plan that can run.
pub struct Settings {
    /// The engine.
    pub engine: Box<dyn Engine + Send>,
    /// The prior.
    pub prior: CheckedPrior,
    /// The rest.
    pub options: RunOptions,
}

impl Plan {
    /// The engine that was asked for, or the preset's.
    pub fn engine_kind(&self) -> EngineKind {
        self.engine.unwrap_or(match self.preset {
            Preset::Auto => EngineKind::Gibbs,
            Preset::Paper => EngineKind::Ssmf,
        })
    }

    /// The same, but that an engine nobody chose gives way to one that can work on fractions.
    pub fn engine_kind_for(&self, counts: &Counts) -> EngineKind {
        let fractions = || counts.first_fraction().is_some();
        match self.engine_kind() {
            EngineKind::Gibbs if self.engine.is_none() && fractions() => EngineKind::Ssmf,
            kind => kind,
        }
    }

    /// How many chains to run, at most.
    ///
    /// ```
    /// use bpnmf::{Plan, Preset};
    /// assert_eq!(Plan::default().chains()?, 4);
    /// assert_eq!(Plan { preset: Preset::Paper, ..Default::default() }.chains()?, 1);
    /// assert!(Plan { chains: Some(0), ..Default::default() }.chains().is_err());
    /// # Ok::<(), bpnmf::Error>(())
    /// ```
    pub fn chains(&self) -> Result<usize, Error> {
        let chains = self.chains.unwrap_or(match self.preset {
            Preset::Auto => CHAINS,
            Preset::Paper => 1,
        });
        if !(1..=MOST_CHAINS).contains(&chains) {
            let value = chains as f64;
            return Err(Error::BadOption { name: "chains", value, range: "between 1 and 1000" });
        }
        Ok(chains)
    }

    /// How many chains to run on these data: two of large ones, unless a number was asked for.
    ///
    /// ```
    /// use bpnmf::{Counts, Plan};
    /// let small = Counts::from_dense(2, 3, vec![1.0; 6])?;
    /// let large = Counts::from_dense(500, 500, vec![1.0; 250_000])?;
    /// assert_eq!((Plan::default().chains_for(&small)?, Plan::default().chains_for(&large)?), (4, 2));
    /// assert_eq!(Plan { chains: Some(5), ..Default::default() }.chains_for(&large)?, 5);
    /// # Ok::<(), bpnmf::Error>(())
    /// ```
    pub fn chains_for(&self, counts: &Counts) -> Result<usize, Error> {
        let chains = self.chains()?;
        let fewer = self.chains.is_none() && counts.nonzeros() > MANY_ENTRIES;
        Ok(if fewer { chains.min(CHAINS_OF_MANY_ENTRIES) } else { chains })
    }

    /// Checks all that can be checked without the data.
    pub fn settings(&self) -> Result<Settings, Error> {
        self.settings_of(self.engine_kind(), None)
    }

    /// Checks the plan against the data.
    pub fn settings_for(&self, counts: &Counts) -> Result<Settings, Error> {
        let settings = self.settings_of(self.engine_kind_for(counts), Some(counts))?;
        settings.engine.check(counts)?;
        Ok(settings)
    }

    fn settings_of(&self, kind: EngineKind, counts: Option<&Counts>) -> Result<Settings, Error> {
        if self.until_sure && self.forced.is_some() {
            return Err(Error::SureOfForced);
        }
        let iterations = self.iterations(kind, counts)?;
        let components = self.components.unwrap_or(COMPONENTS.max(self.forced.unwrap_or(0)));
        let number = self.components_prior.unwrap_or_default();
        let prior = Prior { components, number, ..self.prior }.check()?;
        if self.components_prior.is_some() {
            let reason = match (kind, self.forced) {
                (EngineKind::Gibbs, None) => None,
                (EngineKind::Gibbs, Some(_)) => Some("a number that is forced has none"),
                _ => Some("only the engine gibbs samples the number of components"),
            };
            if let Some(reason) = reason {
                return Err(Error::NoComponentsPrior { reason });
            }
        }
        if let Some(StopRule { tolerance: value, .. }) = self.stop
            && !(0.0..1.0).contains(&value)
        {
            return Err(Error::BadOption { name: "tolerance", value, range: "at least 0 and below 1" });
        }
        self.noise.map_or(Ok(Noise::Poisson), Noise::check)?;
        let options = RunOptions {
            iterations,
            seed: self.seed,
            // A chain that stays at a number for a while may leave it.
            stop: self.stop.filter(|_| self.components_prior.is_none()),
            held_out: None,
            search: self.search()?,
        };
        Ok(Settings { engine: self.engine_of(kind, iterations)?, prior, options })
    }

    /// Without counts, the least that there will be.
    fn iterations(&self, kind: EngineKind, counts: Option<&Counts>) -> Result<usize, Error> {
        let iterations = self.iterations.unwrap_or(match (self.preset, kind) {
            (Preset::Auto, _) => {
                let (least, most) = ITERATIONS_AFTER_SEARCH;
                let iterations =
                    (COUNTS_GIVEN_OUT / counts.map_or(f64::INFINITY, Counts::total)).clamp(least, most);
                iterations as usize * if self.components_prior.is_some() { ITERATIONS_TO_JUMP } else { 1 }
            }
            (Preset::Paper, EngineKind::Ssmf) => 200,
            (Preset::Paper, EngineKind::Gibbs | EngineKind::GibbsExpected) => 400,
        });
        if iterations == 0 || iterations > 1 << 30 {
            let value = iterations as f64;
            return Err(Error::BadOption { name: "iterations", value, range: "between 1 and 2^30" });
        }
        Ok(iterations)
    }

    /// The search before the run, if the preset has one.
    fn search(&self) -> Result<Option<Search>, Error> {
        if self.preset == Preset::Paper {
            return Ok(None);
        }
        if let Some(value) = self.coarsening.filter(|power| !(*power > 0.0 && *power <= 1.0)) {
            return Err(Error::BadOption { name: "coarsening", value, range: "above 0 and at most 1" });
        }
        let most = self.components.unwrap_or(MOST_FORCED);
        if let Some(wanted) = self.forced.filter(|wanted| !(1..=most).contains(wanted)) {
            return Err(Error::BadForced { wanted, most, limited: self.components.is_some() });
        }
        let grows = self.components.is_none();
        let (coarsening, components, noise) = (self.coarsening, self.forced, self.noise);
        Ok(Some(Search { coarsening, components, grows, noise, ..Search::default() }))
    }

    fn engine_of(&self, kind: EngineKind, iterations: usize) -> Result<Box<dyn Engine + Send>, Error> {
        let noise = self.noise.unwrap_or_default();
        if kind == EngineKind::Ssmf {
            return Ok(Box::new(Ssmf { init: self.init, noise, ..self.ssmf }));
        }
        let burn_in = self.burn_in.unwrap_or(match self.preset {
            Preset::Auto => iterations / BURN_IN_AFTER_SEARCH,
            Preset::Paper => iterations / 2,
        });
        if burn_in >= iterations {
            return Err(Error::BadBurnIn { burn_in, iterations });
        }
        let expected = kind == EngineKind::GibbsExpected;
        Ok(Box::new(Gibbs {
            expected,
            burn_in: burn_in as u32,
            init: self.init,
            noise,
            jumps: self.components_prior.map(|_| Jumps::default()),
        }))
    }
}
