//! The tables of a result, for spreadsheets, R and pandas: tabs between cells, a line of names, a column of names.

use crate::failure::Failure;
use crate::fit::units::InCounts;
use crate::folder::Folder;
use bpnmf_report::text::component_name;
use std::io::{self, BufWriter, Write};

/// The tables, in the order in which they are told.
pub(crate) const TABLES: [&str; 7] = [
    "signatures.tsv",
    "signatures_low.tsv",
    "signatures_high.tsv",
    "exposures.tsv",
    "exposures_low.tsv",
    "exposures_high.tsv",
    "inclusion.tsv",
];

/// What the tables are of.
pub(crate) struct Named<'a> {
    pub(crate) features: usize,
    pub(crate) observations: usize,
    pub(crate) components: usize,
    pub(crate) feature_names: Option<&'a [String]>,
    pub(crate) observation_names: Option<&'a [String]>,
}

/// Writes all tables; those of intervals only if there are any.
pub(crate) fn write(
    folder: &Folder,
    named: &Named<'_>,
    model: &InCounts,
    inclusion: &[f32],
) -> Result<(), Failure> {
    let (k, t) = (named.components, named.observations);
    let columns: Vec<String> = (0..k).map(|c| component_name(c, k)).collect();
    let of_features = |file: &str, values: &[f32]| {
        let rows = Rows { corner: "feature", names: named.feature_names, number: named.features };
        table(folder, file, &rows, &columns, &|f, c| values[f * k + c])
    };
    let of_observations = |file: &str, values: &[f32]| {
        let rows = Rows { corner: "observation", names: named.observation_names, number: t };
        table(folder, file, &rows, &columns, &|i, c| values[c * t + i])
    };
    of_features(TABLES[0], &model.signatures)?;
    of_observations(TABLES[3], &model.exposures)?;
    of_observations(TABLES[6], inclusion)?;
    for (end, (signatures, exposures)) in model.intervals.iter().flatten().enumerate() {
        of_features(TABLES[1 + end], signatures)?;
        of_observations(TABLES[4 + end], exposures)?;
    }
    Ok(())
}

/// What stands in front of the rows of a table.
pub(crate) struct Rows<'a> {
    /// Above the names.
    pub(crate) corner: &'a str,
    /// Without any, rows have numbers from 0.
    pub(crate) names: Option<&'a [String]>,
    pub(crate) number: usize,
}

/// Writes one table: `value` of row and column.
pub(crate) fn table(
    folder: &Folder,
    file: &str,
    rows: &Rows<'_>,
    columns: &[String],
    value: &dyn Fn(usize, usize) -> f32,
) -> Result<(), Failure> {
    let name = |i: usize| rows.names.map_or_else(|| i.to_string(), |names| clean(&names[i]));
    let write = |writer: &mut dyn Write| -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 16, writer);
        out.write_all(rows.corner.as_bytes())?;
        columns.iter().try_for_each(|column| write!(out, "\t{}", clean(column)))?;
        for i in 0..rows.number {
            write!(out, "\n{}", name(i))?;
            (0..columns.len()).try_for_each(|k| write!(out, "\t{}", number(value(i, k))))?;
        }
        out.write_all(b"\n")?;
        out.flush()
    };
    bpnmf_io::write_atomically(&folder.file(file), |writer| write(writer)).map_err(Failure::writing)
}

/// As few digits as tell it from all others: 0, 0.25, 3, 1e-7.
fn number(value: f32) -> String {
    let text = format!("{value:?}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

/// A name that stays in its cell: without tabs, ends of lines, and quotes at its beginning, which R would take for more.
fn clean(name: &str) -> String {
    let blank = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = name.chars().map(blank).collect();
    if text.contains('"') { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::{clean, number};

    #[test]
    fn numbers_are_short_and_exact() {
        let values = [0.0, 0.25, 3.0, 1e-7, 16741.5, 0.1];
        assert_eq!(values.map(number), ["0", "0.25", "3", "1e-7", "16741.5", "0.1"]);
        assert!(values.iter().all(|value| number(*value).parse() == Ok(*value)));
    }

    #[test]
    fn a_name_stays_in_its_cell() {
        assert_eq!(
            [clean("A[C>A]A"), clean("a\tb\nc"), clean("5\" mix")],
            ["A[C>A]A", "a b c", "\"5\"\" mix\""]
        );
    }
}
