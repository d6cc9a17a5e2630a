//! numpy's .npy: a header that claims a shape, then the values. Knows nothing of archives.
//!
//! By hand, because the crates for it allocate what the header claims before they look at the size of the file.

use std::io::{self, Read, Write};

use bpnmf::Counts;

use crate::array::{Array, Values};
use crate::dtype::{Dtype, Kind};
use crate::error::Fault;
use crate::read::{Nan, Room};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Longer headers are those of structured types, which are refused anyway.
const LONGEST_HEADER: u64 = 1 << 16;
/// In bytes; the names of sparse formats have three letters.
const LONGEST_STRING: usize = 64;
const CHUNK: usize = 1 << 16;

/// What the header claims; that the bytes for it are there has been checked.
struct Header {
    dtype: Dtype,
    fortran_order: bool,
    shape: Vec<usize>,
    count: usize,
}

/// Reads a two-dimensional array of `size` bytes, header included.
pub(crate) fn read_matrix(reader: &mut dyn Read, size: u64, nan: Nan, room: Room) -> Result<Counts, Fault> {
    let header = Header::read(reader, size)?;
    header.dtype.require_number()?;
    let &[features, observations] = header.shape.as_slice() else {
        return Err(Fault::array(format!(
            "shape {} has {} dimensions, a matrix has 2: reshape it to features x observations",
            shape_text(&header.shape),
            header.shape.len()
        )));
    };
    let mut values = allocate(header.count, room)?;
    header.for_each(reader, |i, bytes| {
        let place = if header.fortran_order { i } else { (i % observations) * features + i / observations };
        values[place] = header.dtype.to_f64(bytes);
    })?;
    Ok(nan.dense(features, observations, values)?)
}

/// Reads an array of `size` bytes, header included.
pub(crate) fn read_array(reader: &mut dyn Read, size: u64, room: Room) -> Result<Array<'static>, Fault> {
    let header = Header::read(reader, size)?;
    header.dtype.require_number()?;
    let dtype = header.dtype;
    let values: Values<'static> = match (dtype.kind, dtype.size) {
        (Kind::Float, 8) => header.collect(reader, room, |bytes| dtype.to_f64(bytes))?.into(),
        (Kind::Float, _) => header.collect(reader, room, |bytes| dtype.to_f64(bytes) as f32)?.into(),
        (Kind::Bool, _) => header.collect(reader, room, |bytes| u8::from(bytes[0] != 0))?.into(),
        (Kind::Unsigned, 1) => header.collect(reader, room, |bytes| bytes[0])?.into(),
        (Kind::Unsigned, 2 | 4) => header.collect(reader, room, |bytes| dtype.to_i64(bytes) as u32)?.into(),
        _ => header.collect(reader, room, |bytes| dtype.to_i64(bytes))?.into(),
    };
    if let (Kind::Unsigned, 8, Values::I64(values)) = (dtype.kind, dtype.size, &values)
        && values.iter().any(|&value| value < 0)
    {
        return Err(Fault::array("a value is beyond what int64 holds: save the array as float64"));
    }
    Ok(Array::new(&header.shape, values))
}

/// Reads a single ASCII string, as scipy stores the name of a sparse format.
pub(crate) fn read_string(reader: &mut dyn Read, size: u64) -> Result<String, Fault> {
    let header = Header::read(reader, size)?;
    let is_string = matches!(header.dtype.kind, Kind::Bytes | Kind::Text);
    if !is_string || header.count != 1 || !(1..=LONGEST_STRING).contains(&header.dtype.size) {
        return Err(Fault::array("this must be one short string"));
    }
    let mut text = String::new();
    header.for_each(reader, |_, bytes| {
        text.extend(bytes.iter().filter(|byte| **byte != 0).map(|byte| char::from(*byte)));
    })?;
    Ok(text)
}

