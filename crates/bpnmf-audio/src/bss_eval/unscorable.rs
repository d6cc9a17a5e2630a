//! What can be wrong with a request for scores.

/// Why sounds cannot be scored. References and estimates are counted from 1, samples from 0.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Unscorable {
    /// There is nothing to score.
    #[error("there are no references: give at least one and an estimate for each")]
    Nothing,
    /// Every reference needs an estimate of its own.
    #[error(
        "there are {references} references and {estimates} estimates: give one estimate for each reference"
    )]
    Counts {
        /// How many references there are.
        references: usize,
        /// How many estimates there are.
        estimates: usize,
    },
    /// The sounds are not of one length.
    #[error(
        "{what} has {found} samples and reference 1 has {expected}: all sounds must have the same length"
    )]
    Lengths {
        /// The first sound of another length: "reference 2", "estimate 1".
        what: String,
        /// Its samples.
        found: usize,
        /// The samples of the first reference.
        expected: usize,
    },
    /// The sounds have no samples.
    #[error("the sounds have no samples: give at least one")]
    Empty,
    /// A sample is NaN or infinite.
    #[error("{what}: sample {sample} is {value}: samples must be finite")]
    NotFinite {
        /// The sound.
        what: String,
        /// The place of the sample.
        sample: usize,
        /// What stands there.
        value: f64,
    },
    /// The filters are empty.
    #[error("the distortion filters have 0 taps: use at least 1, 512 is usual")]
    NoTaps,
    /// The system of equations does not fit into a usual memory.
    #[error(
        "{references} references with filters of {taps} taps make {unknowns} unknowns, above the {most} that are \
         supported: use fewer of either"
    )]
    TooLarge {
        /// References that are not silent.
        references: usize,
        /// Taps of a filter.
        taps: usize,
        /// Their product.
        unknowns: usize,
        /// The largest product.
        most: usize,
    },
    /// The threads asked for could not be started.
    #[error("could not start {threads} threads: {reason}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system said.
        reason: String,
    },
}
