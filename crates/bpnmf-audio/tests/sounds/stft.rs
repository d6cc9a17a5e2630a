//! Spectra against the definition, and back to the sound.

use bpnmf_audio::Stft;

use super::noise;

/// The sound through frames and back with all gains 1, in several outputs.
fn through(stft: &Stft, sound: &[f32], outputs: usize) -> Vec<Vec<f32>> {
    let mut back = vec![Vec::new(); outputs];
    let all = |_: usize, gains: &mut [f32]| gains.fill(1.0);
    stft.filter(sound, outputs, all, |output, samples| {
        back[output].extend_from_slice(samples);
        Ok::<(), ()>(())
    })
    .unwrap();
    back
}

fn worst(one: &[f32], two: &[f32]) -> f32 {
    assert_eq!(one.len(), two.len());
    one.iter().zip(two).fold(0.0, |worst, (a, b)| worst.max((a - b).abs()))
}

#[test]
fn a_sound_comes_back_to_a_millionth_whatever_its_length() {
    for (window, hop) in [(1024, 512), (1024, 256), (2048, 441), (16, 8), (6, 3), (2, 1), (4096, 1)] {
        let stft = Stft::new(window, hop).unwrap();
        let longest = if hop == 1 { 50 } else { 30_000 };
        for len in [1, 2, 3, 7, 511, 512, 513, 1023, 1024, 1025, 1535, 4095, 22_049, 29_999] {
            let sound = noise(len.min(longest));
            let error = worst(&through(&stft, &sound, 1)[0], &sound);
            assert!(error < 1e-6, "window {window}, hop {hop}, {len} samples: {error}");
        }
    }
}

#[test]
fn silence_stays_exactly_silent() {
    let stft = Stft::new(1024, 512).unwrap();
    let silence = [0.0; 5000];
    assert_eq!(through(&stft, &silence, 2), [silence, silence]);
    assert!(stft.magnitudes(&silence).iter().all(|&magnitude| magnitude == 0.0));
}

#[test]
fn no_samples_give_no_samples() {
    assert_eq!(through(&Stft::new(8, 4).unwrap(), &[], 3), [[], [], []]);
}

#[test]
fn magnitudes_and_frames_equal_the_definition() {
    let (window, hop, sound) = (64, 24, noise(300));
    let stft = Stft::new(window, hop).unwrap();
    assert_eq!((stft.bins(), stft.frames(sound.len())), (33, 13));
    let magnitudes = stft.magnitudes(&sound);
    let mut seen = 0;
    stft.for_each_frame(&sound, |frame, spectrum| {
        assert_eq!((frame, spectrum.len()), (seen, 33));
        seen += 1;
        for (bin, value) in spectrum.iter().enumerate() {
            let (mut re, mut im) = (0.0f64, 0.0f64);
            for i in 0..window {
                let at = (frame * hop + i).checked_sub(window / 2);
                let sample = at.and_then(|at| sound.get(at)).map_or(0.0, |&sample| f64::from(sample));
                let turn = std::f64::consts::TAU / window as f64;
                let hann = 0.5 - 0.5 * (turn * i as f64).cos();
                re += sample * hann * (turn * (bin * i) as f64).cos();
                im -= sample * hann * (turn * (bin * i) as f64).sin();
            }
            assert!((f64::from(value.re) - re).abs() < 1e-5 && (f64::from(value.im) - im).abs() < 1e-5);
            assert!((f64::from(magnitudes[frame * 33 + bin]) - re.hypot(im)).abs() < 1e-5);
        }
    });
    assert_eq!(seen, 13);
}

#[test]
fn gains_that_add_up_to_one_give_parts_that_add_up_to_the_sound() {
    let (stft, sound) = (Stft::new(256, 128).unwrap(), noise(10_007));
    let mut sum = vec![0.0f64; sound.len()];
    let mut lengths = [0; 3];
    let gains = |frame: usize, gains: &mut [f32]| {
        assert!(frame < stft.frames(sound.len()));
        for bin in 0..stft.bins() {
            let share = ((frame * 31 + bin * 17) % 10) as f32 / 10.0;
            gains[bin] = share * 0.25;
            gains[stft.bins() + bin] = share * 0.75;
            gains[2 * stft.bins() + bin] = 1.0 - share;
        }
    };
    stft.filter(&sound, 3, gains, |output, samples| {
        for (sum, sample) in sum[lengths[output]..].iter_mut().zip(samples) {
            // No filter of ours may make the end of a sound louder than the sound.
            assert!(sample.abs() < 2.0);
            *sum += f64::from(*sample);
        }
        lengths[output] += samples.len();
        Ok::<(), ()>(())
    })
    .unwrap();
    assert_eq!(lengths, [sound.len(); 3]);
    let sum: Vec<f32> = sum.iter().map(|&sample| sample as f32).collect();
    assert!(worst(&sum, &sound) < 2e-6);
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let (stft, sound) = (Stft::new(512, 200).unwrap(), noise(30_011));
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| (stft.magnitudes(&sound), through(&stft, &sound, 5)))
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(7));
}

#[test]
fn the_first_error_of_a_sink_ends_the_filter() {
    let mut calls = 0;
    let result = Stft::new(16, 8).unwrap().filter(
        &noise(5000),
        2,
        |_, _| (),
        |_, _| {
            calls += 1;
            Err("full")
        },
    );
    assert_eq!((result, calls), (Err("full"), 1));
}

#[test]
fn windows_that_cannot_be_undone_are_refused() {
    let text = |window, hop| Stft::new(window, hop).unwrap_err().to_string();
    let even = "use an even window of at least 2 samples, at most 1048576";
    let hop = "use a hop of at least 1 and at most half a window, or no sound can be got back";
    assert_eq!(text(0, 1), format!("a window of 0 samples every 1 samples: {even}"));
    assert_eq!(text(1023, 512), format!("a window of 1023 samples every 512 samples: {even}"));
    assert_eq!(text(1 << 21, 512), format!("a window of 2097152 samples every 512 samples: {even}"));
    assert_eq!(text(1024, 0), format!("a window of 1024 samples every 0 samples: {hop}"));
    assert_eq!(text(1024, 513), format!("a window of 1024 samples every 513 samples: {hop}"));
}
