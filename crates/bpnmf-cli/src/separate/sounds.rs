//! The sounds of parts and stems as wav files, all in one pass over the recording.

use super::stems::{Stems, numbered};
use crate::args::FormatName;
use crate::failure::Failure;
use crate::folder::Folder;
use bpnmf_audio::wav::{Depth, Writer};
use bpnmf_audio::{Parts, Sound, Stft, Wiener};

/// The folder of the parts.
pub(crate) const COMPONENTS: &str = "components";

/// The folder of the stems.
pub(crate) const STEMS: &str = "stems";

/// The samples of a part or of a stem that were beyond full scale, and its file.
pub(crate) struct Clipped {
    pub(crate) file: String,
    pub(crate) samples: u64,
}

/// Writes components/ and stems/ into `folder`. `magnitudes` are in the units of the parts. Gives the files in which
/// samples were clipped.
pub(crate) fn write(
    folder: &Folder,
    mixture: &Sound,
    stft: &Stft,
    parts: &Parts,
    magnitudes: &[f32],
    stems: &Stems,
    format: FormatName,
) -> Result<Vec<Clipped>, Failure> {
    let (pieces, members) = stems.made_of(parts);
    let mut wiener = Wiener::of_pieces(parts, pieces, &members);
    if stems.unexplained {
        wiener = wiener.with_residual(magnitudes);
    }
    let of_parts = numbered(0, parts.components()).into_iter().map(|name| format!("{COMPONENTS}/{name}.wav"));
    let of_stems = stems.names.iter().map(|name| format!("{STEMS}/{name}.wav"));
    let files: Vec<String> = of_parts.chain(of_stems).collect();
    let folders = [(COMPONENTS, true), (STEMS, !stems.names.is_empty())];
    for (name, _) in folders.iter().filter(|(_, wanted)| *wanted) {
        folder.inner(name).create()?;
    }
    let depth = match format {
        FormatName::Int16 => Depth::Int16,
        FormatName::Int24 => Depth::Int24,
        FormatName::Float => Depth::Float32,
    };
    let length = mixture.samples.len() as u64;
    let begin = |file: &String| Writer::create(&folder.file(file), mixture.rate, depth, length);
    let mut writers =
        files.iter().map(begin).collect::<Result<Vec<Writer>, _>>().map_err(Failure::sound_out)?;
    stft.filter(
        &mixture.samples,
        wiener.outputs(),
        |frame, gains| wiener.gains(frame, gains),
        |output, samples| writers[output].push(samples),
    )
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
