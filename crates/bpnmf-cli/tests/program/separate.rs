//! What a separation writes: sounds that add up, files that belong to this run alone, the same bytes for any threads.

use crate::{Bench, exists};
use bpnmf::{Plan, TraceRow, Workers};
use bpnmf_audio::wav::{Depth, write};
use bpnmf_audio::{Channel, Framing, Grouping, Levels, Recording, Sound, read};
use std::f32::consts::TAU;

pub(crate) const RATE: u32 = 8000;

/// Two instruments of three notes and two, which come and go by themselves, 2 s.
pub(crate) fn instrument(which: usize) -> Sound {
    let notes: [&[f32]; 2] = [&[220.0, 330.0, 495.0], &[980.0, 1470.0]];
    let samples = (0..2 * RATE + 77)
        .map(|i| {
            let at = i as f32 / RATE as f32;
            let turn = (at * (2.0 + which as f32 * 1.3)) as usize;
            let pitch = notes[which][turn % notes[which].len()];
            let loudness = if turn % 4 == 3 { 0.0 } else { 0.2 };
            (1..=3).map(|n| loudness / n as f32 * (TAU * pitch * n as f32 * at).sin()).sum()
        })
        .collect();
    Sound { samples, rate: RATE }
}

/// Writes low.wav, high.wav and mix.wav, and gives the mixture.
pub(crate) fn write_sounds(bench: &Bench) -> Vec<f32> {
    let (low, high) = (instrument(0), instrument(1));
    let samples: Vec<f32> = low.samples.iter().zip(&high.samples).map(|(a, b)| a + b).collect();
    write(&bench.path("low.wav"), &low, Depth::Float32).unwrap();
    write(&bench.path("high.wav"), &high, Depth::Float32).unwrap();
    write(&bench.path("mix.wav"), &Sound { samples: samples.clone(), rate: RATE }, Depth::Float32).unwrap();
    samples
}

