//! Lines of text to cells.

use std::borrow::Cow;

pub(super) fn split_plain(line: &str, delimiter: char) -> Vec<Cow<'_, str>> {
    line.split(delimiter)
        // Between spaces there is nothing: tables aligned by eye have runs of them.
        .filter(|cell| delimiter != ' ' || !cell.is_empty())
        .map(Cow::Borrowed)
        .collect()
}

/// The cells of a row with quotes in it; `None` if the last quote is still open.
pub(super) fn split_quoted(line: &str, delimiter: char) -> Option<Vec<Cow<'static, str>>> {
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
