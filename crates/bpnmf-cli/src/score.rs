//! `bpnmf score`: how well separated sounds give back the true ones.

mod notes;
mod page;

use crate::args::ScoreArgs;
use crate::failure::Failure;
use crate::separate::samples_in_memory;
use crate::{fit, progress, text};
use bpnmf_audio::{BssEval, Channel, Doubt, Error, Scores, Sound, Unscorable};
use page::Page;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) fn score(args: &ScoreArgs) -> Result<ExitCode, Failure> {
    if let Some(played) = &args.notes {
        text::print(&notes::score(played, &args.estimate, args.json)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = BssEval {
        taps: args.taps,
        permutation: !args.no_permutation,
        threads: fit::thread_count(args.threads)?,
    };
    if options.taps == 0 {
        return Err(Failure::Request("--taps is 0: it must be at least 1".to_owned()));
    }
    let estimates = inside_folder(&args.reference, &args.estimate)?;
    if args.reference.len() != estimates.len() {
        return Err(Failure::Request(format!(
            "there are {} and {}: give one estimate for each reference",
            text::plural(args.reference.len(), "reference", "references"),
            text::plural(estimates.len(), "estimate", "estimates"),
        )));
    }
    let scores = progress::notice(progress::Mode::choose(false, args.json), "scoring", || {
        evaluate(&args.reference, &estimates, &options)
    })?;
    let warnings = scores.doubts.iter().map(|doubt| warning(*doubt, &args.reference, &estimates)).collect();
    let page = Page::new(&args.reference, &estimates, &scores, warnings);
    text::print(&if args.json { page.json() } else { page.table() })?;
    Ok(ExitCode::SUCCESS)
}

/// The estimates: as they are named, or the files in a folder that are named like the references.
fn inside_folder(references: &[PathBuf], estimates: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let [folder] = estimates else { return Ok(estimates.to_vec()) };
    if !folder.is_dir() {
        return Ok(estimates.to_vec());
    }
    let inside = |reference: &PathBuf| {
        let name = reference.file_name().unwrap_or_default();
        let file = folder.join(name);
        if name.is_empty() || !file.is_file() {
            return Err(Failure::Request(format!(
                "{} holds no file {}, the name of a reference: name the estimates one by one",
                folder.display(),
                Path::new(name).display()
            )));
        }
        Ok(file)
    };
    references.iter().map(inside).collect()
}

fn evaluate(references: &[PathBuf], estimates: &[PathBuf], options: &BssEval) -> Result<Scores, Failure> {
    let paths: Vec<&PathBuf> = references.iter().chain(estimates).collect();
    let mut sounds: Vec<Vec<f64>> = Vec::new();
    let mut rate = None;
    for path in &paths {
        let sound = bpnmf_audio::read_within(path, Channel::Mean, samples_in_memory()).map_err(failure)?;
        let length = sounds.first().map_or(sound.samples.len(), Vec::len);
        check_shape(path, &sound, paths[0], length, *rate.get_or_insert(sound.rate))?;
        sounds.push(sound.samples.into_iter().map(f64::from).collect());
    }
    let sounds: Vec<&[f64]> = sounds.iter().map(Vec::as_slice).collect();
    let (references, estimates) = sounds.split_at(references.len());
    bpnmf_audio::bss_eval(references, estimates, options).map_err(failure)
}

/// Whether a sound has the rate and the length of the first one.
fn check_shape(path: &Path, sound: &Sound, other: &Path, length: usize, rate: u32) -> Result<(), Failure> {
    let (path, other) = (path.display(), other.display());
    if sound.rate != rate {
        return Err(Failure::Request(format!(
            "{path} has {} samples a second and {other} has {rate}: all files must have the same rate",
            sound.rate
        )));
    }
    if sound.samples.len() != length {
        return Err(Failure::Request(format!(
            "{path} has {} samples and {other} has {length}: all files must have the same length",
            sound.samples.len()
        )));
    }
    Ok(())
}

/// A doubt with the names of the files.
fn warning(doubt: Doubt, references: &[PathBuf], estimates: &[PathBuf]) -> String {
    match doubt {
        Doubt::SilentReference(i) => format!(
            "{} is silent: it has no scores, and the others are scored as if it were not there",
            references[i].display()
        ),
        Doubt::SilentEstimate(k) => format!("{} is silent: it has no scores", estimates[k].display()),
        Doubt::Unrelated(k) => {
            format!("{} has nothing in common with any reference: it has no SIR", estimates[k].display())
        }
        _ => "delayed copies of the references are mixtures of each other to double precision (one is a filtered \
              copy of another, a band is empty, or they are too short for the filters): scores above 100 dB are \
              lower bounds"
            .to_owned(),
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Unscorable(Unscorable::Threads { .. }) => Failure::Other(error.to_string()),
        _ => Failure::Request(error.to_string()),
    }
}
