//! Columns of which all features are looked at: the sweep has left their rates.

use super::chunk::{largest_inverse, share_chunks};
use super::sums::run;
use super::{Allocated, Allocation, Task, entries};
use crate::infer::dictionary::Dictionary;
use crate::infer::work::Work;
use crate::kernel::doubles::{Doubles, total_of};
use crate::kernel::{Tile, dispatch};

dispatch! {
    pub(super) fn share [] (
        task: Task<'_>, first: usize, works: &mut [Work], out: &mut [Allocated], shares: &mut [f64], sums: &mut Vec<Tile>,
    ) = share_columns
}

#[inline(always)]
fn share_columns<V: Doubles>(
    task: Task<'_>,
    first: usize,
    works: &mut [Work],
    out: &mut [Allocated],
    shares: &mut [f64],
    sums: &mut Vec<Tile>,
) {
    let Task { counts, dictionary, allocation, .. } = task;
    let columns = out.iter_mut().zip(works).zip(shares.chunks_exact_mut(dictionary.components()));
    for (t, ((column, work), shares)) in (first..).zip(columns) {
        column.start(shares);
        work.bring_in_order::<V>(counts, dictionary, &column.parts);
        if work.is_tame::<V>(largest_inverse(counts.column_totals()[t])) {
            column.log_likelihood = sum_of_logs::<V>(work.x(counts), work.rate());
            if allocation == Allocation::Expected {
                work.swap_ratio(&mut column.ratio);
                give_out::<V>(dictionary, column, shares);
            }
        } else {
            let x = core::mem::take(&mut column.x);
            let w = |_, k| dictionary.row_tiles(k);
            share_chunks::<V>(task, t, entries(counts, t, &x), work.x(counts), w, column, shares, sums);
            column.x = x;
        }
        column.finish(dictionary, shares);
    }
}

/// The sum of x log(rate).
#[inline(always)]
fn sum_of_logs<V: Doubles>(x: &[Tile], rate: &[Tile]) -> f64 {
    let (mut total, mut from) = (0.0, 0);
    while from < x.len() {
        let run = run(from, x.len());
        from = run.end;
        let mut sum = V::splat(0.0);
        for (x, rate) in x[run.clone()].iter().zip(&rate[run]) {
            // Where nothing is on the rate is 0 and so is the count: any number will do whose logarithm is finite.
            let rate = V::load(&rate.0).max(V::splat(f32::MIN_POSITIVE));
            sum = V::load(&x.0).fused(rate.ln_exactly(), sum);
        }
        total += total_of(sum);
    }
    total
}

/// What every component that is on is given, a few of them at a time.
#[inline(always)]
fn give_out<V: Doubles>(dictionary: &Dictionary, column: &Allocated, shares: &mut [f64]) {
    let (fours, rest) = column.parts.as_chunks::<4>();
    for parts in fours {
        give_some::<V, 4>(dictionary, &column.ratio, parts, shares);
    }
    match *rest {
        [a] => give_some::<V, 1>(dictionary, &column.ratio, &[a], shares),
        [a, b] => give_some::<V, 2>(dictionary, &column.ratio, &[a, b], shares),
        [a, b, c] => give_some::<V, 3>(dictionary, &column.ratio, &[a, b, c], shares),
        _ => {}
    }
}

#[inline(always)]
fn give_some<V: Doubles, const N: usize>(
    dictionary: &Dictionary,
    ratio: &[Tile],
    parts: &[(usize, f32); N],
    shares: &mut [f64],
) {
    let mut from = 0;
    while from < ratio.len() {
        let run = run(from, ratio.len());
        from = run.end;
        let ratio = &ratio[run.clone()];
        let mut w = [ratio; N];
        for n in 0..N {
            w[n] = &dictionary.row_tiles(parts[n].0)[run.clone()];
        }
        let mut sums = [V::splat(0.0); N];
        for at in 0..ratio.len() {
            let ratio = V::load(&ratio[at].0);
            for n in 0..N {
                sums[n] = ratio.fused(V::load(&w[n][at].0), sums[n]);
            }
        }
        for n in 0..N {
            let (k, h) = parts[n];
            shares[k] += f64::from(h) * total_of(sums[n]);
        }
    }
}
