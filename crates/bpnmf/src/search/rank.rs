//! How many components rise above the noise, from the singular values of the whitened counts: a floor under the number of
//! components where counts are few.
//!
//! There the bound of the mean field prefers fewer components than there are: q factorises, and what it loses by that is
//! more than a weak component gains. Singular values do not know non-negativity, but they do not depend on a fit either.
//! Rows and columns are scaled so that the mean variance of every row and column is one (Sinkhorn; the variance of a Poisson
//! count is estimated by the count itself). The singular values of noise then end at sqrt F + sqrt T. Every component that
//! is seen takes one dimension of each side away from the noise, so what is left beside k of them ends at
//! sqrt(F - k) + sqrt(T - k). A component of strength s^2 shows as an eigenvalue s^2 + F + T + F T / s^2; below the edge it
//! shows in the sum of all of them alone.

use super::symmetric::Reduced;
use crate::meanfield::view::View;

/// The largest matrix that is looked at, by its smaller side.
const LARGEST: usize = 1200;

/// The smallest.
const SMALLEST: usize = 8;

/// So much of the variance is spread by rows and columns: without it scaling does not converge where most counts are 0.
const SPREAD: f64 = 0.02;

/// An eigenvalue is above the noise if it is beyond the edge by this many of the scales of Tracy and Widom: for Poisson
/// counts, and for counts whose scatter is an estimate, too. Behind a component with a signal of more than `NEAR` times the
/// threshold it takes one scale more for each threshold, up to `MOST_SCALES`: a weak component seldom stands alone.
const EDGE_SCALES: f64 = 1.0;
pub(super) const SCATTERED_EDGE_SCALES: f64 = 2.0;
const NEAR: f64 = 2.0;
const MOST_SCALES: f64 = 4.0;

/// The second eigenvalue, which decides whether there is anything beside one component, must be beyond this multiple of the
/// edge, too, and by `MOST_SCALES`.
const SECOND: f64 = 1.05 * 1.05;

/// Beyond this multiple of the edge an eigenvalue is a component wherever its vectors lie; nearer, one entry must not make
/// up more than this share of it.
const FAR: f64 = 1.2 * 1.2;
const STRAY: f64 = 0.05;

/// Counts have hidden components where there are fewer counts than this for every parameter.
const HIDDEN_COUNTS: f64 = 25.0;

/// Of the energy that is hidden so many standard errors are noise, and so many more for each threshold by which the weakest
/// component that is seen exceeds `HIDDEN_FROM` thresholds. A hidden component has this share of the threshold.
const HIDDEN_ERRORS: f64 = 0.5;
const HIDDEN_MORE_ERRORS: f64 = 1.5;
const HIDDEN_FROM: f64 = 1.5;
const HIDDEN_STRENGTH: f64 = 0.9;

/// The same at both ends of the range that is told beside the number: so many standard errors, and shares of the threshold. The
/// upper end takes fewer errors for each threshold by which the weakest component that is seen exceeds `HIDDEN_FROM`.
const RANGE_ERRORS: (f64, f64) = (1.5, 1.0);
const RANGE_FEWER_ERRORS: f64 = 0.6;
const RANGE_STRENGTH: (f64, f64) = (1.1, 0.7);

/// Where the weakest component that is seen is below this many thresholds, one more may be below the edge. Where only one is
/// seen at all, more are likely if the hidden energy is so many standard errors.
const ONE_MORE: f64 = 2.0;
const HIDDEN_BESIDE_ONE: f64 = 2.5;

/// Data scatter more than Poisson counts if their bulk is wider by this over the smaller side.
const SCATTERED: f64 = 7.0;

/// The bulk is that of Poisson counts if it is wider by no more than this over the smaller side. In between nothing is sure.
const POISSON: f64 = 4.0;

/// The smallest matrix whose bulk tells scatter from components: smaller ones have too few singular values beside those of
/// their components.
pub(crate) const SMALLEST_BULK: usize = 40;

/// Where more than this share of the singular values is above the edge beside the scatter, the bulk may be that of components.
const MOST_ABOVE: f64 = 1.0 / 3.0;

/// The most columns of a matrix that is larger on both sides.
pub(super) const LARGEST_BULK: usize = 600;

/// The positive entries of counts, empty rows and columns left out.
pub(super) struct Entries {
    /// The smaller side and the larger one.
    pub(super) small: usize,
    pub(super) large: usize,
    /// Whether the columns are the smaller side.
    pub(super) transposed: bool,
    /// Entries (index of the smaller side, x) for every index of the larger one.
    pub(super) lists: Vec<Vec<(u32, f64)>>,
    pub(super) total: f64,
}

