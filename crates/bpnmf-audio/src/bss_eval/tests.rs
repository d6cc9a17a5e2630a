//! Closed cases, a plain twin, and what has no score.

use super::{BssEval, Doubt, Scores, Unscorable, bss_eval};
use crate::error::Error;

/// Random samples between -1 and 1.
fn noise(seed: u64, samples: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / 2f64.powi(52) - 1.0
    };
    (0..samples).map(|_| next()).collect()
}

fn mixed(sounds: &[(f64, &[f64])]) -> Vec<f64> {
    (0..sounds[0].1.len()).map(|t| sounds.iter().map(|(weight, sound)| weight * sound[t]).sum()).collect()
}

fn delayed(sound: &[f64], delay: usize) -> Vec<f64> {
    (0..sound.len()).map(|t| if t < delay { 0.0 } else { sound[t - delay] }).collect()
}

/// Fades to 0 well before the end, so that delayed copies lose nothing.
fn with_silent_end(mut sound: Vec<f64>, silent: usize) -> Vec<f64> {
    let start = sound.len() - silent;
    sound[start..].fill(0.0);
    sound
}

fn scores_of(references: &[Vec<f64>], estimates: &[Vec<f64>], options: &BssEval) -> Scores {
    let references: Vec<&[f64]> = references.iter().map(Vec::as_slice).collect();
    let estimates: Vec<&[f64]> = estimates.iter().map(Vec::as_slice).collect();
    bss_eval(&references, &estimates, options).unwrap()
}

fn taps(taps: usize) -> BssEval {
    BssEval { taps, ..Default::default() }
}

fn energy(sound: &[f64]) -> f64 {
    sound.iter().map(|sample| sample * sample).sum()
}

fn less(left: &[f64], right: &[f64]) -> Vec<f64> {
    left.iter().zip(right).map(|(left, right)| left - right).collect()
}

/// The projection of a sound, with `taps` - 1 zeros after it, onto all delayed copies of the sources: Gram-Schmidt,
/// every vector twice.
fn projection(sound: &[f64], sources: &[Vec<f64>], taps: usize) -> Vec<f64> {
    let padded = |sound: &[f64], delay: usize| {
        [&vec![0.0; delay][..], sound, &vec![0.0; taps - 1 - delay][..]].concat()
    };
    let remove = |vector: &mut Vec<f64>, basis: &[Vec<f64>]| {
        for unit in basis.iter().chain(basis) {
            let along: f64 = vector.iter().zip(unit).map(|(a, b)| a * b).sum();
            vector.iter_mut().zip(unit).for_each(|(value, unit)| *value -= along * unit);
        }
    };
    let mut basis: Vec<Vec<f64>> = vec![];
    for source in sources {
        for delay in 0..taps {
            let mut vector = padded(source, delay);
            remove(&mut vector, &basis);
            let length = energy(&vector).sqrt();
            basis.push(vector.iter().map(|value| value / length).collect());
        }
    }
    let whole = padded(sound, 0);
    let mut rest = whole.clone();
    remove(&mut rest, &basis);
    less(&whole, &rest)
}

/// The definition, written down once more: SDR, SIR, SAR of an estimate against source j.
fn plain_ratios(estimate: &[f64], sources: &[Vec<f64>], j: usize, taps: usize) -> [f64; 3] {
    let target = projection(estimate, &sources[j..=j], taps);
    let explained = projection(estimate, sources, taps);
    let whole = [estimate, &vec![0.0; taps - 1]].concat();
    let db = |signal: &[f64], rest: &[f64]| 10.0 * (energy(signal) / energy(rest)).log10();
    [
        db(&target, &less(&whole, &target)),
        db(&target, &less(&explained, &target)),
        db(&explained, &less(&whole, &explained)),
    ]
}

