//! What a shell and a manual know of the commands: made of the same arguments as the help.

use crate::args::{Cli, CompletionsArgs, ManualArgs};
use crate::failure::Failure;
use crate::text;
use clap::CommandFactory;
use std::process::ExitCode;

/// `bpnmf completions`.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "bpnmf", &mut script);
    text::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// `bpnmf man`.
pub(crate) fn manual(args: &ManualArgs) -> Result<ExitCode, Failure> {
    let failed = |error: std::io::Error| Failure::Other(format!("the manual could not be written: {error}"));
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder).map_err(failed)?;
        clap_mangen::generate_to(Cli::command(), folder).map_err(failed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(failed)?;
    text::print(&String::from_utf8_lossy(&page))?;
    Ok(ExitCode::SUCCESS)
}
