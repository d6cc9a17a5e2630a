//! Engines and presets by name: the one list that every front end shows and reads.

use crate::error::Error;

/// How the number of parts is found.
///
/// ```
/// use bpnmf::Preset;
/// assert!(Preset::ALL.into_iter().all(|preset| Preset::read(preset.name()) == Ok(preset)));
/// assert_eq!(
///     Preset::read("fast").unwrap_err().to_string(),
///     "preset is \"fast\": it must be \"auto\" or \"paper\""
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preset {
    /// A search comes first: for the parts that the evidence wants, and for the prior.
    #[default]
    Auto,
    /// As the paper prints it: no search, the prior as it is given.
    Paper,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Auto, Self::Paper];

    /// Its name in requests and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Paper => "paper",
        }
    }

    /// What it is, for people who choose.
    pub fn about(self) -> &'static str {
        match self {
            Self::Auto => {
                "A search comes first: for the parts that the evidence wants, and for the prior; then the engine samples \
                 from there"
            }
            Self::Paper => {
                "As the paper prints it: no search, the prior as it is given; keeps many copies of each part"
            }
        }
    }

    /// The preset of a name.
    pub fn read(text: &str) -> Result<Self, Error> {
        let known = || Self::ALL.map(Self::name).to_vec();
        Self::ALL.into_iter().find(|preset| preset.name() == text).ok_or_else(|| Error::UnknownName {
            what: "preset",
            text: text.to_owned(),
            known: known(),
        })
    }
}

/// The engines by name.
///
/// ```
/// use bpnmf::EngineKind;
/// assert!(EngineKind::ALL.into_iter().all(|kind| EngineKind::read(kind.name()) == Ok(kind)));
/// assert!(EngineKind::read("vi").unwrap_err().to_string().starts_with("engine is \"vi\": it must be \"ssmf\", "));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// [`crate::Ssmf`].
    Ssmf,
    /// [`crate::Gibbs`], exact; needs whole counts.
    Gibbs,
    /// [`crate::Gibbs`] with expected counts.
    GibbsExpected,
    /// [`crate::Map`], the mean field with a point mask.
    Map,
    /// [`crate::NbProcess`], another model: no mask, weights instead.
    NbProcess,
}

impl EngineKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Ssmf, Self::Gibbs, Self::GibbsExpected, Self::Map, Self::NbProcess];

    /// Its name in requests and reports, and in checkpoints.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ssmf => "ssmf",
            Self::Gibbs => "gibbs",
            Self::GibbsExpected => "gibbs-expected",
            Self::Map => "map",
            Self::NbProcess => "nb-process",
        }
    }

    /// What it is, for people who choose.
    pub fn about(self) -> &'static str {
        match self {
            Self::Ssmf => "Stochastic structured mean field, Algorithm 1 of the paper: fast",
            Self::Gibbs => "Gibbs sampling, exact; needs whole counts",
            Self::GibbsExpected => {
                "Gibbs sampling with expected counts as the paper prints it: too sure of itself, kept for comparison"
            }
            Self::Map => "Mean field with the most probable mask, by coordinate ascent: the fastest",
            Self::NbProcess => {
                "Another model, without a mask and without a search: negative binomial process, exact Gibbs sampling; needs \
                 whole counts"
            }
        }
    }

    /// Whether a search can go before it: it finds a mask, which other models do not have.
    pub fn searches(self) -> bool {
        self != Self::NbProcess
    }

    /// Whether it averages over states after a burn-in.
    pub(super) fn burns_in(self) -> bool {
        matches!(self, Self::Gibbs | Self::GibbsExpected | Self::NbProcess)
    }

    /// The engine of a name.
    pub fn read(text: &str) -> Result<Self, Error> {
        let known = || Self::ALL.map(Self::name).to_vec();
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| Error::UnknownName {
            what: "engine",
            text: text.to_owned(),
            known: known(),
        })
    }
}
