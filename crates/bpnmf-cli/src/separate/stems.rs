//! Which parts make which stem, by whatever way was asked for.

use super::groups::{Groups, Made};
use super::input::Reference;
use crate::args::{PickName, SeparateArgs};
use crate::failure::Failure;
use bpnmf_audio::{Grouping, Parts, Recording, Stems, Transcription};

/// The stem of what no part explains, and with --pick one of the parts that nobody picked.
pub(crate) const RESIDUAL: &str = "residual";

/// The most stems: above, somebody mistyped.
const MOST_STEMS: usize = 1000;

/// How parts become stems.
pub(crate) enum Plan {
    /// Not at all.
    Nothing,
    /// So many, by what belongs together; and whether an instrument may play several notes at once.
    Number(usize, bool),
    /// By a file.
    Groups(Groups),
    /// By recordings of the sources.
    References(Vec<Reference>, PickName),
}

/// Stems with names.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// One a stem; that of what no part explains is the last one.
    pub(crate) names: Vec<String>,
    pub(crate) stems: Stems,
    pub(crate) warnings: Vec<String>,
}

impl Plan {
    /// Checks what can be checked before anything is read.
    pub(crate) fn check(args: &SeparateArgs) -> Result<(), Failure> {
        let grouped = args.stems.is_some() || args.groups.is_some() || !args.reference.is_empty();
        let refused = match (args.stems, args.pick) {
            (Some(wanted), _) if !(1..=MOST_STEMS).contains(&wanted) => {
                format!("--stems is {wanted}: it must be between 1 and {MOST_STEMS}")
            }
            (_, Some(PickName::One)) if args.residual => {
                "--residual cannot be used with --pick one, where the stem `residual` is the parts that nobody picked: \
                 leave it out"
                    .to_owned()
            }
            _ if args.residual && !grouped => {
                "--residual is one stem more: say which stems with --stems, --groups or --reference".to_owned()
            }
            _ => return Ok(()),
        };
        Err(Failure::Request(refused))
    }

    /// The plan that was asked for; `references` are those that were read.
    pub(crate) fn new(args: &SeparateArgs, references: Vec<Reference>) -> Result<Self, Failure> {
        let pick = args.pick.unwrap_or(PickName::All);
        let reserved = args.residual || pick == PickName::One;
        let clash = |name: &str| {
            Failure::Request(format!(
                "a stem cannot be called {name}, that is the name of another: rename it"
            ))
        };
        if let Some(reference) =
            references.iter().find(|reference| reserved && reference.name.to_lowercase() == RESIDUAL)
        {
            return Err(clash(&reference.name));
        }
        if let Some(path) = &args.groups {
            let groups = Groups::read(path)?;
            return if args.residual && groups.has(RESIDUAL) {
                Err(clash(RESIDUAL))
            } else {
                Ok(Self::Groups(groups))
            };
        }
        Ok(match args.stems {
            Some(wanted) => Self::Number(wanted, args.polyphonic),
            None if references.is_empty() => Self::Nothing,
            None => Self::References(references, pick),
        })
    }

    /// The stems of these parts; `activations` are the posterior means of H S.
    pub(crate) fn stems(
        &self,
        recording: &Recording,
        parts: &Parts,
        heard: &Transcription,
        activations: &[f32],
        unexplained: bool,
    ) -> Result<Named, Failure> {
        let stems = |grouping: &Grouping<'_>| {
            recording.stems(parts, heard, activations, grouping).with_unexplained(unexplained)
        };
        let mut named = Named::default();
        match self {
            Self::Nothing => named.stems = stems(&Grouping::Nothing),
            Self::Number(wanted, polyphonic) => {
                named.stems = stems(&Grouping::Voices { wanted: *wanted, polyphonic: *polyphonic });
                let many = named.stems.members.len();
                named.names = numbered(1, many);
                if many < *wanted {
                    named
                        .warnings
                        .push(format!("{wanted} stems were asked for, but there are sounds for only {many}"));
                }
            }
            Self::Groups(groups) => {
                let (names, made) = groups.stems(parts.components(), &heard.events)?;
                named.stems = stems(&match &made {
                    Made::Parts(members) => Grouping::Parts(members),
                    Made::Events(of) => Grouping::Events(of, names.len()),
                });
                named.names = names;
            }
            Self::References(references, pick) => {
                let magnitudes = |reference: &Reference| recording.magnitudes_of(&reference.sound.samples);
                let magnitudes: Vec<Vec<f32>> = references.iter().map(magnitudes).collect();
                named.names = references.iter().map(|reference| reference.name.clone()).collect();
                named.stems = stems(&match pick {
                    PickName::All => Grouping::PickAll(&magnitudes),
                    PickName::One => Grouping::PickOne(&magnitudes),
                });
                let empty = references.iter().zip(&named.stems.members);
                for (reference, _) in empty.filter(|(_, members)| members.is_empty()) {
                    let name = &reference.name;
                    named.warnings.push(format!("no part was found for {name}: its stem is all but silent"));
                }
                if *pick == PickName::One {
                    named.names.push(RESIDUAL.to_owned());
                }
            }
        }
        if unexplained {
            named.names.push(RESIDUAL.to_owned());
        }
        Ok(named)
    }
}

/// Names that are numbers from `first` on, all of the same length.
pub(crate) fn numbered(first: usize, many: usize) -> Vec<String> {
    let width = (first + many).saturating_sub(1).to_string().len();
    (first..first + many).map(|number| format!("{number:0width$}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_padded_only_where_there_are_more_than_nine() {
        assert_eq!(numbered(0, 3), ["0", "1", "2"]);
        assert_eq!(numbered(0, 10).last().unwrap(), "9");
        assert_eq!((&numbered(0, 11)[0][..], numbered(0, 11).last().unwrap().as_str()), ("00", "10"));
        assert_eq!(numbered(1, 10)[0], "01");
        assert!(numbered(0, 0).is_empty());
    }
}
