//! Tables of text: comma, tab, semicolon or space between the cells, with or without names.
//!
//! The cells are split by hand: the csv crate (1.4) counts the lines of files with CRLF or blank lines wrongly.

use std::borrow::Cow;
use std::io::BufRead;

use crate::error::Fault;
use crate::lines::Lines;
use crate::read::{Nan, Room, Table};

const LONGEST_LINE: usize = 1 << 28;
/// A quoted cell over more lines than this is a quote that was never closed.
const MOST_LINES_A_CELL: usize = 1000;
/// A cell of a line as it is split, trimmed and kept.
const BYTES_A_CELL: usize = 64;
/// Bytes that are looked at again for the end of a quote, line after line: beyond, it has none.
const MOST_LOOKED_AT: usize = 1 << 26;
/// How much of a wrong cell an error shows.
const SHOWN: usize = 40;

/// What the extension says of the delimiter.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Commas; tabs or semicolons if the first line has these and no comma.
    Csv,
    /// Tabs.
    Tsv,
    /// Whichever of tab, comma and semicolon the first line has; else spaces, any number of them.
    Txt,
}

impl Kind {
    fn delimiter(self, first_line: &str) -> char {
        let mut quoted = false;
        let outside: String = first_line
            .chars()
            .filter(|&c| {
                quoted ^= c == '"';
                !quoted
            })
            .collect();
        let count = |delimiter: char| outside.matches(delimiter).count();
        match self {
            Kind::Tsv => '\t',
            Kind::Csv | Kind::Txt if count('\t') + count(';') + count(',') == 0 => match self {
                Kind::Txt => ' ',
                _ => ',',
            },
            Kind::Csv if count(',') > 0 => ',',
            Kind::Txt if count('\t') > 0 => '\t',
            Kind::Txt if count(',') > 0 => ',',
            _ if count('\t') > count(';') => '\t',
            _ => ';',
        }
    }
}

/// Reads a table; the file is features x observations.
pub(crate) fn read(reader: impl BufRead, kind: Kind, nan: Nan, room: Room) -> Result<Table, Fault> {
    let mut records = Records {
        lines: Lines::new(reader, LONGEST_LINE),
        kind,
        delimiter: None,
        joined: String::new(),
        line: 0,
        room,
    };
    let Some((first_line, first)) = records.next()? else {
        return Err(bpnmf::Error::Empty { features: 0, observations: 0 }.into());
    };
    let first: Vec<String> = first.into_iter().map(Cow::into_owned).collect();
    let mut grid = Grid {
        first_line,
        width: first.len(),
        first,
        lead: Vec::new(),
        values: Vec::new(),
        named: 0,
        nan,
        room,
    };
    while let Some((line, cells)) = records.next()? {
        let cells: Vec<&str> = cells.iter().map(|cell| cell.trim()).collect();
        grid.push(&cells, line)?;
    }
    grid.into_table()
}

/// The line a row starts at and its cells.
type Row<'a> = (usize, Vec<Cow<'a, str>>);

/// The cells of one row after another.
struct Records<R> {
    lines: Lines<R>,
    kind: Kind,
    delimiter: Option<char>,
    joined: String,
    /// Where the row last read starts.
    line: usize,
    room: Room,
}

impl<R: BufRead> Records<R> {
    /// The next row, or `None` after the last. Blank lines may stand before and after the table.
    fn next(&mut self) -> Result<Option<Row<'_>>, Fault> {
        let is_blank = |text: &str| text.chars().all(|c| c == ' ');
        let mut blank = None;
        loop {
            if !self.lines.advance()? {
                return Ok(None);
            }
            if !is_blank(self.lines.text()) {
                break;
            }
            blank = blank.or(Some(self.lines.number()));
            self.lines.skip()?;
        }
        if let (Some(blank), true) = (blank, self.line > 0) {
            return Err(Fault::line(blank, "is blank and rows follow it: delete the line"));
        }
        self.line = self.lines.number();
        let delimiter = *self.delimiter.get_or_insert_with(|| self.kind.delimiter(self.lines.text()));
        // A line of nothing but delimiters has more cells than anything else.
        self.room.check(self.lines.text().matches(delimiter).count(), BYTES_A_CELL)?;
        if !self.lines.text().contains('"') {
            return Ok(Some((self.line, split_plain(self.lines.text(), delimiter))));
        }
        self.joined.clear();
        self.joined.push_str(self.lines.text());
        let mut looked_at = 0;
        loop {
            if let Some(cells) = split_quoted(&self.joined, delimiter) {
                return Ok(Some((self.line, cells)));
            }
            let lines = self.lines.number() - self.line;
            let unclosed = lines >= MOST_LINES_A_CELL || looked_at > MOST_LOOKED_AT;
            if unclosed || !self.lines.advance()? {
                return Err(Fault::line(self.line, "opens a quote that is never closed"));
            }
            self.joined.push('\n');
            self.joined.push_str(self.lines.text());
            looked_at += self.joined.len();
        }
    }
}

fn split_plain(line: &str, delimiter: char) -> Vec<Cow<'_, str>> {
    line.split(delimiter)
        // Between spaces there is nothing: tables aligned by eye have runs of them.
        .filter(|cell| delimiter != ' ' || !cell.is_empty())
        .map(Cow::Borrowed)
        .collect()
}

