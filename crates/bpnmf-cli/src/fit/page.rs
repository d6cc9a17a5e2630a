//! The result on one page, for people: text out, nothing written.

use super::output::{Component, FILES, Results, r_hat_text};
use crate::folder::Folder;
use crate::text;
use bpnmf::StopReason;
use std::fmt::Write as _;

/// Components that the page shows.
const MOST_ROWS: usize = 24;

/// The most characters of a line.
const WIDTH: usize = 96;

/// Above this nobody cares how many nats exactly a part is worth.
const MUCH_EVIDENCE: f64 = 1000.0;

impl Results<'_> {
    /// The result on one page.
    pub(crate) fn for_people(&self, folder: &Folder) -> String {
        let mut page = self.findings();
        if self.posterior().components() > 0 {
            page.push_str(&self.table());
        }
        let files = FILES.iter().filter(|name| folder.file(name).exists()).copied().collect::<Vec<_>>();
        let _ = writeln!(page, "\n{}: {}", folder.path().display(), files.join(", "));
        page
    }

    /// How many parts there are, and what is to be said about that.
    pub(crate) fn findings(&self) -> String {
        let chains = self.chains;
        let mut page = format!(
            "{}\n{}",
            headline(chains.n_components, chains.interval, chains.fits.len(), self.largest_r_hat()),
            self.resolutions()
        );
        if let Some(sentence) = self.fit().noise_sentence() {
            page += &text::wrapped(&sentence, WIDTH);
        }
        let _ = writeln!(page, "{}: {}", text::duration(self.seconds), self.why_it_stopped());
        for warning in self.warnings() {
            page += &text::wrapped(&format!("warning: {warning}"), WIDTH);
        }
        for note in self.notes() {
            page += &text::wrapped(&format!("note: {note}"), WIDTH);
        }
        page
    }

    /// The number of parts by resolution, if there was a search.
    fn resolutions(&self) -> String {
        let Some(discovery) = self.discovery() else {
            return String::new();
        };
        let path: Vec<(f64, usize)> =
            discovery.path.iter().map(|at| (at.coarsening, at.components)).collect();
        let mut lines = path_picture(&path);
        if path.len() > 1 {
            lines +=
                "A plateau is what to trust: a number that stays when the data are read more coarsely.\n";
        }
        if let Some(sentence) = self.how_it_was_read() {
            let _ = writeln!(lines, "{sentence}");
        }
        lines
    }

    /// A sentence about the resolution, in lines, if it is not the full one.
    pub(super) fn how_it_was_read(&self) -> Option<String> {
        let discovery = self.discovery().filter(|discovery| discovery.coarsening < 1.0)?;
        let asked = self.config.options.search.as_ref().is_some_and(|search| search.coarsening.is_some());
        let power = text::resolution(discovery.coarsening);
        Some(if asked {
            format!("The data were read at {power} of their resolution, as asked for.")
        } else {
            format!(
                "The data are too smooth to be counts: they were read at {power} of their resolution\n\
                 (--coarsening 1 reads them in full)."
            )
        })
    }

    /// What is good to know and nothing to worry about.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let searched = self.discovery().is_some_and(|discovery| discovery.forced.is_none());
        if searched && self.chains.fits.len() == 1 {
            notes.push(
                "this is one chain: --chains 4 tells whether others, from other starts, agree".to_owned(),
            );
        }
        let parts = self.posterior().components();
        if parts != self.chains.n_components {
            let parts = text::plural(parts, "part", "parts");
            notes.push(format!("the model has {parts}: those that count on average over the iterations"));
        }
        let surplus = self.posterior().surplus;
        if surplus > 0 && self.posterior().evidence.is_some() {
            let parts = text::plural(surplus, "more part is", "more parts are");
            notes.push(format!("{parts} on often enough to count, but not wanted by the evidence"));
        }
        let (asked, most) = (self.config.prior.components(), self.prior().components());
        if most > asked {
            let (asked, most) = (text::grouped(asked), text::grouped(most));
            notes.push(format!("the most parts there can be grew from {asked} to {most}: there are many"));
        }
        notes
    }

    pub(super) fn why_it_stopped(&self) -> String {
        let iterations = text::plural(self.fit().trace.len(), "iteration", "iterations");
        let sentence = match self.stop_reason() {
            StopReason::Converged => format!("the objective settled after {iterations}"),
            StopReason::IterationLimit => format!("all {iterations} done"),
            StopReason::Interrupted => format!("interrupted after {iterations}"),
            StopReason::NoCounts if self.coarsening() < 1.0 => {
                "at this resolution there is not a single count left".to_owned()
            }
            StopReason::NoCounts => "there is not a single count in the matrix".to_owned(),
            other => format!("{} after {iterations}", other.name()),
        };
        match self.chains.fits.len() {
            1 => sentence,
            n => format!("{sentence}; chain {} of {n} is shown", self.chains.representative + 1),
        }
    }

    fn table(&self) -> String {
        let posterior = self.posterior();
        let parts = posterior.components();
        let largest = posterior.share[0].max(f64::MIN_POSITIVE);
        let judged = if posterior.evidence.is_some() { "  evidence" } else { "" };
        let mut table = format!("\n part   share              on in      pi{judged}   strongest features\n");
        for k in 0..parts.min(MOST_ROWS) {
            let component = self.component(k);
            let mut row = format!(
                "{:>5}  {:>5.1}%  {} {:>8}  {:>6.3}",
                k,
                100.0 * component.share,
                text::bar(component.share / largest, 8),
                text::grouped(component.usage.round() as usize),
                component.pi,
            );
            if let Some(evidence) = component.evidence {
                let _ = write!(row, "  {:>8}", nats(evidence));
            }
            row.push_str("  ");
            push_names(&mut row, &component);
            let _ = writeln!(table, "{row}");
        }
        if parts > MOST_ROWS {
            let _ = writeln!(table, "       and {} more in summary.json", parts - MOST_ROWS);
        }
        table
    }
}

