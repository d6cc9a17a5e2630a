//! Non-negative least squares with a cut-off, as the usual programs assign signatures.

/// Rounds of coordinate descent.
const ROUNDS: usize = 3000;

/// The signatures, ready for least squares.
pub(super) struct Squares {
    columns: Vec<Vec<f64>>,
    gram: Vec<f64>,
}

impl Squares {
    /// Of signatures F x K by rows.
    pub(super) fn new(signatures: &[f32], features: usize, number: usize) -> Self {
        let column = |k: usize| (0..features).map(|f| f64::from(signatures[f * number + k])).collect();
        let columns: Vec<Vec<f64>> = (0..number).map(column).collect();
        let gram = (0..number * number).map(|i| dot(&columns[i / number], &columns[i % number])).collect();
        Self { columns, gram }
    }

    /// Weights of at least `cut` of their sum: the smallest that is below is removed, and the others are fitted again.
    pub(super) fn above(&self, x: &[f64], cut: f64) -> Vec<f64> {
        let target: Vec<f64> = self.columns.iter().map(|column| dot(x, column)).collect();
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        let mut weights = vec![0.0; self.columns.len()];
        loop {
            self.descend(&target, &kept, &mut weights);
            let total: f64 = weights.iter().sum();
            kept.retain(|&k| weights[k] > 0.0);
            let least = kept.iter().copied().min_by(|&i, &j| weights[i].total_cmp(&weights[j]));
            match least {
                Some(k) if weights[k] < cut * total && kept.len() > 1 => {
                    kept.retain(|&other| other != k);
                    weights[k] = 0.0;
                }
                _ => return weights,
            }
        }
    }

    /// Coordinate descent over the weights that are `kept`, from where they are.
    fn descend(&self, target: &[f64], kept: &[usize], weights: &mut [f64]) {
        let number = self.columns.len();
        for _ in 0..ROUNDS {
            let mut moved = 0.0f64;
            for &i in kept {
                let others: f64 =
                    kept.iter().filter(|&&j| j != i).map(|&j| self.gram[i * number + j] * weights[j]).sum();
                let next = ((target[i] - others) / self.gram[i * number + i]).max(0.0);
                moved = moved.max((next - weights[i]).abs());
                weights[i] = next;
            }
            if moved <= 1e-7 * weights.iter().copied().fold(0.0, f64::max) {
                break;
            }
        }
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mixture_is_its_parts_and_what_is_below_the_cut_goes() {
        let signatures = [0.8f32, 0.1, 0.1, 0.1, 0.8, 0.1, 0.1, 0.1, 0.8];
        let squares = Squares::new(&signatures, 3, 3);
        let x = [80.0 + 4.0, 10.0 + 32.0, 10.0 + 4.0];
        let weights = squares.above(&x, 0.05);
        assert!((weights[0] - 100.0).abs() < 1e-3 && (weights[1] - 40.0).abs() < 1e-3, "{weights:?}");
        assert_eq!(weights[2], 0.0);
        let weights = squares.above(&x, 0.4);
        assert!(weights[0] > 100.0 && weights[1] == 0.0, "{weights:?}");
    }
}
