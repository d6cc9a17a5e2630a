//! Symmetric positive definite systems by a blocked Cholesky factorization. Knows nothing of signals.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayViewMut2, Axis, s};
use rayon::prelude::*;

/// Columns of a panel: wide enough for a fast matrix product, many enough for several threads.
const PANEL: usize = 128;

/// Columns that are factored one by one.
const STRIP: usize = 32;

/// A pivot below this share of its diagonal entry is rounding: double precision cannot tell the columns apart.
const LEAST_PIVOT: f64 = 1e-13;

/// L of A = L L^T.
pub(super) struct Cholesky {
    order: usize,
    /// The columns of L, PANEL at a time; of each panel the rows from its diagonal on.
    panels: Vec<Array2<f64>>,
}

impl Cholesky {
    /// Factors the matrix with these entries on and below its diagonal; `None` if a column depends on those before it
    /// as far as double precision can tell.
    pub(super) fn new(order: usize, entry: impl Fn(usize, usize) -> f64 + Sync) -> Option<Self> {
        let starts: Vec<usize> = (0..order).step_by(PANEL).collect();
        let panel = |&start: &usize| {
            let shape = (order - start, PANEL.min(order - start));
            Array2::from_shape_fn(shape, |(r, c)| entry(start + r.max(c), start + r.min(c)))
        };
        let mut panels: Vec<Array2<f64>> = starts.par_iter().map(panel).collect();
        let diagonal: Vec<f64> = (0..order).map(|i| entry(i, i)).collect();
        for k in 0..panels.len() {
            let (done, open) = panels.split_at_mut(k + 1);
            factor_panel(&mut done[k], &diagonal[k * PANEL..])?;
            let column = &done[k];
            open.par_iter_mut().enumerate().for_each(|(ahead, panel)| {
                let top = (ahead + 1) * PANEL;
                let (rows, width) = (column.slice(s![top.., ..]), panel.ncols());
                let across = column.slice(s![top..top + width, ..]);
                general_mat_mul(-1.0, &rows, &across.t(), 1.0, panel);
            });
        }
        Some(Self { order, panels })
    }

    /// Replaces each column b of `right` (order x any number) by the solution of A x = b.
    pub(super) fn solve(&self, right: &mut Array2<f64>) {
        for (k, panel) in self.panels.iter().enumerate() {
            let (_, mut rest) = right.view_mut().split_at(Axis(0), k * PANEL);
            let width = panel.ncols();
            for r in 0..width {
                for c in 0..r {
                    subtract_row(&mut rest, r, c, panel[[r, c]]);
                }
                rest.row_mut(r).mapv_inplace(|value| value / panel[[r, r]]);
            }
            let (here, mut below) = rest.split_at(Axis(0), width);
            general_mat_mul(-1.0, &panel.slice(s![width.., ..]), &here, 1.0, &mut below);
        }
        for (k, panel) in self.panels.iter().enumerate().rev() {
            let (_, rest) = right.view_mut().split_at(Axis(0), k * PANEL);
            let width = panel.ncols();
            let (mut here, below) = rest.split_at(Axis(0), width);
            general_mat_mul(-1.0, &panel.slice(s![width.., ..]).t(), &below, 1.0, &mut here);
            for r in (0..width).rev() {
                for c in r + 1..width {
                    subtract_row(&mut here, r, c, panel[[c, r]]);
                }
                here.row_mut(r).mapv_inplace(|value| value / panel[[r, r]]);
            }
        }
        debug_assert_eq!(right.nrows(), self.order);
    }
}

/// Row r less `factor` times row c.
fn subtract_row(rows: &mut ArrayViewMut2<f64>, r: usize, c: usize, factor: f64) {
    for column in 0..rows.ncols() {
        rows[[r, column]] -= factor * rows[[c, column]];
    }
}

/// Factors a panel whose earlier columns are already subtracted.
fn factor_panel(panel: &mut Array2<f64>, diagonal: &[f64]) -> Option<()> {
    for start in (0..panel.ncols()).step_by(STRIP) {
        let end = (start + STRIP).min(panel.ncols());
        let (before, mut strip) = panel.slice_mut(s![start.., ..end]).split_at(Axis(1), start);
        let across = before.slice(s![..end - start, ..]).to_owned();
        general_mat_mul(-1.0, &before, &across.t(), 1.0, &mut strip);
        factor_strip(strip, &diagonal[start..])?;
    }
    Some(())
}

/// Factors a few columns, row by row: row r needs the rows of the triangle above it, and nothing else.
fn factor_strip(mut strip: ArrayViewMut2<f64>, diagonal: &[f64]) -> Option<()> {
    let width = strip.ncols();
    let mut triangle = [[0.0; STRIP]; STRIP];
    for r in 0..strip.nrows() {
        let mut row = [0.0; STRIP];
        for c in 0..width.min(r) {
            row[c] = (strip[[r, c]] - dot(&row[..c], &triangle[c])) / triangle[c][c];
        }
        if r < width {
            let pivot = strip[[r, r]] - dot(&row[..r], &row);
            if pivot <= LEAST_PIVOT * diagonal[r] {
                return None;
            }
            row[r] = pivot.sqrt();
            triangle[r] = row;
        }
        for c in 0..width {
            strip[[r, c]] = row[c];
        }
    }
    Some(())
}

/// The inner product over the length of the left side.
fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Positive definite, and far from diagonal.
    fn entry(r: usize, c: usize) -> f64 {
        let apart = (r as f64 - c as f64).abs();
        0.9f64.powf(apart) + if r == c { 0.1 * (r % 7) as f64 } else { 0.0 }
    }

    #[test]
    fn solutions_solve_systems_of_every_number_of_panels_and_strips() {
        for order in [1, 2, 31, 32, 33, 127, 128, 129, 300] {
            let right = Array2::from_shape_fn((order, 3), |(r, c)| ((r * 7 + c * 3) % 11) as f64 - 5.0);
            let mut solution = right.clone();
            Cholesky::new(order, entry).unwrap().solve(&mut solution);
            let product = Array2::from_shape_fn((order, order), |(r, c)| entry(r, c)).dot(&solution);
            let error = (&product - &right).iter().fold(0.0, |most: f64, error| most.max(error.abs()));
            assert!(error < 1e-12, "{order}: {error}");
        }
    }

    #[test]
    fn dependent_columns_are_found_wherever_they_are() {
        for copy in [1, 40, 130, 299] {
            let of = |i: usize| if i == copy { copy / 2 } else { i };
            assert!(Cholesky::new(300, |r, c| entry(of(r), of(c))).is_none(), "{copy}");
        }
    }
}