/// The strongest features, as many as the line has room for, at least one.
fn push_names(row: &mut String, component: &Component) {
    let mut used = row.chars().count();
    for (i, name) in component.top_features.iter().enumerate() {
        let name = text::shortened(name.as_str().unwrap_or(&name.to_string()), 14);
        used += 1 + name.chars().count();
        if i > 0 && used > WIDTH {
            break;
        }
        row.push(' ');
        row.push_str(&name);
    }
}

/// Evidence as people read it.
fn nats(evidence: f64) -> String {
    if evidence > MUCH_EVIDENCE { format!("> {MUCH_EVIDENCE}") } else { format!("{evidence:.0}") }
}

/// The number of parts at every resolution, coarsest first, with a bar each; nothing if there is none.
fn path_picture(path: &[(f64, usize)]) -> String {
    let most = path.iter().map(|&(_, parts)| parts).max().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    let mut line = "parts by resolution".to_owned();
    for &(coarsening, parts) in path {
        let level = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][(8 * parts).div_ceil(most).max(1) - 1];
        let _ = write!(line, "   {} {level} {}", text::resolution(coarsening), text::grouped(parts));
    }
    line.push('\n');
    line
}

/// How many parts there are and how sure that is.
fn headline(parts: usize, interval: (usize, usize), chains: usize, r_hat: Option<f64>) -> String {
    let (first, last) = interval;
    let range = if first == last { first.to_string() } else { format!("{first} to {last}") };
    let mut line = format!("{} (90 %: {range})", text::plural(parts, "part", "parts"));
    if chains > 1 {
        let _ = write!(line, ", {}", text::plural(chains, "chain", "chains"));
    }
    if let Some(r_hat) = r_hat {
        let _ = write!(line, ", R-hat {}", r_hat_text(r_hat));
    }
    line
}

#[cfg(test)]
mod tests;
