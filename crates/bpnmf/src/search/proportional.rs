//! Whether counts scatter by a multiple of what Poisson counts do, whatever their rates: variance (1 + theta) x rate.
//!
//! Scaling rows and columns by the counts themselves is right for such counts, but for the factor 1 + theta, which the bulk of the
//! singular values tells. What the components that then rise above the noise leave of every entry must fit that variance
//! nearly as well as one that may grow otherwise with the rate, and much better than rate + rate^2 / alpha; and it must not
//! need more components than rate + rate^2 / alpha does.

use super::rank::{Edge, Entries, LARGEST_BULK, SCATTERED_EDGE_SCALES, bulk_quantile, scattered, whitening};
use super::symmetric::Reduced;
use crate::meanfield::view::View;
use crate::special::ln;

/// The most that a freer variance may gain, in nats an entry, and as a share of what it gains over rate + rate^2 / alpha.
const MOST_GAIN: f64 = 0.1;
const MOST_SHARE: f64 = 0.2;

/// Entries nearer to the components than this say nothing about what is left.
const LEAST_LEFT: f64 = 0.2;

/// Where more than this share of the entries is zero, variances of single entries say little.
const DENSE: f64 = 0.5;

/// Rounds of the regression.
const ROUNDS: usize = 20;

/// 1 + theta; `None` if counts do not scatter that way, or nothing can be said. It is for counts that scatter more than Poisson
/// counts, none of them missing.
pub(super) fn factor(view: &View) -> Option<f64> {
    let entries = Entries::new(view);
    let (small, large) = (entries.small, entries.large);
    let positive: usize = entries.lists.iter().map(Vec::len).sum();
    if small > LARGEST_BULK || (positive as f64) < DENSE * (small * large) as f64 {
        return None;
    }
    let whitened = Whitened::new(&entries, |x| x);
    let (factor, components) = whitened.factor()?;
    let (_, phi) = scattered(&entries);
    let curved = Whitened::new(&entries, |x| (x + phi * x * x) / (1.0 + phi));
    if components > curved.components() {
        return None;
    }
    let left = whitened.left(&entries, components, factor);
    let [flat, curved, free] = [&[0][..], &[1], &[0, 1, 2, 3]].map(|terms| left.fit(terms));
    let many = left.entries.len() as f64;
    let near = free - flat <= MOST_GAIN * many && free - flat <= MOST_SHARE * (free - curved);
    (factor > 1.0 && near).then_some(factor)
}

/// Counts with rows and columns scaled for a variance.
struct Whitened {
    /// The counts, `small` x `large` by columns, and their scales.
    scaled: Vec<f64>,
    u: Vec<f64>,
    v: Vec<f64>,
    reduced: Reduced,
    /// Largest first.
    eigenvalues: Vec<f64>,
}

impl Whitened {
    fn new(entries: &Entries, variance: impl Fn(f64) -> f64) -> Self {
        let n = entries.small;
        let (u, v) = whitening(entries, variance);
        let mut scaled = vec![0.0; n * entries.large];
        for ((column, list), v) in scaled.chunks_mut(n).zip(&entries.lists).zip(&v) {
            list.iter().for_each(|&(i, x)| column[i as usize] = x * (u[i as usize] * v).sqrt());
        }
        let mut gram = vec![0.0; n * n];
        for column in scaled.chunks(n) {
            for (row, x) in gram.chunks_mut(n).zip(column).filter(|(_, x)| **x > 0.0) {
                row.iter_mut().zip(column).for_each(|(sum, y)| *sum += x * y);
            }
        }
        let reduced = Reduced::new(gram, n);
        let eigenvalues = (0..n).map(|rank| reduced.eigenvalue(rank)).collect();
        Self { scaled, u, v, reduced, eigenvalues }
    }

    /// Whether the eigenvalue after the first `k` is above the edge of noise with this many times the variance of Poisson counts.
    fn seen(&self, k: usize, factor: f64) -> bool {
        let sides = (self.u.len() as f64, self.v.len() as f64);
        self.eigenvalues[k] >= factor * Edge::beside(k, sides).beyond(SCATTERED_EDGE_SCALES)
    }

