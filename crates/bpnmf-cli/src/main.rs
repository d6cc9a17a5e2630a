//! The command line: arguments become plain values, plain values a checked configuration, and that one library call.

mod args;
mod demo;
mod failure;
mod fit;
mod folder;
mod interrupt;
mod progress;
mod score;
mod separate;
mod synth;
mod text;

use args::{Cli, Command};
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(Cli::parse()).unwrap_or_else(|failure| failure.report())
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.command {
        Command::Fit(args) => fit::fit(&args),
        Command::Separate(args) => separate::separate(&args),
        Command::Synth(args) => synth::synth(&args),
        Command::Demo(args) => demo::demo(&args),
        Command::Score(args) => score::score(&args),
    }
}
