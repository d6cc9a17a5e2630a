//! What a run needs to go on as if it had never stopped, as bytes and back. Knows nothing of files.

pub(crate) mod bytes;

use crate::counts::Counts;
use crate::diagnose::PROBES;
use crate::error::Error;
use crate::infer::{Engine, Jumped, State, Tiers};
use crate::noise::Noise;
use crate::run::{RunOptions, StopReason, TraceRow};
use crate::search::{Discovery, Dispersion, Journal, Resolution, Stage};
use bytes::{Reader, Writer};
use std::io;

/// Where a run stands after an iteration, or after a stage of its search. [`Self::write`] keeps it, [`Checkpoint::read`]
/// brings it back.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    pub(crate) engine: &'static str,
    pub(crate) seed: u64,
    pub(crate) at: At<'a>,
    pub(crate) ended: Option<StopReason>,
}

/// What there is of a run so far.
#[derive(Debug, Clone, Copy)]
pub(crate) enum At<'a> {
    Search(&'a Stage<'a>),
    Iteration { discovery: Option<&'a Discovery>, trace: &'a [TraceRow], state: &'a State },
}

impl Standing<'_> {
    /// Iterations done; 0 in a search.
    pub fn iteration(&self) -> usize {
        match self.at {
            At::Search(_) => 0,
            At::Iteration { trace, .. } => trace.len(),
        }
    }

    /// The rates of all entries in the draw at hand, sum_k W_fk H_kt S_kt, column after column: those of the counts that are
    /// sampled, without rows and columns that have none. `None` in a search.
    pub fn rates(&self) -> Option<Vec<f64>> {
        let At::Iteration { state, .. } = self.at else { return None };
        let (features, observations) = (state.dictionary.features(), state.activations.observations());
        let mut rates = vec![0.0; features * observations];
        for (t, column) in rates.chunks_mut(features.max(1)).enumerate() {
            for (k, h) in state.activations.column(t).iter() {
                let row = state.dictionary.row(k).iter();
                column.iter_mut().zip(row).for_each(|(rate, w)| *rate += f64::from(h) * f64::from(*w));
            }
        }
        Some(rates)
    }

    /// Why the run ends here; `None` if it goes on.
    pub fn ended(&self) -> Option<StopReason> {
        self.ended
    }

    /// Writes all that [`crate::run_from`] needs: at most about 28 K T + 24 K F + 200 n + 12 s bytes for K slots, T columns, F
    /// features, n iterations and s entries that scatter or are missing beside others that scatter; in a search 32 K T + 16 K F. It reads what is there and needs no memory of its own.
    pub fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut out = Writer::new(out);
        out.text(self.engine)?;
        out.u64(self.seed)?;
        match self.at {
            At::Search(stage) => {
                out.some(false)?;
                stage.write(&mut out)
            }
            At::Iteration { discovery, trace, state } => {
                out.some(true)?;
                out.some(discovery.is_some())?;
                if let Some(discovery) = discovery {
                    write_discovery(&mut out, discovery)?;
                }
                out.length(trace.len())?;
                trace.iter().try_for_each(|row| write_row(&mut out, row))?;
                state.write(&mut out)
            }
        }
    }
}

/// A run that was stopped, ready to go on with [`crate::run_from`].
#[derive(Debug, Clone)]
pub struct Checkpoint {
    engine: String,
    seed: u64,
    pub(crate) past: Past,
}

/// What there was of it.
#[derive(Debug, Clone)]
pub(crate) enum Past {
    Search(Journal),
    Iterations { discovery: Option<Discovery>, trace: Vec<TraceRow>, state: Box<State> },
}

impl Checkpoint {
    /// The first bytes of a file that holds one.
    pub const MAGIC: [u8; 8] = *b"BPNMFCKP";

    /// The number of the layout of what [`Standing::write`] writes: another one is not read. It goes up whenever a byte of it
    /// means something else.
    pub const FORMAT: u64 = 3;

