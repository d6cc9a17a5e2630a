//! Parts, their polish, the filter and the groups.

use bpnmf_audio::{Framing, Grouping, Levels, Parts, Recording, Sound, Stft, Wiener};

use super::noise;

/// Magnitudes of noise, bins x frames.
fn magnitudes(bins: usize, frames: usize) -> Vec<f32> {
    noise(bins * frames).iter().map(|x| 20.0 * x * x).collect()
}

/// `components` parts of noise, two thirds of which are off at a time, and frame 5, in which all are.
fn parts(bins: usize, frames: usize, components: usize) -> Parts {
    let values = noise(components * (bins + frames));
    let (w, h) = values.split_at(components * bins);
    let dictionary: Vec<f32> = w.iter().map(|x| x.max(0.0)).collect();
    let on = |i: usize| (i / frames + i % frames).is_multiple_of(3) && i % frames != 5;
    let activations: Vec<f32> =
        h.iter().enumerate().map(|(i, x)| if on(i) { 9.0 * x.abs() } else { 2.0 }).collect();
    let inclusion: Vec<f32> = (0..h.len()).map(|i| if on(i) { 1.0 } else { 0.04 }).collect();
    Parts::new(&dictionary, &activations, &inclusion, components)
}

#[test]
fn every_update_lowers_the_divergence_and_what_is_off_stays_off() {
    let (bins, frames, components) = (65, 50, 9);
    let x = magnitudes(bins, frames);
    let mut parts = parts(bins, frames, components);
    let off: Vec<bool> = parts.activations().iter().map(|&h| h == 0.0).collect();
    assert!(off.iter().filter(|&&off| off).count() > 300);
    let mut before = parts.divergence(&x);
    let first = before;
    for _ in 0..30 {
        parts.refine(&x, 1);
        let after = parts.divergence(&x);
        assert!(after <= before * (1.0 + 1e-6), "{after} > {before}");
        before = after;
    }
    assert!(before < 0.8 * first, "{first} {before}");
    assert!(parts.activations().iter().zip(&off).all(|(&h, &off)| !off || h == 0.0));
    assert!(
        parts.activations().iter().chain(&parts.dictionary()).all(|value| value.is_finite() && *value >= 0.0)
    );
}

#[test]
fn thirty_updates_at_once_are_thirty_updates() {
    let x = magnitudes(33, 40);
    let (mut one, mut other) = (parts(33, 40, 7), parts(33, 40, 7));
    one.refine(&x, 30);
    (0..30).for_each(|_| other.refine(&x, 1));
    assert_eq!(one, other);
}

#[test]
fn a_polish_equals_the_updates_written_out_in_double_precision() {
    let (bins, frames, components) = (20, 35, 5);
    let x = magnitudes(bins, frames);
    let mut parts = parts(bins, frames, components);
    let double = |values: Vec<f32>| values.into_iter().map(f64::from).collect::<Vec<f64>>();
    let (mut w, mut h) = (double(parts.dictionary()), double(parts.activations()));
    parts.refine(&x, 3);
    for _ in 0..3 {
        let ratio = |w: &[f64], h: &[f64], f: usize, t: usize| {
            let y: f64 = (0..components).map(|k| w[f * components + k] * h[k * frames + t]).sum();
            if y > 0.0 { f64::from(x[t * bins + f]) / y } else { 0.0 }
        };
        let old = h.clone();
        for k in 0..components {
            let size: f64 = (0..bins).map(|f| w[f * components + k]).sum();
            for t in 0..frames {
                let sum: f64 = (0..bins).map(|f| w[f * components + k] * ratio(&w, &old, f, t)).sum();
                h[k * frames + t] *= sum / size;
            }
        }
        let old = w.clone();
        for k in 0..components {
            let size: f64 = (0..frames).map(|t| h[k * frames + t]).sum();
            for f in 0..bins {
                let sum: f64 = (0..frames).map(|t| h[k * frames + t] * ratio(&old, &h, f, t)).sum();
                w[f * components + k] *= sum / size;
            }
        }
    }
    for (found, expected) in [(parts.dictionary(), w), (parts.activations(), h)] {
        for (found, expected) in found.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-5 * expected.max(1e-3), "{found} {expected}");
        }
    }
}

