//! Sounds out, as wav files. Knows nothing of where they come from.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bpnmf_io::NewFile;

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
    let mut writer = Writer::create(path, sound.rate, depth, sound.samples.len() as u64)?;
    writer.push(&sound.samples)?;
    writer.finish()
}

/// A wav file that is written bit by bit and appears under its name when it is finished.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("bpnmf-audio-writer-{}.wav", std::process::id()));
/// use bpnmf_audio::wav::{Depth, Writer};
/// let mut writer = Writer::create(&path, 22_050, Depth::Int16, 4)?;
/// writer.push(&[0.0, 0.5])?;
/// writer.push(&[1.5, -0.5])?;
/// assert_eq!(writer.finish()?, 1, "one sample was clipped");
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), bpnmf_audio::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: NewFile,
    depth: Depth,
    announced: u64,
    written: u64,
    clipped: u64,
}

impl Writer {
    /// Begins a file of so many samples: its header comes first and says how many there will be.
    pub fn create(path: &Path, rate: u32, depth: Depth, samples: u64) -> Result<Self, Error> {
        let bytes = samples.saturating_mul(u64::from(depth.bytes()));
        let too_long = || Error::TooLong { path: path.to_owned(), bytes };
        let header = header(rate, depth, bytes).ok_or_else(too_long)?;
        let mut file = NewFile::create(path)?;
        file.write(|writer| writer.write_all(&header))?;
        Ok(Self { path: path.to_owned(), file, depth, announced: samples, written: 0, clipped: 0 })
    }

    /// The next samples.
    pub fn push(&mut self, samples: &[f32]) -> Result<(), Error> {
        if let Some(at) = samples.iter().position(|sample| !sample.is_finite()) {
            let (path, sample) = (self.path.clone(), self.written + at as u64);
            return Err(Error::NotFinite { path, sample, value: samples[at] });
        }
        self.clipped += self.file.write(|writer| put(writer, samples, self.depth))?;
        self.written += samples.len() as u64;
        Ok(())
    }

    /// Gives the file its name, and the number of samples that were clipped.
    pub fn finish(mut self) -> Result<u64, Error> {
        if self.written != self.announced {
            return Err(Error::Length { path: self.path, announced: self.announced, written: self.written });
        }
        // A chunk has an even number of bytes.
        if self.written % 2 == 1 && self.depth.bytes() % 2 == 1 {
            self.file.write(|writer| writer.write_all(&[0]))?;
        }
        self.file.finish()?;
        Ok(self.clipped)
    }
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
