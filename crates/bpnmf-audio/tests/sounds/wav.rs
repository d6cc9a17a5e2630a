//! Writing wav files, and reading them back.

use bpnmf_audio::wav::{Depth, Writer, write};
use bpnmf_audio::{Channel, Sound, read};

use super::{noise, scratch};

#[test]
fn every_value_of_16_bits_survives_writing_and_reading() {
    let samples: Vec<f32> = (-32_768..32_768).map(|k| k as f32 / 32_768.0).collect();
    let (sound, path) = (Sound { samples, rate: 44_100 }, scratch("all16.wav"));
    assert_eq!(write(&path, &sound, Depth::Int16).unwrap(), 0);
    assert_eq!(read(&path, Channel::Mean).unwrap(), sound);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 44 + 2 * 65_536);
}

#[test]
fn values_of_24_bits_survive_writing_and_reading() {
    let whole = (-8_388_608..8_388_608).step_by(101).chain([8_388_607]);
    let samples: Vec<f32> = whole.map(|k: i32| k as f32 / 8_388_608.0).collect();
    let (sound, path) = (Sound { samples, rate: 48_000 }, scratch("some24.wav"));
    assert_eq!(write(&path, &sound, Depth::Int24).unwrap(), 0);
    assert_eq!(read(&path, Channel::Mean).unwrap(), sound);
}

#[test]
fn floats_survive_writing_and_reading_even_beyond_full_scale() {
    let mut samples = noise(1001);
    samples.extend([1.0, -1.0, 3.5, -1e20, 1e-40, -0.0]);
    let (sound, path) = (Sound { samples, rate: 22_050 }, scratch("float.wav"));
    assert_eq!(write(&path, &sound, Depth::Float32).unwrap(), 0);
    assert_eq!(read(&path, Channel::Mean).unwrap(), sound);
}

#[test]
fn what_is_beyond_full_scale_is_clipped_and_counted() {
    for (depth, top) in [(Depth::Int16, 32_767.0 / 32_768.0), (Depth::Int24, 8_388_607.0 / 8_388_608.0)] {
        let samples = vec![0.5, 1.0, 1.01, -1.0, -1.01, 7.0, -1e30];
        let path = scratch(&format!("clipped_{depth:?}.wav"));
        assert_eq!(write(&path, &Sound { samples, rate: 8000 }, depth).unwrap(), 4);
        assert_eq!(read(&path, Channel::Mean).unwrap().samples, [0.5, top, top, -1.0, -1.0, top, -1.0]);
    }
}

#[test]
fn samples_that_are_no_numbers_are_not_written() {
    let path = scratch("nan_out.wav");
    for depth in [Depth::Int16, Depth::Float32] {
        let sound = Sound { samples: vec![0.0, f32::NAN], rate: 8000 };
        let text = write(&path, &sound, depth).unwrap_err().to_string();
        let sentence = "sample 1 is NaN: samples must be finite, nothing was written";
        assert_eq!(text, format!("{}: {sentence}", path.display()));
        assert!(!path.exists());
    }
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let path = scratch("nowhere").join("a.wav");
    let text = write(&path, &Sound { samples: vec![0.0], rate: 8000 }, Depth::Int16).unwrap_err().to_string();
    assert_eq!(text, format!("{}: could not write it: its folder does not exist", path.display()));
}

#[test]
fn a_file_written_bit_by_bit_is_the_same_file() {
    let sound = Sound { samples: noise(1001), rate: 44_100 };
    for depth in [Depth::Int16, Depth::Int24, Depth::Float32] {
        let (whole, bits) =
            (scratch(&format!("whole_{depth:?}.wav")), scratch(&format!("bits_{depth:?}.wav")));
        write(&whole, &sound, depth).unwrap();
        let mut writer = Writer::create(&bits, 44_100, depth, 1001).unwrap();
        for samples in sound.samples.chunks(77) {
            writer.push(samples).unwrap();
        }
        assert_eq!(writer.finish().unwrap(), 0);
        let bytes = std::fs::read(whole).unwrap();
        assert_eq!(bytes, std::fs::read(bits).unwrap());
        let size = u32::from_le_bytes(bytes[4..8].try_into().unwrap());
        assert_eq!(size as usize, bytes.len() - 8);
    }
}

#[test]
fn a_file_with_the_wrong_number_of_samples_is_not_written() {
    let path = scratch("wrong_number.wav");
    let mut writer = Writer::create(&path, 8000, Depth::Int16, 3).unwrap();
    writer.push(&[0.0, 0.1]).unwrap();
    let text = writer.finish().unwrap_err().to_string();
    assert_eq!(text, format!("{}: begun for 3 samples, got 2, nothing was written", path.display()));
    assert!(!path.exists());
}

#[test]
fn more_than_a_wav_file_can_hold_is_refused_before_the_first_sample() {
    let path = scratch("too_long.wav");
    let text = Writer::create(&path, 8000, Depth::Int16, 1 << 31).unwrap_err().to_string();
    let sentence = "4294967296 bytes of samples do not fit into a wav file, which holds 4 GB: use fewer";
    assert_eq!(text, format!("{}: {sentence}", path.display()));
}
