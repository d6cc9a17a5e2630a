//! Known signatures in samples whose exposures are known, beside non-negative least squares: `assign --help` says how to ask.

mod made;
mod squares;

use crate::document;
use crate::flags::Flags;
use bpnmf::{AssignOptions, Basis, Workers};
use made::{Cohort, Kind};
use squares::Squares;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

const HELP: &str = "\
usage: ./run assign [OPTIONS]

  --quick         one seed and a few samples of a part of the sets; ends with an error if a set misses
  --samples N     samples of a set; by default 40
  --seeds N       sets of a kind; by default 3
  --threads N     threads; by default all there are
  --out PATH      the document the table goes into; docs/assign.md if all is run
";

/// What stands around the table.
const AROUND: &str = "\
# Known signatures in new samples

`bpnmf assign NEW --signatures FILE --out DIR` says of every new sample how much of each known signature is in it, whether
it is there at all, and how sure that is. The model is that of the fits with W known: X_ft ~ Poisson(sum_k W_fk H_kt
S_kt), columns of W add up to 1. Of a table of signatures nothing else is known, so it is learned from the samples: with
N_t the counts of sample t, the shares H_kt / N_t of the signatures that are on are gamma with a shape and a rate of their
own, pi_k is beta, and counts scatter with the variance rate + rate^2 / alpha if they do so clearly. These numbers
maximise the likelihood, in rounds of sampling and maximising; a sample has pi_k as the other samples tell it. Then the
exact sampler runs for each sample by itself, with moves in which a signature hands its counts to one that resembles it,
shares them with it or takes them over. Of the folder of a fit the prior, pi and alpha of that fit are taken, and a sample
has the same numbers alone and among others. What the interval does not know is an error of the signatures themselves.

The table holds it against non-negative least squares, where the truth is known: 60 signatures of 96 types of mutations
are made up, most with a few peaks, some nearly flat. A sample has some of them, with exposures from a flat Dirichlet
distribution. *each*: every sample has signatures of its own. *cohort*: so many are active at all, and a sample has about
half of them. *scattered*: the counts are negative binomial, alpha 30, else Poisson. All samples of a set are assigned
together.

F1 is that of saying which signatures are present, over all samples of all seeds; for `assign` those from the probability
on at which the expected F1 is largest, which is 0.5 or less (`present_from` in `summary.json`). NNLS: non-negative least
squares, and what has a smaller share than the cut-off is removed and the others are fitted again, the smallest first. The
cut-offs in use are between 1 and 6 %; the best of the three is the one to beat. *Cover* is how often the 90 % interval of
an exposure has the true one in it, over the exposures that are said to be present (a signature that is not there has 0),
which shall be from 85 to 95 %; *of present* over the signatures that are there, found or not.
";

/// Cut-offs of the least squares.
const CUTS: [f64; 3] = [0.01, 0.03, 0.06];

/// What coverage shall be.
const COVER: [f64; 2] = [0.85, 0.95];

/// `assign ...`: 2 if it could not be run, 1 if the quick form misses.
pub(crate) fn command(arguments: &[String]) -> ExitCode {
    if matches!(arguments.first().map(String::as_str), Some("--help" | "-h" | "help")) {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match study(arguments) {
        Ok(met) => ExitCode::from(u8::from(!met)),
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::from(2)
        }
    }
}

/// What was said about presence.
#[derive(Debug, Clone, Copy, Default)]
struct Presence {
    said: f64,
    there: f64,
    right: f64,
}

impl Presence {
    fn add(&mut self, said: bool, there: bool) {
        self.said += f64::from(u8::from(said));
        self.there += f64::from(u8::from(there));
        self.right += f64::from(u8::from(said && there));
    }

    fn f1(&self) -> f64 {
        2.0 * self.right / (self.said + self.there).max(1.0)
    }
}

/// A share of cases.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    yes: f64,
    all: f64,
}

impl Share {
    fn add(&mut self, yes: bool) {
        self.yes += f64::from(u8::from(yes));
        self.all += 1.0;
    }

    fn get(&self) -> f64 {
        self.yes / self.all.max(1.0)
    }
}

/// All seeds of a kind of set.
#[derive(Default)]
struct Outcome {
    assigned: Presence,
    squares: [Presence; CUTS.len()],
    cover: Share,
    of_present: Share,
    alphas: Vec<f64>,
    seconds: f64,
}

