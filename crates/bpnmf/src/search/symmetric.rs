//! Eigenvalues of a symmetric matrix by their rank, and single eigenvectors: Householder's reduction to a tridiagonal matrix,
//! bisection by Sturm sequences, and inverse iteration.

/// A symmetric matrix, reduced.
pub(super) struct Reduced {
    diagonal: Vec<f64>,
    beside: Vec<f64>,
    /// The reflections: row `k` holds the unit vector of the `k`-th, from entry `k + 1` on.
    reflections: Vec<f64>,
}

impl Reduced {
    /// Of the `n` x `n` matrix `a`, by rows.
    pub(super) fn new(mut a: Vec<f64>, n: usize) -> Self {
        let mut reflections = vec![0.0; n * n];
        let (mut p, mut beside) = (vec![0.0; n], vec![0.0; n.saturating_sub(1)]);
        for k in 0..n.saturating_sub(1) {
            let v = &mut reflections[k * n..(k + 1) * n];
            v[k + 1..].copy_from_slice(&a[k * n + k + 1..(k + 1) * n]);
            let norm = v[k + 1..].iter().map(|x| x * x).sum::<f64>().sqrt();
            let target = if v[k + 1] > 0.0 { -norm } else { norm };
            beside[k] = target;
            v[k + 1] -= target;
            let length = v[k + 1..].iter().map(|x| x * x).sum::<f64>().sqrt();
            if length <= 1e-300 {
                v.fill(0.0);
                continue;
            }
            v[k + 1..].iter_mut().for_each(|x| *x /= length);
            for i in k + 1..n {
                p[i] = a[i * n + k + 1..(i + 1) * n].iter().zip(&v[k + 1..]).map(|(a, v)| a * v).sum();
            }
            let along: f64 = p[k + 1..].iter().zip(&v[k + 1..]).map(|(p, v)| p * v).sum();
            p[k + 1..].iter_mut().zip(&v[k + 1..]).for_each(|(p, v)| *p = 2.0 * (*p - along * v));
            for i in k + 1..n {
                let (pi, vi) = (p[i], v[i]);
                let row = a[i * n + k + 1..(i + 1) * n].iter_mut().zip(&p[k + 1..]).zip(&v[k + 1..]);
                row.for_each(|((a, p), v)| *a -= vi * p + pi * v);
            }
        }
        let diagonal = (0..n).map(|i| a[i * n + i]).collect();
        Self { diagonal, beside, reflections }
    }

    pub(super) fn len(&self) -> usize {
        self.diagonal.len()
    }

    /// How many eigenvalues are above `x`.
    pub(super) fn above(&self, x: f64) -> usize {
        let mut q = 1.0;
        let mut below = 0;
        for (i, d) in self.diagonal.iter().enumerate() {
            let off = if i == 0 { 0.0 } else { self.beside[i - 1] * self.beside[i - 1] };
            q = d - x - off / if q == 0.0 { 1e-300 } else { q };
            below += usize::from(q < 0.0);
        }
        self.len() - below
    }

    /// The eigenvalue of this rank, 0 for the largest.
    pub(super) fn eigenvalue(&self, rank: usize) -> f64 {
        let reach = |i: usize| {
            let left = if i == 0 { 0.0 } else { self.beside[i - 1].abs() };
            left + self.beside.get(i).map_or(0.0, |x| x.abs())
        };
        let most = (0..self.len()).map(|i| self.diagonal[i].abs() + reach(i)).fold(0.0, f64::max);
        let (mut low, mut high) = (-most, most);
        for _ in 0..80 {
            let middle = 0.5 * (low + high);
            if self.above(middle) > rank {
                low = middle;
            } else {
                high = middle;
            }
        }
        0.5 * (low + high)
    }

    /// The eigenvector of an eigenvalue.
    pub(super) fn eigenvector(&self, value: f64) -> Vec<f64> {
        let n = self.len();
        let shift = value + 1e-12 * value.abs().max(1e-300);
        let mut x: Vec<f64> = (0..n).map(|i| 1.0 + 0.1 * ((i * 37 % 11) as f64 - 5.0) / 5.0).collect();
        for _ in 0..4 {
            x = self.solve(shift, x);
            let length = x.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-300);
            x.iter_mut().for_each(|x| *x /= length);
        }
        for k in (0..n.saturating_sub(1)).rev() {
            let v = &self.reflections[k * n..(k + 1) * n];
            let along: f64 = 2.0 * x[k + 1..].iter().zip(&v[k + 1..]).map(|(x, v)| x * v).sum::<f64>();
            x[k + 1..].iter_mut().zip(&v[k + 1..]).for_each(|(x, v)| *x -= along * v);
        }
        x
    }

    /// Solves (T - shift) x = b by elimination with pivots.
    fn solve(&self, shift: f64, mut b: Vec<f64>) -> Vec<f64> {
        let n = self.len();
        let off = |i: usize| self.beside.get(i).copied().unwrap_or(0.0);
        // Rows of the triangle: the diagonal and two entries beside it.
        let mut rows: Vec<[f64; 3]> = Vec::with_capacity(n);
        let mut row = [self.diagonal[0] - shift, off(0), 0.0];
        for i in 1..n {
            let mut next = [off(i - 1), self.diagonal[i] - shift, off(i)];
            if next[0].abs() > row[0].abs() {
                core::mem::swap(&mut row, &mut next);
                b.swap(i - 1, i);
            }
            let pivot = if row[0].abs() < 1e-300 { 1e-300 } else { row[0] };
            let factor = next[0] / pivot;
            b[i] -= factor * b[i - 1];
            rows.push([pivot, row[1], row[2]]);
            row = [next[1] - factor * row[1], next[2] - factor * row[2], 0.0];
        }
        rows.push([if row[0].abs() < 1e-300 { 1e-300 } else { row[0] }, 0.0, 0.0]);
        for i in (0..n).rev() {
            let known = |j: usize| if j < n { b[j] } else { 0.0 };
            b[i] = (b[i] - rows[i][1] * known(i + 1) - rows[i][2] * known(i + 2)) / rows[i][0];
        }
        b
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Key, Site};

    #[test]
    fn eigenvalues_and_vectors_solve_the_equation() {
        for n in [1, 2, 3, 10, 41] {
            let mut stream = Key::new(n as u64).stream(Site::Synthesis, 0, 0, 0);
            let y: Vec<f64> = (0..n * (n + 5)).map(|_| stream.uniform() - 0.3).collect();
            let product = |i: usize, j: usize| -> f64 {
                (0..n + 5).map(|t| y[i * (n + 5) + t] * y[j * (n + 5) + t]).sum()
            };
            let a: Vec<f64> = (0..n * n).map(|at| product(at / n, at % n)).collect();
            let reduced = Reduced::new(a.clone(), n);
            let values: Vec<f64> = (0..n).map(|rank| reduced.eigenvalue(rank)).collect();
            assert!(values.windows(2).all(|pair| pair[0] >= pair[1]));
            let trace: f64 = (0..n).map(|i| a[i * n + i]).sum();
            assert!((values.iter().sum::<f64>() - trace).abs() < 1e-9 * trace, "{n}");
            for &value in &values {
                let x = reduced.eigenvector(value);
                for i in 0..n {
                    let ax: f64 = (0..n).map(|j| a[i * n + j] * x[j]).sum();
                    assert!((ax - value * x[i]).abs() < 1e-8 * values[0], "{n}: {ax} {}", value * x[i]);
                }
            }
        }
    }
}
