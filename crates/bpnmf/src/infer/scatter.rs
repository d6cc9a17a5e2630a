//! Counts that scatter more than Poisson counts: the frozen dispersions of their entries, and the latent Poisson counts that
//! an engine works on in their place.
//!
//! Let m be the rate of an entry when it was frozen and e = m / alpha. X is negative binomial with shape r = lambda / e and
//! p = e / (1 + e): mean lambda, variance lambda (1 + e), which is lambda + lambda^2 / alpha where lambda = m. It is a sum of
//! L logarithmic counts, L ~ Poisson(omega lambda), omega = log(1 + e) / e. Given X and lambda L is the number of tables of
//! X customers with concentration r, and given L the model is that of Poisson counts L with the exposure omega. A missing
//! entry is the limit of an infinite dispersion: exposure zero and no count.

use super::activations::Activations;
use super::dictionary::Dictionary;
use super::local::{Allocation, GROUP};
use crate::checkpoint::bytes::{Reader, Writer, bad};
use crate::counts::{Column, ColumnsMut, Counts, Exposures};
use crate::error::Error;
use crate::kernel::exact::add_scaled;
use crate::kernel::{Lanes, dispatch};
use crate::noise::Noise;
use crate::random::Key;
use crate::random::tables::{Seats, expected_tables};
use crate::special::{digamma_ln_gammas, ln, ln_1p};
use crate::statistics::Sums;
use crate::workers::Workers;
use core::ops::Range;
use std::io;
use std::sync::Arc;

/// Entries with a dispersion below this stay Poisson. What is neglected of a zero is at most lambda e / 2 nats.
const LEAST_DISPERSION: f64 = 0.02;

/// How a state's counts scatter.
#[derive(Debug, Clone)]
pub(crate) struct Scatter {
    alpha: f64,
    frozen: Option<Frozen>,
    /// L of the last iteration: memory, which says nothing once it is over.
    latent: Option<Counts>,
}

/// The dispersions of a set of counts.
#[derive(Debug, Clone, PartialEq)]
struct Frozen {
    /// The entries that scatter, and those that are missing.
    exposures: Arc<Exposures>,
    /// e of each, infinite where it is missing.
    dispersions: Vec<f64>,
    /// How many scatter.
    scattered: usize,
}

/// The last L is no part of the state.
impl PartialEq for Scatter {
    fn eq(&self, other: &Self) -> bool {
        self.alpha == other.alpha && self.frozen == other.frozen
    }
}

impl Frozen {
    /// From the dispersions at the features `rows`, strictly increasing, of every column.
    fn new(starts: Vec<usize>, rows: Vec<u32>, dispersions: Vec<f64>) -> Self {
        let lost = dispersions.iter().map(|&e| lost_exposure(e)).collect();
        let scattered = dispersions.iter().filter(|e| e.is_finite()).count();
        Self { exposures: Arc::new(Exposures::new(starts, rows, lost)), dispersions, scattered }
    }
}

/// 1 - omega, all of it if the dispersion is infinite.
fn lost_exposure(dispersion: f64) -> f64 {
    if dispersion == f64::INFINITY { 1.0 } else { 1.0 - ln_1p(dispersion) / dispersion }
}

/// Memory of one thread, allocated once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scratch {
    /// The positive entries of a column that scatter.
    entries: Vec<Entry>,
    /// Their rates, and those of all features.
    rates: Vec<f64>,
    all_rates: Vec<f64>,
}

/// An entry that scatters and has counts.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Its place among the values that are held.
    at: usize,
    f: usize,
    dispersion: f64,
    x: f64,
}

/// What the rates of an iteration are made of.
#[derive(Clone, Copy)]
struct Model<'a> {
    data: &'a Counts,
    dictionary: &'a Dictionary,
    activations: &'a Activations,
    frozen: &'a Frozen,
}

/// Which L it is.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) key: Key,
    pub(crate) iteration: u32,
    pub(crate) allocation: Allocation,
}

impl Scatter {
    /// Nothing is frozen yet; `None` for Poisson counts.
    pub(crate) fn new(noise: Noise) -> Option<Self> {
        noise.alpha().map(|alpha| Self { alpha, frozen: None, latent: None })
    }

