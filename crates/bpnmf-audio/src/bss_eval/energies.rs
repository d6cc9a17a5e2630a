//! The energies of what an estimate consists of: the filters are applied, the pieces squared and summed.
//!
//! The same energies follow from the correlations alone, but as differences of large numbers: with a good estimate they
//! would lose the digits that matter.

use super::blocks::{Blocks, Desk, Signal};
use super::filters::Filters;
use ndarray::ArrayView1;
use rayon::prelude::*;
use realfft::num_complex::Complex;

type Spectrum = Vec<Complex<f64>>;

/// The energies of one estimate against one reference.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Energies {
    /// Of the estimate.
    pub(super) estimate: f64,
    /// Of the filtered reference: s_target.
    pub(super) target: f64,
    /// Of what the other references add to it: e_interf.
    pub(super) interference: f64,
    /// Of what the reference does not explain: e_interf + e_artif.
    pub(super) distortion: f64,
    /// Of all that the references explain: s_target + e_interf.
    pub(super) explained: f64,
    /// Of what they do not: e_artif.
    pub(super) artifacts: f64,
}

impl Energies {
    fn add(&mut self, other: &Self) {
        self.estimate += other.estimate;
        self.target += other.target;
        self.interference += other.interference;
        self.distortion += other.distortion;
        self.explained += other.explained;
        self.artifacts += other.artifacts;
    }
}

/// One estimate, the references it is held against and the spectra of the filters.
struct Case<'a> {
    estimate: &'a Signal<'a>,
    against: &'a [usize],
    alone: Vec<Spectrum>,
    together: Vec<Spectrum>,
}

/// For every estimate the energies against each of the references in `against`.
pub(super) fn energies<'a>(
    references: &[Signal],
    estimates: &'a [Signal<'a>],
    against: &'a [Vec<usize>],
    filters: &Filters,
    blocks: &Blocks,
) -> Vec<Vec<Energies>> {
    let case = |(k, estimate): (usize, &'a Signal<'a>)| {
        let mut desk = blocks.desk();
        let against = &against[k][..];
        let alone =
            against.iter().map(|&i| spectrum(&mut desk, blocks, filters.alone[i].column(k))).collect();
        let together =
            filters.together.iter().map(|each| spectrum(&mut desk, blocks, each.column(k))).collect();
        Case { estimate, against, alone, together }
    };
    let cases: Vec<Case> = estimates.par_iter().enumerate().map(case).collect();
    let parts: Vec<_> =
        blocks.parts().par_iter().map(|starts| part(references, &cases, blocks, starts)).collect();
    let mut sums: Vec<Vec<Energies>> =
        against.iter().map(|each| vec![Energies::default(); each.len()]).collect();
    for part in parts {
        for (sums, values) in sums.iter_mut().zip(&part) {
            sums.iter_mut().zip(values).for_each(|(sum, value)| sum.add(value));
        }
    }
    sums
}

/// The spectrum of a filter.
fn spectrum(desk: &mut Desk, blocks: &Blocks, filter: ArrayView1<f64>) -> Spectrum {
    desk.time.fill(0.0);
    desk.time.iter_mut().zip(filter).for_each(|(to, from)| *to = *from);
    let mut spectrum = blocks.spectrum();
    desk.forward(&mut spectrum);
    spectrum
}

/// The energies within some blocks.
fn part(references: &[Signal], cases: &[Case], blocks: &Blocks, starts: &[isize]) -> Vec<Vec<Energies>> {
    let reach = blocks.taps - 1;
    let mut desk = blocks.desk();
    let mut spectra = vec![blocks.spectrum(); references.len()];
    let mut product = blocks.spectrum();
    let (mut estimate, mut explained) = (vec![0.0; blocks.step], vec![0.0; blocks.step]);
    let mut sums: Vec<Vec<Energies>> =
        cases.iter().map(|case| vec![Energies::default(); case.against.len()]).collect();
    for &start in starts {
        for (reference, spectrum) in references.iter().zip(&mut spectra) {
            reference.copy(start - reach as isize, &mut desk.time);
            desk.forward(spectrum);
        }
        for (case, sums) in cases.iter().zip(&mut sums) {
            case.estimate.copy(start, &mut estimate);
            product.fill(Complex::default());
            for (filter, spectrum) in case.together.iter().zip(&spectra) {
                product.iter_mut().zip(filter.iter().zip(spectrum)).for_each(|(sum, (a, b))| *sum += a * b);
            }
            desk.inverse(&mut product);
            // Before `reach`, samples of the end of the block have come round.
            explained.copy_from_slice(&desk.time[reach..]);
            let shared = Energies {
                estimate: square(&estimate),
                explained: square(&explained),
                artifacts: square_of_difference(&estimate, &explained),
                ..Default::default()
            };
            for ((&i, filter), sum) in case.against.iter().zip(&case.alone).zip(sums) {
                // One reference alone is all references together.
                if references.len() > 1 {
                    product
                        .iter_mut()
                        .zip(filter.iter().zip(&spectra[i]))
                        .for_each(|(product, (a, b))| *product = a * b);
                    desk.inverse(&mut product);
                }
                let target = &desk.time[reach..];
                sum.add(&Energies {
                    target: square(target),
                    interference: square_of_difference(&explained, target),
                    distortion: square_of_difference(&estimate, target),
                    ..shared
                });
            }
        }
    }
    sums
}

/// Sums in lanes: the order is fixed, and the processor can work on all lanes at once.
const LANES: usize = 8;

fn square(values: &[f64]) -> f64 {
    let (lanes, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for values in lanes {
        for lane in 0..LANES {
            sums[lane] += values[lane] * values[lane];
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|value| value * value).sum::<f64>()
}

fn square_of_difference(left: &[f64], right: &[f64]) -> f64 {
    let ((lefts, left), (rights, right)) = (left.as_chunks::<LANES>(), right.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (left, right) in lefts.iter().zip(rights) {
        for lane in 0..LANES {
            let difference = left[lane] - right[lane];
            sums[lane] += difference * difference;
        }
    }
    let rest = left.iter().zip(right).map(|(left, right)| (left - right) * (left - right));
    sums.iter().sum::<f64>() + rest.sum::<f64>()
}
