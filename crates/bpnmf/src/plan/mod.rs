//! What somebody wishes, and all that is checked about it and filled in, in one place for every front end: refusals, defaults,
//! chains, what is held out. What comes out is a [`Job`], which can run.

mod engines;
mod misplaced;

use crate::counts::Counts;
use crate::diagnose::{HeldOut, StopRule};
use crate::error::Error;
use crate::infer::{Engine, Gibbs, Gradient, Init, Jumps, Map, NbProcess, Ssmf};
use crate::job::Job;
use crate::noise::Noise;
use crate::prior::{CheckedPrior, ComponentsPrior, Prior};
use crate::run::RunOptions;
use crate::search::Search;
pub use engines::{EngineKind, Preset};
pub use misplaced::Instead;
use misplaced::{refuse_other_engine, refuse_other_preset};
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

/// Whose numbers stand in for those of the prior that are not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhosePrior {
    /// [`Prior::default`].
    Paper,
    /// [`Prior::authors_code`].
    Authors,
}

/// The prior somebody wants; with a search a, b, c and d are learned, and only the other two can be given.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PriorWish {
    /// Whose numbers stand in for what is not given. `None`: the paper's.
    pub whose: Option<WhosePrior>,
    /// See [`Prior::a`].
    pub a: Option<f64>,
    /// See [`Prior::b`].
    pub b: Option<f64>,
    /// See [`Prior::c`].
    pub c: Option<f64>,
    /// See [`Prior::d`].
    pub d: Option<f64>,
    /// See [`Prior::a0`].
    pub a0: Option<f64>,
    /// See [`Prior::b0`].
    pub b0: Option<f64>,
}

impl PriorWish {
    /// The prior with what is given, K and the prior of the number as they are by default.
    ///
    /// ```
    /// use bpnmf::{Prior, PriorWish, WhosePrior};
    /// let wish = PriorWish { whose: Some(WhosePrior::Authors), b: Some(2.0), ..Default::default() };
    /// assert_eq!(wish.filled_in(), Prior { b: 2.0, ..Prior::authors_code() });
    /// ```
    pub fn filled_in(self) -> Prior {
        let Self { whose, a, b, c, d, a0, b0 } = self;
        let default = match whose {
            None | Some(WhosePrior::Paper) => Prior::default(),
            Some(WhosePrior::Authors) => Prior::authors_code(),
        };
        Prior {
            a: a.unwrap_or(default.a),
            b: b.unwrap_or(default.b),
            c: c.unwrap_or(default.c),
            d: d.unwrap_or(default.d),
            a0: a0.unwrap_or(default.a0),
            b0: b0.unwrap_or(default.b0),
            ..default
        }
    }
}

/// What somebody wants of [`Ssmf`]; what is `None` is as [`Ssmf::default`] has it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SsmfWish {
    /// See [`Ssmf::kappa`].
    pub kappa: Option<f64>,
    /// See [`Ssmf::t0`].
    pub t0: Option<f64>,
    /// See [`Ssmf::sweeps`].
    pub sweeps: Option<u32>,
    /// See [`Ssmf::prune`].
    pub prune: Option<f64>,
    /// See [`Ssmf::prune_from`].
    pub prune_from: Option<u32>,
    /// Whether to step along the full gradient, see [`Gradient::Full`]: after a search at once, else in the second half of the
    /// iterations, with 4 draws, 3 sweeps and steps of (10 + i)^-0.7 unless told otherwise. `None` for the approximate one.
    pub full_gradient: Option<bool>,
    /// See [`Gradient::Full`].
    pub draws: Option<u32>,
}

