//! The recording and what it is compared with, read and brought to one rate and one length.

use crate::args::SeparateArgs;
use crate::failure::Failure;
use crate::memory;
use bpnmf_audio::{Channel, Sound};
use std::path::Path;

/// The highest rate that is worked at unless somebody asks: above, nobody hears anything.
const HIGHEST_RATE: u32 = 48_000;

/// A recording of a source alone.
pub(crate) struct Reference {
    pub(crate) name: String,
    pub(crate) sound: Sound,
}

/// The recording at the rate that is worked at.
pub(crate) fn mixture(args: &SeparateArgs) -> Result<Sound, Failure> {
    let sound = read(&args.input, args)?;
    let rate = args.rate.unwrap_or(sound.rate.min(HIGHEST_RATE));
    at_rate(sound, rate, args)
}

/// The references at the rate of the mixture; as long as it, each with a name of its own.
pub(crate) fn references(args: &SeparateArgs, mixture: &Sound) -> Result<Vec<Reference>, Failure> {
    let mut references: Vec<Reference> = Vec::new();
    for path in &args.reference {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let same = |reference: &Reference| reference.name.to_lowercase() == name.to_lowercase();
        if references.iter().any(same) {
            return Err(Failure::Request(format!(
                "two references are called {name}: stems are named after them, rename one"
            )));
        }
        let sound = at_rate(read(path, args)?, mixture.rate, args)?;
        if sound.samples.len() != mixture.samples.len() {
            return Err(Failure::Request(format!(
                "{} has {} samples at {} Hz, {} has {}: a reference must be as long as the recording",
                path.display(),
                sound.samples.len(),
                mixture.rate,
                args.input.display(),
                mixture.samples.len()
            )));
        }
        references.push(Reference { name, sound });
    }
    Ok(references)
}

fn channel(args: &SeparateArgs) -> Result<Channel, Failure> {
    match args.channel {
        None => Ok(Channel::Mean),
        Some(0) => Err(Failure::Request("--channel is 0: channels are counted from 1".to_owned())),
        Some(channel) => Ok(Channel::One(channel)),
    }
}

fn read(path: &Path, args: &SeparateArgs) -> Result<Sound, Failure> {
    bpnmf_audio::read_within(path, channel(args)?, most_samples(args)).map_err(Failure::sound)
}

/// The most samples that may be tried.
fn most_samples(args: &SeparateArgs) -> u64 {
    if args.force { u64::MAX } else { samples_in_memory() }
}

/// The most samples that there is memory for.
pub(crate) fn samples_in_memory() -> u64 {
    // A sample, its share of the magnitudes and of the counts, and copies of them.
    const BYTES_A_SAMPLE: u64 = 32;
    memory::available().map_or(u64::MAX, |bytes| bytes / BYTES_A_SAMPLE)
}

fn at_rate(sound: Sound, rate: u32, args: &SeparateArgs) -> Result<Sound, Failure> {
    if sound.rate == rate {
        return Ok(sound);
    }
    // A header may say one sample a second.
    let samples = (sound.samples.len() as u64).saturating_mul(rate.into()) / u64::from(sound.rate.max(1));
    let most = most_samples(args);
    if samples > most {
        return Err(Failure::Request(format!(
            "a sound of {} samples at {} Hz has {samples} at {rate} Hz, and there is memory for {most}: choose a lower \
             --rate",
            sound.samples.len(),
            sound.rate
        )));
    }
    bpnmf_audio::resample(&sound, rate).map_err(|error| match error {
        bpnmf_audio::Error::Rate { .. } => Failure::Request(format!("--rate: {error}")),
        other => Failure::sound(other),
    })
}

/// A file name out of a name that somebody gave, or what is wrong with it.
pub(crate) fn check_name(name: &str, file: &Path) -> Result<(), Failure> {
    let wrong = if name.is_empty() {
        "a group without a name"
    } else if name.starts_with('.') || name.contains(['/', '\\', ':']) || name.chars().any(char::is_control) {
        "a name that cannot be the name of a file"
    } else {
        return Ok(());
    };
    Err(Failure::Request(format!("{}: {name:?} is {wrong}: stems are files", file.display())))
}
