//! What the two halves of a fit of blocks tell each other, as bytes, and a fit between two rounds.

use super::additive::sent;
use super::leader::BlockFit;
use crate::checkpoint::bytes::{Reader, Writer, bad};
use crate::error::Error;
use crate::infer::Shared;
use crate::infer::dictionary::Dictionary;
use crate::infer::mask::Odds;
use crate::noise::Noise;
use std::io;

/// How these bytes begin, and their versions.
const SHARED: u64 = u64::from_le_bytes(*b"bpnmfSH1");
const FIT: u64 = u64::from_le_bytes(*b"bpnmfBF1");

fn alpha(noise: Noise) -> f64 {
    noise.alpha().unwrap_or(f64::INFINITY)
}

fn noise(alpha: f64) -> Result<Noise, Error> {
    if alpha == f64::INFINITY {
        return Ok(Noise::Poisson);
    }
    Noise::Scattered { alpha }.check().map_err(|_| bad("an alpha out of its range"))
}

/// A number that must be finite and above 0.
fn positive(from: &mut Reader<'_>) -> Result<f64, Error> {
    from.f64().and_then(|number| {
        if number > 0.0 && number.is_finite() { Ok(number) } else { Err(bad("a number out of its range")) }
    })
}

/// Numbers that must be so.
fn all_positive(from: &mut Reader<'_>, length: usize) -> Result<Vec<f64>, Error> {
    let numbers = from.f64s(length)?;
    let fine = numbers.iter().all(|number| *number > 0.0 && number.is_finite());
    if fine { Ok(numbers) } else { Err(bad("a number out of its range")) }
}

impl Shared {
    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = Writer::new(&mut bytes);
        let mut write = || -> io::Result<()> {
            out.u64(SHARED)?;
            out.length(self.features())?;
            out.length(self.components())?;
            (0..self.components()).try_for_each(|k| out.f32s(self.dictionary.row(k)))?;
            out.f64s(self.odds.logit())?;
            [self.shape, self.rate, self.coarsening, alpha(self.noise)]
                .into_iter()
                .try_for_each(|number| out.f64(number))?;
            out.some(self.whole)
        };
        write().expect("memory takes all bytes");
        bytes
    }

    /// From the bytes of [`Self::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let read = |from: &mut Reader<'_>| {
            if from.u64()? != SHARED {
                return Err(bad("they are not what is shared in a fit of this version"));
            }
            let (features, components) = (from.length()?, from.length()?);
            from.room(features, components, size_of::<f32>())?;
            let mut dictionary = Dictionary::new(features, components);
            (0..components).try_for_each(|k| from.fill_f32s(dictionary.row_mut(k)))?;
            let fine = (0..components).all(|k| dictionary.row(k).iter().all(|w| *w >= 0.0 && w.is_finite()));
            if !fine {
                return Err(bad("an entry of W out of its range"));
            }
            dictionary.settle();
            let odds = Odds::new(from.f64s(components)?);
            let (shape, rate, coarsening) = (positive(from)?, positive(from)?, positive(from)?);
            let noise = noise(from.f64()?)?;
            Ok(Self { dictionary, odds, shape, rate, coarsening, noise, whole: from.some()? })
        };
        read(&mut Reader::new(bytes)).map_err(sent)
    }
}

impl BlockFit {
    /// All of it as bytes: a fit goes on from them with the same bits.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = Writer::new(&mut bytes);
        let mut write = || -> io::Result<()> {
            let numbers =
                [FIT, self.features as u64, self.components as u64, self.observations as u64, self.seed];
            numbers.into_iter().try_for_each(|number| out.u64(number))?;
            out.prior(&self.prior)?;
            [alpha(self.noise), self.coarsening, self.head_start].into_iter().try_for_each(|x| out.f64(x))?;
            out.some(self.whole)?;
            [&self.nu_w, &self.rho_w, &self.alpha_pi, &self.beta_pi]
                .into_iter()
                .try_for_each(|x| out.f64s(x))?;
            out.u64(u64::from(self.steps))?;
            out.length(self.done)?;
            out.f64(self.log_likelihood)?;
            out.some(self.totals.is_some())?;
            self.totals.iter().flat_map(|totals| totals.numbers()).try_for_each(|numbers| out.f64s(numbers))
        };
        write().expect("memory takes all bytes");
        bytes
    }

    /// From the bytes of [`Self::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let read = |from: &mut Reader<'_>| {
            if from.u64()? != FIT {
                return Err(bad("they are no fit of this version"));
            }
            let (features, components, observations) = (from.length()?, from.length()?, from.length()?);
            let sites = from.room(features, components, size_of::<f64>())?;
            let (seed, prior) = (from.u64()?, from.prior()?);
            let (noise, coarsening) = (noise(from.f64()?)?, positive(from)?);
            let mut fit = Self::empty(features, observations, seed, prior, noise, coarsening);
            fit.components = components;
            fit.head_start = positive(from)?;
            fit.whole = from.some()?;
            (fit.nu_w, fit.rho_w) = (all_positive(from, sites)?, all_positive(from, sites)?);
            (fit.alpha_pi, fit.beta_pi) = (all_positive(from, components)?, all_positive(from, components)?);
            fit.steps = u32::try_from(from.u64()?).map_err(|_| bad("too many steps"))?;
            fit.plan_rounds();
            fit.done = from.length()?;
            fit.log_likelihood = from.f64()?;
            if from.some()? {
                fit.totals =
                    Some(super::outcome::Totals::new(from.f64s(components)?, from.f64s(components)?));
            }
            Ok(fit)
        };
        read(&mut Reader::new(bytes)).map_err(sent)
    }
}