    /// Reads what [`Standing::write`] wrote. Errors if the bytes are anything else.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let mut from = Reader::new(bytes);
        let engine = from.text()?;
        let seed = from.u64()?;
        let past = if from.some()? {
            let discovery = from.some()?.then(|| read_discovery(&mut from)).transpose()?;
            // The length is not to be trusted: rows come one by one.
            let rows = from.length()?;
            let mut trace = Vec::new();
            for _ in 0..rows {
                trace.push(read_row(&mut from)?);
            }
            Past::Iterations { discovery, trace, state: Box::new(State::read(&mut from)?) }
        } else {
            Past::Search(Journal::read(&mut from)?)
        };
        from.end()?;
        Ok(Self { engine, seed, past })
    }

    /// Iterations done; 0 in a search.
    pub fn iteration(&self) -> usize {
        match &self.past {
            Past::Search(_) => 0,
            Past::Iterations { trace, .. } => trace.len(),
        }
    }

    /// Errors unless it is of a run like this one.
    pub(crate) fn check(
        &self,
        engine: &dyn Engine,
        counts: &Counts,
        options: &RunOptions,
    ) -> Result<(), Error> {
        let bad = |reason: String| Err(Error::BadCheckpoint { reason });
        if self.engine != engine.name() {
            return bad(format!("it is of the engine {}, not of {}", self.engine, engine.name()));
        }
        if self.seed != options.seed {
            return bad(format!("its seed is {}, not {}", self.seed, options.seed));
        }
        let searches = options.search.is_some() && counts.nonzeros() > 0;
        let (discovery, trace, state) = match &self.past {
            Past::Search(_) if !searches => return bad("it is in a search, and the run has none".to_owned()),
            Past::Search(journal) => return journal.check(counts.features(), counts.observations()),
            Past::Iterations { discovery, trace, state } => (discovery, trace, state),
        };
        let shape = (state.dictionary.features(), state.activations.observations());
        if shape != (counts.features(), counts.observations()) {
            return bad(format!(
                "it is of {} features x {} observations, not of {} x {}",
                shape.0,
                shape.1,
                counts.features(),
                counts.observations()
            ));
        }
        let noise = discovery.as_ref().map_or(engine.noise(), |discovery| discovery.noise);
        if engine.scatters() && state.noise() != noise {
            let said = |noise: Noise| match noise.alpha() {
                Some(alpha) => format!("alpha = {alpha}"),
                None => "Poisson noise".to_owned(),
            };
            return bad(format!("it is of counts with {}, not with {}", said(state.noise()), said(noise)));
        }
        if trace.is_empty() || trace.len() > options.iterations {
            return bad(format!("it has {} of {} iterations", trace.len(), options.iterations));
        }
        if state.iteration as usize != trace.len() {
            return bad(format!("{} rows for {} iterations", trace.len(), state.iteration));
        }
        if discovery.is_some() != searches {
            return bad("one of it and the run began with a search, the other did not".to_owned());
        }
        Ok(())
    }
}

// Everything is taken apart by all its fields: one that is added later cannot be forgotten here.

fn write_discovery(out: &mut Writer<'_>, discovery: &Discovery) -> io::Result<()> {
    let Discovery { coarsening, factor, dispersion, noise, prior, path, forced, rank, range, seconds } =
        discovery;
    let Dispersion { small, all } = dispersion;
    out.f64(*coarsening)?;
    out.option(*factor)?;
    out.option(*small)?;
    out.option(*all)?;
    out.option(noise.alpha())?;
    out.prior(prior)?;
    out.length(path.len())?;
    for Resolution { coarsening, components } in path {
        out.f64(*coarsening)?;
        out.length(*components)?;
    }
    out.some(forced.is_some())?;
    out.length(forced.unwrap_or(0))?;
    out.length(*rank)?;
    let (low, high) = range.unwrap_or((0, 0));
    out.some(range.is_some())?;
    out.length(low)?;
    out.length(high)?;
    out.f64(*seconds)
}

