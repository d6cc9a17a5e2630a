//! What can be wrong with a recording, and what to do about it.

use std::path::{Path, PathBuf};

/// Why a recording cannot be used. The text is one sentence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be opened, read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file was opened, but there is no usable sound in it.
    #[error("{}: {fault}", path.display())]
    Recording {
        /// The file, as it was named by the caller.
        path: PathBuf,
        /// What is wrong with it.
        fault: Fault,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] bpnmf_io::Error),
    /// The frames of a spectrogram cannot be put together to a sound again.
    #[error("a window of {window} samples every {hop} samples: {advice}")]
    Frames {
        /// Samples in a window.
        window: usize,
        /// Samples from one window to the next.
        hop: usize,
        /// What to use instead.
        advice: &'static str,
    },
    /// No sound has this rate.
    #[error("{rate} samples a second: use a rate from 1 to {MAX_RATE}")]
    Rate {
        /// Samples a second.
        rate: u32,
    },
    /// The resampling library refused.
    #[error("cannot go from {from} to {to} samples a second: {reason}")]
    Resample {
        /// The rate of the sound.
        from: u32,
        /// The rate asked for.
        to: u32,
        /// What the library said.
        reason: String,
    },
    /// A sample that is no number was to be written.
    #[error("{}: sample {sample} is {value}: samples must be finite, nothing was written", path.display())]
    NotFinite {
        /// The file that was to be written.
        path: PathBuf,
        /// Its place, from 0.
        sample: u64,
        /// What stands there.
        value: f32,
    },
    /// A file got more or fewer samples than it was begun for.
    #[error("{}: begun for {announced} samples, got {written}, nothing was written", path.display())]
    Length {
        /// The file that was to be written.
        path: PathBuf,
        /// Samples its header tells of.
        announced: u64,
        /// Samples it got.
        written: u64,
    },
    /// A wav file says its size in 32 bits.
    #[error("{}: {bytes} bytes of samples do not fit into a wav file, which holds 4 GB: use fewer", path.display())]
    TooLong {
        /// The file that was to be written.
        path: PathBuf,
        /// How many bytes its samples need.
        bytes: u64,
    },
    /// The sounds cannot be scored.
    #[error(transparent)]
    Unscorable(#[from] crate::bss_eval::Unscorable),
}

/// The highest rate that is resampled to or from.
pub(crate) const MAX_RATE: u32 = 1_000_000;

/// What is wrong with the contents of a recording.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing has this name.
    #[error("there is no such file")]
    Missing,
    /// The name is that of a folder.
    #[error("this is a folder: name a file inside it")]
    Folder,
    /// A device, a pipe or a socket.
    #[error("this is not a regular file: copy what it gives to a file first")]
    NotRegular,
    /// The system does not let us.
    #[error("permission denied: check who may read it")]
    Denied,
    /// The file has no bytes.
    #[error("the file is empty (0 bytes): was it written to the end?")]
    NoBytes,
    /// No format we read begins like this.
    #[error("this is no recording that can be read: convert it to wav, flac, mp3, ogg or aiff")]
    UnknownFormat,
    /// The container is known, what is inside is not.
    #[error("this {format} file holds sound in a coding that cannot be read: convert it to wav or flac")]
    UnknownCodec {
        /// The container: "wav", "ogg", ...
        format: String,
    },
    /// The header contradicts itself.
    #[error("its header cannot be understood ({reason}): was it written to the end?")]
    BadHeader {
        /// What the decoder said.
        reason: String,
    },
    /// The file ends before its header says.
    #[error("its header promises {promised} samples a channel, it has {found}: was it copied to the end?")]
    Truncated {
        /// Samples a channel by the header.
        promised: u64,
        /// Samples a channel that are there.
        found: u64,
    },
    /// There is more of it than memory for it.
    #[error(
        "it has at least {samples} samples a channel, and there is memory for {most}: cut it into pieces"
    )]
    TooLong {
        /// Samples a channel by the header, or those so far.
        samples: u64,
        /// The most there may be.
        most: u64,
    },
    /// The file ends in the middle, and nowhere says how long it was meant to be.
    #[error("it breaks off after {found} samples a channel: was it copied to the end?")]
    BrokenOff {
        /// Samples a channel that are there.
        found: u64,
    },
    /// Bytes in the middle are wrong.
    #[error("it is damaged after {sample} samples a channel ({reason}): get another copy of the file")]
    Damaged {
        /// Samples a channel before the damage.
        sample: u64,
        /// What the decoder said.
        reason: String,
    },
    /// A header and nothing behind it.
    #[error("there are 0 samples in it: was it written to the end?")]
    NoSamples,
    /// A sample is NaN or infinite.
    #[error("sample {sample} of channel {channel} is {value}: samples must be finite numbers")]
    NotFinite {
        /// Its place, from 0.
        sample: u64,
        /// Its channel, from 1.
        channel: usize,
        /// What stands there.
        value: f64,
    },
    /// The channel that was asked for is not there.
    #[error("there is no channel {channel}: channels here go from 1 to {channels}")]
    NoChannel {
        /// The channel asked for, from 1.
        channel: usize,
        /// How many there are.
        channels: usize,
    },
    /// All samples are 0.
    #[error("the recording is silent: there is nothing to take apart")]
    Silent,
    /// The magnitudes of its spectra are beyond 32 bits.
    #[error("its samples are too large: scale them to be between -1 and 1")]
    TooLoud,
    /// Rate or channels change on the way.
    #[error("rate or channels change after {sample} samples a channel: cut the file there into two")]
    Changing {
        /// Samples a channel before the change.
        sample: u64,
    },
}

impl Fault {
    /// The error of this fault in that file.
    pub(crate) fn of(self, path: &Path) -> Error {
        Error::Recording { path: path.to_owned(), fault: self }
    }
}
