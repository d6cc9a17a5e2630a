//! The number of tables in a Chinese restaurant: CRT(n, r) is the sum of independent Bernoulli(r / (r + i - 1)), i = 1 .. n.
//! Exact but for the rounding of doubles, for any n up to 2^53.
//!
//! The first thousand customers are asked one by one, sixteen at a time, each by 16 random bits and, if these do not
//! decide, by those behind them. Later customers come in groups whose probabilities lie between `low` and `low + range`:
//! a customer for whom the uniform number is below `low` surely opens a table, and how many these are is binomial; those
//! for whom it falls into the range are found by geometric gaps and looked at one by one. Groups are so wide that a few
//! are in the range. That takes about sqrt(r) log(1 + n / r) groups, however large n is.

use super::{Key, Site, Stream, philox};
use crate::kernel::{LANES, Lanes};
use crate::special::{digamma, ln, ln_1p};

/// Customers that are asked one by one.
const ONE_BY_ONE: u64 = 1024;

/// Customers of a group that are expected to be in its range.
const IN_RANGE: f64 = 12.0;

/// The random numbers of the entries of one column, one after the other.
pub(crate) struct Seats {
    key: Key,
    iteration: u32,
    t: u32,
    /// The next block of the generator.
    next: u32,
    /// Sixteen words after the other, and how many such have been used.
    words: [[u32; LANES]; 4],
    used: usize,
    /// Sixteen of them that are used one by one, and how many have been.
    singly: [u32; LANES],
    used_singly: usize,
}

impl Seats {
    /// Those of column `t`.
    #[inline(always)]
    pub(crate) fn new(key: Key, iteration: u32, t: usize) -> Self {
        let (words, singly) = ([[0; LANES]; 4], [0; LANES]);
        Self { key, iteration, t: t as u32, next: 0, words, used: 4, singly, used_singly: LANES }
    }

    /// CRT(customers, concentration) for the entry of feature `f`. The entries of a column must come in their order.
    #[inline(always)]
    pub(crate) fn tables<V: Lanes>(&mut self, customers: u64, concentration: f64, f: usize) -> u64 {
        let mut stream = None;
        // The first customer always opens a table.
        let first = customers.min(ONE_BY_ONE);
        let mut tables = first.min(1);
        let mut seated = 1;
        let asked = Asked::new(concentration);
        while seated < first {
            let words = *self.sixteen();
            for half in [words.map(|word| word & 0xffff), words.map(|word| word >> 16)] {
                let [sure, open] = asked.ask::<V>(&half, seated, first);
                tables += u64::from(sure.count_ones());
                if open != 0 {
                    let stream = stream.get_or_insert_with(|| self.stream(f));
                    tables += asked.ask_again(&half, seated, open, stream);
                }
                seated += LANES as u64;
                if seated >= first {
                    break;
                }
            }
        }
        if customers > first {
            let mut stream = stream.unwrap_or_else(|| self.stream(f));
            tables += self.in_groups(customers, first, concentration, &mut stream);
        }
        tables
    }

    /// The stream of an entry, for what the words of the column do not say.
    fn stream(&self, f: usize) -> Stream {
        self.key.stream(Site::TableTail, self.iteration, self.t, f as u32)
    }

    /// The next sixteen words.
    #[inline(always)]
    fn sixteen(&mut self) -> &[u32; LANES] {
        if self.used == 4 {
            let counter = [Site::Table as u32, self.iteration, self.t];
            philox::lanes(counter, self.next, self.key.words(), &mut self.words);
            self.next = self.next.wrapping_add(LANES as u32);
            self.used = 0;
        }
        self.used += 1;
        &self.words[self.used - 1]
    }