/// The names of the files in a folder, in order.
fn names(bench: &Bench, folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(bench.path(folder)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The files of a folder added up.
fn sum(bench: &Bench, folder: &str) -> Vec<f64> {
    let mut sum = Vec::new();
    for name in names(bench, folder) {
        let sound = read(&bench.path(folder).join(name), Channel::Mean).unwrap();
        assert_eq!(sound.rate, RATE);
        sum.resize(sound.samples.len(), 0.0);
        sum.iter_mut().zip(&sound.samples).for_each(|(sum, &sample)| *sum += f64::from(sample));
    }
    sum
}

fn worst(one: &[f64], two: &[f32]) -> f64 {
    assert_eq!(one.len(), two.len());
    one.iter().zip(two).fold(0.0, |worst, (a, b)| worst.max((a - f64::from(*b)).abs()))
}

#[test]
fn in_every_mode_the_stems_have_their_names_and_add_up_to_the_recording() {
    let bench = Bench::new();
    let mix = write_sounds(&bench);
    bench.write("groups.json", r#"{"solo": [1], "duo": [3, 0]}"#);
    let modes: [(&str, &[&str]); 8] = [
        ("--reference low.wav high.wav", &["high.wav", "low.wav"]),
        ("--reference low.wav high.wav --pick all --residual", &["high.wav", "low.wav", "residual.wav"]),
        ("--reference low.wav high.wav --pick one", &["high.wav", "low.wav", "residual.wav"]),
        ("--stems 2", &["1.wav", "2.wav"]),
        ("--stems 2 --residual", &["1.wav", "2.wav", "residual.wav"]),
        ("--stems 1", &["1.wav"]),
        ("--groups groups.json", &["duo.wav", "rest.wav", "solo.wav"]),
        ("--groups groups.json --residual", &["duo.wav", "residual.wav", "rest.wav", "solo.wav"]),
    ];
    for (flags, expected) in modes {
        // With frames of this length no part belongs to both references.
        bench.ok(&format!("separate mix.wav --out out --force -n 20 --window 512 {flags}"));
        assert_eq!(names(&bench, "out/stems"), expected, "{flags}");
        let error = worst(&sum(&bench, "out/stems"), &mix);
        assert!(error < 1e-5 * 0.7, "{flags}: {error}");
        let summary = bench.json("out/summary.json");
        let parts = summary["components"].as_array().unwrap().len();
        assert_eq!(names(&bench, "out/components").len(), parts);
        let stems = summary["stems"].as_array().unwrap();
        let mut told: Vec<String> =
            stems.iter().map(|stem| format!("{}.wav", stem["name"].as_str().unwrap())).collect();
        told.sort();
        assert_eq!(told, expected, "{flags}");
        let mut members: Vec<u64> = stems
            .iter()
            .flat_map(|stem| stem["components"].as_array().unwrap())
            .map(|k| k.as_u64().unwrap())
            .collect();
        members.sort_unstable();
        // Of events, stems may share a part.
        if flags.contains("--stems") {
            members.dedup();
        }
        assert_eq!(members, (0..parts as u64).collect::<Vec<_>>(), "every part is in one stem: {flags}");
        if !flags.contains("--residual") {
            let error = worst(&sum(&bench, "out/components"), &mix);
            assert!(error < 1e-5 * 0.7, "{flags}: {error}");
        }
    }
    bench.ok("separate mix.wav --out out --force -n 20");
    assert!(!exists(&bench.path("out/stems")), "nobody asked for stems, and the former ones are not ours");
    assert!(worst(&sum(&bench, "out/components"), &mix) < 1e-5 * 0.7);
}

#[test]
fn every_file_is_there_and_tells_what_was_done() {
    let bench = Bench::new();
    write_sounds(&bench);
    bench.ok("separate mix.wav --reference low.wav high.wav --pick one --out new/out --window 256 --hop 64 --levels 40");
    assert_eq!(
        names(&bench, "new/out"),
        [
            "components",
            "model.npz",
            "notes.csv",
            "notes.mid",
            "recording.wav",
            "report.html",
            "stems",
            "summary.json",
            "trace.csv"
        ]
    );
    let summary = bench.json("new/out/summary.json");
    let sound = &summary["sound"];
    assert_eq!((&sound["rate"], &sound["samples"]), (&8000.into(), &16_077.into()));
    assert_eq!((&sound["window"], &sound["hop"]), (&256.into(), &64.into()));
    assert_eq!(sound["largest_level"], 40.0);
    assert_eq!(summary["coarsening"], 1.0);
    let parts = summary["components"].as_array().unwrap().len();
    assert!((4..12).contains(&parts), "five notes: {parts}");
    let stems = summary["stems"].as_array().unwrap();
    for (r, stem) in stems.iter().take(2).enumerate() {
        let correlations: Vec<f64> =
            stem["correlations"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
        assert_eq!((correlations.len(), stem["components"].as_array().unwrap().len()), (parts, 1), "{r}");
    }
    assert!(stems[2].get("correlations").is_none());
    let arrays = bench.arrays("new/out/model.npz");
    let shapes: Vec<(&str, &[usize])> =
        arrays.iter().map(|(name, shape, _)| (name.as_str(), shape.as_slice())).collect();
    let frames = 1 + 16_077 / 64;
    let (by_bin, by_part): (&[usize], &[usize]) = (&[129, parts], &[parts, frames]);
    assert_eq!(
        shapes,
        [
            ("W", by_bin),
            ("H", by_part),
            ("S", by_part),
            ("pi", &[parts][..]),
            ("W_low", by_bin),
            ("H_low", by_part),
            ("W_high", by_bin),
            ("H_high", by_part),
            ("W_filter", by_bin),
            ("H_filter", by_part),
            ("scale", &[1][..])
        ]
    );
    let (on, filter) = (&arrays[2].2, &arrays[9].2);
    assert!(on.iter().zip(filter).all(|(on, h)| *on > 0.05 || *h == 0.0), "what is off stays off");
}

#[test]
fn the_page_plays_the_stems_that_were_written() {
    let bench = Bench::new();
    write_sounds(&bench);
    for (out, flags) in
        [("whole", "--stems 2 --residual"), ("split", "--reference low.wav high.wav --residual")]
    {
        bench.ok(&format!("separate mix.wav {flags} --out {out} -n 20"));
        let page = String::from_utf8(bench.bytes(&format!("{out}/report.html"))).unwrap();
        let start = page.find("id=\"model\">").unwrap() + "id=\"model\">".len();
        let model = &page[start..start + page[start..].find("</script>").unwrap()];
        let model: serde_json::Value = serde_json::from_str(model).unwrap();
        let summary = bench.json(&format!("{out}/summary.json"));
        assert_eq!(model["models"][0]["parts"], summary["components"].as_array().unwrap().len());
        assert_eq!(model["residual"], summary["sound"]["scale"]);
        assert!(page.contains("data-residual"));
        let listed = |stem: &serde_json::Value| stem["components"].as_array().unwrap().len();
        let stems = summary["stems"].as_array().unwrap();
        assert_eq!((model["stems"].as_array().unwrap().len(), stems.len()), (2, 3));
        let members: Vec<Vec<usize>> = (0..2)
            .map(|stem| model["stems"][stem].as_array().unwrap())
            .map(|weights| (0..weights.len()).filter(|&k| weights[k] == 1.0).collect())
            .collect();
        // Pieces of parts: as many as parts are listed, and each in one stem.
        assert_eq!(model["models"][1]["parts"], stems.iter().map(listed).sum::<usize>());
        assert!(members.iter().zip(stems).all(|(members, stem)| members.len() == listed(stem)));
        assert!(members[0].iter().all(|piece| !members[1].contains(piece)));
    }
}

#[test]
fn the_library_alone_gives_what_the_program_writes_bit_for_bit() {
    let bench = Bench::new();
    write_sounds(&bench);
    bench.ok("separate mix.wav --stems 2 --seed 3 --threads 2 --out out");
    let sound = read(&bench.path("mix.wav"), Channel::Mean).unwrap();
    let stft = Framing::default().of(sound.rate, sound.samples.len()).unwrap();
    let (recording, counts) = Recording::new(sound, stft, Levels::Typical).unwrap();
    let (plan, workers) = (Plan { seed: 3, ..Plan::default() }, Workers::serial());
    let (chains, parts) =
        bpnmf_audio::separate(&recording, &counts, &plan, &workers, |_| |_: &TraceRow| true).unwrap();
    for (name, _, written) in bench.arrays("out/model.npz") {
        let found = match name.as_str() {
            "W_filter" => parts.dictionary(),
            "H_filter" => parts.activations(),
            "S" => chains.fit().posterior.inclusion.clone(),
            _ => continue,
        };
        assert!(found.iter().map(|&value| f64::from(value)).eq(written), "{name}");
    }
    let heard = recording.transcription(&parts, &chains.fit().posterior.inclusion);
    let stems = recording.stems(&parts, &heard, &[], &Grouping::Voices { wanted: 2, polyphonic: false });
    for (sound, name) in recording.sounds(&parts, &stems).into_iter().zip(["1", "2"]) {
        assert_eq!(
            sound,
            read(&bench.path(&format!("out/stems/{name}.wav")), Channel::Mean).unwrap().samples
        );
    }
}

#[test]
fn notes_are_those_that_are_played_and_the_table_and_the_midi_file_agree() {
    let bench = Bench::new();
    let (tone, rest) = (0.35, 0.05);
    let keys = [57, 60, 64, 69, 60, 57, 64, 69, 57, 64, 60, 69];
    let samples: Vec<f32> = (0..(12.0 * (tone + rest) * RATE as f32) as usize)
        .map(|i| {
            let at = i as f32 / RATE as f32;
            let (number, time) = ((at / (tone + rest)) as usize, at % (tone + rest));
            // A quarter of a semitone sharp.
            let hertz = 440.0 * ((keys[number.min(11)] as f32 - 69.0 + 0.25) / 12.0).exp2();
            let loudness = 0.2 * (time / 0.01).min(1.0) * ((tone - time) / 0.02).clamp(0.0, 1.0);
            (1..=5).map(|n| loudness * 0.6f32.powi(n) * (TAU * hertz * n as f32 * at).sin()).sum()
        })
        .collect();
    write(&bench.path("tune.wav"), &Sound { samples, rate: RATE }, Depth::Float32).unwrap();
    let played: String = keys
        .iter()
        .enumerate()
        .map(|(i, key)| format!("{},{},{key}\n", i as f32 * (tone + rest), i as f32 * (tone + rest) + tone))
        .collect();
    bench.write("played.csv", format!("onset_s,offset_s,midi\n{played}"));
    bench.ok("separate tune.wav --out out --stems 1 --quiet");
    let scores = |found: &str| -> serde_json::Value {
        serde_json::from_str(&bench.ok(&format!("score --notes played.csv --estimate {found} --json")))
            .unwrap()
    };
    let scores = [scores("out"), scores("out/notes.mid")];
    assert_eq!(scores[0], scores[1], "the table and the MIDI file hold the same notes");
    assert_eq!(scores[0]["onset"]["f1"], 1.0, "{}", scores[0]);
    let summary = bench.json("out/summary.json");
    let a4 = summary["tuning_hertz"].as_f64().unwrap();
    assert!((a4 - 446.4).abs() < 1.5, "{a4}");
    assert_eq!(summary["n_notes"], 12);
    let pitches = summary["pitches"].as_array().unwrap();
    assert!(pitches.iter().filter(|pitch| pitch["kind"] == "note").count() >= 4, "{pitches:?}");
    let page = String::from_utf8(bench.bytes("out/report.html")).unwrap();
    assert!(page.contains("<h2>Notes</h2>") && page.contains("<title>A4, "));
}

#[test]
fn regrouped_stems_are_those_of_the_separation_with_these_groups_sample_for_sample() {
    let bench = Bench::new();
    write_sounds(&bench);
    bench.ok("separate mix.wav --out parts -n 20 --levels 70 --quiet");
    let events = String::from_utf8(bench.bytes("parts/notes.csv")).unwrap();
    let events: usize = events.lines().skip(1).count();
    assert!(events > 3);
    bench.write("parts.json", r#"{"solo": [1], "duo": [3, 0]}"#);
    bench.write("events.json", r#"{"solo": [1, "e0"], "duo": [3, "e2", 0]}"#);
    for (number, (groups, flags)) in
        [("parts", ""), ("events", ""), ("parts", "--residual"), ("events", "--residual --format 16")]
            .into_iter()
            .enumerate()
    {
        let whole = format!("whole{number}");
        bench.ok(&format!(
            "separate mix.wav --out {whole} -n 20 --levels 70 --groups {groups}.json {flags} --quiet"
        ));
        bench.ok(&format!("regroup parts --groups {groups}.json --force {flags}"));
        let stems = names(&bench, &format!("{whole}/stems"));
        assert_eq!(names(&bench, "parts/regrouped/stems"), stems, "{groups}");
        for file in stems
            .iter()
            .map(|stem| format!("stems/{stem}"))
            .chain(["notes.csv", "notes.mid"].map(str::to_owned))
        {
            let [one, two] =
                [&whole, "parts/regrouped"].map(|folder| bench.bytes(&format!("{folder}/{file}")));
            assert!(one == two, "{groups} {flags}: {file}");
        }
        let model = |folder: &str| {
            let page = String::from_utf8(bench.bytes(&format!("{folder}/report.html"))).unwrap();
            let heard =
                page[page.find("<!--heard-->").unwrap()..page.find("<!--/heard-->").unwrap()].to_owned();
            let from = page.find("<!--sounds-->").unwrap();
            (heard, page[from..page.find("<!--/sounds-->").unwrap()].to_owned())
        };
        assert!(model(&whole) == model("parts/regrouped"), "{groups} {flags}: the page");
    }
    assert_eq!(
        bench.fails("regroup parts --groups parts.json", 2),
        "parts/regrouped already holds stems: choose another folder or overwrite it with --force"
    );
    bench.ok("regroup parts --groups parts.json --out elsewhere --threads 1");
    assert_eq!(names(&bench, "elsewhere"), ["notes.csv", "notes.mid", "report.html", "stems"]);
}

#[test]
fn a_folder_or_a_file_of_groups_that_cannot_be_regrouped_is_refused_with_a_sentence() {
    let bench = Bench::new();
    write_sounds(&bench);
    bench.ok("separate mix.wav --out parts -n 5 --quiet");
    bench.write("good.json", r#"{"a": [0]}"#);
    std::fs::create_dir(bench.path("empty")).unwrap();
    let needed = "a folder that bpnmf separate wrote is needed";
    assert_eq!(
        bench.fails("regroup empty --groups good.json", 2),
        format!("empty: there is no summary.json in it: {needed}")
    );
    for (text, sentence) in [
        (r#"{"a": ["e99999"]}"#, "group \"a\" has event 99999: events go from 0 to "),
        (
            r#"{"a": [0], "b": ["e1", "e1"]}"#,
            "event 1 is in \"b\" and in \"b\": an event can be in one group, once",
        ),
        (r#"{"a": ["17"]}"#, "group \"a\" has text that is no event like \"e12\""),
        (r#"{"a": [99]}"#, "group \"a\" has part 99: parts go from 0 to "),
    ] {
        bench.write("bad.json", text);
        let told = bench.fails("regroup parts --groups bad.json", 2);
        assert!(told.starts_with(&format!("bad.json: {sentence}")), "{told}");
        assert!(!exists(&bench.path("parts/regrouped")), "nothing is left behind");
    }
    std::fs::remove_file(bench.path("parts/recording.wav")).unwrap();
    assert_eq!(
        bench.fails("regroup parts --groups good.json", 2),
        format!("parts: there is no recording.wav in it: {needed}")
    );
}

#[test]
fn threads_do_not_change_a_byte_of_a_sound() {
    let bench = Bench::new();
    write_sounds(&bench);
    for threads in [1, 2, 5] {
        let flags = format!("--threads {threads} --out out{threads}");
        bench.ok(&format!("separate mix.wav --stems 2 -n 20 {flags}"));
    }
    let components = names(&bench, "out1/components").into_iter().map(|name| format!("components/{name}"));
    let stems = ["stems/1.wav", "stems/2.wav", "model.npz"].map(str::to_owned);
    for file in components.chain(stems) {
        let one = bench.bytes(&format!("out1/{file}"));
        assert!(
            one == bench.bytes(&format!("out2/{file}")) && one == bench.bytes(&format!("out5/{file}")),
            "{file}"
        );
    }
}

#[test]
fn results_are_overwritten_only_with_force_and_other_files_stay() {
    let bench = Bench::new();
    write_sounds(&bench);
    std::fs::create_dir_all(bench.path("out/stems")).unwrap();
    bench.write("out/stems/old.wav", "old");
    bench.write("out/stems/notes.txt", "mine");
    bench.write("out/else.txt", "mine");
    assert_eq!(
        bench.fails("separate mix.wav --out out", 2),
        "out already holds stems: choose another folder or overwrite it with --force"
    );
    bench.ok("separate mix.wav --out out --force --stems 2 -n 20");
    assert_eq!(names(&bench, "out/stems"), ["1.wav", "2.wav", "notes.txt"]);
    bench.ok("separate mix.wav --out out --force -n 20");
    assert_eq!(names(&bench, "out/stems"), ["notes.txt"]);
    assert_eq!(bench.bytes("out/else.txt"), b"mine");
    let hidden = names(&bench, "out").into_iter().filter(|name| name.starts_with('.')).count();
    assert_eq!(hidden, 0);
}

#[test]
fn sounds_are_written_in_the_format_and_at_the_rate_that_was_asked_for() {
    let bench = Bench::new();
    write_sounds(&bench);
    for (format, bits) in [("16", 16), ("24", 24), ("float", 32)] {
        bench
            .ok(&format!("separate mix.wav --out out --force --format {format} --rate 4000 -n 20 --stems 1"));
        let bytes = bench.bytes("out/stems/1.wav");
        assert_eq!((bytes[34], &bytes[24..28]), (bits, &4000u32.to_le_bytes()[..]), "{format}");
    }
    let sound = &bench.json("out/summary.json")["sound"];
    assert_eq!(
        (&sound["rate"], &sound["samples"], &sound["window"]),
        (&4000.into(), &8039.into(), &128.into())
    );
}
