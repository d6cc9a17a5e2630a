//! What a separation leaves behind beside its sounds: the files of a fit, with what is known about the sounds.

use super::sounds::{COMPONENTS, Clipped, STEMS};
use super::stems::Stems;
use crate::failure::Failure;
use crate::fit::output::{Extra, Results};
use crate::folder::Folder;
use crate::text;
use bpnmf_audio::{Parts, Sound, Stft};
use bpnmf_io::Array;
use bpnmf_report::{Data, Pieces, Residual, SoundPage, Stem};
use serde_json::{Map, Value, json};

/// A finished separation.
pub(crate) struct Separation<'a> {
    pub(crate) results: &'a Results<'a>,
    pub(crate) mixture: &'a Sound,
    pub(crate) stft: &'a Stft,
    pub(crate) parts: &'a Parts,
    /// In the units of the parts.
    pub(crate) magnitudes: &'a [f32],
    /// What the magnitudes were multiplied by to become counts.
    pub(crate) scale: f64,
    pub(crate) stems: &'a Stems,
    pub(crate) clipped: &'a [Clipped],
    /// Seconds by what was done in them.
    pub(crate) stages: &'a [(&'static str, f64)],
}

impl Separation<'_> {
    /// Writes everything but the sounds, which are there.
    pub(crate) fn write(&self, folder: &Folder) -> Result<(), Failure> {
        let (dictionary, activations) = (self.parts.dictionary(), self.parts.activations());
        let report = self.report(&dictionary, &activations);
        let shape = |rows: usize, columns: usize| [rows, columns];
        let (bins, frames, components) = (self.parts.bins(), self.parts.frames(), self.parts.components());
        let extra = Extra {
            arrays: vec![
                ("W_filter", Array::new(&shape(bins, components), &dictionary[..])),
                ("H_filter", Array::new(&shape(components, frames), &activations[..])),
            ],
            keys: self.keys(),
            warnings: self.warnings(),
        };
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
        let sound = json!({
            "rate": self.mixture.rate,
            "samples": self.mixture.samples.len(),
            "seconds": self.mixture.seconds(),
            "window": self.stft.window(),
            "hop": self.stft.hop(),
            "scale": self.scale,
            "largest_level": f64::from(self.magnitudes.iter().copied().fold(0.0, f32::max)).round(),
        });
        keys.insert("sound".to_owned(), sound);
        let stages: Map<String, Value> =
            self.stages.iter().map(|&(name, seconds)| (name.to_owned(), seconds.into())).collect();
        keys.insert("seconds_by_stage".to_owned(), stages.into());
        let stems: Vec<Value> =
            self.stems.names.iter().enumerate().map(|(i, name)| self.stem(i, name)).collect();
        keys.insert(STEMS.to_owned(), stems.into());
        keys
    }

    fn stem(&self, index: usize, name: &str) -> Value {
        let members = self.stems.members.get(index).map_or(&[][..], Vec::as_slice);
        let mut stem = json!({ "name": name, COMPONENTS: members });
        let correlations = self.stems.correlations.as_ref().and_then(|all| all.get(index));
        if let Some(correlations) = correlations {
            stem["correlations"] = correlations.clone().into();
        }
        stem
    }

    /// report.html, with the model that made the sounds.
    fn report(&self, dictionary: &[f32], activations: &[f32]) -> String {
        let mut report = self.results.report(Data::Dense(self.magnitudes));
        report.model.dictionary = dictionary;
        report.model.activations = activations;
        report.source = format!(
            "{} at {} Hz, {} frequencies x {} frames",
            text::duration(self.mixture.seconds()),
            text::grouped(self.mixture.rate as usize),
            text::grouped(self.parts.bins()),
            text::grouped(self.parts.frames()),
        );
        report.warnings.extend(self.warnings());
        report.facts.extend([
            ("window".to_owned(), text::plural(self.stft.window(), "sample", "samples")),
            ("hop".to_owned(), text::plural(self.stft.hop(), "sample", "samples")),
            ("counts".to_owned(), format!("magnitudes times {}, rounded", text::significant(self.scale, 4))),
        ]);
        let (pieces, members) = self.stems.made_of(self.parts);
        let weights = |members: &[usize]| -> Vec<f32> {
            (0..pieces.components()).map(|k| f32::from(u8::from(members.contains(&k)))).collect()
        };
        let stems = self.stems.names.iter().zip(&members);
        let split = self.stems.pieces.is_some().then(|| (pieces.dictionary(), pieces.activations()));
        report.sound = Some(SoundPage {
            rate: self.mixture.rate,
            window: self.stft.window(),
            hop: self.stft.hop(),
            mixture: &self.mixture.samples,
            stems: stems
                .map(|(name, members)| Stem { name: name.clone(), weights: weights(members) })
                .collect(),
            pieces: split.as_ref().map(|(dictionary, activations)| Pieces { dictionary, activations }),
            residual: self
                .stems
                .unexplained
                .then(|| Residual { name: super::stems::RESIDUAL.to_owned(), scale: self.scale }),
        });
        bpnmf_report::html(&report)
    }
}
