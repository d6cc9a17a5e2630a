//! Which parts make which stem, by whatever way was asked for.

use super::groups::Groups;
use super::input::Reference;
use crate::args::{PickName, SeparateArgs};
use crate::failure::Failure;
use bpnmf::Posterior;
use bpnmf_audio::{Parts, Pieces, Stft};

/// The stem of what no part explains, and with --pick one of the parts that nobody picked.
pub(crate) const RESIDUAL: &str = "residual";

/// The most stems: above, somebody mistyped.
const MOST_STEMS: usize = 1000;

/// How parts become stems.
pub(crate) enum Plan {
    /// Not at all.
    Nothing,
    /// So many, by what belongs together.
    Number(usize),
    /// By a file.
    Groups(Groups),
    /// By recordings of the sources.
    References(Vec<Reference>, PickName),
}

/// The stems.
#[derive(Debug, Default)]
pub(crate) struct Stems {
    pub(crate) names: Vec<String>,
    /// The parts of each stem, increasing; every part is in one, or in several if there are pieces.
    pub(crate) members: Vec<Vec<usize>>,
    /// The pieces that stems are made of, if parts were split.
    pub(crate) pieces: Option<Pieces>,
    /// The last name is that of what no part explains, and has no members.
    pub(crate) unexplained: bool,
    /// Of each reference with each part.
    pub(crate) correlations: Option<Vec<Vec<f64>>>,
    pub(crate) warnings: Vec<String>,
}

impl Stems {
    /// The model that the stems are sums of, and what of it each has.
    pub(crate) fn made_of<'a>(&'a self, parts: &'a Parts) -> (&'a Parts, Vec<Vec<usize>>) {
        let Some(pieces) = &self.pieces else {
            return (parts, self.members.clone());
        };
        (&pieces.parts, pieces.by_owner(self.members.len()))
    }
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
            Some(wanted) => Self::Number(wanted),
            None if references.is_empty() => Self::Nothing,
            None => Self::References(references, pick),
        })
    }

    /// The stems of these parts, in whose units the magnitudes are times `scale`.
    pub(crate) fn stems(
        &self,
        parts: &Parts,
        posterior: &Posterior,
        stft: &Stft,
        scale: f64,
        unexplained: bool,
    ) -> Result<Stems, Failure> {
        let components = parts.components();
        let mut stems = Stems { unexplained, ..Stems::default() };
        match self {
            Self::Nothing => {}
            Self::Number(wanted) => {
                stems.members = bpnmf_audio::group(parts, *wanted);
                let many = stems.members.len();
                stems.names = numbered(1, many);
                if many < *wanted {
                    stems
                        .warnings
                        .push(format!("{wanted} stems were asked for, but there are only {many} parts"));
                }
            }
            Self::Groups(groups) => {
                (stems.names, stems.members) = groups.stems(components)?.into_iter().unzip()
            }
            Self::References(references, pick) => {
                stems.names = references.iter().map(|reference| reference.name.clone()).collect();
                stems.members = vec![Vec::new(); references.len()];
                let magnitudes = |reference: &Reference| {
                    bpnmf_audio::to_units(stft.magnitudes(&reference.sound.samples), scale)
                };
                if *pick == PickName::All {
                    let magnitudes: Vec<Vec<f32>> = references.iter().map(magnitudes).collect();
                    let pieces = bpnmf_audio::pick_all(parts, &magnitudes);
                    for (&k, &r) in pieces.origin.iter().zip(&pieces.owner) {
                        stems.members[r].push(k);
                    }
                    stems.pieces = Some(pieces);
                } else {
                    let envelope =
                        |reference| bpnmf_audio::power_envelope(&magnitudes(reference), stft.bins());
                    let envelopes: Vec<Vec<f64>> = references.iter().map(envelope).collect();
                    let picked = bpnmf_audio::pick_one(&envelopes, &posterior.activations);
                    let left = |k: &usize| !picked.parts.contains(&Some(*k));
                    stems.members = picked.parts.iter().map(|part| part.iter().copied().collect()).collect();
                    stems.members.push((0..components).filter(left).collect());
                    stems.names.push(RESIDUAL.to_owned());
                    stems.correlations = Some(picked.correlations);
                }
                let empty = stems.names.iter().zip(&stems.members).take(references.len());
                for (name, _) in empty.filter(|(_, members)| members.is_empty()) {
                    stems.warnings.push(format!("no part was found for {name}: its stem is all but silent"));
                }
            }
        }
        if unexplained {
            stems.names.push(RESIDUAL.to_owned());
        }
        Ok(stems)
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
