//! A recording taken apart, the one way for every front end: a sound becomes counts, a posterior becomes parts, parts become
//! stems and sounds. Knows nothing of files and terminals; who watches a fit, or keeps checkpoints of it, runs it by himself
//! between [`Recording::new`] and [`Recording::parts`], all others call [`separate`].

mod stems;

use bpnmf::{Chains, Counts, Observer, Plan, Posterior, Search, Workers};

use crate::error::{Error, Fault};
use crate::levels::{Levels, to_counts, to_units};
use crate::notes;
use crate::parts::Parts;
use crate::sound::Sound;
use crate::stft::{Stft, default_window};
pub use stems::{Grouping, Stems};

/// How a sound is cut into frames; what is `None` depends on the sound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Framing {
    /// Samples in a frame. `None`: [`default_window`].
    pub window: Option<usize>,
    /// Samples from one frame to the next. `None`: half a window.
    pub hop: Option<usize>,
}

impl Framing {
    /// The frames of a sound of so many samples.
    pub fn of(self, rate: u32, samples: usize) -> Result<Stft, Error> {
        let window = self.window.unwrap_or_else(|| default_window(rate, samples));
        Stft::new(window, self.hop.unwrap_or(window / 2))
    }
}

/// A sound and its spectrogram, ready to be taken apart.
#[derive(Debug, Clone)]
pub struct Recording {
    sound: Sound,
    stft: Stft,
    magnitudes: Vec<f32>,
    scale: f64,
}

impl Recording {
    /// The spectrogram of a sound, and its counts, which a fit needs and nothing after it. Uses as many threads as the rayon
    /// pool it is called in has, as everything here does; what comes out does not depend on their number.
    pub fn new(sound: Sound, stft: Stft, levels: Levels) -> Result<(Self, Counts), Fault> {
        let magnitudes = stft.magnitudes(&sound.samples);
        let (counts, scale) = to_counts(&magnitudes, stft.bins(), levels)?;
        Ok((Self { sound, stft, magnitudes: to_units(magnitudes, scale), scale }, counts))
    }

    /// The same again, with the scale that its counts had.
    pub fn restored(sound: Sound, stft: Stft, scale: f64) -> Self {
        let magnitudes = to_units(stft.magnitudes(&sound.samples), scale);
        Self { sound, stft, magnitudes, scale }
    }

    /// What is heard.
    pub fn sound(&self) -> &Sound {
        &self.sound
    }

    /// Its frames.
    pub fn stft(&self) -> &Stft {
        &self.stft
    }

    /// The magnitudes in the units of the counts, bins x frames, frame after frame.
    pub fn magnitudes(&self) -> &[f32] {
        &self.magnitudes
    }

    /// Counts are magnitudes times this, rounded.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The magnitudes of another sound as long as this one, in the same units.
    pub fn magnitudes_of(&self, samples: &[f32]) -> Vec<f32> {
        to_units(self.stft.magnitudes(samples), self.scale)
    }

    /// Prepares a search for this recording, see [`notes::prepare`].
    pub fn prepare(&self, search: &mut Search) {
        notes::prepare(search, self.sound.rate, self.stft.window(), self.stft.hop());
    }

    /// Parts of the counts, polished on the magnitudes.
    pub fn polished(&self, mut parts: Parts) -> Parts {
        parts.polish(&self.magnitudes);
        parts
    }

    /// The parts of a posterior of the counts, polished on the magnitudes.
    pub fn parts(&self, found: &Posterior) -> Parts {
        self.polished(Parts::from(found))
    }
}

/// The fit of `bpnmf separate` to the counts of a recording, and the parts it found: the plan as it is, but one chain unless
/// it asks for more.
///
/// ```
/// use bpnmf_audio::{Framing, Grouping, Levels, Recording, piece, separate};
/// let mut sound = piece().mixture;
/// sound.samples.truncate(40_000);
/// let stft = Framing::default().of(sound.rate, sound.samples.len())?;
/// let (recording, counts) = Recording::new(sound, stft, Levels::Typical).unwrap();
/// let (chains, parts) =
///     separate(&recording, &counts, &bpnmf::Plan::default(), &bpnmf::Workers::serial(), |_| |_: &bpnmf::TraceRow| true)?;
/// let found = &chains.fit().posterior;
/// let heard = recording.transcription(&parts, &found.inclusion);
/// let two = Grouping::Voices { wanted: 2, polyphonic: false };
/// let stems = recording.stems(&parts, &heard, &found.activations, &two);
/// let sounds = recording.sounds(&parts, &stems);
/// assert_eq!(sounds.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn separate<O: Observer>(
    recording: &Recording,
    counts: &Counts,
    plan: &Plan,
    workers: &Workers,
    observer: impl Fn(usize) -> O + Sync,
) -> Result<(Chains, Parts), bpnmf::Error> {
    let plan = Plan { chains: plan.chains.or(Some(notes::CHAINS)), ..plan.clone() };
    let (mut job, kept) = plan.job(counts)?;
    if let Some(search) = &mut job.options.search {
        recording.prepare(search);
    }
    let chains = job.run(kept.as_ref().unwrap_or(counts), workers, |_| None, observer)?;
    let parts = recording.parts(&chains.fit().posterior);
    Ok((chains, parts))
}
