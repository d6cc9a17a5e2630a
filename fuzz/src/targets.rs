//! Every reader as a function of damaged bytes.

use crate::damage::{Script, damaged};
use crate::seeds;
use bpnmf_audio::Channel;
use bpnmf_io::ReadOptions;
use flate2::{Compression, write::GzEncoder};
use std::io::{Cursor, Write};
use std::path::Path;
use zip::write::SimpleFileOptions;

/// The memory that a reader may take for the values of a file.
const MEMORY: u64 = 1 << 26;

/// The most samples of a recording.
const SAMPLES: u64 = 1 << 20;

/// Words of the command line that are no flags.
const WORDS: [&str; 22] = [
    "x.csv",
    "--out",
    "o",
    "0",
    "1",
    "2",
    "-1",
    "0.5",
    "1e400",
    "nan",
    "-inf",
    "99999999999999999999",
    "",
    "--",
    "-",
    "--=",
    "-k",
    "--seed=",
    "é",
    "a b",
    "--threads=1",
    "../x",
];

type Maker = Box<dyn Fn(&mut Script<'_>) -> Vec<u8>>;
type Reader = Box<dyn Fn(&[u8]) -> bool>;

/// A reader, and files that it reads.
pub struct Target {
    /// The name of the format.
    pub name: &'static str,
    /// Of a thousand executions so many are its.
    pub share: u32,
    make: Maker,
    read: Reader,
}

impl Target {
    /// The damaged file that a script makes.
    pub fn file(&self, script: &[u8]) -> Vec<u8> {
        (self.make)(&mut Script::new(script))
    }

    /// Whether a file is read; an error is a no, a panic is a mistake of the reader.
    pub fn read(&self, bytes: &[u8]) -> bool {
        (self.read)(bytes)
    }
}

/// All of them.
pub fn targets() -> Vec<Target> {
    let plain = |name, share, seeds: Vec<Vec<u8>>, read: Reader| Target {
        name,
        share,
        make: Box::new(move |script| damaged(&seeds, script)),
        read,
    };
    let packed = |name, share, seeds: Vec<Vec<u8>>, pack: fn(&[u8]) -> Vec<u8>, read: Reader| Target {
        name,
        share,
        make: Box::new(move |script| pack(&damaged(&seeds, script))),
        read,
    };
    let standings = seeds::standings();
    let checkpoints: Vec<Vec<u8>> =
        standings.iter().map(|standing| bpnmf_cli::fuzz::checkpoint_of(standing)).collect();
    let words = bpnmf_cli::fuzz::words();
    vec![
        plain("npy", 135, seeds::npy(), matrix("x.npy")),
        plain("npz", 100, seeds::npz(), matrix("x.npz")),
        packed("npz, an array", 60, seeds::npy(), zipped, matrix("x.npz")),
        plain("csv", 120, seeds::tables(), matrix("x.csv")),
        plain("tsv", 20, seeds::tables(), matrix("x.tsv")),
        plain("txt", 40, seeds::tables(), matrix("x.txt")),
        packed("csv.gz", 20, seeds::tables(), gzipped, matrix("x.csv.gz")),
        plain("mtx", 120, seeds::mtx(), matrix("x.mtx")),
        plain("mtx.gz", 40, seeds::mtx_gz(), matrix("x.mtx.gz")),
        packed("mtx.gz, its text", 20, seeds::mtx(), gzipped, matrix("x.mtx.gz")),
        plain("h5ad", 40, seeds::hdf5(), matrix("x.h5ad")),
        plain("wav", 25, seeds::wav(), sound()),
        plain("aiff", 15, seeds::aiff(), sound()),
        plain("flac", 20, seeds::flac(), sound()),
        plain("mp3", 15, seeds::mp3(), sound()),
        plain("ogg", 10, seeds::ogg(), sound()),
        packed("ogg, repaired", 15, seeds::ogg(), pages_repaired, sound()),
        plain("checkpoint", 80, standings, Box::new(|bytes| bpnmf::Checkpoint::read(bytes).is_ok())),
        plain(
            "checkpoint, its file",
            15,
            checkpoints.clone(),
            Box::new(|bytes| bpnmf_cli::fuzz::checkpoint(bytes, false)),
        ),
        plain(
            "checkpoint, repaired",
            30,
            checkpoints,
            Box::new(|bytes| bpnmf_cli::fuzz::checkpoint(bytes, true)),
        ),
        plain("groups.json", 55, seeds::groups(), Box::new(bpnmf_cli::fuzz::groups)),
        Target {
            name: "command line",
            share: 5,
            make: Box::new(move |script| command_line(&words, script)),
            read: Box::new(|bytes| {
                let text = String::from_utf8_lossy(bytes);
                bpnmf_cli::fuzz::arguments(&text.split('\n').map(str::to_owned).collect::<Vec<_>>())
            }),
        },
    ]
}

/// Reads a matrix as the name says, in one of four ways.
fn matrix(name: &'static str) -> Reader {
    Box::new(move |bytes| {
        let mut options = ReadOptions::default();
        let way = bytes.len() % 4;
        (options.transpose, options.missing) = (way & 1 == 1, way & 2 == 2);
        options.memory = Some(MEMORY);
        match bpnmf_io::read_bytes(Path::new(name), bytes, &options) {
            Ok(table) => {
                let counts = table.counts;
                assert!(counts.total().is_finite() && counts.ln_factorials().is_finite());
                let long = |names: &Option<Vec<String>>, length| {
                    names.as_ref().is_none_or(|names| names.len() == length)
                };
                assert!(long(&table.feature_names, counts.features()));
                assert!(long(&table.observation_names, counts.observations()));
                true
            }
            Err(error) => {
                let sentence = error.to_string();
                assert!(sentence.len() < 100_000 && sentence.starts_with(name));
                false
            }
        }
    })
}

fn sound() -> Reader {
    Box::new(|bytes| {
        let channel = if bytes.len() % 4 == 0 { Channel::One(2) } else { Channel::Mean };
        let sound = bpnmf_audio::read_bytes(Path::new("sound"), bytes, channel, SAMPLES);
        sound.is_ok_and(|sound| {
            assert!(
                sound.samples.len() as u64 <= SAMPLES && sound.samples.iter().all(|value| value.is_finite())
            );
            true
        })
    })
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).expect("memory takes it");
    out.finish().expect("memory takes it")
}

