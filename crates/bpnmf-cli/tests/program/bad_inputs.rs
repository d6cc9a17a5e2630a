//! The table of bad inputs in docs/robustness.md is what the program says today.

use crate::separate::{RATE, write_sounds};
use crate::{Bench, exists};
use bpnmf_audio::Sound;
use bpnmf_audio::wav::{Depth, write};
use std::io::Write as _;
use std::path::Path;

/// Between these lines the document is ours.
const BEGIN: &str = "<!-- bad inputs: written by `./run bad-inputs` -->";
const END: &str = "<!-- end of bad inputs -->";

/// What is wrong, and the command line.
const CASES: [(&str, &str); 55] = [
    ("no such file", "fit nowhere.csv"),
    ("a folder", "fit folder"),
    ("a device", "fit /dev/null"),
    ("no bytes", "fit empty.csv"),
    ("another format", "fit sheet.xlsx"),
    ("text that is called an array", "fit text.npy"),
    ("an array that is cut", "fit cut.npy"),
    ("80 bytes that claim a million million entries", "fit claim.npy"),
    ("a shape with more entries than a number holds", "fit overflow.npy"),
    ("an array of objects", "fit object.npy"),
    ("an array without rows", "fit none.npy"),
    ("a negative entry", "fit negative.csv"),
    ("an infinite entry", "fit infinite.csv"),
    ("NaN", "fit nan.csv"),
    ("an entry too large to be a count", "fit large.csv"),
    ("fractions for an engine of whole counts", "fit fractions.csv --engine gibbs"),
    ("an archive that is none", "fit text.npz"),
    ("rows of two lengths", "fit ragged.csv"),
    ("a word in a cell", "fit word.csv"),
    ("an empty cell", "fit cell.csv"),
    ("a quote without end", "fit quote.csv"),
    ("text that is not UTF-8", "fit latin.csv"),
    ("only a header", "fit header.csv"),
    ("a gzipped file that is none", "fit text.csv.gz"),
    ("a gzipped file that is cut", "fit cut.csv.gz"),
    ("64 MB of blank lines in 100 kB", "fit blank.csv.gz"),
    ("no Matrix Market header", "fit text.mtx"),
    ("more entries promised than there are", "fit promise.mtx"),
    ("more entries than promised", "fit more.mtx"),
    ("an entry outside the matrix", "fit outside.mtx"),
    ("4e9 rows for one entry", "fit hollow.mtx"),
    ("a flag out of its range", "fit table.csv --max-components 0"),
    ("a flag that is NaN", "fit table.csv --a0 nan"),
    ("a noise without scale", "fit table.csv --noise 0"),
    ("a negative noise", "fit table.csv --noise -3"),
    ("a noise that is NaN", "fit table.csv --noise nan"),
    ("a noise nobody knows", "fit table.csv --noise nb"),
    ("a flag of another engine", "fit table.csv --engine gibbs --sweeps 2"),
    ("more components than memory", "fit table.csv --preset paper --max-components 1000000 --chains 1000"),
    ("no such recording", "separate nowhere.wav"),
    ("text that is called a recording", "separate text.wav"),
    ("a recording that is cut", "separate cut.wav"),
    ("a recording without samples", "separate none.wav"),
    ("a silent recording", "separate silent.wav"),
    ("a sample that is NaN", "separate nan.wav"),
    ("a flac header that claims 2^36 samples", "separate claim.flac"),
    ("no such channel", "separate mix.wav --channel 9"),
    ("groups without a group", "separate mix.wav --groups empty.json"),
    ("groups nested ten thousand deep", "separate mix.wav --groups deep.json"),
    ("groups of two megabytes", "separate mix.wav --groups huge.json"),
    ("a device for groups", "separate mix.wav --groups /dev/zero"),
    ("a name that leaves the folder", "separate mix.wav --groups path.json"),
    ("nothing to resume", "resume folder"),
    ("a damaged checkpoint", "resume damaged"),
    ("a checkpoint that claims more than it has", "resume claim"),
];

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn npy(header: &str, values: &[u8]) -> Vec<u8> {
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), values].concat()
}

fn array(descr: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")
}

