//! HDF5: the h5ad files of anndata and the .h5 files of 10x Genomics. Both say themselves which axis has the observations
//! (cells), so neither is ever read transposed by accident. Matrices are read in pieces, sparse ones stay sparse.

mod blocks;

use std::path::Path;

use bpnmf::Counts;
use hdf5_pure::{AttrValue, DType, Dataset, File, Group, VlenStringReadOptions};

use crate::error::Fault;
use crate::npz::expand_starts;
use crate::read::{Nan, Room, Table};
use crate::sparse::{self, Entries};
pub use blocks::BlockFile;
pub(crate) use blocks::open as open_blocks;

/// Values that are read at a time.
const PIECE: u64 = 1 << 20;

/// Row, column and value, as they are read and as they are sorted.
const BYTES_AN_ENTRY: usize = 32;

/// No deflate stream expands further; what claims to is a lie.
const LARGEST_EXPANSION: u64 = 1032;

/// Reads the counts of a file on disk.
pub(crate) fn read(
    path: &Path,
    size: u64,
    layer: Option<&str>,
    nan: Nan,
    room: Room,
) -> Result<Table, Fault> {
    let file = File::open_streaming(path).map_err(|error| bad(&error))?;
    Source { file, size, nan, room }.table(layer)
}

/// The same of bytes that are in memory.
pub(crate) fn read_bytes(bytes: &[u8], layer: Option<&str>, nan: Nan, room: Room) -> Result<Table, Fault> {
    let file = File::from_bytes(bytes.to_vec()).map_err(|error| bad(&error))?;
    Source { file, size: bytes.len() as u64, nan, room }.table(layer)
}

fn bad(error: &hdf5_pure::Error) -> Fault {
    Fault::BadHdf5 { reason: error.to_string() }
}

/// An open file and what may be done with it.
struct Source {
    file: File,
    /// Bytes on disk.
    size: u64,
    nan: Nan,
    room: Room,
}

/// What a name in a group stands for.
enum Member {
    Array(Dataset),
    Group(Group),
}

impl Source {
    fn table(&self, layer: Option<&str>) -> Result<Table, Fault> {
        let root = self.file.root();
        if member(&root, "X").is_some() || member(&root, "obs").is_some() {
            return self.annotated(&root, layer);
        }
        if let Some(layer) = layer {
            return Err(Fault::layerless(layer));
        }
        if let Some(Member::Group(matrix)) = member(&root, "matrix") {
            return self.ten_x(&matrix, "matrix", ["features/name", "features/id"]);
        }
        // The older files of 10x Genomics have a group for the genome.
        let genomes: Vec<String> = root.groups().map_err(|error| bad(&error))?;
        let here = |name: &String| root.group(name).ok().filter(|group| member(group, "indptr").is_some());
        let mut found = genomes.iter().filter_map(|name| Some((name, here(name)?)));
        match (found.next(), found.next()) {
            (Some((name, matrix)), None) => self.ten_x(&matrix, name, ["gene_names", "genes"]),
            (Some(_), Some(_)) => {
                Err(Fault::BadHdf5 { reason: "it holds several genomes: keep one of them".to_owned() })
            }
            (None, _) => Err(Fault::NoMatrix),
        }
    }

    /// A file of anndata: X, or a layer, is observations x features.
    fn annotated(&self, root: &Group, layer: Option<&str>) -> Result<Table, Fault> {
        let place = layer.map_or_else(|| "X".to_owned(), |layer| format!("layers/{layer}"));
        let matrix = matrix_at(root, &place, layer)?;
        let counts = match matrix {
            Member::Array(array) => self.dense(&array, &place)?,
            Member::Group(group) => self.compressed(&group, &place)?,
        };
        let feature_names = self.named(root, "var", counts.features())?;
        let observation_names = self.named(root, "obs", counts.observations())?;
        Ok(Table { counts, feature_names, observation_names, layout: None })
    }

    /// The names that anndata has for an axis.
    fn named(&self, root: &Group, axis: &str, count: usize) -> Result<Option<Vec<String>>, Fault> {
        let Some(Member::Group(axis_group)) = member(root, axis) else { return Ok(None) };
        let attributes = axis_group.attrs().map_err(|error| bad(&error))?;
        let index = attributes.get("_index").and_then(text_of).unwrap_or_else(|| "_index".to_owned());
        self.names(&axis_group, &index, &format!("{axis}/{index}"), count)
    }

