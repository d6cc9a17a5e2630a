//! Matrix Market: coordinate files to sparse counts, array files to dense ones. Read line by line.

use std::io::BufRead;

use bpnmf::Counts;

use crate::error::Fault;
use crate::lines::Lines;
use crate::read::{Nan, Room};
use crate::sparse::{self, Entries};

const LONGEST_LINE: usize = 1 << 20;
/// Row, column and value, as they are read and as they are sorted.
const BYTES_AN_ENTRY: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Real,
    Integer,
    Pattern,
}

struct Banner {
    coordinate: bool,
    field: Field,
    symmetric: bool,
}

/// Reads a matrix from text that takes `size` bytes on disk.
pub(crate) fn read(reader: impl BufRead, size: u64, nan: Nan, room: Room) -> Result<Counts, Fault> {
    let mut lines = Lines::new(reader, LONGEST_LINE);
    lines.advance()?;
    let banner = Banner::parse(lines.text()).map_err(|reason| Fault::line(1, reason))?;
    if !advance_to_data(&mut lines)? {
        return Err(Fault::line(
            lines.number(),
            "is the last one: the line with the number of rows and columns is missing",
        ));
    }
    let words = lines.text().split_ascii_whitespace();
    let sizes: Option<Vec<usize>> = words.map(|size| size.parse().ok()).collect();
    let (features, observations, promised) = match (banner.coordinate, sizes.as_deref()) {
        (true, Some(&[rows, columns, entries])) => (rows, columns, entries),
        // What an array promises follows from its shape.
        (false, Some(&[rows, columns])) => (rows, columns, rows.saturating_mul(columns)),
        (true, _) => {
            return Err(Fault::line(lines.number(), "must be three whole numbers: rows, columns, entries"));
        }
        (false, _) => {
            return Err(Fault::line(lines.number(), "must be two whole numbers: rows, columns"));
        }
    };
    sparse::check_shape(features, observations)?;
    if banner.symmetric && features != observations {
        return Err(Fault::line(
            lines.number(),
            format!("says {features} x {observations}: a symmetric matrix is square"),
        ));
    }
    let promised =
        if banner.symmetric && !banner.coordinate { (promised - features) / 2 + features } else { promised };
    let sizes_line = lines.number();
    let mut body = Body { sizes_line, lines, field: banner.field, promised, found: 0, nan, room };
    // A promise is worth no more memory than the file could fill: an entry takes at least two bytes.
    let plausible = promised.min(usize::try_from(size / 2).unwrap_or(usize::MAX));
    if banner.coordinate {
        body.coordinates(features, observations, banner.symmetric, plausible)
    } else {
        body.array(features, observations, banner.symmetric, plausible)
    }
}

impl Banner {
    fn parse(line: &str) -> Result<Self, String> {
        let words: Vec<String> = line.split_ascii_whitespace().map(str::to_ascii_lowercase).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let &["%%matrixmarket", object, layout, field, symmetry] = words.as_slice() else {
            return Err(
                "must be a Matrix Market header, such as %%MatrixMarket matrix coordinate integer general"
                    .to_owned(),
            );
        };
        if object != "matrix" {
            return Err(format!("holds a {object}: only a matrix can be read"));
        }
        let coordinate = match layout {
            "coordinate" => true,
            "array" => false,
            _ => return Err(format!("says {layout}: it must be coordinate or array")),
        };
        let field = match field {
            "real" | "double" => Field::Real,
            "integer" | "unsigned-integer" => Field::Integer,
            "pattern" if coordinate => Field::Pattern,
            "pattern" => return Err("says array pattern: a pattern needs coordinates".to_owned()),
            _ => {
                return Err(format!("says {field}: entries must be real, integer or pattern"));
            }
        };
        let symmetric = match symmetry {
            "general" => false,
            "symmetric" => true,
            _ => {
                return Err(format!("says {symmetry}: the matrix must be general or symmetric"));
            }
        };
        Ok(Self { coordinate, field, symmetric })
    }
}

/// Reads on to the next line that is neither blank nor a comment; false if there is none.
fn advance_to_data<R: BufRead>(lines: &mut Lines<R>) -> Result<bool, Fault> {
    while lines.advance()? {
        if !lines.text().starts_with('%') && !lines.text().trim().is_empty() {
            return Ok(true);
        }
        lines.skip()?;
    }
    Ok(false)
}

