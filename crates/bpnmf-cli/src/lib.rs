//! The command line: arguments become plain values, plain values a checked configuration, and that one library call.
//!
//! A library of the binary `bpnmf`, so that tests can reach what it reads.

mod args;
mod assign;
mod catalogue;
mod checkpoint;
mod claim;
mod demo;
mod failure;
mod fit;
mod folder;
#[doc(hidden)]
pub mod fuzz;
mod input;
mod interrupt;
mod manual;
mod memory;
mod progress;
mod resume;
mod score;
mod separate;
mod synth;
mod tables;
mod text;

use args::{Cli, Command};
use checkpoint::Start;
use clap::Parser;
use failure::Failure;
use std::env;
use std::panic;
use std::process::ExitCode;

/// The program.
pub fn main() -> ExitCode {
    hide_caught_panics();
    run(Cli::parse()).unwrap_or_else(|failure| failure.report())
}

/// Where the decoder of recordings panics the reader says what is wrong: nobody else needs to.
fn hide_caught_panics() {
    let tell = panic::take_hook();
    panic::set_hook(Box::new(move |what| {
        if !what.location().is_some_and(|place| place.file().contains("symphonia")) {
            tell(what);
        }
    }));
}

fn run(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.command {
        Command::Fit(args) => fit::fit(&args, &Start::Fresh(env::args_os().collect())),
        Command::Assign(args) => assign::assign(&args),
        Command::Separate(args) => separate::separate(&args, &Start::Fresh(env::args_os().collect())),
        Command::Regroup(args) => separate::regroup::regroup(&args),
        Command::Resume(args) => resume::resume(&args),
        Command::Synth(args) => synth::synth(&args),
        Command::Demo(args) => demo::demo(&args),
        Command::Score(args) => score::score(&args),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::manual(&args),
    }
}
