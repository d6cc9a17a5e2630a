//! A matrix that stays in its file: the observations are read block by block, as a fit asks for them.

use std::ops::Range;
use std::path::{Path, PathBuf};

use bpnmf::{BlockSource, Counts};
use hdf5_pure::{DType, Dataset, File, Group};

use super::{BYTES_AN_ENTRY, Member, Source, array_fault, bad, find, length, matrix_at, member, told_apart};
use crate::error::{Error, Fault};
use crate::read::{Nan, Room};
use crate::sparse::{self, Entries};

/// A matrix in an .h5ad file, or in an .h5 file of 10x Genomics, whose observations lie one after the other, so that blocks of
/// them are read as they are needed.
#[derive(Debug)]
pub struct BlockFile {
    path: PathBuf,
    features: usize,
    observations: usize,
    /// One name a feature, if the file has them.
    pub feature_names: Option<Vec<String>>,
    /// One name an observation, if the file has them.
    pub observation_names: Option<Vec<String>>,
    nan: Nan,
    stored: Stored,
}

/// How the matrix is stored.
enum Stored {
    Dense(Dataset),
    /// Observation t has the entries `starts[t] .. starts[t + 1]`.
    Compressed {
        data: Dataset,
        indices: Dataset,
        starts: Vec<usize>,
        place: String,
    },
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Dense(_) => "Dense",
            Self::Compressed { .. } => "Compressed",
        })
    }
}

/// Opens a file whose observations can be read block by block; `None` if they lie scattered in it.
pub(crate) fn open(
    path: &Path,
    size: u64,
    layer: Option<&str>,
    nan: Nan,
    room: Room,
) -> Result<Option<BlockFile>, Fault> {
    let file = File::open_streaming(path).map_err(|error| bad(&error))?;
    Source { file, size, nan, room }.blocks(path, layer)
}

impl Source {
    fn blocks(&self, path: &Path, layer: Option<&str>) -> Result<Option<BlockFile>, Fault> {
        let root = self.file.root();
        if member(&root, "X").is_some() || member(&root, "obs").is_some() {
            return self.annotated_blocks(path, &root, layer);
        }
        if let Some(layer) = layer {
            return Err(Fault::layerless(layer));
        }
        // The older files of 10x Genomics are small.
        let Some(Member::Group(matrix)) = member(&root, "matrix") else { return Ok(None) };
        let shape = self.whole_numbers(&matrix, "shape", "matrix")?;
        let &[features, observations] = shape.as_slice() else {
            let reason = format!("has {} entries, it must have 2", shape.len());
            return Err(Fault::array(reason).in_array("matrix/shape"));
        };
        let stored = self.stored(&matrix, "matrix", (features, observations))?;
        let named = |name: &str, count| self.names(&matrix, name, &format!("matrix/{name}"), count);
        let (symbols, ids) = (named("features/name", features)?, named("features/id", features)?);
        Ok(Some(BlockFile {
            path: path.to_owned(),
            features,
            observations,
            feature_names: told_apart(symbols, ids),
            observation_names: named("barcodes", observations)?,
            nan: self.nan,
            stored,
        }))
    }

    fn annotated_blocks(
        &self,
        path: &Path,
        root: &Group,
        layer: Option<&str>,
    ) -> Result<Option<BlockFile>, Fault> {
        let place = layer.map_or_else(|| "X".to_owned(), |layer| format!("layers/{layer}"));
        let (features, observations, stored) = match matrix_at(root, &place, layer)? {
            Member::Array(array) => {
                let shape = array.shape().map_err(|error| array_fault(&place, &error))?;
                let &[observations, features] = shape.as_slice() else {
                    let reason = format!("the matrix has {} dimensions, it must have 2", shape.len());
                    return Err(Fault::array(reason).in_array(&place));
                };
                let (features, observations) = (features as usize, observations as usize);
                sparse::check_shape(features, observations)?;
                self.claimed(&array, &place, features)?;
                are_numbers(&array, &place)?;
                (features, observations, Stored::Dense(array))
            }
            Member::Group(group) => {
                let (shape, by_observation) = self.layout(&group, &place)?;
                if !by_observation {
                    return Ok(None);
                }
                (shape.0, shape.1, self.stored(&group, &place, shape)?)
            }
        };
        Ok(Some(BlockFile {
            path: path.to_owned(),
            features,
            observations,
            feature_names: self.named(root, "var", features)?,
            observation_names: self.named(root, "obs", observations)?,
            nan: self.nan,
            stored,
        }))
    }

    /// The arrays of a matrix that is compressed by observation.
    fn stored(
        &self,
        group: &Group,
        place: &str,
        (features, observations): (usize, usize),
    ) -> Result<Stored, Fault> {
        sparse::check_shape(features, observations)?;
        let array = |name: &str| match find(group, name) {
            Some(Member::Array(array)) => Ok(array),
            _ => Err(Fault::array("the file does not have it").in_array(&format!("{place}/{name}"))),
        };
        let (data, indices) = (array("data")?, array("indices")?);
        let in_data = format!("{place}/data");
        are_numbers(&data, &in_data)?;
        let count = self.claimed(&data, &in_data, 1)? as usize;
        let there = length(&indices, &format!("{place}/indices"))?;
        if there != count as u64 {
            let reason = format!("{there} indices for {count} values");
            return Err(Fault::array(reason).in_array(&format!("{place}/indices")));
        }
        let in_starts = format!("{place}/indptr");
        let starts = self.indices(&array("indptr")?, &in_starts, count + 1)?;
        check_starts(&starts, observations, count).map_err(|fault| fault.in_array(&in_starts))?;
        Ok(Stored::Compressed { data, indices, starts, place: place.to_owned() })
    }
}

