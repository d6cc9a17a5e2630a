//! How sure the number of components is: how often its 90 % interval holds the truth, and how wide it is. `calibration --help`
//! says how to ask.

use crate::document;
use crate::flags::Flags;
use crate::rank::data::Trouble;
use crate::rank::fit::{self, Found};
use crate::rank::made;
use crate::sheet::Sheet;
use bpnmf::{Counts, Recipe, Stream, Workers};
use std::fmt;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
usage: ./run calibration [OPTIONS]

  --only FAMILIES  only these, with commas in between: low_rank_MEAN, recipe, scattered_ALPHA, model, model_scattered;
                   the beginning of a name stands for all that begin so
  --sets N         data sets of a family; by default 25, and 100 of each that is drawn from the model
  --first-seed N   the seeds of the data begin with N; by default with 1
  --quick          three sets of four families, as a check: it fails if more than two intervals miss the truth
  --threads N      threads of a fit; by default all there are
  --out PATH       the document the table goes into; docs/calibration.md if all is run
  --csv PATH       a line for every fit
";

const AROUND: &str = "\
# How sure is the number?

The 90 % interval of the number of components that `bpnmf fit` prints, by default settings, on data whose number is known.
*Held* is the share of the data sets whose interval holds the true number, *width* the mean of last less first number of the
interval. The first sets of every family are fitted twice, with two seeds: *overlap* is the share of those pairs whose
intervals overlap, *same* of those that report the same number.
";

const HEAD: &str = "family,seed,fit_seed,truth,found,first,last,seconds";

/// Data sets of a family that are fitted twice.
const TWICE: u64 = 8;

/// A kind of data.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Family {
    /// Rank 10, W and H of shape 1/2, 100 x 200, Poisson counts with this mean.
    LowRank(f64),
    /// The paper's recipe, 75 x 1000.
    Recipe,
    /// Negative binomial counts, 96 x 100, 3 to 10 components, mean 300.
    Scattered(f64),
    /// Everything drawn from the model, mean count about 4; scattered with alpha = 20 or not.
    Model { scattered: bool },
}

const LEVELS: [f64; 8] = [0.46, 1.0, 2.0, 4.7, 20.0, 100.0, 500.0, 3000.0];
const ALPHAS: [f64; 3] = [5.0, 20.0, 100.0];

fn families() -> Vec<Family> {
    let mut all: Vec<Family> = LEVELS.map(Family::LowRank).into();
    all.push(Family::Recipe);
    all.extend(ALPHAS.map(Family::Scattered));
    all.extend([false, true].map(|scattered| Family::Model { scattered }));
    all
}

/// Its name on the command line.
impl fmt::Display for Family {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LowRank(mean) => write!(out, "low_rank_{mean}"),
            Self::Recipe => write!(out, "recipe"),
            Self::Scattered(alpha) => write!(out, "scattered_{alpha}"),
            Self::Model { scattered: false } => write!(out, "model"),
            Self::Model { scattered: true } => write!(out, "model_scattered"),
        }
    }
}

impl Family {
    /// What it is, for the table.
    fn told(self) -> String {
        match self {
            Self::LowRank(mean) => format!("rank 10, 100 x 200, mean {mean}"),
            Self::Recipe => "paper's recipe".into(),
            Self::Scattered(alpha) => {
                format!("negative binomial, alpha {alpha}, 3 to 10 components, mean 300")
            }
            Self::Model { scattered: false } => "drawn from the model".into(),
            Self::Model { scattered: true } => "drawn from the model, alpha 20".into(),
        }
    }

    fn sets(self) -> u64 {
        if matches!(self, Self::Model { .. }) { 100 } else { 25 }
    }

    /// Counts and the true number of components.
    fn load(self, seed: u64) -> Result<(Counts, usize), Trouble> {
        let data = match self {
            Self::LowRank(mean) => made::low_rank(mean, seed)?,
            Self::Scattered(alpha) => {
                made::scattered(3 + (seed % 8) as usize, 300.0, Some(alpha), (96, 100), seed)?
            }
            Self::Recipe => {
                let drawn = Recipe::default().draw(seed)?;
                let truth = drawn.true_components();
                return Ok((drawn.counts, truth));
            }
            Self::Model { scattered } => return model(scattered, seed),
        };
        let truth = data.truth.map_or(0, |truth| truth.components);
        Ok((data.counts, truth))
    }
}

