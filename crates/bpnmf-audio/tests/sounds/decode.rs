//! Reading wav files made by hand, and what is wrong with bad ones.

use std::path::{Path, PathBuf};

use bpnmf_audio::{Channel, read, read_within};

use super::{read_bytes, refusal, refusal_of, scratch};

/// A tone of 440 Hz as libsndfile wrote it, see fixtures/make.py.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A wav file: format tag, bits, channels, rate, and the bytes of its samples.
fn wav(tag: u16, bits: u16, channels: u16, rate: u32, data: &[u8]) -> Vec<u8> {
    let frame = channels * bits / 8;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + data.len() as u32).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0");
    file.extend(tag.to_le_bytes());
    file.extend(channels.to_le_bytes());
    file.extend(rate.to_le_bytes());
    file.extend((rate * u32::from(frame)).to_le_bytes());
    file.extend(frame.to_le_bytes());
    file.extend(bits.to_le_bytes());
    file.extend(b"data");
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    file
}

fn wav16(channels: u16, samples: &[i16]) -> Vec<u8> {
    let data: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    wav(1, 16, channels, 22_050, &data)
}

#[test]
fn every_depth_of_wav_decodes_exactly() {
    let f32s: Vec<u8> = [0.1f32, -2.5].iter().flat_map(|value| value.to_le_bytes()).collect();
    let f64s: Vec<u8> = [0.1f64, -2.5].iter().flat_map(|value| value.to_le_bytes()).collect();
    let i32s: Vec<u8> = [i32::MIN, 1 << 30].iter().flat_map(|value| value.to_le_bytes()).collect();
    let cases: [(u16, u16, &[u8], [f32; 2]); 6] = [
        (1, 8, &[0, 129], [-1.0, 1.0 / 128.0]),
        (1, 16, &[0xff, 0x7f, 0xff, 0xff], [32_767.0 / 32_768.0, -1.0 / 32_768.0]),
        (1, 24, &[1, 0, 0, 0, 0, 0x80], [1.0 / 8_388_608.0, -1.0]),
        (1, 32, &i32s, [-1.0, 0.5]),
        (3, 32, &f32s, [0.1, -2.5]),
        (3, 64, &f64s, [0.1, -2.5]),
    ];
    for (tag, bits, data, expected) in cases {
        let sound = read_bytes(&format!("depth{tag}_{bits}.wav"), wav(tag, bits, 1, 8000, data));
        assert_eq!((&sound.samples[..], sound.rate), (&expected[..], 8000), "{bits} bits");
    }
}

#[test]
fn channels_are_averaged_or_one_is_taken() {
    let path = scratch("stereo.wav");
    std::fs::write(&path, wav16(2, &[16_384, -8192, 32_767, 32_767, 1, 0])).unwrap();
    let samples = |channel| read(&path, channel).unwrap().samples;
    assert_eq!(samples(Channel::Mean), [0.125, 32_767.0 / 32_768.0, 0.5 / 32_768.0]);
    assert_eq!(samples(Channel::One(1)), [0.5, 32_767.0 / 32_768.0, 1.0 / 32_768.0]);
    assert_eq!(samples(Channel::One(2)), [-0.25, 32_767.0 / 32_768.0, 0.0]);
    for channel in [0, 3] {
        let sentence = format!("there is no channel {channel}: channels here go from 1 to 2");
        assert_eq!(refusal_of(&path, Channel::One(channel)), sentence);
    }
}

#[test]
fn eight_channels_and_192_khz_are_read() {
    let data: Vec<u8> = (0..8 * 3000i16).flat_map(|k| (k % 8 * 8).to_le_bytes()).collect();
    let sound = read_bytes("eight.wav", wav(1, 16, 8, 192_000, &data));
    assert_eq!((sound.samples.len(), sound.rate), (3000, 192_000));
    assert!(sound.samples.iter().all(|&sample| sample == 28.0 / 32_768.0));
    assert_eq!(sound.seconds(), 1.0 / 64.0);
}

