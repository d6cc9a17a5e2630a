//! Recordings in: wav, flac, mp3, ogg vorbis and aiff to one channel of samples. Knows nothing of what they are for.

use std::fs::File;
use std::io::{self, Read};
use std::panic::AssertUnwindSafe;
use std::path::Path;

use symphonia::core::audio::GenericAudioBufferRef;
use symphonia::core::codecs::CodecParameters;
use symphonia::core::codecs::audio::well_known::{CODEC_ID_FLAC, CODEC_ID_MP3};
use symphonia::core::codecs::audio::{AudioCodecParameters, AudioDecoderOptions};
use symphonia::core::errors::Error as Decoder;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::well_known::FORMAT_ID_OGG;
use symphonia::core::formats::{FormatOptions, FormatReader, Track, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream, ReadOnlySource};
use symphonia::core::meta::MetadataOptions;

use crate::error::{Error, Fault};
use crate::sound::Sound;

/// What to make of several channels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Channel {
    /// Their mean.
    #[default]
    Mean,
    /// One of them, from 1.
    One(usize),
}

/// A coder that writes no more than the number of frames may have counted its header: an mp3 file this much shorter than
/// promised is whole.
const MP3_SLACK: u64 = 2 * 1152;

/// Reads a recording; what it is, its bytes say, not its name.
///
/// Samples of n bits come as k / 2^(n-1); float samples as they are, also beyond 1. Delay and padding of mp3 and ogg
/// coders are taken off. The channels are mixed while decoding: only the one that comes out is held.
///
/// ```no_run
/// use bpnmf_audio::{Channel, read};
/// let sound = read("piano.flac".as_ref(), Channel::Mean)?;
/// println!("{} s at {} Hz", sound.seconds(), sound.rate);
/// # Ok::<(), bpnmf_audio::Error>(())
/// ```
pub fn read(path: &Path, channel: Channel) -> Result<Sound, Error> {
    read_within(path, channel, u64::MAX)
}

/// As [`read`], but a recording of more than `most` samples a channel is refused: by its header where that says how many
/// there are, else as soon as there are more. A few bytes can stand for hours of silence.
pub fn read_within(path: &Path, channel: Channel, most: u64) -> Result<Sound, Error> {
    check(path)?;
    let open = || Ok(Box::new(open(path)?) as Box<dyn MediaSource>);
    guarded(path, || read_known(path, open, channel, most))
}

/// As [`read_within`], from bytes that are in memory: for tests.
#[doc(hidden)]
pub fn read_bytes(path: &Path, bytes: &[u8], channel: Channel, most: u64) -> Result<Sound, Error> {
    if bytes.is_empty() {
        return Err(Fault::NoBytes.of(path));
    }
    let open = || Ok(Box::new(io::Cursor::new(bytes.to_vec())) as Box<dyn MediaSource>);
    guarded(path, || read_known(path, open, channel, most))
}

/// Damage that the decoding library did not think of makes it panic: that is no reason to take the program down.
fn guarded(path: &Path, read: impl FnOnce() -> Result<Sound, Error>) -> Result<Sound, Error> {
    std::panic::catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        let reason = "the decoder gave up".to_owned();
        Err(Fault::Damaged { sample: 0, reason }.of(path))
    })
}

fn read_known(
    path: &Path,
    open: impl Fn() -> Result<Box<dyn MediaSource>, Error>,
    channel: Channel,
    most: u64,
) -> Result<Sound, Error> {
    let mut reader = probe(path, &open, open()?)?;
    if audio_of(path, reader.as_ref())?.1.codec == CODEC_ID_MP3 {
        // With a file that can seek, the length of an mp3 without a header of its own is guessed, and its end cut off
        // where the guess is short.
        reader = probe(path, &open, Box::new(ReadOnlySource::new(open()?)))?;
    }
    decode(path, reader.as_mut(), channel, most)
}

