//! The numbers of a table, as people write them: 1885, 1.885 and 1,885 may all be the same. Which it is, all of them decide.

use super::layout::Layout;
use crate::error::Fault;
use crate::read::Nan;

/// How much of a wrong cell an error shows.
const SHOWN: usize = 40;

/// The mark before the fraction of a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Decimal {
    /// 0.5, and 1,885 is a whole number.
    #[default]
    Point,
    /// 0,5, and 1.885 is a whole number.
    Comma,
}

/// A number that can be read in two ways.
struct Ambiguous {
    /// Where it stands among the values.
    at: usize,
    /// As one with thousands separators.
    grouped: f64,
    line: usize,
    column: usize,
}

/// Values, and what is known of how they are written.
pub(super) struct Numbers {
    values: Vec<f64>,
    nan: Nan,
    delimiter: char,
    given: Option<Decimal>,
    /// 1.885, read as a fraction: only kept where it may be something else.
    points: Vec<Ambiguous>,
    /// 1,885, read as a fraction.
    commas: Vec<Ambiguous>,
    /// A point that stands before a fraction, whatever else; a whole number above 999 without a mark.
    fraction: bool,
    plain_thousands: bool,
    /// The first place of 1.234.567 or 1.234,5, and of 0,5.
    german: Option<(usize, usize)>,
    /// The first place of 1,234,567 or 1,234.5.
    english: Option<(usize, usize)>,
}

