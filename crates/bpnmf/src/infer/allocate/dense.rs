//! Columns of which all features are looked at: the sweep has left their rates.

use super::chunk::{largest_inverse, share_chunks};
use super::sums::run;
use super::{Allocated, Allocation, Task, entries};
use crate::infer::activations::ActiveColumn;
use crate::infer::dictionary::Dictionary;
use crate::infer::mask::{fused_score, side_by_side};
use crate::infer::work::Work;
use crate::kernel::doubles::{Doubles, total_of};
use crate::kernel::{Tile, dispatch, each, flat};

dispatch! {
    pub(super) fn share [] (
        task: Task<'_>, first: usize, works: &mut [Work], on: &[u16], values: &[Tile], out: &mut [Allocated],
        shares: &mut [f64], sums: &mut Vec<Tile>,
    ) = share_columns
}

#[inline(always)]
fn share_columns<V: Doubles>(
    task: Task<'_>,
    first: usize,
    works: &mut [Work],
    on: &[u16],
    values: &[Tile],
    out: &mut [Allocated],
    shares: &mut [f64],
    sums: &mut Vec<Tile>,
) {
    let Task { counts, dictionary, allocation, .. } = task;
    let tiles = on.len() / out.len();
    let sites = on.chunks_exact(tiles).zip(values.chunks_exact(tiles));
    let columns = out.iter_mut().zip(works).zip(shares.chunks_exact_mut(dictionary.components()));
    for (t, (((column, work), shares), (on, values))) in (first..).zip(columns.zip(sites)) {
        let unchanged = work.is_unchanged();
        work.make_ready::<V>(counts, dictionary, ActiveColumn { on, values: flat(values) });
        work.swap_parts(&mut column.parts);
        column.start(shares);
        if work.is_tame::<V>(largest_inverse(counts.column_totals()[t])) {
            column.log_likelihood = sum_of_logs::<V>(work.x(counts), &work.inverse);
            if allocation == Allocation::Expected {
                work.swap_ratio(&mut column.ratio);
                let scored = if unchanged { give_scored::<V>(dictionary, work, column, shares) } else { 0 };
                give_out::<V>(dictionary, &column.ratio, &column.parts[scored..], shares);
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

/// The sum of x log(rate), from 1 / rate.
#[inline(always)]
fn sum_of_logs<V: Doubles>(x: &[Tile], inverse: &[Tile]) -> f64 {
    let (mut total, mut from) = (0.0, 0);
    while from < x.len() {
        let run = run(from, x.len());
        from = run.end;
        let mut sum = V::splat(0.0);
        let (pairs, rest) = x[run.clone()].as_chunks::<2>();
        let (inverse_pairs, inverse_rest) = inverse[run].as_chunks::<2>();
        for (x, inverse) in pairs.iter().zip(inverse_pairs) {
            sum = add_logs::<V, 2>(x, inverse, sum);
        }
        if let ([x], [inverse]) = (rest, inverse_rest) {
            sum = add_logs::<V, 1>(&[*x], &[*inverse], sum);
        }
        total -= total_of(sum);
    }
    total
}

/// Adds x log(1 / rate).
#[inline(always)]
fn add_logs<V: Doubles, const N: usize>(x: &[Tile; N], inverse: &[Tile; N], mut sum: V) -> V {
    // Where there are no counts this is 0: any number will do whose logarithm is finite.
    let logs = V::lns_exactly::<N>(each!(V, N, n => V::load(&inverse[n].0).max(V::splat(f32::MIN_POSITIVE))));
    for n in 0..N {
        sum = V::load(&x[n].0).fused(logs[n], sum);
    }
    sum
}

/// What components are given in a column that no site has changed: the sweep's scores, of those that were scored side by
/// side. Returns how many they are.
#[inline(always)]
fn give_scored<V: Doubles>(
    dictionary: &Dictionary,
    work: &Work,
    column: &Allocated,
    shares: &mut [f64],
) -> usize {
    let side_by_side = side_by_side(dictionary);
    for (i, &(k, h)) in column.parts.iter().enumerate() {
        if k >= side_by_side {
            return i;
        }
        let score =
            if V::FUSES { work.kept_score(i) } else { fused_score(flat(&column.ratio), dictionary.row(k)) };
        shares[k] = f64::from(h) * f64::from(score);
    }
    column.parts.len()
}

/// What every component of `parts` is given, a few of them at a time.
#[inline(always)]
fn give_out<V: Doubles>(dictionary: &Dictionary, ratio: &[Tile], parts: &[(usize, f32)], shares: &mut [f64]) {
    let (fours, rest) = parts.as_chunks::<4>();
    for parts in fours {
        give_some::<V, 4>(dictionary, ratio, parts, shares);
    }
    match *rest {
        [a] => give_some::<V, 1>(dictionary, ratio, &[a], shares),
        [a, b] => give_some::<V, 2>(dictionary, ratio, &[a, b], shares),
        [a, b, c] => give_some::<V, 3>(dictionary, ratio, &[a, b, c], shares),
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
