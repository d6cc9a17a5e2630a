//! How the program fails: one sentence for a person and an exit code for a script.

use std::io;
use std::process::ExitCode;

/// Why the program ends without having done what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request or the data is wrong: exit code 2.
    Request(String),
    /// Everything else: exit code 1.
    Other(String),
    /// Whoever read our output has seen enough: not a failure at all.
    ReaderGone,
}

impl Failure {
    /// Prints the sentence and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let (sentence, code) = match self {
            Self::Request(sentence) => (sentence, 2),
            Self::Other(sentence) => (sentence, 1),
            Self::ReaderGone => return ExitCode::SUCCESS,
        };
        eprintln!("error: {sentence}");
        ExitCode::from(code)
    }

    /// An error of the system while printing to stdout.
    pub(crate) fn printing(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::Other(format!("could not print the result: {error}")),
        }
    }

    /// An input file that cannot be used.
    pub(crate) fn reading(error: bpnmf_io::Error) -> Self {
        let sentence = words_of_flags(&error.to_string());
        let memory = matches!(error.fault, bpnmf_io::Fault::Memory { .. });
        Self::Request(sentence + if memory { ": use --force to try it" } else { "" })
    }

    /// An output file that cannot be written.
    pub(crate) fn writing(error: bpnmf_io::Error) -> Self {
        Self::Other(error.to_string())
    }

    /// A recording that cannot be used, or a request about it.
    pub(crate) fn sound(error: bpnmf_audio::Error) -> Self {
        Self::Request(error.to_string())
    }

    /// A sound that cannot be written.
    pub(crate) fn sound_out(error: bpnmf_audio::Error) -> Self {
        Self::Other(error.to_string())
    }
}

/// A sentence about a file, with the flags that do what it asks for.
pub(crate) fn words_of_flags(sentence: &str) -> String {
    let flags = [
        ("say that entries are missing", "use --missing"),
        (
            "say which mark stands before fractions (decimal point or comma)",
            "use --decimal point or --decimal comma",
        ),
        ("say so (decimal point)", "use --decimal point"),
        ("say so (1 column of names)", "use --names 1"),
        ("take it apart as one", "use bpnmf separate"),
    ];
    flags.iter().fold(sentence.to_owned(), |sentence, (said, flag)| sentence.replace(said, flag))
}

/// An error of the library, told in the names of the command line.
impl From<bpnmf::Error> for Failure {
    fn from(error: bpnmf::Error) -> Self {
        use bpnmf::Error::{BadBurnIn, BadForced, BadOption, BadPrior, Misplaced, Threads};
        use bpnmf::Instead;
        match error {
            Threads { .. } => Self::Other(error.to_string()),
            BadPrior { name, value, range } | BadOption { name, value, range } => {
                let range = range.trim_end_matches(" components");
                Self::Request(format!("{} is {value}: it must be {range}", flag(name)))
            }
            Misplaced { option, reason, instead } => {
                let instead = match instead {
                    Instead::Preset(preset) => format!("use --preset {}", preset.name()),
                    Instead::Engine => "choose another --engine".to_owned(),
                    Instead::FullGradient => "use --gradient full".to_owned(),
                    Instead::ApproximateGradient => "use --gradient approximate".to_owned(),
                    other => other.to_string(),
                };
                Self::Request(format!("{} {reason}: leave it out or {instead}", flag(option)))
            }
            BadForced { wanted, most, limited } => {
                let limit = if limited { ", the number of --max-components" } else { "" };
                Self::Request(format!(
                    "--force-components is {wanted}: it must be between 1 and {most}{limit}"
                ))
            }
            BadBurnIn { burn_in, iterations } => Self::Request(format!(
                "--burn-in is {burn_in}: it must be below the number of iterations, {iterations}"
            )),
            _ => Self::Request(error.to_string()),
        }
    }
}

/// The flag behind a name of the library.
fn flag(name: &str) -> String {
    match name {
        "K" => "--max-components".to_owned(),
        "kappa" => "--step-power".to_owned(),
        "t0" => "--step-offset".to_owned(),
        "forced components" => "--force-components".to_owned(),
        "held-out fraction" => "--held-out".to_owned(),
        name => format!("--{name}"),
    }
}
