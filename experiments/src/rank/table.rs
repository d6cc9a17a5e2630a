//! The table of the suite, and its place in a document.

use super::rows::{Outcome, Row};
use std::io::ErrorKind;
use std::path::Path;

/// A row that was run, or why it was not.
pub(super) struct Done {
    pub(super) row: Row,
    /// Empty if the data was not there.
    pub(super) outcomes: Vec<Outcome>,
    /// K of the literal algorithm on the first case.
    pub(super) literal: Option<usize>,
}

const BEGIN: &str = "<!-- made by the command below: begin -->";
const END: &str = "<!-- end -->";

const AROUND: &str = "\
# How many components are found

One setting for all rows. K is the number of components found; where the truth differs from seed to seed it stands behind
the stroke. The cosine is the smallest between a true part that is on in at least 2 % of the columns and the component
matched to it, over all fits of the row. As printed: K of the paper's algorithm as it is printed, on the first fit's data.
";

/// The table in Markdown.
pub(super) fn markdown(rows: &[Done]) -> String {
    let mut text = String::from(
        "| data | truth | K | least cosine | seconds (median) | as printed | asked for | |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for done in rows {
        let title = done.row.title;
        if done.outcomes.is_empty() {
            text += &format!("| {title} | | not run: its file is not there | | | | | |\n");
            continue;
        }
        let verdict = done.row.rule.judge(&done.outcomes);
        let (truth, found) = numbers(&done.outcomes);
        let cosine = done.outcomes.iter().filter_map(|outcome| outcome.cosine).reduce(f64::min);
        text += &format!(
            "| {title} | {truth} | {found} | {} | {:.1} | {} | {} | {} |\n",
            cosine.map_or_else(String::new, |cosine| format!("{cosine:.3}")),
            median_seconds(&done.outcomes),
            done.literal.map_or_else(String::new, |k| k.to_string()),
            verdict.words,
            if verdict.met { "ok" } else { "MISSED" },
        );
    }
    text
}

/// The truth and the K of every fit, as `10` and `10 11 9` or as `16 to 28` and `16/16 29/28`.
fn numbers(outcomes: &[Outcome]) -> (String, String) {
    let truths = || outcomes.iter().map(|outcome| outcome.truth);
    let (least, most) = (truths().min().unwrap_or(0), truths().max().unwrap_or(0));
    let found = |outcome: &Outcome| match least == most {
        true => outcome.found.to_string(),
        false => format!("{}/{}", outcome.found, outcome.truth),
    };
    let truth = if least == most { least.to_string() } else { format!("{least} to {most}") };
    (truth, outcomes.iter().map(found).collect::<Vec<_>>().join(" "))
}

fn median_seconds(outcomes: &[Outcome]) -> f64 {
    let mut seconds: Vec<f64> = outcomes.iter().map(|outcome| outcome.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    f64::midpoint(seconds[(seconds.len() - 1) / 2], seconds[seconds.len() / 2])
}

/// Puts the table into the document: in place of the old one if there is one, so that words around it stay.
pub(super) fn write(path: &Path, rows: &[Done], command: &str, threads: usize) -> Result<(), String> {
    let on = if threads == 1 { "one thread".into() } else { format!("{threads} threads") };
    let new = format!("`{command}` prints this, on {on}:\n\n{}", markdown(rows));
    let text = placed(path, &new)?;
    bpnmf_io::write_atomically(path, |writer| std::io::Write::write_all(writer, text.as_bytes()))
        .map_err(|error| error.to_string())
}

/// Errors if the table could not be put into the document: to be asked before hours of fits.
pub(super) fn check(path: &Path) -> Result<(), String> {
    placed(path, "").map(|_| ())
}

fn placed(path: &Path, new: &str) -> Result<String, String> {
    let old = match std::fs::read_to_string(path) {
        Ok(old) => old,
        Err(error) if error.kind() == ErrorKind::NotFound => format!("{AROUND}\n{BEGIN}\n{END}\n"),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    replaced(&old, new)
        .ok_or_else(|| format!("{} has no lines `{BEGIN}` and `{END}` to write between", path.display()))
}

/// The document with `new` between its marks.
fn replaced(old: &str, new: &str) -> Option<String> {
    let (before, rest) = old.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{new}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let first = replaced(&format!("above\n{BEGIN}\n{END}\nbelow\n"), "one\n").unwrap();
        assert_eq!(first, format!("above\n{BEGIN}\none\n{END}\nbelow\n"));
        assert_eq!(replaced(&first, "two\n").unwrap(), first.replace("one", "two"));
        assert!(replaced("no marks", "one\n").is_none());
    }

    #[test]
    fn the_truth_stands_behind_the_stroke_only_where_it_varies() {
        let outcome = |found, truth| Outcome { truth, found, cosine: None, seconds: 1.0 };
        assert_eq!(numbers(&[outcome(9, 10), outcome(10, 10)]), ("10".into(), "9 10".into()));
        assert_eq!(numbers(&[outcome(9, 10), outcome(8, 8)]), ("8 to 10".into(), "9/10 8/8".into()));
    }
}
