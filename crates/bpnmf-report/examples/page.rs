//! The page of a small made-up recording: `cargo run -p bpnmf-report --example page -- OUT.html [WINDOW HOP]`.
//!
//! Three instruments with four harmonics each play by turns, and for a while nobody does. The model is the one they were
//! made of, so that the page can be judged without a fit.

use bpnmf_report::{Data, Model, PlayedNote, Report, SoundPage, Stem, Step, Trace, html};
use std::f64::consts::TAU;

const RATE: u32 = 16_000;
const SAMPLES: usize = 40_123;
const PITCHES: [f64; 3] = [220.0, 330.0, 523.25];
const ON: [&[(f64, f64)]; 3] = [&[(0.0, 0.9)], &[(0.5, 1.3), (1.7, 2.1)], &[(1.0, 2.1)]];
const HARMONICS: [f64; 4] = [1.0, 0.5, 0.3, 0.15];

/// How loud instrument k is.
fn loudness(k: usize, seconds: f64) -> f64 {
    let notes = ON[k].iter().filter(|(from, to)| (*from..*to).contains(&seconds));
    notes.map(|(from, _)| 0.25 * (-1.5 * (seconds - from)).exp()).sum()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, otherwise| arguments.get(i).map_or(otherwise, |text| text.parse().unwrap());
    let (window, hop): (usize, usize) = (number(1, 512), number(2, 256));
    let (parts, features, observations) = (PITCHES.len(), window / 2 + 1, 1 + SAMPLES / hop);
    let seconds = |t: usize| (t * hop) as f64 / f64::from(RATE);
    let bump = |f: usize, hertz: f64| {
        let distance = f as f64 - hertz * window as f64 / f64::from(RATE);
        (-0.7 * distance * distance).exp()
    };
    let spectrum = |f: usize, k: usize| {
        let of = |(i, loud): (usize, &f64)| loud * bump(f, PITCHES[k] * (i + 1) as f64);
        HARMONICS.iter().enumerate().map(of).sum::<f64>() as f32
    };
    let dictionary: Vec<f32> = (0..features).flat_map(|f| (0..parts).map(move |k| spectrum(f, k))).collect();
    let activations: Vec<f32> = (0..parts)
        .flat_map(|k| (0..observations).map(move |t| (1000.0 * loudness(k, seconds(t))) as f32))
        .collect();
    let inclusion: Vec<f32> = activations.iter().map(|&h| f32::from(u8::from(h > 0.0))).collect();
    let rate = |f: usize, t: usize| -> f32 {
        (0..parts).map(|k| dictionary[f * parts + k] * activations[k * observations + t]).sum()
    };
    let rough = |f: usize, t: usize| 0.8 + 0.4 * ((f * 7919 + t * 104_729) % 101) as f32 / 101.0;
    let data: Vec<f32> = (0..observations)
        .flat_map(|t| (0..features).map(move |f| (f, t)))
        .map(|(f, t)| rate(f, t) * rough(f, t) + 0.02 * rough(t, f))
        .collect();
    let mixture: Vec<f32> = (0..SAMPLES)
        .map(|i| {
            let at = i as f64 / f64::from(RATE);
            let noise = 1e-3 * (((i * 48_271) % 65_537) as f64 / 65_537.0 - 0.5);
            let tone = |k: usize| {
                let of = |(i, loud): (usize, &f64)| loud * (TAU * PITCHES[k] * (i + 1) as f64 * at).sin();
                loudness(k, at) * HARMONICS.iter().enumerate().map(of).sum::<f64>()
            };
            ((0..parts).map(tone).sum::<f64>() + noise) as f32
        })
        .collect();
    let usage: Vec<f64> =
        inclusion.chunks(observations).map(|row| row.iter().map(|&s| f64::from(s)).sum()).collect();
    let pi: Vec<f64> = usage.iter().map(|n| n / observations as f64).collect();
    let size = |k: usize| activations[k * observations..][..observations].iter().sum::<f32>();
    let total: f32 = (0..parts).map(size).sum();
    let share: Vec<f64> = (0..parts).map(|k| f64::from(size(k) / total)).collect();
    let step = |i: usize| Step {
        iteration: i,
        objective: -1e5 * (1.0 + 1.0 / i as f64),
        components: if i < 9 { 4 } else { 3 },
    };
    let stem = |name: &str, weights: [f32; 3]| Stem { name: name.to_owned(), weights: weights.to_vec() };
    let note = |onset: f64, offset: f64, midi: f64, part: usize, stem| PlayedNote {
        onset,
        offset,
        midi,
        name: format!("{midi:.0}"),
        part,
        sure: 0.8,
        stem,
    };
    let report = Report {
        title: "made-up <recording> & 'friends'".to_owned(),
        source: format!("{features} frequencies x {observations} moments, {RATE} Hz"),
        n_components: parts,
        interval: Some((3, 4)),
        pmf: vec![(2, 0.04), (3, 0.8), (4, 0.16)],
        forced: false,
        path: vec![(0.01, 2), (0.03, 3), (0.1, 3), (0.3, 3), (1.0, 3)],
        traces: vec![Trace { steps: (1..=60).map(step).collect(), burn_in: 20, shown: true }],
        data: Data::Dense(&data),
        model: Model {
            features,
            observations,
            dictionary: &dictionary,
            activations: &activations,
            inclusion: &inclusion,
            pi: &pi,
            share: &share,
            usage: &usage,
            evidence: Some(&[2000.0, 812.0, 99.0]),
        },
        recurrence: &[],
        intervals: None,
        noise: bpnmf::Noise::Poisson,
        variance_factor: None,
        feature_names: None,
        observation_names: None,
        sound: Some(SoundPage {
            rate: RATE,
            window,
            hop,
            mixture: &mixture,
            stems: vec![stem("low <b>", [1.0, 0.75, 0.0]), stem("high", [0.0, 0.25, 1.0])],
            pieces: None,
            residual: None,
            notes: vec![
                note(0.1, 0.6, 60.0, 0, Some((0, 0.97))),
                note(0.4, 1.1, 64.0, 1, Some((0, 0.6))),
                note(0.9, 1.4, 76.0, 2, Some((1, 0.9))),
            ],
        }),
        matches: Vec::new(),
        warnings: vec!["this is made up".to_owned()],
        notes: vec!["the parts are those it was made of".to_owned()],
        facts: vec![("method".to_owned(), "none".to_owned())],
    };
    std::fs::write(&arguments[0], html(&report)).unwrap();
}
