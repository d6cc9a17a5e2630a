//! Numbers as bytes, low byte first. A reader never takes a length for granted.

use crate::error::Error;
use crate::prior::{CheckedPrior, ComponentsPrior, Prior};
use std::io::{self, Write};

/// What is wrong with bytes that are no checkpoint.
pub(crate) fn bad(reason: &str) -> Error {
    Error::BadCheckpoint { reason: reason.to_owned() }
}

/// Numbers of a slice that are turned into bytes at a time.
const CHUNK: usize = 1024;

/// Writes numbers.
pub(crate) struct Writer<'a> {
    out: &'a mut dyn Write,
    buffer: Vec<u8>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        Self { out, buffer: Vec::with_capacity(8 * CHUNK) }
    }

    pub(crate) fn u64(&mut self, value: u64) -> io::Result<()> {
        self.out.write_all(&value.to_le_bytes())
    }

    pub(crate) fn f64(&mut self, value: f64) -> io::Result<()> {
        self.u64(value.to_bits())
    }

    pub(crate) fn length(&mut self, value: usize) -> io::Result<()> {
        self.u64(value as u64)
    }

    pub(crate) fn prior(&mut self, prior: &CheckedPrior) -> io::Result<()> {
        let Prior { a, b, c, d, a0, b0, components, number } = prior.get();
        [a, b, c, d, a0, b0].into_iter().try_for_each(|number| self.f64(number))?;
        self.length(components)?;
        self.text(&number.name())
    }

    /// Whether something follows.
    pub(crate) fn some(&mut self, value: bool) -> io::Result<()> {
        self.out.write_all(&[u8::from(value)])
    }

    pub(crate) fn option(&mut self, value: Option<f64>) -> io::Result<()> {
        self.some(value.is_some())?;
        self.f64(value.unwrap_or(0.0))
    }

    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        self.length(text.len())?;
        self.out.write_all(text.as_bytes())
    }

    pub(crate) fn f64s(&mut self, values: &[f64]) -> io::Result<()> {
        self.all(values, |buffer, value| buffer.extend(value.to_le_bytes()))
    }

    pub(crate) fn f32s(&mut self, values: &[f32]) -> io::Result<()> {
        self.all(values, |buffer, value| buffer.extend(value.to_le_bytes()))
    }

    pub(crate) fn u32s(&mut self, values: &[u32]) -> io::Result<()> {
        self.all(values, |buffer, value| buffer.extend(value.to_le_bytes()))
    }

    pub(crate) fn u16s(&mut self, values: &[u16]) -> io::Result<()> {
        self.all(values, |buffer, value| buffer.extend(value.to_le_bytes()))
    }

    /// Values most of which may be zero: of every 64 first a bit each, then those that are not.
    pub(crate) fn sparse(&mut self, values: &[f32]) -> io::Result<()> {
        for chunk in values.chunks(64) {
            let bits = chunk
                .iter()
                .enumerate()
                .fold(0, |bits, (i, value)| bits | u64::from(value.to_bits() != 0) << i);
            self.buffer.clear();
            self.buffer.extend(bits.to_le_bytes());
            for value in chunk.iter().filter(|value| value.to_bits() != 0) {
                self.buffer.extend(value.to_le_bytes());
            }
            self.out.write_all(&self.buffer)?;
        }
        Ok(())
    }

    fn all<T: Copy>(&mut self, values: &[T], put: impl Fn(&mut Vec<u8>, T)) -> io::Result<()> {
        for chunk in values.chunks(CHUNK) {
            self.buffer.clear();
            chunk.iter().for_each(|&value| put(&mut self.buffer, value));
            self.out.write_all(&self.buffer)?;
        }
        Ok(())
    }
}

