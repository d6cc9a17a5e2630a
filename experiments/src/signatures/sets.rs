//! The data sets of the experiment by name. Knows nothing of fits.

use super::catalogue::Catalogue;
use crate::rank::data::{Data, Trouble};
use crate::rank::made;
use std::fmt;
use std::path::Path;

/// What a signature is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Single bases.
    Sbs,
    /// Insertions and deletions.
    Indel,
}

/// How a published catalogue scatters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Realistic,
    Moderate,
    Noiseless,
}

/// The types of the catalogues that no model fits exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tumour {
    Lung,
    Stomach,
    Melanoma,
}

/// What they differ in from the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variant {
    Clean,
    Contaminated,
    Perturbed,
    OverDispersed,
}

/// A data set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Set {
    /// A published synthetic catalogue whose signatures are known.
    Published { kind: Kind, level: Level },
    /// A published synthetic catalogue in four variants with the same signatures.
    Misspecified { tumour: Tumour, variant: Variant },
    /// Negative binomial counts, 96 x 100; no alpha: Poisson.
    Simulated { components: usize, mean: f64, alpha: Option<f64> },
}

pub(super) const TUMOURS: [Tumour; 3] = [Tumour::Lung, Tumour::Stomach, Tumour::Melanoma];
pub(super) const VARIANTS: [Variant; 4] =
    [Variant::Clean, Variant::Contaminated, Variant::Perturbed, Variant::OverDispersed];
pub(super) const COMPONENTS: [usize; 2] = [5, 10];
pub(super) const MEANS: [f64; 3] = [30.0, 300.0, 3000.0];
pub(super) const ALPHAS: [Option<f64>; 5] = [Some(5.0), Some(20.0), Some(100.0), Some(1000.0), None];

/// All of them, in the order of the tables.
pub(super) fn all() -> Vec<Set> {
    let mut sets = Vec::new();
    for level in [Level::Realistic, Level::Moderate, Level::Noiseless] {
        sets.extend([Kind::Sbs, Kind::Indel].map(|kind| Set::Published { kind, level }));
    }
    for tumour in TUMOURS {
        sets.extend(VARIANTS.map(|variant| Set::Misspecified { tumour, variant }));
    }
    for components in COMPONENTS {
        for mean in MEANS {
            sets.extend(ALPHAS.map(|alpha| Set::Simulated { components, mean, alpha }));
        }
    }
    sets
}

/// Those that are named, each by its name or by the beginning of it up to an underscore.
pub(super) fn named(names: &str) -> Result<Vec<Set>, String> {
    let sets = all();
    let means = |name: &str, set: &Set| {
        set.to_string().strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    let names: Vec<&str> = names.split(',').collect();
    if let Some(unknown) = names.iter().find(|name| !sets.iter().any(|set| means(name, set))) {
        return Err(format!("there is no set {unknown}; signatures --help lists them"));
    }
    Ok(sets.into_iter().filter(|set| names.iter().any(|name| means(name, set))).collect())
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Sbs => "sbs",
            Self::Indel => "indel",
        })
    }
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Realistic => "realistic",
            Self::Moderate => "moderate",
            Self::Noiseless => "noiseless",
        })
    }
}

impl fmt::Display for Tumour {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Lung => "lung",
            Self::Stomach => "stomach",
            Self::Melanoma => "melanoma",
        })
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Clean => "clean",
            Self::Contaminated => "contaminated",
            Self::Perturbed => "perturbed",
            Self::OverDispersed => "over-dispersed",
        })
    }
}

/// Its name on the command line.
impl fmt::Display for Set {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Published { kind, level } => write!(out, "{kind}_{level}"),
            Self::Misspecified { tumour, variant } => write!(out, "misspecified_{tumour}_{variant}"),
            Self::Simulated { components, mean, alpha } => {
                write!(out, "simulated_{components}_{mean}_{}", alpha.unwrap_or(f64::INFINITY))
            }
        }
    }
}

impl Set {
    /// Whether a seed makes other data of it.
    pub(super) fn is_made_up(self) -> bool {
        matches!(self, Self::Simulated { .. })
    }

    /// How many seeds it is fitted with unless told otherwise.
    pub(super) fn seeds(self) -> u64 {
        if matches!(self, Self::Published { .. }) { 5 } else { 3 }
    }

