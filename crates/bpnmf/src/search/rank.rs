//! How many components rise above the noise, from the singular values of the whitened counts: a floor under the number of
//! components where counts are few.
//!
//! There the bound of the mean field prefers fewer components than there are: q factorises, and what it loses by that is
//! more than a weak component gains. Singular values do not know non-negativity, but they do not depend on a fit either.
//! Rows and columns are scaled so that the mean variance of every row and column is one (Sinkhorn; the variance of a Poisson
//! count is estimated by the count itself). The singular values of noise then end at sqrt F + sqrt T. A component of
//! strength s^2 shows as an eigenvalue s^2 + F + T + F T / s^2; below the edge it shows in the sum of all of them alone.

use super::symmetric::Reduced;
use crate::meanfield::view::View;

/// The largest matrix that is looked at, by its smaller side.
const LARGEST: usize = 1200;

/// The smallest.
const SMALLEST: usize = 8;

/// So much of the variance is spread by rows and columns: without it scaling does not converge where most counts are 0.
const SPREAD: f64 = 0.02;

/// An eigenvalue is above the noise beyond this multiple of the edge, and by two of the scale of Tracy and Widom.
const EDGE: f64 = 1.02 * 1.02;
const EDGE_SCALES: f64 = 2.0;

/// The second eigenvalue, which decides whether there is anything beside one component, must be further out.
const SECOND: f64 = 1.05 * 1.05;
const SECOND_SCALES: f64 = 4.0;

/// Beyond this multiple of the edge an eigenvalue is a component wherever its vectors lie; nearer, one entry must not make
/// up more than this share of it.
const FAR: f64 = 1.2 * 1.2;
const STRAY: f64 = 0.05;

/// An eigenvalue near the edge is noise if the next is this many times further out.
const GAP: f64 = 2.5;

/// Counts have hidden components where the weakest seen is below this many times the threshold, and where there are fewer
/// counts than this for every parameter.
const HIDDEN_BELOW: f64 = 1.75;
const HIDDEN_COUNTS: f64 = 25.0;

/// Of the energy that is hidden so many standard errors are noise; a hidden component has this share of the threshold.
const HIDDEN_ERRORS: f64 = 0.75;
const HIDDEN_STRENGTH: f64 = 0.8;

/// Data scatter more than Poisson counts if their bulk is wider by this over the smaller side.
const SCATTERED: f64 = 7.0;

/// The smallest matrix whose bulk tells scatter from components: smaller ones have too few singular values beside those of
/// their components.
const SMALLEST_BULK: usize = 40;

/// The most columns of a matrix that is larger on both sides.
const LARGEST_BULK: usize = 600;

/// The positive entries of counts, empty rows and columns left out.
struct Entries {
    /// The smaller side and the larger one.
    small: usize,
    large: usize,
    /// Entries (index of the smaller side, x) for every index of the larger one.
    lists: Vec<Vec<(u32, f64)>>,
    total: f64,
}

impl Entries {
    fn new(view: &View) -> Self {
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
            return Self { small: rows, large: by_column.len(), lists: by_column, total };
        }
        let mut lists = vec![Vec::new(); rows];
        for (t, list) in by_column.iter().enumerate() {
            list.iter().for_each(|&(f, x)| lists[f as usize].push((t as u32, x)));
        }
        Self { small: by_column.len(), large: rows, lists, total }
    }
}

/// The spectrum of counts whitened for the variance x + scatter x^2.
struct Spectrum {
    /// Components above the edge, and eigenvalues there.
    components: usize,
    seen: Vec<f64>,
    /// The bulk over what it is for noise, less 1.
    excess: f64,
    /// All eigenvalues added up, and what of it is noise.
    energy: f64,
    noise: f64,
    /// The signal that an eigenvalue at the edge stands for.
    threshold: f64,
}

/// The signal s^2 behind an eigenvalue.
fn signal(eigenvalue: f64, small: f64, large: f64) -> f64 {
    let q = eigenvalue - small - large;
    0.5 * (q + (q * q - 4.0 * small * large).max(0.0).sqrt())
}

