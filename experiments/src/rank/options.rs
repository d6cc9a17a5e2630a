//! The command line of the experiment.

use super::change;
use super::data::NAMES;
use super::rows::{self, Case, Row, Seeds};
use std::path::PathBuf;

/// What was asked for.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Options {
    pub(super) quick: bool,
    only: Option<Vec<String>>,
    /// Data sets to fit instead of the suite.
    sets: Option<Vec<Case>>,
    seeds: Option<u64>,
    first_seed: Option<u64>,
    /// 0: as many as the machine has.
    pub(super) threads: usize,
    /// The document the table goes to.
    pub(super) out: Option<PathBuf>,
    /// The file every fit goes to.
    pub(super) csv: Option<PathBuf>,
    /// How often a search starts again from what it found; as often as by default if nothing is said.
    pub(super) restarts: Option<usize>,
    /// The file of scikit-learn's digits.
    pub(super) digits: Option<PathBuf>,
    /// The command that asks for the same fits.
    pub(super) command: String,
}

pub(super) fn help() -> String {
    format!(
        "\
usage: ./run rank [OPTIONS]
       ./run rank dump NAME SEED OUT.npy

  --quick         a few small fits; fails if K is off by more than 2
  --only ROWS     only these, with commas in between: {}
  --sets NAMES    three fits of each of these data sets, with commas in between, instead of the suite
  --seeds N       at most N seeds a row
  --first-seed N  the seeds begin with N; by default with 1
  --threads N     threads of a fit; by default all there are
  --restarts N    a search starts again so often from the dictionary it found; by default once
  --out PATH      the document the table goes into; docs/rank.md if the whole suite is run
  --csv PATH      a line for every fit: row, set, change, truncation, seeds, truth, K, seconds
  --digits PATH   scikit-learn's digits, 64 x 1797; without it their row is skipped

dump writes a data set, F x T, NaN where entries are missing; OUT.npz gets its true parts too. Its names: {NAMES}.
NAME+CHANGE is a data set that is changed: {}. The variable BPNMF_DATA names the folder of the data that is read, by default ../shared/data.
",
        names(&rows::suite(Seeds { first: 1, most: None })),
        change::NAMES
    )
}

fn names(rows: &[Row]) -> String {
    rows.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
}

impl Options {
    pub(super) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self { command: "./run rank".into(), ..Self::default() };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            if name == "--quick" {
                options.quick = true;
                options.command += " --quick";
                continue;
            }
            const WITH_VALUE: [&str; 9] = [
                "--only",
                "--sets",
                "--seeds",
                "--first-seed",
                "--threads",
                "--restarts",
                "--out",
                "--csv",
                "--digits",
            ];
            if !WITH_VALUE.contains(&name.as_str()) {
                return Err(format!("unknown option {name}; rank --help lists them"));
            }
            let value = rest.next().ok_or_else(|| format!("{name} needs a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("{name} {value}: not a whole number"));
            match name.as_str() {
                "--only" => options.only = Some(value.split(',').map(str::to_owned).collect()),
                "--seeds" => options.seeds = Some(number()?.max(1)),
                "--sets" => options.sets = Some(value.split(',').map(str::parse).collect::<Result<_, _>>()?),
                "--first-seed" => options.first_seed = Some(number()?),
                "--threads" => options.threads = number()? as usize,
                "--restarts" => options.restarts = Some(number()? as usize),
                "--out" => options.out = Some(value.into()),
                "--csv" => options.csv = Some(value.into()),
                _ => options.digits = Some(value.into()),
            }
            // Files say nothing about what is fitted.
            if !["--out", "--csv", "--digits"].contains(&name.as_str()) {
                options.command += &format!(" {name} {value}");
            }
        }
        let Self { quick, only, sets, seeds, first_seed, restarts, .. } = &options;
        let seeds_too = seeds.is_none() && first_seed.is_none() && restarts.is_none();
        let whole = !quick && only.is_none() && sets.is_none() && seeds_too;
        if whole && options.out.is_none() {
            options.out = Some("docs/rank.md".into());
        }
        Ok(options)
    }

    /// The rows that were asked for.
    pub(super) fn rows(&self) -> Result<Vec<Row>, String> {
        let seeds = Seeds { first: self.first_seed.unwrap_or(1), most: self.seeds };
        let mut rows = match &self.sets {
            Some(sets) => vec![rows::named(sets, seeds)],
            None if self.quick => rows::quick(),
            None => rows::suite(seeds),
        };
        if let Some(only) = &self.only {
            if let Some(unknown) = only.iter().find(|name| rows.iter().all(|row| row.name != name.as_str())) {
                return Err(format!("there is no row {unknown}; there are: {}", names(&rows)));
            }
            rows.retain(|row| only.iter().any(|name| name == row.name));
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn only_the_whole_suite_is_written_to_the_documentation_unasked() {
        assert_eq!(parse("--threads 2").unwrap().out, Some("docs/rank.md".into()));
        for part in ["--quick", "--only noise", "--seeds 2", "--first-seed 5", "--sets noise"] {
            assert_eq!(parse(part).unwrap().out, None);
        }
        let options = parse("--seeds 2 --out x.md --digits x.npy --csv x.csv").unwrap();
        assert_eq!(options.out, Some("x.md".into()));
        assert_eq!(options.command, "./run rank --seeds 2");
    }

    #[test]
    fn rows_and_options_that_do_not_exist_are_refused() {
        assert!(parse("--fast").is_err() && parse("--seeds").is_err() && parse("--seeds x").is_err());
        assert!(parse("--only nothing").unwrap().rows().is_err() && parse("--sets nothing").is_err());
        assert_eq!(parse("--only noise,bars").unwrap().rows().unwrap().len(), 2);
        let rows = parse("--sets grid_7_2_100,noise_2+zero_rows_9 --seeds 1 --first-seed 9")
            .unwrap()
            .rows()
            .unwrap();
        assert!(rows.len() == 1 && rows[0].cases.len() == 2 && rows[0].cases[1].data_seed == 9);
    }
}
