//! Reading: a path to a [`Table`]. Chooses the format by the name; what the bytes mean is the formats' business.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};
use std::path::Path;

use bpnmf::Counts;
use flate2::bufread::MultiGzDecoder;

use crate::array::Array;
use crate::delimited::{Decimal, Layout};
use crate::error::{Error, Fault};
use crate::hdf5::BlockFile;
use crate::{delimited, hdf5, mtx, npy, npz, ten_x};

/// A matrix of counts and the names that stood beside it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Table {
    /// The counts, features x observations.
    pub counts: Counts,
    /// One name a row, if the file has them.
    pub feature_names: Option<Vec<String>>,
    /// One name a column, if the file has them.
    pub observation_names: Option<Vec<String>>,
    /// How the file was understood, if it is a table of text: what it calls lines and columns are those of the file.
    pub layout: Option<Layout>,
}

/// How to read a file.
///
/// ```
/// let mut options = bpnmf_io::ReadOptions::default();
/// options.transpose = true;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The file is observations x features: exchange rows and columns, names included. Not for .h5ad, .h5 and folders of 10x
    /// Genomics, which say themselves what their observations are.
    pub transpose: bool,
    /// Entries may be missing: NaN, and in tables of text empty cells, NA and NaN. Else they are refused.
    pub missing: bool,
    /// Tables of text: so many columns at the beginning hold names; `None` to find out.
    pub names: Option<usize>,
    /// Tables of text: whether the first line holds names; `None` to find out.
    pub header: Option<bool>,
    /// Tables of text: what stands before fractions; `None` to find out.
    pub decimal: Option<Decimal>,
    /// The most bytes of memory that the values may take; `None` for no limit. A small file can unpack to a large matrix.
    pub memory: Option<u64>,
    /// Of an .h5ad file the layer with the counts; `None` for X.
    pub layer: Option<String>,
}

/// The memory that the values of a file may take.
#[derive(Clone, Copy)]
pub(crate) struct Room(u64);

impl Room {
    /// As much as there is.
    pub(crate) const NONE: Self = Self(u64::MAX);

    /// That of one array of a kind of which four are held.
    pub(crate) fn quarter(self) -> Self {
        Self(self.0 / 4)
    }

    /// Errors unless `count` values of `size` bytes fit.
    #[inline]
    pub(crate) fn check(self, count: usize, size: usize) -> Result<(), Fault> {
        let bytes = count as u128 * size as u128;
        if bytes > u128::from(self.0) { Err(Fault::Memory { bytes }) } else { Ok(()) }
    }
}

/// Makes counts of what a file holds; knows what NaN stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Nan {
    Refused,
    Missing,
}

impl Nan {
    pub(crate) fn dense(
        self,
        features: usize,
        observations: usize,
        values: Vec<f64>,
    ) -> Result<Counts, bpnmf::Error> {
        match self {
            Self::Refused => Counts::from_dense(features, observations, values),
            Self::Missing => Counts::from_dense_with_missing(features, observations, values),
        }
    }

    pub(crate) fn sparse(
        self,
        features: usize,
        observations: usize,
        starts: Vec<usize>,
        rows: Vec<u32>,
        values: Vec<f64>,
    ) -> Result<Counts, bpnmf::Error> {
        match self {
            Self::Refused => Counts::from_sparse(features, observations, starts, rows, values),
            Self::Missing => Counts::from_sparse_with_missing(features, observations, starts, rows, values),
        }
    }
}

impl Table {
    pub(crate) fn unnamed(counts: Counts) -> Self {
        Self { counts, feature_names: None, observation_names: None, layout: None }
    }
}

/// The name that stands for standard input.
pub const STDIN: &str = "-";

/// Reads a matrix of counts from a .npy, .npz, .csv, .tsv, .txt, .mtx, .h5ad or .h5 file or a folder of 10x Genomics; text may
/// be gzipped.
///
/// Sparse files (scipy's .npz, coordinate .mtx, most .h5ad) stay sparse. Errors name places as the file has them,
/// whatever [`ReadOptions::transpose`] says. `-` is standard input, whose format is known by its first bytes.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Table, Error> {
    if path.as_os_str() == STDIN {
        let path = Path::new("standard input");
        return from_stdin(options).map_err(|fault| Error::new(path, fault));
    }
    let read = || {
        if path.is_dir() {
            return ten_x::read(path, options.nan(), options.untransposed()?);
        }
        let (file, size) = open(path)?;
        let (format, gzipped) = format_of(path)?;
        if matches!(format, Format::Hdf5) {
            return hdf5::read(path, size, options.layer.as_deref(), options.nan(), options.untransposed()?);
        }
        parse(format, gzipped, BufReader::with_capacity(1 << 16, file), size, options)
    };
    read().map_err(|fault| Error::new(path, fault))
}

