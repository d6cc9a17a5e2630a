//! Tables in a document: what is between two marks is replaced, words around it stay.

use std::io::ErrorKind;
use std::path::Path;

const BEGIN: &str = "<!-- made by the command below: begin -->";
const END: &str = "<!-- end -->";

/// Puts `new` between the marks of the document; a document that is not there begins with `around`.
pub(crate) fn write(path: &Path, around: &str, new: &str) -> Result<(), String> {
    let text = placed(path, around, new)?;
    bpnmf_io::write_atomically(path, |writer| std::io::Write::write_all(writer, text.as_bytes()))
        .map_err(|error| error.to_string())
}

/// Errors if nothing could be put into the document: to be asked before hours of fits.
pub(crate) fn check(path: &Path) -> Result<(), String> {
    placed(path, "", "").map(|_| ())
}

fn placed(path: &Path, around: &str, new: &str) -> Result<String, String> {
    let old = match std::fs::read_to_string(path) {
        Ok(old) => old,
        Err(error) if error.kind() == ErrorKind::NotFound => format!("{around}\n{BEGIN}\n{END}\n"),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    replaced(&old, new)
        .ok_or_else(|| format!("{} has no lines `{BEGIN}` and `{END}` to write between", path.display()))
}

/// The document with `new` between its marks.
fn replaced(old: &str, new: &str) -> Option<String> {
    let (before, rest) = old.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{new}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let first = replaced(&format!("above\n{BEGIN}\n{END}\nbelow\n"), "one\n").unwrap();
        assert_eq!(first, format!("above\n{BEGIN}\none\n{END}\nbelow\n"));
        assert_eq!(replaced(&first, "two\n").unwrap(), first.replace("one", "two"));
        assert!(replaced("no marks", "one\n").is_none());
    }
}
