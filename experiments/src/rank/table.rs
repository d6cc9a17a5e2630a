//! The tables of the suite, and their place in a document.

use super::rows::{Detail, Row};
use super::rules::{self, Outcome};
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
Rows with many fits have a table of their own below.
";

/// The tables in Markdown.
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
        let (truth, mut found) = numbers(&done.outcomes);
        if done.row.detail == Detail::ByMean {
            found = tally(&done.outcomes);
        }
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
    for done in rows.iter().filter(|done| !done.outcomes.is_empty()) {
        text += &match done.row.detail {
            Detail::Nothing => continue,
            Detail::ByMean => by_mean(done),
            Detail::Times => times(done),
        };
    }
    text
}

/// The K of every fit: a line a family of data sets, a column a mean count.
fn by_mean(done: &Done) -> String {
    let means = rules::groups(&done.outcomes, |case| case.set.mean());
    let heads = means.iter().map(|(mean, _)| mean.map_or_else(String::new, |mean| format!(" mean {mean} |")));
    let mut text = format!("\n{}:\n\n| |{}\n|---|", done.row.title, heads.collect::<String>());
    text += &"---|".repeat(means.len());
    for (family, fits) in rules::groups(&done.outcomes, |case| case.set.family()) {
        text += &format!("\n| {family} |");
        for (mean, _) in &means {
            let found =
                fits.iter().filter(|fit| fit.case.set.mean() == *mean).map(|fit| fit.found.to_string());
            text += &format!(" {} |", found.collect::<Vec<_>>().join(" "));
        }
    }
    text + "\n"
}

/// The seconds of every data set, and their ratio to those of the first.
fn times(done: &Done) -> String {
    let times = rules::times(&done.outcomes);
    let mut text =
        format!("\n{}:\n\n| data | seconds (median) | to the first |\n|---|---|---|\n", done.row.title);
    for (set, seconds) in &times {
        text += &format!("| `{set}` | {seconds:.2} | {:.2} |\n", seconds / times[0].1);
    }
    text
}

/// The truth and the K of every fit, as `10` and `10 11 9` or as `16 to 28` and `16/16 29/28`.
fn numbers(outcomes: &[Outcome]) -> (String, String) {
    let truths = || outcomes.iter().filter_map(|outcome| outcome.truth);
    let (least, most) = (truths().min(), truths().max());
    let found = |outcome: &Outcome| match outcome.truth {
        Some(truth) if least != most => format!("{}/{truth}", outcome.found),
        _ => outcome.found.to_string(),
    };
    let truth = match (least, most) {
        (Some(least), Some(most)) if least != most => format!("{least} to {most}"),
        (Some(truth), _) => truth.to_string(),
        (None, _) => "not known".into(),
    };
    (truth, outcomes.iter().map(found).collect::<Vec<_>>().join(" "))
}

/// How many fits are off by how much, as `104 exact, 3 off by 1 to 3, 1 by more`.
fn tally(outcomes: &[Outcome]) -> String {
    let many = |errors: std::ops::RangeInclusive<usize>| {
        outcomes.iter().filter(|outcome| errors.contains(&outcome.error())).count()
    };
    format!("{} exact, {} off by 1 to 3, {} by more", many(0..=0), many(1..=3), many(4..=usize::MAX))
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
    use super::super::data::Set;
    use super::super::rows::Case;
    use super::super::rules::Rule;
    use super::*;

    fn outcome(set: Set, found: usize, truth: usize) -> Outcome {
        Outcome { case: Case::new(set, 1), truth: Some(truth), found, cosine: None, seconds: found as f64 }
    }

    #[test]
    fn the_truth_stands_behind_the_stroke_only_where_it_varies() {
        let outcome = |found, truth| outcome(Set::Bars, found, truth);
        assert_eq!(numbers(&[outcome(9, 10), outcome(10, 10)]), ("10".into(), "9 10".into()));
        assert_eq!(numbers(&[outcome(9, 10), outcome(8, 8)]), ("8 to 10".into(), "9/10 8/8".into()));
        let unknown = Outcome { truth: None, ..outcome(9, 0) };
        assert_eq!(numbers(&[unknown]), ("not known".into(), "9".into()));
    }

    #[test]
    fn fits_are_counted_by_how_far_they_are_off() {
        let fits =
            [(10, 10), (9, 10), (14, 10), (3, 3)].map(|(found, truth)| outcome(Set::Bars, found, truth));
        assert_eq!(tally(&fits), "2 exact, 1 off by 1 to 3, 1 by more");
    }

    #[test]
    fn a_table_of_its_own_has_a_column_a_mean_count_and_seconds_a_line_a_set() {
        let cell = |components, mean| Set::Grid { components, shape: 1.0, mean, size: (96, 100) };
        let outcomes =
            vec![outcome(cell(3, 5.0), 3, 3), outcome(cell(3, 50.0), 4, 3), outcome(cell(4, 50.0), 5, 4)];
        let row = Row::new("grid", "grid", Vec::new(), Rule::Spread(1));
        let done = Done { row, outcomes, literal: None };
        let lines = "| | mean 5 | mean 50 |\n|---|---|---|\n| K0 3, H of shape 1 | 3 | 4 |\n| K0 4, H of shape 1 |  | 5 |\n";
        assert_eq!(by_mean(&done), format!("\ngrid:\n\n{lines}"));
        assert!(times(&done).ends_with("| `grid_3_1_50` | 4.00 | 1.33 |\n| `grid_4_1_50` | 5.00 | 1.67 |\n"));
    }
}
