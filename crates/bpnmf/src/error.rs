//! Everything that can be wrong with a request, each with its place and what to do about it.

use crate::plan::Instead;

/// An error of the library. The text is one sentence, meant to be shown to a person.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The matrix has no rows or no columns.
    #[error("the matrix is empty ({features} x {observations}): give it at least one row and one column")]
    Empty {
        /// Rows.
        features: usize,
        /// Columns.
        observations: usize,
    },
    /// The number of values does not fit the shape.
    #[error("{features} x {observations} needs {expected} values, found {found}")]
    WrongLength {
        /// Rows.
        features: usize,
        /// Columns.
        observations: usize,
        /// Values the shape asks for.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// The shape is larger than this build can address.
    #[error("{features} x {observations} is too large to index")]
    TooLarge {
        /// Rows.
        features: usize,
        /// Columns.
        observations: usize,
    },
    /// A text is no time.
    #[error("{text:?} is no time: write 60s, 5m, 2h or a number of seconds, above 0")]
    BadTime {
        /// What was given.
        text: String,
    },
    /// A name that nobody has.
    #[error("{what} is {text:?}: it must be {}", listed(known))]
    UnknownName {
        /// What should have it.
        what: &'static str,
        /// What was given.
        text: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// An option that means nothing with the preset or the engine of a plan.
    #[error("{option} {reason}: leave it out or {instead}")]
    Misplaced {
        /// The option.
        option: &'static str,
        /// Why it means nothing.
        reason: &'static str,
        /// With what it would mean something.
        instead: Instead,
    },
    /// Chains are to be made until the number of components is sure, but it is given.
    #[error(
        "chains cannot go on until the number of components is sure if the number is given: leave one of them out"
    )]
    SureOfForced,
    /// An entry is negative.
    #[error(
        "entry ({feature}, {observation}) is {value}: counts cannot be negative; if these are logarithms or z-scores, give the raw counts"
    )]
    Negative {
        /// Row, from 0.
        feature: usize,
        /// Column, from 0.
        observation: usize,
        /// What stands there.
        value: f64,
    },
    /// An entry is NaN or infinite.
    #[error("entry ({feature}, {observation}) is {value}: counts must be finite{}", missing_advice(*value))]
    NotFinite {
        /// Row, from 0.
        feature: usize,
        /// Column, from 0.
        observation: usize,
        /// What stands there.
        value: f64,
    },
    /// An entry is beyond what single precision can carry through a sweep.
    #[error(
        "entry ({feature}, {observation}) is {value:e}: counts above 1e15 are not supported, divide the data by a constant"
    )]
    TooBig {
        /// Row, from 0.
        feature: usize,
        /// Column, from 0.
        observation: usize,
        /// What stands there.
        value: f64,
    },
    /// An engine that draws whole counts was given a fraction.
    #[error(
        "entry ({feature}, {observation}) is {value}, which is not a whole number: {engine} draws counts; round the data or use the ssmf engine"
    )]
    NotWhole {
        /// Row, from 0.
        feature: usize,
        /// Column, from 0.
        observation: usize,
        /// What stands there.
        value: f64,
        /// Who needs whole numbers.
        engine: &'static str,
    },
    /// The arrays of a compressed-column matrix contradict each other.
    #[error("the compressed columns are inconsistent: {reason}")]
    BadSparse {
        /// What contradicts what.
        reason: String,
    },
    /// A prior of the number of components that is none.
    #[error(
        "the prior of the number of components is {text}: it must be beta-process, uniform, poisson:MEAN with a mean above 0, or \
         geometric:P with P between 0 and 1"
    )]
    BadComponentsPrior {
        /// What was given.
        text: String,
    },
    /// A prior of the number of components where there can be none.
    #[error("a prior of the number of components cannot be had here: {reason}")]
    NoComponentsPrior {
        /// Why not.
        reason: &'static str,
    },
    /// A prior parameter is out of its range.
    #[error("prior parameter {name} is {value}: it must be {range}")]
    BadPrior {
        /// Its letter in the paper.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// An option is out of its range.
    #[error("{name} is {value}: it must be {range}")]
    BadOption {
        /// The option.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// More components are forced than there can be, or none.
    #[error("the number of components to force is {wanted}: it must be between 1 and {most}{}", if *limited { ", the most there can be" } else { "" })]
    BadForced {
        /// What was given.
        wanted: usize,
        /// The most.
        most: usize,
        /// Whether somebody gave that limit.
        limited: bool,
    },
    /// The burn-in leaves nothing.
    #[error("burn-in is {burn_in}: it must be below the number of iterations, {iterations}")]
    BadBurnIn {
        /// What was given.
        burn_in: usize,
        /// The iterations.
        iterations: usize,
    },
    /// Reading the data so coarsely leaves no counts.
    #[error("coarsening {coarsening} leaves not a single count: use a larger one")]
    NothingLeft {
        /// The power of the likelihood.
        coarsening: f64,
    },
    /// A model that has no missing entries was given some.
    #[error("{engine} knows no missing entries: fill them in, or use the engine gibbs, ssmf or map")]
    NoMissing {
        /// The engine.
        engine: &'static str,
    },
    /// An engine cannot work on a part of the columns.
    #[error(
        "{engine} needs all columns in every step: a batch of {given} of {all} columns is not a valid sweep"
    )]
    PartialBatch {
        /// The engine.
        engine: &'static str,
        /// Columns in the batch.
        given: usize,
        /// Columns in the matrix.
        all: usize,
    },
    /// A checkpoint that is none, or one of another run.
    #[error("the checkpoint cannot be used: {reason}")]
    BadCheckpoint {
        /// What is wrong with it.
        reason: String,
    },
    /// A block of columns, or the sums over blocks, cannot be used.
    #[error("{reason}")]
    BadBlock {
        /// What is wrong, as a sentence.
        reason: String,
    },
    /// Somebody ended a fit of blocks before it had a result.
    #[error("the fit was ended before all blocks were done: there is no result")]
    Ended,
    /// The threads asked for could not be started.
    #[error("could not start {threads} threads: {reason}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system said.
        reason: String,
    },
}

/// What NaN may have been meant for.
fn missing_advice(value: f64) -> &'static str {
    if value.is_nan() { "; if it was not observed, say that entries are missing" } else { "" }
}

/// "a", "b" or "c".
fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}