#[test]
fn one_sample_and_silence_are_sounds() {
    assert_eq!(read_bytes("single.wav", wav16(1, &[-32_768])).samples, [-1.0]);
    assert_eq!(read_bytes("silent.wav", wav16(1, &[0; 5000])).samples, [0.0; 5000]);
}

#[test]
fn a_name_does_not_matter() {
    assert_eq!(read_bytes("really_a_wav.mp3", wav16(1, &[1, 2])).samples.len(), 2);
}

#[test]
fn a_stream_of_unknown_length_is_read_to_its_end() {
    let mut file = wav16(1, &[3; 5000]);
    file[4..8].fill(0xff);
    file[40..44].fill(0xff);
    assert_eq!(read_bytes("stream.wav", file).samples.len(), 5000);
}

#[test]
fn what_is_not_a_recording_is_refused() {
    assert_eq!(refusal_of(&scratch("nowhere.wav"), Channel::Mean), "there is no such file");
    let folder = scratch("folder.wav");
    std::fs::create_dir_all(&folder).unwrap();
    assert_eq!(refusal_of(&folder, Channel::Mean), "this is a folder: name a file inside it");
    let empty = "the file is empty (0 bytes): was it written to the end?";
    assert_eq!(refusal("empty.wav", ""), empty);
    let unknown = "this is no recording that can be read: convert it to wav, flac, mp3, ogg or aiff";
    assert_eq!(refusal("text.wav", "not a recording\n".repeat(100)), unknown);
    assert_eq!(refusal("byte.wav", "R"), unknown);
    assert_eq!(refusal("avi.wav", "RIFF\u{10}\0\0\0AVI LIST\u{4}\0\0\0hdrl"), unknown);
}

#[test]
fn a_coding_that_is_not_known_is_called_so() {
    let sentence = "this wav file holds sound in a coding that cannot be read: convert it to wav or flac";
    assert_eq!(refusal("gsm.wav", wav(0x31, 16, 1, 8000, &[0; 100])), sentence);
}

#[test]
fn a_file_that_ends_too_early_names_both_numbers() {
    let whole = wav16(2, &[5; 10_000]);
    let sentence = "its header promises 5000 samples a channel, it has 4000: was it copied to the end?";
    assert_eq!(refusal("cut.wav", &whole[..44 + 4 * 4000]), sentence);
    assert_eq!(refusal("cut_within.wav", &whole[..44 + 4 * 4000 + 3]), sentence);
}

#[test]
fn a_file_with_a_header_alone_has_no_samples() {
    assert_eq!(refusal("none.wav", wav16(1, &[])), "there are 0 samples in it: was it written to the end?");
}

#[test]
fn samples_that_are_no_numbers_are_named() {
    for (value, name) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
        let mut samples = vec![0.0f32; 6000];
        samples[4003] = value;
        let data: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        let sentence = format!("sample 2001 of channel 2 is {name}: samples must be finite numbers");
        assert_eq!(refusal(&format!("{name}.wav"), wav(3, 32, 2, 8000, &data)), sentence);
    }
    let large: Vec<u8> = [1e300f64].iter().flat_map(|sample| sample.to_le_bytes()).collect();
    let text = refusal("large.wav", wav(3, 64, 1, 8000, &large));
    assert!(text.starts_with("sample 0 of channel 1 is 1"), "{text}");
}

#[test]
fn all_other_formats_give_the_tone_without_delay() {
    // libsndfile does not round to 16 bits, it cuts. A tone of a lossy coder is its own: what must show is a delay, and
    // one of a single sample would give 0.044.
    let step = 1.0 / 32_768.0;
    for (name, tolerance) in
        [("tone.flac", step), ("tone.aiff", step), ("tone.ogg", 0.022), ("tone.mp3", 0.022)]
    {
        let sound = read(&fixture(name), Channel::Mean).unwrap();
        assert_eq!((sound.samples.len(), sound.rate), (2205, 22_050), "{name}");
        // The jump at either end is no tone.
        let squares = (300..1900).map(|at| {
            let expected = 0.5 * (std::f64::consts::TAU * 440.0 * at as f64 / 22_050.0).sin();
            (f64::from(sound.samples[at]) - expected).powi(2)
        });
        let error = (squares.sum::<f64>() / 1600.0).sqrt();
        assert!(error < tolerance, "{name}: off by {error}");
    }
}

