//! Which events are of one instrument, when nobody says: an instrument plays one note after the other, goes from a note to one
//! nearby, keeps to its register and above or below the others, and sounds like itself. Knows nothing of stems and samples.

mod anneal;
mod timbre;

use crate::parts::Parts;
use crate::separate::Recording;
use crate::transcription::{Event, Kind, Transcription};

use anneal::Notes;

/// An event whose loudest frame is below this share of that of a loud event follows the others.
const LEAST: f64 = 0.35;

/// How loud a loud event is: the quantile of all events, by frame.
const LOUD: f64 = 0.9;

/// An event of fewer frames follows the others.
const FEWEST_FRAMES: usize = 2;

/// Frames from an event to one that it may follow.
const NEAR: f64 = 6.0;

/// Intervals, in semitones, of the partials of a note: what is that far above one may be its own.
const PARTIALS: [f64; 5] = [12.0, 19.0, 24.0, 28.0, 31.0];

/// The voice of every event.
#[derive(Debug, Clone, PartialEq)]
pub struct Voices {
    /// The voice of each event, from 0 on, the voice with most sound first.
    pub of: Vec<usize>,
    /// How probable that is, from 1 / voices to 1.
    pub probability: Vec<f64>,
    /// How many there are.
    pub many: usize,
}

impl Recording {
    /// Gives every event to one of at most `wanted` voices; `polyphonic` if an instrument may play several notes at once.
    ///
    /// First the loud events of parts with a pitch find voices: what is least is the sum, over events by the root of their
    /// length, of how unlike the other notes of its voice a note is (its register, a Gaussian of pitches; its timbre, levels of
    /// partials by number plus levels by frequency, both learned from the voice), over pairs of a voice that sound together,
    /// less over pairs that follow each other within 0.6 s and few semitones, and over pairs that sound together and cross the
    /// registers of their voices. It is found by annealing from voices of equal length by pitch. Then every other event goes
    /// to the voice of those around it that it is nearest to in pitch, or a partial of.
    pub fn voices(&self, parts: &Parts, heard: &Transcription, wanted: usize, polyphonic: bool) -> Voices {
        let events = &heard.events;
        let wanted = wanted.max(1);
        let spectra = self.spectra(parts, events);
        let peaks = peaks(parts, events);
        let loud = LEAST * quantile(events, &peaks);
        let strong: Vec<usize> = (0..events.len())
            .filter(|&e| {
                events[e].frames() >= FEWEST_FRAMES
                    && peaks[e] >= loud
                    && !matches!(heard.pitches[events[e].part].kind, Kind::Noise | Kind::Click)
            })
            .collect();
        let pitch = |e: usize| heard.pitches[events[e].part].midi;
        let seconds = self.stft().hop() as f64 / f64::from(self.sound().rate);
        let bins_a_hertz = self.stft().window() as f64 / f64::from(self.sound().rate);
        let notes = Notes {
            spans: strong.iter().map(|&e| (events[e].first, events[e].end)).collect(),
            pitches: strong.iter().map(|&e| pitch(e)).collect(),
            timbres: strong.iter().map(|&e| timbre::levels(&spectra[e], pitch(e), bins_a_hertz)).collect(),
            seconds,
            polyphonic,
        };
        let found = notes.voices(wanted);
        let mut of: Vec<Option<usize>> = vec![None; events.len()];
        let mut probability = vec![1.0 / wanted as f64; events.len()];
        for (at, &e) in strong.iter().enumerate() {
            of[e] = Some(found.of[at]);
            probability[e] = found.probability[at];
        }
        let mut around: Vec<usize> = strong.clone();
        around.sort_by_key(|&e| (events[e].first, e));
        for e in 0..events.len() {
            if of[e].is_none() {
                let votes = votes(events, &around, &found.of, &strong, e, wanted, &pitch);
                let sum: f64 = votes.iter().sum();
                let best = (0..wanted).rev().max_by(|&a, &b| votes[a].total_cmp(&votes[b])).unwrap_or(0);
                of[e] = Some(best);
                probability[e] = if sum > 0.0 { votes[best] / sum } else { 1.0 / wanted as f64 };
            }
        }
        let of: Vec<usize> = of.into_iter().map(|voice| voice.unwrap_or(0)).collect();
        in_order(events, of, probability, wanted)
    }

