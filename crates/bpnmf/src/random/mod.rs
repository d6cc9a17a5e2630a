//! Random numbers as a function of where they are used: (seed, site, sweep, row, column) -> stream.
//!
//! No generator state is carried from one place to the next, so neither threads nor skipped draws
//! nor a resumed run change a single bit.

pub(crate) mod binomial;
mod draw;
pub(crate) mod gamma;
pub(crate) mod philox;
pub(crate) mod tables;

pub use draw::Stream;

/// What a random number is for. Each site has its own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Site {
    /// The uniform that decides a mask entry, first 32 bits.
    Mask = 1,
    /// The 32 bits behind them, needed only when the first ones do not decide.
    MaskTail = 2,
    /// W_fk.
    Dictionary = 3,
    /// H_kt.
    Activation = 4,
    /// H_kt where S_kt is off.
    OffActivation = 10,
    /// Z_ft. where a component after the other is given its part, and the bits behind the first ones of [`Self::Unit`].
    Allocation = 5,
    /// The counts of a column that are given out one by one, the first 16 bits of each.
    Unit = 11,
    /// The table counts of a column, the first 16 bits for each customer that is asked by itself.
    Table = 12,
    /// The bits behind them, and the customers that are asked in groups.
    TableTail = 13,
    /// pi_k.
    Inclusion = 6,
    /// A starting state.
    Init = 7,
    /// Binomial thinning of the data.
    Thinning = 8,
    /// Synthetic data.
    Synthesis = 9,
    /// A move between numbers of components: its choices, and the key of its path.
    Jump = 14,
    /// An exchange of counts between known components in a column.
    Transfer = 15,
    /// The columns that a search on a part of them looks at.
    Sample = 17,
}

/// The source of all random numbers of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    words: [u32; 2],
}

impl Key {
    /// The key of a seed.
    pub fn new(seed: u64) -> Self {
        Self { words: [seed as u32, (seed >> 32) as u32] }
    }

    /// The stream of one place. `sweep`, `i` and `j` are whatever counts that place.
    pub(crate) fn stream(self, site: Site, sweep: u32, i: u32, j: u32) -> Stream {
        Stream::new(self.words, [site as u32, sweep, i, j])
    }

    /// The key of what belongs to a place and needs streams of its own.
    pub(crate) fn drawn(stream: &mut Stream) -> Self {
        Self { words: [stream.word(), stream.word()] }
    }

    pub(crate) fn words(self) -> [u32; 2] {
        self.words
    }

    /// The key of a list of numbers at their places: another one for another list, whoever holds it.
    pub(crate) fn of_entries(self, entries: impl Iterator<Item = (usize, f64)>) -> Self {
        entries.fold(self, |key, (place, value)| {
            let bits = value.to_bits();
            let block = philox::block([place as u32, bits as u32, (bits >> 32) as u32, 1], key.words);
            Self { words: [block[0], block[1]] }
        })
    }

    /// The key of the `n`-th of several independent things with the same seed.
    pub fn derived(self, n: u64) -> Self {
        let block = philox::block([n as u32, (n >> 32) as u32, 0, 0], self.words);
        Self { words: [block[0], block[1]] }
    }
}
