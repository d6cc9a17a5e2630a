//! `bpnmf demo`: plays a piece whose notes are known, takes it apart as `bpnmf separate` does, and compares.

mod comparison;
mod matching;
mod page;
mod truth;

use crate::args::{Cli, Command, DemoArgs};
use crate::checkpoint::Start;
use crate::failure::Failure;
use crate::{separate, text};
use clap::Parser as _;
use comparison::Comparison;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The folder unless somebody asks.
const FOLDER: &str = "bpnmf-demo";

pub(crate) fn demo(args: &DemoArgs) -> Result<ExitCode, Failure> {
    let folder = args.out.clone().unwrap_or_else(|| PathBuf::from(FOLDER));
    truth::check_ours(&folder)?;
    let print = |page: String| if args.quiet { Ok(()) } else { text::print(&page) };
    let piece = bpnmf_audio::piece();
    let command = command(args, &folder);
    print(page::opening(&piece, &command))?;
    truth::write(&folder, &piece)?;
    let Command::Separate(separation) = Cli::parse_from(&command).command else {
        unreachable!("it says separate")
    };
    separate::run(&separation, &Start::Fresh(command), false)?;
    let comparison = Comparison::new(&folder, &piece, &separation.reference)?;
    print(page::findings(&piece, &comparison))?;
    print(page::what_next(&folder))?;
    Ok(ExitCode::SUCCESS)
}

/// What takes the piece apart: a command that anybody could type.
fn command(args: &DemoArgs, folder: &Path) -> Vec<OsString> {
    let mut command: Vec<OsString> = ["bpnmf", "separate"].map(OsString::from).to_vec();
    command.push(folder.join(truth::MIXTURE).into());
    command.push("--reference".into());
    command.extend(truth::stems().map(|stem| folder.join(stem).into()));
    command.extend(["--seed".into(), args.seed.to_string().into(), "--out".into(), folder.into()]);
    command.push("--force".into());
    if args.quiet {
        command.push("--quiet".into());
    }
    command
}
