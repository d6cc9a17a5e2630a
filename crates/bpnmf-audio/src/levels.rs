//! Magnitudes to counts. Knows nothing of sounds and of files.

use bpnmf::{Counts, TYPICAL_ENTRY};

use crate::error::Fault;

/// How fine the counts are.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Levels {
    /// The typical entry, sum x^2 / sum x, becomes [`TYPICAL_ENTRY`], as smooth data do in a search.
    #[default]
    Typical,
    /// The largest magnitude becomes this.
    Largest(u32),
}

/// Magnitudes (bins x frames, frame after frame) as counts, scaled and rounded to the nearest, and the scale.
///
/// ```
/// use bpnmf_audio::{Levels, to_counts};
/// let (counts, scale) = to_counts(&[0.0, 1.0, 2.0, 0.75], 2, Levels::Largest(10))?;
/// assert_eq!((counts.total(), scale), (5.0 + 10.0 + 4.0, 5.0));
/// # Ok::<(), bpnmf_audio::Fault>(())
/// ```
pub fn to_counts(magnitudes: &[f32], bins: usize, levels: Levels) -> Result<(Counts, f64), Fault> {
    let (mut sum, mut squares, mut largest) = (0.0f64, 0.0f64, 0.0f64);
    for &magnitude in magnitudes {
        let magnitude = f64::from(magnitude);
        sum += magnitude;
        squares += magnitude * magnitude;
        largest = largest.max(magnitude);
    }
    if !sum.is_finite() {
        return Err(Fault::TooLoud);
    }
    if largest == 0.0 {
        return Err(Fault::Silent);
    }
    let scale = match levels {
        Levels::Typical => TYPICAL_ENTRY * sum / squares,
        Levels::Largest(level) => f64::from(level) / largest,
    };
    let count = |magnitude: f32| (scale * f64::from(magnitude)).round();
    let positive = magnitudes.iter().filter(|&&magnitude| count(magnitude) > 0.0).count();
    let frames = magnitudes.len() / bins;
    // A sparse entry takes 12 bytes, a dense one 8.
    let counts = if 2 * positive < magnitudes.len() {
        let (mut starts, mut rows, mut values) =
            (vec![0], Vec::with_capacity(positive), Vec::with_capacity(positive));
        for column in magnitudes.chunks_exact(bins) {
            for (f, value) in column.iter().map(|&m| count(m)).enumerate().filter(|(_, value)| *value > 0.0) {
                rows.push(f as u32);
                values.push(value);
            }
            starts.push(values.len());
        }
        Counts::from_sparse(bins, frames, starts, rows, values)
    } else {
        Counts::from_dense(bins, frames, magnitudes.iter().map(|&m| count(m)).collect())
    };
    Ok((counts.map_err(|_| Fault::TooLoud)?, scale))
}

/// Brings magnitudes to the units of the counts, by the scale of [`to_counts`].
pub fn to_units(mut magnitudes: Vec<f32>, scale: f64) -> Vec<f32> {
    magnitudes.iter_mut().for_each(|magnitude| *magnitude = (f64::from(*magnitude) * scale) as f32);
    magnitudes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_typical_entry_is_eleven_and_dense_and_sparse_hold_the_same() {
        let dense: Vec<f32> = (0..600).map(|i| 1.0 + (i % 7) as f32).collect();
        let sparse: Vec<f32> =
            dense.iter().enumerate().map(|(i, m)| if i % 3 == 0 { *m } else { 0.0 }).collect();
        for magnitudes in [dense, sparse] {
            let (counts, scale) = to_counts(&magnitudes, 20, Levels::Typical).unwrap();
            assert_eq!((counts.features(), counts.observations()), (20, 30));
            let (mut sum, mut squares) = (0.0, 0.0);
            for t in 0..30 {
                for (f, x) in counts.column(t).positive() {
                    assert_eq!(x, (scale * f64::from(magnitudes[t * 20 + f])).round());
                    sum += x;
                    squares += x * x;
                }
            }
            assert_eq!(sum, counts.total());
            assert!((squares / sum - TYPICAL_ENTRY).abs() < 0.3, "{}", squares / sum);
        }
    }

    #[test]
    fn silence_and_what_overflows_are_refused() {
        assert_eq!(to_counts(&[0.0; 8], 4, Levels::Typical), Err(Fault::Silent));
        assert_eq!(to_counts(&[1.0, f32::INFINITY], 1, Levels::Typical), Err(Fault::TooLoud));
        assert_eq!(to_counts(&[1.0, f32::NAN], 1, Levels::Largest(7)), Err(Fault::TooLoud));
    }

    #[test]
    fn the_faintest_sound_there_is_has_counts() {
        let (counts, _) = to_counts(&[0.0, f32::MIN_POSITIVE, 1e-45], 3, Levels::Typical).unwrap();
        assert_eq!(counts.total(), 10.0);
    }
}