/// The pages of an ogg file with the checksums that belong to them.
fn pages_repaired(bytes: &[u8]) -> Vec<u8> {
    const CHECKSUM: std::ops::Range<usize> = 22..26;
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    while let Some(start) = bytes[at..].windows(4).position(|four| four == b"OggS").map(|found| at + found) {
        let segments = bytes.get(start + 26).map_or(0, |&segments| usize::from(segments));
        let Some(table) = bytes.get(start + 27..start + 27 + segments) else { break };
        let length = 27 + segments + table.iter().map(|&length| usize::from(length)).sum::<usize>();
        let end = bytes.len().min(start + length);
        let page = &mut bytes[start..end];
        page[CHECKSUM].fill(0);
        let sum = page.iter().fold(0u32, |sum, &byte| {
            (0..8).fold(sum ^ u32::from(byte) << 24, |sum, _| {
                sum << 1 ^ if sum >> 31 == 1 { 0x04c1_1db7 } else { 0 }
            })
        });
        page[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
        at = end;
    }
    bytes
}

/// An archive whose checksums are right.
fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut out = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    out.start_file("X.npy", stored).expect("memory takes it");
    out.write_all(bytes).expect("memory takes it");
    out.finish().expect("memory takes it").into_inner()
}

/// Words, one a line.
fn command_line(flags: &[String], script: &mut Script<'_>) -> Vec<u8> {
    let mut words =
        vec!["bpnmf", *script.pick(&["fit", "fit", "separate", "separate", "synth", "score", "resume", "x"])];
    if script.below(3) > 0 {
        words.extend(["in.csv", "--out", "o"]);
    }
    for _ in 0..script.below(6) {
        words.push(if script.below(2) == 0 {
            script.pick::<&str>(&WORDS)
        } else {
            script.pick::<String>(flags)
        });
    }
    words.join("\n").into_bytes()
}