    /// The noise it stands for.
    pub(crate) fn noise(&self) -> Noise {
        Noise::Scattered { alpha: self.alpha }
    }

    /// Writes all of it but L, which is drawn anew.
    pub(crate) fn write(&self, out: &mut Writer<'_>) -> io::Result<()> {
        let Self { alpha, frozen, latent: _ } = self;
        out.f64(*alpha)?;
        out.some(frozen.is_some())?;
        let Some(Frozen { exposures, dispersions, scattered: _ }) = frozen else { return Ok(()) };
        for t in 0..exposures.observations() {
            out.length(exposures.range(t).len())?;
            out.u32s(exposures.of(t).rows)?;
            out.f64s(&dispersions[exposures.range(t)])?;
        }
        Ok(())
    }

    /// Reads what [`Self::write`] wrote for a matrix of this size.
    pub(crate) fn read(from: &mut Reader<'_>, features: usize, observations: usize) -> Result<Self, Error> {
        let noise = Noise::Scattered { alpha: from.f64()? };
        let mut scatter =
            noise.check().ok().and_then(Self::new).ok_or_else(|| bad("an alpha out of its range"))?;
        if !from.some()? {
            return Ok(scatter);
        }
        let (mut starts, mut rows, mut dispersions) = (vec![0], Vec::new(), Vec::new());
        for _ in 0..observations {
            let number = from.length()?;
            let of_column = from.u32s(number)?;
            let increase = of_column.is_sorted_by(|one, next| one < next);
            if !increase || of_column.last().is_some_and(|&f| f as usize >= features) {
                return Err(bad("features of dispersions out of their order"));
            }
            rows.extend(of_column);
            dispersions.extend(from.f64s(number)?);
            starts.push(rows.len());
        }
        if !dispersions.iter().all(|e| *e >= LEAST_DISPERSION) {
            return Err(bad("a dispersion out of its range"));
        }
        scatter.frozen = Some(Frozen::new(starts, rows, dispersions));
        Ok(scatter)
    }

    /// Whether the dispersions have been set.
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// Whether any entry scatters by the dispersions that were set.
    pub(crate) fn scatters(&self) -> bool {
        self.frozen.as_ref().is_some_and(|frozen| frozen.scattered > 0)
    }

    /// Sets the dispersions by the rates of factors.
    pub(crate) fn freeze(
        &mut self,
        data: &Counts,
        dictionary: &Dictionary,
        activations: &Activations,
        workers: &Workers,
    ) {
        let simd = workers.simd;
        self.freeze_at(data, workers, |t, rates| rates_of(simd, dictionary, activations, t, rates));
    }

    /// Sets the dispersions by the rates of every column: `rates(t, out)` sets all F of them.
    pub(crate) fn freeze_at(
        &mut self,
        data: &Counts,
        workers: &Workers,
        rates: impl Fn(usize, &mut [f64]) + Sync + Send,
    ) {
        let (alpha, observations) = (self.alpha, data.observations());
        let groups = workers.map((0..observations).step_by(GROUP), |first| {
            let mut of_column = vec![0.0; data.features()];
            let (mut ends, mut rows, mut dispersions) = (Vec::new(), Vec::new(), Vec::new());
            for t in first..observations.min(first + GROUP) {
                rates(t, &mut of_column);
                let mut missing = data.missing(t).iter().peekable();
                for (f, rate) in of_column.iter().enumerate() {
                    let dispersion = match missing.next_if(|&&missing| missing as usize == f) {
                        Some(_) => f64::INFINITY,
                        None => (rate / alpha).min(f64::MAX),
                    };
                    if dispersion >= LEAST_DISPERSION {
                        rows.push(f as u32);
                        dispersions.push(dispersion);
                    }
                }
                ends.push(rows.len());
            }
            (ends, rows, dispersions)
        });
        let (mut starts, mut rows, mut dispersions) = (vec![0], Vec::new(), Vec::new());
        for (ends, more_rows, more) in groups {
            let before = rows.len();
            starts.extend(ends.iter().map(|end| before + end));
            rows.extend(more_rows);
            dispersions.extend(more);
        }
        self.frozen = Some(Frozen::new(starts, rows, dispersions));
    }

