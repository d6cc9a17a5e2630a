//! Experiments and measurements, one command each: `cargo run --release -p experiments -- NAME`.

mod assign;
mod audio;
mod calibration;
mod clip;
mod document;
mod files;
mod flags;
mod quintet;
mod rank;
mod recording;
mod sheet;
mod signatures;
mod speed;
mod spread;
mod transcription;

use std::process::ExitCode;

const HELP: &str = "\
usage: cargo run --release -p experiments -- NAME

  assign    known signatures in new samples, beside least squares; assign --help says more
  audio     decode, resample or stft: writes what tests/audio_peers.py compares; filter times the filter
  calibration  how often the interval of the number of components holds the truth; calibration --help says more
  clip      two short clips: their notes, and two stems; clip --help says more
  notes     the notes found in recordings whose notes are known; notes --help says more
  quintet   five instruments taken apart, beside the paper and KL-NMF; quintet --help says more
  rank      how many components are found where the number is known; rank --help says more
  signatures  counts that scatter more than Poisson: mutational signatures and others; signatures --help says more
  speed     a server for benches/speed.py: reads `CASE WHAT` lines, prints seconds
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("assign") => assign::command(&arguments[1..]),
        Some("audio") => audio::command(&arguments[1..]),
        Some("calibration") => calibration::command(&arguments[1..]),
        Some("clip") => clip::command(&arguments[1..]),
        Some("notes") => transcription::command(&arguments[1..]),
        Some("quintet") => quintet::command(&arguments[1..]),
        Some("rank") => rank::command(&arguments[1..]),
        Some("signatures") => signatures::command(&arguments[1..]),
        Some("speed") => speed::serve(),
        Some("--help" | "-h" | "help") => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("{HELP}");
            ExitCode::from(2)
        }
    }
}