impl Entries {
    pub(super) fn new(view: &View) -> Self {
        let mut place = vec![u32::MAX; view.features];
        let mut rows = 0;
        let columns: Vec<Vec<(usize, f64)>> = view
            .columns
            .iter()
            .map(|column| column.positive().collect())
            .filter(|list: &Vec<_>| !list.is_empty())
            .collect();
        for (f, _) in columns.iter().flatten() {
            if place[*f] == u32::MAX {
                place[*f] = rows;
                rows += 1;
            }
        }
        let (rows, total) = (rows as usize, view.total);
        let by_column: Vec<Vec<(u32, f64)>> =
            columns.iter().map(|list| list.iter().map(|&(f, x)| (place[f], x)).collect()).collect();
        if rows <= by_column.len() {
            return Self { small: rows, large: by_column.len(), transposed: false, lists: by_column, total };
        }
        let mut lists = vec![Vec::new(); rows];
        for (t, list) in by_column.iter().enumerate() {
            list.iter().for_each(|&(f, x)| lists[f as usize].push((t as u32, x)));
        }
        Self { small: by_column.len(), large: rows, transposed: true, lists, total }
    }
}

/// The spectrum of counts whitened for the variance x + scatter x^2.
pub(super) struct Spectrum {
    /// The smaller side.
    small: usize,
    /// Components above the edge, and eigenvalues there.
    components: usize,
    seen: Vec<f64>,
    /// Eigenvalues that are beyond the edge for sure, and those that are beyond it at all.
    clear: usize,
    possible: usize,
    /// The bulk over what it is for noise, less 1.
    excess: f64,
    /// All eigenvalues added up, and what of it is noise.
    energy: f64,
    noise: f64,
}

/// Where the eigenvalues of noise end, and the scale of how far the largest strays from there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    at: f64,
    scale: f64,
}

impl Edge {
    /// That of what is left beside `k` components.
    pub(super) fn beside(k: usize, (small, large): (f64, f64)) -> Self {
        let (small, large) = ((small - k as f64).max(1.0).sqrt(), (large - k as f64).max(1.0).sqrt());
        let root = small + large;
        Self { at: root * root, scale: root * libm::cbrt(1.0 / small + 1.0 / large) }
    }

    /// So many scales beyond it.
    pub(super) fn beyond(self, scales: f64) -> f64 {
        self.at + scales * self.scale
    }
}

/// The eigenvalues above the noise: each is compared with the edge of what the larger ones leave, `scales` of the signal of
/// the one before, in thresholds, beyond it.
fn seen(reduced: &Reduced, sides: (f64, f64), scales: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut seen = vec![reduced.eigenvalue(0)];
    while 2 * seen.len() < reduced.len() {
        let (k, next) = (seen.len(), reduced.eigenvalue(seen.len()));
        let edge = Edge::beside(k, sides);
        let before = signal(seen[k - 1], sides, k) / threshold(sides);
        let cut =
            if k == 1 { edge.beyond(MOST_SCALES).max(SECOND * edge.at) } else { edge.beyond(scales(before)) };
        if next < cut {
            break;
        }
        seen.push(next);
    }
    seen
}

/// The signal s^2 of a component at the edge.
fn threshold((small, large): (f64, f64)) -> f64 {
    (small * large).sqrt()
}

/// The signal s^2 behind an eigenvalue, one of `all` components that are seen.
fn signal(eigenvalue: f64, (small, large): (f64, f64), all: usize) -> f64 {
    let others = all.saturating_sub(1) as f64;
    let (small, large) = (small - others, large - others);
    let q = eigenvalue - small - large;
    0.5 * (q + (q * q - 4.0 * small * large).max(0.0).sqrt())
}

