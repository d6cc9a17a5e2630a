//! Experiments and measurements, one command each: `cargo run --release -p experiments -- NAME`.

mod speed;

use std::process::ExitCode;

const HELP: &str = "\
usage: cargo run --release -p experiments -- NAME

  speed     a server for benches/speed.py: reads `CASE WHAT` lines, prints seconds
";

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
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