impl Numbers {
    pub(super) fn new(delimiter: char, given: Option<Decimal>, nan: Nan) -> Self {
        Self {
            values: Vec::new(),
            nan,
            delimiter,
            given,
            points: Vec::new(),
            commas: Vec::new(),
            fraction: false,
            plain_thousands: false,
            german: None,
            english: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len() + 4 * (self.points.len() + self.commas.len())
    }

    /// Whether a cell is neither empty nor a number.
    pub(super) fn is_text(&self, cell: &str) -> bool {
        let cell = cell.trim();
        let number = cell.parse::<f64>().is_ok() || german(cell).is_some() || english(cell).is_some();
        !cell.is_empty() && !number && !self.is_missing(cell)
    }

    /// Whether a cell says that nothing was observed.
    fn is_missing(&self, cell: &str) -> bool {
        matches!(self.nan, Nan::Missing) && (cell.is_empty() || matches!(cell, "NA" | "N/A" | "na" | "."))
    }

    /// Takes one more cell, which is trimmed.
    pub(super) fn push(&mut self, cell: &str, line: usize, column: usize) -> Result<(), Fault> {
        if self.is_missing(cell) {
            self.values.push(f64::NAN);
            return Ok(());
        }
        if cell.is_empty() {
            return Err(Fault::EmptyCell { line, column });
        }
        let (at, place) = (self.values.len(), Some((line, column)));
        if let Ok(value) = cell.parse::<f64>() {
            if !cell.contains('.') {
                self.plain_thousands |= value >= 1000.0;
            } else if let Some(grouped) = groups(cell, '.').filter(|_| self.may_be_german()) {
                self.points.push(Ambiguous { at, grouped, line, column });
            } else {
                self.fraction = true;
            }
            self.values.push(value);
            return Ok(());
        }
        let value = match (german(cell), english(cell)) {
            (Some(fraction), Some(grouped)) => {
                self.commas.push(Ambiguous { at, grouped, line, column });
                fraction
            }
            (Some(value), None) => {
                self.german = self.german.or(place);
                value
            }
            (None, Some(value)) => {
                self.english = self.english.or(place);
                value
            }
            (None, None) => {
                let mut text: String = cell.chars().take(SHOWN).collect();
                if text.len() < cell.len() {
                    text.push_str("...");
                }
                return Err(Fault::NotANumber { line, column, text });
            }
        };
        self.values.push(value);
        Ok(())
    }

    /// Where fractions are written with a comma, columns are not: so they are told apart by semicolons or tabs.
    fn may_be_german(&self) -> bool {
        match self.given {
            Some(decimal) => decimal == Decimal::Comma,
            None => self.delimiter == ';' || self.delimiter == '\t',
        }
    }

    /// The values, row after row, once all have been seen.
    pub(super) fn finish(mut self, layout: &mut Layout) -> Result<Vec<f64>, Fault> {
        let remedy = "say which mark stands before fractions (decimal point or comma)";
        if let (Some((line, _)), Some((other, _))) = (self.german, self.english) {
            return Err(Fault::line(
                line.max(other),
                format!("writes numbers in another way than line {}: {remedy}", line.min(other)),
            ));
        }
        let comma = match (self.given, self.german, self.english) {
            (Some(decimal), ..) => decimal == Decimal::Comma,
            (None, Some(_), _) => true,
            (None, None, Some(_)) => false,
            // Between commas a comma is quoted, by somebody who groups digits.
            (None, None, None) if self.delimiter == ',' => false,
            (None, None, None) => {
                if let Some(Ambiguous { line, column, .. }) = self.commas.first() {
                    let reason =
                        format!("column {column} may be a fraction or have a thousands separator: {remedy}");
                    return Err(Fault::line(*line, reason));
                }
                self.delimiter == ';' && !self.points.is_empty() && !self.fraction && !self.plain_thousands
            }
        };
        let clash = if comma { self.english } else { self.german };
        if let Some((line, column)) = clash.or(None) {
            let reason = format!(
                "column {column} is no number with a decimal {}",
                if comma { "comma" } else { "point" }
            );
            return Err(Fault::line(line, reason));
        }
        layout.decimal = if comma { Decimal::Comma } else { Decimal::Point };
        let grouped = if comma { &self.points } else { &self.commas };
        if comma && self.fraction && self.given.is_none() {
            let reason = format!("has a number with a decimal comma, other lines have points: {remedy}");
            return Err(Fault::line(self.german.map_or(1, |(line, _)| line), reason));
        }
        for Ambiguous { at, grouped, .. } in grouped {
            self.values[*at] = *grouped;
        }
        layout.thousands = !grouped.is_empty() || !comma && self.english.is_some();
        if comma && self.given.is_none() && self.german.is_none() {
            let Ambiguous { line, column, grouped, .. } = &self.points[0];
            layout.doubts.push(format!(
                "points are read as thousands separators: line {line}, column {column} is {grouped}. If they stand before \
                 fractions, say so (decimal point)"
            ));
        }
        Ok(self.values)
    }
}

/// A number without fractions whose thousands are set apart by `mark`: 1.885, 12.345.678. `None` for anything else.
fn groups(cell: &str, mark: char) -> Option<f64> {
    let (sign, digits) = match cell.strip_prefix('-') {
        Some(digits) => (-1.0, digits),
        None => (1.0, cell),
    };
    let mut parts = digits.split(mark);
    let first = parts.next()?;
    let whole = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let mut rest = parts.clone().peekable();
    rest.peek()?;
    let grouped = whole(first)
        && first.len() <= 3
        && !first.starts_with('0')
        && rest.all(|part| part.len() == 3 && whole(part));
    let text: String = digits.split(mark).collect();
    grouped.then(|| text.parse::<f64>().ok()).flatten().map(|value| sign * value)
}

/// A number with a decimal comma, or with points between thousands that no other way of writing has.
fn german(cell: &str) -> Option<f64> {
    let Some((whole, fraction)) = cell.split_once(',') else {
        // 1.885 is read by whoever reads 0.5.
        return if cell.matches('.').count() > 1 { groups(cell, '.') } else { None };
    };
    if fraction.contains([',', '.', '-', '+']) || fraction.is_empty() {
        return None;
    }
    let plain = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let whole = match groups(whole, '.') {
        Some(value) => value.to_string(),
        None if plain(whole) => whole.to_owned(),
        None => return None,
    };
    format!("{whole}.{fraction}").parse().ok()
}

/// A number with commas between thousands.
fn english(cell: &str) -> Option<f64> {
    match cell.split_once('.') {
        Some((whole, fraction)) => format!("{}.{fraction}", groups(whole, ',')?).parse().ok(),
        None => groups(cell, ','),
    }
}

/// Whether a cell is a number with a comma before its fraction.
pub(super) fn has_decimal_comma(cell: &str) -> bool {
    cell.contains(',') && german(cell).is_some()
}

#[cfg(test)]
mod tests {
    use super::{english, german, groups};

    #[test]
    fn digits_are_grouped_by_three_and_do_not_begin_with_zero() {
        assert_eq!([groups("1.885", '.'), groups("12.345.678", '.')], [Some(1885.0), Some(12_345_678.0)]);
        assert_eq!(groups("-1.885", '.'), Some(-1885.0));
        for cell in ["885", "0.885", "1.88", "1885.123", "1.8856", "1.", ".885", "1.e85", "1.234.56"] {
            assert_eq!(groups(cell, '.'), None, "{cell}");
        }
    }

    #[test]
    fn each_way_of_writing_is_told_from_the_other_where_that_is_possible() {
        assert_eq!(
            [german("0,5"), german("1.234,25"), german("1.234.567")],
            [Some(0.5), Some(1234.25), Some(1_234_567.0)]
        );
        assert_eq!([english("1,234.5"), english("1,234,567")], [Some(1234.5), Some(1_234_567.0)]);
        assert_eq!([english("0,5"), english("1.5"), german("1,234.5"), german("1,234,567")], [None; 4]);
        assert_eq!((german("1,885"), english("1,885")), (Some(1.885), Some(1885.0)));
        assert_eq!([german("a,b"), german("1,5;2"), german(","), english("a,bcd")], [None; 4]);
    }
}
