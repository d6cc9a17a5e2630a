//! The result on one page, for people: text out, nothing written.

use super::markers::Markers;
use super::output::{Component, Extra, FILES, Results, r_hat_text};
use crate::catalogue::Catalogue;
use crate::folder::Folder;
use crate::text;
use bpnmf::{Chains, StopReason};
use serde_json::Value;
use std::fmt::Write as _;

/// Components that the page shows.
const MOST_ROWS: usize = 24;

/// The most characters of a line.
const WIDTH: usize = 96;

/// Above this nobody cares how many nats exactly a part is worth.
const MUCH_EVIDENCE: f64 = 1000.0;

impl Results<'_> {
    /// The result on one page; with what was doubted about the data before the run once more.
    pub(crate) fn for_people(&self, folder: &Folder, extra: &Extra<'_>) -> String {
        let mut page = self.findings();
        for doubt in &extra.warnings {
            page += &text::wrapped(&format!("warning: {doubt}"), WIDTH);
        }
        if self.posterior().components() > 0 {
            page.push_str(&self.table());
        }
        if let Some((_, sentences)) = &extra.matches {
            page += "\nin the catalogue\n";
            for (k, sentence) in sentences.iter().enumerate().take(MOST_ROWS) {
                page += &text::wrapped(&format!("{:>9}  {sentence}", self.name(k)), WIDTH);
            }
        }
        let files = FILES.iter().filter(|name| folder.file(name).exists()).copied().collect::<Vec<_>>();
        let _ = writeln!(page, "\n{}: {}", folder.path().display(), files.join(", "));
        page
    }

    /// How many parts there are, and what is to be said about that.
    pub(crate) fn findings(&self) -> String {
        let chains = self.chains;
        let mut page =
            format!("{}\n{}", headline(chains, self.words(), self.config.job.forced()), self.resolutions());
        if let Some(sentence) = self.fit().noise_sentence() {
            page += &text::wrapped(&sentence, WIDTH);
        }
        let _ = writeln!(page, "{}: {}", text::duration(self.seconds), self.why_it_stopped());
        for note in self.notes() {
            page += &text::wrapped(&format!("note: {note}"), WIDTH);
        }
        page
    }

    /// The number of parts by resolution, if there was a search.
    fn resolutions(&self) -> String {
        let path: Vec<(f64, usize)> =
            self.fit().resolution_path().iter().map(|at| (at.coarsening, at.components)).collect();
        let mut lines = path_picture(&path, self.words().1);
        if let Some(sentence) = bpnmf_report::plateau_sentence(&path) {
            lines += &text::wrapped(&sentence, WIDTH);
        }
        if let Some(sentence) = self.how_it_was_read() {
            let _ = writeln!(lines, "{sentence}");
        }
        lines
    }

    /// A sentence about the resolution, in lines, if it is not the full one.
    pub(super) fn how_it_was_read(&self) -> Option<String> {
        let discovery = self.discovery().filter(|discovery| discovery.coarsening < 1.0)?;
        let asked = self.config.job.plan.coarsening.is_some();
        let power = text::resolution(discovery.coarsening);
        Some(if asked {
            format!("The data were read at {power} of their resolution, as asked for.")
        } else if discovery.factor.is_some() {
            format!("They were read at {power} of their resolution (--coarsening 1 reads them in full).")
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
        notes.extend(self.doubtful());
        let surplus = self.posterior().surplus;
        if surplus > 0 && self.posterior().evidence.is_some() {
            let (one, many) = self.words();
            let more = text::plural(surplus, &format!("more {one} is"), &format!("more {many} are"));
            notes.push(format!("{more} on often enough to count, but not wanted by the evidence"));
        }
        let (asked, most) = (self.config.job.prior.components(), self.prior().components());
        if most > asked {
            let (asked, most) = (text::grouped(asked), text::grouped(most));
            let (_, many) = self.words();
            notes.push(format!("the most {many} there can be grew from {asked} to {most}: there are many"));
        }
        notes
    }

    /// The parts that half of the chains or fewer have, if there are any.
    fn doubtful(&self) -> Option<String> {
        let doubtful = self.chains.doubtful();
        let was = if doubtful.len() == 1 { "was" } else { "were" };
        let listed = doubtful.iter().map(|&k| self.name(k)).collect::<Vec<_>>().join(", ");
        let (one, many) = self.words();
        let of = text::plural(self.chains.n_components, one, many);
        let number = text::grouped(doubtful.len());
        let sentence = format!("{number} of {of} {was} found by half of the chains or fewer: {listed}");
        (!doubtful.is_empty()).then_some(sentence)
    }

    pub(super) fn why_it_stopped(&self) -> String {
        let iterations = text::plural(self.fit().trace.len(), "iteration", "iterations");
        let sentence = match self.stop_reason() {
            StopReason::Converged => format!("the objective settled after {iterations}"),
            StopReason::IterationLimit => format!("all {iterations} done"),
            StopReason::Interrupted => format!("interrupted after {iterations}"),
            StopReason::TimeBudget => format!("the time budget was used up after {iterations}"),
            StopReason::Sure => "sure: the last half of the chains changed nothing".to_owned(),
            StopReason::ChainLimit => "not sure, and no more chains may be made".to_owned(),
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

    /// What a catalogue says about the components: the table, and a sentence for each.
    pub(super) fn matches(&self, catalogue: &Catalogue) -> (String, Vec<String>) {
        let posterior = self.posterior();
        let names: Vec<String> = (0..posterior.components()).map(|k| self.name(k)).collect();
        let matches = catalogue.matches(&posterior.dictionary, names.len());
        (catalogue.table(&names, &matches), matches.iter().map(|found| catalogue.sentence(found)).collect())
    }

    /// What features a component is known by: of a recording the loudest frequencies, else those that the others lack.
    fn naming(&self) -> (&'static str, fn(&Component) -> &[Value]) {
        match self.source.recording {
            true => ("strongest features", |component| &component.top_features),
            false => ("marker features", |component| &component.markers),
        }
    }

    fn table(&self) -> String {
        let posterior = self.posterior();
        let parts = posterior.components();
        let markers = Markers::new(posterior);
        let largest = posterior.share[0].max(f64::MIN_POSITIVE);
        let judged = if posterior.evidence.is_some() { "  evidence" } else { "" };
        let chains = if self.chains.recurrence.is_some() { "  chains" } else { "" };
        let mut table =
            format!("\ncomponent   share              on in      pi{judged}{chains}   {}\n", self.naming().0);
        for k in 0..parts.min(MOST_ROWS) {
            let component = self.component(k, &markers);
            let mut row = format!(
                "{:>9}  {:>5.1}%  {} {:>8}  {:>6.3}",
                component.name,
                100.0 * component.share,
                text::bar(component.share / largest, 8),
                text::grouped(component.usage.round() as usize),
                component.pi,
            );
            if let Some(evidence) = component.evidence {
                let _ = write!(row, "  {:>8}", nats(evidence));
            }
            if let Some(recurrence) = &self.chains.recurrence {
                let found = format!("{}/{}", recurrence[k].found_by, recurrence[k].chains);
                let _ = write!(row, "  {found:>6}");
            }
            row.push_str("  ");
            push_names(&mut row, self.naming().1(&component));
            let _ = writeln!(table, "{row}");
        }
        if parts > MOST_ROWS {
            let _ = writeln!(table, "           and {} more in summary.json", parts - MOST_ROWS);
        }
        table
    }
}

/// Features, as many as the line has room for, at least one.
fn push_names(row: &mut String, names: &[Value]) {
    let mut used = row.chars().count();
    for (i, name) in names.iter().enumerate() {
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

/// The number of components at every resolution, coarsest first, with a bar each; nothing if there is none.
fn path_picture(path: &[(f64, usize)], many: &str) -> String {
    let most = path.iter().map(|&(_, parts)| parts).max().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    let mut line = format!("{many} by resolution");
    for &(coarsening, parts) in path {
        let level = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][(8 * parts).div_ceil(most).max(1) - 1];
        let _ = write!(line, "   {} {level} {}", text::resolution(coarsening), text::grouped(parts));
    }
    line.push('\n');
    line
}

/// How many components there are and how sure that is.
fn headline(chains: &Chains, (one, many): (&str, &str), forced: bool) -> String {
    let mut line = text::plural(chains.n_components, one, many);
    match (forced, chains.interval) {
        (true, _) => line += ", as asked for",
        (false, None) => line += " (one chain: how sure is not known)",
        (false, Some((first, last))) => {
            let chains = text::plural(chains.fits.len(), "chain", "chains");
            let _ = write!(line, " (90 %: {}), {chains}", range(first, last));
        }
    }
    if let Some(r_hat) = chains.r_hat() {
        let _ = write!(line, ", R-hat {}", r_hat_text(r_hat));
    }
    line
}

/// "11 to 12", or "11" alone.
fn range(first: usize, last: usize) -> String {
    if first == last { first.to_string() } else { format!("{first} to {last}") }
}

#[cfg(test)]
mod tests;
