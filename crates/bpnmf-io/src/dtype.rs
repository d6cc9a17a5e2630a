//! numpy's types of value: their names and how their bytes become numbers. Knows nothing of files.

use crate::error::Fault;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int,
    Unsigned,
    Float,
    Bytes,
    Text,
    /// Whatever cannot be a count; the name people know it by.
    Other(&'static str),
}

/// The type of an array's values.
#[derive(Clone, Copy)]
pub(crate) struct Dtype {
    pub(crate) kind: Kind,
    /// Bytes a value.
    pub(crate) size: usize,
    pub(crate) big_endian: bool,
}

impl Dtype {
    /// Reads numpy's code, such as `<f8`.
    pub(crate) fn parse(code: &str) -> Result<Self, Fault> {
        let unknown = || Fault::array(format!("dtype {code:?} is not known"));
        let (order, rest) = match code.chars().next() {
            Some(order @ ('<' | '>' | '|' | '=')) => (order, &code[1..]),
            _ => ('|', code),
        };
        let letter = rest.chars().next().ok_or_else(unknown)?;
        let digits: String = rest[letter.len_utf8()..].chars().take_while(char::is_ascii_digit).collect();
        let size: usize = match digits.as_str() {
            "" => 0,
            digits => digits.parse().map_err(|_| unknown())?,
        };
        let kind = match (letter, size) {
            ('?', _) | ('b', 1) => Kind::Bool,
            ('i', 1 | 2 | 4 | 8) => Kind::Int,
            ('u', 1 | 2 | 4 | 8) => Kind::Unsigned,
            ('f', 2 | 4 | 8) => Kind::Float,
            ('f', 12 | 16) => Kind::Other("longdouble"),
            ('c', _) => Kind::Other("complex"),
            ('O', _) => Kind::Other("object"),
            ('S' | 'a', _) => Kind::Bytes,
            ('U', _) => Kind::Text,
            ('M', _) => Kind::Other("datetime"),
            ('m', _) => Kind::Other("timedelta"),
            ('V', _) => Kind::Other("void"),
            _ => return Err(unknown()),
        };
        let size = match letter {
            '?' => 1,
            // A character of text is four bytes.
            'U' => size.checked_mul(4).ok_or_else(unknown)?,
            _ => size,
        };
        Ok(Self { kind, size, big_endian: order == '>' && kind != Kind::Bytes && kind != Kind::Text })
    }

    pub(crate) fn structured() -> Self {
        Self { kind: Kind::Other("structured"), size: 0, big_endian: false }
    }

    /// The name numpy gives it.
    pub(crate) fn name(self) -> String {
        // A string may claim any length.
        let bits = self.size.saturating_mul(8);
        match self.kind {
            Kind::Bool => "bool".to_owned(),
            Kind::Int => format!("int{bits}"),
            Kind::Unsigned => format!("uint{bits}"),
            Kind::Float => format!("float{bits}"),
            Kind::Bytes => "bytes".to_owned(),
            Kind::Text => "string".to_owned(),
            Kind::Other(name) => name.to_owned(),
        }
    }

    /// Errors unless the values are bool, integers or floats.
    pub(crate) fn require_number(self) -> Result<(), Fault> {
        match self.kind {
            Kind::Bool | Kind::Int | Kind::Unsigned | Kind::Float => Ok(()),
            _ => Err(Fault::array(format!(
                "its values are of type {}: convert it to bool, integer or float (up to 64 bits)",
                self.name()
            ))),
        }
    }

    /// A number from its little-endian bytes. 64-bit integers beyond 2^53 are rounded.
    pub(crate) fn to_f64(self, bytes: &[u8]) -> f64 {
        match (self.kind, self.size) {
            (Kind::Float, 2) => half_to_f64(u16::from_le_bytes(fixed(bytes))),
            (Kind::Float, 4) => f64::from(f32::from_le_bytes(fixed(bytes))),
            (Kind::Float, _) => f64::from_le_bytes(fixed(bytes)),
            (Kind::Unsigned, 8) => u64::from_le_bytes(fixed(bytes)) as f64,
            _ => self.to_i64(bytes) as f64,
        }
    }

    /// A whole number from its little-endian bytes; 64-bit unsigned ones beyond the range come out negative.
    pub(crate) fn to_i64(self, bytes: &[u8]) -> i64 {
        match (self.kind, self.size) {
            (Kind::Bool, _) => i64::from(bytes[0] != 0),
            (Kind::Unsigned, 1) => i64::from(bytes[0]),
            (Kind::Unsigned, 2) => i64::from(u16::from_le_bytes(fixed(bytes))),
            (Kind::Unsigned, 4) => i64::from(u32::from_le_bytes(fixed(bytes))),
            (_, 1) => i64::from(i8::from_le_bytes(fixed(bytes))),
            (_, 2) => i64::from(i16::from_le_bytes(fixed(bytes))),
            (_, 4) => i64::from(i32::from_le_bytes(fixed(bytes))),
            _ => i64::from_le_bytes(fixed(bytes)),
        }
    }
}

fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("values are cut to the size of their type")
}

/// IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits.
fn half_to_f64(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff);
    match exponent {
        0 => sign * fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        _ => sign * (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}
