//! The best pairing of rows and columns: the Hungarian method. Knows only numbers.

/// The row for each column that makes the sum of `gain[row][column]` largest; `gain` is square.
///
/// Shortest augmenting paths with potentials, one row at a time: a row and a column are paired only where the potentials
/// add up to the cost exactly, and every step keeps them at most the cost elsewhere.
pub fn best_rows(gain: &[Vec<f64>]) -> Vec<usize> {
    let n = gain.len();
    // Row and column 0 stand for "none yet".
    let (mut row_price, mut column_price) = (vec![0.0; n + 1], vec![0.0; n + 1]);
    let mut row_of = vec![0; n + 1];
    for row in 1..=n {
        row_of[0] = row;
        let mut here = 0;
        let (mut least, mut from, mut seen) =
            (vec![f64::INFINITY; n + 1], vec![0; n + 1], vec![false; n + 1]);
        while row_of[here] != 0 {
            seen[here] = true;
            let at = row_of[here];
            let (mut step, mut next) = (f64::INFINITY, 0);
            for column in (1..=n).filter(|&column| !seen[column]) {
                let slack = -gain[at - 1][column - 1] - row_price[at] - column_price[column];
                if slack < least[column] {
                    (least[column], from[column]) = (slack, here);
                }
                if least[column] < step {
                    (step, next) = (least[column], column);
                }
            }
            for column in 0..=n {
                if seen[column] {
                    row_price[row_of[column]] += step;
                    column_price[column] -= step;
                } else {
                    least[column] -= step;
                }
            }
            here = next;
        }
        while here != 0 {
            row_of[here] = row_of[from[here]];
            here = from[here];
        }
    }
    row_of[1..].iter().map(|row| row - 1).collect()
}

#[cfg(test)]
mod tests {
    use super::best_rows;

    fn permutations(n: usize) -> Vec<Vec<usize>> {
        if n == 0 {
            return vec![vec![]];
        }
        let insert = |shorter: Vec<usize>| {
            (0..n).map(move |at| [&shorter[..at], &[n - 1], &shorter[at..]].concat()).collect::<Vec<_>>()
        };
        permutations(n - 1).into_iter().flat_map(insert).collect()
    }

    #[test]
    fn no_permutation_gains_more_than_the_one_that_is_found() {
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f64 / 2f64.powi(24) - 0.5) * 60.0
        };
        for n in 1..=6 {
            for _ in 0..30 {
                let gain: Vec<Vec<f64>> = (0..n).map(|_| (0..n).map(|_| random()).collect()).collect();
                let total =
                    |rows: &[usize]| rows.iter().zip(0..).map(|(&row, c): (_, usize)| gain[row][c]).sum();
                let found: f64 = total(&best_rows(&gain));
                let best = permutations(n).iter().map(|rows| total(rows)).fold(f64::MIN, f64::max);
                assert!((found - best).abs() < 1e-9, "{n}: {found} {best}");
            }
        }
    }
}