fn write_files(bench: &Bench) {
    std::fs::create_dir(bench.path("folder")).unwrap();
    bench.write_table("table.csv");
    write_sounds(bench);
    let mix = bench.bytes("mix.wav");
    let sound = |name: &str, samples: Vec<f32>| {
        write(&bench.path(name), &Sound { samples, rate: RATE }, Depth::Float32).unwrap();
    };
    sound("none.wav", vec![]);
    sound("silent.wav", vec![0.0; 5000]);
    let mut nan = mix.clone();
    let place = nan.len() - 400;
    nan[place..place + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    // The last 36 bits before the checksum say how many samples there are.
    let tone = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bpnmf-audio/tests/fixtures/tone.flac");
    let mut flac = std::fs::read(tone).unwrap();
    flac[21] |= 0x0f;
    flac[22..26].fill(0xff);
    let market = "%%MatrixMarket matrix coordinate integer general\n";
    let table: &[u8] = b"1,2\n3,4\n";
    let packed = gzipped(table);
    let cut = packed.len() - 9;
    let header = array("<f8", "(1000000, 1000000)");
    let overflow = array("<f8", "(18446744073709551615, 18446744073709551615)");
    bench.write("empty.csv", b"");
    bench.write("sheet.xlsx", b"anything");
    bench.write("text.npy", b"1,2\n3,4\n5,6\n");
    bench.write("cut.npy", npy(&array("<f8", "(2, 2)"), &[0; 20]));
    bench.write("claim.npy", npy(&header, b""));
    bench.write("overflow.npy", npy(&overflow, b""));
    bench.write("object.npy", npy(&array("|O", "(2, 2)"), &[0; 32]));
    bench.write("none.npy", npy(&array("<f8", "(0, 3)"), b""));
    bench.write("negative.csv", b"1,2\n3,-4\n");
    bench.write("infinite.csv", b"1,2\n3,inf\n");
    bench.write("nan.csv", b"1,2\n3,nan\n");
    bench.write("large.csv", b"1,2\n3,1e16\n");
    bench.write("fractions.csv", b"1,2\n3,0.5\n");
    bench.write("text.npz", b"1,2\n3,4\n5,6\n");
    bench.write("ragged.csv", b"1,2,3\n4,5\n");
    bench.write("word.csv", b"1,2,3\n4,five,6\n");
    bench.write("cell.csv", b"1,2,3\n4,,6\n");
    bench.write("quote.csv", b"\"a,b\n1,2\n");
    bench.write("latin.csv", b"caf\xe9,b\n1,2\n");
    bench.write("header.csv", b"a,b,c\n");
    bench.write("text.csv.gz", table);
    bench.write("cut.csv.gz", &packed[..cut]);
    bench.write("blank.csv.gz", gzipped(&vec![b'\n'; 70_000_000]));
    bench.write("text.mtx", b"1 2 3\n");
    bench.write("promise.mtx", format!("{market}2 3 1000000000000\n1 1 1\n"));
    bench.write("more.mtx", format!("{market}2 3 1\n1 1 1\n2 2 2\n"));
    bench.write("outside.mtx", format!("{market}2 3 1\n3 1 1\n"));
    bench.write("hollow.mtx", format!("{market}4000000000 4 1\n1 1 1\n"));
    bench.write("text.wav", b"once upon a time there was no sound at all");
    bench.write("cut.wav", &mix[..mix.len() / 2]);
    bench.write("nan.wav", nan);
    bench.write("claim.flac", flac);
    bench.write("empty.json", b"{}");
    bench.write("deep.json", "{\"a\": ".repeat(10_000));
    bench.write("huge.json", format!("{{\"a\": [0{}]}}", " ".repeat(2_000_000)));
    bench.write("path.json", b"{\"../a\": [0]}");
    for (folder, bytes) in [
        ("damaged", &[b'x'; 100][..]),
        ("claim", b"BPNMFCKP\x01\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\x7f\0\0\0\0\0\0\0\0"),
    ] {
        std::fs::create_dir_all(bench.path(folder).join("checkpoint")).unwrap();
        std::fs::write(bench.path(folder).join("checkpoint/chain-1.bin"), bytes).unwrap();
    }
}

/// The sentence without the memory of this machine.
fn anywhere(sentence: &str) -> String {
    let mut text = sentence.to_owned();
    for (before, after) in [("memory for ", ": cut"), (", there are ", ": use fewer")] {
        if let Some((start, rest)) = sentence.split_once(before)
            && let Some((_, end)) = rest.split_once(after)
        {
            text = format!("{start}{before}...{after}{end}");
        }
    }
    text
}

fn table() -> String {
    let bench = Bench::new();
    write_files(&bench);
    let mut text = "| what | command | exit code | message |\n|---|---|---|---|\n".to_owned();
    for (what, command) in CASES {
        let out = if command.starts_with("resume") { "" } else { " --out out" };
        let output = bench.run(&format!("{command}{out}"));
        let code = output.status.code().expect("an end of its own");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(output.stdout.is_empty() && message.lines().count() == 1, "{command}: {message}");
        assert!(!exists(&bench.path("out")), "nothing is written: {command}");
        let message = anywhere(message.trim_end()).replace('|', "\\|");
        text += &format!("| {what} | `{command}` | {code} | {message} |\n");
    }
    text
}

#[test]
fn the_table_of_bad_inputs_is_what_the_program_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/robustness.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(BEGIN).expect("the first mark");
    let (now, after) = rest.split_once(END).expect("the second mark");
    let table = format!("\n\n{}\n", table());
    if std::env::var_os("BPNMF_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert!(
        now == table,
        "docs/robustness.md is not what the program says: ./run bad-inputs; it says\n{table}"
    );
}