/// The quantile 0.75 of the eigenvalues of noise (Marchenko and Pastur).
pub(super) fn bulk_quantile(small: f64, large: f64) -> f64 {
    const POINTS: usize = 2001;
    let (low, high) = ((large.sqrt() - small.sqrt()).powi(2), (large.sqrt() + small.sqrt()).powi(2));
    let at = |i: usize| core::f64::consts::PI * i as f64 / (POINTS - 1) as f64;
    let x = |i: usize| 0.5 * (low + high) - 0.5 * (high - low) * libm::cos(at(i));
    let density =
        |i: usize| ((high - x(i)) * (x(i) - low)).max(0.0).sqrt() / x(i).max(1e-9) * libm::sin(at(i));
    let mut sums = vec![0.0; POINTS];
    for i in 1..POINTS {
        sums[i] = sums[i - 1] + 0.5 * (density(i) + density(i - 1));
    }
    let target = 0.75 * sums[POINTS - 1];
    let i = sums.partition_point(|sum| *sum < target).clamp(1, POINTS - 1);
    let between = (target - sums[i - 1]) / (sums[i] - sums[i - 1]).max(1e-300);
    x(i - 1) + between * (x(i) - x(i - 1))
}

impl Spectrum {
    fn new(entries: &Entries, scatter: f64) -> Self {
        let (n, small, large) = (entries.small, entries.small as f64, entries.large as f64);
        let variance = |x: f64| (x + scatter * x * x) / (1.0 + scatter);
        let (u, v) = whitening(entries, variance);
        let (mut gram, mut energy, mut noise) = (vec![0.0; n * n], 0.0, 0.0);
        let mut list: Vec<(usize, f64)> = Vec::new();
        for (entries, v) in entries.lists.iter().zip(&v) {
            list.clear();
            for &(i, x) in entries {
                let i = i as usize;
                list.push((i, x * (u[i] * v).sqrt()));
                noise += u[i] * variance(x) * v;
            }
            for &(i, x) in &list {
                energy += x * x;
                let row = &mut gram[i * n..(i + 1) * n];
                list.iter().for_each(|&(j, y)| row[j] += x * y);
            }
        }
        let reduced = Reduced::new(gram, n);
        let scales = if scatter == 0.0 { EDGE_SCALES } else { SCATTERED_EDGE_SCALES };
        let sides = (small, large);
        let clear = seen(&reduced, sides, |_| MOST_SCALES).len();
        let possible = seen(&reduced, sides, |_| 0.0).len();
        let seen = seen(&reduced, sides, |before| (scales + (before - NEAR).max(0.0)).min(MOST_SCALES));
        let stray = |value: f64| {
            let own = reduced.eigenvector(value);
            let mut most = 0.0f64;
            for (entries, v) in entries.lists.iter().zip(&v) {
                let along = |&(i, x): &(u32, f64)| x * (u[i as usize] * v).sqrt() * own[i as usize];
                most = most.max(entries.iter().map(along).sum::<f64>().powi(2) / value);
            }
            most * own.iter().map(|x| x * x).fold(0.0, f64::max) >= STRAY
        };
        let far = |k: usize| FAR * Edge::beside(k, (small, large)).at;
        let told = |&(k, value): &(usize, &f64)| k == 0 || *value > far(k) || !stray(*value);
        let components = seen.iter().enumerate().filter(told).count();
        let m = seen.len().min(n - 4);
        // The quantile 0.75 of the others, in between two of them.
        let others = n - m;
        let at = 0.75 * others as f64 - 0.5;
        let (below, between) = (at.floor() as usize, at.fract());
        let ascending = |i: usize| reduced.eigenvalue(n - 1 - i.min(others - 1));
        let quantile = ascending(below) + between * (ascending(below + 1) - ascending(below));
        let excess = quantile / bulk_quantile(small - m as f64, large - m as f64) - 1.0;
        Self { small: n, components, seen, clear, possible, excess, energy, noise }
    }

    /// Whether what is above the edge ends before half of the smaller side. If it does not, there is no noise to be seen by which
    /// it could be judged.
    fn ends(&self) -> bool {
        2 * self.seen.len() < self.small
    }

    /// What is hidden below the edge.
    fn hidden(&self, entries: &Entries) -> Hidden {
        let sides = (entries.small as f64, entries.large as f64);
        let signals = || self.seen.iter().map(|value| signal(*value, sides, self.seen.len()));
        let threshold = threshold(sides);
        Hidden {
            energy: (self.energy - self.noise - signals().sum::<f64>()) / threshold,
            error: core::f64::consts::SQRT_2,
            weakest: signals().next_back().unwrap_or(0.0) / threshold,
            few: entries.total < HIDDEN_COUNTS * self.components as f64 * (sides.0 + sides.1),
        }
    }
}

/// What is known of components below the edge; energies are in thresholds.
#[derive(Debug, Clone, Copy)]
struct Hidden {
    /// What is left of the sum of all eigenvalues, and its standard error.
    energy: f64,
    error: f64,
    /// The signal of the weakest component that is seen.
    weakest: f64,
    /// Whether there are so few counts that components can be hidden.
    few: bool,
}