#[test]
fn scores_equal_the_definition_by_dense_projections() {
    for (samples, sources, taps) in [(40, 2, 8), (300, 3, 8), (1000, 2, 33), (700, 4, 1), (5, 2, 2)] {
        let references: Vec<Vec<f64>> = (0..sources as u64).map(|i| noise(10 + i, samples)).collect();
        let estimate = |k: usize| {
            let other = noise(50 + k as u64, samples);
            let late = delayed(&references[(k + 1) % sources], 3);
            mixed(&[(0.8, &references[k]), (0.3, &late), (0.1, &other)])
        };
        let estimates: Vec<Vec<f64>> = (0..sources).map(estimate).collect();
        let options = BssEval { permutation: false, ..self::taps(taps) };
        let scores = scores_of(&references, &estimates, &options);
        for j in 0..sources {
            let plain = plain_ratios(&estimates[j], &references, j, taps);
            let ours = [scores.sdr[j], scores.sir[j], scores.sar[j]].map(Option::unwrap);
            for (ours, plain) in ours.into_iter().zip(plain) {
                assert!((ours - plain).abs() < 1e-9, "{samples} {sources} {taps}: {ours} {plain}");
            }
        }
    }
}

#[test]
fn a_scaled_source_is_perfect() {
    let references = vec![noise(1, 3000), noise(2, 3000)];
    for factor in [0.3, -2.0, 1e-5] {
        let estimates: Vec<Vec<f64>> =
            references.iter().map(|sound| mixed(&[(factor, sound.as_slice())])).collect();
        let scores = scores_of(&references, &estimates, &taps(64));
        let perfect = vec![Some(f64::INFINITY); 2];
        assert_eq!((&scores.sdr, &scores.sir, &scores.sar), (&perfect, &perfect, &perfect));
        assert_eq!((scores.permutation, scores.doubts), (vec![0, 1], vec![]));
    }
}

#[test]
fn orthogonal_noise_gives_its_own_level() {
    let (source, taps) = (with_silent_end(noise(3, 2000), 40), 16);
    let raw = with_silent_end(noise(4, 2000), 40);
    let rest = less(&raw, &projection(&raw, std::slice::from_ref(&source), taps)[..2000]);
    for decibel in [-20.0, 0.0, 13.0, 60.0, 120.0] {
        let weight = (energy(&source) / energy(&rest) / 10f64.powf(decibel / 10.0)).sqrt();
        let estimate = mixed(&[(1.0, &source), (weight, &rest)]);
        let scores = scores_of(std::slice::from_ref(&source), &[estimate], &self::taps(taps));
        for score in [scores.sdr[0], scores.sar[0]] {
            assert!((score.unwrap() - decibel).abs() < 1e-6, "{decibel}: {score:?}");
        }
        assert_eq!(scores.sir, [Some(f64::INFINITY)], "there is nothing to interfere");
    }
}

#[test]
fn only_delays_within_the_filter_are_forgiven() {
    let source = with_silent_end(noise(5, 6000), 1000);
    let sdr = |delay| scores_of(std::slice::from_ref(&source), &[delayed(&source, delay)], &taps(512)).sdr[0];
    for delay in [0, 1, 511] {
        assert_eq!(sdr(delay), Some(f64::INFINITY), "{delay}");
    }
    for delay in [512, 900] {
        assert!(sdr(delay).unwrap() < 0.0, "{delay}: {:?}", sdr(delay));
    }
}

#[test]
fn the_order_of_the_estimates_is_recovered_unless_it_is_given() {
    let references: Vec<Vec<f64>> = (0..4).map(|i| noise(20 + i, 800)).collect();
    let order = [2, 0, 3, 1];
    let estimate = |source: usize| {
        mixed(&[
            (1.0, references[source].as_slice()),
            (0.2, &references[(source + 1) % 4]),
            (0.1, &noise(90, 800)),
        ])
    };
    let estimates = order.map(estimate).to_vec();
    let found = scores_of(&references, &estimates, &taps(4));
    assert_eq!(found.permutation, [1, 3, 0, 2], "estimate permutation[j] is the one of reference j");
    assert!(found.sir.iter().all(|sir| sir.unwrap() > 12.0), "{found:?}");
    let given = scores_of(&references, &estimates, &BssEval { permutation: false, ..taps(4) });
    assert_eq!(given.permutation, [0, 1, 2, 3]);
    assert!(given.sir.iter().all(|sir| sir.unwrap() < 0.0), "{given:?}");
}

