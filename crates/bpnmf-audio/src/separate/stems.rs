//! Which parts make which stem, by whatever way was asked for, and what they sound like.

use crate::parts::Parts;
use crate::sources::{pick_one, power_envelope};
use crate::split::{Pieces, by_events, pick_all};
use crate::transcription::Transcription;
use crate::wiener::Wiener;

use super::Recording;

/// How parts become stems.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Grouping<'a> {
    /// Not at all.
    Nothing,
    /// So many, or fewer, each of the [events](Recording::voices) of one instrument.
    Voices {
        /// How many there are at most.
        wanted: usize,
        /// Whether an instrument may play several notes at once.
        polyphonic: bool,
    },
    /// As somebody says: the stem of every event, and how many stems there are.
    Events(&'a [usize], usize),
    /// As somebody says: lists of parts.
    Parts(&'a [Vec<usize>]),
    /// By the [magnitudes](Recording::magnitudes_of) of the sources: all parts, split where several share one.
    PickAll(&'a [Vec<f32>]),
    /// The same, but one part for each, and a stem more for all others.
    PickOne(&'a [Vec<f32>]),
}

/// Stems as sums of parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stems {
    /// The parts of each stem, increasing; every part is in one at most, or in several if there are pieces.
    pub members: Vec<Vec<usize>>,
    /// The pieces that stems are made of, if parts were split.
    pub pieces: Option<Pieces>,
    /// One stem more, for what no part explains.
    pub unexplained: bool,
    /// The stem of every event and how probable that is, if stems are of events.
    pub events: Option<Vec<(usize, f64)>>,
    /// Of each source with each part, if the sources got one part each.
    pub correlations: Option<Vec<Vec<f64>>>,
}

impl Stems {
    fn of_pieces(pieces: Pieces, many: usize) -> Self {
        let mut members = vec![Vec::new(); many];
        pieces.origin.iter().zip(&pieces.owner).for_each(|(&k, &stem)| members[stem].push(k));
        Self { members, pieces: Some(pieces), ..Self::default() }
    }

    fn of_events(parts: &Parts, heard: &Transcription, of: &[usize], many: usize) -> Self {
        Self::of_pieces(by_events(parts, &heard.events, of), many)
    }

    /// With one stem more, for what no part explains.
    pub fn with_unexplained(self, unexplained: bool) -> Self {
        Self { unexplained, ..self }
    }

    /// How many there are.
    pub fn many(&self) -> usize {
        self.members.len() + usize::from(self.unexplained)
    }

    /// The model that the stems are sums of, and what of it each has.
    pub fn made_of<'a>(&'a self, parts: &'a Parts) -> (&'a Parts, Vec<Vec<usize>>) {
        let Some(pieces) = &self.pieces else {
            return (parts, self.members.clone());
        };
        (&pieces.parts, pieces.by_owner(self.members.len()))
    }
}

impl Recording {
    /// The stems of its parts, which are heard as [`transcription`](Self::transcription) says. `activations` are the posterior
    /// means of H S, K x frames by rows, which [`Grouping::PickOne`] looks at.
    pub fn stems(
        &self,
        parts: &Parts,
        heard: &Transcription,
        activations: &[f32],
        grouping: &Grouping<'_>,
    ) -> Stems {
        let mut stems = Stems::default();
        match grouping {
            Grouping::Nothing => {}
            Grouping::Voices { wanted, polyphonic } => {
                let voices = self.voices(parts, heard, *wanted, *polyphonic);
                stems = Stems::of_events(parts, heard, &voices.of, voices.many);
                stems.events = Some(voices.of.into_iter().zip(voices.probability).collect());
            }
            Grouping::Events(of, many) => {
                stems = Stems::of_events(parts, heard, of, *many);
                stems.events = Some(of.iter().map(|&stem| (stem, 1.0)).collect());
            }
            Grouping::Parts(members) => stems.members = members.to_vec(),
            Grouping::PickAll(sources) => {
                stems = Stems::of_pieces(pick_all(parts, sources), sources.len());
            }
            Grouping::PickOne(sources) => {
                let envelopes: Vec<Vec<f64>> =
                    sources.iter().map(|source| power_envelope(source, self.stft.bins())).collect();
                let picked = pick_one(&envelopes, activations);
                let left = |k: &usize| !picked.parts.contains(&Some(*k));
                stems.members = picked.parts.iter().map(|part| part.iter().copied().collect()).collect();
                stems.members.push((0..parts.components()).filter(left).collect());
                stems.correlations = Some(picked.correlations);
            }
        }
        stems
    }

    /// Makes the sounds of all parts, if `components`, and of all stems, one pass over the recording: hands out their samples
    /// in order as they become final, parts first.
    pub fn filter<E>(
        &self,
        parts: &Parts,
        stems: &Stems,
        components: bool,
        push: impl FnMut(usize, &[f32]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (pieces, members) = stems.made_of(parts);
        let mut wiener = Wiener::of_pieces(parts, pieces, &members);
        if stems.unexplained {
            wiener = wiener.with_residual(&self.magnitudes);
        }
        let outputs = stems.many() + if components { parts.components() } else { 0 };
        let gains = |frame: usize, gains: &mut [f32]| {
            if components {
                wiener.gains(frame, gains);
            } else {
                wiener.gains_of_stems(frame, gains);
            }
        };
        self.stft.filter(&self.sound.samples, outputs, gains, push)
    }

    /// The sounds of the stems.
    pub fn sounds(&self, parts: &Parts, stems: &Stems) -> Vec<Vec<f32>> {
        let mut sounds = vec![Vec::with_capacity(self.sound.samples.len()); stems.many()];
        let done: Result<(), core::convert::Infallible> =
            self.filter(parts, stems, false, |output, samples| {
                sounds[output].extend_from_slice(samples);
                Ok(())
            });
        let Ok(()) = done;
        sounds
    }
}
