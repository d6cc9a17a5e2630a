//! Experiments and measurements, one command each: `cargo run --release -p experiments -- NAME`.

mod rank;
mod speed;

use std::process::ExitCode;

const HELP: &str = "\
usage: cargo run --release -p experiments -- NAME

  rank      how many components are found where the number is known; rank --help says more
  speed     a server for benches/speed.py: reads `CASE WHAT` lines, prints seconds
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("rank") => rank::command(&arguments[1..]),
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
