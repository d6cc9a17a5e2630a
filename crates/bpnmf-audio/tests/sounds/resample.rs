//! Other rates: lengths, time, and what is left of tones. tests/audio_peers.py holds it to scipy.

use bpnmf_audio::{Sound, resample};

use super::noise;

const PAIRS: [(u32, u32); 7] = [
    (44_100, 22_050),
    (48_000, 22_050),
    (22_050, 44_100),
    (8_000, 44_100),
    (192_000, 48_000),
    (44_100, 44_101),
    (22_050, 7_001),
];

fn tone(rate: u32, pitch: f64, len: usize) -> Sound {
    let turn = std::f64::consts::TAU * pitch / f64::from(rate);
    Sound { samples: (0..len).map(|i| (turn * i as f64).sin() as f32).collect(), rate }
}

#[test]
fn the_length_is_rounded_up_for_any_length() {
    for (from, to) in PAIRS {
        for len in [1, 2, 3, 147, 1000, 4096, 20_000] {
            let resampled = resample(&Sound { samples: noise(len), rate: from }, to).unwrap();
            let expected = (len as u64 * u64::from(to)).div_ceil(u64::from(from));
            assert_eq!(
                (resampled.samples.len() as u64, resampled.rate),
                (expected, to),
                "{len}: {from} to {to}"
            );
            assert!(resampled.samples.iter().all(|sample| sample.abs() < 3.0));
        }
    }
}

#[test]
fn a_tone_keeps_its_height_its_strength_and_its_time() {
    for (from, to) in PAIRS {
        let pitch = 0.4 * f64::from(from.min(to));
        let resampled = resample(&tone(from, pitch, 2 * from as usize), to).unwrap();
        let expected = tone(to, pitch, resampled.samples.len());
        let middle = to as usize / 2..to as usize * 3 / 2;
        for at in middle {
            let error = (resampled.samples[at] - expected.samples[at]).abs();
            assert!(error < 3e-5, "{from} to {to}: off by {error} at {at}");
        }
    }
}

#[test]
fn a_tone_too_high_for_the_new_rate_is_gone() {
    for (from, to) in PAIRS.into_iter().filter(|(from, to)| 2 * to <= *from) {
        let resampled = resample(&tone(from, 0.55 * f64::from(to), 2 * from as usize), to).unwrap();
        let middle = &resampled.samples[to as usize / 2..to as usize * 3 / 2];
        assert!(middle.iter().all(|sample| sample.abs() < 1e-4), "{from} to {to}");
    }
}

#[test]
fn the_same_rate_gives_the_same_sound() {
    let sound = Sound { samples: noise(100), rate: 44_100 };
    assert_eq!(resample(&sound, 44_100).unwrap(), sound);
}

#[test]
fn silence_stays_silent_and_nothing_stays_nothing() {
    let silent = resample(&Sound { samples: vec![0.0; 9000], rate: 44_100 }, 22_050).unwrap();
    assert_eq!(silent.samples, vec![0.0; 4500]);
    assert_eq!(resample(&Sound { samples: vec![], rate: 44_100 }, 22_050).unwrap().samples, []);
}

#[test]
fn rates_that_no_sound_has_are_refused() {
    let sound = Sound { samples: vec![0.0], rate: 44_100 };
    for rate in [0, 1_000_001] {
        let text = resample(&sound, rate).unwrap_err().to_string();
        assert_eq!(text, format!("{rate} samples a second: use a rate from 1 to 1000000"));
    }
}