/// Whether there is something to open.
fn check(path: &Path) -> Result<(), Error> {
    // Asked before opening: to open a pipe is to wait for its writer.
    let about = std::fs::metadata(path).map_err(|source| unreadable(path, source))?;
    let fault = match about {
        _ if about.is_dir() => Fault::Folder,
        _ if !about.is_file() => Fault::NotRegular,
        _ if about.len() == 0 => Fault::NoBytes,
        _ => return Ok(()),
    };
    Err(fault.of(path))
}

fn open(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(|source| unreadable(path, source))
}

fn unreadable(path: &Path, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::NotFound => Fault::Missing.of(path),
        io::ErrorKind::PermissionDenied => Fault::Denied.of(path),
        _ => Error::File { path: path.display().to_string(), source },
    }
}

/// Finds out what format a file has and reads its header.
fn probe(
    path: &Path,
    open: impl Fn() -> Result<Box<dyn MediaSource>, Error>,
    source: Box<dyn MediaSource>,
) -> Result<Box<dyn FormatReader>, Error> {
    let stream = MediaSourceStream::new(source, Default::default());
    let (format, meta) = (FormatOptions::default(), MetadataOptions::default());
    symphonia::default::get_probe().probe(&Hint::new(), stream, format, meta).map_err(|error| match error {
        Decoder::IoError(source) if source.kind() != io::ErrorKind::UnexpectedEof => unreadable(path, source),
        Decoder::IoError(_) if begins_well(open()) => Fault::BrokenOff { found: 0 }.of(path),
        Decoder::IoError(_) => Fault::UnknownFormat.of(path),
        // Only its words tell who gave up: the search for a format, or the reader of the one that was found.
        Decoder::Unsupported(text) if text.starts_with("core") => Fault::UnknownFormat.of(path),
        Decoder::Unsupported(text) if !text.contains("missing") => {
            let format = text.split([':', ' ']).next().unwrap_or_default().to_owned();
            Fault::UnknownCodec { format }.of(path)
        }
        other => Fault::BadHeader { reason: reason(&other) }.of(path),
    })
}

/// Whether the first bytes are those of a format with such bytes: mp3 has none.
fn begins_well(source: Result<Box<dyn MediaSource>, Error>) -> bool {
    let mut start = [0; 12];
    let read = source.map(|mut source| source.read(&mut start));
    let (form, kind) = (&start[..4], &start[8..]);
    matches!(read, Ok(Ok(_)))
        && match form {
            b"fLaC" | b"OggS" => true,
            b"RIFF" => kind == b"WAVE",
            b"FORM" => kind == b"AIFF" || kind == b"AIFC",
            _ => false,
        }
}

/// The first track with sound, and its coding.
fn audio_of(path: &Path, reader: &dyn FormatReader) -> Result<(Track, AudioCodecParameters), Error> {
    let track = reader.default_track(TrackType::Audio).ok_or_else(|| unknown_codec(path, reader))?;
    match &track.codec_params {
        Some(CodecParameters::Audio(codec)) => Ok((track.clone(), codec.clone())),
        _ => Err(unknown_codec(path, reader)),
    }
}

fn unknown_codec(path: &Path, reader: &dyn FormatReader) -> Error {
    Fault::UnknownCodec { format: reader.format_info().short_name.to_owned() }.of(path)
}