    /// Uniform on (0, 1).
    #[inline(always)]
    fn uniform(&mut self) -> f64 {
        if self.used_singly == LANES {
            (self.singly, self.used_singly) = (*self.sixteen(), 0);
        }
        let at = self.used_singly;
        self.used_singly += 2;
        let bits = u64::from(self.singly[at]) << 32 | u64::from(self.singly[at + 1]);
        ((bits >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
    }

    /// The tables that the customers after the first `seated` open.
    #[inline(always)]
    fn in_groups(&mut self, customers: u64, mut seated: u64, concentration: f64, stream: &mut Stream) -> u64 {
        let r = concentration;
        let width = (IN_RANGE / r).sqrt();
        let mut tables = 0;
        while seated < customers {
            // r + i - 1 of the first customer of the group, and of the last one.
            let first = r + seated as f64;
            let number = ((width * first) as u64).clamp(1, customers - seated);
            let steps = (number - 1) as f64;
            let last = first + steps;
            let (low, range) = (r / last, r * steps / (first * last));
            let gap = -1.0 / ln_1p(range / (1.0 - range));
            let (mut at, mut in_range) = (0.0, 0);
            loop {
                // Rounded down; a number that is too large is all the same.
                at += (ln(self.uniform()) * gap).min(number as f64) as i64 as f64;
                if at > steps {
                    break;
                }
                in_range += 1;
                // How far the probability is above `low`, with all its digits.
                let above = r * (steps - at) / ((first + at) * last);
                tables += u64::from(self.uniform() * range < above);
                at += 1.0;
            }
            tables += stream.binomial(number - in_range, low / (1.0 - range));
            seated += number;
        }
        tables
    }
}

/// Customers who are asked sixteen at a time, each by the first 16 bits of a uniform number u: he opens a table if
/// u (r + i - 1) < r.
struct Asked {
    concentration: f64,
    /// r 2^16 in single precision, less and more by a margin.
    low: f32,
    high: f32,
}

/// 2^16.
const WORD: f64 = 65536.0;

/// Comparisons in single precision are trusted beyond this relative error: five roundings, and as much again.
const MARGIN: f64 = 1e-6;

/// Concentrations out of this range are all the same in single precision: nothing is decided there.
const RANGE: [f64; 2] = [1e-30, 1e30];

/// The lanes.
const INDICES: [f32; LANES] = {
    let (mut out, mut lane) = ([0.0; LANES], 0);
    while lane < LANES {
        out[lane] = lane as f32;
        lane += 1;
    }
    out
};

impl Asked {
    #[inline(always)]
    fn new(concentration: f64) -> Self {
        let bound = concentration.clamp(RANGE[0], RANGE[1]) * WORD;
        Self { concentration, low: (bound * (1.0 - MARGIN)) as f32, high: (bound * (1.0 + MARGIN)) as f32 }
    }

    /// Of the sixteen customers after the first `seated`, who are `customers` in all, those who open a table whatever the bits
    /// behind the first ones are, and those whom these decide. `words` has their bits.
    #[inline(always)]
    fn ask<V: Lanes>(&self, words: &[u32; LANES], seated: u64, customers: u64) -> [u16; 2] {
        let before = (self.concentration.clamp(RANGE[0], RANGE[1]) + seated as f64) as f32;
        let (size, word) = (V::splat(before).add(V::load(&INDICES)), V::from_words(words));
        let sure = word.add(V::splat(1.0)).mul(size).le(V::splat(self.low));
        let possible = V::splat(self.high).gt(word.mul(size));
        let here = (customers - seated).min(LANES as u64);
        let here = (u32::from(u16::MAX) >> (LANES as u64 - here)) as u16;
        [sure & here, possible & !sure & here]
    }

    /// How many of the customers `open`, whom the first bits do not decide, open a table.
    #[cold]
    #[inline(never)]
    fn ask_again(&self, words: &[u32; LANES], seated: u64, open: u16, stream: &mut Stream) -> u64 {
        let mut tables = 0;
        for lane in (0..LANES).filter(|lane| open >> lane & 1 == 1) {
            let size = self.concentration + (seated + lane as u64) as f64;
            let point = f64::from(words[lane]) + stream.uniform();
            tables += u64::from(point * size < self.concentration * WORD);
        }
        tables
    }
}

/// E CRT(n, r) = r (psi(r + n) - psi(r)), for any n > 0.
pub(crate) fn expected_tables(customers: f64, concentration: f64) -> f64 {
    let r = concentration;
    if r > 1e5 * customers.max(1.0) {
        // Three terms of n - n (n - 1) / (2 r) + ..., where a difference would lose its digits.
        let (n, inverse) = (customers, 1.0 / r);
        return n - 0.5 * n * (n - 1.0) * inverse * (1.0 - (2.0 * n - 1.0) * inverse / 3.0);
    }
    r * (digamma(r + customers) - digamma(r))
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