#[test]
fn a_file_that_ends_before_its_first_sample_breaks_off_there() {
    let promised = "its header promises 2205 samples a channel, it has 0: was it copied to the end?";
    let whole = std::fs::read(fixture("tone.flac")).unwrap();
    assert_eq!(refusal("cut_tone.flac", &whole[..whole.len() - 40]), promised);
    let sentence = "it breaks off after 0 samples a channel: was it copied to the end?";
    for name in ["tone.ogg", "tone.aiff"] {
        let whole = std::fs::read(fixture(name)).unwrap();
        let len = if name == "tone.aiff" { 30 } else { whole.len() - 40 };
        assert_eq!(refusal(&format!("cut_{name}"), &whole[..len]), sentence);
    }
    assert_eq!(refusal("cut_header.wav", &wav16(1, &[5; 100])[..30]), sentence);
}

#[test]
fn no_damaged_file_makes_the_reader_panic() {
    let mut state = 1u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    let wholes =
        ["tone.flac", "tone.ogg", "tone.mp3", "tone.aiff"].map(|name| std::fs::read(fixture(name)).unwrap());
    for whole in wholes.into_iter().chain([wav16(2, &[1000; 600])]) {
        let damaged = scratch("damaged");
        for _ in 0..150 {
            let mut bytes = whole.clone();
            for _ in 0..1 + draw(3) {
                // Headers are where damage does most.
                let reach = if draw(2) == 0 { 100 } else { bytes.len() };
                let place = draw(reach);
                bytes[place] = draw(256) as u8;
            }
            bytes.truncate(bytes.len() - draw(2) * draw(bytes.len()));
            std::fs::write(&damaged, bytes).unwrap();
            // Damage may go unnoticed, where it makes another valid file.
            let _ = read(&damaged, Channel::Mean);
        }
    }
}

#[test]
fn a_recording_that_is_longer_than_asked_for_is_refused_by_its_header_or_as_it_comes() {
    for name in ["tone.flac", "tone.ogg", "tone.mp3", "tone.aiff"] {
        let path = fixture(name);
        let length = read(&path, Channel::Mean).unwrap().samples.len() as u64;
        let told = |most| read_within(&path, Channel::Mean, most).map(|sound| sound.samples.len() as u64);
        let text = told(100).unwrap_err().to_string();
        assert!(
            text.ends_with("samples a channel, and there is memory for 100: cut it into pieces"),
            "{text}"
        );
        assert!(told(length - 1).is_err(), "{name}");
        // The header of an mp3 may count the padding at its end.
        assert_eq!(told(length + 5000).unwrap(), length, "{name}");
    }
}

#[test]
fn a_header_that_claims_hours_is_refused_without_memory_for_them() {
    let mut bytes = wav16(1, &[1, 2, 3]);
    bytes[4..8].copy_from_slice(&0xffff_fffeu32.to_le_bytes());
    bytes[40..44].copy_from_slice(&0xffff_ff00u32.to_le_bytes());
    let path = scratch("hours.wav");
    std::fs::write(&path, bytes).unwrap();
    let text = read_within(&path, Channel::Mean, 1 << 20).unwrap_err().to_string();
    assert!(text.contains("it has at least 2147483520 samples a channel"), "{text}");
}

/// Found by fuzzing: the decoder multiplies the channels by the bytes of a sample in 16 bits.
#[test]
fn a_wav_of_32003_channels_is_no_reason_to_panic() {
    let mut bytes = wav(1, 24, 1, 8000, &[0; 252]);
    bytes[22..24].copy_from_slice(&32_003u16.to_le_bytes());
    let path = scratch("channels.wav");
    std::fs::write(&path, bytes).unwrap();
    assert!(read(&path, Channel::Mean).is_err());
}
