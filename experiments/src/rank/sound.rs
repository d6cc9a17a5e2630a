//! From the bytes of a wave file to the magnitudes of its spectrogram. Knows nothing of counts.

use std::f64::consts::TAU;

const WINDOW: usize = 512;
const HOP: usize = WINDOW / 2;

/// The samples of a mono PCM file with 16 bits a sample, between -1 and 1.
pub(super) fn samples(bytes: &[u8]) -> Result<Vec<f64>, String> {
    let word = |chunk: &[u8], at: usize| chunk.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
    if bytes.get(..4) != Some(b"RIFF") || bytes.get(8..12) != Some(b"WAVE") {
        return Err("not a wave file".into());
    }
    let mut rest = &bytes[12..];
    let mut described = false;
    while rest.len() >= 8 {
        let size = u32::from_le_bytes([rest[4], rest[5], rest[6], rest[7]]) as usize;
        let chunk = &rest[8..rest.len().min(8 + size)];
        match &rest[..4] {
            b"fmt " => {
                let format = (word(chunk, 0), word(chunk, 2), word(chunk, 14));
                if format != (Some(1), Some(1), Some(16)) {
                    return Err(format!(
                        "format, channels, bits are {format:?}: only mono PCM of 16 bits is read"
                    ));
                }
                described = true;
            }
            b"data" if described => {
                return Ok(chunk
                    .chunks_exact(2)
                    .map(|b| f64::from(i16::from_le_bytes([b[0], b[1]])) / 32768.0)
                    .collect());
            }
            _ => {}
        }
        // Chunks start at even places.
        rest = rest.get(8 + size + size % 2..).unwrap_or_default();
    }
    Err("the wave file has no samples".into())
}

/// Magnitudes of the short-time Fourier transform, frame after frame, and how many there are in a frame: periodic Hann
/// window of 512, hop 256, frames centred at the multiples of the hop, zeros beyond both ends.
pub(super) fn spectrogram(samples: &[f64]) -> (usize, Vec<f64>) {
    let bins = WINDOW / 2 + 1;
    let angle = |i: usize| TAU * i as f64 / WINDOW as f64;
    let (cosines, sines): (Vec<f64>, Vec<f64>) =
        (0..WINDOW).map(|i| (angle(i).cos(), angle(i).sin())).unzip();
    let frames = samples.len() / HOP + 1;
    let mut magnitudes = Vec::with_capacity(frames * bins);
    for frame in 0..frames {
        let windowed: Vec<f64> = (0..WINDOW)
            .map(|i| {
                let sample = (frame * HOP + i).checked_sub(WINDOW / 2).and_then(|at| samples.get(at));
                sample.map_or(0.0, |sample| sample * (0.5 - 0.5 * cosines[i]))
            })
            .collect();
        // A few seconds of sound do not need a fast transform.
        for bin in 0..bins {
            let (mut real, mut imaginary) = (0.0, 0.0);
            for (i, value) in windowed.iter().enumerate() {
                real += value * cosines[bin * i % WINDOW];
                imaginary += value * sines[bin * i % WINDOW];
            }
            magnitudes.push(f64::hypot(real, imaginary));
        }
    }
    (bins, magnitudes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sine_on_a_bin_has_a_quarter_of_the_window_as_its_magnitude() {
        let samples: Vec<f64> = (0..2048).map(|i| (TAU * 20.0 * i as f64 / WINDOW as f64).sin()).collect();
        let (bins, magnitudes) = spectrogram(&samples);
        assert_eq!((bins, magnitudes.len()), (257, 257 * 9));
        let frame = &magnitudes[4 * bins..][..bins];
        for (bin, magnitude) in frame.iter().enumerate() {
            let expected = match bin {
                20 => 128.0,
                19 | 21 => 64.0,
                _ => 0.0,
            };
            assert!((magnitude - expected).abs() < 1e-9, "bin {bin}: {magnitude}");
        }
    }

    #[test]
    fn samples_come_after_the_chunks_that_are_not_samples() {
        let mut bytes =
            b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x22\x56\0\0\x44\xac\0\0\x02\0\x10\0".to_vec();
        bytes.extend(b"LIST\x03\0\0\0abc\0data\x04\0\0\0\0\x40\0\x80");
        assert_eq!(samples(&bytes).unwrap(), [0.5, -1.0]);
        bytes[22] = 2;
        assert!(samples(&bytes).is_err());
    }
}
