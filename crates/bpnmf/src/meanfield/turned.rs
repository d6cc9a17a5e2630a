//! W with the components of a feature side by side, eight to a line: compressed columns, whose features lie apart, read and write
//! every feature at one place. Knows nothing of models.

use super::kernels::tree;
use crate::kernel::doubles::{EIGHT, Line};
use crate::kernel::{Lanes, dispatch};
use crate::workers::Workers;

/// Values of every component for every feature.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Turned {
    lines: Vec<Line>,
    /// Lines of a feature.
    groups: usize,
}

impl Turned {
    /// From rows of all features, a component after the other.
    pub(crate) fn new(rows: &[f64], features: usize) -> Self {
        let groups = (rows.len() / features.max(1)).div_ceil(EIGHT);
        let mut lines = vec![Line::ZERO; groups * features];
        for (k, row) in rows.chunks(features.max(1)).enumerate() {
            let (group, lane) = (k / EIGHT, k % EIGHT);
            for (line, value) in lines.chunks_exact_mut(groups).zip(row) {
                line[group].0[lane] = *value;
            }
        }
        Self { lines, groups }
    }

    /// The lines of a feature.
    #[inline(always)]
    fn of(&self, f: u32) -> &[Line] {
        &self.lines[f as usize * self.groups..][..self.groups]
    }
}

/// Some components with a number for each, by the lines that they are in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lined {
    /// Which lines, in ascending order.
    groups: Vec<usize>,
    values: Vec<Line>,
}

impl Lined {
    /// Takes other components, which come in ascending order.
    pub(crate) fn set(&mut self, components: impl Iterator<Item = (usize, f64)>) {
        self.groups.clear();
        self.values.clear();
        for (k, value) in components {
            let group = k / EIGHT;
            if self.groups.last() != Some(&group) {
                self.groups.push(group);
                self.values.push(Line::ZERO);
            }
            self.values.last_mut().expect("there is one").0[k % EIGHT] = value;
        }
    }

    /// The number of a component, which must be one of them; components are asked for in ascending order, `at` remembers where.
    #[inline(always)]
    pub(crate) fn next(&self, k: usize, at: &mut usize) -> f64 {
        while self.groups[*at] < k / EIGHT {
            *at += 1;
        }
        self.values[*at].0[k % EIGHT]
    }
}

/// [`explain_of`] where so many lines hold components. Loops in place of closures: a closure would be compiled for any machine.
#[inline(always)]
fn explain_lines<const N: usize>(rows: &Turned, at: &[u32], strengths: &Lined, field: &mut [f64]) {
    let groups: &[usize; N] = strengths.groups[..].try_into().expect("so many");
    let values: &[Line; N] = strengths.values[..].try_into().expect("so many");
    for (&f, field) in at.iter().zip(field) {
        let lines = rows.of(f);
        let mut sums = [0.0; EIGHT];
        for i in 0..N {
            let line = &lines[groups[i]].0;
            for lane in 0..EIGHT {
                sums[lane] += line[lane] * values[i].0[lane];
            }
        }
        *field = tree(sums);
    }
}

/// What is explained of every entry: the sum over the components of their values in `rows`, each times its strength.
#[inline(always)]
pub(super) fn explain_of<V: Lanes>(rows: &Turned, at: &[u32], strengths: &Lined, field: &mut Vec<f64>) {
    field.clear();
    field.resize(at.len(), 0.0);
    match strengths.groups.len() {
        0 => {}
        1 => explain_lines::<1>(rows, at, strengths, field),
        2 => explain_lines::<2>(rows, at, strengths, field),
        3 => explain_lines::<3>(rows, at, strengths, field),
        _ => {
            for (&f, field) in at.iter().zip(field) {
                let lines = rows.of(f);
                let mut sums = [0.0; EIGHT];
                for (&group, value) in strengths.groups.iter().zip(&strengths.values) {
                    let line = &lines[group].0;
                    for lane in 0..EIGHT {
                        sums[lane] += line[lane] * value.0[lane];
                    }
                }
                *field = tree(sums);
            }
        }
    }
}

#[inline(always)]
fn gather_group<const SQUARED: bool>(rows: &Turned, at: &[u32], weights: &[f64], group: usize) -> Line {
    // Two sums in turn, so that an addition need not wait for the one before it.
    let mut sums = [[0.0; EIGHT]; 2];
    for (i, (&f, &weight)) in at.iter().zip(weights).enumerate() {
        let line = &rows.of(f)[group].0;
        for lane in 0..EIGHT {
            let value = if SQUARED { line[lane] * line[lane] } else { line[lane] };
            sums[i % 2][lane] += value * weight;
        }
    }
    let mut out = Line::ZERO;
    for lane in 0..EIGHT {
        out.0[lane] = sums[0][lane] + sums[1][lane];
    }
    out
}

/// The sums over the entries of the values in `rows`, each times the weight of its entry, in place of the numbers of `out`.
#[inline(always)]
pub(super) fn gather_of<V: Lanes>(rows: &Turned, at: &[u32], weights: &[f64], out: &mut Lined) {
    for (&group, value) in out.groups.iter().zip(&mut out.values) {
        *value = gather_group::<false>(rows, at, weights, group);
    }
}

/// The same with the squares of the values.
#[inline(always)]
fn gather_squares_of<V: Lanes>(rows: &Turned, at: &[u32], weights: &[f64], out: &mut Lined) {
    for (&group, value) in out.groups.iter().zip(&mut out.values) {
        *value = gather_group::<true>(rows, at, weights, group);
    }
}

