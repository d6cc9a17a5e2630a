//! Sounds in, out, and through a spectrogram; every kind of bad file is refused in one clear sentence.

mod decode;
mod resample;
mod separate;
mod stft;
mod wav;

use std::path::{Path, PathBuf};

use bpnmf_audio::{Channel, Sound, read};

/// A path for a file that a test writes; each test must use its own name.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sounds");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

/// Noise between -1 and 1, always the same.
fn noise(len: usize) -> Vec<f32> {
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| draw()).collect()
}

/// Reads a file with these bytes.
fn read_bytes(name: &str, bytes: impl AsRef<[u8]>) -> Sound {
    let path = scratch(name);
    std::fs::write(&path, bytes).unwrap();
    read(&path, Channel::Mean).unwrap()
}

/// The error for a path, after its path.
fn refusal_of(path: &Path, channel: Channel) -> String {
    let text = read(path, channel).unwrap_err().to_string();
    let start = format!("{}: ", path.display());
    text.strip_prefix(&start).unwrap_or_else(|| panic!("{text:?} does not start with its path")).to_owned()
}

/// The error for a file with these bytes, after its path.
fn refusal(name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = scratch(name);
    std::fs::write(&path, bytes).unwrap();
    refusal_of(&path, Channel::Mean)
}
