//! The result on one page, for people: text out, nothing written.

use super::output::{FILES, Results, r_hat_text};
use crate::folder::Folder;
use crate::text;
use bpnmf::StopReason;
use std::fmt::Write as _;

/// Components that the page shows.
const MOST_ROWS: usize = 24;

impl Results<'_> {
    /// The result on one page.
    pub(crate) fn for_people(&self, folder: &Folder) -> String {
        let chains = self.chains;
        let parts = self.posterior().components();
        let mut page = format!(
            "{}\n{}: {}\n",
            headline(chains.n_components, chains.interval, chains.fits.len(), chains.largest_r_hat()),
            text::duration(self.seconds),
            self.why_it_stopped()
        );
        for warning in self.warnings() {
            let _ = writeln!(page, "warning: {warning}");
        }
        if parts != chains.n_components {
            let _ = writeln!(
                page,
                "The model has {}: those on with probability 1/2 or more, often enough to count.",
                text::plural(parts, "part", "parts")
            );
        }
        if parts > 0 {
            page.push_str(&self.table());
        }
        let files = FILES.iter().filter(|name| folder.file(name).exists()).copied().collect::<Vec<_>>();
        let _ = writeln!(page, "\n{}: {}", folder.path().display(), files.join(", "));
        page
    }

    fn why_it_stopped(&self) -> String {
        let iterations = text::plural(self.fit().trace.len(), "iteration", "iterations");
        let sentence = match self.stop_reason() {
            StopReason::Converged => format!("the objective settled after {iterations}"),
            StopReason::IterationLimit => format!("all {iterations} done"),
            StopReason::Interrupted => format!("interrupted after {iterations}"),
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
        let mut table = "\n part   share              on in      pi   strongest features\n".to_owned();
        for k in 0..parts.min(MOST_ROWS) {
            let component = self.component(k);
            let names: Vec<String> = component
                .top_features
                .iter()
                .map(|name| text::shortened(name.as_str().unwrap_or(&name.to_string()), 14))
                .collect();
            let _ = writeln!(
                table,
                "{:>5}  {:>5.1}%  {} {:>8}  {:>6.3}   {}",
                k,
                100.0 * component.share,
                text::bar(component.share / largest, 8),
                text::grouped(component.usage.round() as usize),
                component.pi,
                names.join(" ")
            );
        }
        if parts > MOST_ROWS {
            let _ = writeln!(table, "       and {} more in summary.json", parts - MOST_ROWS);
        }
        table
    }
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
mod tests {
    use super::headline;

    #[test]
    fn the_headline_says_how_many_and_how_sure() {
        let told = headline(11, (11, 12), 4, Some(1.0123));
        assert_eq!(told, "11 parts (90 %: 11 to 12), 4 chains, R-hat 1.01");
        assert_eq!(headline(1, (1, 1), 1, None), "1 part (90 %: 1)");
        assert_eq!(
            headline(3, (2, 4), 2, Some(f64::INFINITY)),
            "3 parts (90 %: 2 to 4), 2 chains, R-hat infinite"
        );
    }
}