/// The quantile 0.75 of the eigenvalues of noise (Marchenko and Pastur).
fn bulk_quantile(small: f64, large: f64) -> f64 {
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
        let root = small.sqrt() + large.sqrt();
        let edge = root * root;
        let scale = root * libm::cbrt(1.0 / small.sqrt() + 1.0 / large.sqrt());
        let cut = (EDGE * edge).max(edge + EDGE_SCALES * scale);
        let threshold = signal(cut, small, large);
        let mut seen: Vec<f64> =
            (0..reduced.above(cut).max(1)).map(|rank| reduced.eigenvalue(rank)).collect();
        if seen.get(1).is_none_or(|second| *second < (SECOND * edge).max(edge + SECOND_SCALES * scale)) {
            seen.truncate(1);
        }
        while let [.., before, last] = seen[..] {
            if last >= edge + SECOND_SCALES * scale || signal(before, small, large) <= GAP * threshold {
                break;
            }
            seen.pop();
        }
        let stray = |value: f64| {
            let own = reduced.eigenvector(value);
            let mut most = 0.0f64;
            for (entries, v) in entries.lists.iter().zip(&v) {
                let along = |&(i, x): &(u32, f64)| x * (u[i as usize] * v).sqrt() * own[i as usize];
                most = most.max(entries.iter().map(along).sum::<f64>().powi(2) / value);
            }
            most * own.iter().map(|x| x * x).fold(0.0, f64::max) >= STRAY
        };
        let components = 1 + seen[1..].iter().filter(|&&value| value > FAR * edge || !stray(value)).count();
        let m = seen.len().min(n - 4);
        // The quantile 0.75 of the others, in between two of them.
        let others = n - m;
        let at = 0.75 * others as f64 - 0.5;
        let (below, between) = (at.floor() as usize, at.fract());
        let ascending = |i: usize| reduced.eigenvalue(n - 1 - i.min(others - 1));
        let quantile = ascending(below) + between * (ascending(below + 1) - ascending(below));
        let excess = quantile / bulk_quantile(small - m as f64, large - m as f64) - 1.0;
        Self { components, seen, excess, energy, noise, threshold }
    }
}

/// Scales of both sides with which the variance of every row and column is one on average.
fn whitening(entries: &Entries, variance: impl Fn(f64) -> f64) -> (Vec<f64>, Vec<f64>) {
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
}

/// The number of components that can be told from noise by singular values.
pub(super) fn rank(view: &View) -> Rank {
    const UNKNOWN: Rank = Rank { components: 1, poisson: false };
    if view.partial {
        return UNKNOWN;
    }
    let entries = Entries::new(view);
    if !(SMALLEST..=LARGEST).contains(&entries.small) {
        return UNKNOWN;
    }
    let spectrum = Spectrum::new(&entries, 0.0);
    let limit = SCATTERED / entries.small as f64;
    if spectrum.excess > limit {
        return Rank { components: scattered(&entries).0.components, poisson: false };
    }
    Rank { components: with_hidden(&entries, &spectrum), poisson: spectrum.excess > -limit }
}

/// The components above the edge, and those whose energy is hidden below it.
fn with_hidden(entries: &Entries, spectrum: &Spectrum) -> usize {
    let (small, large) = (entries.small as f64, entries.large as f64);
    let known = spectrum.components;
    let signals = || spectrum.seen.iter().map(|value| signal(*value, small, large));
    let weakest = signals().next_back().unwrap_or(0.0);
    let few = entries.total < HIDDEN_COUNTS * known as f64 * (small + large);
    if known < 2 || weakest >= HIDDEN_BELOW * spectrum.threshold || !few {
        return known;
    }
    let hidden = spectrum.energy - spectrum.noise - signals().sum::<f64>();
    let hidden =
        (hidden - HIDDEN_ERRORS * (2.0 * small * large).sqrt()) / (HIDDEN_STRENGTH * spectrum.threshold);
    known + ((hidden + 0.5).floor().max(0.0) as usize).min(known + 2)
}

/// The same for counts that scatter more than Poisson: the scatter is what makes the bulk that of noise. What is hidden
/// below the edge cannot be told from it.
fn scattered(entries: &Entries) -> (Spectrum, f64) {
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
        let every = view.columns.len().div_ceil(LARGEST_BULK);
        let columns = view.columns.iter().step_by(every).cloned().collect();
        entries = Entries::new(&View::of(view.features, columns));
    }
    if !(SMALLEST_BULK..=LARGEST_BULK).contains(&entries.small) {
        return f64::INFINITY;
    }
    if Spectrum::new(&entries, 0.0).excess <= SCATTERED / entries.small as f64 {
        return f64::INFINITY;
    }
    1.0 / scattered(&entries).1
}
