//! `bpnmf score`: known sounds with known scores, and what cannot be scored.

use crate::Bench;
use bpnmf_audio::{Sound, wav};
use serde_json::{Value, json};

const SAMPLES: usize = 4000;

/// Random samples between -0.5 and 0.5.
fn noise(seed: u32, samples: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as f32 / u32::MAX as f32 - 0.5
    };
    (0..samples).map(|_| next()).collect()
}

impl Bench {
    fn sound(&self, name: &str, samples: &[f32]) {
        self.sound_at(name, samples, 8000);
    }

    fn sound_at(&self, name: &str, samples: &[f32], rate: u32) {
        let sound = Sound { samples: samples.to_vec(), rate };
        wav::write(&self.path(name), &sound, wav::Depth::Float32).unwrap();
    }

    /// Two sources a, b and, in the other order, estimates x (of b) and y (of a) with a tenth of noise.
    fn two_sources(&self) {
        for (seed, name, estimate) in [(1, "a.wav", "y.wav"), (2, "b.wav", "x.wav")] {
            let source = noise(seed, SAMPLES);
            self.sound(name, &source);
            let rest = noise(seed + 10, SAMPLES);
            self.sound(estimate, &source.iter().zip(&rest).map(|(s, r)| s + 0.1 * r).collect::<Vec<_>>());
        }
    }

    fn score(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.ok(&format!("score --json --taps 32 {arguments}"))).unwrap()
    }
}

const TWO: &str = "--reference a.wav b.wav --estimate x.wav y.wav";

#[test]
fn estimates_find_their_references_unless_the_order_is_given() {
    let bench = Bench::new();
    bench.two_sources();
    let scores = bench.score(TWO);
    for (i, (reference, estimate)) in [("a.wav", "y.wav"), ("b.wav", "x.wav")].into_iter().enumerate() {
        let source = &scores["sources"][i];
        assert_eq!((&source["reference"], &source["estimate"]), (&json!(reference), &json!(estimate)));
        let [sdr, sir, sar] = ["sdr", "sir", "sar"].map(|key| source[key].as_f64().unwrap());
        assert!((sdr - 20.0).abs() < 0.5 && sir > 30.0 && (sar - 20.0).abs() < 0.5, "{source}");
    }
    let object = scores.as_object().unwrap();
    assert_eq!(object.keys().collect::<Vec<_>>(), ["mean", "sources", "standard_error", "warnings"]);
    let sdr = |i: usize| scores["sources"][i]["sdr"].as_f64().unwrap();
    assert_eq!(scores["mean"]["sdr"].as_f64().unwrap(), (sdr(0) + sdr(1)) / 2.0);
    assert!(
        (scores["standard_error"]["sdr"].as_f64().unwrap() - (sdr(0) - sdr(1)).abs() / 2.0).abs() < 1e-12
    );
    assert_eq!(scores["warnings"], json!([]));
    let given = bench.score(&format!("{TWO} --no-permutation"));
    assert_eq!(given["sources"][0]["estimate"], "x.wav");
    assert!(given["sources"][0]["sdr"].as_f64().unwrap() < 0.0);
}

#[test]
fn the_table_has_a_line_a_source_and_the_mean() {
    let bench = Bench::new();
    bench.two_sources();
    let table = bench.ok(&format!("score --taps 32 {TWO}"));
    let words: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["reference", "estimate", "SDR", "dB", "SIR", "dB", "SAR", "dB"]);
    assert_eq!(
        (words[1][..2].to_vec(), words[2][..2].to_vec()),
        (vec!["a.wav", "y.wav"], vec!["b.wav", "x.wav"])
    );
    assert_eq!((words[3][0], &words[4][..2], words.len()), ("mean", &["standard", "error"][..], 5));
    assert_eq!(words[3].len(), 4);
}

#[test]
fn scores_do_not_depend_on_the_number_of_threads() {
    let bench = Bench::new();
    bench.two_sources();
    let one = bench.score(&format!("{TWO} --threads 1"));
    assert_eq!(bench.score(&format!("{TWO} --threads 3")), one);
}

