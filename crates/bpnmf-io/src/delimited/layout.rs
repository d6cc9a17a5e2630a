//! What the first line and the first columns of a table are: names or numbers. Decided by the first rows.

use super::numbers::{Decimal, Numbers};
use crate::error::Fault;
use crate::read::ReadOptions;
use std::fmt;

/// Between the cells of a name that has several.
pub(super) const JOIN: &str = ":";

/// The most columns of names that are found by themselves, and which part of a further one must be text.
const MOST_NAMES: usize = 6;
const LEAST_TEXT: f64 = 0.1;

/// Rows from which on a first column that counts up is taken for names.
const LEAST_NUMBERED: usize = 10;

/// What heads a column of identifiers.
const IDENTIFIERS: [&str; 32] = [
    "",
    "barcode",
    "cell",
    "cells",
    "chemical",
    "doc",
    "document",
    "ensembl",
    "ensg",
    "entrez",
    "entrezgene",
    "feature",
    "features",
    "gene",
    "genes",
    "geneid",
    "id",
    "ids",
    "identifier",
    "index",
    "item",
    "name",
    "names",
    "peak",
    "probe",
    "row",
    "rownames",
    "sample",
    "symbol",
    "taxon",
    "user",
    "word",
];

/// How a table of text was understood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layout {
    /// The first line holds the names of the columns.
    pub header: bool,
    /// So many columns at the beginning hold names; joined by a colon if there are several.
    pub names: usize,
    /// How numbers are written.
    pub decimal: Decimal,
    /// Numbers have thousands separators.
    pub thousands: bool,
    /// Lines that begin with # and were left out.
    pub comments: usize,
    /// Sentences: what may have been understood wrongly, and what to do then.
    pub doubts: Vec<String>,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = match self.names {
            0 => "none".to_owned(),
            1 => "first column".to_owned(),
            n => format!("first {n} columns, joined by {JOIN}"),
        };
        write!(f, "header: {}; names: {names}", if self.header { "yes" } else { "no" })?;
        match (self.decimal, self.thousands) {
            (Decimal::Point, false) => {}
            (Decimal::Point, true) => write!(f, "; 1,885 is 1885")?,
            (Decimal::Comma, false) => write!(f, "; decimal commas")?,
            (Decimal::Comma, true) => write!(f, "; 1.885 is 1885")?,
        }
        match self.comments {
            0 => Ok(()),
            1 => write!(f, "; 1 line after # left out"),
            n => write!(f, "; {n} lines after # left out"),
        }
    }
}

/// The first rows, with their lines.
#[derive(Default)]
pub(super) struct Sample {
    pub(super) rows: Vec<(usize, Vec<String>)>,
}

impl Sample {
    pub(super) fn width(&self) -> usize {
        self.rows.first().map_or(0, |(_, cells)| cells.len())
    }

    pub(super) fn push(&mut self, line: usize, cells: Vec<String>) -> Result<(), Fault> {
        let width = self.width();
        let text = |cell: &str| !cell.is_empty() && cell.parse::<f64>().is_err();
        // R's write.table gives the column of row names no header.
        if self.rows.len() == 1
            && cells.len() == width + 1
            && self.rows[0].1.iter().any(|cell| text(cell))
            && text(&cells[0])
        {
            self.rows[0].1.insert(0, String::new());
        }
        if let Some((first_line, first)) = self.rows.first()
            && cells.len() != first.len()
        {
            let (cells, expected) = (cells.len(), first.len());
            return Err(Fault::Ragged { line, cells, first_line: *first_line, expected });
        }
        self.rows.push((line, cells));
        Ok(())
    }

    /// What are names, as it is told or as it looks.
    pub(super) fn layout(&self, options: &ReadOptions, numbers: &Numbers) -> Result<Layout, Fault> {
        let width = self.width();
        let (first, rows) = (&self.rows[0].1, &self.rows[1..]);
        let names = match options.names {
            Some(names) if names >= width => {
                let reason =
                    format!("has {width} cells, and {names} of them shall be names: nothing is left to fit");
                return Err(Fault::line(self.rows[0].0, reason));
            }
            Some(names) => names,
            None => self.names(numbers),
        };
        let mut layout = Layout { names, ..Layout::default() };
        let header_text = first[layout.names.max(1).min(width)..].iter().any(|cell| numbers.is_text(cell));
        let corner = &first[0];
        layout.header = options.header.unwrap_or_else(|| {
            let named = layout.names > 0;
            let numbered_header = named
                && width > layout.names
                && !rows.is_empty()
                && (corner.is_empty() || heads_identifiers(corner) && !corner_is_like_names(corner, rows));
            header_text || numbered_header || !named && numbers.is_text(corner)
        });
        if options.names.is_none()
            && layout.names == 0
            && layout.header
            && self.first_column_looks_like_identifiers()
        {
            layout.doubts.push(format!(
                "the first column, {corner:?}, looks like identifiers and was read as counts: if it holds names, say so \
                 (1 column of names)"
            ));
        }
        Ok(layout)
    }

