//! The table of the suite, and its place in a document.

use super::rows::{Outcome, Row};
use crate::document;
use crate::spread::Spread;
use std::path::Path;

/// A row that was run, or why it was not.
pub(super) struct Done {
    pub(super) row: Row,
    /// Empty if the data was not there.
    pub(super) outcomes: Vec<Outcome>,
    /// K of the literal algorithm on the first case.
    pub(super) literal: Option<usize>,
}

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
    Spread::of(outcomes.iter().map(|outcome| outcome.seconds)).median
}

/// Puts the table into the document: in place of the old one if there is one, so that words around it stay.
pub(super) fn write(path: &Path, rows: &[Done], command: &str, threads: usize) -> Result<(), String> {
    let on = if threads == 1 { "one thread".into() } else { format!("{threads} threads") };
    let new = format!("`{command}` prints this, on {on}:\n\n{}", markdown(rows));
    document::write(path, AROUND, &new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_truth_stands_behind_the_stroke_only_where_it_varies() {
        let outcome = |found, truth| Outcome { truth, found, cosine: None, seconds: 1.0 };
        assert_eq!(numbers(&[outcome(9, 10), outcome(10, 10)]), ("10".into(), "9 10".into()));
        assert_eq!(numbers(&[outcome(9, 10), outcome(8, 8)]), ("8 to 10".into(), "9/10 8/8".into()));
    }
}