/// Opens a file whose observations can be read block by block: an .h5ad file whose matrix is dense or compressed by observation,
/// or an .h5 file of 10x Genomics. `None` for all others, which [`read`] reads as a whole or says why it cannot.
pub fn open_blocks(path: &Path, options: &ReadOptions) -> Result<Option<BlockFile>, Error> {
    if path.as_os_str() == STDIN || path.is_dir() {
        return Ok(None);
    }
    if !matches!(format_of(path), Ok((Format::Hdf5, _))) {
        return Ok(None);
    }
    let opened = || {
        let (_, size) = open(path)?;
        hdf5::open_blocks(path, size, options.layer.as_deref(), options.nan(), options.untransposed()?)
    };
    opened().map_err(|fault| Error::new(path, fault))
}

/// As [`read`], from bytes that are in memory: for tests.
#[doc(hidden)]
pub fn read_bytes(path: &Path, bytes: &[u8], options: &ReadOptions) -> Result<Table, Error> {
    let read = || {
        if bytes.is_empty() {
            return Err(Fault::NoBytes);
        }
        let (format, gzipped) = format_of(path)?;
        if matches!(format, Format::Hdf5) {
            return hdf5::read_bytes(bytes, options.layer.as_deref(), options.nan(), options.untransposed()?);
        }
        parse(format, gzipped, Cursor::new(bytes), bytes.len() as u64, options)
    };
    read().map_err(|fault| Error::new(path, fault))
}

/// Reads the one array of a .npy file, whatever its shape.
///
/// Smaller integers come as int64, uint16 as uint32, bool as uint8, float16 as float32.
pub fn read_npy_array(path: &Path) -> Result<Array<'static>, Error> {
    let read = || {
        let (file, size) = open(path)?;
        npy::read_array(&mut BufReader::new(file), size, Room::NONE)
    };
    read().map_err(|fault| Error::new(path, fault))
}

/// Reads all arrays of a .npz file with their names, in the order of the file; types as in [`read_npy_array`].
pub fn read_npz_arrays(path: &Path) -> Result<Vec<(String, Array<'static>)>, Error> {
    let read = || npz::read_arrays(BufReader::new(open(path)?.0));
    read().map_err(|fault| Error::new(path, fault))
}

