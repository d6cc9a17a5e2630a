//! The command line: arguments become plain values, plain values a checked configuration, and that one library call.

mod args;
mod checkpoint;
mod claim;
mod demo;
mod failure;
mod fit;
mod folder;
mod interrupt;
mod memory;
mod progress;
mod resume;
mod score;
mod separate;
mod synth;
mod text;

use args::{Cli, Command};
use checkpoint::Start;
use clap::Parser;
use failure::Failure;
use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    run(Cli::parse()).unwrap_or_else(|failure| failure.report())
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.command {
        Command::Fit(args) => fit::fit(&args, &Start::Fresh(env::args_os().collect())),
        Command::Separate(args) => separate::separate(&args, &Start::Fresh(env::args_os().collect())),
        Command::Resume(args) => resume::resume(&args),
        Command::Synth(args) => synth::synth(&args),
        Command::Demo(args) => demo::demo(&args),
        Command::Score(args) => score::score(&args),
    }
}