impl Outcome {
    fn met(&self) -> bool {
        let best = self.squares.iter().map(Presence::f1).fold(0.0, f64::max);
        self.assigned.f1() >= best && (COVER[0]..=COVER[1]).contains(&self.cover.get())
    }

    fn add(&mut self, cohort: &Cohort, seed: u64, workers: &Workers) -> Result<(), String> {
        let tell = |error: bpnmf::Error| error.to_string();
        let components = made::SIGNATURES;
        let start = Instant::now();
        let basis = Basis::known(made::FEATURES, &cohort.signatures, components).map_err(tell)?;
        let options = AssignOptions { seed, ..AssignOptions::default() };
        let found = basis.assign(&cohort.counts, &options, workers, &|| true).map_err(tell)?;
        self.seconds += start.elapsed().as_secs_f64();
        self.alphas.push(found.noise.alpha().unwrap_or(f64::INFINITY));
        let least = found.present_from();
        for (i, &truth) in cohort.exposures.iter().enumerate() {
            let said = found.inclusion[i] >= least;
            self.assigned.add(said, truth > 0.0);
            let [low, high] = [0, 1].map(|end| f64::from(found.intervals[end][i]));
            if said {
                self.cover.add((low..=high).contains(&truth));
            }
            if truth > 0.0 {
                self.of_present.add((low..=high).contains(&truth));
            }
        }
        let squares = Squares::new(&cohort.signatures, made::FEATURES, components);
        for (t, truth) in cohort.exposures.chunks_exact(components).enumerate() {
            let mut x = vec![0.0; made::FEATURES];
            cohort.counts.column(t).positive().for_each(|(f, value)| x[f] = value);
            for (presence, cut) in self.squares.iter_mut().zip(CUTS) {
                let weights = squares.above(&x, cut);
                weights.iter().zip(truth).for_each(|(w, truth)| presence.add(*w > 0.0, *truth > 0.0));
            }
        }
        Ok(())
    }

    fn row(&self, kind: Kind, samples: usize) -> String {
        let mut alphas = self.alphas.clone();
        alphas.sort_by(f64::total_cmp);
        let alpha = alphas[alphas.len() / 2];
        let alpha = if alpha.is_finite() { format!("{alpha:.0}") } else { "infinite".to_owned() };
        let squares: Vec<String> = self.squares.iter().map(|of| format!("{:.3}", of.f1())).collect();
        let seconds = 1000.0 * self.seconds / (samples * self.alphas.len()) as f64;
        format!(
            "| {kind} | {:.3} | {} | {:.3} | {:.3} | {alpha} | {seconds:.0} | {} |\n",
            self.assigned.f1(),
            squares.join(" | "),
            self.cover.get(),
            self.of_present.get(),
            if self.met() { "ok" } else { "MISSED" }
        )
    }
}

fn study(arguments: &[String]) -> Result<bool, String> {
    let flags = Flags::parse("assign", arguments, &["--samples", "--seeds"])?;
    let workers =
        Workers::new(flags.number("--threads")?.unwrap_or(0) as usize).map_err(|error| error.to_string())?;
    let samples = flags.number("--samples")?.unwrap_or(if flags.quick { 12 } else { 40 }) as usize;
    let seeds = flags.number("--seeds")?.unwrap_or(if flags.quick { 1 } else { 3 });
    let out: Option<PathBuf> = flags.out("docs/assign.md");
    if let Some(path) = &out {
        document::check(path)?;
    }
    let mut table = "| samples | F1 | NNLS, 1 % | 3 % | 6 % | cover | of present | alpha | ms a sample | |\n\
                     |---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let mut met = true;
    for kind in made::kinds(flags.quick) {
        let mut outcome = Outcome::default();
        for seed in 1..=seeds {
            outcome.add(&Cohort::new(kind, samples, seed)?, seed, &workers)?;
        }
        met &= outcome.met();
        let row = outcome.row(kind, samples);
        print!("{row}");
        table.push_str(&row);
    }
    if let Some(path) = out {
        let threads = workers.threads();
        let on = if threads == 1 { "one thread".into() } else { format!("{threads} threads") };
        let mut new = format!("`{}` prints this, on {on}:\n\n", flags.command);
        let _ = writeln!(new, "{table}");
        document::write(&path, AROUND, &new)?;
        println!("written to {}", path.display());
    }
    Ok(met || !flags.quick)
}
