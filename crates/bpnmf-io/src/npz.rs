//! numpy's .npz: a zip archive of .npy files, one dense matrix or the arrays of scipy's sparse ones.

use std::io::{Read, Seek};

use bpnmf::Counts;
use zip::ZipArchive;

use crate::array::{Array, Values};
use crate::error::Fault;
use crate::npy;
use crate::read::{Nan, Room};
use crate::sparse::{self, Entries};

/// No deflate stream expands further; what claims to is a lie.
const LARGEST_EXPANSION: u64 = 1032;

/// Reads the matrix of an archive.
pub(crate) fn read_matrix(file: impl Read + Seek, nan: Nan, room: Room) -> Result<Counts, Fault> {
    let mut archive = Archive::open(file)?;
    if ["format", "shape", "data"].iter().all(|name| archive.has(name)) {
        return read_sparse(&mut archive, nan, room.quarter());
    }
    let name = match archive.names.as_slice() {
        [only] => only.clone(),
        _ if archive.has("X") => "X".to_owned(),
        names => {
            return Err(Fault::Ambiguous { names: names.to_vec() });
        }
    };
    archive.with(&name, |reader, size| npy::read_matrix(reader, size, nan, room))
}

/// Reads all arrays of an archive.
pub(crate) fn read_arrays(file: impl Read + Seek) -> Result<Vec<(String, Array<'static>)>, Fault> {
    let mut archive = Archive::open(file)?;
    let mut arrays = Vec::new();
    for name in archive.names.clone() {
        let array = archive.array(&name, Room::NONE)?;
        arrays.push((name, array));
    }
    Ok(arrays)
}

struct Archive<R> {
    zip: ZipArchive<R>,
    /// Of the arrays, without .npy.
    names: Vec<String>,
}

impl<R: Read + Seek> Archive<R> {
    fn open(file: R) -> Result<Self, Fault> {
        let bad = |reason: String| Fault::BadArchive { reason };
        let zip = ZipArchive::new(file).map_err(|error| bad(error.to_string()))?;
        let names: Vec<String> =
            zip.file_names().filter_map(|name| Some(name.ok()?.strip_suffix(".npy")?.to_owned())).collect();
        if names.is_empty() {
            return Err(bad("no file in it ends in .npy".to_owned()));
        }
        Ok(Self { zip, names })
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|other| other == name)
    }

    /// Gives `read` the bytes of an array and how many there are.
    fn with<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut dyn Read, u64) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let open = || {
            let mut member = self.zip.by_name(&format!("{name}.npy")).map_err(|error| match error {
                zip::result::ZipError::FileNotFound => Fault::array("the archive does not have it"),
                other => Fault::array(format!("could not be read: {other}")),
            })?;
            let (size, packed) = (member.size(), member.compressed_size());
            if size > packed.saturating_mul(LARGEST_EXPANSION).saturating_add(64) {
                return Err(Fault::array(format!(
                    "its {packed} bytes cannot unpack to the {size} that the archive claims"
                )));
            }
            // One byte more than claimed may be read, so that a member that goes on is noticed.
            read(&mut (&mut member).take(size + 1), size)
        };
        open().map_err(|fault| fault.in_array(name))
    }

    fn array(&mut self, name: &str, room: Room) -> Result<Array<'static>, Fault> {
        self.with(name, |reader, size| npy::read_array(reader, size, room))
    }

    /// An array of whole numbers from 0 to below `limit`.
    fn indices(&mut self, name: &str, limit: usize, room: Room) -> Result<Vec<usize>, Fault> {
        let array = self.array(name, room)?;
        // They become of the size of an address, whatever they were.
        room.check(array.values().len(), size_of::<usize>())?;
        let check = |(i, value): (usize, i64)| match usize::try_from(value) {
            Ok(index) if index < limit => Ok(index),
            _ => Err(Fault::array(format!("entry {i} is {value}, it must be from 0 to below {limit}"))
                .in_array(name)),
        };
        match array.values() {
            Values::I64(values) => values.iter().copied().enumerate().map(check).collect(),
            Values::U32(values) => {
                values.iter().map(|&value| i64::from(value)).enumerate().map(check).collect()
            }
            Values::U8(values) => {
                values.iter().map(|&value| i64::from(value)).enumerate().map(check).collect()
            }
            _ => Err(Fault::array("its values must be integers").in_array(name)),
        }
    }

    /// As [`Archive::indices`], kept small: there is one for every entry of the matrix.
    fn lines(&mut self, name: &str, limit: usize, expected: usize, room: Room) -> Result<Vec<u32>, Fault> {
        let indices = self.indices(name, limit, room)?;
        if indices.len() != expected {
            return Err(
                Fault::array(format!("{} indices for {expected} values", indices.len())).in_array(name)
            );
        }
        Ok(indices.into_iter().map(|index| index as u32).collect())
    }
}

/// Reads what `scipy.sparse.save_npz` writes.
fn read_sparse<R: Read + Seek>(archive: &mut Archive<R>, nan: Nan, room: Room) -> Result<Counts, Fault> {
    let format = archive.with("format", npy::read_string)?;
    let shape = archive.indices("shape", usize::MAX, room)?;
    let &[features, observations] = shape.as_slice() else {
        return Err(Fault::array(format!("the matrix has {} dimensions, it must have 2", shape.len()))
            .in_array("shape"));
    };
    sparse::check_shape(features, observations)?;
    let compressed = match format.as_str() {
        "csc" => Some(observations),
        "csr" => Some(features),
        "coo" => None,
        _ => {
            return Err(Fault::array(format!(
                "sparse format {format:?} cannot be read: save matrix.tocsc()"
            ))
            .in_array("format"));
        }
    };
    let values = archive.array("data", room)?;
    room.check(values.values().len(), size_of::<f64>())?;
    let values = values.into_f64();
    let Some(lines) = compressed else {
        let entries = Entries {
            rows: archive.lines("row", features, values.len(), room)?,
            columns: archive.lines("col", observations, values.len(), room)?,
            values,
        };
        return entries.into_counts(features, observations, nan, room);
    };
    let along = expand_starts(&archive.indices("indptr", values.len() + 1, room)?, lines, values.len())
        .map_err(|fault| fault.in_array("indptr"))?;
    let by_column = format == "csc";
    let limit = if by_column { features } else { observations };
    let across = archive.lines("indices", limit, values.len(), room)?;
    let (rows, columns) = if by_column { (across, along) } else { (along, across) };
    let entries = Entries { rows, columns, values };
    entries.into_counts(features, observations, nan, room)
}

/// Which of the `lines` each of the `count` entries stands in.
pub(crate) fn expand_starts(starts: &[usize], lines: usize, count: usize) -> Result<Vec<u32>, Fault> {
    if starts.len() != lines + 1 {
        return Err(Fault::array(format!("{} entries, the shape asks for {}", starts.len(), lines + 1)));
    }
    if starts[0] != 0 || starts[lines] != count {
        return Err(Fault::array(format!(
            "runs from {} to {}, there are {count} values",
            starts[0], starts[lines]
        )));
    }
    let mut along = Vec::with_capacity(count);
    for line in 0..lines {
        if starts[line] > starts[line + 1] {
            return Err(Fault::array(format!(
                "falls from {} to {} at entry {}",
                starts[line],
                starts[line + 1],
                line + 1
            )));
        }
        along.resize(starts[line + 1], line as u32);
    }
    Ok(along)
}
