//! KL-NMF, the rival: plain multiplicative updates. Knows nothing of sounds.

/// W (K x bins, by rows) and H (frames x K, by rows).
pub(super) struct Factors {
    pub(super) spectra: Vec<f32>,
    pub(super) activations: Vec<f32>,
}

/// Below this an expected magnitude is taken for it.
const LEAST: f32 = 1e-10;

/// Lee & Seung's updates of H, then W, for KL(X | H W), from a random start. `magnitudes` is X, frames x bins by rows.
pub(super) fn factors(
    magnitudes: &[f32],
    bins: usize,
    components: usize,
    iterations: usize,
    seed: u64,
) -> Factors {
    let frames = magnitudes.len() / bins;
    let mut stream = bpnmf::bench::stream(seed);
    let mean = magnitudes.iter().map(|&x| f64::from(x)).sum::<f64>() / magnitudes.len() as f64;
    let scale = (mean / components as f64).sqrt();
    let mut random = |many: usize| (0..many).map(|_| (scale * (0.1 + stream.uniform())) as f32).collect();
    let (mut w, mut h): (Vec<f32>, Vec<f32>) = (random(components * bins), random(frames * components));
    let mut ratio = vec![0.0; frames * bins];
    let mut update = vec![0.0; components * frames.max(bins)];
    let quotients = |h: &[f32], w: &[f32], ratio: &mut [f32]| {
        product([frames, components, bins], h, [components, 1], w, [bins, 1], ratio);
        ratio.iter_mut().zip(magnitudes).for_each(|(ratio, &x)| *ratio = x / ratio.max(LEAST));
    };
    for _ in 0..iterations {
        quotients(&h, &w, &mut ratio);
        product([frames, bins, components], &ratio, [bins, 1], &w, [1, bins], &mut update);
        let sums: Vec<f32> = w.chunks_exact(bins).map(|row| row.iter().sum::<f32>().max(LEAST)).collect();
        for (i, (h, update)) in h.iter_mut().zip(&update).enumerate() {
            *h *= update / sums[i % components];
        }
        quotients(&h, &w, &mut ratio);
        product([components, frames, bins], &h, [1, components], &ratio, [bins, 1], &mut update);
        for (k, row) in w.chunks_exact_mut(bins).enumerate() {
            let sum = h.iter().skip(k).step_by(components).sum::<f32>().max(LEAST);
            row.iter_mut().zip(&update[k * bins..]).for_each(|(w, update)| *w *= update / sum);
        }
    }
    Factors { spectra: w, activations: h }
}

/// C = A B for A of m x k and B of k x n with the given strides of rows and columns; C by rows.
fn product(
    [m, k, n]: [usize; 3],
    a: &[f32],
    [a_row, a_column]: [usize; 2],
    b: &[f32],
    [b_row, b_column]: [usize; 2],
    c: &mut [f32],
) {
    let reach = |rows: usize, columns: usize, row: usize, column: usize| {
        (rows - 1) * row + (columns - 1) * column + 1
    };
    assert!(reach(m, k, a_row, a_column) <= a.len() && reach(k, n, b_row, b_column) <= b.len());
    assert!(m * n <= c.len());
    let signed = |stride: usize| stride as isize;
    // SAFETY: the asserts above hold every entry that the strides reach within the slices, and c is borrowed alone.
    unsafe {
        matrixmultiply::sgemm(
            m,
            k,
            n,
            1.0,
            a.as_ptr(),
            signed(a_row),
            signed(a_column),
            b.as_ptr(),
            signed(b_row),
            signed(b_column),
            0.0,
            c.as_mut_ptr(),
            signed(n),
            1,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_of_rank_two_is_found_again_by_two_components() {
        let (frames, bins) = (12, 9);
        let entry =
            |t: usize, f: usize| (1 + t % 3) as f32 * (f % 4) as f32 + (t / 4) as f32 * (1 + f / 5) as f32;
        let magnitudes: Vec<f32> = (0..frames * bins).map(|i| entry(i / bins, i % bins)).collect();
        let Factors { spectra, activations } = factors(&magnitudes, bins, 2, 3000, 1);
        for t in 0..frames {
            for f in 0..bins {
                let found: f32 = (0..2).map(|k| activations[t * 2 + k] * spectra[k * bins + f]).sum();
                assert!((found - entry(t, f)).abs() < 0.02, "({t}, {f}): {found}");
            }
        }
    }
}