    /// What each event has of the magnitudes, by the Wiener filter, summed over its frames.
    fn spectra(&self, parts: &Parts, events: &[Event]) -> Vec<Vec<f64>> {
        let bins = parts.bins();
        let mut spectra = vec![vec![0.0; bins]; events.len()];
        // Events of each frame.
        let mut starts: Vec<Vec<usize>> = vec![Vec::new(); parts.frames() + 1];
        events.iter().enumerate().for_each(|(e, event)| starts[event.first].push(e));
        let mut now: Vec<usize> = Vec::new();
        let mut whole = vec![0.0; bins];
        for t in 0..parts.frames() {
            now.retain(|&e| events[e].end > t);
            now.extend(&starts[t]);
            parts.expected(t, |_| true, &mut whole);
            let magnitudes = &self.magnitudes()[t * bins..][..bins];
            for (k, h) in parts.on(t) {
                let Some(&e) = now.iter().find(|&&e| events[e].part == k) else { continue };
                let values = spectra[e].iter_mut().zip(parts.spectrum(k)).zip(magnitudes).zip(&whole);
                for (((sum, &w), &x), &whole) in values {
                    if whole > 0.0 {
                        *sum += f64::from(w) * f64::from(h) / whole * f64::from(x);
                    }
                }
            }
        }
        spectra
    }
}

/// What each event's part adds to W H in its loudest frame.
fn peaks(parts: &Parts, events: &[Event]) -> Vec<f64> {
    let rows = parts.activations();
    let weight = |k: usize| parts.spectrum(k).iter().map(|&w| f64::from(w)).sum::<f64>();
    let weights: Vec<f64> = (0..parts.components()).map(weight).collect();
    let peak = |event: &Event| {
        let row = &rows[event.part * parts.frames()..][event.first..event.end];
        weights[event.part] * f64::from(row.iter().copied().fold(0.0, f32::max))
    };
    events.iter().map(peak).collect()
}

/// The peak below which events with 0.9 of all frames are.
fn quantile(events: &[Event], peaks: &[f64]) -> f64 {
    let mut order: Vec<usize> = (0..events.len()).collect();
    order.sort_by(|&a, &b| peaks[a].total_cmp(&peaks[b]));
    let frames: usize = events.iter().map(Event::frames).sum();
    let mut passed = 0;
    for e in order {
        passed += events[e].frames();
        if passed as f64 >= LOUD * frames as f64 {
            return peaks[e];
        }
    }
    0.0
}

/// How much speaks for each voice of an event that follows others.
fn votes(
    events: &[Event],
    around: &[usize],
    of: &[usize],
    strong: &[usize],
    e: usize,
    voices: usize,
    pitch: &impl Fn(usize) -> f64,
) -> Vec<f64> {
    let mut votes = vec![0.0; voices];
    let event = &events[e];
    for &other in around {
        let beside = &events[other];
        let overlap = beside.end.min(event.end) as f64 - beside.first.max(event.first) as f64;
        if overlap <= -NEAR {
            continue;
        }
        let above = pitch(e) - pitch(other);
        let apart =
            PARTIALS.iter().fold(above.abs(), |apart, partial| apart.min((above - partial).abs() + 0.5));
        let together = if overlap > 0.0 { 1.0 } else { 0.3 * (overlap / 3.0).exp() };
        let same = if beside.part == event.part { 3.0 } else { 1.0 };
        // In the order of events, so that their places are found by halving.
        let place = strong.binary_search(&other).expect("it is one of them");
        votes[of[place]] += (-apart).exp() * together * same + 1e-3 * (-above.abs() / 6.0).exp();
    }
    votes
}

/// The voice with most sound first; voices without an event are left out.
fn in_order(events: &[Event], of: Vec<usize>, probability: Vec<f64>, wanted: usize) -> Voices {
    let mut sizes = vec![0.0; wanted];
    events.iter().zip(&of).for_each(|(event, &voice)| sizes[voice] += event.strength);
    let mut order: Vec<usize> = (0..wanted).filter(|&voice| of.contains(&voice)).collect();
    order.sort_by(|&a, &b| sizes[b].total_cmp(&sizes[a]).then(a.cmp(&b)));
    let place = |voice: usize| order.iter().position(|&other| other == voice).unwrap_or(0);
    Voices { of: of.into_iter().map(place).collect(), probability, many: order.len() }
}
