//! How many components are found where it is known how many there are.

mod data;
mod dump;
mod sound;
mod swimmer;

use std::process::ExitCode;

/// `rank ...`.
pub(crate) fn command(arguments: &[String]) -> ExitCode {
    let result = match arguments.first().map(String::as_str) {
        Some("dump") => dump::command(&arguments[1..]),
        _ => Err("usage: rank dump NAME SEED OUT.npy".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::from(2)
        }
    }
}
