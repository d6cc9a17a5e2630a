//! Wishes that mean nothing with the preset or the engine of a plan: refused, never dropped.

use super::{EngineKind, Plan, Preset, PriorWish, SsmfWish};
use crate::error::Error;

/// What to do about an option that means nothing in a plan, beside leaving it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Instead {
    /// Take this preset.
    Preset(Preset),
    /// Take another engine.
    Engine,
    /// Take the full gradient.
    FullGradient,
    /// Take the approximate gradient.
    ApproximateGradient,
}

impl core::fmt::Display for Instead {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Preset(preset) => write!(out, "use the preset {}", preset.name()),
            Self::Engine => out.write_str("choose another engine"),
            Self::FullGradient => out.write_str("take the gradient full"),
            Self::ApproximateGradient => out.write_str("take the gradient approximate"),
        }
    }
}

/// Errors if the plan has an option of the other preset.
pub(super) fn refuse_other_preset(plan: &Plan) -> Result<(), Error> {
    const LEARNED: &str = "cannot be set here, a, b, c and d are learned";
    const DECIDED: &str = "cannot be set here, the search decides the start";
    const SEARCHED: &str = "belongs to the search";
    const NOT_SEARCHED: &str = "belongs to the search, which this engine has none of";
    let PriorWish { whose, a, b, c, d, a0: _, b0: _ } = plan.prior;
    let of_paper = [
        ("a", a.is_some(), LEARNED),
        ("b", b.is_some(), LEARNED),
        ("c", c.is_some(), LEARNED),
        ("d", d.is_some(), LEARNED),
        ("prior", whose.is_some(), LEARNED),
        ("init", plan.init.is_some(), DECIDED),
    ];
    let of_search = [
        ("coarsening", plan.coarsening.is_some(), SEARCHED),
        ("forced components", plan.forced.is_some(), SEARCHED),
    ];
    match plan.preset {
        // Without a search nothing is learned, and nothing of the search means anything.
        _ if !plan.engine_kind().searches() => {
            refuse(&of_search.map(|(option, given, _)| (option, given, NOT_SEARCHED)), Instead::Engine)
        }
        Preset::Auto => refuse(&of_paper, Instead::Preset(Preset::Paper)),
        Preset::Paper => refuse(&of_search, Instead::Preset(Preset::Auto)),
    }
}

/// Errors if the plan has an option of another engine than this.
pub(super) fn refuse_other_engine(plan: &Plan, kind: EngineKind) -> Result<(), Error> {
    const GIBBS: &str = "belongs to the Gibbs engines";
    const SSMF: &str = "belongs to the ssmf engine";
    const FULL: &str = "belongs to the full gradient";
    const APPROXIMATE: &str = "belongs to the approximate gradient, the full one drops nothing";
    const WITHIN: &str = "means nothing here, the model says itself how counts scatter";
    const WEIGHTS: &str = "means nothing here, the sum of a component is one";
    let SsmfWish { kappa, t0, sweeps, prune, prune_from, full_gradient, draws } = plan.ssmf;
    let of_gibbs = [("burn-in", plan.burn_in.is_some(), GIBBS)];
    let of_ssmf = [
        ("sweeps", sweeps.is_some(), SSMF),
        ("kappa", kappa.is_some(), SSMF),
        ("t0", t0.is_some(), SSMF),
        ("prune", prune.is_some(), SSMF),
        ("prune-from", prune_from.is_some(), SSMF),
        ("gradient", full_gradient.is_some(), SSMF),
        ("draws", draws.is_some(), SSMF),
    ];
    let of_full = [("draws", draws.is_some() && full_gradient != Some(true), FULL)];
    let of_approximate = [("prune", prune.is_some() && full_gradient == Some(true), APPROXIMATE)];
    let not_of_nb = [("noise", plan.noise.is_some(), WITHIN), ("b", plan.prior.b.is_some(), WEIGHTS)];
    if kind == EngineKind::NbProcess {
        refuse(&not_of_nb, Instead::Engine)?;
    }
    if kind != EngineKind::Ssmf {
        refuse(&of_ssmf, Instead::Engine)?;
    }
    if kind == EngineKind::Ssmf {
        refuse(&of_full, Instead::FullGradient)?;
        refuse(&of_approximate, Instead::ApproximateGradient)?;
    }
    if !kind.burns_in() {
        refuse(&of_gibbs, Instead::Engine)?;
    }
    Ok(())
}