    /// A dense matrix, observations x features: as we hold it.
    fn dense(&self, array: &Dataset, place: &str) -> Result<Counts, Fault> {
        let shape = array.shape().map_err(|error| array_fault(place, &error))?;
        let &[observations, features] = shape.as_slice() else {
            let reason = format!("the matrix has {} dimensions, it must have 2", shape.len());
            return Err(Fault::array(reason).in_array(place));
        };
        let (observations, features) = (observations as usize, features as usize);
        sparse::check_shape(features, observations)?;
        let values = self.numbers(array, place, observations as u64, features)?;
        Ok(self.nan.dense(features, observations, values)?)
    }

    /// A group with the arrays of scipy's compressed matrices, observations x features.
    fn compressed(&self, group: &Group, place: &str) -> Result<Counts, Fault> {
        let (shape, by_observation) = self.layout(group, place)?;
        self.sparse(group, place, shape, by_observation)
    }

    /// Features and observations of such a group, and whether it is compressed by observation.
    fn layout(&self, group: &Group, place: &str) -> Result<((usize, usize), bool), Fault> {
        let attributes = group.attrs().map_err(|error| array_fault(place, &error))?;
        let attribute = |names: [&str; 2]| names.iter().find_map(|name| attributes.get(*name));
        let encoding = attribute(["encoding-type", "h5sparse_format"]).and_then(text_of);
        let by_observation = match encoding.as_deref() {
            Some("csr_matrix" | "csr") => true,
            Some("csc_matrix" | "csc") => false,
            other => {
                let reason = match other {
                    Some(other) => format!(
                        "encoding {other:?} cannot be read: it must be an array, csr_matrix or csc_matrix"
                    ),
                    None => "it does not say how it is encoded: write it with anndata".to_owned(),
                };
                return Err(Fault::array(reason).in_array(place));
            }
        };
        let shape = match attribute(["shape", "h5sparse_shape"]).and_then(numbers_of) {
            Some(shape) => shape,
            None => self.whole_numbers(group, "shape", place)?,
        };
        let &[observations, features] = shape.as_slice() else {
            let reason = format!("the matrix has {} dimensions, it must have 2", shape.len());
            return Err(Fault::array(reason).in_array(place));
        };
        Ok(((features, observations), by_observation))
    }

    /// The matrix of 10x Genomics: compressed by barcode.
    fn ten_x(&self, matrix: &Group, place: &str, names: [&str; 2]) -> Result<Table, Fault> {
        let shape = self.whole_numbers(matrix, "shape", place)?;
        let &[features, observations] = shape.as_slice() else {
            let reason = format!("has {} entries, it must have 2", shape.len());
            return Err(Fault::array(reason).in_array(&format!("{place}/shape")));
        };
        let counts = self.sparse(matrix, place, (features, observations), true)?;
        let named = |name: &str, count| self.names(matrix, name, &format!("{place}/{name}"), count);
        let (symbols, ids) = (named(names[0], features)?, named(names[1], features)?);
        Ok(Table {
            feature_names: told_apart(symbols, ids),
            observation_names: named("barcodes", observations)?,
            counts,
            layout: None,
        })
    }

    /// `data`, `indices` and `indptr` of a group; by observation or by feature.
    fn sparse(
        &self,
        group: &Group,
        place: &str,
        (features, observations): (usize, usize),
        by_observation: bool,
    ) -> Result<Counts, Fault> {
        sparse::check_shape(features, observations)?;
        let (lines, across) =
            if by_observation { (observations, features) } else { (features, observations) };
        let array = |name: &str| match member(group, name) {
            Some(Member::Array(array)) => Ok(array),
            _ => Err(Fault::array("the file does not have it").in_array(&format!("{place}/{name}"))),
        };
        let (data, indices) = (array("data")?, array("indices")?);
        let count = length(&data, &format!("{place}/data"))?;
        self.room.check(usize::try_from(count).unwrap_or(usize::MAX), BYTES_AN_ENTRY)?;
        let starts = self.indices(&array("indptr")?, &format!("{place}/indptr"), count as usize + 1)?;
        let along = expand_starts(&starts, lines, count as usize)
            .map_err(|fault| fault.in_array(&format!("{place}/indptr")))?;
        drop(starts);
        let values = self.numbers(&data, &format!("{place}/data"), count, 1)?;
        let there = self.indices(&indices, &format!("{place}/indices"), across)?;
        if there.len() != values.len() {
            let reason = format!("{} indices for {} values", there.len(), values.len());
            return Err(Fault::array(reason).in_array(&format!("{place}/indices")));
        }
        let there: Vec<u32> = there.into_iter().map(|index| index as u32).collect();
        let (rows, columns) = if by_observation { (there, along) } else { (along, there) };
        Entries { rows, columns, values }.into_counts(features, observations, self.nan, self.room)
    }

