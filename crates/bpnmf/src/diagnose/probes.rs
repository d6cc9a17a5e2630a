//! Entries of the matrix whose reconstruction is watched: the same for every chain, whatever the order of components.

use crate::counts::Counts;
use crate::infer::state::State;

/// How many entries are watched.
pub const PROBES: usize = 4;

/// Entries that are looked at when choosing: more say nothing more about quantiles.
const MOST_CANDIDATES: usize = 1 << 16;

/// The watched entries, (row, column).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Probes {
    entries: Vec<(usize, usize)>,
}

impl Probes {
    /// The positive entries at the 1/8, 3/8, 5/8 and 7/8 quantiles of the positive entries; none if there are none.
    pub(crate) fn new(counts: &Counts) -> Self {
        let stride = counts.nonzeros().div_ceil(MOST_CANDIDATES).max(1);
        let mut candidates: Vec<(f64, usize, usize)> = (0..counts.observations())
            .flat_map(|t| counts.column(t).positive().map(move |(f, value)| (value, f, t)))
            .step_by(stride)
            .collect();
        // Equal values stay in the order of the columns, so that the entries are spread over the matrix.
        candidates.sort_by(|x, y| x.0.total_cmp(&y.0));
        let at = |i: usize| candidates.get((2 * i + 1) * candidates.len() / (2 * PROBES));
        Self { entries: (0..PROBES).filter_map(at).map(|&(_, f, t)| (f, t)).collect() }
    }

    /// sum_k W_fk H_kt S_kt at the watched entries; zeros if there are none.
    pub(crate) fn read(&self, state: &State) -> [f64; PROBES] {
        let mut rates = [0.0; PROBES];
        for (rate, &(f, t)) in rates.iter_mut().zip(&self.entries) {
            let column = state.activations.column(t);
            *rate = column.iter().map(|(k, h)| f64::from(h) * f64::from(state.dictionary.row(k)[f])).sum();
        }
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watched_entries_are_positive_and_at_quantiles_of_the_data_in_any_storage() {
        // Column after column: 0, 1, ..., 15 in a 4 x 4 matrix.
        let dense = Counts::from_dense(4, 4, (0..16).map(f64::from).collect()).unwrap();
        let probes = Probes::new(&dense);
        // The positive values are 1 .. 15, the ranks 1, 5, 9, 13 of them.
        assert_eq!(probes.entries, [(2, 0), (2, 1), (2, 2), (2, 3)]);
        let (rows, values): (Vec<u32>, Vec<f64>) = (1..16).map(|i| (i % 4, f64::from(i))).unzip();
        let sparse = Counts::from_sparse(4, 4, vec![0, 3, 7, 11, 15], rows, values).unwrap();
        assert_eq!(Probes::new(&sparse), probes);
    }

    #[test]
    fn equal_values_give_entries_spread_over_the_columns_and_no_counts_give_none() {
        let ones = Counts::from_dense(1, 400, vec![1.0; 400]).unwrap();
        assert_eq!(Probes::new(&ones).entries, [(0, 50), (0, 150), (0, 250), (0, 350)]);
        let single = Counts::from_dense(1, 2, vec![0.0, 3.0]).unwrap();
        assert_eq!(Probes::new(&single).entries, [(0, 1); 4]);
        let zeros = Counts::from_dense(1, 2, vec![0.0; 2]).unwrap();
        assert!(Probes::new(&zeros).entries.is_empty());
    }
}
