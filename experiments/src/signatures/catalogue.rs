//! Catalogues of mutations as tables of text: a few columns of names, then a column of numbers a sample or a signature.

use crate::rank::data::Trouble;
use bpnmf::Counts;
use std::path::Path;

/// A table of text.
struct Table {
    /// What stands before the numbers of a row.
    rows: Vec<String>,
    /// The numbers, column after column.
    columns: Vec<Vec<f64>>,
}

/// Counts, and the signatures they are made of where these are known.
pub(super) struct Catalogue {
    pub(super) counts: Counts,
    /// Each of length F; empty if they are not known.
    pub(super) signatures: Vec<Vec<f64>>,
    /// The rates of the counts, column after column; empty if they are not known.
    pub(super) rates: Vec<f64>,
}

impl Catalogue {
    /// The counts of one file and the true signatures of another, with the same `names` columns of names.
    pub(super) fn read(counts: &Path, signatures: Option<&Path>, names: usize) -> Result<Self, Trouble> {
        let table = read(counts, names)?;
        let truth = signatures.map(|path| read(path, names)).transpose()?;
        if truth.as_ref().is_some_and(|truth| truth.rows != table.rows) {
            let reason = format!("{}: its rows are not those of the signatures", counts.display());
            return Err(Trouble::Bad(reason));
        }
        let (features, observations) = (table.rows.len(), table.columns.len());
        Ok(Self {
            counts: Counts::from_dense(features, observations, table.columns.concat())?,
            signatures: truth.map_or_else(Vec::new, |truth| truth.columns),
            rates: Vec::new(),
        })
    }
}

fn read(path: &Path, names: usize) -> Result<Table, Trouble> {
    if !path.is_file() {
        return Err(Trouble::absent(path));
    }
    let bad = |reason: String| Trouble::Bad(format!("{}: {reason}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    let delimiter = if path.extension().is_some_and(|extension| extension == "tsv") { '\t' } else { ',' };
    parse(&text, delimiter, names).map_err(bad)
}

fn parse(text: &str, delimiter: char, names: usize) -> Result<Table, String> {
    let mut lines = text.lines();
    let width = lines.next().unwrap_or_default().split(delimiter).count();
    let mut table = Table { rows: Vec::new(), columns: vec![Vec::new(); width.saturating_sub(names)] };
    for (line, number) in lines.zip(2..) {
        let cells: Vec<&str> = line.split(delimiter).map(|cell| cell.trim_matches('"')).collect();
        if cells.len() != width {
            return Err(format!("line {number} has {} cells, the first has {width}", cells.len()));
        }
        table.rows.push(cells[..names].join(" "));
        for (cell, column) in cells[names..].iter().zip(&mut table.columns) {
            column.push(cell.parse().map_err(|_| format!("line {number}: `{cell}` is not a number"))?);
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_not_numbers_even_if_they_look_like_them() {
        let table = parse("Type,Size,\"a\",b\nDEL,1,3,4\nINS,2,5,0\n", ',', 2).unwrap();
        assert_eq!(table.rows, ["DEL 1", "INS 2"]);
        assert_eq!(table.columns, [[3.0, 5.0], [4.0, 0.0]]);
        assert!(parse("a,b\n1,2\n3\n", ',', 1).is_err() && parse("a,b\n1,x\n", ',', 1).is_err());
    }

    #[test]
    fn a_file_that_is_not_there_is_told_from_one_that_is_bad() {
        let folder = std::env::temp_dir().join(format!("bpnmf-catalogue-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (counts, truth) = (folder.join("counts.tsv"), folder.join("truth.tsv"));
        assert!(matches!(Catalogue::read(&counts, None, 1), Err(Trouble::Absent(_))));
        std::fs::write(&counts, "\t0\t1\n0\t3\t4\n1\t0\t2\n").unwrap();
        let read = Catalogue::read(&counts, None, 1).unwrap();
        assert_eq!((read.counts.column_totals(), read.signatures.len()), (&[3.0, 6.0][..], 0));
        assert!(matches!(Catalogue::read(&counts, Some(&truth), 1), Err(Trouble::Absent(_))));
        std::fs::write(&truth, "\ta\n0\t0.25\n2\t0.75\n").unwrap();
        assert!(matches!(Catalogue::read(&counts, Some(&truth), 1), Err(Trouble::Bad(_))));
        std::fs::write(&truth, "\ta\n0\t0.25\n1\t0.75\n").unwrap();
        assert_eq!(Catalogue::read(&counts, Some(&truth), 1).unwrap().signatures, [[0.25, 0.75]]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