    /// L as it was drawn last. `None` if no entry scatters: L is X.
    pub(crate) fn latent(&self) -> Option<&Counts> {
        self.frozen.as_ref().filter(|frozen| frozen.scattered > 0).and(self.latent.as_ref())
    }

    /// Draws L given X and the rates, or sets it to its expectation, unless no entry scatters.
    pub(crate) fn redraw(
        &mut self,
        data: &Counts,
        dictionary: &Dictionary,
        activations: &Activations,
        place: Place,
        workers: &Workers,
    ) {
        let Some(frozen) = self.frozen.as_ref().filter(|frozen| frozen.scattered > 0) else { return };
        let latent = self.latent.get_or_insert_with(|| data.clone());
        latent.become_like(data, &frozen.exposures);
        let model = Model { data, dictionary, activations, frozen };
        workers.for_each(latent.groups_mut(GROUP), |mut columns, scratch| {
            draw_columns(workers.simd, model, place, &mut columns, &mut scratch.scatter);
        });
    }

    /// Brings the sums over `columns`, which were taken of L, to what they are of X, unless no entry scatters. `memory` is for
    /// a number a column.
    pub(crate) fn put_right(
        &self,
        data: &Counts,
        dictionary: &Dictionary,
        activations: &Activations,
        columns: Range<usize>,
        sums: &mut Sums,
        memory: &mut Vec<f64>,
        workers: &Workers,
    ) {
        if self.latent().is_some() {
            sums.log_likelihood +=
                self.correction(data, dictionary, activations, columns.clone(), memory, workers);
            sums.expected_scattered = expected(data, dictionary, activations, columns);
        }
    }

    /// log p(X) of `columns` less what it is for the Poisson counts L with their exposures, both without log x!.
    fn correction(
        &self,
        data: &Counts,
        dictionary: &Dictionary,
        activations: &Activations,
        columns: Range<usize>,
        sums: &mut Vec<f64>,
        workers: &Workers,
    ) -> f64 {
        let (Some(frozen), Some(latent)) = (&self.frozen, self.latent()) else { return 0.0 };
        let model = Model { data, dictionary, activations, frozen };
        sums.clear();
        sums.resize(columns.len(), 0.0);
        workers.for_each(sums.chunks_mut(GROUP).enumerate(), |(group, sums), scratch| {
            let first = columns.start + group * GROUP;
            correct_columns(workers.simd, model, latent, first, sums, &mut scratch.scatter);
        });
        sums.iter().sum()
    }
}

/// The number of counts that is expected in `columns`, sum over the observed entries of W H S.
fn expected(data: &Counts, dictionary: &Dictionary, activations: &Activations, columns: Range<usize>) -> f64 {
    let of_column = |t: usize| {
        let unexposed = data.unexposed(t);
        let part = |(k, h): (usize, f32)| f64::from(h) * dictionary.observed_sum(k, unexposed);
        activations.column(t).iter().map(part).sum::<f64>()
    };
    columns.map(of_column).sum()
}

dispatch! {
    /// The rates of column `t`, length F.
    fn rates_of [] (dictionary: &Dictionary, activations: &Activations, t: usize, rates: &mut [f64]) = add_rates
}

#[inline(always)]
fn add_rates<V: Lanes>(dictionary: &Dictionary, activations: &Activations, t: usize, rates: &mut [f64]) {
    rates.fill(0.0);
    for (k, h) in activations.column(t).iter() {
        add_scaled::<V>(rates, dictionary.row(k), h);
    }
}

