//! What was found, read from the files of a separation, beside the truth. Knows no pages.

use super::matching::{cosine, matched};
use crate::failure::Failure;
use bpnmf_audio::{BssEval, Channel, Grouping, Levels, Parts, Piece, Recording, Scores, Sound, Stft};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A separation and what is true of it.
pub(super) struct Comparison {
    pub(super) summary: Summary,
    pub(super) found: Vec<Found>,
    /// Of the stems, in the order of the piece.
    pub(super) scores: Scores,
    /// The parts of each of two stems, as they are made where nobody tells the stems.
    pub(super) untold: Vec<Vec<usize>>,
}

/// A part.
pub(super) struct Found {
    /// How strongly it is on in each frame.
    pub(super) course: Vec<f32>,
    pub(super) note: Option<Twin>,
}

/// The note that a part is.
pub(super) struct Twin {
    pub(super) index: usize,
    /// The cosine of its mean spectrum and that of the part.
    pub(super) in_pitch: f64,
    /// The cosine of its loudness over time and that of the part.
    pub(super) in_time: f64,
}

/// What we need of summary.json.
#[derive(Deserialize)]
pub(super) struct Summary {
    pub(super) n_components: usize,
    pub(super) seconds: f64,
    pub(super) stems: Vec<Stem>,
    pub(super) components: Vec<Component>,
    sound: Frames,
}

#[derive(Deserialize)]
pub(super) struct Stem {
    pub(super) components: Vec<usize>,
}

#[derive(Deserialize)]
pub(super) struct Component {
    pub(super) share: f64,
}

#[derive(Deserialize)]
struct Frames {
    window: usize,
    hop: usize,
}

impl Comparison {
    /// Reads what `bpnmf separate` left in the folder. `stems` are the files of the true ones.
    pub(super) fn new(folder: &Path, piece: &Piece, stems: &[PathBuf]) -> Result<Self, Failure> {
        let path = folder.join("summary.json");
        let unreadable = |error: String| Failure::Other(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|error| unreadable(error.to_string()))?;
        let summary: Summary = serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        let stft = Stft::new(summary.sound.window, summary.sound.hop).map_err(Failure::sound)?;
        let model = Model::read(&folder.join("model.npz"))?;
        let untold = model.untold(piece, stft.clone())?;
        Ok(Self { found: model.beside(piece, &stft), untold, scores: scores(folder, piece, stems)?, summary })
    }

    /// The stem of a part.
    pub(super) fn stem(&self, part: usize) -> Option<usize> {
        self.summary.stems.iter().position(|stem| stem.components.contains(&part))
    }

    /// How many notes are in a group with the other instrument where nobody tells the stems.
    pub(super) fn astray(&self, piece: &Piece) -> usize {
        let instrument =
            |part: &usize| self.found[*part].note.as_ref().map(|twin| piece.notes[twin.index].instrument);
        let of_other = |group: usize, own: usize| {
            let parts = self.untold.get(group).into_iter().flatten();
            parts.filter_map(instrument).filter(|&instrument| instrument != own).count()
        };
        (of_other(0, 0) + of_other(1, 1)).min(of_other(0, 1) + of_other(1, 0))
    }
}

/// model.npz: W and H as floats, by rows.
struct Model {
    components: usize,
    dictionary: Vec<f32>,
    activations: Vec<f32>,
    inclusion: Vec<f32>,
}

impl Model {
    fn read(path: &Path) -> Result<Self, Failure> {
        let arrays = bpnmf_io::read_npz_arrays(path).map_err(Failure::reading)?;
        let array = |wanted: &str| {
            let found = arrays.iter().find(|(name, _)| name == wanted).map(|(_, array)| array);
            found.ok_or_else(|| Failure::Other(format!("{} holds no {wanted}", path.display())))
        };
        let floats = |name: &str| -> Result<Vec<f32>, Failure> {
            Ok(array(name)?.to_f64().into_iter().map(|value| value as f32).collect())
        };
        let components = array("pi")?.shape().first().copied().unwrap_or(0);
        Ok(Self {
            components,
            dictionary: floats("W_filter")?,
            activations: floats("H_filter")?,
            inclusion: floats("S")?,
        })
    }

    /// The parts of two stems that nobody tells.
    fn untold(&self, piece: &Piece, stft: Stft) -> Result<Vec<Vec<usize>>, Failure> {
        let (recording, _) = Recording::new(piece.mixture.clone(), stft, Levels::Typical)
            .map_err(|fault| Failure::Other(fault.to_string()))?;
        let parts = Parts::polished(&self.dictionary, &self.activations, self.components);
        let heard = recording.transcription(&parts, &self.inclusion);
        let two = Grouping::Voices { wanted: 2, polyphonic: false };
        Ok(recording.stems(&parts, &heard, &[], &two).members)
    }

    /// Every part, with its note.
    fn beside(&self, piece: &Piece, stft: &Stft) -> Vec<Found> {
        let notes: Vec<(Vec<f64>, Vec<f64>)> = piece
            .notes
            .iter()
            .map(|note| margins(&stft.magnitudes(&note.sound.samples), stft.bins()))
            .collect();
        let spectrum = |k: usize| -> Vec<f64> {
            self.dictionary.iter().skip(k).step_by(self.components).map(|&value| f64::from(value)).collect()
        };
        let spectra: Vec<Vec<f64>> = (0..self.components).map(spectrum).collect();
        let true_spectra: Vec<Vec<f64>> = notes.iter().map(|(spectrum, _)| spectrum.clone()).collect();
        let frames = self.activations.len() / self.components;
        let partners = matched(&spectra, &true_spectra);
        partners
            .into_iter()
            .zip(self.activations.chunks_exact(frames))
            .map(|(partner, course)| {
                let wide: Vec<f64> = course.iter().map(|&value| f64::from(value)).collect();
                let note = partner.map(|(index, in_pitch)| Twin {
                    index,
                    in_pitch,
                    in_time: cosine(&wide, &notes[index].1),
                });
                Found { course: course.to_vec(), note }
            })
            .collect()
    }
}

/// The sums of magnitudes over frames, and those over bins.
fn margins(magnitudes: &[f32], bins: usize) -> (Vec<f64>, Vec<f64>) {
    let mut spectrum = vec![0.0; bins];
    let mut course = Vec::new();
    for frame in magnitudes.chunks_exact(bins) {
        spectrum.iter_mut().zip(frame).for_each(|(sum, &magnitude)| *sum += f64::from(magnitude));
        course.push(frame.iter().map(|&magnitude| f64::from(magnitude)).sum());
    }
    (spectrum, course)
}

fn scores(folder: &Path, piece: &Piece, stems: &[PathBuf]) -> Result<Scores, Failure> {
    let samples =
        |sound: &Sound| -> Vec<f64> { sound.samples.iter().map(|&sample| f64::from(sample)).collect() };
    let references: Vec<Vec<f64>> = piece.stems.iter().map(|(_, sound)| samples(sound)).collect();
    let mut estimates = Vec::new();
    for stem in stems {
        let path = folder.join("stems").join(stem.file_name().unwrap_or_default());
        estimates.push(samples(&bpnmf_audio::read(&path, Channel::Mean).map_err(Failure::sound)?));
    }
    let [references, estimates] =
        [&references, &estimates].map(|sounds| sounds.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let options = BssEval { permutation: false, ..Default::default() };
    bpnmf_audio::bss_eval(&references, &estimates, &options).map_err(Failure::sound)
}
