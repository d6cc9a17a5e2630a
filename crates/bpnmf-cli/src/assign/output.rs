//! What an assignment leaves behind, and what is printed of it.

use super::signatures::Signatures;
use crate::args::AssignArgs;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::tables::{Rows, table};
use crate::text;
use bpnmf::Assigned;
use bpnmf_io::Table;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The files, the summary last: where it stands, the others are complete.
pub(super) const FILES: [&str; 6] = [
    "exposures.tsv",
    "exposures_low.tsv",
    "exposures_high.tsv",
    "inclusion.tsv",
    "samples.tsv",
    "summary.json",
];

/// Signatures that are printed.
const MOST_ROWS: usize = 24;

/// An assignment and what it was about.
pub(super) struct Results<'a> {
    pub(super) args: &'a AssignArgs,
    pub(super) table: &'a Table,
    pub(super) signatures: &'a Signatures,
    pub(super) found: &'a Assigned,
    pub(super) warnings: Vec<String>,
    pub(super) seconds: f64,
}

/// One signature over all samples.
struct Row {
    index: usize,
    share: f64,
    present: usize,
}

impl Results<'_> {
    fn observations(&self) -> usize {
        self.table.counts.observations()
    }

    /// Writes all files.
    pub(super) fn write(&self, folder: &Folder) -> Result<(), Failure> {
        folder.create()?;
        let (found, number) = (self.found, self.signatures.names.len());
        let rows = Rows {
            corner: "observation",
            names: self.table.observation_names.as_deref(),
            number: self.observations(),
        };
        let tables = [&found.exposures, &found.intervals[0], &found.intervals[1], &found.inclusion];
        for (file, values) in FILES.iter().zip(tables) {
            table(folder, file, &rows, &self.signatures.names, &|t, k| values[t * number + k])?;
        }
        let columns = ["counts", "n_present", "cosine", "log_likelihood"].map(str::to_owned);
        let of_samples = |t: usize, column: usize| match column {
            0 => self.table.counts.column_totals()[t] as f32,
            1 => self.present(t).count() as f32,
            2 => self.cosine(t) as f32,
            _ => found.log_likelihood[t] as f32,
        };
        table(folder, FILES[4], &rows, &columns, &of_samples)?;
        let mut text = serde_json::to_string_pretty(&self.summary()).expect("only strings are keys");
        text.push('\n');
        bpnmf_io::write_atomically(&folder.file(FILES[5]), |writer| {
            std::io::Write::write_all(writer, text.as_bytes())
        })
        .map_err(Failure::writing)
    }

    fn summary(&self) -> Value {
        let counts = &self.table.counts;
        let signatures: Vec<Value> = self
            .rows()
            .into_iter()
            .map(|row| {
                json!({
                    "name": self.signatures.names[row.index],
                    "share": row.share,
                    "n_present": row.present,
                    "pi": self.found.pi[row.index],
                })
            })
            .collect();
        json!({
            "signatures_from": self.args.signatures.display().to_string(),
            "prior": if self.signatures.fitted { "of the fit" } else { "learned" },
            "noise": self.found.noise.name(),
            "alpha": self.found.noise.alpha(),
            "present_from": self.found.present_from(),
            "seed": self.args.seed,
            "draws": self.args.draws,
            "seconds": self.seconds,
            "version": bpnmf::VERSION,
            "warnings": self.warnings,
            "input": {
                "path": self.args.input.display().to_string(),
                "read_as": self.table.layout.as_ref().map(ToString::to_string),
                "features": counts.features(),
                "observations": counts.observations(),
                "missing": counts.missing_entries(),
                "total": counts.total(),
            },
            "signatures": signatures,
        })
    }

    /// The signatures that are present in sample `t`.
    fn present(&self, t: usize) -> impl Iterator<Item = usize> + '_ {
        let number = self.signatures.names.len();
        let least = self.found.present_from();
        (0..number).filter(move |k| self.found.inclusion[t * number + k] >= least)
    }

    /// All signatures, the one with the most counts first.
    fn rows(&self) -> Vec<Row> {
        let number = self.signatures.names.len();
        let all: f64 = self.found.exposures.iter().map(|&h| f64::from(h)).sum();
        let least = self.found.present_from();
        let row = |index: usize| {
            let of = |values: &[f32]| values.iter().skip(index).step_by(number).copied().collect::<Vec<_>>();
            let sum: f64 = of(&self.found.exposures).into_iter().map(f64::from).sum();
            let present = of(&self.found.inclusion).into_iter().filter(|on| *on >= least).count();
            Row { index, share: if all > 0.0 { sum / all } else { 0.0 }, present }
        };
        let mut rows: Vec<Row> = (0..number).map(row).collect();
        rows.sort_by(|one, other| other.share.total_cmp(&one.share));
        rows
    }

    /// The cosine of a sample with what is expected of it, over the entries that were observed.
    fn cosine(&self, t: usize) -> f64 {
        let (counts, number) = (&self.table.counts, self.signatures.names.len());
        let exposures = &self.found.exposures[t * number..][..number];
        let rate = |row: &[f64]| row.iter().zip(exposures).map(|(w, h)| w * f64::from(*h)).sum::<f64>();
        let mut rates: Vec<f64> = self.signatures.shares.chunks_exact(number).map(rate).collect();
        counts.missing(t).iter().for_each(|&f| rates[f as usize] = 0.0);
        let (mut dot, mut square) = (0.0, 0.0);
        for (f, x) in counts.column(t).positive() {
            dot += x * rates[f];
            square += x * x;
        }
        let norms = square * rates.iter().map(|rate| rate * rate).sum::<f64>();
        if norms > 0.0 { dot / norms.sqrt() } else { 0.0 }
    }

    /// The result on one page.
    pub(super) fn for_people(&self, folder: &Folder) -> String {
        let rows = self.rows();
        let somewhere = rows.iter().filter(|row| row.present > 0).count();
        let mut page = format!(
            "{} of {} present in {}",
            text::grouped(somewhere),
            text::plural(rows.len(), "signature", "signatures"),
            text::plural(self.observations(), "sample", "samples"),
        );
        let _ = writeln!(
            page,
            " (with a probability of at least {:.2}); {}",
            self.found.present_from(),
            text::duration(self.seconds)
        );
        let _ = writeln!(page, "{}", self.found.noise.sentence());
        for warning in &self.warnings {
            page += &text::wrapped(&format!("warning: {warning}"), 96);
        }
        let largest = rows.first().map_or(1.0, |row| row.share).max(f64::MIN_POSITIVE);
        let shown: Vec<&Row> = rows.iter().filter(|row| row.present > 0).collect();
        if !shown.is_empty() {
            page.push_str("\n       signature   share           present in\n");
        }
        for row in shown.iter().take(MOST_ROWS) {
            let _ = writeln!(
                page,
                "{:>16}  {:>5.1}%  {}  {:>9}",
                text::shortened(&self.signatures.names[row.index], 16),
                100.0 * row.share,
                text::bar(row.share / largest, 8),
                text::grouped(row.present)
            );
        }
        if shown.len() > MOST_ROWS {
            let _ = writeln!(page, "and {} more in summary.json", shown.len() - MOST_ROWS);
        }
        let _ = writeln!(page, "\n{}: {}", folder.path().display(), FILES.join(", "));
        page
    }
}