impl Scratch {
    /// Lists the positive entries of column `t` that scatter, with their rates: the same bits however counts are held.
    #[inline(always)]
    fn list<V: Lanes>(&mut self, model: Model<'_>, t: usize) {
        let Model { data, dictionary, activations, frozen } = model;
        let (rows, range) = (frozen.exposures.of(t).rows, frozen.exposures.range(t));
        let listed = rows.iter().map(|&f| f as usize).zip(&frozen.dispersions[range]);
        self.entries.clear();
        match data.column(t) {
            Column::Dense(values) => {
                let positive = listed.filter(|&(f, _)| values[f] > 0.0);
                let entry = |(f, &dispersion)| Entry { at: f, f, dispersion, x: values[f] };
                self.entries.extend(positive.map(entry));
            }
            Column::Sparse(rows, values) => {
                let mut at = 0;
                for (f, &dispersion) in listed {
                    while at < rows.len() && (rows[at] as usize) < f {
                        at += 1;
                    }
                    if at < rows.len() && rows[at] as usize == f {
                        self.entries.push(Entry { at, f, dispersion, x: values[at] });
                    }
                }
            }
        }
        self.rates.clear();
        if 4 * self.entries.len() > data.features() {
            self.all_rates.resize(data.features(), 0.0);
            add_rates::<V>(dictionary, activations, t, &mut self.all_rates);
            self.rates.extend(self.entries.iter().map(|entry| self.all_rates[entry.f]));
        } else {
            self.rates.resize(self.entries.len(), 0.0);
            for (k, h) in activations.column(t).iter() {
                let (row, h) = (dictionary.row(k), f64::from(h));
                for (rate, entry) in self.rates.iter_mut().zip(&self.entries) {
                    *rate = V::add_exact_product(f64::from(row[entry.f]), h, *rate);
                }
            }
        }
    }
}

dispatch! {
    fn draw_columns [] (
        model: Model<'_>, place: Place, columns: &mut ColumnsMut<'_>, scratch: &mut Scratch,
    ) = draw_columns_on
}

#[inline(always)]
fn draw_columns_on<V: Lanes>(
    model: Model<'_>,
    place: Place,
    columns: &mut ColumnsMut<'_>,
    scratch: &mut Scratch,
) {
    columns.fill(|t, values| {
        let (Column::Dense(x) | Column::Sparse(_, x)) = model.data.column(t);
        values.copy_from_slice(x);
        scratch.list::<V>(model, t);
        let mut seats = Seats::new(place.key, place.iteration, t);
        for (entry, rate) in scratch.entries.iter().zip(&scratch.rates) {
            let concentration = rate / entry.dispersion;
            values[entry.at] = match place.allocation {
                Allocation::Sampled => seats.tables::<V>(entry.x as u64, concentration, entry.f) as f64,
                Allocation::Expected => expected_tables(entry.x, concentration),
            };
        }
    });
}

dispatch! {
    fn correct_columns [] (
        model: Model<'_>, latent: &Counts, first: usize, sums: &mut [f64], scratch: &mut Scratch,
    ) = correct_columns_on
}

/// Entries whose logarithms are taken at once.
const MANY: usize = 8;

#[inline(always)]
fn correct_columns_on<V: Lanes>(
    model: Model<'_>,
    latent: &Counts,
    first: usize,
    sums: &mut [f64],
    scratch: &mut Scratch,
) {
    for (t, sum) in (first..).zip(sums) {
        scratch.list::<V>(model, t);
        let (Column::Dense(tables) | Column::Sparse(_, tables)) = latent.column(t);
        for (entries, rates) in scratch.entries.chunks(MANY).zip(scratch.rates.chunks(MANY)) {
            // Behind the last entry there is nothing: without counts every term is zero.
            let (mut x, mut l, mut e, mut rate) = ([0.0; MANY], [0.0; MANY], [1.0; MANY], [1.0; MANY]);
            for (i, (entry, &of_entry)) in entries.iter().zip(rates).enumerate() {
                (x[i], l[i], e[i], rate[i]) = (entry.x, tables[entry.at], entry.dispersion, of_entry);
            }
            let (mut r, mut end) = ([0.0; MANY], [0.0; MANY]);
            for i in 0..MANY {
                r[i] = rate[i] / e[i];
                end[i] = r[i] + x[i];
            }
            let ((_, from), (_, to)) = (digamma_ln_gammas(&r), digamma_ln_gammas(&end));
            let mut terms = [0.0; MANY];
            for i in 0..MANY {
                // log NB(X) without log x!, but for - omega lambda, which L has as well.
                terms[i] = (to[i] - from[i]) - x[i] * ln(1.0 + 1.0 / e[i]) - l[i] * ln(rate[i]);
            }
            terms.iter().for_each(|term| *sum += term);
        }
    }
}
