//! A checkpoint as a file: magic, format, length, checksum, the job, and what the library needs to go on.

use super::hash::Hash;
use super::job::Job;
use bpnmf::{Checkpoint, Standing};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;

/// The first bytes of a checkpoint.
const MAGIC: [u8; 8] = Checkpoint::MAGIC;

/// The layout of what follows.
const FORMAT: u64 = Checkpoint::FORMAT;

/// Magic, format, length and checksum.
const HEADER: usize = 32;

/// Why a file cannot be used.
#[derive(Debug)]
pub(super) enum Unusable {
    /// There is none.
    Missing,
    /// It is not what was written.
    Damaged(String),
    /// It is whole, but this version does not know its layout.
    OtherFormat(u64),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "it is not there"),
            Self::Damaged(what) => write!(f, "{what}"),
            Self::OtherFormat(format) => write!(f, "its format is {format}"),
        }
    }
}

/// What a file holds.
pub(super) struct Saved {
    pub(super) job: Job,
    /// `None` for a run that has just begun.
    pub(super) checkpoint: Option<Checkpoint>,
}

/// Writes `path`, all of it or nothing: under the name `temporary` until it is on disk. Gives its size.
pub(super) fn write(
    path: &Path,
    temporary: &Path,
    before: Option<&Path>,
    job: &Job,
    standing: Option<&Standing<'_>>,
) -> io::Result<u64> {
    let written = fill(temporary, job, standing).and_then(|bytes| {
        match before.map(|before| fs::rename(path, before)) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::rename(temporary, path)?,
        }
        if let Some(folder) = path.parent() {
            sync_folder(folder)?;
        }
        Ok(bytes)
    });
    if written.is_err() {
        let _ = fs::remove_file(temporary);
    }
    written
}

/// Makes the names in a folder last.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    // Elsewhere a folder cannot be opened as a file.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

fn fill(path: &Path, job: &Job, standing: Option<&Standing<'_>>) -> io::Result<u64> {
    let job = serde_json::to_vec(job)?;
    let file = BufWriter::with_capacity(1 << 16, File::create(path)?);
    let mut out = Hashed { out: file, hash: Hash::default(), length: 0 };
    out.out.write_all(&[0; HEADER])?;
    out.write_all(&(job.len() as u64).to_le_bytes())?;
    out.write_all(&job)?;
    if let Some(standing) = standing {
        standing.write(&mut out)?;
    }
    let Hashed { out: mut file, hash, length } = out;
    file.rewind()?;
    file.write_all(&header(length, hash.value()))?;
    file.into_inner()?.sync_all()?;
    Ok(HEADER as u64 + length)
}

/// Gives bytes that begin as a checkpoint the length and the checksum that belong to them: for tests.
pub(super) fn mend(bytes: &mut [u8]) {
    if let Some((head, rest)) = bytes.split_at_mut_checked(HEADER) {
        let mut hash = Hash::default();
        hash.add(rest);
        head.copy_from_slice(&header(rest.len() as u64, hash.value()));
    }
}

/// A checkpoint of a job without files that stands where `standing` says: for tests.
pub(super) fn sample(job: &Job, standing: &[u8]) -> Vec<u8> {
    let job = serde_json::to_vec(job).unwrap_or_default();
    let mut bytes = vec![0; HEADER];
    bytes.extend((job.len() as u64).to_le_bytes());
    bytes.extend(job);
    bytes.extend(standing);
    mend(&mut bytes);
    bytes
}

fn header(length: u64, checksum: u64) -> Vec<u8> {
    let numbers = [FORMAT, length, checksum];
    MAGIC.into_iter().chain(numbers.into_iter().flat_map(u64::to_le_bytes)).collect()
}

/// Counts and sums what goes through.
struct Hashed<W: Write> {
    out: W,
    hash: Hash,
    length: u64,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.add(&bytes[..written]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads what [`write`] wrote.
pub(super) fn read(path: &Path) -> Result<Saved, Unusable> {
    parse(load(path)?)
}

/// Reads what a file holds.
pub(super) fn parse(bytes: Vec<u8>) -> Result<Saved, Unusable> {
    let (job, bytes, at) = open(bytes)?;
    let rest = &bytes[at..];
    let checkpoint = (!rest.is_empty()).then(|| Checkpoint::read(rest)).transpose();
    Ok(Saved { job, checkpoint: checkpoint.map_err(|error| Unusable::Damaged(error.to_string()))? })
}

/// Only the job of it.
pub(super) fn read_job(path: &Path) -> Result<Job, Unusable> {
    Ok(open(load(path)?)?.0)
}

fn load(path: &Path) -> Result<Vec<u8>, Unusable> {
    // Asked before opening: to open a pipe is to wait for its writer, and a device has no end.
    let about = fs::metadata(path);
    if about.as_ref().is_ok_and(|about| !about.is_file()) {
        return Err(Unusable::Damaged("it is not a regular file".to_owned()));
    }
    about.and_then(|_| fs::read(path)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Unusable::Missing,
        _ => Unusable::Damaged(error.to_string()),
    })
}

/// The job, all bytes, and where those of the library start.
fn open(bytes: Vec<u8>) -> Result<(Job, Vec<u8>, usize), Unusable> {
    let damaged = |what: &str| Unusable::Damaged(what.to_owned());
    let number = |at: usize| {
        let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
        bytes.map(|bytes| u64::from_le_bytes(*bytes)).ok_or_else(|| damaged("it is too short"))
    };
    if bytes.get(..8) != Some(&MAGIC[..]) {
        return Err(damaged("it does not begin as a checkpoint does"));
    }
    let (format, length, checksum) = (number(8)?, number(16)?, number(24)?);
    if format != FORMAT {
        return Err(Unusable::OtherFormat(format));
    }
    if length != (bytes.len() - HEADER) as u64 {
        return Err(damaged("its length is not what it says"));
    }
    let mut hash = Hash::default();
    hash.add(&bytes[HEADER..]);
    if hash.value() != checksum {
        return Err(damaged("its checksum is wrong"));
    }
    let start = HEADER + 8;
    let end = usize::try_from(number(HEADER)?).ok().and_then(|length| start.checked_add(length));
    let text = end.and_then(|end| bytes.get(start..end)).ok_or_else(|| damaged("it is too short"))?;
    let job = serde_json::from_slice(text).map_err(|error| damaged(&error.to_string()))?;
    let at = start + text.len();
    Ok((job, bytes, at))
}
