//! Two short clips of ten known notes: how many parts are found, whether they are the notes, and two stems out of them.

mod notes;

use crate::document;
use crate::flags::Flags;
use crate::rank::matching;
use crate::recording::{Recording, Score, Trouble};
use crate::spread::Spread;
use bpnmf::Workers;
use bpnmf_audio::Grouping;
use notes::{CLIPS, Clip, INSTRUMENTS};
use std::process::ExitCode;

const WINDOW: usize = 512;

/// A note counts as found from this cosine on.
const FOUND: f64 = 0.95;

const HELP: &str = "\
usage: cargo run --release -p experiments -- clip [OPTIONS]

  --quick       one seed
  --seeds N     seeds of the fits, from 1 on; 10
  --threads N   threads of a fit; by default all there are
  --out PATH    the document the table goes into; docs/clip.md unless it is a quick run

The variable BPNMF_DATA names the folder of the data that is read, by default ../shared/data.
";

const AROUND: &str = "\
# Two clips of ten notes

A clarinet and an electric piano play five notes each, 2.75 s at 22,050 Hz, window 512, hop 256: all as
`bpnmf separate` does it. In `clip_identifiable` the notes come in enough combinations to be told apart: there are 10 parts. In
`clip_paper`, made in the order of the paper's clip, there are 8 different pairs of notes, whose note-design matrix has rank 7:
that there are 10 notes cannot be told from the recording.

K is the number of parts found. A true note has the mean spectrum of its stem while it sounds alone there; parts are
matched to notes one to one, the closest pair first, and a note left over has cosine 0. SDR, SIR, SAR: BSS Eval of
`--stems 2`, nobody telling which parts belong together, in the order that suits best; the mean of the two instruments, in dB.
Two columns are limits to hold that against: the same parts given to the instruments by the true stems (`--pick all`), and
the recording itself in place of both stems. Medians over the seeds of the fit, and (least..largest).
";

/// `clip ...`: 2 if it could not be run.
pub(crate) fn command(arguments: &[String]) -> ExitCode {
    if matches!(arguments.first().map(String::as_str), Some("--help" | "-h" | "help")) {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let done = Flags::parse("clip", arguments, &["--seeds"]).and_then(|flags| study(&flags));
    done.map_or_else(
        |reason| {
            eprintln!("{reason}");
            ExitCode::from(2)
        },
        |()| ExitCode::SUCCESS,
    )
}

/// One fit.
struct Outcome {
    components: usize,
    /// Of every note.
    cosines: Vec<f64>,
    stems: Score,
    picked: Score,
    seconds: f64,
}

fn study(flags: &Flags) -> Result<(), String> {
    let seeds = flags.number("--seeds")?.unwrap_or(if flags.quick { 1 } else { 10 });
    let workers =
        Workers::new(flags.number("--threads")?.unwrap_or(0) as usize).map_err(|error| error.to_string())?;
    let out = flags.out("docs/clip.md");
    if let Some(path) = &out {
        document::check(path)?;
    }
    let mut table = String::from(
        "| clip | parts | K | notes found | least cosine | SDR | SIR | SAR | SDR, parts picked | SDR, nothing done | seconds |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for clip in &CLIPS {
        let recording = match Recording::load(clip.folder, &INSTRUMENTS, WINDOW, None) {
            Ok(recording) => recording,
            Err(Trouble::Absent(reason)) => {
                println!("{}: skipped: {reason}", clip.folder);
                table +=
                    &format!("| {} | | not run: its files are not there | | | | | | | | |\n", clip.folder);
                continue;
            }
            Err(Trouble::Bad(reason)) => return Err(reason),
        };
        let mut outcomes = Vec::new();
        for seed in 1..=seeds {
            outcomes.push(fitted(clip, &recording, seed, &workers)?);
        }
        let nothing = recording.score(recording.mixtures(), false)?;
        table += &row(clip, &outcomes, &nothing);
    }
    println!("\n{table}");
    if let Some(path) = out {
        let many = if seeds == 1 { "seed 1".into() } else { format!("seeds 1 to {seeds}") };
        let new = format!(
            "`{}` prints this, with {many}, on {} threads:\n\n{table}\n\
             A note is found if its cosine is at least {FOUND}.\n",
            flags.command,
            workers.threads()
        );
        document::write(&path, AROUND, &new)?;
        println!("written to {}", path.display());
    }
    Ok(())
}

fn fitted(clip: &Clip, recording: &Recording, seed: u64, workers: &Workers) -> Result<Outcome, String> {
    let separated = recording.separated(seed, workers)?;
    let parts = &separated.parts;
    let spectra = clip.spectra(recording);
    let columns: Vec<&[f64]> = spectra.iter().map(Vec::as_slice).collect();
    let cosines = matching::cosines(&columns, &parts.dictionary(), parts.components());
    let stems = recording.blind(&separated);
    let outcome = Outcome {
        components: parts.components(),
        cosines,
        stems: recording.score(stems, true)?,
        picked: recording.score(recording.stems(parts, &Grouping::PickAll(&recording.sources)), false)?,
        seconds: separated.seconds,
    };
    let cosines: Vec<String> = outcome.cosines.iter().map(|cosine| format!("{cosine:.2}")).collect();
    eprintln!(
        "{}, seed {seed}: K {}, cosines {}, SDR {:.2}, picked {:.2}, {:.1} s",
        clip.folder,
        outcome.components,
        cosines.join(" "),
        outcome.stems.means[0],
        outcome.picked.means[0],
        outcome.seconds
    );
    Ok(outcome)
}

fn row(clip: &Clip, outcomes: &[Outcome], nothing: &Score) -> String {
    let told = |digits: usize, figure: &dyn Fn(&Outcome) -> f64| {
        Spread::of(outcomes.iter().map(figure)).told(digits)
    };
    let found = |outcome: &Outcome| outcome.cosines.iter().filter(|&&cosine| cosine >= FOUND).count() as f64;
    let least = |outcome: &Outcome| outcome.cosines.iter().copied().fold(1.0, f64::min);
    let components: Vec<String> = outcomes.iter().map(|outcome| outcome.components.to_string()).collect();
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.2} | {} |\n",
        clip.folder,
        clip.truth,
        components.join(" "),
        told(0, &found),
        told(2, &least),
        told(2, &|outcome| outcome.stems.means[0]),
        told(2, &|outcome| outcome.stems.means[1]),
        told(2, &|outcome| outcome.stems.means[2]),
        told(2, &|outcome| outcome.picked.means[0]),
        nothing.means[0],
        told(1, &|outcome| outcome.seconds),
    )
}