/// The entries: as many as the line with the sizes promises.
struct Body<R> {
    lines: Lines<R>,
    sizes_line: usize,
    field: Field,
    promised: usize,
    found: usize,
    nan: Nan,
    room: Room,
}

impl<R: BufRead> Body<R> {
    fn coordinates(
        &mut self,
        features: usize,
        observations: usize,
        symmetric: bool,
        plausible: usize,
    ) -> Result<Counts, Fault> {
        let mut entries = Entries::default();
        entries.rows.reserve(plausible);
        entries.columns.reserve(plausible);
        entries.values.reserve(plausible);
        while self.advance()? {
            self.room.check(entries.values.len(), BYTES_AN_ENTRY)?;
            let bad = |reason: String| Fault::line(self.lines.number(), reason);
            let mut words = self.lines.text().split_ascii_whitespace();
            let pattern = self.field == Field::Pattern;
            let (row, column, value) = match (words.next(), words.next(), words.next()) {
                (Some(row), Some(column), None) if pattern => (row, column, 1.0),
                (Some(row), Some(column), Some(value)) if !pattern && words.next().is_none() => {
                    (row, column, self.value(value)?)
                }
                _ => {
                    return Err(bad(format!(
                        "has {} words: an entry is {}",
                        self.lines.text().split_ascii_whitespace().count(),
                        if pattern { "row, column" } else { "row, column, value" }
                    )));
                }
            };
            let place = |name: &str, word: &str, limit: usize| match word.parse::<usize>() {
                Ok(place) if (1..=limit).contains(&place) => Ok((place - 1) as u32),
                _ => Err(bad(format!("says {name} {word}: it must be a whole number from 1 to {limit}"))),
            };
            let row = place("row", row, features)?;
            let column = place("column", column, observations)?;
            entries.push(row, column, value);
            if symmetric && row != column {
                entries.push(column, row, value);
            }
        }
        entries.into_counts(features, observations, self.nan, self.room)
    }

    /// Values column after column; of a symmetric matrix only those on and below the diagonal.
    fn array(
        &mut self,
        features: usize,
        observations: usize,
        symmetric: bool,
        plausible: usize,
    ) -> Result<Counts, Fault> {
        let mut values = Vec::with_capacity(plausible);
        while self.advance()? {
            self.room.check(values.len(), size_of::<f64>())?;
            let mut words = self.lines.text().split_ascii_whitespace();
            match (words.next(), words.next()) {
                (Some(word), None) => values.push(self.value(word)?),
                _ => {
                    return Err(Fault::line(
                        self.lines.number(),
                        "has more than one word: an array has one value a line",
                    ));
                }
            }
        }
        if symmetric {
            let mut full = vec![0.0; features * observations];
            let places = (0..observations).flat_map(|t| (t..features).map(move |f| (f, t)));
            for ((f, t), value) in places.zip(values) {
                full[t * features + f] = value;
                full[f * features + t] = value;
            }
            values = full;
        }
        Ok(self.nan.dense(features, observations, values)?)
    }

    /// Reads on to the next entry; false after the last, an error if there are more or fewer than promised.
    fn advance(&mut self) -> Result<bool, Fault> {
        let there = advance_to_data(&mut self.lines)?;
        let (promised, found) = (self.promised, self.found);
        if there && found == promised {
            return Err(Fault::line(
                self.lines.number(),
                format!("is one entry more than the {promised} that line {} promises", self.sizes_line),
            ));
        }
        if !there && found < promised {
            return Err(Fault::line(
                self.sizes_line,
                format!(
                    "promises {promised} entries, the file ends after line {} with {found}",
                    self.lines.number()
                ),
            ));
        }
        self.found += 1;
        Ok(there)
    }

    fn value(&self, word: &str) -> Result<f64, Fault> {
        let bad = |reason: &str| Fault::line(self.lines.number(), format!("says {word}: {reason}"));
        let value: f64 = word.parse().map_err(|_| bad("values must be numbers"))?;
        if self.field == Field::Integer && value.is_finite() && value.fract() != 0.0 {
            return Err(bad("line 1 promises integers"));
        }
        Ok(value)
    }
}