/// The cells of a row with quotes in it; `None` if the last quote is still open.
fn split_quoted(line: &str, delimiter: char) -> Option<Vec<Cow<'static, str>>> {
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut was_quoted = false;
    let mut quoted = false;
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        if quoted {
            if c != '"' {
                cell.push(c);
            } else if rest.next_if_eq(&'"').is_some() {
                cell.push('"');
            } else {
                quoted = false;
            }
        } else if c == '"' && cell.trim().is_empty() && !was_quoted {
            cell.clear();
            (quoted, was_quoted) = (true, true);
        } else if c == delimiter {
            if delimiter != ' ' || was_quoted || !cell.is_empty() {
                cells.push(Cow::Owned(std::mem::take(&mut cell)));
            }
            was_quoted = false;
        } else {
            cell.push(c);
        }
    }
    if quoted {
        return None;
    }
    if delimiter != ' ' || was_quoted || !cell.is_empty() {
        cells.push(Cow::Owned(cell));
    }
    Some(cells)
}

/// The rows; what the first line and the first column are is decided when all is read.
struct Grid {
    first: Vec<String>,
    first_line: usize,
    width: usize,
    /// The first cell of every row after the first, with its line.
    lead: Vec<(String, usize)>,
    /// The other cells of these rows, row after row.
    values: Vec<f64>,
    /// Bytes of the first cells.
    named: usize,
    nan: Nan,
    room: Room,
}

impl Grid {
    fn push(&mut self, cells: &[&str], line: usize) -> Result<(), Fault> {
        // R's write.table gives the column of row names no header.
        if self.lead.is_empty()
            && cells.len() == self.width + 1
            && self.first.iter().any(|cell| self.is_text(cell))
            && self.is_text(cells[0])
        {
            self.first.insert(0, String::new());
            self.width += 1;
        }
        if cells.len() != self.width {
            return Err(Fault::Ragged {
                line,
                cells: cells.len(),
                first_line: self.first_line,
                expected: self.width,
            });
        }
        // The values, once more in another order, and the names.
        self.named += cells[0].len();
        let numbers = 2 * (self.values.len() + cells.len()) + 4 * self.lead.len();
        self.room.check(self.named + numbers * size_of::<f64>(), 1)?;
        self.lead.push((cells[0].to_owned(), line));
        for (i, cell) in cells.iter().enumerate().skip(1) {
            self.values.push(self.number(cell, line, i + 1)?);
        }
        Ok(())
    }

    fn into_table(mut self) -> Result<Table, Fault> {
        let (has_header, has_names) = self.layout();
        let mut lead = std::mem::take(&mut self.lead);
        let mut top = Vec::new();
        if !has_header {
            lead.insert(0, (self.first[0].trim().to_owned(), self.first_line));
            for (i, cell) in self.first.iter().enumerate().skip(1) {
                top.push(self.number(cell.trim(), self.first_line, i + 1)?);
            }
        }
        let skipped = usize::from(has_names);
        let (features, observations) = (lead.len(), self.width - skipped);
        let mut values = Vec::with_capacity(features * observations);
        if !has_names {
            for (cell, line) in &lead {
                values.push(self.number(cell, *line, 1)?);
            }
        }
        let others = self.width - 1;
        let top_rows = usize::from(!has_header);
        for t in 0..others {
            values.extend(top.get(t));
            values.extend((0..features - top_rows).map(|f| self.values[f * others + t]));
        }
        let counts = self.nan.dense(features, observations, values)?;
        let header = self.first.iter().skip(skipped);
        Ok(Table {
            counts,
            feature_names: has_names.then(|| lead.into_iter().map(|(name, _)| name).collect()),
            observation_names: has_header.then(|| header.map(|name| name.trim().to_owned()).collect()),
        })
    }

    /// Whether the first line and the first column are names.
    fn layout(&self) -> (bool, bool) {
        let corner = self.first[0].trim();
        let header_text = self.first[1..].iter().any(|cell| self.is_text(cell));
        // Most, not all: a vocabulary has "2008" and "nan" in it. Not any: one typing error must not hide a column.
        let texts = self.lead.iter().filter(|(cell, _)| self.is_text(cell)).count();
        let mostly_text = if self.lead.is_empty() {
            self.is_text(corner) && !header_text
        } else {
            2 * texts > self.lead.len()
        };
        // pandas numbers rows and columns that have no names, and leaves the corner empty.
        let numbered = is_numbered(self.first[1..].iter().map(String::as_str))
            && is_numbered(self.lead.iter().map(|(cell, _)| cell.as_str()));
        let has_names = self.width > 1 && (mostly_text || corner.is_empty() && (header_text || numbered));
        let has_header = header_text || has_names && corner.is_empty() || !has_names && self.is_text(corner);
        (has_header, has_names)
    }

    /// Whether a cell is neither empty nor a number.
    fn is_text(&self, cell: &str) -> bool {
        let cell = cell.trim();
        !cell.is_empty() && cell.parse::<f64>().is_err() && !self.is_missing(cell)
    }

    /// Whether a cell says that nothing was observed.
    fn is_missing(&self, cell: &str) -> bool {
        matches!(self.nan, Nan::Missing) && (cell.is_empty() || cell == "NA")
    }

    fn number(&self, cell: &str, line: usize, column: usize) -> Result<f64, Fault> {
        if self.is_missing(cell) {
            return Ok(f64::NAN);
        }
        if cell.is_empty() {
            return Err(Fault::EmptyCell { line, column });
        }
        cell.parse().map_err(|_| {
            let mut text: String = cell.chars().take(SHOWN).collect();
            if text.len() < cell.len() {
                text.push_str("...");
            }
            Fault::NotANumber { line, column, text }
        })
    }
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