/// A draw from the model: pi_k ~ Beta(a0 / K, b0 (K - 1) / K), S, W ~ Gamma(1/2, .), H ~ Gamma(2, 2), with K = 60, a0 = 3 and
/// b0 = 2, 30 x 300 by odd seeds and 60 x 500 by even ones. The true number is that of the components that are on in 1 % of the
/// columns, as everywhere: 3 and 5 of them. Columns without a component stay empty.
fn model(scattered: bool, seed: u64) -> Result<(Counts, usize), Trouble> {
    const SLOTS: usize = 60;
    const ALPHA: f64 = 20.0;
    let (features, observations) = if seed % 2 == 1 { (30, 300) } else { (60, 500) };
    let mut stream = bpnmf::bench::stream(seed + 7_000_000);
    let (on, off) = (3.0 / SLOTS as f64, 2.0 * (SLOTS - 1) as f64 / SLOTS as f64);
    let mut rates = vec![0.0; features * observations];
    let mut truth = 0;
    for _ in 0..SLOTS {
        let logit = stream.logit_beta(on, off);
        let w: Vec<f64> = (0..features).map(|_| 6.0 * stream.gamma(0.5)).collect();
        let mut usage = 0;
        for column in rates.chunks_mut(features) {
            if !is_on(logit, &mut stream) {
                continue;
            }
            let h = stream.gamma(2.0) / 2.0;
            column.iter_mut().zip(&w).for_each(|(rate, w)| *rate += w * h);
            usage += 1;
        }
        truth += usize::from(100 * usage >= observations);
    }
    let counts = rates
        .iter()
        .map(|&rate| {
            let scatter = if scattered { stream.gamma(ALPHA) / ALPHA } else { 1.0 };
            stream.poisson(rate * scatter)
        })
        .collect();
    Ok((Counts::from_dense(features, observations, counts)?, truth))
}

fn is_on(logit: f64, stream: &mut Stream) -> bool {
    let u = stream.uniform();
    (u / (1.0 - u)).ln() < logit
}

/// One fit.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Outcome {
    family: Family,
    seed: u64,
    fit_seed: u64,
    truth: usize,
    found: usize,
    interval: (usize, usize),
    seconds: f64,
}

impl Outcome {
    fn holds(&self) -> bool {
        (self.interval.0..=self.interval.1).contains(&self.truth)
    }
}

