//! A made-up tune as a matrix of counts: pitches x moments, and which note sounds when. Knows nothing of the fit.

use bpnmf::Counts;

/// Semitones from the lowest pitch, C2, to the highest.
pub(super) const PITCHES: usize = 60;

/// Columns of the matrix.
pub(super) const MOMENTS: usize = 300;

/// The notes a tune chooses from: three octaves of a scale, in semitones above the lowest pitch.
const SCALE: [usize; 15] = [0, 2, 4, 7, 9, 12, 14, 16, 19, 21, 24, 26, 28, 31, 33];

/// A tune leaves out one to this many of them.
const MOST_LEFT_OUT: usize = 6;

/// The overtones of a note: semitones above it, and how loud they are.
const OVERTONES: [(usize, f64); 6] = [(0, 1.0), (12, 0.55), (19, 0.4), (24, 0.25), (28, 0.15), (31, 0.1)];

/// Counts of the loudest overtone of a note when it is struck.
const LOUDNESS: f64 = 24.0;

/// How many notes sound together.
const VOICES: usize = 3;

/// A tune, its counts and its notes.
pub(super) struct Tune {
    /// Pitches x moments.
    pub(super) counts: Counts,
    /// F x L by rows: the sound of each note.
    pub(super) dictionary: Vec<f64>,
    /// L x T by rows: how loud each note is, 0 where it is silent.
    pub(super) activations: Vec<f64>,
    /// The pitch of each note, length L.
    pub(super) notes: Vec<usize>,
}

impl Tune {
    /// The tune of a seed.
    pub(super) fn new(seed: u64) -> Result<Self, bpnmf::Error> {
        let mut chance = Chance(seed);
        let mut pitches = SCALE.to_vec();
        for _ in 0..1 + chance.below(MOST_LEFT_OUT) {
            pitches.remove(chance.below(pitches.len()));
        }
        let notes = pitches.len();
        let mut dictionary = vec![0.0; PITCHES * notes];
        for (note, &root) in pitches.iter().enumerate() {
            for (above, share) in OVERTONES {
                if root + above < PITCHES {
                    dictionary[(root + above) * notes + note] = LOUDNESS * share;
                }
            }
        }
        let mut activations = vec![0.0; notes * MOMENTS];
        for voice in 0..VOICES {
            play(&mut chance, voice, notes, &mut activations);
        }
        let mut values = Vec::with_capacity(PITCHES * MOMENTS);
        for t in 0..MOMENTS {
            for f in 0..PITCHES {
                let rate = (0..notes).map(|l| dictionary[f * notes + l] * activations[l * MOMENTS + t]).sum();
                values.push(chance.poisson(rate));
            }
        }
        let counts = Counts::from_dense(PITCHES, MOMENTS, values)?;
        Ok(Self { counts, dictionary, activations, notes: pitches })
    }

    /// The notes that are played for at least 1 % of the time.
    pub(super) fn played(&self) -> Vec<usize> {
        let moments = |note: usize| self.course(note).iter().filter(|&&loudness| loudness > 0.0).count();
        (0..self.notes.len()).filter(|&note| 100 * moments(note) >= MOMENTS).collect()
    }

    /// How loud a note is at each moment.
    pub(super) fn course(&self, note: usize) -> &[f64] {
        &self.activations[note * MOMENTS..][..MOMENTS]
    }

    /// The name of a note.
    pub(super) fn note_name(&self, note: usize) -> String {
        pitch_name(self.notes[note])
    }
}

/// The name of a pitch: C2 is the lowest.
pub(super) fn pitch_name(pitch: usize) -> String {
    let names = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"];
    format!("{}{}", names[pitch % 12], 2 + pitch / 12)
}

/// One voice wanders up and down the notes, resting now and then.
fn play(chance: &mut Chance, voice: usize, notes: usize, activations: &mut [f64]) {
    let mut note = voice * notes / VOICES + chance.below(notes / VOICES);
    let mut start = chance.below(12);
    while start < MOMENTS {
        let length = 8 + chance.below(13);
        let end = (start + length).min(MOMENTS);
        let strength = 0.9 + 0.5 * chance.uniform();
        for t in start..end {
            let loudness = &mut activations[note * MOMENTS + t];
            *loudness = f64::max(*loudness, strength * (-0.04 * (t - start) as f64).exp());
        }
        start = end + if chance.below(4) == 0 { 4 + chance.below(10) } else { 0 };
        note = (note + notes + [1, 2, 3, notes - 1, notes - 2, notes - 3][chance.below(6)]) % notes;
    }
}

/// Random numbers enough for a tune: splitmix64.
struct Chance(u64);

impl Chance {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, end: usize) -> usize {
        (self.uniform() * end as f64) as usize
    }

    /// Counts arrivals of rate 1 within `rate`: rates here are small.
    fn poisson(&mut self, rate: f64) -> f64 {
        let mut time = 0.0;
        for count in 0.. {
            time -= (1.0 - self.uniform()).ln();
            if time >= rate {
                return f64::from(count);
            }
        }
        unreachable!("time runs on")
    }
}