fn decode(path: &Path, reader: &mut dyn FormatReader, channel: Channel, most: u64) -> Result<Sound, Error> {
    let (track, codec) = audio_of(path, reader)?;
    let too_long = |samples: u64| Fault::TooLong { samples, most }.of(path);
    if let Some(promised) = track.num_frames.filter(|&promised| promised > most) {
        return Err(too_long(promised));
    }
    // Only flac carries a checksum of all samples.
    let options = AudioDecoderOptions::default().verify(codec.codec == CODEC_ID_FLAC);
    let mut decoder = symphonia::default::get_codecs().make_audio_decoder(&codec, &options).map_err(
        |error| match error {
            Decoder::Unsupported(_) => unknown_codec(path, reader),
            other => Fault::BadHeader { reason: reason(&other) }.of(path),
        },
    )?;
    let mut mixer = Mixer { channel, format: None, samples: Vec::new(), planes: Vec::new() };
    let (mut start, mut broken_off) = (None, false);
    loop {
        let found = mixer.samples.len() as u64;
        let damaged = |error: Decoder| match error {
            Decoder::ResetRequired => Fault::Changing { sample: found }.of(path),
            other => Fault::Damaged { sample: found, reason: reason(&other) }.of(path),
        };
        let packet = match reader.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => break,
            Err(Decoder::IoError(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                // The others tell their length, or may end anywhere.
                broken_off = reader.format_info().format == FORMAT_ID_OGG;
                break;
            }
            Err(Decoder::IoError(error)) => return Err(unreadable(path, error)),
            Err(other) => return Err(damaged(other)),
        };
        if packet.track_id != track.id {
            continue;
        }
        // What readers cannot make sense of they leave out: only the times of what follows tell.
        let time = packet.pts.get().max(0) as u64;
        let missing = time.saturating_sub(*start.get_or_insert(time) + found);
        if missing > 0 {
            let reason = format!("{missing} samples cannot be read");
            return Err(Fault::Damaged { sample: found, reason }.of(path));
        }
        let decoded = decoder.decode(&packet).map_err(damaged)?;
        mixer.add(&decoded).map_err(|fault| fault.of(path))?;
        let found = mixer.samples.len() as u64;
        if found > most {
            return Err(too_long(found));
        }
    }
    let found = mixer.samples.len() as u64;
    let slack = if codec.codec == CODEC_ID_MP3 && track.delay.is_none() { MP3_SLACK } else { 0 };
    match track.num_frames {
        Some(promised) if found + slack < promised => {
            return Err(Fault::Truncated { promised, found }.of(path));
        }
        _ if broken_off => return Err(Fault::BrokenOff { found }.of(path)),
        _ => {}
    }
    if decoder.finalize().verify_ok == Some(false) {
        let reason = "the checksum of the samples is wrong".to_owned();
        return Err(Fault::Damaged { sample: 0, reason }.of(path));
    }
    match mixer.format {
        Some((rate, _)) if found > 0 => Ok(Sound { samples: mixer.samples, rate }),
        _ => Err(Fault::NoSamples.of(path)),
    }
}

/// What the decoder said, in its words.
fn reason(error: &Decoder) -> String {
    match error {
        Decoder::DecodeError(text) | Decoder::Unsupported(text) | Decoder::LimitError(text) => {
            (*text).to_owned()
        }
        other => other.to_string(),
    }
}

/// Makes one channel of many, packet by packet.
struct Mixer {
    channel: Channel,
    /// Rate and number of channels, once known.
    format: Option<(u32, usize)>,
    samples: Vec<f32>,
    /// The channels of a packet.
    planes: Vec<Vec<f64>>,
}

impl Mixer {
    fn add(&mut self, packet: &GenericAudioBufferRef<'_>) -> Result<(), Fault> {
        let (before, channels) = (self.samples.len() as u64, packet.num_planes());
        let format = (packet.spec().rate(), channels);
        if *self.format.get_or_insert(format) != format {
            return Err(Fault::Changing { sample: before });
        }
        let used = match self.channel {
            Channel::Mean => 0..channels,
            Channel::One(channel) if (1..=channels).contains(&channel) => channel - 1..channel,
            Channel::One(channel) => return Err(Fault::NoChannel { channel, channels }),
        };
        packet.copy_to_vecs_planar(&mut self.planes);
        for channel in used.clone() {
            // Also what is too large for a float of 32 bits.
            if let Some(at) = self.planes[channel].iter().position(|&value| !(value as f32).is_finite()) {
                let value = self.planes[channel][at];
                return Err(Fault::NotFinite { sample: before + at as u64, channel: channel + 1, value });
            }
        }
        let many = used.len() as f64;
        self.samples.extend((0..packet.frames()).map(|at| {
            let sum: f64 = used.clone().map(|channel| self.planes[channel][at]).sum();
            (sum / many) as f32
        }));
        Ok(())
    }
}