#[test]
fn scores_are_the_same_bits_for_any_number_of_threads() {
    let references: Vec<Vec<f64>> = (0..3).map(|i| noise(30 + i, 40_000)).collect();
    let estimates: Vec<Vec<f64>> =
        (0..3).map(|k| mixed(&[(1.0, references[k].as_slice()), (0.3, &noise(40, 40_000))])).collect();
    let with = |threads| scores_of(&references, &estimates, &BssEval { threads, ..taps(200) });
    let one = with(1);
    for threads in [2, 3, 8] {
        assert_eq!(with(threads), one);
    }
}

#[test]
fn the_level_of_a_sound_does_not_matter() {
    let references = vec![noise(6, 500), noise(7, 500)];
    let estimates =
        vec![mixed(&[(1.0, &references[0]), (0.4, &references[1]), (0.2, &noise(8, 500))]), noise(9, 500)];
    let plain = scores_of(&references, &estimates, &taps(8));
    for level in [1e-300, 1e-160, 1e160, 1e300] {
        let loud = |sound: &Vec<f64>| mixed(&[(level, sound.as_slice())]);
        let references = vec![loud(&references[0]), references[1].clone()];
        let estimates = vec![estimates[0].clone(), loud(&estimates[1])];
        let scores = scores_of(&references, &estimates, &taps(8));
        for (score, plain) in scores.sdr.iter().chain(&scores.sir).zip(plain.sdr.iter().chain(&plain.sir)) {
            assert!((score.unwrap() - plain.unwrap()).abs() < 1e-9, "{level}: {score:?} {plain:?}");
        }
    }
}

#[test]
fn the_faintest_sounds_there_are_have_scores() {
    let faint = |seed: u64| mixed(&[(1e-320, noise(seed, 500).as_slice())]);
    let scores = scores_of(&[faint(6), noise(7, 500)], &[faint(6), faint(8)], &taps(8));
    assert_eq!(scores.sdr[0], Some(f64::INFINITY));
    assert!(scores.sdr[1].unwrap() < 0.0);
}

#[test]
fn a_silent_sound_has_no_scores_and_the_others_keep_theirs() {
    let silence = vec![0.0; 600];
    let references = vec![noise(11, 600), noise(12, 600)];
    let estimates: Vec<Vec<f64>> = vec![
        mixed(&[(1.0, &references[0]), (0.1, &references[1]), (0.1, &noise(13, 600))]),
        mixed(&[(0.2, &references[0]), (1.0, &references[1]), (0.1, &noise(14, 600))]),
    ];
    let whole = scores_of(&references, &estimates, &taps(8));
    let with = |at: usize, sounds: &[Vec<f64>], other: Vec<f64>| {
        let mut sounds = sounds.to_vec();
        sounds.insert(at, other);
        sounds
    };
    let both =
        scores_of(&with(1, &references, silence.clone()), &with(0, &estimates, silence.clone()), &taps(8));
    assert_eq!(both.permutation, [1, 0, 2], "silence goes to silence");
    assert_eq!(both.sdr, [whole.sdr[0], None, whole.sdr[1]]);
    assert_eq!(both.sir, [whole.sir[0], None, whole.sir[1]]);
    assert_eq!(both.sar, [whole.sar[0], None, whole.sar[1]]);
    assert_eq!(both.doubts, [Doubt::SilentReference(1), Doubt::SilentEstimate(0)]);
    let reference =
        scores_of(&with(0, &references, silence.clone()), &with(2, &estimates, noise(15, 600)), &taps(8));
    assert_eq!((reference.permutation[0], reference.sdr[0], reference.sar[0]), (2, None, None));
    assert_eq!(reference.sdr[1..], whole.sdr[..]);
    let nothing = scores_of(std::slice::from_ref(&silence), std::slice::from_ref(&silence), &taps(8));
    assert_eq!((nothing.sdr, nothing.sir, nothing.sar), (vec![None], vec![None], vec![None]));
}

#[test]
fn an_estimate_without_any_reference_in_it_is_all_artifacts() {
    let early = |sound: Vec<f64>| with_silent_end(sound, 5100);
    let references = vec![early(noise(16, 10_000)), early(noise(17, 10_000))];
    let late: Vec<f64> = references[0].iter().rev().copied().collect();
    let scores = scores_of(&references, &[references[1].clone(), late], &taps(8));
    assert_eq!(scores.permutation, [1, 0]);
    assert_eq!(
        (scores.sdr[0], scores.sir[0], scores.sar[0]),
        (Some(f64::NEG_INFINITY), None, Some(f64::NEG_INFINITY))
    );
    assert_eq!((scores.sdr[1], scores.doubts), (Some(f64::INFINITY), vec![Doubt::Unrelated(1)]));
}

