//! What the program reads, in reach of tests that damage it. Nobody else should use it.

use crate::args::{Cli, Command};
use crate::checkpoint;
use crate::fit::config::Request;
use crate::separate::groups::Groups;
use clap::{CommandFactory as _, Parser as _};
use std::path::Path;

/// A groups.json; whether it was read.
pub fn groups(bytes: &[u8]) -> bool {
    let text = str::from_utf8(bytes);
    let groups = text.map(|text| Groups::parse(Path::new("groups.json"), text));
    groups.is_ok_and(|groups| groups.is_ok_and(|groups| groups.stems(8, &[]).is_ok()))
}

/// A checkpoint; whether it was read. With `mend` its length and checksum are made right first.
pub fn checkpoint(bytes: &[u8], mend: bool) -> bool {
    checkpoint::reads(bytes, mend)
}

/// A whole checkpoint with what the library wrote in it.
pub fn checkpoint_of(standing: &[u8]) -> Vec<u8> {
    checkpoint::sample(standing)
}

/// A command line, the name of the program first; whether it could run, as far as one knows without its files.
pub fn arguments(words: &[String]) -> bool {
    let model = match Cli::try_parse_from(words).map(|cli| cli.command) {
        Ok(Command::Fit(fit)) => fit.model,
        Ok(Command::Separate(separate)) => separate.model,
        Ok(_) => return true,
        Err(_) => return false,
    };
    Request::check(&model).is_ok()
}

/// Every flag, and every value that a flag has a list of.
pub fn words() -> Vec<String> {
    let mut words = Vec::new();
    for command in Cli::command().get_subcommands() {
        for argument in command.get_arguments() {
            words.extend(argument.get_long().map(|name| format!("--{name}")));
            words.extend(argument.get_possible_values().iter().map(|value| value.get_name().to_owned()));
        }
    }
    words.retain(|word| word != "--help" && word != "--version" && word != "--threads");
    words
}
