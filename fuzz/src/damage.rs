//! Valid bytes to invalid ones: small edits that keep most of a file's structure, so that deep code is reached.

/// Numbers that readers stumble over.
const NUMBERS: [&str; 16] = [
    "0",
    "-1",
    "1",
    "-0",
    "7",
    "255",
    "65536",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "99999999999999999999999",
    "1e15",
    "1e308",
    "1e-320",
    "nan",
    "inf",
];

/// Bytes that mean something in one format or another.
const BYTES: &[u8] = b"\0\x01\x7f\x80\xff\n\r\t \",;:%()[]{}'-+.0129eLNXn\\/";

/// Choices that have been made at random.
#[derive(Debug)]
pub struct Script<'a> {
    bytes: &'a [u8],
}

impl<'a> Script<'a> {
    /// A script; after its end all choices are 0.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    /// A number below `limit`; 0 if that is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let wide = u32::from_le_bytes([self.byte(), self.byte(), self.byte(), 0]) as usize;
        wide.checked_rem(limit).unwrap_or(0)
    }

    pub(crate) fn pick<'b, T>(&mut self, from: &'b [T]) -> &'b T {
        &from[self.below(from.len())]
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let most = if self.byte() < 64 { length - start } else { (length - start).min(16) };
        start..start + self.below(most + 1)
    }
}

/// One of `seeds`, damaged.
pub(crate) fn damaged(seeds: &[Vec<u8>], script: &mut Script<'_>) -> Vec<u8> {
    let mut bytes = script.pick(seeds).clone();
    for _ in 0..1 + script.below(5) {
        edit(&mut bytes, seeds, script);
    }
    bytes.truncate(1 << 16);
    bytes
}

fn edit(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], script: &mut Script<'_>) {
    let kind = script.below(12);
    let place = script.below(bytes.len());
    match kind {
        0 if !bytes.is_empty() => bytes[place] ^= 1 << script.below(8),
        1 if !bytes.is_empty() => bytes[place] = *script.pick(BYTES),
        2 => bytes.insert(place, *script.pick(BYTES)),
        3 => {
            let range = script.range(bytes.len());
            bytes.drain(range);
        }
        4 => {
            let copy = bytes[script.range(bytes.len())].to_vec();
            bytes.splice(place..place, copy);
        }
        5 => {
            let copy = bytes[script.range(bytes.len())].to_vec();
            let end = bytes.len().min(place + copy.len());
            bytes.splice(place..end, copy);
        }
        6 => {
            // The beginning of this one and the end of another.
            let other = script.pick(seeds);
            bytes.truncate(place);
            bytes.extend(&other[script.below(other.len())..]);
        }
        7 | 8 => number(bytes, place, script.pick::<&str>(&NUMBERS)),
        9 => {
            let value = match script.below(4) {
                0 => 1u64 << script.below(64),
                1 => u64::MAX >> script.below(64),
                2 => script.below(300) as u64,
                _ => (*script.pick(&[f64::NAN, f64::INFINITY, -1.0, 1e300, 0.0])).to_bits(),
            };
            let width = *script.pick(&[1usize, 2, 4, 8]);
            let mut new = value.to_le_bytes();
            if script.below(2) == 1 {
                new[..width].reverse();
            }
            let end = bytes.len().min(place + width);
            let length = end - place;
            bytes[place..end].copy_from_slice(&new[..length]);
        }
        10 => bytes.truncate(place),
        _ => {
            let many = script.below(300);
            bytes.splice(place..place, std::iter::repeat_n(*script.pick(BYTES), many));
        }
    }
}

/// Replaces the digits nearest after `place`.
fn number(bytes: &mut Vec<u8>, place: usize, new: &str) {
    let Some(start) = bytes[place..].iter().position(u8::is_ascii_digit).map(|at| place + at) else { return };
    let end =
        bytes[start..].iter().position(|byte| !byte.is_ascii_digit()).map_or(bytes.len(), |at| start + at);
    bytes.splice(start..end, new.bytes());
}