/// All of standard input, in a format that its first bytes tell.
fn from_stdin(options: &ReadOptions) -> Result<Table, Fault> {
    let unreadable = |reason| Fault::io("read", reason);
    let most = options.memory.unwrap_or(u64::MAX - 1);
    let mut bytes = Vec::new();
    io::stdin().lock().take(most + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.starts_with(GZIP) {
        let mut unpacked = Vec::new();
        MultiGzDecoder::new(&bytes[..]).take(most + 1).read_to_end(&mut unpacked).map_err(unreadable)?;
        bytes = unpacked;
    }
    if bytes.len() as u64 > most {
        return Err(Fault::Memory { bytes: bytes.len() as u128 });
    }
    if bytes.is_empty() {
        return Err(Fault::NoBytes);
    }
    let name = match &bytes {
        bytes if bytes.starts_with(b"\x93NUMPY") => "stdin.npy",
        bytes if bytes.starts_with(b"PK") => "stdin.npz",
        bytes if bytes.starts_with(b"%%MatrixMarket") => "stdin.mtx",
        _ => "stdin.txt",
    };
    let size = bytes.len() as u64;
    let (format, gzipped) = format_of(Path::new(name))?;
    parse(format, gzipped, Cursor::new(bytes), size, options)
}

/// How a gzipped file begins.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Whether it is gzipped, whatever its name.
fn is_gzipped(reader: &mut impl BufRead) -> Result<bool, Fault> {
    Ok(reader.fill_buf().map_err(|reason| Fault::io("read", reason))?.starts_with(GZIP))
}

#[derive(Clone, Copy)]
enum Format {
    Npy,
    Npz,
    Mtx,
    Delimited(delimited::Kind),
    Hdf5,
}

impl ReadOptions {
    fn nan(&self) -> Nan {
        if self.missing { Nan::Missing } else { Nan::Refused }
    }

    /// The room for a file that says itself what its observations are.
    fn untransposed(&self) -> Result<Room, Fault> {
        if self.transpose { Err(Fault::Transposed) } else { Ok(Room(self.memory.unwrap_or(u64::MAX))) }
    }
}

impl Format {
    fn is_binary(self) -> bool {
        matches!(self, Self::Npy | Self::Npz | Self::Hdf5)
    }
}

fn parse<R: BufRead + Seek>(
    format: Format,
    gzipped: bool,
    mut reader: R,
    size: u64,
    options: &ReadOptions,
) -> Result<Table, Fault> {
    let nan = options.nan();
    if let Some(layer) = &options.layer {
        return Err(Fault::layerless(layer));
    }
    let gzipped = gzipped || !format.is_binary() && is_gzipped(&mut reader)?;
    // To exchange rows and columns is to hold both.
    let room = Room(options.memory.unwrap_or(u64::MAX) / if options.transpose { 2 } else { 1 });
    let table = match format {
        Format::Npy => npy::read_matrix(&mut reader, size, nan, room).map(Table::unnamed),
        Format::Npz => npz::read_matrix(reader, nan, room).map(Table::unnamed),
        Format::Mtx => mtx::read(text(reader, gzipped), size, nan, room).map(Table::unnamed),
        Format::Delimited(kind) => delimited::read(text(reader, gzipped), kind, options, nan, room),
        Format::Hdf5 => unreachable!("read by its path, or as bytes"),
    }?;
    Ok(if options.transpose {
        Table {
            counts: table.counts.transposed(),
            feature_names: table.observation_names,
            observation_names: table.feature_names,
            layout: table.layout,
        }
    } else {
        table
    })
}

/// Opens a regular file that has at least one byte; gives its size too.
pub(crate) fn open(path: &Path) -> Result<(File, u64), Fault> {
    let unreadable = |reason| Fault::io("read", reason);
    // Asked before opening: to open a pipe is to wait for its writer.
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if about.is_dir() {
        return Err(Fault::Folder);
    }
    if !about.is_file() {
        return Err(Fault::NotRegular);
    }
    let file = File::open(path).map_err(unreadable)?;
    if about.len() == 0 {
        return Err(Fault::NoBytes);
    }
    Ok((file, about.len()))
}

/// The format a name stands for, and whether it is gzipped.
fn format_of(path: &Path) -> Result<(Format, bool), Fault> {
    let lower = |path: &Path| path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let outer = lower(path);
    let gzipped = outer.as_deref() == Some("gz");
    let extension = if gzipped { lower(Path::new(path.file_stem().unwrap_or_default())) } else { outer };
    let format = match extension.as_deref() {
        Some("npy") if !gzipped => Format::Npy,
        Some("npz") if !gzipped => Format::Npz,
        Some("mtx") => Format::Mtx,
        Some("csv") => Format::Delimited(delimited::Kind::Csv),
        Some("tsv") => Format::Delimited(delimited::Kind::Tsv),
        Some("txt") => Format::Delimited(delimited::Kind::Txt),
        Some("h5ad" | "h5" | "hdf5") if !gzipped => Format::Hdf5,
        Some("wav" | "flac" | "mp3" | "ogg" | "oga" | "aif" | "aiff" | "m4a" | "aac") if !gzipped => {
            return Err(Fault::Recording);
        }
        _ => {
            let extension = match (extension, gzipped) {
                (Some(extension), true) => Some(format!("{extension}.gz")),
                (None, true) => Some("gz".to_owned()),
                (extension, false) => extension,
            };
            return Err(Fault::UnknownFormat { extension });
        }
    };
    Ok((format, gzipped))
}

pub(crate) fn text<'a>(reader: impl BufRead + 'a, gzipped: bool) -> Box<dyn BufRead + 'a> {
    if gzipped {
        // Multi: what bgzip and `cat a.gz b.gz` write is several streams in a row.
        Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(reader)))
    } else {
        Box::new(reader)
    }
}