#[test]
fn an_exact_estimate_of_one_source_is_infinitely_good() {
    let bench = Bench::new();
    bench.two_sources();
    let scores = bench.score("--reference a.wav --estimate a.wav");
    let source = json!({"reference": "a.wav", "estimate": "a.wav", "sdr": "Infinity", "sir": "Infinity", "sar": "Infinity"});
    let nothing = json!({"sdr": null, "sir": null, "sar": null});
    let whole = json!({"sources": [source], "mean": nothing, "standard_error": nothing, "warnings": []});
    assert_eq!(scores, whole);
}

#[test]
fn silent_sounds_have_no_scores_and_a_warning_each() {
    let bench = Bench::new();
    bench.two_sources();
    bench.sound("nothing.wav", &[0.0; SAMPLES]);
    let scores = bench.score("--reference a.wav nothing.wav b.wav --estimate nothing.wav x.wav y.wav");
    let source =
        json!({"reference": "nothing.wav", "estimate": "nothing.wav", "sdr": null, "sir": null, "sar": null});
    assert_eq!(scores["sources"][1], source);
    let without = bench.score(TWO);
    assert_eq!(scores["sources"][0], without["sources"][0]);
    assert_eq!(scores["mean"], without["mean"]);
    let warnings: Vec<&str> =
        scores["warnings"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    assert_eq!(
        warnings[..3],
        [
            "nothing.wav is silent: it has no scores, and the others are scored as if it were not there",
            "nothing.wav is silent: it has no scores",
            "the mean SDR is over 2 of 3 sources: the others have no finite SDR"
        ]
    );
    let table = bench.ok("score --taps 32 --reference a.wav nothing.wav --estimate nothing.wav y.wav");
    assert!(table.contains("–") && table.contains("\nnote: nothing.wav is silent"), "{table}");
}

#[test]
fn a_folder_of_estimates_is_searched_for_the_names_of_the_references() {
    let bench = Bench::new();
    bench.two_sources();
    std::fs::create_dir(bench.path("out")).unwrap();
    std::fs::copy(bench.path("y.wav"), bench.path("out/a.wav")).unwrap();
    let refused = bench.fails("score --reference a.wav b.wav --estimate out", 2);
    assert_eq!(refused, "out holds no file b.wav, the name of a reference: name the estimates one by one");
    std::fs::copy(bench.path("x.wav"), bench.path("out/b.wav")).unwrap();
    let (folder, files) = (bench.score("--reference a.wav b.wav --estimate out"), bench.score(TWO));
    assert_eq!(folder["mean"], files["mean"]);
    assert_eq!(folder["sources"][1]["estimate"], "out/b.wav");
}

#[test]
fn what_cannot_be_scored_is_refused_with_the_names_of_the_files() {
    let bench = Bench::new();
    bench.two_sources();
    bench.sound("short.wav", &noise(5, 3999));
    bench.sound_at("fast.wav", &noise(5, SAMPLES), 16_000);
    bench.write("text.wav", "no sound");
    for (arguments, told) in [
        (
            "-r a.wav -e short.wav",
            "short.wav has 3999 samples and a.wav has 4000: all files must have the same length",
        ),
        (
            "-r a.wav -e fast.wav",
            "fast.wav has 16000 samples a second and a.wav has 8000: all files must have the same rate",
        ),
        (
            "-r a.wav b.wav -e x.wav",
            "there are 2 references and 1 estimate: give one estimate for each reference",
        ),
        ("-r a.wav -e x.wav --taps 0", "--taps is 0: it must be at least 1"),
        (
            "-r a.wav b.wav -e x.wav y.wav --taps 9000",
            "2 references with filters of 9000 taps make 18000 unknowns, above the 16384 that are supported: \
             use fewer of either",
        ),
        (
            "-r a.wav -e x.wav --threads 0",
            "--threads is 0: it must be between 1 and 1024; leave it out to use all cores",
        ),
        ("-r nowhere.wav -e x.wav", "nowhere.wav: there is no such file"),
    ] {
        assert_eq!(bench.fails(&format!("score {arguments}"), 2), told);
    }
    assert!(bench.fails("score -r text.wav -e x.wav", 2).starts_with("text.wav: "));
    assert_eq!(bench.run("score --reference a.wav").status.code(), Some(2));
}

#[test]
fn notes_are_scored_from_tables_and_midi_files_alike() {
    let bench = Bench::new();
    let rows = [(0.0, 0.5, 60), (0.5, 1.0, 64), (1.0, 2.0, 67), (1.0, 2.0, 48)];
    let track = |shift: f64, ends: f64| bpnmf_audio::Track {
        name: "all".into(),
        notes: rows
            .map(|(onset, offset, midi)| {
                let (onset, offset) = (onset + shift, offset + ends);
                (bpnmf_audio::Played { onset, offset, midi: f64::from(midi) }, 90)
            })
            .to_vec(),
    };
    let table = rows.map(|(onset, offset, midi)| format!("x,{midi},{onset},{offset}\n")).concat();
    bench.write("played.csv", format!("instrument,midi,onset_s,offset_s\n{table}"));
    bench.write("found.mid", bpnmf_audio::write_midi(&[track(0.04, 0.3)]));
    let scores: Value =
        serde_json::from_str(&bench.ok("score --notes played.csv --estimate found.mid --json")).unwrap();
    assert_eq!(scores["onset"], json!({"precision": 1.0, "recall": 1.0, "f1": 1.0}));
    assert_eq!(scores["onset_offset"]["f1"], 0.0);
    assert_eq!((&scores["played"], &scores["found"]), (&json!(4), &json!(4)));
    bench.write("late.mid", bpnmf_audio::write_midi(&[track(0.06, 0.06)]));
    let table = bench.ok("score --notes played.csv --estimate late.mid");
    assert_eq!(
        table,
        "4 notes played, 4 found\n                     precision    recall        F1\n\
         onset                    0.000     0.000     0.000\nonset and offset         0.000     0.000     0.000\n"
    );
}

#[test]
fn files_that_hold_no_notes_are_refused_with_a_sentence() {
    let bench = Bench::new();
    bench.write("good.csv", "onset_s,offset_s,midi\n0,1,60\n");
    let none = bpnmf_audio::write_midi(&[bpnmf_audio::Track::default()]);
    for (name, content, sentence) in [
        ("none.mid", none.as_slice(), "there are no notes in it"),
        ("empty.csv", &b"onset_s,offset_s,midi\n"[..], "there are no notes in it"),
        (
            "word.csv",
            &b"onset_s,offset_s,midi\n0,1,C4\n"[..],
            "line 2 has \"C4\" as midi: it must be a number",
        ),
        (
            "other.csv",
            &b"onset_s,midi\n0,60\n"[..],
            "it has no column offset_s: a table of notes has the columns onset_s, offset_s and midi (or hertz)",
        ),
        (
            "back.csv",
            &b"onset_s,offset_s,midi\n2,1,60\n"[..],
            "line 2 is no note: it must begin at 0 or later, end after it begins, and have a pitch",
        ),
        (
            "bytes.mid",
            &b"RIFF\xff\xfe"[..],
            "this is neither text nor a MIDI file: a table (.csv) or a MIDI file is needed",
        ),
    ] {
        bench.write(name, content);
        for flags in
            [format!("--notes {name} --estimate good.csv"), format!("--notes good.csv --estimate {name}")]
        {
            assert_eq!(bench.fails(&format!("score {flags}"), 2), format!("{name}: {sentence}"));
        }
    }
    assert_eq!(
        bench.fails("score --notes good.csv --estimate gone.csv", 2),
        "gone.csv: there is no such file"
    );
    assert_eq!(
        bench.fails("score --notes good.csv --estimate good.csv good.csv", 2),
        "there are 2 estimates: give one file of notes, or a folder with notes.csv"
    );
}
