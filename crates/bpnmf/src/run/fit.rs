//! What a run leaves behind.

use super::{StopReason, TraceRow};
use crate::infer::State;
use crate::noise::Noise;
use crate::posterior::Posterior;
use crate::search::{Discovery, Resolution, SMALLEST_BULK};

/// What a run leaves behind.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Fit {
    /// The components.
    pub posterior: Posterior,
    /// One row an iteration.
    pub trace: Vec<TraceRow>,
    /// The rows at the beginning of the trace that say nothing about the result yet, see [`crate::Engine::burn_in`].
    pub burn_in: usize,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// Seconds it took.
    pub seconds: f64,
    /// The state at the end.
    pub state: State,
    /// What the search before it found, if there was one.
    pub discovery: Option<Discovery>,
}

impl Fit {
    /// How counts scatter about their rates: as the search found it, or as the engine was told.
    pub fn noise(&self) -> Noise {
        self.state.noise()
    }

    /// The same for people, in one sentence; `None` for data that were read more coarsely than they are, or are too smooth to
    /// be counts and were read as they are.
    pub fn noise_sentence(&self) -> Option<String> {
        let Some(discovery) = &self.discovery else { return Some(self.noise().sentence()) };
        if let Some(factor) = discovery.factor {
            return Some(format!(
                "Counts scatter with {factor:.1} times the variance of Poisson counts, whatever their rates."
            ));
        }
        let small = self.posterior.features.min(self.posterior.observations) < SMALLEST_BULK;
        match self.noise() {
            _ if discovery.coarsening < 1.0 => None,
            Noise::Poisson if small && !discovery.dispersion.is_smooth() => Some(format!(
                "Counts are read as Poisson counts: with fewer than {SMALLEST_BULK} rows or columns nobody can tell whether they \
                 scatter more."
            )),
            noise if !discovery.dispersion.is_smooth() => Some(noise.sentence()),
            Noise::Poisson => None,
            Noise::Scattered { alpha } => Some(format!(
                "The data are too smooth to be counts: no entry is read as if it were known to better than {:.0} % \
                 (alpha = {alpha:.0}).",
                100.0 / alpha.sqrt()
            )),
        }
    }

    /// The rows of the trace that count: those after the burn-in.
    pub fn kept(&self) -> &[TraceRow] {
        &self.trace[self.burn_in.min(self.trace.len())..]
    }

    /// Whether the number of components was given, not found.
    pub fn forced(&self) -> bool {
        self.discovery.as_ref().is_some_and(|discovery| discovery.forced.is_some())
    }

    /// The number of components in every row of the trace.
    ///
    /// Evidence is asked of the averages, not of single rows, so a row says how far the number has moved: all rows are
    /// shifted such that the median of those after the burn-in is [`Posterior::components`], the number that counts.
    pub fn numbers(&self) -> Vec<usize> {
        let found = self.posterior.components();
        if self.forced() || self.stop_reason == StopReason::NoCounts {
            return vec![found; self.trace.len()];
        }
        let mut active: Vec<usize> = self.kept().iter().map(|row| row.active).collect();
        active.sort_unstable();
        let median = active.get(active.len().saturating_sub(1) / 2).copied().unwrap_or(0);
        let shifted = |row: &TraceRow| (found + row.active).saturating_sub(median).max(found.min(1));
        self.trace.iter().map(shifted).collect()
    }

    /// The number of components when the data are read more coarsely, coarsest first; the last one is
    /// [`Posterior::components`]. Empty without a search, and if the number was given.
    pub fn resolution_path(&self) -> Vec<Resolution> {
        let Some(discovery) = self.discovery.as_ref().filter(|discovery| discovery.forced.is_none()) else {
            return Vec::new();
        };
        let mut path = discovery.path.clone();
        if let Some(last) = path.last_mut() {
            last.components = self.posterior.components();
        }
        path
    }
}