    /// The numbers of components there can be.
    fn numbers(&self) -> impl Iterator<Item = usize> {
        1..self.u.len() / 2
    }

    /// The components above noise with the variance of Poisson counts.
    fn components(&self) -> usize {
        self.numbers().find(|&k| !self.seen(k, 1.0)).unwrap_or(self.u.len() / 2)
    }

    /// The bulk of what `k` components leave over what it is for Poisson counts.
    fn bulk(&self, k: usize) -> f64 {
        let (n, large) = (self.u.len(), self.v.len() as f64);
        let others = n - k;
        let at = 0.75 * others as f64 - 0.5;
        let (below, between) = (at.floor() as usize, at.fract());
        let ascending = |i: usize| self.eigenvalues[n - 1 - i.min(others - 1)];
        let quantile = ascending(below) + between * (ascending(below + 1) - ascending(below));
        quantile / bulk_quantile(others as f64, large - k as f64)
    }

    /// The fewest components whose next eigenvalue is noise by the bulk of what they leave; and that factor.
    fn factor(&self) -> Option<(f64, usize)> {
        self.numbers().map(|k| (self.bulk(k), k)).find(|&(factor, k)| !self.seen(k, factor))
    }

    /// What so many components leave of every entry.
    fn left(&self, entries: &Entries, components: usize, factor: f64) -> Left {
        let n = self.u.len();
        let vectors = self.vectors(components);
        let mut of_small = vec![1.0; n];
        for vector in &vectors {
            of_small.iter_mut().zip(vector).for_each(|(left, x)| *left -= x * x);
        }
        let (mut rows, mut columns) = (vec![0.0; n], vec![0.0; self.v.len()]);
        for (list, column) in entries.lists.iter().zip(&mut columns) {
            list.iter().for_each(|&(i, x)| {
                rows[i as usize] += x;
                *column += x;
            });
        }
        let totals = |i: usize, j: usize| if entries.transposed { rows[i] } else { columns[j] };
        let mut left = Vec::new();
        for (j, scaled) in self.scaled.chunks(n).enumerate() {
            let (mut fitted, mut of_column) = (vec![0.0; n], 1.0);
            for (vector, value) in vectors.iter().zip(&self.eigenvalues) {
                let along: f64 = vector.iter().zip(scaled).map(|(a, b)| a * b).sum();
                of_column -= along * along / value;
                fitted.iter_mut().zip(vector).for_each(|(sum, x)| *sum += along * x);
            }
            for i in 0..n {
                let free = of_small[i] * of_column;
                if free <= LEAST_LEFT {
                    continue;
                }
                let scale = (self.u[i] * self.v[j]).sqrt();
                let rate = (fitted[i] / scale).max(0.02 * rows[i] * columns[j] / entries.total);
                let residual = scaled[i] / scale - rate;
                left.push([residual * residual / free, rate, totals(i, j)]);
            }
        }
        Left { entries: left, factor }
    }

    /// The eigenvectors of the largest eigenvalues, at right angles.
    fn vectors(&self, components: usize) -> Vec<Vec<f64>> {
        let mut vectors: Vec<Vec<f64>> = Vec::new();
        for &value in &self.eigenvalues[..components] {
            let mut own = self.reduced.eigenvector(value);
            for other in &vectors {
                let along: f64 = own.iter().zip(other).map(|(a, b)| a * b).sum();
                own.iter_mut().zip(other).for_each(|(x, y)| *x -= along * y);
            }
            let length = own.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-300);
            own.iter_mut().for_each(|x| *x /= length);
            vectors.push(own);
        }
        vectors
    }
}

/// Squared residuals.
struct Left {
    /// Residual squared over the share of it that is left, rate, and total of the column.
    entries: Vec<[f64; 3]>,
    factor: f64,
}

/// What a variance may be made of beyond the rate m in a column with the total n.
const TERMS: [fn(f64, f64) -> f64; 4] = [|m, _| m, |m, _| m * m, |m, n| m * n, |_, n| n * n];

