//! The number of tables in a Chinese restaurant: CRT(n, r) is the sum of independent Bernoulli(r / (r + i - 1)), i = 1 .. n.
//! Exact but for the rounding of doubles, for any n up to 2^53.
//!
//! The first thousand customers are asked one by one, sixteen at a time, each by 31 random bits and, if these do not
//! decide, by those behind them. Later customers come in groups whose probabilities lie between `low` and `low + range`:
//! a customer for whom the uniform number is below `low` surely opens a table, and how many these are is binomial; those
//! for whom it falls into the range are found by geometric gaps and looked at one by one. Groups are so wide that a few
//! are in the range. That takes about sqrt(r) log(1 + n / r) groups, however large n is.

use super::{Key, Site, Stream, philox};
use crate::kernel::LANES;
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
    pub(crate) fn tables(&mut self, customers: u64, concentration: f64, f: usize) -> u64 {
        let mut stream = None;
        // The first customer always opens a table.
        let first = customers.min(ONE_BY_ONE);
        let mut tables = first.min(1);
        let mut seated = 1;
        while seated < first {
            let words = self.sixteen();
            let [sure, possible] = ask(words, seated, first, concentration);
            tables += u64::from(sure);
            if sure != possible {
                let words = *words;
                let stream = stream.get_or_insert_with(|| self.stream(f));
                tables += ask_again(&words, seated, first, concentration, stream);
            }
            seated += LANES as u64;
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

/// Asks sixteen customers after the first `seated`, of `customers`. How many open a table whatever the bits behind the
/// first 31 are, and how many may.
#[inline(always)]
fn ask(words: &[u32; LANES], seated: u64, customers: u64, concentration: f64) -> [u32; 2] {
    let (left, bound) = ((customers - seated) as f64, concentration * WORD);
    let (mut sure, mut possible) = (0, 0);
    for lane in 0..LANES {
        let size = size(seated, lane, left, concentration);
        let word = f64::from((words[lane] >> 1) as i32);
        sure += u32::from((word + 1.0) * size <= bound);
        possible += u32::from(word * size < bound);
    }
    [sure, possible]
}

/// 2^31.
const WORD: f64 = 2_147_483_648.0;

/// r + i - 1 for the customer in this lane; infinite behind the last one, who then opens no table.
#[inline(always)]
fn size(seated: u64, lane: usize, left: f64, concentration: f64) -> f64 {
    let lane = lane as f64;
    if lane < left { concentration + (seated as f64 + lane) } else { f64::INFINITY }
}

/// Of sixteen customers those whom the first 31 bits do not decide: how many of them open a table.
#[cold]
#[inline(never)]
fn ask_again(
    words: &[u32; LANES],
    seated: u64,
    customers: u64,
    concentration: f64,
    stream: &mut Stream,
) -> u64 {
    let (left, bound) = ((customers - seated) as f64, concentration * WORD);
    let mut tables = 0;
    for lane in 0..LANES {
        let (size, word) = (size(seated, lane, left, concentration), f64::from((words[lane] >> 1) as i32));
        if word * size < bound && (word + 1.0) * size > bound {
            tables += u64::from((word + stream.uniform()) * size < bound);
        }
    }
    tables
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