/// Reads them back.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or_else(|| bad("it ends too early"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        Ok(self.take(N)?.try_into().expect("of that length"))
    }

    /// `rows` times `columns`, if that many things of `size` bytes can still follow.
    pub(crate) fn room(&self, rows: usize, columns: usize, size: usize) -> Result<usize, Error> {
        let number = rows.checked_mul(columns);
        let fits = number.and_then(|n| n.checked_mul(size)).is_some_and(|bytes| bytes <= self.bytes.len());
        number.filter(|_| fits).ok_or_else(|| bad("it ends too early"))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn f64(&mut self) -> Result<f64, Error> {
        Ok(f64::from_bits(self.u64()?))
    }

    pub(crate) fn f32(&mut self) -> Result<f32, Error> {
        Ok(f32::from_le_bytes(self.array()?))
    }

    pub(crate) fn length(&mut self) -> Result<usize, Error> {
        usize::try_from(self.u64()?).map_err(|_| bad("a length that no memory has"))
    }

    pub(crate) fn prior(&mut self) -> Result<CheckedPrior, Error> {
        let prior = Prior {
            a: self.f64()?,
            b: self.f64()?,
            c: self.f64()?,
            d: self.f64()?,
            a0: self.f64()?,
            b0: self.f64()?,
            components: self.length()?,
            number: ComponentsPrior::read(&self.text()?)?,
        };
        prior.check()
    }

    pub(crate) fn some(&mut self) -> Result<bool, Error> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(bad("neither yes nor no")),
        }
    }

    pub(crate) fn option(&mut self) -> Result<Option<f64>, Error> {
        let (some, value) = (self.some()?, self.f64()?);
        Ok(some.then_some(value))
    }

    pub(crate) fn text(&mut self) -> Result<String, Error> {
        let length = self.length()?;
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| bad("a name that is no text"))?;
        Ok(text.to_owned())
    }

    pub(crate) fn f64s(&mut self, length: usize) -> Result<Vec<f64>, Error> {
        let bytes = self.take(self.room(length, 1, 8)? * 8)?;
        Ok(bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("eight"))).collect())
    }

    pub(crate) fn u32s(&mut self, length: usize) -> Result<Vec<u32>, Error> {
        let bytes = self.take(self.room(length, 1, 4)? * 4)?;
        Ok(bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().expect("four"))).collect())
    }

    pub(crate) fn f32s(&mut self, length: usize) -> Result<Vec<f32>, Error> {
        self.room(length, 1, 4)?;
        let mut values = vec![0.0; length];
        self.fill_f32s(&mut values)?;
        Ok(values)
    }

    pub(crate) fn fill_f32s(&mut self, values: &mut [f32]) -> Result<(), Error> {
        let bytes = self.take(4 * values.len())?;
        for (value, bytes) in values.iter_mut().zip(bytes.chunks_exact(4)) {
            *value = f32::from_le_bytes(bytes.try_into().expect("four"));
        }
        Ok(())
    }

    pub(crate) fn fill_u16s(&mut self, values: &mut [u16]) -> Result<(), Error> {
        let bytes = self.take(2 * values.len())?;
        for (value, bytes) in values.iter_mut().zip(bytes.chunks_exact(2)) {
            *value = u16::from_le_bytes(bytes.try_into().expect("two"));
        }
        Ok(())
    }

    pub(crate) fn sparse(&mut self, length: usize) -> Result<Vec<f32>, Error> {
        self.room(length.div_ceil(64), 1, 8)?;
        let mut values = vec![0.0f32; length];
        for chunk in values.chunks_mut(64) {
            let bits = self.u64()?;
            if chunk.len() < 64 && bits >> chunk.len() != 0 {
                return Err(bad("a value beyond the last one"));
            }
            for (i, value) in chunk.iter_mut().enumerate() {
                if bits >> i & 1 == 1 {
                    *value = self.f32()?;
                }
            }
        }
        Ok(values)
    }

    /// Errors if anything is left.
    pub(crate) fn end(&self) -> Result<(), Error> {
        if self.bytes.is_empty() { Ok(()) } else { Err(bad("something follows after its end")) }
    }
}