impl Left {
    /// The log-likelihood of the residuals, as normal ones, under the best variance that is the rate and these terms, none of them
    /// negative.
    fn fit(&self, terms: &[usize]) -> f64 {
        let mut sizes = [0.0; TERMS.len()];
        sizes[0] = self.factor - 1.0;
        let mut first = true;
        for _ in 0..ROUNDS {
            let (mut squares, mut sums) = ([[0.0; TERMS.len()]; TERMS.len()], [0.0; TERMS.len()]);
            for &[squared, rate, total] in &self.entries {
                let values = TERMS.map(|term| term(rate, total));
                let of_terms: f64 = values.iter().zip(&sizes).map(|(value, size)| value * size).sum();
                let weight = 1.0 / (rate + of_terms);
                for &i in terms {
                    sums[i] += weight * weight * values[i] * (squared - rate);
                    terms.iter().for_each(|&j| squares[i][j] += weight * weight * values[i] * values[j]);
                }
            }
            if core::mem::take(&mut first) {
                sizes = [0.0; TERMS.len()];
            }
            descend(&squares, &sums, terms, &mut sizes);
        }
        let of_entry = |&[squared, rate, total]: &[f64; 3]| {
            let of_terms: f64 = TERMS.iter().zip(&sizes).map(|(term, size)| size * term(rate, total)).sum();
            ln(rate + of_terms) + squared / (rate + of_terms)
        };
        -0.5 * self.entries.iter().map(of_entry).sum::<f64>()
    }
}

/// Least squares under the condition that nothing is negative, one size after the other.
fn descend<const N: usize>(squares: &[[f64; N]; N], sums: &[f64; N], terms: &[usize], sizes: &mut [f64; N]) {
    for _ in 0..500 {
        for &i in terms {
            let others: f64 = terms.iter().filter(|&&j| j != i).map(|&j| squares[i][j] * sizes[j]).sum();
            sizes[i] = if squares[i][i] > 0.0 { ((sums[i] - others) / squares[i][i]).max(0.0) } else { 0.0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;
    use crate::random::{Key, Site};

    /// Counts of four components with variance rate (1 + theta + rate / alpha).
    fn counts(theta: f64, alpha: f64, transposed: bool) -> Counts {
        let (features, observations, components) = (60, 90, 4);
        let mut stream = Key::new(11).stream(Site::Synthesis, 0, 0, 0);
        let w: Vec<f64> = (0..features * components).map(|_| stream.gamma(0.4)).collect();
        let h: Vec<f64> = (0..observations * components).map(|_| 300.0 * stream.gamma(1.0)).collect();
        let mut values = vec![0.0; features * observations];
        for t in 0..observations {
            for f in 0..features {
                let part = |k: usize| w[f * components + k] * h[t * components + k];
                let rate: f64 = (0..components).map(part).sum::<f64>() + 1.0;
                let e = theta + rate / alpha;
                let rate = if e > 0.0 { e * stream.gamma(rate / e) } else { rate };
                let at = if transposed { f * observations + t } else { t * features + f };
                values[at] = stream.poisson(rate);
            }
        }
        let (features, observations) =
            if transposed { (observations, features) } else { (features, observations) };
        Counts::from_dense(features, observations, values).unwrap()
    }

    #[test]
    fn a_variance_in_proportion_to_the_rate_is_told_from_others() {
        for transposed in [false, true] {
            for theta in [0.7, 1.0, 4.0] {
                let counts = counts(theta, f64::INFINITY, transposed);
                let found = factor(&View::new(&counts)).expect("it is in proportion");
                assert!((found / (1.0 + theta) - 1.0).abs() < 0.1, "{theta}: {found}");
            }
            for alpha in [5.0, 20.0, 100.0] {
                assert_eq!(factor(&View::new(&counts(0.0, alpha, transposed))), None, "alpha {alpha}");
            }
        }
    }

    #[test]
    fn sizes_that_would_be_negative_are_zero_in_least_squares() {
        let mut sizes = [0.0; 2];
        descend(&[[2.0, 1.0], [1.0, 2.0]], &[3.0, 0.5], &[0, 1], &mut sizes);
        assert_eq!(sizes, [1.5, 0.0]);
        descend(&[[2.0, 1.0], [1.0, 2.0]], &[4.0, 5.0], &[0, 1], &mut sizes);
        assert!((sizes[0] - 1.0).abs() < 1e-9 && (sizes[1] - 2.0).abs() < 1e-9);
    }
}