#[test]
fn references_that_are_copies_of_each_other_are_scored_with_a_doubt() {
    let source = with_silent_end(noise(18, 4000), 100);
    let references = vec![source.clone(), delayed(&source, 3), noise(19, 4000)];
    let estimate = |k: usize| mixed(&[(1.0, references[k].as_slice()), (0.1, &noise(60 + k as u64, 4000))]);
    let estimates: Vec<Vec<f64>> = (0..3).map(estimate).collect();
    let scores = scores_of(&references, &estimates, &BssEval { permutation: false, ..taps(32) });
    assert_eq!(scores.doubts, [Doubt::Dependent]);
    let two = [references[0].clone(), references[2].clone()];
    let alone = scores_of(&two, &[estimates[0].clone(), estimates[2].clone()], &taps(32));
    for (with_copy, without) in [(scores.sdr[0], alone.sdr[0]), (scores.sdr[2], alone.sdr[1])] {
        assert!((with_copy.unwrap() - without.unwrap()).abs() < 1e-6, "{with_copy:?} {without:?}");
    }
}

#[test]
fn a_smooth_reference_whose_band_is_half_empty_is_scored() {
    // 300 sinusoids below a twentieth of the rate: 512 delayed copies are far from independent in double precision.
    let smooth = |seed: u64| -> Vec<f64> {
        let phases = noise(seed, 300);
        let tone = |t: usize, k: usize| (0.3 * (k as f64 + 1.0) / 300.0 * t as f64 + 3.0 * phases[k]).sin();
        let window = |t: usize| (std::f64::consts::PI * t as f64 / 9000.0).sin().powi(4);
        (0..9000).map(|t| window(t) * (0..300).map(|k| tone(t, k)).sum::<f64>()).collect()
    };
    let references = vec![smooth(70), smooth(71)];
    let estimates = vec![
        mixed(&[(1.0, &references[0]), (0.1, &references[1])]),
        mixed(&[(0.1, &references[0]), (1.0, &references[1])]),
    ];
    let scores = scores_of(&references, &estimates, &taps(512));
    for j in 0..2 {
        assert!(scores.sar[j].unwrap() > 100.0, "{scores:?}");
        assert!((10.0..60.0).contains(&scores.sir[j].unwrap()), "{scores:?}");
        assert!((scores.sir[j].unwrap() - scores.sdr[j].unwrap()).abs() < 1e-6, "{scores:?}");
    }
    assert_eq!(scores.doubts, [Doubt::Dependent]);
}

#[test]
fn what_cannot_be_scored_is_refused_with_its_numbers() {
    let (two, three) = ([0.5, 0.1], [0.5, 0.1, 0.2]);
    let told = |references: &[&[f64]], estimates: &[&[f64]], taps: usize| match bss_eval(
        references,
        estimates,
        &self::taps(taps),
    ) {
        Err(Error::Unscorable(reason)) => reason.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(told(&[], &[], 4), Unscorable::Nothing.to_string());
    assert_eq!(
        told(&[&two], &[&two, &two], 4),
        "there are 1 references and 2 estimates: give one estimate for each reference"
    );
    assert_eq!(
        told(&[&two, &two], &[&two, &three], 4),
        "estimate 2 has 3 samples and reference 1 has 2: all sounds must have the same length"
    );
    assert_eq!(told(&[&[]], &[&[]], 4), "the sounds have no samples: give at least one");
    assert_eq!(told(&[&two], &[&[0.1, f64::NAN]], 4), "estimate 1: sample 1 is NaN: samples must be finite");
    assert_eq!(told(&[&two], &[&two], 0), "the distortion filters have 0 taps: use at least 1, 512 is usual");
    assert!(told(&[&two, &two], &[&two, &two], 10_000).contains("make 20000 unknowns, above the 16384"));
    assert!(told(&[&two, &two], &[&two, &two], usize::MAX).contains("unknowns"));
}
