//! Parts, their polish, the filter and the groups.

use bpnmf_audio::{Parts, Stft, Wiener, group};

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

#[test]
fn there_are_as_many_groups_as_asked_for_none_is_empty_and_every_part_is_in_one() {
    let parts = parts(129, 80, 9);
    for wanted in 1..12 {
        let groups = group(&parts, wanted);
        assert_eq!(groups.len(), wanted.min(9));
        assert!(groups.iter().all(|group| !group.is_empty() && group.is_sorted()));
        let mut all = groups.concat();
        all.sort_unstable();
        assert_eq!(all, (0..9).collect::<Vec<_>>());
    }
}

#[test]
fn parts_that_sound_alike_are_one_group() {
    // Two notes of a dull instrument and two of a bright one.
    let (bins, frames) = (257, 200);
    let bump = |f: usize, pitch: usize, tilt: f32| {
        let nearest = ((f + pitch / 2) / pitch).max(1) * pitch;
        (-((f as f32 - nearest as f32) / 1.5).powi(2)).exp() * (-tilt * f as f32).exp()
    };
    let kinds = [(12, 0.05), (30, 0.005), (15, 0.05), (37, 0.005)];
    let dictionary: Vec<f32> =
        (0..bins).flat_map(|f| kinds.map(|(pitch, tilt)| bump(f, pitch, tilt))).collect();
    let activations: Vec<f32> = (0..4 * frames)
        .map(|i| {
            let (k, t) = (i / frames, i % frames);
            let half = if k % 2 == 0 { t < 100 } else { t >= 100 };
            f32::from(u8::from(half && (t / 10) % 2 == k / 2)) * 5.0
        })
        .collect();
    let inclusion: Vec<f32> = activations.iter().map(|&h| h.min(1.0)).collect();
    let parts = Parts::new(&dictionary, &activations, &inclusion, 4);
    let mut groups = group(&parts, 2);
    groups.sort();
    assert_eq!(groups, [[0, 2], [1, 3]]);
}