    /// The columns of names at the beginning.
    fn names(&self, numbers: &Numbers) -> usize {
        let width = self.width();
        let (first, rows) = (&self.rows[0].1, &self.rows[1..]);
        let texts = |column: usize| rows.iter().filter(|(_, cells)| numbers.is_text(&cells[column])).count();
        let corner = &first[0];
        let header_text = first[1..].iter().any(|cell| numbers.is_text(cell));
        // Most, not all: a vocabulary has "2008" and "nan" in it. Not any: one typing error must not hide a column.
        let mostly_text =
            if rows.is_empty() { numbers.is_text(corner) && !header_text } else { 2 * texts(0) > rows.len() };
        // pandas numbers rows and columns that have no names, and leaves the corner empty.
        let numbered = is_numbered(first[1..].iter().map(String::as_str)) && self.counts_up();
        let identifiers = header_text
            && (heads_identifiers(corner) && self.distinct_whole()
                || rows.len() >= LEAST_NUMBERED && self.counts_up());
        if width < 2 || !(mostly_text || corner.is_empty() && (header_text || numbered) || identifiers) {
            return 0;
        }
        // Catalogues of mutations have up to four: DEL, C, 1, 5+.
        let further =
            |column: usize| texts(column) as f64 > LEAST_TEXT * rows.len() as f64 && texts(column) > 1;
        1 + (1..width.min(MOST_NAMES) - 1).take_while(|&column| mostly_text && further(column)).count()
    }

    fn first_column(&self) -> impl Iterator<Item = &str> + Clone {
        self.rows[1..].iter().map(|(_, cells)| cells[0].as_str())
    }

    fn counts_up(&self) -> bool {
        is_numbered(self.first_column())
    }

    /// Whether the first column holds whole numbers, each of them once.
    fn distinct_whole(&self) -> bool {
        let mut values: Vec<u64> = self.first_column().map_while(|cell| cell.parse().ok()).collect();
        let all = values.len() + 1 == self.rows.len();
        values.sort_unstable();
        let before = values.len();
        values.dedup();
        all && before > 0 && values.len() == before
    }

    /// Whether it holds large whole numbers, each of them once, beside columns of much smaller ones.
    fn first_column_looks_like_identifiers(&self) -> bool {
        let rows = &self.rows[1..];
        if rows.len() < LEAST_NUMBERED || self.width() < 3 || !self.distinct_whole() {
            return false;
        }
        let largest = |column: usize| {
            rows.iter().filter_map(|(_, cells)| cells[column].parse::<f64>().ok()).fold(0.0, f64::max)
        };
        let others = (1..self.width()).map(largest).fold(0.0, f64::max);
        let mut first: Vec<f64> = self.first_column().filter_map(|cell| cell.parse().ok()).collect();
        first.sort_by(f64::total_cmp);
        first[first.len() / 2] > 10.0 * others.max(1.0)
    }
}

/// Whether a cell is what heads a column of names.
fn heads_identifiers(cell: &str) -> bool {
    let word: String =
        cell.to_lowercase().chars().filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '_').collect();
    let word = word.trim();
    let parts = || word.split([' ', '_']);
    IDENTIFIERS.contains(&word)
        || parts().next_back().is_some_and(|last| ["id", "ids", "name", "names", "symbol"].contains(&last))
        || word.starts_with("unnamed")
}

/// Whether the corner could as well be one of the names below it: then the first line is one of the rows.
fn corner_is_like_names(corner: &str, rows: &[(usize, Vec<String>)]) -> bool {
    let of_words = |text: &str| text.chars().all(|c| c.is_lowercase());
    of_words(corner) && rows.iter().all(|(_, cells)| of_words(&cells[0]))
}

/// Whether cells count up from 0 or from 1.
fn is_numbered<'a>(cells: impl Iterator<Item = &'a str>) -> bool {
    let mut numbers = cells.map(|cell| cell.trim().parse::<usize>().ok());
    let first = match numbers.next() {
        Some(Some(first @ (0 | 1))) => first,
        _ => return false,
    };
    numbers.zip(first + 1..).all(|(number, i)| number == Some(i))
}
