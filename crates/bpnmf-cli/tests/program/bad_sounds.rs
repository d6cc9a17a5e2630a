//! Bad recordings and bad requests about them: exit code 2, one sentence, nothing written. Odd ones that must work.

use crate::separate::{RATE, instrument, write_sounds};
use crate::{Bench, exists};
use bpnmf_audio::Sound;
use bpnmf_audio::wav::{Depth, write};

/// The sentence about `arguments`; the folder `out` must not come into being.
fn refusal(bench: &Bench, arguments: &str) -> String {
    let sentence = bench.fails(&format!("separate {arguments} --out out"), 2);
    assert!(!exists(&bench.path("out")), "nothing is written: {arguments}");
    sentence
}

fn write_sound(bench: &Bench, name: &str, samples: Vec<f32>, rate: u32) {
    write(&bench.path(name), &Sound { samples, rate }, Depth::Float32).unwrap();
}

#[test]
fn recordings_that_cannot_be_used_are_refused_in_a_sentence() {
    let bench = Bench::new();
    write_sounds(&bench);
    let whole = bench.bytes("mix.wav");
    bench.write("empty.wav", "");
    bench.write("text.wav", "once upon a time there was no sound at all");
    bench.write("cut.wav", &whole[..whole.len() / 2]);
    write_sound(&bench, "none.wav", vec![], RATE);
    write_sound(&bench, "silent.wav", vec![0.0; 5000], RATE);
    write_sound(&bench, "loud.wav", vec![3e38; 5000], RATE);
    let mut bytes = whole.clone();
    let place = bytes.len() - 400;
    bytes[place..place + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    bench.write("nan.wav", bytes);
    for (file, told) in [
        ("nowhere.wav", "there is no such file"),
        ("empty.wav", "the file is empty (0 bytes): was it written to the end?"),
        ("text.wav", "this is no recording that can be read: convert it to wav, flac, mp3, ogg or aiff"),
        ("cut.wav", "its header promises 16077 samples a channel, it has 8031: was it copied to the end?"),
        ("none.wav", "there are 0 samples in it: was it written to the end?"),
        ("silent.wav", "the recording is silent: there is nothing to take apart"),
        ("loud.wav", "its samples are too large: scale them to be between -1 and 1"),
        ("nan.wav", "sample 15977 of channel 1 is NaN: samples must be finite numbers"),
    ] {
        assert_eq!(refusal(&bench, file), format!("{file}: {told}"));
        if file != "silent.wav" && file != "loud.wav" {
            assert_eq!(refusal(&bench, &format!("mix.wav --reference {file}")), format!("{file}: {told}"));
        }
    }
}

#[test]
fn references_must_be_as_long_as_the_recording_and_have_names_of_their_own() {
    let bench = Bench::new();
    write_sounds(&bench);
    write_sound(&bench, "short.wav", vec![0.1; 16_076], RATE);
    assert_eq!(
        refusal(&bench, "mix.wav --reference low.wav short.wav"),
        "short.wav has 16076 samples at 8000 Hz, mix.wav has 16077: a reference must be as long as the recording"
    );
    std::fs::create_dir(bench.path("again")).unwrap();
    std::fs::copy(bench.path("high.wav"), bench.path("again/Low.wav")).unwrap();
    assert_eq!(
        refusal(&bench, "mix.wav --reference low.wav again/Low.wav"),
        "two references are called Low: stems are named after them, rename one"
    );
    std::fs::copy(bench.path("high.wav"), bench.path("residual.wav")).unwrap();
    assert_eq!(
        refusal(&bench, "mix.wav --reference low.wav residual.wav --pick one"),
        "a stem cannot be called residual, that is the name of another: rename it"
    );
    bench.ok("separate mix.wav --reference low.wav residual.wav -n 20 --out fine");
}

#[test]
fn a_reference_of_another_rate_is_brought_to_that_of_the_recording() {
    let bench = Bench::new();
    write_sounds(&bench);
    let twice = bpnmf_audio::resample(&instrument(1), 2 * RATE).unwrap();
    write(&bench.path("high.wav"), &twice, Depth::Float32).unwrap();
    bench.ok("separate mix.wav --reference low.wav high.wav -n 20 --out out");
    let stems = bench.json("out/summary.json")["stems"].clone();
    assert!(stems.as_array().unwrap().iter().all(|stem| !stem["components"].as_array().unwrap().is_empty()));
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let bench = Bench::new();
    write_sounds(&bench);
    for (flags, told) in [
        ("--stems 0", "--stems is 0: it must be between 1 and 1000"),
        ("--levels 0", "--levels is 0: it must be between 1 and 1000000"),
        ("--channel 0", "--channel is 0: channels are counted from 1"),
        ("--channel 2", "mix.wav: there is no channel 2: channels here go from 1 to 1"),
        ("--rate 0", "--rate: 0 samples a second: use a rate from 1 to 1000000"),
        (
            "--window 511",
            "a window of 511 samples every 255 samples: use an even window of at least 2 samples, at most 1048576",
        ),
        (
            "--hop 300",
            "a window of 256 samples every 300 samples: use a hop of at least 1 and at most half a window, or no sound \
             can be got back",
        ),
        ("--residual", "--residual is one stem more: say which stems with --stems, --groups or --reference"),
        (
            "--residual --reference low.wav --pick one",
            "--residual cannot be used with --pick one, where the stem `residual` is the parts that nobody picked: leave \
             it out",
        ),
        ("--threads 0", "--threads is 0: it must be between 1 and 1024; leave it out to use all cores"),
    ] {
        assert_eq!(refusal(&bench, &format!("mix.wav {flags}")), told);
    }
    for flags in ["--stems 2 --reference low.wav", "--stems 2 --groups g.json", "--pick one", "--format 8"] {
        assert_eq!(
            bench.run(&format!("separate mix.wav --out out {flags}")).status.code(),
            Some(2),
            "{flags}"
        );
    }
}

#[test]
fn a_file_of_groups_is_checked() {
    let bench = Bench::new();
    write_sounds(&bench);
    let how = "groups are written as {\"name\": [part, ...], ...}";
    let bad: [(&str, &str); 9] = [
        ("{}", "there is no group in it: name at least one"),
        ("{\"a\": []}", "group \"a\" has no parts: name some or take it out"),
        ("{\"a\": [0, 1], \"b\": [1]}", "part 1 is in \"a\" and in \"b\": a part can be in one group, once"),
        ("{\"a\": [2, 2]}", "part 2 is in \"a\" and in \"a\": a part can be in one group, once"),
        ("{\"a\": [0], \"A\": [1]}", "two groups are called \"A\": join them or rename one"),
        ("{\"\": [0]}", "\"\" is a group without a name: stems are files"),
        ("{\"../a\": [0]}", "\"../a\" is a name that cannot be the name of a file: stems are files"),
        (
            "{\"rest\": [0]}",
            "part 1 is in no group, and a group is called \"rest\", as the stem of such parts is: rename it",
        ),
        ("{\"residual\": [0]}", ""),
    ];
    for (text, told) in bad {
        bench.write("groups.json", text);
        if told.is_empty() {
            let sentence = refusal(&bench, "mix.wav --groups groups.json --residual");
            assert_eq!(sentence, "a stem cannot be called residual, that is the name of another: rename it");
        } else {
            assert_eq!(refusal(&bench, "mix.wav --groups groups.json -n 5"), format!("groups.json: {told}"));
        }
    }
    for text in ["", "[1, 2]", "{\"a\": [-1]}", "{\"a\": 3}", "{\"a\": [0.5]}", "{\"a\": [0]"] {
        bench.write("groups.json", text);
        let sentence = refusal(&bench, "mix.wav --groups groups.json");
        assert!(sentence.starts_with("groups.json: ") && sentence.ends_with(how), "{sentence}");
    }
    bench.write("groups.json", "{\"a\": [999]}");
    let sentence = refusal(&bench, "mix.wav --groups groups.json -n 5");
    assert!(sentence.starts_with("groups.json: group \"a\" has part 999: parts go from 0 to "), "{sentence}");
    assert_eq!(refusal(&bench, "mix.wav --groups no.json"), "no.json: there is no such file");
}

#[test]
fn odd_recordings_are_taken_apart_all_the_same() {
    let bench = Bench::new();
    write_sound(&bench, "one.wav", vec![0.5], RATE);
    bench.ok("separate one.wav --out one --stems 1");
    let sound = bpnmf_audio::read(&bench.path("one/stems/1.wav"), Default::default()).unwrap();
    assert!((sound.samples[0] - 0.5).abs() < 1e-6 && sound.samples.len() == 1);

    let fast: Vec<f32> = (0..60_000).map(|i| (i as f32 * 0.02).sin() * 0.3).collect();
    write_sound(&bench, "fast.wav", fast, 192_000);
    bench.ok("separate fast.wav --out fast -n 10");
    let about = &bench.json("fast/summary.json")["sound"];
    assert_eq!(
        (&about["rate"], &about["samples"], &about["window"]),
        (&48_000.into(), &15_000.into(), &1024.into())
    );

    bench.write("eight.wav", eight_channels());
    bench.ok("separate eight.wav --out eight -n 10");
    bench.ok("separate eight.wav --out third -n 10 --channel 3");
    assert_eq!(
        refusal(&bench, "eight.wav --channel 9"),
        "eight.wav: there is no channel 9: channels here go from 1 to 8"
    );
    let length = |out: &str| bench.json(&format!("{out}/summary.json"))["sound"]["samples"].clone();
    assert_eq!((length("eight"), length("third")), (4000.into(), 4000.into()));
}

/// A wav file of 16 bits with 8 channels of 4000 samples.
fn eight_channels() -> Vec<u8> {
    let samples = (0..4000 * 8).map(|i| ((i / 8) as f32 * (0.1 + (i % 8) as f32 * 0.05)).sin());
    let data: Vec<u8> = samples.flat_map(|x| ((x * 8000.0) as i16).to_le_bytes()).collect();
    let mut file = b"RIFF".to_vec();
    file.extend((36 + data.len() as u32).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x08\0");
    file.extend(RATE.to_le_bytes());
    file.extend((RATE * 16).to_le_bytes());
    file.extend([16, 0, 16, 0]);
    file.extend(b"data");
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    file
}
