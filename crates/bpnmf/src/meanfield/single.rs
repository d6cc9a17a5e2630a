//! Sums over the entries of columns with all features in single precision: what finds its way to a point of rest need not
//! be better on the way. Sums are made of fused products in a fixed order, so they give the same bits on every machine.

use super::kernels::fitted;
use crate::kernel::doubles::{Doubles, total_of};
use crate::kernel::{LANES, Lanes, Tile, dispatch, each, flat, flat_mut};

/// Tiles of a row that are handled at once.
const CHUNK: usize = 5;

/// Keeps quotients finite where nothing is explained.
pub(crate) const TINY: f32 = 1e-30;

/// The largest quotient: its products with W and H, which may be as large as counts are, stay in range.
const HUGE: f32 = 1e20;

/// The most that logarithms are taken of.
const MOST: f32 = 1e37;

/// Rows of equal length, side by side in tiles that are filled up with zeros; none is below `least`.
pub(crate) fn tiled(rows: &[f64], length: usize, least: f32) -> Vec<Tile> {
    let wide = length.div_ceil(LANES);
    let mut out = vec![Tile::ZERO; rows.len() / length.max(1) * wide];
    for (to, row) in out.chunks_mut(wide.max(1)).zip(rows.chunks(length.max(1))) {
        flat_mut(to).iter_mut().zip(row).for_each(|(to, value)| *to = (*value as f32).max(least));
    }
    out
}

/// out += the listed rows, each times its scale, one after the other.
#[inline(always)]
pub(crate) fn add_rows_of<V: Lanes>(
    rows: &[Tile],
    list: impl Iterator<Item = (usize, f32)> + Clone,
    out: &mut [Tile],
) {
    let tiles = out.len();
    let mut at = 0;
    while at < tiles {
        at += match tiles - at {
            1 => add_chunk::<V, 1>(rows, list.clone(), out, at),
            2 => add_chunk::<V, 2>(rows, list.clone(), out, at),
            3 => add_chunk::<V, 3>(rows, list.clone(), out, at),
            4 => add_chunk::<V, 4>(rows, list.clone(), out, at),
            _ => add_chunk::<V, CHUNK>(rows, list.clone(), out, at),
        };
    }
}

/// Tiles `at .. at + N` of [`add_rows_of`].
#[inline(always)]
fn add_chunk<V: Lanes, const N: usize>(
    rows: &[Tile],
    list: impl Iterator<Item = (usize, f32)>,
    out: &mut [Tile],
    at: usize,
) -> usize {
    let tiles = out.len();
    let out: &mut [Tile; N] = (&mut out[at..at + N]).try_into().expect("so many");
    let mut sums = each!(V, N, n => V::load(&out[n].0));
    for (row, scale) in list {
        let (row, scale) = (&rows[row * tiles + at..][..N], V::splat(scale));
        for n in 0..N {
            sums[n] = V::load(&row[n].0).fused(scale, sums[n]);
        }
    }
    for n in 0..N {
        sums[n].store(&mut out[n].0);
    }
    N
}

/// out = x over the sum of the listed rows, each times its scale; zero behind the last entry.
#[inline(always)]
pub(crate) fn ratios_of<V: Lanes>(
    rows: &[Tile],
    list: impl Iterator<Item = (usize, f32)> + Clone,
    x: &[Tile],
    out: &mut [Tile],
) {
    out.fill(Tile::ZERO);
    // A column of which nothing was observed has no entries.
    let out = &mut out[..x.len()];
    add_rows_of::<V>(rows, list, out);
    for (x, out) in x.iter().zip(out) {
        let rate = V::load(&out.0).add(V::splat(TINY));
        quotient(V::load(&x.0), rate).store(&mut out.0);
    }
}

#[inline(always)]
fn quotient<V: Lanes>(x: V, rate: V) -> V {
    x.div(rate).min(V::splat(HUGE))
}

/// field = the sum of the listed rows, each times its scale, and a little more, so that it is positive; ratio = x over that.
#[inline(always)]
pub(crate) fn explain_of<V: Lanes>(
    rows: &[Tile],
    list: impl Iterator<Item = (usize, f32)> + Clone,
    x: &[Tile],
    field: &mut [Tile],
    ratio: &mut [Tile],
) {
    field.fill(Tile([TINY; LANES]));
    add_rows_of::<V>(rows, list, field);
    for ((x, field), ratio) in x.iter().zip(field).zip(ratio) {
        quotient(V::load(&x.0), V::load(&field.0)).store(&mut ratio.0);
    }
}

dispatch! {
    /// sum a b.
    pub(crate) fn dot [] (a: &[Tile], b: &[Tile]) -> f64 = dot_of
}