fn read_discovery(from: &mut Reader<'_>) -> Result<Discovery, Error> {
    let (coarsening, factor) = (from.f64()?, from.option()?);
    let dispersion = Dispersion { small: from.option()?, all: from.option()? };
    let noise = from.option()?.map_or(Noise::Poisson, |alpha| Noise::Scattered { alpha });
    let noise = noise.check().map_err(|_| bytes::bad("an alpha out of its range"))?;
    let prior = from.prior()?;
    let resolutions = from.length()?;
    let mut path = Vec::new();
    for _ in 0..resolutions {
        path.push(Resolution { coarsening: from.f64()?, components: from.length()? });
    }
    let (forced, wanted, rank) = (from.some()?, from.length()?, from.length()?);
    let (ranged, low, high) = (from.some()?, from.length()?, from.length()?);
    let range = ranged.then_some((low, high));
    let seconds = from.f64()?;
    if !(coarsening > 0.0 && coarsening <= 1.0) {
        return Err(bytes::bad("a coarsening out of its range"));
    }
    if factor.is_some_and(|factor| !(factor >= 1.0 && factor.is_finite())) {
        return Err(bytes::bad("a factor of the variance out of its range"));
    }
    let forced = forced.then_some(wanted);
    Ok(Discovery { coarsening, factor, dispersion, noise, prior, path, forced, rank, range, seconds })
}

fn write_row(out: &mut Writer<'_>, row: &TraceRow) -> io::Result<()> {
    let TraceRow {
        iteration,
        active,
        on_anywhere,
        sites_on,
        log_likelihood,
        log_joint,
        activation,
        reconstruction,
        held_out,
        tiers,
        jumped,
        seconds,
    } = row;
    let Jumped { births, births_accepted, deaths, deaths_accepted } = jumped;
    let Tiers { h_free, linear, jensen, moments, logarithms, exact, forced, flips } = tiers;
    [iteration, active, on_anywhere].into_iter().try_for_each(|number| out.length(*number))?;
    out.u64(*sites_on)?;
    [log_likelihood, log_joint, activation].into_iter().try_for_each(|number| out.f64(*number))?;
    reconstruction.iter().try_for_each(|number| out.f64(*number))?;
    out.option(*held_out)?;
    let decided = [h_free, linear, jensen, moments, logarithms, exact, forced, flips];
    decided.into_iter().try_for_each(|number| out.u64(*number))?;
    let tries = [births, births_accepted, deaths, deaths_accepted];
    tries.into_iter().try_for_each(|number| out.u64(u64::from(*number)))?;
    out.f64(*seconds)
}

fn read_row(from: &mut Reader<'_>) -> Result<TraceRow, Error> {
    let (iteration, active, on_anywhere) = (from.length()?, from.length()?, from.length()?);
    let sites_on = from.u64()?;
    let (log_likelihood, log_joint, activation) = (from.f64()?, from.f64()?, from.f64()?);
    let mut reconstruction = [0.0; PROBES];
    for number in &mut reconstruction {
        *number = from.f64()?;
    }
    Ok(TraceRow {
        iteration,
        active,
        on_anywhere,
        sites_on,
        log_likelihood,
        log_joint,
        activation,
        reconstruction,
        held_out: from.option()?,
        tiers: Tiers {
            h_free: from.u64()?,
            linear: from.u64()?,
            jensen: from.u64()?,
            moments: from.u64()?,
            logarithms: from.u64()?,
            exact: from.u64()?,
            forced: from.u64()?,
            flips: from.u64()?,
        },
        jumped: Jumped {
            births: read_tries(from)?,
            births_accepted: read_tries(from)?,
            deaths: read_tries(from)?,
            deaths_accepted: read_tries(from)?,
        },
        seconds: from.f64()?,
    })
}

fn read_tries(from: &mut Reader<'_>) -> Result<u32, Error> {
    u32::try_from(from.u64()?).map_err(|_| bytes::bad("too many tries"))
}

#[cfg(test)]
mod tests;
