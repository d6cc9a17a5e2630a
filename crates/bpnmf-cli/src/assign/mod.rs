//! `bpnmf assign`: known signatures in new samples. A table and signatures become exposures, these become files.

mod output;
mod signatures;

use crate::args::AssignArgs;
use crate::claim::Claim;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::progress::{Mode, notice};
use crate::{fit, input, interrupt, text};
use bpnmf::{AssignOptions, Suspicion, Workers};
use output::{FILES, Results};
use signatures::Signatures;
use std::process::ExitCode;
use std::time::Instant;

/// The most sweeps that anybody can mean.
const MOST_DRAWS: u32 = 1_000_000;

pub(crate) fn assign(args: &AssignArgs) -> Result<ExitCode, Failure> {
    let noise = fit::config::noise(&args.noise)?;
    let workers = Workers::new(fit::thread_count(args.threads)?)?;
    if !(10..=MOST_DRAWS).contains(&args.draws) {
        let refused = format!("--draws is {}: it must be between 10 and {MOST_DRAWS}", args.draws);
        return Err(Failure::Request(refused));
    }
    Claim::check_free(&args.out)?;
    let folder = Folder::unused(&args.out, &FILES, args.force)?;
    let table = input::read(&args.input, &args.table, args.force)?;
    let counts = &table.counts;
    let signatures = Signatures::read(&args.signatures, table.feature_names.as_deref(), counts.features())?;
    let _claim = folder.claim(&FILES, args.force)?;

    let mode = Mode::choose(args.quiet, false);
    if !args.quiet {
        eprintln!("[0:00] {}", input::understood(&table, &args.input.display().to_string()));
    }
    let mut warnings = input::doubts(&table, args.table.transpose);
    warnings.extend(signatures.doubts.iter().cloned());
    warnings.extend(Suspicion::of(counts).map(|found| found.to_string()));
    warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));

    interrupt::listen()?;
    let begin = Instant::now();
    // A table says nothing of how often its signatures are on; a fit does.
    let rounds = if signatures.fitted { 0 } else { AssignOptions::default().rounds };
    let options = AssignOptions { seed: args.seed, draws: args.draws, rounds, noise, ..Default::default() };
    let found = notice(mode, "assigning", || {
        signatures.basis.assign(counts, &options, &workers, &|| !interrupt::requested())
    })?;
    if interrupt::requested() {
        return Err(Failure::Other(format!("interrupted: nothing was written to {}", args.out.display())));
    }
    let results = Results {
        args,
        table: &table,
        signatures: &signatures,
        found: &found,
        warnings,
        seconds: begin.elapsed().as_secs_f64(),
    };
    let staging = folder.staged()?;
    results.write(staging.folder())?;
    staging.commit(&folder, &[], &FILES)?;
    if !args.quiet {
        text::print(&results.for_people(&folder))?;
    }
    Ok(ExitCode::SUCCESS)
}
