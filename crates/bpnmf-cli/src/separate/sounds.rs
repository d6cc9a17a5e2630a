//! The sounds of parts and stems as wav files, all in one pass over the recording.

use super::stems::{Named, numbered};
use crate::args::FormatName;
use crate::failure::Failure;
use crate::folder::Folder;
use bpnmf_audio::wav::{Depth, Writer};
use bpnmf_audio::{Parts, Recording};

/// The folder of the parts.
pub(crate) const COMPONENTS: &str = "components";

/// The folder of the stems.
pub(crate) const STEMS: &str = "stems";

/// The samples of a part or of a stem that were beyond full scale, and its file.
pub(crate) struct Clipped {
    pub(crate) file: String,
    pub(crate) samples: u64,
}

/// The recording as it was worked on: one channel, at its rate.
pub(crate) const RECORDING: &str = "recording.wav";

/// Writes stems/ into `folder`, and components/ if `components`. Gives the files in which samples were clipped.
pub(crate) fn write(
    folder: &Folder,
    recording: &Recording,
    parts: &Parts,
    stems: &Named,
    components: bool,
    format: FormatName,
) -> Result<Vec<Clipped>, Failure> {
    let many = if components { parts.components() } else { 0 };
    let of_parts = numbered(0, many).into_iter().map(|name| format!("{COMPONENTS}/{name}.wav"));
    let of_stems = stems.names.iter().map(|name| format!("{STEMS}/{name}.wav"));
    let files: Vec<String> = of_parts.chain(of_stems).collect();
    let folders = [(COMPONENTS, components), (STEMS, !stems.names.is_empty())];
    for (name, _) in folders.iter().filter(|(_, wanted)| *wanted) {
        folder.inner(name).create()?;
    }
    let depth = match format {
        FormatName::Int16 => Depth::Int16,
        FormatName::Int24 => Depth::Int24,
        FormatName::Float => Depth::Float32,
    };
    let sound = recording.sound();
    let length = sound.samples.len() as u64;
    let begin = |file: &String| Writer::create(&folder.file(file), sound.rate, depth, length);
    let mut writers =
        files.iter().map(begin).collect::<Result<Vec<Writer>, _>>().map_err(Failure::sound_out)?;
    recording
        .filter(parts, &stems.stems, components, |output, samples| writers[output].push(samples))
        .map_err(Failure::sound_out)?;
    let mut clipped = Vec::new();
    for (writer, file) in writers.into_iter().zip(files) {
        let samples = writer.finish().map_err(Failure::sound_out)?;
        if samples > 0 {
            clipped.push(Clipped { file, samples });
        }
    }
    Ok(clipped)
}
