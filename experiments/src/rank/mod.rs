//! How many components are found where it is known how many there are: `rank --help` says how to ask.

mod change;
pub(crate) mod data;
mod dump;
pub(crate) mod fit;
pub(crate) mod made;
pub(crate) mod matching;
mod options;
mod rows;
pub(crate) mod rules;
mod sheet;
mod sound;
mod swimmer;
mod table;

use crate::document;
use crate::sheet::Sheet;
use bpnmf::Workers;
use data::{Data, Trouble};
use fit::Found;
use options::Options;
use rows::{Case, Row};
use rules::Outcome;
use std::path::Path;
use std::process::ExitCode;
use table::Done;

/// `rank ...`: 2 if it could not be run, 1 if a quick check failed.
pub(crate) fn command(arguments: &[String]) -> ExitCode {
    let result = match arguments.first().map(String::as_str) {
        Some("--help" | "-h" | "help") => {
            print!("{}", options::help());
            Ok(ExitCode::SUCCESS)
        }
        Some("dump") => dump::command(&arguments[1..]).map(|()| ExitCode::SUCCESS),
        _ => Options::parse(arguments).and_then(|options| suite(&options)),
    };
    result.unwrap_or_else(|reason| {
        eprintln!("{reason}");
        ExitCode::from(2)
    })
}

fn suite(options: &Options) -> Result<ExitCode, String> {
    let workers = Workers::new(options.threads).map_err(|error| error.to_string())?;
    if let Some(path) = &options.out {
        document::check(path)?;
    }
    let rows = options.rows()?;
    let mut sheet = options.csv.as_deref().map(|path| Sheet::create(path, sheet::HEAD)).transpose()?;
    let mut done = Vec::new();
    for row in rows {
        done.push(run(row, options, sheet.as_mut(), &workers)?);
    }
    println!("\n{}", table::markdown(&done));
    if let Some(path) = &options.out {
        table::write(path, &done, &options.command, workers.threads())?;
        println!("written to {}", path.display());
    }
    // The whole suite is a measurement, its misses are in the table; the quick one is a check.
    let missed = |done: &Done| !done.outcomes.is_empty() && !done.row.rule.judge(&done.outcomes).met;
    Ok(if options.quick && done.iter().any(missed) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// All fits of a row; none if a file is absent.
fn run(
    row: Row,
    options: &Options,
    mut sheet: Option<&mut Sheet>,
    workers: &Workers,
) -> Result<Done, String> {
    let (mut outcomes, mut literal) = (Vec::new(), None);
    let mut loaded: Option<(Case, Data)> = None;
    for (i, &case) in row.cases.iter().enumerate() {
        let data = match loaded.take() {
            Some((last, data)) if last.shares_data(&case) => Ok(data),
            _ => load(&case, options.digits.as_deref()),
        };
        let data = match data {
            Ok(data) => data,
            Err(trouble @ Trouble::Absent(_)) => {
                println!("{}: skipped: {trouble}", row.name);
                outcomes.clear();
                break;
            }
            Err(trouble) => return Err(format!("{}: {trouble}", row.name)),
        };
        let found = fit::auto(&data.counts, case.truncation, options.restarts, case.fit_seed, workers);
        let outcome = judged(case, &data, &found);
        println!("{}: {}: {}", row.name, label(&data, &case), told(&outcome));
        if let Some(sheet) = &mut sheet {
            sheet.add(&sheet::line(row.name, &outcome))?;
        }
        outcomes.push(outcome);
        if row.literal && i == 0 {
            let outcome = judged(case, &data, &fit::literal(&data.counts, case.fit_seed, workers));
            println!("{}: {}, as printed: {}", row.name, data.name, told(&outcome));
            literal = Some(outcome.found);
        }
        loaded = Some((case, data));
    }
    Ok(Done { row, outcomes, literal })
}

/// The data of a fit.
fn load(case: &Case, digits: Option<&Path>) -> Result<Data, Trouble> {
    let data = case.set.load(case.data_seed, digits)?;
    match case.change {
        Some(change) => change.apply(data, case.data_seed),
        None => Ok(data),
    }
}

/// A fit held against the truth.
fn judged(case: Case, data: &Data, found: &Found) -> Outcome {
    let parts = data.truth.as_ref().map_or(&[][..], |truth| &truth.parts);
    let observations = data.counts.observations();
    Outcome {
        case,
        truth: data.truth.as_ref().map(|truth| truth.components),
        found: found.components,
        cosine: matching::least_cosine(parts, observations, &found.dictionary, found.components),
        seconds: found.seconds,
    }
}

fn label(data: &Data, case: &Case) -> String {
    let truncation = case.truncation.map_or_else(String::new, |k| format!(", truncation {k}"));
    format!("{}, fit {}{truncation}", data.name, case.fit_seed)
}

fn told(outcome: &Outcome) -> String {
    let truth = outcome.truth.map_or_else(String::new, |truth| format!(" of {truth}"));
    let cosine = outcome.cosine.map_or_else(String::new, |cosine| format!(", cosine {cosine:.3}"));
    format!("K {}{truth}{cosine}, {:.2} s", outcome.found, outcome.seconds)
}
