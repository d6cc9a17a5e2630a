//! Matrices of any size as grids of few pixels: every pixel is the mean over what it covers. Knows no colours.
//!
//! Means are linear, so the grid of W H is the grid of W times the grid of H: the reconstruction is never made in full,
//! and sparse data are never made dense.

use crate::report::{Data, Model};

/// How the entries along one side of a matrix fall on pixels.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    entries: usize,
    /// Pixel i covers the entries from `edges[i]` to `edges[i + 1]`; entry e reaches from e to e + 1.
    edges: Vec<f64>,
    /// The entries of every pixel, if they are whole.
    block: Option<usize>,
}

impl Side {
    /// At most `most` pixels of one entry each, or of two, or of three, ...
    pub(crate) fn even(entries: usize, most: usize) -> Self {
        let size = entries.div_ceil(most).max(1);
        let edges = (0..=entries.div_ceil(size)).map(|i| (i * size).min(entries) as f64);
        Self { entries, edges: edges.collect(), block: Some(size) }
    }

    /// `pixels` pixels of equal ratio from the position `first` to the end; position e is the centre of entry e.
    pub(crate) fn logarithmic(entries: usize, pixels: usize, first: f64) -> Self {
        let ratio = (entries as f64 - 0.5) / first;
        let edge = |i: usize| (first * ratio.powf(i as f64 / pixels as f64) + 0.5).min(entries as f64);
        Self { entries, edges: (0..=pixels).map(edge).collect(), block: None }
    }

    pub(crate) fn pixels(&self) -> usize {
        self.edges.len() - 1
    }

    /// The entries that a pixel covers and how much of it each one is; the shares add up to 1.
    fn covered(&self, pixel: usize) -> impl Iterator<Item = (usize, f64)> {
        let (from, to) = (self.edges[pixel], self.edges[pixel + 1]);
        let last = (to.ceil() as usize).min(self.entries);
        (from as usize..last).map(move |entry| {
            let overlap = to.min(entry as f64 + 1.0) - from.max(entry as f64);
            (entry, overlap / (to - from))
        })
    }

    /// The mean of `value` over every pixel.
    pub(crate) fn means(&self, value: impl Fn(usize) -> f64) -> Vec<f64> {
        let mean = |pixel| self.covered(pixel).map(|(entry, share)| share * value(entry)).sum();
        (0..self.pixels()).map(mean).collect()
    }

    /// The largest `value` in every pixel.
    pub(crate) fn largest(&self, value: impl Fn(usize) -> f64) -> Vec<f64> {
        let largest = |pixel| self.covered(pixel).map(|(entry, _)| value(entry)).fold(0.0, f64::max);
        (0..self.pixels()).map(largest).collect()
    }

    /// The pixels that an entry is in, and its share of each.
    fn places(&self, entry: usize) -> impl Iterator<Item = (usize, f64)> + use<'_> {
        let (from, to) = (entry as f64, entry as f64 + 1.0);
        let first = match self.block {
            Some(block) => entry / block,
            None => self.edges.partition_point(|edge| *edge <= from).saturating_sub(1),
        };
        let pixels = self.edges[first..].windows(2).enumerate().take_while(move |(_, edges)| edges[0] < to);
        pixels.map(move |(i, edges)| {
            let overlap = edges[1].min(to) - edges[0].max(from);
            (first + i, overlap.max(0.0) / (edges[1] - edges[0]))
        })
    }
}

/// Pixels by rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grid {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) values: Vec<f64>,
}

impl Grid {
    /// The data, by what is not zero.
    pub(crate) fn of_data(data: Data<'_>, rows: &Side, columns: &Side) -> Self {
        let (height, width) = (rows.pixels(), columns.pixels());
        let mut values = vec![0.0; height * width];
        for t in 0..columns.entries {
            let across: Vec<(usize, f64)> = columns.places(t).collect();
            let mut add = |f: usize, value: f64| {
                for (i, of_row) in rows.places(f) {
                    for &(j, of_column) in &across {
                        values[i * width + j] += value * of_row * of_column;
                    }
                }
            };
            match data {
                Data::Counts(counts) => counts.column(t).positive().for_each(|(f, value)| add(f, value)),
                Data::Dense(all) => {
                    let column = &all[t * rows.entries..][..rows.entries];
                    column.iter().enumerate().for_each(|(f, &value)| add(f, f64::from(value)));
                }
            }
        }
        Self { rows: height, columns: width, values }
    }

    /// W H.
    pub(crate) fn of_model(model: &Model<'_>, rows: &Side, columns: &Side) -> Self {
        let (height, width) = (rows.pixels(), columns.pixels());
        let mut values = vec![0.0; height * width];
        for k in 0..model.components() {
            let activation = model.activation(k);
            let h = columns.means(|t| f64::from(activation[t]));
            let w = rows.means(|f| model.weight(f, k));
            for (row, w) in values.chunks_exact_mut(width).zip(w) {
                if w > 0.0 {
                    row.iter_mut().zip(&h).for_each(|(value, h)| *value += w * h);
                }
            }
        }
        Self { rows: height, columns: width, values }
    }