/// What somebody wants; what is `None` is left to the preset. An option that means nothing with the preset or the engine is
/// refused, not dropped.
///
/// ```
/// use bpnmf::*;
/// let counts = Recipe { features: 10, observations: 20, ..Default::default() }.draw(3)?.counts;
/// let (job, _) = Plan { seed: 1, ..Default::default() }.job(&counts)?;
/// assert_eq!((job.engine.name(), job.prior.components(), job.options.iterations), ("gibbs", 500, 120));
/// assert!(Plan { prior: PriorWish { a: Some(0.5), ..Default::default() }, ..Default::default() }.check().is_err());
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
    /// `components_prior` is given; else 200 for SSMF and
    /// the mean field, 400 for the Gibbs engines.
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
    /// The share of the counts that is held out, to score every iteration on; only of whole counts. `None` for nothing.
    pub held_out: Option<f64>,
    /// The prior but for K, which is `components`, and the prior of the number, which is `components_prior`.
    pub prior: PriorWish,
    /// The prior of the number of components, which the chains then sample by [`Jumps`]. `None`: the beta process prior, without
    /// jumps. Only for Gibbs.
    pub components_prior: Option<ComponentsPrior>,
    /// Where a run without a search starts. `None`: [`Init::Random`].
    pub init: Option<Init>,
    /// What only SSMF has.
    pub ssmf: SsmfWish,
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
            held_out: None,
            prior: PriorWish::default(),
            components_prior: None,
            init: None,
            ssmf: SsmfWish::default(),
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

    /// Checks all that can be checked without the data.
    pub fn check(&self) -> Result<(), Error> {
        self.refuse_misplaced()?;
        self.checked_for(self.engine_kind(), None).map(drop)
    }

    /// Checks the plan against the data and fills it in, and holds counts out if the plan says so: what is left to fit comes
    /// with the job.
    pub fn job(&self, counts: &Counts) -> Result<(Job, Option<Counts>), Error> {
        self.refuse_misplaced()?;
        let (engine, prior, mut options) = self.checked_for(self.engine_kind_for(counts), Some(counts))?;
        engine.check(counts)?;
        let split = self.held_out.map(|fraction| HeldOut::split(counts, fraction, self.seed)).transpose()?;
        let (kept, held_out) = split.unzip();
        options.held_out = held_out;
        Ok((Job { plan: self.clone(), engine, prior, options, chains: self.chains_for(counts)? }, kept))
    }

    fn refuse_misplaced(&self) -> Result<(), Error> {
        refuse_other_preset(self)?;
        refuse_other_engine(self, self.engine_kind())
    }

    /// How many chains to run, at most.
    fn most_chains(&self) -> Result<usize, Error> {
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
    fn chains_for(&self, counts: &Counts) -> Result<usize, Error> {
        let chains = self.most_chains()?;
        let fewer = self.chains.is_none() && counts.nonzeros() > MANY_ENTRIES;
        Ok(if fewer { chains.min(CHAINS_OF_MANY_ENTRIES) } else { chains })
    }

    /// The engine, the prior and the options of a plan that suits this engine. Without counts, with the most iterations that
    /// there can be.
    fn checked_for(
        &self,
        kind: EngineKind,
        counts: Option<&Counts>,
    ) -> Result<(Box<dyn Engine + Send>, CheckedPrior, RunOptions), Error> {
        refuse_other_engine(self, kind)?;
        if self.until_sure && self.forced.is_some() {
            return Err(Error::SureOfForced);
        }
        let iterations = self.iterations(kind, counts)?;
        let components = self.components.unwrap_or(COMPONENTS.max(self.forced.unwrap_or(0)));
        let number = self.components_prior.unwrap_or_default();
        let prior = Prior { components, number, ..self.prior.filled_in() }.check()?;
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
        if let Some(value) = self.held_out.filter(|share| !(*share > 0.0 && *share < 1.0)) {
            return Err(Error::BadOption { name: "held-out fraction", value, range: "between 0 and 1" });
        }
        self.noise.map_or(Ok(Noise::Poisson), Noise::check)?;
        let options = RunOptions {
            iterations,
            seed: self.seed,
            // A chain that stays at a number for a while may leave it.
            stop: self.stop.filter(|_| self.components_prior.is_none()),
            held_out: None,
            search: if kind.searches() { self.search()? } else { None },
        };
        self.most_chains()?;
        Ok((self.engine_of(kind, iterations)?, prior, options))
    }

    /// Without counts, the most that there can be.
    fn iterations(&self, kind: EngineKind, counts: Option<&Counts>) -> Result<usize, Error> {
        let iterations = self.iterations.unwrap_or(match (self.preset, kind) {
            (_, EngineKind::NbProcess) => 400,
            (Preset::Auto, _) => {
                let (least, most) = ITERATIONS_AFTER_SEARCH;
                let iterations = (COUNTS_GIVEN_OUT / counts.map_or(0.0, Counts::total)).clamp(least, most);
                iterations as usize * if self.components_prior.is_some() { ITERATIONS_TO_JUMP } else { 1 }
            }
            (Preset::Paper, EngineKind::Ssmf | EngineKind::Map) => 200,
            (Preset::Paper, _) => 400,
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

    /// Whether the ssmf engine is to step along the full gradient.
    fn wants_full_gradient(&self) -> bool {
        self.ssmf.full_gradient == Some(true)
    }

    fn engine_of(&self, kind: EngineKind, iterations: usize) -> Result<Box<dyn Engine + Send>, Error> {
        let (noise, init) = (self.noise.unwrap_or_default(), self.init.unwrap_or_default());
        if kind == EngineKind::Ssmf {
            let SsmfWish { kappa, t0, sweeps, prune, prune_from, full_gradient: _, draws } = self.ssmf;
            let full = self.wants_full_gradient();
            let from = if self.preset == Preset::Auto { 0 } else { iterations as u32 / 2 };
            let default = if full {
                let gradient = Gradient::Full { draws: draws.unwrap_or(4), from };
                Ssmf { kappa: 0.7, t0: 10.0, sweeps: 3, gradient, ..Ssmf::default() }
            } else {
                Ssmf::default()
            };
            return Ok(Box::new(Ssmf {
                kappa: kappa.unwrap_or(default.kappa),
                t0: t0.unwrap_or(default.t0),
                sweeps: sweeps.unwrap_or(default.sweeps),
                init,
                prune,
                prune_from: prune_from.unwrap_or(default.prune_from),
                noise,
                gradient: default.gradient,
            }));
        }
        if kind == EngineKind::Map {
            return Ok(Box::new(Map { init, noise }));
        }
        let burn_in = self.burn_in.unwrap_or(match self.preset {
            Preset::Auto if kind.searches() => iterations / BURN_IN_AFTER_SEARCH,
            _ => iterations / 2,
        });
        if burn_in >= iterations {
            return Err(Error::BadBurnIn { burn_in, iterations });
        }
        if kind == EngineKind::NbProcess {
            return Ok(Box::new(NbProcess { burn_in: burn_in as u32, init }));
        }
        let expected = kind == EngineKind::GibbsExpected;
        Ok(Box::new(Gibbs {
            expected,
            burn_in: burn_in as u32,
            init,
            noise,
            jumps: self.components_prior.map(|_| Jumps::default()),
        }))
    }
}

#[cfg(test)]
mod tests;
