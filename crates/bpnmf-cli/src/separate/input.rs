//! The recording and what it is compared with, read and brought to one rate and one length.

use crate::args::SeparateArgs;
use crate::failure::Failure;
use bpnmf_audio::{Channel, Sound, Stft};
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
    let sound = read(&args.input, channel(args)?)?;
    let rate = args.rate.unwrap_or(sound.rate.min(HIGHEST_RATE));
    at_rate(sound, rate)
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
        let sound = at_rate(read(path, channel(args)?)?, mixture.rate)?;
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

/// How the recording is cut into frames.
pub(crate) fn frames(args: &SeparateArgs, rate: u32) -> Result<Stft, Failure> {
    let window = args.window.unwrap_or_else(|| bpnmf_audio::default_window(rate));
    Stft::new(window, args.hop.unwrap_or(window / 2)).map_err(Failure::sound)
}

fn channel(args: &SeparateArgs) -> Result<Channel, Failure> {
    match args.channel {
        None => Ok(Channel::Mean),
        Some(0) => Err(Failure::Request("--channel is 0: channels are counted from 1".to_owned())),
        Some(channel) => Ok(Channel::One(channel)),
    }
}

fn read(path: &Path, channel: Channel) -> Result<Sound, Failure> {
    bpnmf_audio::read(path, channel).map_err(Failure::sound)
}

fn at_rate(sound: Sound, rate: u32) -> Result<Sound, Failure> {
    if sound.rate == rate {
        return Ok(sound);
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