/// `calibration ...`: 2 if it could not be run, 1 if a quick check failed.
pub(crate) fn command(arguments: &[String]) -> ExitCode {
    if matches!(arguments.first().map(String::as_str), Some("--help" | "-h" | "help")) {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    study(arguments).unwrap_or_else(|reason| {
        eprintln!("{reason}");
        ExitCode::from(2)
    })
}

fn study(arguments: &[String]) -> Result<ExitCode, String> {
    let flags = Flags::parse("calibration", arguments, &["--only", "--sets", "--first-seed", "--csv"])?;
    let part = ["--sets", "--first-seed"].iter().any(|name| flags.text(name).is_some());
    let out = if part { flags.text("--out").map(PathBuf::from) } else { flags.out("docs/calibration.md") };
    if let Some(path) = &out {
        document::check(path)?;
    }
    let workers =
        Workers::new(flags.number("--threads")?.unwrap_or(0) as usize).map_err(|e| e.to_string())?;
    let first = flags.number("--first-seed")?.unwrap_or(1);
    let names =
        flags.text("--only").or(flags.quick.then_some("low_rank_0.46,low_rank_4.7,scattered_20,model"));
    let families = named(names)?;
    let mut sheet = flags.text("--csv").map(|path| Sheet::create(path.as_ref(), HEAD)).transpose()?;
    let mut outcomes = Vec::new();
    for family in families {
        let sets = flags.number("--sets")?.unwrap_or(if flags.quick { 3 } else { family.sets() });
        for seed in first..first + sets {
            let (counts, truth) = family.load(seed).map_err(|trouble| trouble.to_string())?;
            let again = !flags.quick && seed < first + TWICE;
            for fit_seed in 0..=u64::from(again) {
                let found = fit::auto(&counts, None, None, fit_seed, &workers);
                let Found { components, interval, seconds, .. } = found;
                let interval = interval.ok_or("a default fit has an interval")?;
                let outcome = Outcome { family, seed, fit_seed, truth, found: components, interval, seconds };
                let (low, high) = interval;
                println!("{family} {seed}: {components} ({low} to {high}) of {truth}, {seconds:.1} s");
                if let Some(sheet) = &mut sheet {
                    sheet.add(&format!(
                        "{family},{seed},{fit_seed},{truth},{components},{low},{high},{seconds:.3}"
                    ))?;
                }
                outcomes.push(outcome);
            }
        }
    }
    let table = markdown(&outcomes);
    println!("\n{table}");
    if let Some(path) = &out {
        let new = format!("`{}` prints this:\n\n{table}", flags.command);
        document::write(path, AROUND, &new)?;
        println!("written to {}", path.display());
    }
    let missed = outcomes.iter().filter(|outcome| !outcome.holds()).count();
    Ok(if flags.quick && missed > 2 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The families that are named, each by its name or by the beginning of it; all if none is.
fn named(names: Option<&str>) -> Result<Vec<Family>, String> {
    let Some(names) = names else { return Ok(families()) };
    let means = |name: &str, family: &Family| {
        family.to_string().strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    let names: Vec<&str> = names.split(',').collect();
    if let Some(unknown) = names.iter().find(|name| !families().iter().any(|family| means(name, family))) {
        return Err(format!("there is no family {unknown}; calibration --help lists them"));
    }
    Ok(families().into_iter().filter(|family| names.iter().any(|name| means(name, family))).collect())
}

/// The table, a row a family.
fn markdown(outcomes: &[Outcome]) -> String {
    let mut table = "| data | sets | held | exact | width | truth (mean) | overlap | same | seconds |\n\
                     |---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for family in families() {
        let all: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.family == family).collect();
        let firsts: Vec<&&Outcome> = all.iter().filter(|outcome| outcome.fit_seed == 0).collect();
        if firsts.is_empty() {
            continue;
        }
        let share = |test: &dyn Fn(&Outcome) -> bool| {
            100.0 * firsts.iter().filter(|outcome| test(outcome)).count() as f64 / firsts.len() as f64
        };
        let mean = |value: &dyn Fn(&Outcome) -> f64| {
            firsts.iter().map(|outcome| value(outcome)).sum::<f64>() / firsts.len() as f64
        };
        let pairs: Vec<(&Outcome, &Outcome)> = all
            .windows(2)
            .filter(|pair| pair[0].seed == pair[1].seed)
            .map(|pair| (pair[0], pair[1]))
            .collect();
        let of_pairs = |test: &dyn Fn(&Outcome, &Outcome) -> bool| match pairs.len() {
            0 => String::new(),
            many => format!("{} of {many}", pairs.iter().filter(|(x, y)| test(x, y)).count()),
        };
        let overlap = of_pairs(&|x, y| x.interval.0 <= y.interval.1 && y.interval.0 <= x.interval.1);
        let _ = writeln!(
            table,
            "| {} | {} | {:.0} % | {:.0} % | {:.1} | {:.1} | {overlap} | {} | {:.1} |",
            family.told(),
            firsts.len(),
            share(&Outcome::holds),
            share(&|outcome| outcome.found == outcome.truth),
            mean(&|outcome| (outcome.interval.1 - outcome.interval.0) as f64),
            mean(&|outcome| outcome.truth as f64),
            of_pairs(&|x, y| x.found == y.found),
            mean(&|outcome| outcome.seconds),
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_named_by_their_beginnings_and_others_are_refused() {
        assert_eq!(named(Some("low_rank,recipe")).unwrap().len(), LEVELS.len() + 1);
        assert_eq!(named(Some("model")).unwrap().len(), 2);
        assert_eq!(named(None).unwrap().len(), LEVELS.len() + ALPHAS.len() + 3);
        assert!(named(Some("low_rank_7")).is_err());
    }

    #[test]
    fn draws_from_the_model_have_several_components_and_depend_on_the_seed() {
        let truths: Vec<usize> = (1..20).map(|seed| model(seed % 3 == 0, seed).unwrap().1).collect();
        assert!(
            truths.iter().all(|&truth| truth < 40) && truths.iter().any(|&truth| truth > 5),
            "{truths:?}"
        );
        assert!(truths.windows(2).any(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_row_counts_the_intervals_that_hold_the_truth_and_the_pairs_that_agree() {
        let outcome = |seed, fit_seed, found, interval| Outcome {
            family: Family::Recipe,
            seed,
            fit_seed,
            truth: 10,
            found,
            interval,
            seconds: 1.0,
        };
        let table =
            markdown(&[outcome(1, 0, 10, (9, 11)), outcome(1, 1, 11, (11, 12)), outcome(2, 0, 12, (11, 12))]);
        let row = "| paper's recipe | 2 | 50 % | 50 % | 1.5 | 10.0 | 1 of 1 | 0 of 1 | 1.0 |";
        assert!(table.contains(row), "{table}");
    }
}