impl Hidden {
    /// The number of components of this share of the threshold that the energy, with so many errors added, stands for.
    fn components(self, errors: f64, strength: f64) -> usize {
        ((self.energy + errors * self.error) / strength + 0.5).floor().max(0.0) as usize
    }

    /// Thresholds by which the weakest component seen is beyond those that have company below the edge.
    fn beyond(self) -> f64 {
        (self.weakest - HIDDEN_FROM).max(0.0)
    }
}

/// Scales of both sides with which the variance of every row and column is one on average.
pub(super) fn whitening(entries: &Entries, variance: impl Fn(f64) -> f64) -> (Vec<f64>, Vec<f64>) {
    let (mut u, mut v) = (vec![1.0; entries.small], vec![1.0; entries.large]);
    let (mut rows, mut columns) = (vec![0.0; entries.small], vec![0.0; entries.large]);
    for (column, list) in columns.iter_mut().zip(&entries.lists) {
        for &(i, x) in list {
            rows[i as usize] += variance(x);
            *column += variance(x);
        }
    }
    let total: f64 = columns.iter().sum();
    for round in 0..100 {
        let mut sums = vec![0.0; entries.small];
        for (list, v) in entries.lists.iter().zip(&v) {
            list.iter().for_each(|&(i, x)| sums[i as usize] += variance(x) * v);
        }
        let spread: f64 = columns.iter().zip(&v).map(|(c, v)| c * v).sum::<f64>() / total;
        let mut off = 0.0f64;
        for ((u, sum), row) in u.iter_mut().zip(&sums).zip(&rows) {
            let sum = (1.0 - SPREAD) * sum + SPREAD * row * spread;
            off = off.max((*u * sum / entries.large as f64 - 1.0).abs());
            *u = entries.large as f64 / sum;
        }
        let spread: f64 = rows.iter().zip(&u).map(|(r, u)| r * u).sum::<f64>() / total;
        for ((list, v), column) in entries.lists.iter().zip(&mut v).zip(&columns) {
            let sum: f64 = list.iter().map(|&(i, x)| u[i as usize] * variance(x)).sum();
            *v = entries.small as f64 / ((1.0 - SPREAD) * sum + SPREAD * column * spread);
        }
        if round > 0 && off < 1e-3 {
            break;
        }
    }
    (u, v)
}

/// What singular values show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rank {
    /// The components that can be told from noise; 1 if nothing can be said.
    pub(super) components: usize,
    /// Whether what is left looks like the noise of Poisson counts.
    pub(super) poisson: bool,
    /// Where counts are so few that components can be hidden below the noise: the numbers between which theirs lies.
    pub(super) range: Option<(usize, usize)>,
}

/// The number of components that can be told from noise by singular values, for counts that scatter with `alpha`, which is
/// infinite for Poisson counts.
pub(super) fn rank(view: &View, alpha: f64) -> Rank {
    const UNKNOWN: Rank = Rank { components: 1, poisson: false, range: None };
    if view.partial {
        return UNKNOWN;
    }
    let entries = Entries::new(view);
    if !(SMALLEST..=LARGEST).contains(&entries.small) {
        return UNKNOWN;
    }
    if alpha.is_finite() {
        let spectrum = Spectrum::new(&entries, 1.0 / alpha);
        return if spectrum.ends() { Rank { components: spectrum.components, ..UNKNOWN } } else { UNKNOWN };
    }
    let spectrum = Spectrum::new(&entries, 0.0);
    if !spectrum.ends() {
        return UNKNOWN;
    }
    let limit = SCATTERED / entries.small as f64;
    if spectrum.excess > limit {
        let spectrum = scattered(&entries).0;
        return if spectrum.ends() { Rank { components: spectrum.components, ..UNKNOWN } } else { UNKNOWN };
    }
    let hidden = spectrum.hidden(&entries);
    let components = with_hidden(&spectrum, hidden);
    let range = hidden.few.then(|| range(components, &spectrum, hidden));
    let poisson = (-limit..=POISSON / entries.small as f64).contains(&spectrum.excess);
    Rank { components, poisson, range }
}

/// The components above the edge, and those whose energy is hidden below it.
fn with_hidden(spectrum: &Spectrum, hidden: Hidden) -> usize {
    let known = spectrum.components;
    if known < 2 || !hidden.few {
        return known;
    }
    let errors = HIDDEN_ERRORS + HIDDEN_MORE_ERRORS * hidden.beyond();
    known + hidden.components(-errors, HIDDEN_STRENGTH).min(known + 2)
}

