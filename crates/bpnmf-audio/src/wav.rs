//! Sounds out, as wav files. Knows nothing of where they come from.

use std::io::{self, Write};
use std::path::Path;

use crate::error::Error;
use crate::sound::Sound;

/// How a sample is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// A whole number of 16 bits: what is beyond full scale is clipped.
    Int16,
    /// A whole number of 24 bits: what is beyond full scale is clipped.
    Int24,
    /// A float of 32 bits: the samples as they are.
    Float32,
}

impl Depth {
    fn bytes(self) -> u16 {
        match self {
            Depth::Int16 => 2,
            Depth::Int24 => 3,
            Depth::Float32 => 4,
        }
    }
}

/// Writes a sound as a wav file, which appears under its name when it is whole. Gives the number of clipped samples.
pub fn write(path: &Path, sound: &Sound, depth: Depth) -> Result<u64, Error> {
    if let Some(at) = sound.samples.iter().position(|sample| !sample.is_finite()) {
        return Err(Error::NotFinite { path: path.to_owned(), sample: at as u64, value: sound.samples[at] });
    }
    let bytes = sound.samples.len() as u64 * u64::from(depth.bytes());
    let Some(header) = header(sound.rate, depth, bytes) else {
        return Err(Error::TooLong { path: path.to_owned(), bytes });
    };
    let mut clipped = 0;
    bpnmf_io::write_atomically(path, |writer| {
        writer.write_all(&header)?;
        clipped = put(writer, &sound.samples, depth)?;
        // A chunk has an even number of bytes.
        writer.write_all(&[0][..(bytes % 2) as usize])
    })?;
    Ok(clipped)
}

/// Writes samples; gives the number of clipped ones.
fn put(writer: &mut impl Write, samples: &[f32], depth: Depth) -> io::Result<u64> {
    let mut clipped = 0;
    for &sample in samples {
        clipped += u64::from(depth != Depth::Float32 && sample.abs() > 1.0);
        // Casts of floats saturate; 2^23 has to be held back by hand.
        match depth {
            Depth::Int16 => writer.write_all(&((sample * 32_768.0).round() as i16).to_le_bytes()),
            Depth::Int24 => {
                let whole = (sample * 8_388_608.0).round().clamp(-8_388_608.0, 8_388_607.0) as i32;
                writer.write_all(&whole.to_le_bytes()[..3])
            }
            Depth::Float32 => writer.write_all(&sample.to_le_bytes()),
        }?;
    }
    Ok(clipped)
}

/// Everything before the samples, unless there are too many `bytes` of them.
fn header(rate: u32, depth: Depth, bytes: u64) -> Option<Vec<u8>> {
    let (width, float) = (depth.bytes(), depth == Depth::Float32);
    let mut format = Vec::new();
    format.extend(if float { 3u16 } else { 1 }.to_le_bytes());
    format.extend(1u16.to_le_bytes());
    format.extend(rate.to_le_bytes());
    format.extend(rate.checked_mul(u32::from(width))?.to_le_bytes());
    format.extend(width.to_le_bytes());
    format.extend((width * 8).to_le_bytes());
    let mut chunks = Vec::new();
    if float {
        // The standard asks for these where samples are no whole numbers.
        format.extend(0u16.to_le_bytes());
        chunks.extend(b"fact\x04\0\0\0");
        chunks.extend(u32::try_from(bytes / u64::from(width)).ok()?.to_le_bytes());
    }
    let size = 4 + 8 + format.len() as u64 + chunks.len() as u64 + 8 + bytes + bytes % 2;
    let mut header = b"RIFF".to_vec();
    header.extend(u32::try_from(size).ok()?.to_le_bytes());
    header.extend(b"WAVEfmt ");
    header.extend((format.len() as u32).to_le_bytes());
    header.extend(format);
    header.extend(chunks);
    header.extend(b"data");
    header.extend((bytes as u32).to_le_bytes());
    Some(header)
}
