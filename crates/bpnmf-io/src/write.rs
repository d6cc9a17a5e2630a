//! Writing: arrays to numpy files, and the one way any file of ours comes into being. Knows no model.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::array::Array;
use crate::error::{Error, Fault};
use crate::npy;

/// Writes a file so that its name only ever shows the whole of it: `fill` writes to a temporary name in the same
/// folder, which takes the place of `path` when all of it is on disk. After an error the old file is untouched.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("bpnmf-io-atomic-{}.txt", std::process::id()));
/// use std::io::Write;
/// bpnmf_io::write_atomically(&path, |writer| writeln!(writer, "step,bound"))?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "step,bound\n");
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), bpnmf_io::Error>(())
/// ```
pub fn write_atomically(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), Error> {
    let mut file = NewFile::create(path)?;
    file.write(fill)?;
    file.finish()
}

/// A file that is written bit by bit and appears under its name with [`finish`](Self::finish): what
/// [`write_atomically`] does, for several files at once. Dropped before, it leaves nothing.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    writer: BufWriter<File>,
    /// The temporary name and the one it will get; none for a device, which is written to as it is.
    names: Option<(PathBuf, PathBuf)>,
}

impl NewFile {
    /// Begins a file that will be called `path`.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let (file, names) = begin(path).map_err(|reason| unwritable(path, reason))?;
        Ok(Self { path: path.to_owned(), writer: BufWriter::with_capacity(1 << 16, file), names })
    }

    /// Writes more of it.
    pub fn write<T>(&mut self, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> Result<T, Error> {
        fill(&mut self.writer).map_err(|reason| unwritable(&self.path, reason))
    }

    /// Gives it its name, when all of it is on disk.
    pub fn finish(mut self) -> Result<(), Error> {
        let done = self.writer.flush().and_then(|()| match &self.names {
            None => Ok(()),
            Some((temporary, target)) => {
                self.writer.get_ref().sync_all()?;
                fs::rename(temporary, target)
            }
        });
        if done.is_ok() {
            self.names = None;
        }
        done.map_err(|reason| unwritable(&self.path, reason))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.names {
            // A leftover under a hidden name harms nobody.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Writes one array as a .npy file.
pub fn write_npy(path: &Path, array: &Array<'_>) -> Result<(), Error> {
    check_length(None, array).map_err(|fault| Error::new(path, fault))?;
    write_atomically(path, |writer| npy::write(writer, array))
}

/// Writes named arrays as a .npz file, compressed. The same arrays give the same bytes: no time is stored.
pub fn write_npz(path: &Path, arrays: &[(&str, Array<'_>)]) -> Result<(), Error> {
    for (name, array) in arrays {
        check_length(Some(name), array).map_err(|fault| Error::new(path, fault))?;
    }
    write_atomically(path, |writer| {
        let mut archive = ZipWriter::new(writer);
        for (name, array) in arrays {
            let options = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Deflated)
                // Eight bytes a value and a header: past 4 GiB the archive needs wider fields.
                .large_file(array.values().len() >= 1 << 28);
            archive.start_file(format!("{name}.npy"), options)?;
            npy::write(&mut archive, array)?;
        }
        archive.finish()?;
        Ok(())
    })
}

/// Errors unless there are as many values as the shape says.
fn check_length(name: Option<&str>, array: &Array<'_>) -> Result<(), Fault> {
    let expected = array.shape().iter().try_fold(1usize, |count, &length| count.checked_mul(length));
    let found = array.values().len();
    if expected == Some(found) {
        return Ok(());
    }
    let shape = npy::shape_text(array.shape());
    let fault = Fault::array(format!("shape {shape} does not fit its {found} values, nothing was written"));
    Err(match name {
        Some(name) => fault.in_array(name),
        None => fault,
    })
}

fn unwritable(path: &Path, reason: io::Error) -> Error {
    // The system reports a missing folder and a missing file alike: only the first can happen here.
    let reason = match reason.kind() {
        io::ErrorKind::NotFound => io::Error::other("its folder does not exist"),
        _ => reason,
    };
    Error::new(path, Fault::io("write", reason))
}

/// The file to write to and its names, none for a device.
fn begin(path: &Path) -> io::Result<(File, Option<(PathBuf, PathBuf)>)> {
    // Through a link the file it points to is replaced, not the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Ok(about) = fs::metadata(&target) {
        if about.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !about.is_file() {
            // To rename over /dev/null would delete a device.
            return Ok((OpenOptions::new().write(true).open(&target)?, None));
        }
    }
    let (temporary, file) = create_beside(&target)?;
    Ok((file, Some((temporary, target))))
}

/// A new file in the folder of `path` under a name that no other writer, in this process or another, uses.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    loop {
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_file_name(format!(".{name}.{}-{number}.tmp", process::id()));
        match File::create_new(&temporary) {
            // Left by a process that was killed: in containers process ids come again soon.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            result => return result.map(|file| (temporary, file)),
        }
    }
}
