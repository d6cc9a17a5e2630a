//! Damaged files for every reader, made in memory. Knows the readers, and nothing of what they are for.
//!
//! A script of random bytes says how a valid file is damaged, so the same script gives the same file.

mod damage;
mod seeds;
mod targets;

pub use damage::Script;
pub use targets::{Target, targets};

/// Random numbers for scripts: SplitMix64.
#[derive(Debug, Clone)]
pub struct Dice(pub u64);

impl Dice {
    /// The next 64 bits.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The bytes of a script.
    pub fn script(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.roll().to_le_bytes()[..chunk.len()]);
        }
    }
}