    /// An array of whole numbers that is small.
    fn whole_numbers(&self, group: &Group, name: &str, place: &str) -> Result<Vec<usize>, Fault> {
        match member(group, name) {
            Some(Member::Array(array)) => self.indices(&array, &format!("{place}/{name}"), usize::MAX),
            _ => Err(Fault::array("the file does not have it").in_array(&format!("{place}/{name}"))),
        }
    }

    /// Whole numbers from 0 to below `limit`.
    fn indices(&self, array: &Dataset, place: &str, limit: usize) -> Result<Vec<usize>, Fault> {
        let whole = |dtype: &DType| {
            matches!(
                dtype,
                DType::I8
                    | DType::I16
                    | DType::I32
                    | DType::I64
                    | DType::U8
                    | DType::U16
                    | DType::U32
                    | DType::U64
            )
        };
        if !array.dtype().is_ok_and(|dtype| whole(&dtype)) {
            return Err(Fault::array("its values must be integers").in_array(place));
        }
        let count = self.claimed(array, place, 1)?;
        let mut all = Vec::new();
        for first in (0..count).step_by(PIECE as usize) {
            let piece = array.read_i64_rows(first, PIECE).map_err(|error| array_fault(place, &error))?;
            self.room.check(all.len() + piece.len(), size_of::<usize>())?;
            for value in piece {
                let at = all.len();
                let index = usize::try_from(value).ok().filter(|&index| index < limit);
                all.push(index.ok_or_else(|| {
                    let told = format!("entry {at} is {value}, it must be from 0 to below {limit}");
                    Fault::array(told).in_array(place)
                })?);
            }
        }
        Ok(all)
    }

    /// `rows` rows of `wide` numbers each.
    fn numbers(&self, array: &Dataset, place: &str, rows: u64, wide: usize) -> Result<Vec<f64>, Fault> {
        let dtype = array.dtype().map_err(|error| array_fault(place, &error))?;
        if matches!(
            dtype,
            DType::String | DType::VariableLengthString | DType::ObjectReference | DType::Compound(_)
        ) {
            return Err(
                Fault::array(format!("its values are of type {dtype}: counts are numbers")).in_array(place)
            );
        }
        self.claimed(array, place, wide)?;
        let total = usize::try_from(rows).unwrap_or(usize::MAX).saturating_mul(wide);
        self.room.check(total, size_of::<f64>())?;
        let mut values = Vec::with_capacity(total);
        let piece = (PIECE / wide as u64).max(1);
        for first in (0..rows).step_by(piece as usize) {
            values.extend(array.read_f64_rows(first, piece).map_err(|error| array_fault(place, &error))?);
        }
        if values.len() != total {
            return Err(Fault::array(format!("has {} values of {total}", values.len())).in_array(place));
        }
        Ok(values)
    }

    /// The rows that an array claims to have, each of `wide` values; no more than its bytes could unpack to.
    fn claimed(&self, array: &Dataset, place: &str, wide: usize) -> Result<u64, Fault> {
        let count = length(array, place)?;
        let element = array.element_size().map_err(|error| array_fault(place, &error))?;
        let bytes = u128::from(count) * wide as u128 * u128::from(element.max(1));
        if bytes > u128::from(self.size) * u128::from(LARGEST_EXPANSION) + 64 {
            let told = format!("the {} bytes of the file cannot hold the {bytes} that it claims", self.size);
            return Err(Fault::array(told).in_array(place));
        }
        Ok(count)
    }

