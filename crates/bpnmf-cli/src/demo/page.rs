//! The pages of the demo: text in, text out.

use super::matching::matched;
use super::tune::{MOMENTS, PITCHES, Tune, pitch_name};
use crate::fit::output::top_features;
use crate::folder::Folder;
use crate::text;
use bpnmf::{Fit, Posterior};
use std::fmt::Write as _;

/// Characters a picture of the whole tune takes.
const PICTURE: usize = 50;

/// What the program is given.
pub(super) fn opening(tune: &Tune) -> String {
    format!(
        "A made-up tune: how often each of {PITCHES} pitches was heard at {MOMENTS} moments,\n\
         {} counts in all. The program is told neither the notes nor their number.\n\n",
        text::grouped(tune.counts.total() as usize),
    )
}

/// What was found, beside the truth.
pub(super) fn findings(tune: &Tune, fit: &Fit) -> String {
    let posterior = &fit.posterior;
    let played = tune.played();
    let found: Vec<Vec<f64>> = (0..posterior.components()).map(|k| found_column(posterior, k)).collect();
    let truth: Vec<Vec<f64>> = played.iter().map(|&note| true_column(tune, note)).collect();
    let partners = matched(&found, &truth);

    let mut page = format!(
        "Found {}; the tune has {}. ({} in {})\n\n",
        text::plural(posterior.components(), "part", "parts"),
        text::plural(played.len(), "note", "notes"),
        text::plural(fit.trace.len(), "iteration", "iterations"),
        text::duration(fit.seconds),
    );
    page.push_str(" part  share  strongest     when it sounds: as found, below as played\n");
    for (k, partner) in partners.iter().enumerate() {
        let strongest: Vec<String> = top_features(posterior, k, 3).into_iter().map(pitch_name).collect();
        let course = &posterior.activations[k * MOMENTS..][..MOMENTS];
        let row = format!(
            "{:>5}  {:>4.1}%  {:<12}  {}",
            k,
            100.0 * posterior.share[k],
            strongest.join(" "),
            text::sparkline(course, PICTURE)
        );
        page.push_str(row.trim_end());
        page.push('\n');
        match partner {
            Some((i, cosine)) => {
                let note = played[*i];
                let course: Vec<f32> = tune.course(note).iter().map(|&loudness| loudness as f32).collect();
                let label = format!("is {}, cosine {cosine:.3}", tune.note_name(note));
                let row = format!("       {label:<20} {}", text::sparkline(&course, PICTURE));
                page.push_str(row.trim_end());
            }
            None => page.push_str("       like no note that is left"),
        }
        page.push_str("\n\n");
    }
    let missed: Vec<String> = (0..played.len())
        .filter(|i| !partners.iter().flatten().any(|(found, _)| found == i))
        .map(|i| tune.note_name(played[i]))
        .collect();
    if !missed.is_empty() {
        let _ = writeln!(page, "Played but not found: {}.\n", missed.join(", "));
    }
    page
}

/// Where to go from here.
pub(super) fn what_next(folder: Option<&Folder>) -> String {
    match folder {
        Some(folder) => format!(
            "Counts, truth and result are in {path}. Try next:\n\n  \
             bpnmf fit {path}/X.npy --out again         the same counts, another seed\n  \
             bpnmf fit your-counts.csv --out result  your own counts, rows are features\n",
            path = folder.path().display()
        ),
        None => "Try next:\n\n  \
             bpnmf demo --seed 3                     another tune\n  \
             bpnmf demo --out demo                   keep counts, truth and result\n  \
             bpnmf fit your-counts.csv --out result  your own counts, rows are features\n"
            .to_owned(),
    }
}

fn found_column(posterior: &Posterior, component: usize) -> Vec<f64> {
    let parts = posterior.components();
    (0..posterior.features).map(|f| f64::from(posterior.dictionary[f * parts + component])).collect()
}

fn true_column(tune: &Tune, note: usize) -> Vec<f64> {
    let notes = tune.notes.len();
    (0..PITCHES).map(|f| tune.dictionary[f * notes + note]).collect()
}