/// Errors with the first of these options that was given.
fn refuse(options: &[(&'static str, bool, &'static str)], instead: Instead) -> Result<(), Error> {
    match options.iter().find(|(_, given, _)| *given) {
        Some(&(option, _, reason)) => Err(Error::Misplaced { option, reason, instead }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;
    use crate::infer::Init;
    use crate::plan::WhosePrior;

    fn refused(plan: Plan) -> String {
        let counts = Counts::from_dense(2, 2, vec![1.0; 4]).unwrap();
        let sentence = plan.check().unwrap_err().to_string();
        assert_eq!(plan.job(&counts).err().unwrap().to_string(), sentence);
        sentence
    }

    #[test]
    fn what_the_other_preset_or_engine_alone_knows_is_refused_and_not_dropped() {
        let prior = PriorWish { b: Some(0.5), ..PriorWish::default() };
        assert_eq!(
            refused(Plan { prior, ..Plan::default() }),
            "b cannot be set here, a, b, c and d are learned: leave it out or use the preset paper"
        );
        let prior = PriorWish { whose: Some(WhosePrior::Authors), ..PriorWish::default() };
        assert!(refused(Plan { prior, ..Plan::default() }).starts_with("prior cannot be set here"));
        assert_eq!(
            refused(Plan { init: Some(Init::Random), ..Plan::default() }),
            "init cannot be set here, the search decides the start: leave it out or use the preset paper"
        );
        let paper = Plan { preset: Preset::Paper, ..Plan::default() };
        for plan in
            [Plan { forced: Some(3), ..paper.clone() }, Plan { coarsening: Some(0.5), ..paper.clone() }]
        {
            assert!(refused(plan).ends_with(" belongs to the search: leave it out or use the preset auto"));
        }
        let ssmf = SsmfWish { sweeps: Some(1), ..SsmfWish::default() };
        assert_eq!(
            refused(Plan { ssmf, ..Plan::default() }),
            "sweeps belongs to the ssmf engine: leave it out or choose another engine"
        );
        assert!(Plan { ssmf, engine: Some(EngineKind::Ssmf), ..Plan::default() }.check().is_ok());
        let burn_in = Some(2);
        assert!(refused(Plan { burn_in, ..paper }).contains("the Gibbs engines"), "its engine is ssmf");
        assert!(Plan { burn_in, ..Plan::default() }.check().is_ok());
        let nb = Plan { engine: Some(EngineKind::NbProcess), ..Plan::default() };
        assert_eq!(
            refused(Plan { forced: Some(3), ..nb.clone() }),
            "forced components belongs to the search, which this engine has none of: leave it out or choose another engine"
        );
        assert_eq!(
            refused(Plan { noise: Some(crate::Noise::Poisson), ..nb.clone() }),
            "noise means nothing here, the model says itself how counts scatter: leave it out or choose another engine"
        );
        let given = |prior: PriorWish| Plan { prior, ..nb.clone() };
        assert!(
            refused(given(PriorWish { b: Some(1.0), ..PriorWish::default() }))
                .starts_with("b means nothing here")
        );
        assert!(given(PriorWish { a: Some(1.0), c: Some(2.0), ..PriorWish::default() }).check().is_ok());
        assert!(refused(Plan { ssmf, ..nb.clone() }).contains("belongs to the ssmf engine"));
        let full = SsmfWish { full_gradient: Some(true), ..SsmfWish::default() };
        let of = |ssmf: SsmfWish| Plan { ssmf, engine: Some(EngineKind::Ssmf), ..Plan::default() };
        assert!(of(SsmfWish { draws: Some(8), ..full }).check().is_ok());
        assert_eq!(
            refused(of(SsmfWish { draws: Some(8), ..SsmfWish::default() })),
            "draws belongs to the full gradient: leave it out or take the gradient full"
        );
        assert_eq!(
            refused(of(SsmfWish { prune: Some(0.1), ..full })),
            "prune belongs to the approximate gradient, the full one drops nothing: leave it out or take the gradient approximate"
        );
        // Fractions choose another engine, whose options are others.
        let fractions = Counts::from_dense(2, 2, vec![0.5; 4]).unwrap();
        assert!(Plan { burn_in, ..Plan::default() }.job(&fractions).is_err());
    }
}
