//! Standard MIDI files: bytes in and out.

use midly::num::{u4, u7, u15, u24, u28};
use midly::{Format, Header, MetaMessage, MidiMessage, Smf, Timing, TrackEvent, TrackEventKind};

use super::{BadNotes, Played};

/// Ticks a beat of half a second: one is a millisecond.
const TICKS: u16 = 500;

/// Microseconds a beat.
const BEAT: u32 = 500_000;

/// A track of notes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Track {
    /// What it is called.
    pub name: String,
    /// Notes and how hard they are struck, from 1 to 127.
    pub notes: Vec<(Played, u8)>,
}

/// The notes as a file of several tracks, a tick a millisecond.
pub fn write_midi(tracks: &[Track]) -> Vec<u8> {
    let event = |delta: u32, kind| TrackEvent { delta: u28::from(delta), kind };
    let end = || event(0, TrackEventKind::Meta(MetaMessage::EndOfTrack));
    let mut file = Smf::new(Header::new(Format::Parallel, Timing::Metrical(u15::from(TICKS))));
    file.tracks.push(vec![event(0, TrackEventKind::Meta(MetaMessage::Tempo(u24::from(BEAT)))), end()]);
    for (number, track) in tracks.iter().enumerate() {
        // (tick, whether it begins, key, velocity): what ends comes before what begins.
        let mut moments: Vec<(u32, bool, u8, u8)> = Vec::new();
        for (note, velocity) in &track.notes {
            let key = note.midi.round().clamp(0.0, 127.0) as u8;
            let (from, to) = (tick(note.onset), tick(note.offset));
            moments.push((from, true, key, (*velocity).clamp(1, 127)));
            moments.push((to.max(from + 1), false, key, 0));
        }
        moments.sort_unstable();
        // Channel 10 is for drums.
        let channel = number % 15;
        let channel = u4::from((channel + usize::from(channel >= 9)) as u8);
        let mut events = vec![event(0, TrackEventKind::Meta(MetaMessage::TrackName(track.name.as_bytes())))];
        let mut now = 0;
        for (at, begins, key, velocity) in moments {
            let (key, vel) = (u7::from(key), u7::from(velocity));
            let message =
                if begins { MidiMessage::NoteOn { key, vel } } else { MidiMessage::NoteOff { key, vel } };
            events.push(event(at - now, TrackEventKind::Midi { channel, message }));
            now = at;
        }
        events.push(end());
        file.tracks.push(events);
    }
    let mut bytes = Vec::new();
    file.write_std(&mut bytes).expect("memory takes all bytes");
    bytes
}

fn tick(seconds: f64) -> u32 {
    // Five days; a delta has 28 bits.
    (seconds * 1000.0).round().clamp(0.0, f64::from(1u32 << 28) - 2.0) as u32
}

/// The notes of a file, in the order of their onsets. A note that nobody ends lasts to the end of the file.
pub fn read_midi(bytes: &[u8]) -> Result<Vec<Played>, BadNotes> {
    let file = Smf::parse(bytes).map_err(|error| BadNotes::NotMidi(error.to_string()))?;
    // (tick, track, place in it, event), in the order of time; files of format 2 are played one after the other in vain.
    let mut moments: Vec<(u64, usize, TrackEventKind<'_>)> = Vec::new();
    for (number, track) in file.tracks.iter().enumerate() {
        let mut now = 0u64;
        for event in track {
            now += u64::from(event.delta.as_int());
            moments.push((now, number, event.kind));
        }
    }
    moments.sort_by_key(|&(tick, track, _)| (tick, track));
    let (mut beat, mut before, mut seconds) = (f64::from(BEAT) * 1e-6, 0u64, 0.0f64);
    let mut sounding: Vec<(usize, u8, u8, f64)> = Vec::new();
    let mut notes = Vec::new();
    for (tick, track, kind) in moments {
        let a_tick = match file.header.timing {
            Timing::Metrical(ticks) => beat / f64::from(ticks.as_int().max(1)),
            Timing::Timecode(frames, parts) => 1.0 / f64::from(frames.as_f32()) / f64::from(parts.max(1)),
        };
        seconds += (tick - before) as f64 * a_tick;
        before = tick;
        match kind {
            TrackEventKind::Meta(MetaMessage::Tempo(micros)) => beat = f64::from(micros.as_int()) * 1e-6,
            TrackEventKind::Midi { channel, message } => {
                let channel = channel.as_int();
                let (key, begins) = match message {
                    MidiMessage::NoteOn { key, vel } => (key.as_int(), vel.as_int() > 0),
                    MidiMessage::NoteOff { key, .. } => (key.as_int(), false),
                    _ => continue,
                };
                let at = sounding.iter().position(|&(t, c, k, _)| (t, c, k) == (track, channel, key));
                if begins {
                    sounding.push((track, channel, key, seconds));
                } else if let Some(at) = at {
                    let (.., onset) = sounding.remove(at);
                    notes.push(Played { onset, offset: seconds, midi: f64::from(key) });
                }
            }
            _ => {}
        }
    }
    let left = sounding.into_iter();
    notes.extend(left.map(|(_, _, key, onset)| Played { onset, offset: seconds, midi: f64::from(key) }));
    if notes.is_empty() {
        return Err(BadNotes::NoNotes);
    }
    notes.sort_by(|a, b| a.onset.total_cmp(&b.onset).then(a.midi.total_cmp(&b.midi)));
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_to_the_millisecond_in_all_tracks() {
        let note = |onset, offset, midi| (Played { onset, offset, midi }, 80);
        let tracks: Vec<Track> = (0..18)
            .map(|i| {
                let at = f64::from(i) * 0.25;
                let notes = vec![note(at, at + 0.123, 60.0), note(at + 0.123, at + 0.5, 60.0)];
                Track { name: format!("stem {i}"), notes }
            })
            .collect();
        let mut expected: Vec<Played> =
            tracks.iter().flat_map(|track| track.notes.iter().map(|(note, _)| *note)).collect();
        expected.sort_by(|a, b| a.onset.total_cmp(&b.onset).then(a.midi.total_cmp(&b.midi)));
        let found = read_midi(&write_midi(&tracks)).unwrap();
        assert_eq!(found.len(), expected.len());
        for (a, b) in found.iter().zip(&expected) {
            assert!((a.onset - b.onset).abs() < 1e-9 && (a.offset - b.offset).abs() < 1e-9, "{a:?} {b:?}");
            assert_eq!(a.midi, b.midi);
        }
    }

    #[test]
    fn what_is_no_midi_file_and_what_has_no_notes_are_refused() {
        assert!(matches!(read_midi(b"RIFF1234"), Err(BadNotes::NotMidi(_))));
        assert_eq!(read_midi(&write_midi(&[Track::default()])), Err(BadNotes::NoNotes));
    }
}
