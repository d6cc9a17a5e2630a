//! Counts given out by multinomial draws: one by one where they are few, else a component after the other.

use super::{Allocated, Task};
use crate::infer::dictionary::Dictionary;
use crate::kernel::{LANES, Lanes, WORDS, dispatch};
use crate::random::{Key, Site, Stream, philox};

/// As many counts of an entry as are given out one by one. With more, a binomial draw for each component is faster.
const FEW: u64 = 128;

/// Counts that a binomial draw gave to component k at feature f.
#[derive(Debug, Clone, Copy)]
pub(super) struct Many {
    k: usize,
    f: usize,
    count: f64,
}

/// A component that is on in the column at hand, and where its units begin.
#[derive(Debug, Clone, Copy)]
struct Part {
    k: usize,
    h: f32,
    first: usize,
}

/// Memory of a thread, allocated once.
#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    /// Those that can expect most first: few counts are left soon.
    parts: Vec<Part>,
    /// The shares at the sixteen entries at hand, and those of the last components at an entry with many counts.
    ends: Ends<LANES>,
    last_ends: Ends<1>,
    /// The components at an entry with many counts, in their turn, and w h of each.
    turn: Vec<Part>,
    weights: Vec<f64>,
}

impl Scratch {
    fn sort(&mut self, dictionary: &Dictionary, parts: &[(usize, f32)], entries: usize) {
        self.parts.clear();
        self.parts.extend(parts.iter().enumerate().map(|(i, &(k, h))| Part { k, h, first: i * entries }));
        let expected = |part: &Part| f64::from(part.h) * dictionary.sum(part.k);
        self.parts.sort_unstable_by(|a, b| expected(b).total_cmp(&expected(a)).then(a.k.cmp(&b.k)));
    }
}

dispatch! {
    /// Draws Z_ft. ~ Multinomial(X_ft, phi) for the columns from `first` on, and adds up over f to `shares`, K a column.
    pub(super) fn sample [] (
        task: Task<'_>, first: usize, out: &mut [Allocated], shares: &mut [f64], scratch: &mut Scratch,
    ) = sample_columns
}

#[inline(always)]
fn sample_columns<V: Lanes>(
    task: Task<'_>,
    first: usize,
    out: &mut [Allocated],
    shares: &mut [f64],
    scratch: &mut Scratch,
) {
    let components = task.dictionary.components();
    for (c, (column, shares)) in out.iter_mut().zip(shares.chunks_exact_mut(components)).enumerate() {
        sample_column::<V>(task, first + c, column, scratch);
        for (k, units) in column.units() {
            shares[k] = f64::from(units.iter().map(|&units| u32::from(units)).sum::<u32>());
        }
        for many in &column.many {
            shares[many.k] += many.count;
        }
    }
}

#[inline(always)]
fn sample_column<V: Lanes>(task: Task<'_>, t: usize, column: &mut Allocated, scratch: &mut Scratch) {
    let Task { counts, dictionary, key, iteration, .. } = task;
    let Allocated { parts, rows, x, units, many, .. } = column;
    let x = super::entries(counts, t, x);
    many.clear();
    units.clear();
    units.resize(parts.len() * x.len(), 0);
    scratch.sort(dictionary, parts, x.len());
    let place = Place { key, iteration, t: t as u32 };
    let mut words = Words::new(place);
    for first in (0..x.len()).step_by(LANES) {
        let rows = rows.get(first..).unwrap_or(&[]);
        let parts = scratch.parts.iter();
        scratch
            .ends
            .fill::<V>(parts.map(|part| (weights_of(dictionary, part.k, first / LANES, rows), part.h)));
        for (lane, &count) in x[first..x.len().min(first + LANES)].iter().enumerate() {
            if count == 0.0 {
                continue;
            }
            let at = first + lane;
            let f = if rows.is_empty() { at } else { rows[lane] as usize };
            let mut entry = Entry { place, f: f as u32, stream: None };
            if count <= FEW as f64 {
                let Scratch { parts, ends, .. } = scratch;
                one_by_one::<V, LANES>(count as usize, parts, ends, lane, &mut words, &mut entry, at, units);
            } else {
                let (done, left) = by_components(count as u64, dictionary, f, scratch, &mut entry, many);
                let Scratch { turn, last_ends, .. } = scratch;
                last_ends.fill::<V>(turn[done..].iter().map(|part| ([dictionary.row(part.k)[f]], part.h)));
                one_by_one::<V, 1>(left, &turn[done..], last_ends, 0, &mut words, &mut entry, at, units);
            }
        }
    }
}

