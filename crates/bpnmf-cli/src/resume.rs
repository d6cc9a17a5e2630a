//! `bpnmf resume`: a run that was stopped goes on, as it was asked for.

use crate::args::{Cli, Command, ModelArgs, ResumeArgs};
use crate::checkpoint::{self, Start};
use crate::failure::Failure;
use crate::{fit, separate};
use clap::Parser as _;
use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) fn resume(args: &ResumeArgs) -> Result<ExitCode, Failure> {
    let job = checkpoint::job(&args.folder)?;
    let folder = go_there(&job.directory(), &args.folder)?;
    job.check_inputs()?;
    let command = Cli::try_parse_from(job.arguments()).map(|cli| cli.command);
    match command {
        Ok(Command::Fit(mut fit)) => {
            (fit.out, fit.force) = (folder, true);
            adapt(&mut fit.model, args);
            fit::fit(&fit, &Start::Resumed(job))
        }
        Ok(Command::Separate(mut separation)) => {
            (separation.out, separation.force) = (folder, true);
            adapt(&mut separation.model, args);
            separate::separate(&separation, &Start::Resumed(job))
        }
        _ => Err(Failure::Request(format!(
            "{}: the command line in its checkpoint is not one of fit or separate",
            args.folder.display()
        ))),
    }
}

/// What has nothing to do with the result is what is asked for now.
fn adapt(model: &mut ModelArgs, args: &ResumeArgs) {
    model.threads = args.threads.or(model.threads);
    model.checkpoint_every = args.checkpoint_every.unwrap_or(model.checkpoint_every);
    (model.quiet, model.json_progress, model.verbose) = (args.quiet, args.json_progress, args.verbose);
}

/// Goes to where the command was typed, so that its paths mean what they meant, and gives the name of `folder` there.
fn go_there(directory: &Path, folder: &Path) -> Result<PathBuf, Failure> {
    if env::current_dir().is_ok_and(|here| here == directory) {
        return Ok(folder.to_owned());
    }
    let absolute = std::path::absolute(folder)
        .map_err(|error| Failure::Other(format!("{}: {error}", folder.display())))?;
    // Where it is gone, paths that do not depend on it still lead somewhere.
    let _ = env::set_current_dir(directory);
    Ok(absolute)
}
