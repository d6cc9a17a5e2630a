//! The separation on one page, for people: text out, nothing written.

use super::frame_seconds;
use super::output::Separation;
use super::sounds::{COMPONENTS, STEMS};
use crate::folder::Folder;
use crate::text;
use bpnmf_audio::Kind;
use std::fmt::Write as _;

/// Parts and stems that the page shows.
const MOST_ROWS: usize = 24;

/// The most characters of a line.
const WIDTH: usize = 96;

impl Separation<'_> {
    /// The result on one page.
    pub(crate) fn for_people(&self, folder: &Folder) -> String {
        let mut page = self.results.findings();
        for warning in self.warnings() {
            page += &text::wrapped(&format!("warning: {warning}"), WIDTH);
        }
        page += &self.table();
        page += &self.groups();
        let stems = if self.stems.names.is_empty() { "" } else { "stems/, " };
        let _ = writeln!(
            page,
            "\n{}: {COMPONENTS}/, {stems}notes.csv, notes.mid, model.npz, summary.json, trace.csv\nSee and listen: {}",
            folder.path().display(),
            folder.file("report.html").display()
        );
        if self.stems.names.is_empty() {
            page +=
                "Parts that belong together as one sound: --stems N, --groups FILE or --reference FILE...\n";
        }
        page
    }

    /// A line a part.
    fn table(&self) -> String {
        let posterior = self.results.posterior();
        let largest = posterior.share.first().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
        let seconds = frame_seconds(self.recording);
        let heard = self.notes.heard;
        let offset = 12.0 * (heard.a4 / 440.0).log2();
        let mut table = "\n part   share              on for   sounds like\n".to_owned();
        for k in 0..posterior.components().min(MOST_ROWS) {
            let pitch = &heard.pitches[k];
            let what = match pitch.kind {
                Kind::Note => bpnmf_audio::note_name((pitch.midi - offset).round() as i32),
                other => other.name().to_owned(),
            };
            let _ = writeln!(
                table,
                "{k:>5}  {:>5.1}%  {} {:>8}   {what}",
                100.0 * posterior.share[k],
                text::bar(posterior.share[k] / largest, 8),
                text::duration(posterior.usage[k] * seconds),
            );
        }
        if posterior.components() > MOST_ROWS {
            let _ = writeln!(table, "       and {} more in summary.json", posterior.components() - MOST_ROWS);
        }
        let _ = writeln!(
            table,
            "{} heard, A4 at {:.1} Hz",
            text::plural(heard.notes.len(), "note", "notes"),
            heard.a4
        );
        table
    }

    /// A line a stem.
    fn groups(&self) -> String {
        let share = &self.results.posterior().share;
        let mut lines = String::new();
        for (i, name) in self.stems.names.iter().enumerate().take(MOST_ROWS) {
            let what = match self.stems.stems.members.get(i) {
                None => "what no part explains".to_owned(),
                Some(members) if members.is_empty() => "no parts".to_owned(),
                Some(members) => {
                    let percent = 100.0 * members.iter().map(|&k| share[k]).sum::<f64>();
                    let numbers = members.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
                    let word = if members.len() == 1 { "part" } else { "parts" };
                    format!("{percent:.1}%, {word} {numbers}")
                }
            };
            lines += &text::wrapped(&format!("{STEMS}/{}.wav: {what}", text::shortened(name, 40)), WIDTH);
        }
        if !lines.is_empty() {
            lines.insert(0, '\n');
            lines += "Together the stems are the recording.\n";
        }
        lines
    }
}
