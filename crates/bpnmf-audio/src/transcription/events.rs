//! When parts are on: a part that is off in between, or struck anew, is on in several events.

use crate::parts::Parts;

/// A part that grows by this factor after it has fallen is struck anew.
const STRUCK: f32 = 2.0;

/// Unless it stays below this share of what it was at its loudest in the event.
const LOUD_ENOUGH: f32 = 0.2;

/// A part from when it is on to when it is off, or struck anew.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// Which part.
    pub part: usize,
    /// The first frame it is on in.
    pub first: usize,
    /// The frame after the last one.
    pub end: usize,
    /// What it adds to W H in all, in counts.
    pub strength: f64,
    /// How probable it is that the part is on, the mean over its frames.
    pub probability: f64,
}

impl Event {
    /// How many frames it has.
    pub fn frames(&self) -> usize {
        self.end - self.first
    }
}

impl Parts {
    /// All events, part after part in the order of time: every frame that a part is on in is in one of them. `inclusion` are
    /// the probabilities of S = 1, K x frames by rows.
    pub fn events(&self, inclusion: &[f32]) -> Vec<Event> {
        let mut events = Vec::new();
        let activations = self.activations();
        for k in 0..self.components() {
            let weight: f64 = self.spectrum(k).iter().map(|&w| f64::from(w)).sum();
            let row = &activations[k * self.frames()..][..self.frames()];
            let on = &inclusion[k * self.frames()..][..self.frames()];
            let mut first = 0;
            while first < row.len() {
                if row[first] == 0.0 {
                    first += 1;
                    continue;
                }
                let end = row[first..].iter().position(|&h| h == 0.0).map_or(row.len(), |off| first + off);
                for (from, to) in struck(&row[first..end]) {
                    let frames = first + from..first + to;
                    let sum = |values: &[f32]| values.iter().map(|&value| f64::from(value)).sum::<f64>();
                    events.push(Event {
                        part: k,
                        first: frames.start,
                        end: frames.end,
                        strength: weight * sum(&row[frames.clone()]),
                        probability: (sum(&on[frames.clone()]) / frames.len() as f64).min(1.0),
                    });
                }
                first = end;
            }
        }
        events
    }
}

/// Where a part that is on all the time is struck: pairs of the first frame of a note and the one after its last.
fn struck(row: &[f32]) -> Vec<(usize, usize)> {
    let (mut cuts, mut peak, mut valley, mut at) = (vec![0], row[0], row[0], 0);
    for (t, &h) in row.iter().enumerate().skip(1) {
        if h < valley {
            (valley, at) = (h, t);
        }
        if h > STRUCK * valley && h >= LOUD_ENOUGH * peak && valley < peak / STRUCK {
            cuts.push(at);
            (peak, valley, at) = (h, h, t);
        } else if h > peak {
            (peak, valley, at) = (h, h, t);
        }
    }
    cuts.push(row.len());
    cuts.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_is_struck_anew_is_another_one_and_one_that_trembles_is_not() {
        assert_eq!(struck(&[1.0, 4.0, 3.0, 1.0, 3.5, 3.0]), [(0, 3), (3, 6)]);
        assert_eq!(struck(&[1.0, 4.0, 3.6, 4.1, 3.5, 4.0, 2.0, 1.0]), [(0, 8)]);
        assert_eq!(struck(&[5.0]), [(0, 1)]);
        assert_eq!(struck(&[9.0, 0.1, 0.3, 0.1, 0.4]), [(0, 5)], "too faint to be a note of its own");
    }

    #[test]
    fn every_frame_that_a_part_is_on_in_is_in_one_event() {
        let activations = [0.0, 2.0, 2.0, 0.0, 1.0, 9.0, 1.0, 0.0, 0.0, 8.0, 1.0, 7.0];
        let inclusion = activations.map(|h| if h > 0.0 { 0.9 } else { 0.0 });
        let parts = Parts::new(&[1.0, 0.0, 0.0, 1.0], &activations, &inclusion, 2);
        let events = parts.events(&inclusion);
        let spans: Vec<(usize, usize, usize)> =
            events.iter().map(|event| (event.part, event.first, event.end)).collect();
        assert_eq!(spans, [(0, 1, 3), (0, 4, 6), (1, 0, 1), (1, 3, 4), (1, 4, 6)]);
        assert!(events.iter().all(|event| (event.probability - 0.9).abs() < 1e-6));
        assert!((events[0].strength - 4.0).abs() < 1e-2);
    }
}
