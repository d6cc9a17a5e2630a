//! Tables of text: comma, tab, semicolon or space between the cells, with or without names.
//!
//! The cells are split by hand: the csv crate (1.4) counts the lines of files with CRLF or blank lines wrongly.

mod cells;
mod layout;
mod numbers;

use std::borrow::Cow;
use std::io::BufRead;

use crate::error::Fault;
use crate::lines::Lines;
use crate::read::{Nan, ReadOptions, Room, Table};
use cells::{split_plain, split_quoted};
pub use layout::Layout;
use layout::Sample;
pub use numbers::Decimal;
use numbers::Numbers;

const LONGEST_LINE: usize = 1 << 28;
/// A quoted cell over more lines than this is a quote that was never closed.
const MOST_LINES_A_CELL: usize = 1000;
/// A cell of a line as it is split, trimmed and kept.
const BYTES_A_CELL: usize = 64;
/// Bytes that are looked at again for the end of a quote, line after line: beyond, it has none.
const MOST_LOOKED_AT: usize = 1 << 26;
/// Rows and cells that are looked at before it is decided what are names.
const SAMPLE_ROWS: usize = 1000;
const SAMPLE_CELLS: usize = 200_000;

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
            // 1,5;2,5 is two numbers of somebody who writes commas in them.
            Kind::Csv | Kind::Txt if count(';') > 0 && commas_are_decimal(&outside) => ';',
            Kind::Csv if count(',') > 0 => ',',
            Kind::Txt if count('\t') > 0 => '\t',
            Kind::Txt if count(',') > 0 => ',',
            _ if count('\t') > count(';') => '\t',
            _ => ';',
        }
    }
}

/// Whether a line is one of cells between semicolons whose commas stand in numbers.
fn commas_are_decimal(line: &str) -> bool {
    let mut commas = line.split(';').filter(|cell| cell.contains(',')).peekable();
    commas.peek().is_some() && commas.all(|cell| numbers::has_decimal_comma(cell.trim()))
}

/// Reads a table; the file is features x observations.
pub(crate) fn read(
    reader: impl BufRead,
    kind: Kind,
    options: &ReadOptions,
    nan: Nan,
    room: Room,
) -> Result<Table, Fault> {
    let mut records = Records {
        lines: Lines::new(reader, LONGEST_LINE),
        kind,
        delimiter: None,
        joined: String::new(),
        line: 0,
        room,
        comments: 0,
        comment: None,
        width: 0,
    };
    let mut sample = Sample::default();
    let mut cells_seen = 0;
    while sample.rows.len() < SAMPLE_ROWS && cells_seen < SAMPLE_CELLS {
        let Some((line, cells)) = records.next()? else { break };
        let cells: Vec<String> = cells.iter().map(|cell| cell.trim().to_owned()).collect();
        cells_seen += cells.len();
        sample.push(line, cells)?;
        records.width = sample.width();
    }
    // A line behind # that has as many cells as the first row is the header.
    if let (Some((line, comment)), Some((_, first))) = (records.comment.take(), sample.rows.first()) {
        let delimiter = records.delimiter.unwrap_or(',');
        let cells: Vec<String> =
            split_plain(&comment, delimiter).iter().map(|cell| cell.trim().to_owned()).collect();
        let numbers = first.iter().any(|cell| cell.parse::<f64>().is_ok());
        if numbers && cells.len() > 1 && cells.len() == first.len() {
            records.comments -= 1;
            sample.rows.insert(0, (line, cells));
        }
    }
    if sample.rows.is_empty() {
        return Err(bpnmf::Error::Empty { features: 0, observations: 0 }.into());
    }
    let numbers = Numbers::new(records.delimiter.unwrap_or(','), options.decimal, nan);
    let layout = sample.layout(options, &numbers)?;
    let mut grid = Grid { layout, width: sample.width(), names: Vec::new(), bytes: 0, numbers, room };
    let mut rows = sample.rows.into_iter();
    let first_line = rows.as_slice()[0].0;
    let header = grid.layout.header.then(|| rows.next().expect("there is a first row").1);
    for (line, cells) in rows {
        grid.push(&cells, line, first_line)?;
    }
    while let Some((line, cells)) = records.next()? {
        let cells: Vec<&str> = cells.iter().map(|cell| cell.trim()).collect();
        grid.push(&cells, line, first_line)?;
    }
    grid.layout.comments = records.comments;
    grid.into_table(header, nan)
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
    /// Lines that begin with # and were left out.
    comments: usize,
    /// The last of them before the table, with its number and without #.
    comment: Option<(usize, String)>,
    /// Cells of a row, once there is one.
    width: usize,
}

impl<R: BufRead> Records<R> {
    /// Whether the line begins with # and is none of the table: in it a row may have such a name.
    fn is_comment(&self) -> bool {
        let text = self.lines.text();
        let cells = |delimiter| split_plain(text, delimiter).len();
        text.starts_with('#') && (self.width == 0 || self.delimiter.is_some_and(|d| cells(d) != self.width))
    }

    /// The next row, or `None` after the last. Blank lines may stand before and after the table.
    fn next(&mut self) -> Result<Option<Row<'_>>, Fault> {
        let is_blank = |text: &str| text.chars().all(|c| c == ' ');
        let mut blank = None;
        loop {
            if !self.lines.advance()? {
                return Ok(None);
            }
            if self.is_comment() {
                if self.width == 0 {
                    let text = self.lines.text().trim_start_matches('#').trim_start().to_owned();
                    self.comment = Some((self.lines.number(), text));
                }
                self.comments += 1;
            } else if is_blank(self.lines.text()) {
                blank = blank.or(Some(self.lines.number()));
            } else {
                break;
            }
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

/// The rows below the header, once it is known what are names.
struct Grid {
    layout: Layout,
    width: usize,
    names: Vec<String>,
    /// Bytes of the names.
    bytes: usize,
    numbers: Numbers,
    room: Room,
}

impl Grid {
    fn push(&mut self, cells: &[impl AsRef<str>], line: usize, first_line: usize) -> Result<(), Fault> {
        if cells.len() != self.width {
            return Err(Fault::Ragged { line, cells: cells.len(), first_line, expected: self.width });
        }
        let (names, values) = cells.split_at(self.layout.names);
        if !names.is_empty() {
            let name = names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(layout::JOIN);
            self.bytes += size_of::<String>() + name.len();
            self.names.push(name);
        }
        // The values, once more in another order, and the names.
        let numbers = 2 * (self.numbers.len() + values.len());
        self.room.check(self.bytes + numbers * size_of::<f64>(), 1)?;
        for (i, cell) in values.iter().enumerate() {
            self.numbers.push(cell.as_ref(), line, self.layout.names + i + 1)?;
        }
        Ok(())
    }

    fn into_table(mut self, header: Option<Vec<String>>, nan: Nan) -> Result<Table, Fault> {
        let observations = self.width - self.layout.names;
        let by_rows = self.numbers.finish(&mut self.layout)?;
        let features = by_rows.len().checked_div(observations).unwrap_or(0);
        let mut values = Vec::with_capacity(by_rows.len());
        for t in 0..observations {
            values.extend((0..features).map(|f| by_rows[f * observations + t]));
        }
        let counts = nan.dense(features, observations, values)?;
        let observation_names = header.map(|header| header[self.layout.names..].to_vec());
        let feature_names = (self.layout.names > 0).then_some(self.names);
        Ok(Table { counts, feature_names, observation_names, layout: Some(self.layout) })
    }
}
