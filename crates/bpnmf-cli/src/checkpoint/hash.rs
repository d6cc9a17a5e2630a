//! XXH64 (seed 0): a fast checksum, good enough to tell files apart; it keeps nobody out who wants to cheat.

use std::io::{self, Read};

const PRIMES: [u64; 5] = [
    0x9E37_79B1_85EB_CA87,
    0xC2B2_AE3D_27D4_EB4F,
    0x1656_67B1_9E37_79F9,
    0x85EB_CA77_C2B2_AE63,
    0x27D4_EB2F_1656_67C5,
];

/// Bytes that are mixed at a time.
const STRIPE: usize = 32;

/// The checksum of bytes that come bit by bit.
#[derive(Debug, Clone)]
pub(crate) struct Hash {
    lanes: [u64; 4],
    /// Bytes that do not make a stripe yet.
    rest: Vec<u8>,
    length: u64,
}

impl Default for Hash {
    fn default() -> Self {
        let [one, two, ..] = PRIMES;
        let lanes = [one.wrapping_add(two), two, 0, 0u64.wrapping_sub(one)];
        Self { lanes, rest: Vec::with_capacity(2 * STRIPE), length: 0 }
    }
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(PRIMES[1])).rotate_left(31).wrapping_mul(PRIMES[0])
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

impl Hash {
    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if !self.rest.is_empty() {
            let (missing, after) = bytes.split_at(bytes.len().min(STRIPE - self.rest.len()));
            self.rest.extend_from_slice(missing);
            bytes = after;
            if self.rest.len() == STRIPE {
                let stripe = std::mem::take(&mut self.rest);
                self.mix(&stripe);
            }
        }
        let whole = bytes.len() / STRIPE * STRIPE;
        bytes[..whole].chunks_exact(STRIPE).for_each(|stripe| self.mix(stripe));
        self.rest.extend_from_slice(&bytes[whole..]);
    }

    fn mix(&mut self, stripe: &[u8]) {
        for (lane, bytes) in self.lanes.iter_mut().zip(stripe.chunks_exact(8)) {
            *lane = round(*lane, word(bytes));
        }
    }

    pub(crate) fn value(&self) -> u64 {
        let [one, two, three, four, five] = PRIMES;
        let mut hash = five;
        if self.length >= STRIPE as u64 {
            let turned = self.lanes.iter().zip([1, 7, 12, 18]).map(|(lane, by)| lane.rotate_left(by));
            hash = turned.fold(0, u64::wrapping_add);
            for &lane in &self.lanes {
                hash = (hash ^ round(0, lane)).wrapping_mul(one).wrapping_add(four);
            }
        }
        hash = hash.wrapping_add(self.length);
        let mut words = self.rest.chunks_exact(8);
        for bytes in &mut words {
            hash = (hash ^ round(0, word(bytes))).rotate_left(27).wrapping_mul(one).wrapping_add(four);
        }
        let mut rest = words.remainder();
        if rest.len() >= 4 {
            let (half, after) = rest.split_at(4);
            let half = u64::from(u32::from_le_bytes(half.try_into().expect("four bytes")));
            hash = (hash ^ half.wrapping_mul(one)).rotate_left(23).wrapping_mul(two).wrapping_add(three);
            rest = after;
        }
        for &byte in rest {
            hash = (hash ^ u64::from(byte).wrapping_mul(five)).rotate_left(11).wrapping_mul(one);
        }
        hash = (hash ^ hash >> 33).wrapping_mul(two);
        hash = (hash ^ hash >> 29).wrapping_mul(three);
        hash ^ hash >> 32
    }

    /// The number of bytes of `from` and their checksum.
    pub(crate) fn of(mut from: impl Read) -> io::Result<(u64, u64)> {
        let (mut hash, mut buffer) = (Self::default(), vec![0; 1 << 16]);
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return Ok((hash.length, hash.value())),
                Ok(n) => hash.add(&buffer[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Hash;

    fn hash(bytes: &[u8]) -> u64 {
        Hash::of(bytes).unwrap().1
    }

    #[test]
    fn the_checksum_is_that_of_the_specification() {
        assert_eq!(hash(b""), 0xEF46_DB37_51D8_E999);
        assert_eq!(hash(b"a"), 0xD24E_C4F1_A98C_6E5B);
        assert_eq!(hash(b"abc"), 0x44BC_2CF5_AD77_0999);
        assert_eq!(hash(b"Nobody inspects the spammish repetition"), 0xFBCE_A83C_8A37_8BF1);
    }

    #[test]
    fn the_checksum_does_not_depend_on_how_the_bytes_come() {
        let bytes: Vec<u8> = (0..1000u32).map(|i| (i * i % 251) as u8).collect();
        for step in [1, 7, 31, 32, 33, 500] {
            let mut hash = Hash::default();
            bytes.chunks(step).for_each(|chunk| hash.add(chunk));
            assert_eq!(hash.value(), self::hash(&bytes), "{step} at a time");
        }
        let mut other = bytes.clone();
        other[777] ^= 1;
        assert_ne!(hash(&other), hash(&bytes));
    }
}