    /// The names of an axis; `None` if the file has none.
    fn names(
        &self,
        group: &Group,
        name: &str,
        place: &str,
        count: usize,
    ) -> Result<Option<Vec<String>>, Fault> {
        let array = match find(group, name) {
            Some(Member::Array(array)) => array,
            // anndata's arrays of strings that may be missing.
            Some(Member::Group(inner)) => match member(&inner, "values") {
                Some(Member::Array(array)) => array,
                _ => return Ok(None),
            },
            None => return Ok(None),
        };
        let there = length(&array, place)?;
        if there != count as u64 {
            return Err(Fault::array(format!("{there} names, there are {count}")).in_array(place));
        }
        self.room.check(count, size_of::<String>())?;
        let numbers = |numbers: Result<Vec<i64>, hdf5_pure::Error>| {
            numbers.map(|all| all.iter().map(i64::to_string).collect())
        };
        let most = usize::try_from(self.size.saturating_mul(LARGEST_EXPANSION)).unwrap_or(usize::MAX);
        let limits = VlenStringReadOptions::new().with_max_elements(count).with_max_payload_bytes(most);
        let names = match array.dtype() {
            Ok(DType::VariableLengthString) => array.read_vlen_strings(limits),
            Ok(DType::String) => {
                self.claimed(&array, place, 1)?;
                array.read_string()
            }
            Ok(_) => numbers(array.read_i64()),
            Err(error) => Err(error),
        };
        names.map(Some).map_err(|error| array_fault(place, &error))
    }
}

fn array_fault(place: &str, error: &hdf5_pure::Error) -> Fault {
    Fault::array(format!("could not be read: {error}")).in_array(place)
}

/// The first dimension of an array.
fn length(array: &Dataset, place: &str) -> Result<u64, Fault> {
    let shape = array.shape().map_err(|error| array_fault(place, &error))?;
    Ok(shape.first().copied().unwrap_or(1))
}

fn member(group: &Group, name: &str) -> Option<Member> {
    let array = group.dataset(name).ok().map(Member::Array);
    array.or_else(|| group.group(name).ok().map(Member::Group))
}

/// X, or the layer that was asked for, which is at `place`.
fn matrix_at(root: &Group, place: &str, layer: Option<&str>) -> Result<Member, Fault> {
    match (find(root, place), layer) {
        (Some(matrix), _) => Ok(matrix),
        (None, None) => Err(Fault::NoX { layers: layers(root) }),
        (None, Some(layer)) => Err(Fault::NoLayer { layer: layer.to_owned(), layers: layers(root) }),
    }
}

/// What stands at a path below a group.
fn find(group: &Group, path: &str) -> Option<Member> {
    match path.split_once('/') {
        // A name of a column may hold a stroke of its own.
        Some((first, rest)) => member(group, path).or_else(|| find(&group.group(first).ok()?, rest)),
        None => member(group, path),
    }
}

/// The names of the layers, for messages.
fn layers(root: &Group) -> Vec<String> {
    let Some(Member::Group(layers)) = member(root, "layers") else { return Vec::new() };
    let mut names = layers.datasets().unwrap_or_default();
    names.extend(layers.groups().unwrap_or_default());
    names.sort();
    names
}

/// Symbols of genes; those that stand for several get their identifier behind them.
fn told_apart(symbols: Option<Vec<String>>, ids: Option<Vec<String>>) -> Option<Vec<String>> {
    let (Some(symbols), Some(ids)) = (&symbols, &ids) else { return symbols.or(ids) };
    Some(unique(symbols, ids))
}

/// `names`; those that stand more than once with their `ids` behind them.
pub(crate) fn unique(names: &[String], ids: &[String]) -> Vec<String> {
    let mut seen = std::collections::HashMap::new();
    names.iter().for_each(|name| *seen.entry(name.as_str()).or_insert(0) += 1);
    let told = |(name, id): (&String, &String)| {
        if seen[name.as_str()] > 1 && name != id { format!("{name} ({id})") } else { name.clone() }
    };
    names.iter().zip(ids).map(told).collect()
}

fn text_of(value: &AttrValue) -> Option<String> {
    match value {
        AttrValue::String(text)
        | AttrValue::AsciiString(text)
        | AttrValue::VarLenString(text)
        | AttrValue::VarLenAsciiString(text)
        | AttrValue::StringSized { value: text, .. }
        | AttrValue::AsciiStringSized { value: text, .. } => Some(text.clone()),
        _ => None,
    }
}

fn numbers_of(value: &AttrValue) -> Option<Vec<usize>> {
    let whole = |&number: &i64| usize::try_from(number).ok();
    match value {
        AttrValue::I64Array(numbers) => numbers.iter().map(whole).collect(),
        AttrValue::I32Array(numbers) => numbers.iter().map(|&number| usize::try_from(number).ok()).collect(),
        AttrValue::U64Array(numbers) => numbers.iter().map(|&number| usize::try_from(number).ok()).collect(),
        AttrValue::U32Array(numbers) => numbers.iter().map(|&number| usize::try_from(number).ok()).collect(),
        _ => None,
    }
}