#[inline(always)]
pub(crate) fn dot_of<V: Doubles>(a: &[Tile], b: &[Tile]) -> f64 {
    let mut sum = V::splat(0.0);
    for (a, b) in a.iter().zip(b) {
        sum = V::load(&a.0).fused(V::load(&b.0), sum);
    }
    total_of(sum)
}

dispatch! {
    /// Shape and exp E log of the best Gamma(shape, rate) for a component on top of `base`, which is positive, from exp E log
    /// = `h`. The prior has the shape `c`; `rounds` of one given the other.
    pub(crate) fn fit_strength [] (x: &[Tile], base: &[Tile], row: &[Tile], c: f64, rate: f64, h: f64, rounds: usize) -> (f64, f64) = fit_strength_of
}

#[inline(always)]
fn fit_strength_of<V: Doubles>(
    x: &[Tile],
    base: &[Tile],
    row: &[Tile],
    c: f64,
    rate: f64,
    h: f64,
    rounds: usize,
) -> (f64, f64) {
    fitted(c, rate, h, rounds, |h| {
        let (h, mut sum) = (V::splat(h as f32), V::splat(0.0));
        for ((x, base), row) in x.iter().zip(base).zip(row) {
            let own = V::load(&row.0).mul(h);
            sum = V::load(&x.0).fused(own.div(V::load(&base.0).add(own)), sum);
        }
        total_of(sum)
    })
}

dispatch! {
    /// sum x log(1 + row h / base), good to 1e-6 for every count; `base` is positive.
    pub(crate) fn gain [] (x: &[Tile], base: &[Tile], row: &[Tile], h: f64) -> f64 = gain_of
}

#[inline(always)]
fn gain_of<V: Doubles>(x: &[Tile], base: &[Tile], row: &[Tile], h: f64) -> f64 {
    let (h, mut sum) = (V::splat(h as f32), V::splat(0.0));
    for ((x, base), row) in x.iter().zip(base).zip(row) {
        let grown = V::load(&row.0).mul(h).div(V::load(&base.0)).add(V::splat(1.0)).min(V::splat(MOST));
        sum = V::load(&x.0).fused(grown.ln_exactly(), sum);
    }
    total_of(sum)
}

dispatch! {
    /// sum x log(1 - row h / field), good to 1e-6 for every count and what it loses; `field` is positive.
    pub(crate) fn loss [] (x: &[Tile], field: &[Tile], row: &[Tile], h: f64) -> f64 = loss_of
}

#[inline(always)]
fn loss_of<V: Doubles>(x: &[Tile], field: &[Tile], row: &[Tile], h: f64) -> f64 {
    let (h, mut sum) = (V::splat(h as f32), V::splat(0.0));
    for ((x, field), row) in x.iter().zip(field).zip(row) {
        let field = V::load(&field.0);
        let left = field.sub(V::load(&row.0).mul(h)).div(field).max(V::splat(TINY));
        sum = V::load(&x.0).fused(left.ln_exactly(), sum);
    }
    total_of(sum)
}

dispatch! {
    /// The products of `ratio` with all rows.
    pub(crate) fn products [] (rows: &[Tile], ratio: &[Tile], out: &mut [f64]) = products_of
}

#[inline(always)]
fn products_of<V: Doubles>(rows: &[Tile], ratio: &[Tile], out: &mut [f64]) {
    for (row, out) in rows.chunks_exact(ratio.len()).zip(out) {
        *out = dot_of::<V>(ratio, row);
    }
}

dispatch! {
    /// out += the listed rows of so many `tiles`, each times its scale: added to each other before they are added to `out`.
    pub(crate) fn add_listed [] (rows: &[Tile], tiles: usize, list: &[(usize, f32)], out: &mut [f64]) = add_listed_of
}

