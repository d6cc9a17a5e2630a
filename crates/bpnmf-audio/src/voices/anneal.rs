//! Notes given to voices by simulated annealing. Every random number comes from a key: nothing is left to chance.

use super::timbre::{Levels, Timbre};

/// Sweeps over all notes; the temperature falls in a line and is 0 for the last quarter.
const SWEEPS: usize = 200;
const HOTTEST: f64 = 8.0;

/// The timbre of voices is looked at from this sweep on: before, they are anything.
const TIMBRE_FROM: usize = 6;

/// How much the terms count: register, timbre (of a note as a whole, so several levels), notes that sound together, notes that
/// follow each other, and voices that cross.
const REGISTER: f64 = 1.0;
const TIMBRE: f64 = 8.0;
const TOGETHER: f64 = 6.0;
const FOLLOWING: f64 = 3.0;
const CROSSING: f64 = 2.0;

/// Two parts that are on at one pitch are one note, by this much.
const SAME_PITCH: f64 = 2.0;

/// Notes this near in pitch, in semitones, are at one pitch.
const UNISON: f64 = 0.6;

/// Seconds of silence after which a note no longer follows another, and how fast it is forgotten before.
const LONGEST_REST: f64 = 0.6;
const REST: f64 = 0.25;

/// Semitones from a note to the next that are small.
const STEP: f64 = 3.0;

/// Notes may overlap by so many frames: what sounds on, and frames are longer than that.
const LEGATO: f64 = 2.0;

/// The variance of pitches that a register has at least, in square semitones.
const NARROWEST: f64 = 4.0;

/// How much better a voice must be than another for it to be e times as probable.
const SURE: f64 = 8.0;

/// Notes in a recording.
pub(super) struct Notes {
    /// The first frame of each, and the one after its last.
    pub(super) spans: Vec<(usize, usize)>,
    pub(super) pitches: Vec<f64>,
    pub(super) timbres: Vec<Levels>,
    /// From one frame to the next.
    pub(super) seconds: f64,
    /// Notes of one voice may sound together.
    pub(super) polyphonic: bool,
}

/// The voice of every note, and how probable it is.
pub(super) struct Found {
    pub(super) of: Vec<usize>,
    pub(super) probability: Vec<f64>,
}

/// Another note, what it costs to be of its voice, and what to cross it; below 0 if it is the higher one.
struct Neighbour {
    note: usize,
    cost: f64,
    crossing: f64,
}

impl Notes {
    pub(super) fn voices(&self, wanted: usize) -> Found {
        let many = self.spans.len();
        let weights = self.weights();
        let neighbours = self.neighbours(&weights);
        let mut of = self.by_pitch(&weights, wanted);
        let mut costs = vec![0.0; many * wanted];
        let mut registers = vec![0.0; wanted];
        let mut values = vec![0.0; wanted];
        for sweep in 0..SWEEPS {
            let heat = HOTTEST * (1.0 - sweep as f64 / (0.75 * SWEEPS as f64)).max(0.0);
            self.learn(&of, &weights, sweep >= TIMBRE_FROM, &mut registers, &mut costs);
            for note in order(many, sweep) {
                self.weigh(note, &of, &costs, &registers, &neighbours[note], &mut values);
                let noisy = |voice: usize| {
                    let chance = chance(sweep as u64, (note * wanted + voice) as u64);
                    values[voice] + if heat > 0.0 { heat * (-chance.ln()).ln() } else { 0.0 }
                };
                of[note] = (0..wanted).min_by(|&a, &b| noisy(a).total_cmp(&noisy(b))).unwrap_or(0);
            }
        }
        let probability = (0..many)
            .map(|note| {
                self.weigh(note, &of, &costs, &registers, &neighbours[note], &mut values);
                let own = values[of[note]];
                1.0 / values.iter().map(|value| ((own - value) / SURE).exp()).sum::<f64>()
            })
            .collect();
        Found { of, probability }
    }

    /// The root of the length of every note, 1 on the average.
    fn weights(&self) -> Vec<f64> {
        let roots: Vec<f64> = self.spans.iter().map(|span| ((span.1 - span.0) as f64).sqrt()).collect();
        let mean = roots.iter().sum::<f64>() / roots.len().max(1) as f64;
        roots.into_iter().map(|root| root / mean).collect()
    }