/// Errors unless these are the starts of so many lines of `count` entries.
fn check_starts(starts: &[usize], lines: usize, count: usize) -> Result<(), Fault> {
    if starts.len() != lines + 1 {
        return Err(Fault::array(format!("{} entries, the shape asks for {}", starts.len(), lines + 1)));
    }
    if (starts[0], starts[lines]) != (0, count) {
        let (first, last) = (starts[0], starts[lines]);
        return Err(Fault::array(format!("runs from {first} to {last}, there are {count} values")));
    }
    match starts.windows(2).position(|pair| pair[0] > pair[1]) {
        None => Ok(()),
        Some(line) => Err(Fault::array(format!(
            "falls from {} to {} at entry {}",
            starts[line],
            starts[line + 1],
            line + 1
        ))),
    }
}

fn are_numbers(array: &Dataset, place: &str) -> Result<(), Fault> {
    let dtype = array.dtype().map_err(|error| array_fault(place, &error))?;
    match dtype {
        DType::String | DType::VariableLengthString | DType::ObjectReference | DType::Compound(_) => {
            Err(Fault::array(format!("its values are of type {dtype}: counts are numbers")).in_array(place))
        }
        _ => Ok(()),
    }
}

impl BlockFile {
    /// The entries that are stored: all of them if the matrix is dense.
    pub fn entries(&self) -> usize {
        match &self.stored {
            Stored::Dense(_) => self.features.saturating_mul(self.observations),
            Stored::Compressed { starts, .. } => starts[self.observations],
        }
    }

    /// About how many bytes of memory it takes to read all of it at once.
    pub fn bytes(&self) -> u64 {
        let of_entry = match self.stored {
            Stored::Dense(_) => size_of::<f64>() + size_of::<f32>(),
            Stored::Compressed { .. } => BYTES_AN_ENTRY,
        };
        self.entries().saturating_mul(of_entry) as u64
    }

    fn some(&self, columns: Range<usize>) -> Result<Counts, Fault> {
        let number = columns.len();
        match &self.stored {
            Stored::Dense(array) => {
                let values = array
                    .read_f64_rows(columns.start as u64, number as u64)
                    .map_err(|error| array_fault("X", &error))?;
                Ok(self.nan.dense(self.features, number, values)?)
            }
            Stored::Compressed { data, indices, starts, place } => {
                let (first, last) = (starts[columns.start], starts[columns.end]);
                let count = (last - first) as u64;
                let (in_data, in_indices) = (format!("{place}/data"), format!("{place}/indices"));
                let (values, there) = match count {
                    0 => (Vec::new(), Vec::new()),
                    _ => (
                        data.read_f64_rows(first as u64, count)
                            .map_err(|error| array_fault(&in_data, &error))?,
                        indices
                            .read_i64_rows(first as u64, count)
                            .map_err(|error| array_fault(&in_indices, &error))?,
                    ),
                };
                if values.len() as u64 != count || there.len() as u64 != count {
                    return Err(Fault::array("it ends too early").in_array(&in_data));
                }
                let feature = |(at, &index): (usize, &i64)| {
                    usize::try_from(index).ok().filter(|&f| f < self.features).map(|f| f as u32).ok_or_else(
                        || {
                            let limit = self.features;
                            let (at, told) = (first + at, "it must be from 0 to below");
                            Fault::array(format!("entry {at} is {index}, {told} {limit}"))
                                .in_array(&in_indices)
                        },
                    )
                };
                let rows = there.iter().enumerate().map(feature).collect::<Result<Vec<u32>, _>>()?;
                let ends = columns.clone().zip(0u32..);
                let columns = ends.flat_map(|(t, c)| std::iter::repeat_n(c, starts[t + 1] - starts[t]));
                let entries = Entries { rows, columns: columns.collect(), values };
                entries.into_counts(self.features, number, self.nan, Room::NONE)
            }
        }
    }
}

/// A fault of some columns, the first of which is `first`, with the place that the file has it.
fn placed(fault: Fault, first: usize) -> Fault {
    use bpnmf::Error::{Negative, NotFinite, TooBig};
    let Fault::Counts(mut error) = fault else { return fault };
    if let Negative { observation, .. } | NotFinite { observation, .. } | TooBig { observation, .. } =
        &mut error
    {
        *observation += first;
    }
    Fault::Counts(error)
}

impl BlockSource for BlockFile {
    fn features(&self) -> usize {
        self.features
    }

    fn observations(&self) -> usize {
        self.observations
    }

    fn read(&self, columns: Range<usize>) -> Result<Counts, bpnmf::Error> {
        let first = columns.start;
        self.some(columns).map_err(|fault| {
            let error = Error::new(&self.path, placed(fault, first));
            bpnmf::Error::BadBlock { reason: error.to_string() }
        })
    }
}