/// The numbers between which the number of components lies nine times in ten, `components` among them.
fn range(components: usize, spectrum: &Spectrum, hidden: Hidden) -> (usize, usize) {
    let (seen, known) = (spectrum.seen.len(), spectrum.components);
    let (mut low, mut high) = (spectrum.clear, spectrum.possible);
    let alone = seen < 2 && hidden.energy < HIDDEN_BESIDE_ONE * hidden.error;
    if !alone {
        low = low.max(known + hidden.components(-RANGE_ERRORS.0, RANGE_STRENGTH.0));
        let errors = RANGE_ERRORS.1 - RANGE_FEWER_ERRORS * hidden.beyond();
        high = high.max(known + hidden.components(errors, RANGE_STRENGTH.1));
        if hidden.weakest < ONE_MORE {
            high = high.max(known + 1);
        }
    }
    (low.min(components), high.max(components))
}

/// The same for counts that scatter more than Poisson: the scatter is what makes the bulk that of noise. What is hidden
/// below the edge cannot be told from it.
pub(super) fn scattered(entries: &Entries) -> (Spectrum, f64) {
    let (mut low, mut high) = (0.0, 1.0);
    while Spectrum::new(entries, high).excess > 0.0 && high < 1e3 {
        (low, high) = (high, 4.0 * high);
    }
    for _ in 0..10 {
        let middle = if low == 0.0 { 0.5 * (low + high) } else { f64::sqrt(low * high) };
        if Spectrum::new(entries, middle).excess > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    (Spectrum::new(entries, high), high)
}

/// What the bulk of the singular values says of the scatter of counts: alpha of the variance mean + mean^2 / alpha, infinite
/// for Poisson counts, and where nothing can be said because entries are missing or there are too few. Of many columns every
/// so manieth is looked at.
pub(super) fn alpha(view: &View) -> f64 {
    if view.partial {
        return f64::INFINITY;
    }
    let mut entries = Entries::new(view);
    if entries.small > LARGEST_BULK {
        entries = Entries::new(&view.sampled(view.columns.len().div_ceil(LARGEST_BULK)));
    }
    if !(SMALLEST_BULK..=LARGEST_BULK).contains(&entries.small) {
        return f64::INFINITY;
    }
    if Spectrum::new(&entries, 0.0).excess <= SCATTERED / entries.small as f64 {
        return f64::INFINITY;
    }
    let (spectrum, phi) = scattered(&entries);
    let above = spectrum.seen.len() as f64;
    if above > MOST_ABOVE * entries.small as f64 { f64::INFINITY } else { 1.0 / phi }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spectrum(components: usize, clear: usize) -> Spectrum {
        let seen = vec![1.0; components];
        let (excess, energy, noise) = (0.0, 0.0, 0.0);
        Spectrum { small: 100, components, seen, clear, possible: components, excess, energy, noise }
    }

    fn hidden(energy: f64, weakest: f64) -> Hidden {
        Hidden { energy, error: core::f64::consts::SQRT_2, weakest, few: true }
    }

    #[test]
    fn the_range_is_wide_where_energy_is_hidden_and_a_point_where_none_can_be() {
        let (weak, much) = (spectrum(6, 5), hidden(4.0, 1.2));
        assert_eq!(with_hidden(&weak, much), 10);
        assert_eq!(range(10, &weak, much), (8, 14));
        let (strong, none) = (spectrum(10, 10), hidden(0.0, 4.0));
        assert_eq!((with_hidden(&strong, none), range(10, &strong, none)), (10, (10, 10)));
        // One component alone and no more energy than noise has.
        assert_eq!(range(1, &spectrum(1, 1), hidden(1.0, 1.1)), (1, 1));
        assert!(range(1, &spectrum(1, 1), hidden(7.0, 1.1)).1 > 5);
    }

    #[test]
    fn the_number_that_is_told_is_in_its_range() {
        for energy in [-3.0, 0.0, 1.0, 3.0, 9.0] {
            for weakest in [0.5, 1.0, 1.8, 3.0] {
                let (spectrum, hidden) = (spectrum(4, 3), hidden(energy, weakest));
                let told = with_hidden(&spectrum, hidden);
                let (low, high) = range(told, &spectrum, hidden);
                assert!((low..=high).contains(&told), "{energy} {weakest}: {told} in {low} to {high}");
            }
        }
    }
}
