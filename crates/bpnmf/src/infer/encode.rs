//! States as bytes and back, each part by itself. Everything is taken apart by all its fields: one that is added later cannot
//! be forgotten here. Knows nothing of runs.

use super::activations::{Activations, ones};
use super::dictionary::Dictionary;
use super::mask::Odds;
use super::scatter::Scatter;
use super::state::{Averages, Moments, Spread, State, Variational};
use crate::checkpoint::bytes::{Reader, Writer, bad};
use crate::error::Error;
use std::io;

/// F, K and T of a state, and how many numbers there are for W and for H; all of them have room in the bytes that are read.
#[derive(Clone, Copy)]
struct Shape {
    features: usize,
    components: usize,
    observations: usize,
    of_w: usize,
    of_h: usize,
}

impl State {
    /// Writes all of it.
    pub(crate) fn write(&self, out: &mut Writer<'_>) -> io::Result<()> {
        let Self { dictionary, activations, odds, variational, averages, scatter, own, iteration } = self;
        let components = dictionary.components();
        out.length(dictionary.features())?;
        out.length(components)?;
        out.length(activations.observations())?;
        out.u64(u64::from(*iteration))?;
        (0..components).try_for_each(|k| out.f32s(dictionary.row(k)))?;
        out.f64s(odds.logit())?;
        // H where S is off means nothing.
        let (mut parts, mut values) = (Vec::new(), Vec::new());
        for t in 0..activations.observations() {
            let column = activations.column(t);
            out.u16s(column.on)?;
            column.list(&mut parts);
            values.clear();
            values.extend(parts.iter().map(|&(_, h)| h));
            out.f32s(&values)?;
        }
        out.some(variational.is_some())?;
        variational.as_ref().map_or(Ok(()), |variational| variational.write(out))?;
        averages.write(out)?;
        out.some(scatter.is_some())?;
        scatter.as_ref().map_or(Ok(()), |scatter| scatter.write(out))?;
        out.length(own.len())?;
        out.f64s(own)
    }

    /// Reads what [`Self::write`] wrote.
    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Error> {
        let (features, components, observations) = (from.length()?, from.length()?, from.length()?);
        let iteration = from.u64()?;
        if [features, components, observations].contains(&0) {
            return Err(bad("an empty matrix"));
        }
        let of_w = from.room(features, components, 4)?;
        // One bit a site, at least.
        let of_h = from.room(components.div_ceil(16), observations, 2).map(|_| components * observations)?;
        let shape = Shape { features, components, observations, of_w, of_h };
        let dictionary = read_dictionary(from, shape)?;
        let odds = Odds::new(from.f64s(components)?);
        let activations = read_activations(from, shape)?;
        let variational = from.some()?.then(|| Variational::read(from, shape)).transpose()?;
        let averages = Averages::read(from, shape)?;
        let iteration = u32::try_from(iteration).map_err(|_| bad("too many iterations"))?;
        let scatter = from.some()?.then(|| Scatter::read(from, features, observations)).transpose()?;
        let numbers = from.length()?;
        let own = from.f64s(numbers)?;
        Ok(Self { dictionary, activations, odds, variational, averages, scatter, own, iteration })
    }
}

fn read_dictionary(from: &mut Reader<'_>, shape: Shape) -> Result<Dictionary, Error> {
    let mut dictionary = Dictionary::new(shape.features, shape.components);
    for k in 0..shape.components {
        from.fill_f32s(dictionary.row_mut(k))?;
    }
    dictionary.settle();
    Ok(dictionary)
}

fn read_activations(from: &mut Reader<'_>, shape: Shape) -> Result<Activations, Error> {
    let mut activations = Activations::new(shape.components, shape.observations);
    let mut words = vec![0; activations.tiles()];
    for t in 0..shape.observations {
        from.fill_u16s(&mut words)?;
        for k in ones(&words) {
            if k >= shape.components {
                return Err(bad("a component that is not there is on"));
            }
            activations.set(k, t, Some(from.f32()?));
        }
    }
    Ok(activations)
}

impl Variational {
    fn write(&self, out: &mut Writer<'_>) -> io::Result<()> {
        let Self { nu_w, rho_w, nu_h, rho_h, alpha_pi, beta_pi } = self;
        [nu_w, rho_w, nu_h, rho_h, alpha_pi, beta_pi].into_iter().try_for_each(|values| out.f64s(values))
    }

    fn read(from: &mut Reader<'_>, shape: Shape) -> Result<Self, Error> {
        Ok(Self {
            nu_w: from.f64s(shape.of_w)?,
            rho_w: from.f64s(shape.of_w)?,
            nu_h: from.f64s(shape.of_h)?,
            rho_h: from.f64s(shape.of_h)?,
            alpha_pi: from.f64s(shape.components)?,
            beta_pi: from.f64s(shape.components)?,
        })
    }
}

impl Averages {
    fn write(&self, out: &mut Writer<'_>) -> io::Result<()> {
        let Self { draws, dictionary, masked, inclusion, pi, log_likelihood, spread } = self;
        out.u64(u64::from(*draws))?;
        out.some(!dictionary.is_empty())?;
        out.f32s(dictionary)?;
        out.sparse(masked)?;
        out.sparse(inclusion)?;
        out.f64s(pi)?;
        out.f64(*log_likelihood)?;
        out.some(spread.is_some())?;
        spread.as_ref().map_or(Ok(()), |spread| spread.write(out))
    }

    fn read(from: &mut Reader<'_>, shape: Shape) -> Result<Self, Error> {
        let draws = from.u64()?;
        let of_means = if from.some()? { shape.of_w } else { 0 };
        Ok(Self {
            draws: u32::try_from(draws).map_err(|_| bad("too many draws"))?,
            dictionary: from.f32s(of_means)?,
            masked: from.sparse(shape.of_h)?,
            inclusion: from.sparse(shape.of_h)?,
            pi: from.f64s(shape.components)?,
            log_likelihood: from.f64()?,
            spread: from.some()?.then(|| Spread::read(from, shape)).transpose()?,
        })
    }
}

impl Spread {
    fn write(&self, out: &mut Writer<'_>) -> io::Result<()> {
        let Self { signature, exposure } = self;
        out.f32s(&signature.mean)?;
        out.f32s(&signature.variance)?;
        out.sparse(&exposure.mean)?;
        out.sparse(&exposure.variance)
    }

    fn read(from: &mut Reader<'_>, shape: Shape) -> Result<Self, Error> {
        let signature = Moments { mean: from.f32s(shape.of_w)?, variance: from.f32s(shape.of_w)? };
        let exposure = Moments { mean: from.sparse(shape.of_h)?, variance: from.sparse(shape.of_h)? };
        Ok(Self { signature, exposure })
    }
}