/// The gains of every frame, added up over outputs `from..to`, differ from 1 by at most so much.
fn worst_sum(wiener: &Wiener<'_>, bins: usize, frames: usize, from: usize, to: usize) -> f32 {
    let mut worst = 0.0f32;
    for t in 0..frames {
        let mut gains = vec![f32::NAN; wiener.outputs() * bins];
        wiener.gains(t, &mut gains);
        assert!(gains.iter().all(|gain| (0.0..=1.000_001).contains(gain)));
        for f in 0..bins {
            let sum: f32 = (from..to).map(|output| gains[output * bins + f]).sum();
            worst = worst.max((sum - 1.0).abs());
        }
    }
    worst
}

#[test]
fn the_gains_of_parts_and_those_of_stems_add_up_to_one() {
    let (bins, frames) = (33, 40);
    let x = magnitudes(bins, frames);
    let mut parts = parts(bins, frames, 7);
    parts.refine(&x, 30);
    let stems = [vec![0, 6], vec![], vec![1, 2, 3, 4, 5]];
    let wiener = Wiener::new(&parts, &stems);
    assert_eq!(wiener.outputs(), 10);
    assert!(worst_sum(&wiener, bins, frames, 0, 7) < 1e-6);
    assert!(worst_sum(&wiener, bins, frames, 7, 10) < 1e-6);
    let wiener = wiener.with_residual(&x);
    assert_eq!(wiener.outputs(), 11);
    assert!(worst_sum(&wiener, bins, frames, 7, 11) < 1e-6);
    // Frame 5 has no part: everything in it is residual.
    let mut gains = vec![0.0; 11 * bins];
    wiener.gains(5, &mut gains);
    assert_eq!(gains[10 * bins..].iter().sum::<f32>(), bins as f32);
}

#[test]
fn products_too_small_for_single_precision_still_have_their_shares() {
    let parts = Parts::new(&[1e-30, 3e-30], &[1e-30, 1e-30], &[1.0, 1.0], 2);
    let mut gains = vec![0.0; 3];
    Wiener::new(&parts, &[vec![0, 1]]).gains(0, &mut gains);
    assert!((gains[0] - 0.25).abs() < 1e-6 && (gains[1] - 0.75).abs() < 1e-6 && gains[2] == 1.0, "{gains:?}");
}

#[test]
fn any_number_of_threads_polishes_to_the_same_bits() {
    let x = magnitudes(65, 300);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut parts = parts(65, 300, 9);
            parts.refine(&x, 10);
            parts
        })
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(7));
}

#[test]
fn stems_of_a_sound_add_up_to_it() {
    let (stft, sound) = (Stft::new(128, 64).unwrap(), noise(4321));
    let x = stft.magnitudes(&sound);
    let (bins, frames) = (stft.bins(), stft.frames(sound.len()));
    let mut parts = parts(bins, frames, 6);
    parts.refine(&x, 5);
    for residual in [false, true] {
        let mut wiener = Wiener::new(&parts, &[vec![0, 1, 2], vec![3, 4, 5]]);
        if residual {
            wiener = wiener.with_residual(&x);
        }
        let (mut sum, mut lengths) = (vec![0.0f32; sound.len()], vec![0; wiener.outputs()]);
        let gains = |t: usize, gains: &mut [f32]| wiener.gains(t, gains);
        stft.filter(&sound, wiener.outputs(), gains, |output, samples| {
            let place = lengths[output]..lengths[output] + samples.len();
            lengths[output] = place.end;
            if output >= 6 {
                sum[place].iter_mut().zip(samples).for_each(|(sum, sample)| *sum += sample);
            }
            Ok::<(), ()>(())
        })
        .unwrap();
        let worst = sum.iter().zip(&sound).fold(0.0f32, |worst, (a, b)| worst.max((a - b).abs()));
        assert!(worst < 2e-6, "{worst}");
    }
}

