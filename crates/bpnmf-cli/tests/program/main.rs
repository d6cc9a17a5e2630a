//! The program as people run it: what it writes, what it prints, what it refuses and how it ends.

mod assign;
mod bad_inputs;
mod bad_sounds;
mod blocks;
mod catalogue;
mod chains;
mod demo;
mod edges;
mod no_counts;
mod printing;
mod refusals;
mod results;
mod resume;
mod sameness;
mod score;
mod search;
mod separate;
mod synth;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder for one test, with the program at hand.
struct Bench(TempDir);

impl Bench {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// A command that runs in the folder.
    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bpnmf"));
        command.current_dir(self.0.path()).args(arguments.split_whitespace());
        command
    }

    fn run(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs what must succeed, and gives what it prints on stdout. On stderr there is nothing but what the summary
    /// warns of, too: chains that disagree, and a number of parts near the most there can be.
    fn ok(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        let stderr = told(output.stderr);
        let of_summary = ["warning: the chains ", "warning: the number of components comes "];
        let warned = |line: &&str| of_summary.iter().any(|start| line.starts_with(start));
        let told: Vec<&str> = stderr.lines().filter(|line| !warned(line)).collect();
        assert_eq!((output.status.code(), told), (Some(0), vec![]), "bpnmf {arguments}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs what must succeed, and gives what it prints on stderr.
    fn warns(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        let stderr = told(output.stderr);
        assert_eq!(output.status.code(), Some(0), "bpnmf {arguments}: {stderr}");
        stderr
    }

    /// Runs what must fail with this code, and gives the sentence.
    fn fails(&self, arguments: &str, code: i32) -> String {
        let output = self.run(arguments);
        let stderr = told(output.stderr);
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(code), 0),
            "bpnmf {arguments}: {stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "one sentence: {stderr}");
        stderr.trim_end().strip_prefix("error: ").expect("starts with error:").to_owned()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(name)).unwrap()).unwrap()
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The shape and the values of every array of a .npz file.
    fn arrays(&self, name: &str) -> Vec<(String, Vec<usize>, Vec<f64>)> {
        let arrays = bpnmf_io::read_npz_arrays(&self.path(name)).unwrap();
        arrays.into_iter().map(|(name, array)| (name, array.shape().to_vec(), array.to_f64())).collect()
    }

    /// Writes the small table of most tests: 6 features x 12 observations, two parts.
    fn write_table(&self, name: &str) {
        self.write(name, table(","));
    }
}

/// What stands on stderr, but for the lines that say how far a run is: these begin with a clock.
fn told(stderr: Vec<u8>) -> String {
    let text = String::from_utf8(stderr).unwrap();
    text.split_inclusive('\n').filter(|line| !line.starts_with('[')).collect()
}

/// Two parts that take turns, and a column in which both are on.
fn value(feature: usize, observation: usize) -> usize {
    let (first, second) = (observation.is_multiple_of(2), !observation.is_multiple_of(2) || observation == 4);
    let part = |on: bool, features: std::ops::Range<usize>| usize::from(on && features.contains(&feature));
    part(first, 0..3) * (20 + 5 * feature) + part(second, 3..6) * (40 - 3 * feature)
}

fn table(separator: &str) -> String {
    let row = |f: usize| (0..12).map(|t| value(f, t).to_string()).collect::<Vec<_>>().join(separator) + "\n";
    (0..6).map(row).collect()
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