    /// Voices of equal weight, from low to high.
    fn by_pitch(&self, weights: &[f64], wanted: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..weights.len()).collect();
        order.sort_by(|&a, &b| self.pitches[a].total_cmp(&self.pitches[b]).then(a.cmp(&b)));
        let whole: f64 = weights.iter().sum();
        let (mut of, mut passed) = (vec![0; weights.len()], 0.0);
        for note in order {
            passed += weights[note];
            of[note] = ((passed / whole * wanted as f64) as usize).min(wanted - 1);
        }
        of
    }

    fn neighbours(&self, weights: &[f64]) -> Vec<Vec<Neighbour>> {
        let mut order: Vec<usize> = (0..weights.len()).collect();
        order.sort_by_key(|&note| (self.spans[note].0, note));
        let rest = (LONGEST_REST / self.seconds) as usize;
        let mut neighbours: Vec<Vec<Neighbour>> = weights.iter().map(|_| Vec::new()).collect();
        for (place, &one) in order.iter().enumerate() {
            let (first, end) = self.spans[one];
            for &other in order[place + 1..].iter().take_while(|&&other| self.spans[other].0 <= end + rest) {
                let (begins, ends) = self.spans[other];
                let weight = weights[one].min(weights[other]);
                let apart = (self.pitches[one] - self.pitches[other]).abs();
                let overlap = end.min(ends) as f64 - begins as f64;
                let shorter = (end - first).min(ends - begins) as f64;
                let (mut cost, mut crossing) = (0.0, 0.0);
                if overlap > 0.0 && apart < UNISON {
                    cost = -SAME_PITCH * weight * overlap / shorter;
                } else if overlap > 0.0 {
                    let legato = overlap <= LEGATO && shorter > 2.0 * LEGATO;
                    let share = weight * overlap / shorter;
                    cost =
                        if self.polyphonic { 0.0 } else { TOGETHER * share * if legato { 0.2 } else { 1.0 } };
                    let higher = if self.pitches[one] > self.pitches[other] { -1.0 } else { 1.0 };
                    crossing = if legato { 0.0 } else { higher * CROSSING * share };
                } else {
                    let rest = -overlap * self.seconds;
                    cost -= FOLLOWING * weight * (-apart / STEP - rest / REST).exp();
                }
                neighbours[one].push(Neighbour { note: other, cost, crossing });
                neighbours[other].push(Neighbour { note: one, cost, crossing: -crossing });
            }
        }
        neighbours
    }

    /// What every note costs in every voice by itself, and the mean pitch of every voice.
    fn learn(&self, of: &[usize], weights: &[f64], timbre: bool, registers: &mut [f64], costs: &mut [f64]) {
        let voices = registers.len();
        let whole = weights.iter().sum::<f64>() / voices as f64;
        for voice in 0..voices {
            let own = (0..of.len()).filter(|&note| of[note] == voice);
            let mean = |value: &dyn Fn(usize) -> f64| {
                let (sum, weight) = own.clone().fold((0.0, 1e-9), |(sum, weight), note| {
                    (sum + weights[note] * value(note), weight + weights[note])
                });
                sum / weight
            };
            let middle = mean(&|note| self.pitches[note]);
            let spread = (mean(&|note| (self.pitches[note] - middle).powi(2)) + NARROWEST).sqrt();
            registers[voice] = middle;
            let learned = timbre.then(|| {
                Timbre::learned(own.clone().map(|note| (&self.timbres[note], weights[note])), whole)
            });
            for note in 0..of.len() {
                let off = (self.pitches[note] - middle) / spread;
                let mut cost = REGISTER * (0.5 * off * off + spread.ln());
                if let Some(learned) = &learned {
                    cost += TIMBRE * learned.unlike(&self.timbres[note]);
                }
                costs[note * voices + voice] = weights[note] * cost;
            }
        }
    }

    /// What a note costs in each voice, the others as they are.
    fn weigh(
        &self,
        note: usize,
        of: &[usize],
        costs: &[f64],
        registers: &[f64],
        neighbours: &[Neighbour],
        values: &mut [f64],
    ) {
        let voices = values.len();
        values.copy_from_slice(&costs[note * voices..][..voices]);
        for neighbour in neighbours {
            let theirs = of[neighbour.note];
            values[theirs] += neighbour.cost;
            if neighbour.crossing != 0.0 {
                for (voice, value) in values.iter_mut().enumerate() {
                    // The lower note in the voice with the higher register.
                    if voice != theirs && neighbour.crossing * (registers[voice] - registers[theirs]) > 0.0 {
                        *value += neighbour.crossing.abs();
                    }
                }
            }
        }
    }
}

/// All notes in an order that looks random.
fn order(many: usize, sweep: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..many).collect();
    let key = |note: usize| mixed(mixed(sweep as u64 ^ 0x5EED) ^ note as u64);
    order.sort_by_key(|&note| (key(note), note));
    order
}

/// A number above 0 and below 1 that looks random, the same for the same key.
fn chance(sweep: u64, site: u64) -> f64 {
    ((mixed(mixed(sweep) ^ site) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// splitmix64.
fn mixed(key: u64) -> u64 {
    let mut z = key.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}
