//! What a separation leaves behind beside its sounds: the files of a fit, with what is known about the sounds.

use super::notes::Notes;
use super::sounds::{COMPONENTS, Clipped, RECORDING, STEMS};
use super::stems::Named;
use crate::failure::Failure;
use crate::fit::output::{Extra, Results};
use crate::folder::Folder;
use crate::text;
use bpnmf_audio::{Parts, Recording, Stems, wav};
use bpnmf_io::Array;
use bpnmf_report::{Data, Pieces, PlayedNote, Residual, SoundPage, Stem};
use serde_json::{Map, Value, json};

/// A finished separation.
pub(crate) struct Separation<'a> {
    pub(crate) results: &'a Results<'a>,
    pub(crate) recording: &'a Recording,
    pub(crate) parts: &'a Parts,
    pub(crate) notes: Notes<'a>,
    pub(crate) stems: &'a Named,
    pub(crate) clipped: &'a [Clipped],
    /// Seconds by what was done in them.
    pub(crate) stages: &'a [(&'static str, f64)],
}

impl Separation<'_> {
    /// Writes everything but the sounds, which are there.
    pub(crate) fn write(&self, folder: &Folder) -> Result<(), Failure> {
        let (dictionary, activations) = (self.parts.dictionary(), self.parts.activations());
        let report = self.report(&dictionary, &activations);
        let scale = [self.recording.scale()];
        let shape = |rows: usize, columns: usize| [rows, columns];
        let (bins, frames, components) = (self.parts.bins(), self.parts.frames(), self.parts.components());
        let extra = Extra {
            arrays: vec![
                ("W_filter", Array::new(&shape(bins, components), &dictionary[..])),
                ("H_filter", Array::new(&shape(components, frames), &activations[..])),
                ("scale", Array::new(&[1], &scale[..])),
            ],
            keys: self.keys(),
            warnings: self.warnings(),
            tables: false,
            matches: None,
        };
        self.notes.write(folder)?;
        // What `bpnmf regroup` needs beside the model: floats, so that nothing is lost.
        wav::write(&folder.file(RECORDING), self.recording.sound(), wav::Depth::Float32)
            .map_err(Failure::sound_out)?;
        self.results.write(folder, Some(&report), &extra)
    }

    /// What keeps the sounds from being trusted.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = self.stems.warnings.clone();
        if let Some(worst) = self.clipped.iter().max_by_key(|clipped| clipped.samples) {
            warnings.push(format!(
                "{} beyond full scale and clipped, in {} most: use --format float",
                text::plural(
                    self.clipped.iter().map(|clipped| clipped.samples).sum::<u64>() as usize,
                    "sample is",
                    "samples are"
                ),
                worst.file
            ));
        }
        warnings
    }

    /// For summary.json.
    fn keys(&self) -> Map<String, Value> {
        let mut keys = Map::new();
        let (recording, heard) = (self.recording, self.recording.sound());
        let sound = json!({
            "rate": heard.rate,
            "samples": heard.samples.len(),
            "seconds": heard.seconds(),
            "window": recording.stft().window(),
            "hop": recording.stft().hop(),
            "scale": recording.scale(),
            "largest_level": f64::from(recording.magnitudes().iter().copied().fold(0.0, f32::max)).round(),
        });
        keys.insert("sound".to_owned(), sound);
        keys.insert("tuning_hertz".to_owned(), ((100.0 * self.notes.heard.a4).round() / 100.0).into());
        keys.insert("n_notes".to_owned(), self.notes.heard.notes.len().into());
        keys.insert("pitches".to_owned(), self.notes.pitches());
        let stages: Map<String, Value> =
            self.stages.iter().map(|&(name, seconds)| (name.to_owned(), seconds.into())).collect();
        keys.insert("seconds_by_stage".to_owned(), stages.into());
        let stems: Vec<Value> =
            self.stems.names.iter().enumerate().map(|(i, name)| self.stem(i, name)).collect();
        keys.insert(STEMS.to_owned(), stems.into());
        keys
    }

    fn stem(&self, index: usize, name: &str) -> Value {
        let members = self.stems.stems.members.get(index).map_or(&[][..], Vec::as_slice);
        let mut stem = json!({ "name": name, COMPONENTS: members });
        let correlations = self.stems.stems.correlations.as_ref().and_then(|all| all.get(index));
        if let Some(correlations) = correlations {
            stem["correlations"] = correlations.clone().into();
        }
        stem
    }

    /// report.html, with the model that made the sounds.
    fn report(&self, dictionary: &[f32], activations: &[f32]) -> String {
        let (recording, sound, stems) = (self.recording, self.recording.sound(), &self.stems.stems);
        let mut report = self.results.report(Data::Dense(self.recording.magnitudes()));
        report.model.dictionary = dictionary;
        report.model.activations = activations;
        report.source = format!(
            "{} at {} Hz, {} frequencies x {} frames",
            text::duration(sound.seconds()),
            text::grouped(sound.rate as usize),
            text::grouped(self.parts.bins()),
            text::grouped(self.parts.frames()),
        );
        report.warnings.extend(self.warnings());
        report.facts.extend([
            ("window".to_owned(), text::plural(recording.stft().window(), "sample", "samples")),
            ("hop".to_owned(), text::plural(recording.stft().hop(), "sample", "samples")),
            (
                "counts".to_owned(),
                format!("magnitudes times {}, rounded", text::significant(recording.scale(), 4)),
            ),
        ]);
        let split = split(self.parts, stems);
        report.sound = Some(sound_page(recording, self.parts, self.stems, &split, self.notes.roll()));
        bpnmf_report::html(&report)
    }
}

/// W and H of the pieces of stems, if parts were split.
pub(super) fn split(parts: &Parts, stems: &Stems) -> Option<(Vec<f32>, Vec<f32>)> {
    let (pieces, _) = stems.made_of(parts);
    stems.pieces.is_some().then(|| (pieces.dictionary(), pieces.activations()))
}

/// What is heard, for the page.
pub(super) fn sound_page<'a>(
    recording: &'a Recording,
    parts: &Parts,
    stems: &Named,
    split: &'a Option<(Vec<f32>, Vec<f32>)>,
    notes: Vec<PlayedNote>,
) -> SoundPage<'a> {
    let (pieces, members) = stems.stems.made_of(parts);
    let weights = |members: &[usize]| -> Vec<f32> {
        (0..pieces.components()).map(|k| f32::from(u8::from(members.contains(&k)))).collect()
    };
    let named = stems.names.iter().zip(&members);
    SoundPage {
        rate: recording.sound().rate,
        window: recording.stft().window(),
        hop: recording.stft().hop(),
        mixture: &recording.sound().samples,
        stems: named.map(|(name, members)| Stem { name: name.clone(), weights: weights(members) }).collect(),
        pieces: split.as_ref().map(|(dictionary, activations)| Pieces { dictionary, activations }),
        residual: stems
            .stems
            .unexplained
            .then(|| Residual { name: super::stems::RESIDUAL.to_owned(), scale: recording.scale() }),
        notes,
    }
}
