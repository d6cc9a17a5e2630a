//! The few flags of an experiment, and the command that asks for the same again.

use std::path::PathBuf;

/// What was asked for.
#[derive(Debug, PartialEq)]
pub(crate) struct Flags {
    pub(crate) quick: bool,
    switches: Vec<String>,
    values: Vec<(String, String)>,
    /// The command that asks for the same, without the files that are written.
    pub(crate) command: String,
}

impl Flags {
    /// `--quick`, `--out PATH`, `--threads N` and the `others` with a value each.
    pub(crate) fn parse(experiment: &str, arguments: &[String], others: &[&str]) -> Result<Self, String> {
        let command = format!("./run {experiment}");
        let mut flags = Self { quick: false, switches: Vec::new(), values: Vec::new(), command };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            if name == "--quick" {
                flags.quick = true;
                flags.command += " --quick";
                continue;
            }
            if name == "--rendering" && experiment == "quintet" {
                flags.command += " --rendering";
                flags.switches.push(name.clone());
                continue;
            }
            if !["--out", "--threads"].iter().chain(others).any(|known| known == name) {
                return Err(format!("unknown option {name}; {experiment} --help lists them"));
            }
            let value = rest.next().ok_or_else(|| format!("{name} needs a value"))?;
            if !["--out", "--csv"].contains(&name.as_str()) {
                flags.command += &format!(" {name} {value}");
            }
            flags.values.push((name.clone(), value.clone()));
        }
        Ok(flags)
    }

    /// Whether a flag without a value was given.
    pub(crate) fn on(&self, name: &str) -> bool {
        self.switches.iter().any(|given| given == name)
    }

    /// The value of a flag; the last one counts.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.values.iter().rfind(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// The value of a flag that is a whole number above 0.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let parse = |value: &str| {
            let number = value.parse().ok().filter(|&number| number > 0);
            number.ok_or_else(|| format!("{name} is {value}: it must be a whole number above 0"))
        };
        self.text(name).map(parse).transpose()
    }

    /// Where the table goes: where it was asked for, or into `document` unless this is a quick run or a part of one.
    pub(crate) fn out(&self, document: &str) -> Option<PathBuf> {
        let whole = !self.quick && self.text("--only").is_none();
        self.text("--out").or(whole.then_some(document)).map(PathBuf::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Flags, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Flags::parse("name", &words, &["--seeds", "--only"])
    }

    #[test]
    fn only_a_whole_run_is_written_to_the_documentation_unasked() {
        assert_eq!(parse("--seeds 2").unwrap().out("docs/x.md"), Some("docs/x.md".into()));
        for part in ["--quick", "--only auto"] {
            assert_eq!(parse(part).unwrap().out("docs/x.md"), None);
        }
        let flags = parse("--quick --seeds 2 --out y.md").unwrap();
        assert_eq!(flags.out("docs/x.md"), Some("y.md".into()));
        assert_eq!(flags.command, "./run name --quick --seeds 2");
    }

    #[test]
    fn flags_and_numbers_that_make_no_sense_are_refused() {
        assert!(parse("--fast").is_err() && parse("--seeds").is_err());
        assert!(parse("--seeds 0").unwrap().number("--seeds").is_err());
        assert_eq!(parse("--seeds 3").unwrap().number("--seeds"), Ok(Some(3)));
        assert_eq!(parse("").unwrap().number("--seeds"), Ok(None));
    }
}
