//! Counts that scatter more than Poisson, above all mutational signatures: `signatures --help` says how to ask.

mod catalogue;
mod coverage;
mod rules;
mod score;
mod sets;
mod table;

use crate::flags::Flags;
use crate::rank::data::Trouble;
use crate::rank::fit;
use crate::sheet::Sheet;
use crate::{document, files};
use bpnmf::{Noise, Plan, Workers};
use catalogue::Catalogue;
use coverage::Draws;
use rules::Outcome;
use sets::Set;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
usage: ./run signatures [OPTIONS]

  --only SETS     only these, with commas in between: sbs_LEVEL and indel_LEVEL, with realistic, moderate or noiseless for
                  LEVEL; misspecified_TUMOUR_VARIANT, with lung, stomach or melanoma, and clean, contaminated, perturbed or
                  over-dispersed; simulated_K_MEAN_ALPHA, with 5 or 10, 30, 300 or 3000, and 5, 20, 100, 1000 or inf.
                  The beginning of a name stands for all that begin so: indel, misspecified_lung, simulated
  --noise NOISE   auto, poisson or the alpha of all fits; auto
  --iterations N  iterations of all fits; by default as many as a fit has
  --seeds N       fits of a set; by default 5, and 3 of the misspecified and the simulated ones
  --first-seed N  the seeds begin with N; by default with 1
  --quick         one seed
  --threads N     threads of a fit; by default all there are
  --out PATH      the document the tables go into; docs/signatures.md if all is run
  --csv PATH      a line for every fit

The variable BPNMF_DATA names the folder of the data that is read, by default ../shared/data. What is not there is skipped.
";

const HEAD: &str = "set,seed,truth,found,ppv,tpr,cosine,sum,alpha,coverage,seconds";

/// `signatures ...`: 2 if it could not be run.
pub(crate) fn command(arguments: &[String]) -> ExitCode {
    if matches!(arguments.first().map(String::as_str), Some("--help" | "-h" | "help")) {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match Options::parse(arguments).and_then(|options| study(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::from(2)
        }
    }
}

/// What was asked for.
#[derive(Debug, PartialEq)]
struct Options {
    sets: Vec<Set>,
    noise: Option<Noise>,
    iterations: Option<usize>,
    seeds: Option<u64>,
    first_seed: u64,
    threads: usize,
    out: Option<PathBuf>,
    csv: Option<PathBuf>,
    command: String,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let flags = Flags::parse(
            "signatures",
            arguments,
            &["--only", "--noise", "--iterations", "--seeds", "--first-seed", "--csv"],
        )?;
        let part = ["--seeds", "--first-seed", "--noise", "--iterations"]
            .iter()
            .any(|name| flags.text(name).is_some());
        let out = if part { flags.text("--out").map(PathBuf::from) } else { flags.out("docs/signatures.md") };
        Ok(Self {
            sets: flags.text("--only").map_or_else(|| Ok(sets::all()), sets::named)?,
            noise: flags.text("--noise").map_or(Ok(None), noise)?,
            iterations: flags.number("--iterations")?.map(|number| number as usize),
            seeds: flags.number("--seeds")?.or(flags.quick.then_some(1)),
            first_seed: flags.number("--first-seed")?.unwrap_or(1),
            threads: flags.number("--threads")?.unwrap_or(0) as usize,
            out,
            csv: flags.text("--csv").map(PathBuf::from),
            command: flags.command,
        })
    }
}

impl Options {
    /// The fit with this seed.
    fn plan(&self, seed: u64) -> Plan {
        let default = Plan { seed, noise: self.noise, ..Plan::default() };
        match self.iterations {
            None => default,
            iterations => Plan { iterations, stop: None, ..default },
        }
    }
}

/// `None`: it is learned.
fn noise(word: &str) -> Result<Option<Noise>, String> {
    match word {
        "auto" => Ok(None),
        "poisson" => Ok(Some(Noise::Poisson)),
        _ => {
            let alpha = word.parse().map_err(|_| format!("--noise {word}: it is auto, poisson or alpha"))?;
            Noise::Scattered { alpha }.check().map(Some).map_err(|error| error.to_string())
        }
    }
}

fn study(options: &Options) -> Result<(), String> {
    let workers = Workers::new(options.threads).map_err(|error| error.to_string())?;
    if let Some(path) = &options.out {
        document::check(path)?;
    }
    let mut sheet = options.csv.as_deref().map(|path| Sheet::create(path, HEAD)).transpose()?;
    let folder = files::folder();
    let (mut outcomes, mut skipped) = (Vec::new(), Vec::new());
    'sets: for &set in &options.sets {
        let mut loaded = None;
        for seed in options.first_seed..options.first_seed + options.seeds.unwrap_or(set.seeds()) {
            let kept = loaded.take().filter(|_| !set.is_made_up());
            let catalogue = match kept.map_or_else(|| set.load(seed, &folder), Ok) {
                Ok(catalogue) => catalogue,
                Err(trouble @ Trouble::Absent(_)) => {
                    println!("{set}: skipped: {trouble}");
                    skipped.push(set);
                    continue 'sets;
                }
                Err(trouble) => return Err(format!("{set}: {trouble}")),
            };
            let outcome = fitted(set, &catalogue, options.plan(seed), &workers);
            println!("{set}, seed {seed}: {}", told(&outcome));
            if let Some(sheet) = &mut sheet {
                sheet.add(&line(&outcome))?;
            }
            outcomes.push(outcome);
            loaded = Some(catalogue);
        }
    }
    let tables = table::markdown(&outcomes, &skipped);
    println!("\n{tables}");
    if let Some(path) = &options.out {
        let threads = workers.threads();
        let on = if threads == 1 { "one thread".into() } else { format!("{threads} threads") };
        let new = format!("`{}` prints this, on {on}:\n\n{tables}", options.command);
        document::write(path, table::AROUND, &new)?;
        println!("written to {}", path.display());
    }
    Ok(())
}

