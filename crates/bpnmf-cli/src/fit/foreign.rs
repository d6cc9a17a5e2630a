//! Flags that belong to another engine or another preset: refused with a sentence, never ignored.

use crate::args::{ModelArgs, PresetName};
use crate::failure::Failure;
use bpnmf::EngineKind;

/// A flag and whether it was given.
type Given = (&'static str, bool);

/// Errors if a flag of the other preset was given.
pub(super) fn refuse_other_preset(args: &ModelArgs) -> Result<(), Failure> {
    let (search, paper) = (&args.search, &args.paper);
    let sentence = match args.preset {
        PresetName::Auto => {
            let learned: [Given; 5] = [
                ("--a", paper.a.is_some()),
                ("--b", paper.b.is_some()),
                ("--c", paper.c.is_some()),
                ("--d", paper.d.is_some()),
                ("--prior", paper.prior.is_some()),
            ];
            let learned = first(&learned).map(|flag| {
                format!(
                    "{flag} cannot be set here, a, b, c and d are learned: leave it out or use --preset paper"
                )
            });
            let start = first(&[("--init", paper.init.is_some())]).map(|flag| {
                format!(
                    "{flag} cannot be set here, the search decides the start: leave it out or use --preset paper"
                )
            });
            learned.or(start)
        }
        PresetName::Paper => {
            let searched: [Given; 2] = [
                ("--coarsening", search.coarsening.is_some()),
                ("--force-components", search.force_components.is_some()),
            ];
            first(&searched)
                .map(|flag| format!("{flag} belongs to the search: leave it out or use --preset auto"))
        }
    };
    sentence.map_or(Ok(()), |sentence| Err(Failure::Request(sentence)))
}

/// Errors if a flag of another engine was given.
pub(super) fn refuse_other_engine(args: &ModelArgs, engine: EngineKind) -> Result<(), Failure> {
    let ssmf = &args.ssmf;
    let (owner, flags): (&str, &[Given]) = match engine {
        EngineKind::Ssmf => ("the Gibbs engines", &[("--burn-in", args.gibbs.burn_in.is_some())]),
        EngineKind::Gibbs | EngineKind::GibbsExpected => (
            "the ssmf engine",
            &[
                ("--sweeps", ssmf.sweeps.is_some()),
                ("--step-power", ssmf.step_power.is_some()),
                ("--step-offset", ssmf.step_offset.is_some()),
                ("--prune", ssmf.prune.is_some()),
                ("--prune-from", ssmf.prune_from.is_some()),
            ],
        ),
    };
    match first(flags) {
        Some(flag) => Err(Failure::Request(format!(
            "{flag} belongs to {owner}: leave it out or choose another --engine"
        ))),
        None => Ok(()),
    }
}

fn first(flags: &[Given]) -> Option<&'static str> {
    flags.iter().find(|(_, given)| *given).map(|(flag, _)| *flag)
}