#[inline(always)]
fn add_listed_of<V: Lanes>(rows: &[Tile], tiles: usize, list: &[(usize, f32)], out: &mut [f64]) {
    let mut sums = vec![Tile::ZERO; tiles];
    add_rows_of::<V>(rows, list.iter().copied(), &mut sums);
    out.iter_mut().zip(flat(&sums)).for_each(|(out, sum)| *out += f64::from(*sum));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Simd;
    use crate::random::{Key, Site};

    fn explain<V: Doubles>(
        rows: &[Tile],
        list: &[(usize, f32)],
        x: &[Tile],
        out: &mut [Tile],
        dots: &mut Vec<f64>,
    ) {
        ratios_of::<V>(rows, list.iter().copied(), x, out);
        dots.extend(rows.chunks(out.len()).map(|row| dot_of::<V>(out, row)));
    }

    dispatch! { fn explain_on [] (rows: &[Tile], list: &[(usize, f32)], x: &[Tile], out: &mut [Tile], dots: &mut Vec<f64>) = explain }

    /// Quotients, products and sums of rows of any length against double precision, one by one: some roundings of 6e-8 each.
    #[test]
    fn sums_are_good_to_single_precision_and_the_same_bits_everywhere() {
        let mut stream = Key::new(5).stream(Site::Synthesis, 0, 0, 0);
        for n in [1, 15, 16, 17, 64, 75, 80, 81, 131, 513] {
            let mut draw = |n: usize| -> Vec<f64> { (0..n).map(|_| 0.1 + stream.uniform()).collect() };
            let (rows, x, scales) = (draw(5 * n), draw(n), draw(3));
            let list: Vec<(usize, f32)> =
                [4, 0, 2].into_iter().zip(scales.iter().map(|s| *s as f32)).collect();
            let tiles = tiled(&rows, n, 0.0);
            let row = |k: usize| &rows[k * n..(k + 1) * n];
            let results = [Simd::Avx512, Simd::Avx2, Simd::Plain].map(|simd| {
                let (mut ratio, mut dots) = (vec![Tile::ZERO; n.div_ceil(LANES)], Vec::new());
                let counts = tiled(&x, n, 0.0);
                explain_on(simd, &tiles, &list, &counts, &mut ratio, &mut dots);
                let mut sums = vec![1.0; n];
                add_listed(simd, &tiles, ratio.len(), &list, &mut sums);
                let mut base = tiled(row(1), n, 0.0);
                flat_mut(&mut base).iter_mut().for_each(|base| *base = base.max(TINY));
                let first = &tiles[..ratio.len()];
                dots.push(fit_strength(simd, &counts, &base, first, 0.0, 2.0, 0.7, 1).0);
                dots.push(gain(simd, &counts, &base, first, 0.7));
                dots.push(loss(simd, &counts, &base, first, 0.05));
                let mut all = vec![0.0; 5];
                products(simd, &tiles, &ratio, &mut all);
                assert_eq!(all, dots[..5]);
                (flat(&ratio).to_vec(), dots, sums)
            });
            assert_eq!((&results[0], &results[1]), (&results[1], &results[2]), "{n} entries");
            let (ratio, dots, sums) = &results[0];
            let field = |f: usize| list.iter().map(|&(k, scale)| f64::from(scale) * row(k)[f]).sum::<f64>();
            let close = |ours: f64, exact: f64| {
                assert!((ours - exact).abs() <= 2e-6 * exact.abs(), "{n} entries: {ours} {exact}");
            };
            for f in 0..n {
                close(f64::from(ratio[f]), x[f] / field(f));
                close(sums[f], 1.0 + field(f));
            }
            for (k, dot) in dots[..5].iter().enumerate() {
                close(*dot, (0..n).map(|f| x[f] / field(f) * row(k)[f]).sum());
            }
            close(dots[5], (0..n).map(|f| x[f] * row(0)[f] * 0.7 / (row(1)[f] + row(0)[f] * 0.7)).sum());
            let share = |f: usize, h: f64| row(0)[f] * h / row(1)[f];
            let near = |ours: f64, term: &dyn Fn(usize) -> f64| {
                let (exact, all) = ((0..n).map(|f| x[f] * term(f)).sum::<f64>(), x.iter().sum::<f64>());
                assert!((ours - exact).abs() <= 1e-6 * all, "{n} entries: {ours} {exact}");
            };
            near(dots[6], &|f| libm::log1p(share(f, 0.7)));
            near(dots[7], &|f| libm::log1p(-share(f, 0.05)));
            assert!(ratio[n..].iter().all(|ratio| *ratio == 0.0), "{n} entries");
        }
    }

    /// Rows that explain nothing, and counts and rows at the ends of what there can be.
    #[test]
    fn quotients_and_their_sums_are_finite() {
        let tiles = tiled(&[0.0, 1e-300, 1e-30, 1.0, 1e15], 5, TINY);
        for (list, x) in [(&[(0, 1e-12)][..], &[1e15; 5][..]), (&[], &[1e15; 5]), (&[(0, 1e15)], &[])] {
            let (mut ratio, mut dots) = ([Tile::ZERO], Vec::new());
            explain_on(Simd::Auto, &tiles, list, &tiled(x, x.len(), 0.0), &mut ratio, &mut dots);
            assert!(!x.is_empty() || ratio == [Tile::ZERO]);
            assert!(
                ratio[0].0.iter().all(|ratio| ratio.is_finite()) && dots[0].is_finite(),
                "{ratio:?} {dots:?}"
            );
        }
    }
}