fn fitted(set: Set, catalogue: &Catalogue, plan: Plan, workers: &Workers) -> Outcome {
    let Catalogue { counts, signatures, rates } = catalogue;
    let (mut draws, seed) = (Draws::new(rates), plan.seed);
    let found = fit::watched(&plan, counts, workers, &mut draws);
    let score = || score::score(signatures, &found.dictionary, found.components);
    Outcome {
        set,
        seed,
        found: found.components,
        truth: (!signatures.is_empty()).then(|| (signatures.len(), score())),
        alpha: found.alpha,
        coverage: draws.coverage(found.burn_in),
        seconds: found.seconds,
    }
}

fn told(outcome: &Outcome) -> String {
    let Outcome { found, truth, alpha, coverage, seconds, .. } = outcome;
    let truth = truth.map_or_else(String::new, |(truth, score)| {
        let (ppv, tpr, cosine, sum) = (score.ppv, score.tpr, score.cosine, score.sum());
        format!(" of {truth}, PPV {ppv:.3}, TPR {tpr:.3}, cosine {cosine:.3}, sum {sum:.3}")
    });
    let coverage = coverage.map_or_else(String::new, |share| format!(", intervals cover {share:.3}"));
    format!("K {found}{truth}, alpha {}{coverage}, {seconds:.2} s", table::alpha_told(*alpha))
}

fn line(outcome: &Outcome) -> String {
    let Outcome { set, seed, found, truth, alpha, coverage, seconds } = outcome;
    let (truth, scores) = truth.map_or_else(
        || (String::new(), ",,,".into()),
        |(truth, score)| {
            let (ppv, tpr, cosine, sum) = (score.ppv, score.tpr, score.cosine, score.sum());
            (truth.to_string(), format!("{ppv:.4},{tpr:.4},{cosine:.4},{sum:.4}"))
        },
    );
    let alpha = alpha.unwrap_or(f64::INFINITY);
    let coverage = coverage.map_or_else(String::new, |share| format!("{share:.4}"));
    format!("{set},{seed},{truth},{found},{scores},{alpha:.4},{coverage},{seconds:.3}")
}

#[cfg(test)]
mod tests {
    use super::score::Score;
    use super::*;

    fn parse(words: &str) -> Result<Options, String> {
        Options::parse(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn only_all_of_it_by_default_settings_is_written_to_the_documentation_unasked() {
        assert_eq!(parse("--threads 2 --csv x.csv").unwrap().out, Some("docs/signatures.md".into()));
        for part in
            ["--quick", "--only sbs", "--seeds 2", "--first-seed 5", "--noise poisson", "--iterations 9"]
        {
            assert_eq!(parse(part).unwrap().out, None);
        }
        let options = parse("--seeds 2 --out x.md --csv x.csv").unwrap();
        assert_eq!((options.out, options.csv), (Some("x.md".into()), Some("x.csv".into())));
        assert_eq!(options.command, "./run signatures --seeds 2");
    }

    #[test]
    fn noise_is_learned_poisson_or_a_number_above_0() {
        assert_eq!((noise("auto"), noise("poisson")), (Ok(None), Ok(Some(Noise::Poisson))));
        assert_eq!(noise("12.5"), Ok(Some(Noise::Scattered { alpha: 12.5 })));
        for wrong in ["0", "-3", "nan", "inf", "nb", ""] {
            assert!(noise(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_line_has_a_value_a_column_even_where_there_is_none() {
        let set = sets::named("misspecified_lung_clean").unwrap()[0];
        let unknown =
            Outcome { set, seed: 3, found: 8, truth: None, alpha: None, coverage: None, seconds: 1.5 };
        assert_eq!(line(&unknown), "misspecified_lung_clean,3,,8,,,,,inf,,1.500");
        let score = Score { ppv: 1.0, tpr: 0.5, cosine: 0.95 };
        let known = Outcome { truth: Some((4, score)), alpha: Some(20.0), coverage: Some(0.9), ..unknown };
        for outcome in [line(&known), HEAD.to_owned()] {
            assert_eq!(outcome.split(',').count(), 11);
        }
    }

    #[test]
    fn a_small_fit_is_scored_against_its_truth() {
        let data = crate::rank::made::scattered(2, 30.0, None, (12, 30), 1).unwrap();
        let signatures = data.truth.unwrap().parts.into_iter().map(|part| part.column).collect();
        let set = sets::named("simulated_5_30_inf").unwrap()[0];
        let rates = crate::rank::made::scattered_rates(2, 30.0, (12, 30), 1);
        let catalogue = Catalogue { counts: data.counts, signatures, rates };
        let outcome = fitted(set, &catalogue, parse("--noise poisson").unwrap().plan(1), &Workers::serial());
        let (truth, score) = outcome.truth.unwrap();
        assert_eq!((outcome.found, truth, outcome.alpha), (2, 2, None));
        assert!(score.sum() > 2.9, "{score:?}");
        let coverage = outcome.coverage.unwrap();
        assert!((0.7..=1.0).contains(&coverage), "{coverage}");
    }
}