/// W at sixteen entries: those of a tile of features, or the features `rows`.
#[inline(always)]
fn weights_of(dictionary: &Dictionary, k: usize, tile: usize, rows: &[u32]) -> [f32; LANES] {
    if rows.is_empty() {
        return dictionary.row_tiles(k)[tile].0;
    }
    let (row, mut out) = (dictionary.row(k), [0.0; LANES]);
    for (out, &f) in out.iter_mut().zip(rows) {
        *out = row[f as usize];
    }
    out
}

/// Gives counts to one component after the other, a binomial part of what is left, until few are left. Those with most
/// of the entry come first: few are left soon. How many components have had their part, and what is left for the others.
fn by_components(
    count: u64,
    dictionary: &Dictionary,
    f: usize,
    scratch: &mut Scratch,
    entry: &mut Entry,
    many: &mut Vec<Many>,
) -> (usize, usize) {
    let Scratch { parts, turn, weights, .. } = scratch;
    turn.clone_from(parts);
    weights.clear();
    weights.extend(parts.iter().map(|part| f64::from(dictionary.row(part.k)[f]) * f64::from(part.h)));
    let mut left = count;
    for n in 0..turn.len() {
        if left <= FEW {
            return (n, left as usize);
        }
        let largest = (n..turn.len()).reduce(|i, j| if weights[j] > weights[i] { j } else { i }).unwrap_or(n);
        turn.swap(n, largest);
        weights.swap(n, largest);
        // Added up anew: no digits are lost when little is left.
        let sum: f64 = weights[n..].iter().rev().sum();
        let is_last = n + 1 == turn.len();
        let own = if is_last { left } else { entry.stream().binomial(left, weights[n] / sum) };
        many.push(Many { k: turn[n].k, f, count: own as f64 });
        left -= own;
    }
    (turn.len(), 0)
}

/// Gives out `left` counts of entry `at` to `parts`, which share as `ends` say.
#[inline(always)]
fn one_by_one<V: Lanes, const N: usize>(
    mut left: usize,
    parts: &[Part],
    ends: &Ends<N>,
    lane: usize,
    words: &mut Words,
    entry: &mut Entry,
    at: usize,
    units: &mut [u8],
) {
    let Some((last, _)) = parts.split_last() else { return };
    if parts.len() == 1 {
        units[last.first + at] += left as u8;
        return;
    }
    while left > 0 {
        let number = left.min(WORDS);
        left -= number;
        let words = words.take(number);
        let mine = u32::MAX >> (WORDS - number);
        let (before, ties) = if number <= WORDS / 2 {
            give::<V, N, true>(words, parts, &ends.whole, lane, mine, at, units)
        } else {
            give::<V, N, false>(words, parts, &ends.whole, lane, mine, at, units)
        };
        units[last.first + at] += (number as u32 - before) as u8;
        if ties != 0 {
            break_ties(words, ties, parts, ends, lane, entry, at, units);
        }
    }
}

/// Gives the words that `mine` names, of the first half only or of all, to all parts but the last. How many these are, and
/// which are equal to an end.
#[inline(always)]
fn give<V: Lanes, const N: usize, const HALF: bool>(
    words: &[u16; WORDS],
    parts: &[Part],
    ends: &[[u16; N]],
    lane: usize,
    mine: u32,
    at: usize,
    units: &mut [u8],
) -> (u32, u32) {
    let (mut before, mut ties) = (0, 0);
    for (part, end) in parts.iter().zip(ends) {
        let [less, equal] =
            if HALF { V::compare_half(words, end[lane]) } else { V::compare_words(words, end[lane]) };
        let below = (less & mine).count_ones();
        units[part.first + at] += (below - before) as u8;
        before = below;
        ties |= equal & mine;
    }
    (before, ties)
}

/// Counts whose first 16 bits are those of an end have been given to a component behind it. They are moved back if the
/// bits that follow say so.
#[cold]
#[inline(never)]
fn break_ties<const N: usize>(
    words: &[u16; WORDS],
    ties: u32,
    parts: &[Part],
    ends: &Ends<N>,
    lane: usize,
    entry: &mut Entry,
    at: usize,
    units: &mut [u8],
) {
    for (_, &word) in words.iter().enumerate().filter(|(i, _)| ties >> i & 1 == 1) {
        let point = f64::from(word) + entry.stream().uniform();
        // From the last end on, so that there is something to move.
        for n in (0..ends.whole.len()).rev() {
            if word == ends.whole[n][lane] && point < ends.exact[n][lane] {
                units[parts[n + 1].first + at] -= 1;
                units[parts[n].first + at] += 1;
            }
        }
    }
}