    /// The dictionary: `rows` x parts, every part over its own largest value.
    pub(crate) fn of_dictionary(model: &Model<'_>, rows: &Side, parts: &Side) -> Self {
        let columns: Vec<Vec<f64>> = (0..model.components())
            .map(|k| {
                let column = rows.means(|f| model.weight(f, k));
                let largest = column.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
                column.into_iter().map(|w| w / largest).collect()
            })
            .collect();
        let values = (0..rows.pixels()).flat_map(|i| parts.largest(|k| columns[k][i])).collect();
        Self { rows: rows.pixels(), columns: parts.pixels(), values }
    }

    /// The masked activations in the units of the data: parts x `columns`.
    pub(crate) fn of_activations(model: &Model<'_>, parts: &Side, columns: &Side) -> Self {
        let sizes = model.sizes();
        let rows: Vec<Vec<f64>> = (0..model.components())
            .map(|k| columns.means(|t| sizes[k] * f64::from(model.activation(k)[t])))
            .collect();
        let mut values = Vec::with_capacity(parts.pixels() * columns.pixels());
        for pixel in 0..parts.pixels() {
            let of: Vec<usize> = parts.covered(pixel).map(|(k, _)| k).collect();
            values.extend((0..columns.pixels()).map(|j| of.iter().map(|&k| rows[k][j]).fold(0.0, f64::max)));
        }
        Self { rows: parts.pixels(), columns: columns.pixels(), values }
    }

    /// Every pixel `down` times in its column and `across` times in its row.
    pub(crate) fn enlarged(self, down: usize, across: usize) -> Self {
        let mut values = Vec::with_capacity(self.values.len() * down * across);
        for row in self.values.chunks(self.columns.max(1)) {
            for _ in 0..down {
                values.extend(row.iter().flat_map(|&value| std::iter::repeat_n(value, across)));
            }
        }
        Self { rows: self.rows * down, columns: self.columns * across, values }
    }

    /// Upside down.
    pub(crate) fn flipped(mut self) -> Self {
        let rows = self.values.chunks(self.columns.max(1)).rev();
        self.values = rows.flatten().copied().collect();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bpnmf::Counts;

    #[test]
    fn every_entry_falls_on_exactly_one_pixel_of_an_even_side() {
        for (entries, most) in [(1, 5), (5, 5), (7, 3), (1000, 7)] {
            let side = Side::even(entries, most);
            assert!(side.pixels() <= most);
            assert!((0..entries).all(|entry| side.places(entry).count() == 1));
        }
        assert_eq!(Side::even(0, 5).pixels(), 0);
        assert_eq!(Side::even(7, 4).means(|e| e as f64), [0.5, 2.5, 4.5, 6.0]);
    }

    #[test]
    fn shares_of_a_logarithmic_side_add_up_to_one_and_reach_the_end() {
        let side = Side::logarithmic(513, 300, 2.5);
        for pixel in 0..300 {
            let total: f64 = side.covered(pixel).map(|(_, share)| share).sum();
            assert!((total - 1.0).abs() < 1e-9, "{pixel}: {total}");
        }
        let mut total = 0.0;
        for entry in 0..513 {
            total += side.places(entry).map(|(_, share)| share).sum::<f64>();
        }
        assert!((total - 300.0).abs() < 1e-9, "both ways the same: {total}");
        assert!(side.places(512).map(|at| at.1).sum::<f64>() > 0.0);
        assert_eq!(side.places(1).map(|at| at.1).sum::<f64>(), 0.0, "below the first position");
    }

    #[test]
    fn sparse_and_dense_data_give_the_same_grid_of_means() {
        let values = [1.0, 0.0, 2.0, 0.0, 0.0, 6.0, 4.0, 0.0, 0.0, 0.0, 3.0, 1.0];
        let dense = Counts::from_dense(4, 3, values.to_vec()).unwrap();
        let sparse = Counts::from_sparse(
            4,
            3,
            vec![0, 2, 4, 6],
            vec![0, 2, 1, 2, 2, 3],
            vec![1.0, 2.0, 6.0, 4.0, 3.0, 1.0],
        )
        .unwrap();
        let (rows, columns) = (Side::even(4, 2), Side::even(3, 3));
        let of_dense = Grid::of_data(Data::Counts(&dense), &rows, &columns);
        assert_eq!(of_dense.values, [0.5, 3.0, 0.0, 1.0, 2.0, 2.0]);
        assert_eq!(Grid::of_data(Data::Counts(&sparse), &rows, &columns), of_dense);
        let single: Vec<f32> = values.iter().map(|&v| v as f32).collect();
        assert_eq!(Grid::of_data(Data::Dense(&single), &rows, &columns), of_dense);
    }
}