/// Notes of two instruments, one dull and low, one bright and high, as loud as each other and each playing by itself: the recording, and which
/// instrument each of the four parts is of.
fn duet() -> (Recording, Parts, Vec<f32>) {
    let (rate, frames) = (8000u32, 400);
    let notes = [(45.0, 0.5, 0.4), (69.0, 0.9, 0.1), (50.0, 0.5, 0.4), (74.0, 0.9, 0.1)];
    let on =
        |k: usize, t: usize| if k.is_multiple_of(2) { (t / 20) % 2 == k / 2 } else { (t / 14) % 2 == k / 2 };
    let stft = Framing { window: Some(512), hop: None }.of(rate, 0).unwrap();
    let tone = |k: usize, at: f32| -> f32 {
        let (midi, decay, loudness): (f32, f32, f32) = notes[k];
        let hertz = 440.0 * ((midi - 69.0) / 12.0).exp2();
        (1..8)
            .map(|n| n as f32)
            .filter(|n| n * hertz < 3900.0)
            .map(|n| loudness * decay.powf(n) * (core::f32::consts::TAU * n * hertz * at).sin())
            .sum()
    };
    let samples: Vec<f32> = (0..stft.hop() * frames - 1)
        .map(|i| {
            let sounding = (0..4).filter(|&k| on(k, i / stft.hop()));
            sounding.map(|k| tone(k, i as f32 / rate as f32)).sum()
        })
        .collect();
    let spectrum = |k: usize| {
        let sound: Vec<f32> = (0..4096).map(|i| tone(k, i as f32 / rate as f32)).collect();
        stft.magnitudes(&sound)[4 * stft.bins()..5 * stft.bins()].to_vec()
    };
    let spectra: Vec<Vec<f32>> = (0..4).map(spectrum).collect();
    let dictionary: Vec<f32> = (0..stft.bins()).flat_map(|f| spectra.iter().map(move |w| w[f])).collect();
    let inclusion: Vec<f32> =
        (0..4 * frames).map(|i| f32::from(u8::from(on(i / frames, i % frames)))).collect();
    let parts = Parts::new(&dictionary, &inclusion, &inclusion, 4);
    let (recording, _) = Recording::new(Sound { samples, rate }, stft, Levels::Typical).unwrap();
    (recording, parts, inclusion)
}

#[test]
fn notes_of_two_instruments_that_play_by_themselves_are_two_stems() {
    let (recording, parts, inclusion) = duet();
    let heard = recording.transcription(&parts, &inclusion);
    let keys: Vec<f64> = heard.pitches.iter().map(|pitch| pitch.midi.round()).collect();
    assert_eq!(keys, [45.0, 69.0, 50.0, 74.0]);
    assert!((heard.a4 - 440.0).abs() < 6.0, "{}", heard.a4);
    for polyphonic in [false, true] {
        let two = Grouping::Voices { wanted: 2, polyphonic };
        let mut stems = recording.stems(&parts, &heard, &[], &two).members;
        stems.sort();
        assert_eq!(stems, [[0, 2], [1, 3]], "{polyphonic}");
    }
}

#[test]
fn stems_of_events_add_up_to_the_recording_however_many_were_asked_for() {
    let (recording, parts, inclusion) = duet();
    let heard = recording.transcription(&parts, &inclusion);
    for wanted in [1, 2, 3, 7, 500] {
        let stems = recording.stems(&parts, &heard, &[], &Grouping::Voices { wanted, polyphonic: false });
        assert!((1..=wanted.min(heard.events.len())).contains(&stems.members.len()), "{wanted}");
        let events = stems.events.clone().unwrap();
        assert_eq!(events.len(), heard.events.len());
        let sure = 1.0 / wanted as f64 - 1e-9..=1.0 + 1e-9;
        assert!(events.iter().all(|(stem, p)| *stem < stems.members.len() && sure.contains(p)), "{wanted}");
        let mut sum = vec![0.0f32; recording.sound().samples.len()];
        for sound in recording.sounds(&parts, &stems) {
            sum.iter_mut().zip(sound).for_each(|(sum, sample)| *sum += sample);
        }
        let off =
            sum.iter().zip(&recording.sound().samples).fold(0.0f32, |off, (a, b)| off.max((a - b).abs()));
        assert!(off < 1e-5, "{wanted}: {off}");
        // The same events told by somebody give the same bits.
        let of: Vec<usize> = events.iter().map(|event| event.0).collect();
        let told = recording.stems(&parts, &heard, &[], &Grouping::Events(&of, stems.members.len()));
        assert_eq!(recording.sounds(&parts, &told), recording.sounds(&parts, &stems));
    }
}