/// Writes a header and the values in C order, little-endian.
pub(crate) fn write(writer: &mut dyn Write, array: &Array<'_>) -> io::Result<()> {
    let descr = match array.values() {
        Values::F32(_) => "<f4",
        Values::F64(_) => "<f8",
        Values::U8(_) => "|u1",
        Values::U32(_) => "<u4",
        Values::I64(_) => "<i8",
    };
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {}, }}", shape_text(array.shape()));
    // The values start at a multiple of 64 bytes, so that numpy can map the file.
    let before = MAGIC.len() + 4;
    let padded = (before + header.len() + 1).next_multiple_of(64);
    header.push_str(&" ".repeat(padded - before - header.len() - 1));
    header.push('\n');
    let length =
        u16::try_from(header.len()).map_err(|_| io::Error::other("an array has too many dimensions"))?;
    writer.write_all(MAGIC)?;
    writer.write_all(&[1, 0])?;
    writer.write_all(&length.to_le_bytes())?;
    writer.write_all(header.as_bytes())?;
    match array.values() {
        Values::F32(values) => write_values(writer, values, |value| value.to_le_bytes()),
        Values::F64(values) => write_values(writer, values, |value| value.to_le_bytes()),
        Values::U8(values) => writer.write_all(values),
        Values::U32(values) => write_values(writer, values, |value| value.to_le_bytes()),
        Values::I64(values) => write_values(writer, values, |value| value.to_le_bytes()),
    }
}

/// A shape as Python writes it: `(3, 4)`, `(3,)`, `()`.
pub(crate) fn shape_text(shape: &[usize]) -> String {
    match shape {
        [length] => format!("({length},)"),
        _ => {
            let lengths: Vec<String> = shape.iter().map(usize::to_string).collect();
            format!("({})", lengths.join(", "))
        }
    }
}

fn write_values<T: Copy, const N: usize>(
    writer: &mut dyn Write,
    values: &[T],
    encode: impl Fn(T) -> [u8; N],
) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(CHUNK);
    for chunk in values.chunks(CHUNK / N) {
        bytes.clear();
        for &value in chunk {
            bytes.extend_from_slice(&encode(value));
        }
        writer.write_all(&bytes)?;
    }
    Ok(())
}

fn allocate<T: Clone + Default>(count: usize, room: Room) -> Result<Vec<T>, Fault> {
    room.check(count, size_of::<T>())?;
    let mut values = Vec::new();
    values
        .try_reserve_exact(count)
        .map_err(|_| Fault::Memory { bytes: count as u128 * size_of::<T>() as u128 })?;
    values.resize(count, T::default());
    Ok(values)
}

impl Header {
    /// Reads the header and compares its claim with `size`, the bytes there are, header included.
    fn read(reader: &mut dyn Read, size: u64) -> Result<Self, Fault> {
        let not_npy = || Fault::array("this is not an array as numpy.save writes it");
        let mut start = [0u8; 8];
        if size < 10 {
            return Err(not_npy());
        }
        read_exact(reader, &mut start)?;
        if &start[..6] != MAGIC {
            return Err(not_npy());
        }
        let (before, length) = match start[6] {
            1 => {
                let mut length = [0u8; 2];
                read_exact(reader, &mut length)?;
                (10, u64::from(u16::from_le_bytes(length)))
            }
            2 | 3 if size >= 12 => {
                let mut length = [0u8; 4];
                read_exact(reader, &mut length)?;
                (12, u64::from(u32::from_le_bytes(length)))
            }
            2 | 3 => return Err(not_npy()),
            version => {
                return Err(Fault::array(format!(
                    "version {version} of the npy format is not known, versions 1 to 3 are"
                )));
            }
        };
        if length > size - before {
            return Err(Fault::array(format!(
                "the header claims {length} bytes for itself, {} are there: the file is incomplete",
                size - before
            )));
        }
        if length > LONGEST_HEADER {
            return Err(Fault::array(format!(
                "the header has {length} bytes: save a plain array of numbers"
            )));
        }
        let mut text = vec![0u8; length as usize];
        read_exact(reader, &mut text)?;
        Self::parse(&String::from_utf8_lossy(&text), size - before - length)
    }