/// Where the shares of the components end when a point is drawn between 0 and 2^16, at `N` entries side by side. The last
/// one ends at 2^16 and is not listed.
#[derive(Debug, Clone, Default)]
struct Ends<const N: usize> {
    exact: Vec<[f64; N]>,
    whole: Vec<[u16; N]>,
}

/// The end of a share that takes up everything: as near to 2^16 as it can be and still begin with 16 bits.
const MOST: f64 = 65536.0 * (1.0 - f64::EPSILON / 2.0);

impl<const N: usize> Ends<N> {
    /// From w and h of a component after the other.
    #[inline(always)]
    fn fill<V: Lanes>(&mut self, weights: impl Iterator<Item = ([f32; N], f32)>) {
        self.exact.clear();
        self.whole.clear();
        let mut sum = [0.0; N];
        for (w, h) in weights {
            for l in 0..N {
                sum[l] = V::add_exact_product(f64::from(w[l]), f64::from(h), sum[l]);
            }
            self.exact.push(sum);
        }
        self.exact.pop();
        for l in 0..N {
            sum[l] = 65536.0 / sum[l];
        }
        for exact in &mut self.exact {
            let mut whole = [0; N];
            for l in 0..N {
                // Behind the last feature this is NaN and becomes the most.
                let end = exact[l] * sum[l];
                exact[l] = if end < MOST { end } else { MOST };
                // SAFETY: it is a number between 0 and 2^16.
                whole[l] = unsafe { exact[l].to_int_unchecked::<i32>() } as u16;
            }
            self.whole.push(whole);
        }
    }
}

/// What the random numbers of a column depend on.
#[derive(Clone, Copy)]
struct Place {
    key: Key,
    iteration: u32,
    t: u32,
}

/// The stream of an entry, made when it is needed.
struct Entry {
    place: Place,
    f: u32,
    stream: Option<Stream>,
}

impl Entry {
    fn stream(&mut self) -> &mut Stream {
        let Place { key, iteration, t } = self.place;
        self.stream.get_or_insert_with(|| key.stream(Site::Allocation, iteration, t, self.f))
    }
}

/// Words that are made at once.
const BATCH: usize = 8 * LANES;

/// 16 bits for every count of a column that is given out by itself.
struct Words {
    place: Place,
    /// The next block of the generator.
    next: u32,
    used: usize,
    /// What is behind the batch is read but does not matter.
    words: [u16; BATCH + WORDS],
}

impl Words {
    #[inline(always)]
    fn new(place: Place) -> Self {
        Self { place, next: 0, used: BATCH, words: [0; BATCH + WORDS] }
    }

    /// The next `number` words, and others behind them.
    #[inline(always)]
    fn take(&mut self, number: usize) -> &[u16; WORDS] {
        if self.used + number > BATCH {
            let Place { key, iteration, t } = self.place;
            let mut blocks = [[0; LANES]; 4];
            philox::lanes([Site::Unit as u32, iteration, t], self.next, key.words(), &mut blocks);
            for (i, word) in blocks.as_flattened().iter().enumerate() {
                self.words[2 * i] = *word as u16;
                self.words[2 * i + 1] = (word >> 16) as u16;
            }
            self.next = self.next.wrapping_add(LANES as u32);
            self.used = 0;
        }
        let at = self.used;
        self.used += number;
        self.words[at..].first_chunk().expect("room behind the batch")
    }
}

dispatch! {
    /// sums[k][f] += Z_ftk of the columns `done` in their order, for the components from `first` on.
    pub(crate) fn add_up_drawn [] (features: usize, first: usize, sums: &mut [f64], done: &[Allocated]) = add_up
}

#[inline(always)]
fn add_up<V: Lanes>(features: usize, first: usize, sums: &mut [f64], done: &[Allocated]) {
    let ours = first..first + sums.len() / features;
    for column in done {
        for (k, units) in column.units().filter(|(k, _)| ours.contains(k)) {
            let sums = &mut sums[(k - first) * features..][..features];
            if column.rows.is_empty() {
                for (sum, &units) in sums.iter_mut().zip(units) {
                    *sum += f64::from(units);
                }
            } else {
                for (&f, &units) in column.rows.iter().zip(units) {
                    sums[f as usize] += f64::from(units);
                }
            }
        }
        for many in column.many.iter().filter(|many| ours.contains(&many.k)) {
            sums[(many.k - first) * features + many.f] += many.count;
        }
    }
}

#[cfg(test)]
#[path = "sampled_tests.rs"]
mod tests;