    /// The data, from this folder where they are not made up.
    pub(super) fn load(self, seed: u64, folder: &Path) -> Result<Catalogue, Trouble> {
        match self {
            Self::Published { kind, level } => {
                let folder = folder.join(format!("signatures_{kind}"));
                let names = match kind {
                    Kind::Sbs => 2,
                    Kind::Indel => 4,
                };
                let counts = folder.join(format!("{level}.catalog.csv"));
                Catalogue::read(&counts, Some(&folder.join("truth.sigs.csv")), names)
            }
            Self::Misspecified { tumour, variant } => {
                Catalogue::read(&folder.join("misspecified").join(file(tumour, variant)), None, 1)
            }
            Self::Simulated { components, mean, alpha } => {
                const SIZE: (usize, usize) = (96, 100);
                let Data { counts, truth, .. } = made::scattered(components, mean, alpha, SIZE, seed)?;
                let parts = truth.into_iter().flat_map(|truth| truth.parts);
                let rates = made::scattered_rates(components, mean, SIZE, seed);
                Ok(Catalogue { counts, signatures: parts.map(|part| part.column).collect(), rates })
            }
        }
    }
}

fn file(tumour: Tumour, variant: Variant) -> String {
    let tumour = match tumour {
        Tumour::Lung => "38-lung-adenoca",
        Tumour::Stomach => "75-stomach-adenoca",
        Tumour::Melanoma => "107-skin-melanoma",
    };
    let variant = match variant {
        Variant::Clean => "",
        Variant::Contaminated => "-contamination-2",
        Variant::Perturbed => "-perturbed-0.0025",
        Variant::OverDispersed => "-overdispersed-2.0",
    };
    format!("synthetic-{tumour}-all-seed-1{variant}.tsv")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_named_one_by_one_or_by_the_beginning_of_their_names() {
        let many = |names: &str| named(names).unwrap().len();
        assert_eq!(
            (many("sbs_realistic"), many("sbs"), many("sbs,indel"), many("misspecified")),
            (1, 3, 6, 12)
        );
        assert_eq!((many("simulated"), many("simulated_10_300"), many("simulated_5_30_inf")), (30, 5, 1));
        assert_eq!(many("misspecified_lung,sbs_realistic"), 5);
        for unknown in ["nothing", "sbs_real", "simulated_5_30,", ""] {
            assert!(named(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn files_are_asked_for_in_their_folder_and_skipped_if_it_is_not_there() {
        let folder = Path::new("/nowhere/at/all");
        for set in all().into_iter().filter(|set| !set.is_made_up()) {
            assert!(
                matches!(set.load(1, folder), Err(Trouble::Absent(reason)) if reason.contains("BPNMF_DATA"))
            );
        }
    }

    #[test]
    fn without_alpha_the_simulated_set_is_that_of_the_grid() {
        let load =
            |alpha| Set::Simulated { components: 5, mean: 30.0, alpha }.load(2, Path::new("")).unwrap();
        let poisson = load(None);
        assert_eq!((poisson.counts.features(), poisson.counts.observations()), (96, 100));
        assert_eq!(poisson.counts, made::grid(5, 1.0, 30.0, (96, 100), 2).unwrap().counts);
        let scattered = load(Some(5.0));
        assert_eq!(scattered.signatures, poisson.signatures);
        assert!((scattered.counts.total() / poisson.counts.total() - 1.0).abs() < 0.05);
        assert!((poisson.rates.iter().sum::<f64>() / poisson.counts.total() - 1.0).abs() < 0.01);
        assert_eq!(scattered.rates, poisson.rates);
    }

    #[test]
    fn no_set_is_taken_for_anything_but_counts() {
        for set in all() {
            match set.load(1, &crate::files::folder()) {
                Ok(Catalogue { counts, .. }) => assert_eq!(bpnmf::Suspicion::of(&counts), None, "{set}"),
                Err(trouble) => eprintln!("{set}: skipped: {trouble}"),
            }
        }
    }

    #[test]
    fn published_sets_have_the_shapes_they_are_known_for() {
        let folder = crate::files::folder();
        for (kind, shape) in [(Kind::Sbs, (96, 540, 23)), (Kind::Indel, (83, 1119, 11))] {
            match (Set::Published { kind, level: Level::Realistic }).load(1, &folder) {
                Ok(Catalogue { counts, signatures, .. }) => {
                    assert_eq!((counts.features(), counts.observations(), signatures.len()), shape);
                    assert!(counts.first_fraction().is_none());
                    assert!(signatures.iter().all(|column| (column.iter().sum::<f64>() - 1.0).abs() < 1e-3));
                }
                Err(trouble) => eprintln!("skipped: {trouble}"),
            }
        }
    }
}