    /// Reads the Python dictionary that the header is; `available` bytes follow it.
    fn parse(text: &str, available: u64) -> Result<Self, Fault> {
        let unreadable = |key: &str| Fault::array(format!("the header has no readable {key:?}"));
        let value = |key: &str| {
            let after = &text[text.find(&format!("'{key}'"))? + key.len() + 2..];
            Some(after.trim_start().strip_prefix(':')?.trim_start())
        };
        let descr = value("descr").ok_or_else(|| unreadable("descr"))?;
        let dtype = match descr.strip_prefix('\'').and_then(|rest| rest.split_once('\'')) {
            Some((descr, _)) => Dtype::parse(descr)?,
            None => Dtype::structured(),
        };
        if let Kind::Other(_) = dtype.kind {
            // Before anything else: how many bytes such values take does not follow from the shape.
            dtype.require_number()?;
        }
        let fortran_order = match value("fortran_order") {
            Some(order) if order.starts_with("True") => true,
            Some(order) if order.starts_with("False") => false,
            _ => return Err(unreadable("fortran_order")),
        };
        let shape = value("shape")
            .and_then(|shape| shape.strip_prefix('(')?.split_once(')'))
            .and_then(|(inside, _)| {
                let lengths = inside.split(',').map(str::trim);
                lengths
                    .filter(|length| !length.is_empty())
                    // Python 2 wrote 3L.
                    .map(|length| length.trim_end_matches('L').parse().ok())
                    .collect::<Option<Vec<usize>>>()
            })
            .ok_or_else(|| unreadable("shape"))?;
        let count = shape.iter().fold(1u128, |count, &length| count.saturating_mul(length as u128));
        let needed = count.saturating_mul(dtype.size as u128);
        if needed != u128::from(available) {
            return Err(Fault::array(format!(
                "shape {} of {} needs {needed} bytes, {available} are there: \
                 the file is incomplete or its header is wrong",
                shape_text(&shape),
                dtype.name()
            )));
        }
        let count = usize::try_from(count).map_err(|_| Fault::Memory { bytes: needed })?;
        Ok(Self { dtype, fortran_order, shape, count })
    }

    /// Calls `use_value` with the place in the file and the little-endian bytes of every value.
    fn for_each(&self, reader: &mut dyn Read, mut use_value: impl FnMut(usize, &[u8])) -> Result<(), Fault> {
        let size = self.dtype.size;
        let mut buffer = vec![0u8; (CHUNK / size).max(1).min(self.count) * size];
        let mut done = 0;
        while done < self.count {
            let now = (buffer.len() / size).min(self.count - done);
            let bytes = &mut buffer[..now * size];
            read_exact(reader, bytes)?;
            for (i, value) in bytes.chunks_exact_mut(size).enumerate() {
                if self.dtype.big_endian {
                    value.reverse();
                }
                use_value(done + i, value);
            }
            done += now;
        }
        // Archives check their checksum at the end, which must be asked for.
        match reader.read(&mut [0u8]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(Fault::array("bytes follow the values")),
            Err(error) => Err(damaged(error)),
        }
    }

    /// All values, last index fastest.
    fn collect<T: Clone + Default>(
        &self,
        reader: &mut dyn Read,
        room: Room,
        decode: impl Fn(&[u8]) -> T,
    ) -> Result<Vec<T>, Fault> {
        let mut values = allocate(self.count, room)?;
        self.for_each(reader, |i, bytes| {
            let place = if self.fortran_order { self.turned(i) } else { i };
            values[place] = decode(bytes);
        })?;
        Ok(values)
    }

    /// Where the value at place `i`, first index fastest, stands when the last index is fastest.
    fn turned(&self, mut i: usize) -> usize {
        let mut stride = self.count;
        let mut place = 0;
        for &length in &self.shape {
            stride /= length;
            place += (i % length) * stride;
            i /= length;
        }
        place
    }
}

fn read_exact(reader: &mut dyn Read, bytes: &mut [u8]) -> Result<(), Fault> {
    reader.read_exact(bytes).map_err(damaged)
}

fn damaged(error: io::Error) -> Fault {
    Fault::array(format!("could not be read: {error}: the file is damaged"))
}
