//! The command line of the experiment.

use super::data::NAMES;
use super::rows::{self, Row};
use std::path::PathBuf;

/// What was asked for.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Options {
    pub(super) quick: bool,
    only: Option<Vec<String>>,
    seeds: Option<u64>,
    /// 0: as many as the machine has.
    pub(super) threads: usize,
    /// The document the table goes to.
    pub(super) out: Option<PathBuf>,
    /// The command that asks for the same fits.
    pub(super) command: String,
}

pub(super) fn help() -> String {
    format!(
        "\
usage: cargo run --release -p experiments -- rank [OPTIONS]
       cargo run --release -p experiments -- rank dump NAME SEED OUT.npy

  --quick       a few small fits; fails if K is off by more than 2
  --only ROWS   only these, with commas in between: {}
  --seeds N     at most N seeds a row
  --threads N   threads of a fit; by default all there are
  --out PATH    the document the table goes into; docs/rank.md if the whole suite is run

dump writes a data set, F x T, NaN where entries are missing; OUT.npz gets its true parts too. Its names: {NAMES}.
The variable BPNMF_DATA names the folder of the data that is read, by default ../shared/data.
",
        names(&rows::suite(None))
    )
}

fn names(rows: &[Row]) -> String {
    rows.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
}

impl Options {
    pub(super) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options =
            Self { command: "cargo run --release -p experiments -- rank".into(), ..Self::default() };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            if name == "--quick" {
                options.quick = true;
                options.command += " --quick";
                continue;
            }
            if !["--only", "--seeds", "--threads", "--out"].contains(&name.as_str()) {
                return Err(format!("unknown option {name}; rank --help lists them"));
            }
            let value = rest.next().ok_or_else(|| format!("{name} needs a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("{name} {value}: not a whole number"));
            match name.as_str() {
                "--only" => options.only = Some(value.split(',').map(str::to_owned).collect()),
                "--seeds" => options.seeds = Some(number()?.max(1)),
                "--threads" => options.threads = number()? as usize,
                _ => options.out = Some(value.into()),
            }
            if name != "--out" {
                options.command += &format!(" {name} {value}");
            }
        }
        let whole = !options.quick && options.only.is_none() && options.seeds.is_none();
        if whole && options.out.is_none() {
            options.out = Some("docs/rank.md".into());
        }
        Ok(options)
    }

    /// The rows that were asked for.
    pub(super) fn rows(&self) -> Result<Vec<Row>, String> {
        let mut rows = if self.quick { rows::quick() } else { rows::suite(self.seeds) };
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
        for part in ["--quick", "--only noise", "--seeds 2"] {
            assert_eq!(parse(part).unwrap().out, None);
        }
        let options = parse("--seeds 2 --out x.md").unwrap();
        assert_eq!(options.out, Some("x.md".into()));
        assert_eq!(options.command, "cargo run --release -p experiments -- rank --seeds 2");
    }

    #[test]
    fn rows_and_options_that_do_not_exist_are_refused() {
        assert!(parse("--fast").is_err() && parse("--seeds").is_err() && parse("--seeds x").is_err());
        assert!(parse("--only nothing").unwrap().rows().is_err());
        assert_eq!(parse("--only noise,bars").unwrap().rows().unwrap().len(), 2);
    }
}
