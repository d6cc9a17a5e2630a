//! Numbered lines of a text file, one at a time. Knows nothing of what the lines mean.

use std::io::{BufRead, Read};
use std::mem;
use std::ops::Range;

use crate::error::Fault;

/// Bytes of lines that say nothing: more of them are no comments but a file made to keep somebody waiting.
const MOST_SKIPPED: usize = 1 << 26;

/// Lines of UTF-8 text with their numbers; at most `limit` bytes are held.
pub(crate) struct Lines<R> {
    reader: R,
    buffer: String,
    /// The part of the buffer that is the line: without its end, without a byte order mark.
    inside: Range<usize>,
    number: usize,
    limit: usize,
    skipped: usize,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self { reader, buffer: String::new(), inside: 0..0, number: 0, limit, skipped: 0 }
    }

    /// The line last read, without its end.
    pub(crate) fn text(&self) -> &str {
        &self.buffer[self.inside.clone()]
    }

    /// The number of the line last read, from 1.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Leaves the line out. Errors if too much was left out so far.
    pub(crate) fn skip(&mut self) -> Result<(), Fault> {
        self.skipped += self.buffer.len();
        if self.skipped > MOST_SKIPPED {
            let reason = format!("ends {MOST_SKIPPED} bytes of comments and blank lines: is this a table?");
            return Err(Fault::line(self.number, reason));
        }
        Ok(())
    }

    /// Reads the next line; false after the last.
    pub(crate) fn advance(&mut self) -> Result<bool, Fault> {
        let here = self.number + 1;
        let bad = |reason: String| Err(Fault::line(here, reason));
        let mut bytes = mem::take(&mut self.buffer).into_bytes();
        bytes.clear();
        self.inside = 0..0;
        let mut limited = (&mut self.reader).take(self.limit as u64 + 1);
        match limited.read_until(b'\n', &mut bytes) {
            Ok(0) => return Ok(false),
            Ok(length) if length > self.limit => {
                return bad(format!("is longer than {} bytes: is this a text file?", self.limit));
            }
            Ok(_) => {}
            Err(error) => {
                return bad(format!("could not be read ({error}): the file is damaged or incomplete"));
            }
        }
        self.number = here;
        let Ok(buffer) = String::from_utf8(bytes) else {
            return bad("is not UTF-8 text: save the file as UTF-8".to_owned());
        };
        self.buffer = buffer;
        let text = self.buffer.as_str();
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let start = if here == 1 && text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        if text.contains('\r') {
            return bad("has a carriage return inside: save the file with line feeds".to_owned());
        }
        self.inside = start..text.len();
        Ok(true)
    }
}