#[inline(always)]
fn spread_of<V: Lanes>(rows: &mut [Line], at: &[u32], weights: &[f64], values: &Line) {
    for (&f, &weight) in at.iter().zip(weights) {
        let row = &mut rows[f as usize].0;
        for lane in 0..EIGHT {
            row[lane] += values.0[lane] * weight;
        }
    }
}

#[cfg(test)]
dispatch! {
    /// See [`explain_of`].
    pub(crate) fn explain [] (rows: &Turned, at: &[u32], strengths: &Lined, field: &mut Vec<f64>) = explain_of
}
dispatch! {
    /// See [`gather_of`].
    pub(crate) fn gather [] (rows: &Turned, at: &[u32], weights: &[f64], out: &mut Lined) = gather_of
}
dispatch! {
    /// See [`gather_squares_of`].
    pub(crate) fn gather_squares [] (rows: &Turned, at: &[u32], weights: &[f64], out: &mut Lined) = gather_squares_of
}
dispatch! {
    /// The lines `at` += the values, each times its weight.
    fn spread [] (rows: &mut [Line], at: &[u32], weights: &[f64], values: &Line) = spread_of
}

/// Adds to `out`, which has a row of all features for every component, the entries of compressed columns times how strong each component is
/// there. `entries` are the features and weights of the columns, `strengths` the components of each in ascending order. Every sum is
/// taken in the order of the columns.
pub(crate) fn add_outer<'a, S: Iterator<Item = (usize, f64)>>(
    out: &mut [f64],
    features: usize,
    entries: impl Fn(usize) -> Option<(&'a [u32], &'a [f64])> + Sync,
    strengths: impl Fn(usize) -> S + Sync,
    columns: usize,
    workers: &Workers,
) {
    workers.for_each(out.chunks_mut(EIGHT * features.max(1)).enumerate(), |(group, out), _| {
        let mut lines = Vec::new();
        for t in 0..columns {
            let Some((at, weights)) = entries(t) else { continue };
            let (mut values, mut any) = (Line::ZERO, false);
            for (k, strength) in strengths(t).filter(|(k, _)| k / EIGHT == group) {
                values.0[k % EIGHT] = strength;
                any = true;
            }
            if !any {
                continue;
            }
            if lines.is_empty() {
                lines = Turned::new(out, features).lines;
            }
            spread(workers.simd, &mut lines, at, weights, &values);
        }
        if lines.is_empty() {
            return;
        }
        for (lane, row) in out.chunks_mut(features).enumerate() {
            row.iter_mut().zip(&lines).for_each(|(value, line)| *value = line.0[lane]);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Simd;

    const FEATURES: usize = 40;

    fn rows(components: usize) -> Vec<f64> {
        (0..components * FEATURES).map(|i| 0.1 + ((7 * i) % 31) as f64).collect()
    }

    fn close(x: f64, y: f64) -> bool {
        (x - y).abs() <= 1e-12 * (1.0 + y.abs())
    }

    #[test]
    fn sums_by_lines_are_those_of_a_plain_loop_with_any_number_of_lines() {
        for components in [1, 7, 8, 9, 20, 45] {
            let rows = rows(components);
            let turned = Turned::new(&rows, FEATURES);
            let at: Vec<u32> = (0..FEATURES as u32).filter(|f| f % 3 != 1).collect();
            let on: Vec<(usize, f64)> =
                (0..components).filter(|k| k % 4 != 2).map(|k| (k, 0.5 + k as f64)).collect();
            let weights: Vec<f64> = at.iter().map(|&f| 1.0 / (1.0 + f64::from(f))).collect();
            for simd in [Simd::Auto, Simd::Avx2, Simd::Plain] {
                let (mut lined, mut field) = (Lined::default(), Vec::new());
                lined.set(on.iter().copied());
                explain(simd, &turned, &at, &lined, &mut field);
                for (&f, field) in at.iter().zip(&field) {
                    let plain: f64 = on.iter().map(|(k, g)| rows[k * FEATURES + f as usize] * g).sum();
                    assert!(close(*field, plain), "{components}: {field} and {plain}");
                }
                for squared in [false, true] {
                    let sums = if squared { gather_squares } else { gather };
                    sums(simd, &turned, &at, &weights, &mut lined);
                    let mut place = 0;
                    for (k, _) in &on {
                        let value = |f: u32| rows[k * FEATURES + f as usize];
                        let term = |(f, weight): (&u32, &f64)| {
                            weight * if squared { value(*f) * value(*f) } else { value(*f) }
                        };
                        let plain: f64 = at.iter().zip(&weights).map(term).sum();
                        let found = lined.next(*k, &mut place);
                        assert!(close(found, plain), "{components} {squared}: {found} and {plain}");
                    }
                }
            }
        }
    }

    #[test]
    fn outer_products_are_added_to_what_was_there() {
        let at: Vec<u32> = vec![1, 5, 39];
        let weights = [[0.5, 2.0, 3.0], [1.0, 0.25, 4.0], [9.0, 9.0, 9.0]];
        let strengths = [vec![(0, 2.0), (9, 0.5)], vec![(9, 3.0), (10, 1.0)], vec![(3, 1.0)]];
        let mut out = rows(11);
        let mut plain = out.clone();
        for (weights, strengths) in weights.iter().zip(&strengths).take(2) {
            for (k, strength) in strengths {
                for (&f, weight) in at.iter().zip(weights) {
                    plain[k * FEATURES + f as usize] += strength * weight;
                }
            }
        }
        // The last column is not compressed.
        let entries = |t: usize| (t < 2).then_some((&at[..], &weights[t][..]));
        add_outer(&mut out, FEATURES, entries, |t| strengths[t].iter().copied(), 3, &Workers::serial());
        assert_eq!(out, plain);
    }
}
