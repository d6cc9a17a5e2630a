//! Matrix Market.

use super::{DENSE, fixture, read_bytes, read_fixture, refusal, rows};

#[test]
fn coordinates_written_by_scipy_are_read_and_stay_sparse() {
    for name in ["coordinate_integer.mtx", "coordinate_unsigned.mtx", "coordinate_real.mtx.gz"] {
        let table = read_fixture(name);
        assert_eq!(rows(&table.counts), DENSE, "{name}");
        assert!(table.counts.is_sparse());
    }
    let ones = DENSE.map(|row| row.map(|value| if value > 0.0 { 1.0 } else { 0.0 }));
    assert_eq!(rows(&read_fixture("pattern.mtx").counts), ones);
}

#[test]
fn arrays_written_by_scipy_are_read_and_stay_dense() {
    let table = read_fixture("array_real.mtx");
    assert_eq!(rows(&table.counts), DENSE);
    assert!(!table.counts.is_sparse());
}

#[test]
fn symmetric_files_are_mirrored_once() {
    let square = [[1.0, 2.0, 0.0], [2.0, 0.0, 3.0], [0.0, 3.0, 4.0]];
    assert_eq!(rows(&read_fixture("symmetric.mtx").counts), square);
    assert_eq!(rows(&read_fixture("symmetric_array.mtx").counts), square);
}

#[test]
fn comments_blank_lines_crlf_and_capitals_are_read_and_duplicates_add_up() {
    let text = "%%MATRIXMARKET Matrix COORDINATE Real General\r\n% a\r\n\r\n%b\r\n2 3 4\r\n\
                2 3 1.5\r\n1 1 2\r\n%c\r\n\r\n2 3 .5\r\n1 2 0\r\n\r\n";
    let counts = read_bytes("loose.mtx", text).counts;
    assert_eq!(rows(&counts), [[2.0, 0.0, 0.0], [0.0, 0.0, 2.0]]);
    assert_eq!(counts.nonzeros(), 2);
}

#[test]
fn headers_that_cannot_be_read_are_refused_with_their_word() {
    let not_header =
        "line 1 must be a Matrix Market header, such as %%MatrixMarket matrix coordinate integer general";
    let choice = "the matrix must be general or symmetric";
    let cases = [
        ("1 2 3", not_header.to_owned()),
        ("%%MatrixMarket matrix coordinate real", not_header.to_owned()),
        (
            "%%MatrixMarket vector coordinate real general",
            "line 1 holds a vector: only a matrix can be read".into(),
        ),
        (
            "%%MatrixMarket matrix list real general",
            "line 1 says list: it must be coordinate or array".into(),
        ),
        (
            "%%MatrixMarket matrix coordinate complex general",
            "line 1 says complex: entries must be real, integer or pattern".into(),
        ),
        (
            "%%MatrixMarket matrix array pattern general",
            "line 1 says array pattern: a pattern needs coordinates".into(),
        ),
        ("%%MatrixMarket matrix coordinate real hermitian", format!("line 1 says hermitian: {choice}")),
        (
            "%%MatrixMarket matrix coordinate real skew-symmetric",
            format!("line 1 says skew-symmetric: {choice}"),
        ),
    ];
    for (i, (header, sentence)) in cases.into_iter().enumerate() {
        assert_eq!(refusal(&format!("header{i}.mtx"), format!("{header}\n1 1 1\n1 1 1\n")), sentence);
    }
}

/// The error for a coordinate file of integers with this text after its header.
fn coordinates(name: &str, text: &str) -> String {
    refusal(name, format!("%%MatrixMarket matrix coordinate integer general\n% comment\n{text}"))
}

#[test]
fn wrong_sizes_are_refused() {
    assert_eq!(
        coordinates("no_sizes.mtx", ""),
        "line 2 is the last one: the line with the number of rows and columns is missing"
    );
    let sentence = "line 3 must be three whole numbers: rows, columns, entries";
    assert_eq!(coordinates("two_sizes.mtx", "2 3\n"), sentence);
    assert_eq!(coordinates("minus_sizes.mtx", "2 -3 1\n"), sentence);
    assert_eq!(
        refusal("array_sizes.mtx", "%%MatrixMarket matrix array real general\n2 3 6\n"),
        "line 2 must be two whole numbers: rows, columns"
    );
    assert_eq!(
        refusal("not_square.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 1 1\n"),
        "line 2 says 2 x 3: a symmetric matrix is square"
    );
    assert_eq!(
        coordinates("no_rows.mtx", "0 3 0\n"),
        "the matrix is empty (0 x 3): give it at least one row and one column"
    );
}

#[test]
fn wrong_numbers_of_entries_are_refused() {
    assert_eq!(
        coordinates("too_few.mtx", "2 3 3\n1 1 1\n2 3 1\n"),
        "line 3 promises 3 entries, the file ends after line 5 with 2"
    );
    assert_eq!(
        coordinates("too_many.mtx", "2 3 1\n1 1 1\n\n2 3 1\n"),
        "line 6 is one entry more than the 1 that line 3 promises"
    );
    let header = "%%MatrixMarket matrix array integer general\n2 2\n";
    assert_eq!(
        refusal("array_few.mtx", format!("{header}1\n2\n3\n")),
        "line 2 promises 4 entries, the file ends after line 5 with 3"
    );
    assert_eq!(
        refusal("array_many.mtx", format!("{header}1\n2\n3\n4\n5\n")),
        "line 7 is one entry more than the 4 that line 2 promises"
    );
}

#[test]
fn wrong_entries_are_refused_by_line() {
    let cases = [
        ("3 1 1", "line 4 says row 3: it must be a whole number from 1 to 2"),
        ("0 1 1", "line 4 says row 0: it must be a whole number from 1 to 2"),
        ("x 1 1", "line 4 says row x: it must be a whole number from 1 to 2"),
        ("1 4 1", "line 4 says column 4: it must be a whole number from 1 to 3"),
        ("1 1 one", "line 4 says one: values must be numbers"),
        ("1 1 1.5", "line 4 says 1.5: line 1 promises integers"),
        ("1 1", "line 4 has 2 words: an entry is row, column, value"),
        ("1 1 1 0", "line 4 has 4 words: an entry is row, column, value"),
        (
            "1 3 -1",
            "entry (0, 2) is -1: counts cannot be negative; if these are logarithms or z-scores, give the raw counts",
        ),
        (
            "1 3 nan",
            "entry (0, 2) is NaN: counts must be finite; if it was not observed, say that entries are missing",
        ),
    ];
    for (i, (entry, sentence)) in cases.into_iter().enumerate() {
        assert_eq!(coordinates(&format!("entry{i}.mtx"), &format!("2 3 1\n{entry}\n")), sentence);
    }
    assert_eq!(
        refusal("pattern_value.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 1 5\n"),
        "line 3 has 3 words: an entry is row, column"
    );
    assert_eq!(
        refusal("array_words.mtx", "%%MatrixMarket matrix array real general\n1 2\n1 2\n"),
        "line 3 has more than one word: an array has one value a line"
    );
}

#[test]
fn lies_about_sizes_ask_for_no_memory() {
    assert_eq!(
        coordinates("many_entries.mtx", "2 3 1000000000000000\n1 1 1\n"),
        "line 3 promises 1000000000000000 entries, the file ends after line 4 with 1"
    );
    assert_eq!(
        coordinates("hollow.mtx", "4000000000 4000000000 1\n1 1 1\n"),
        "4000000000 rows for 1 entries: remove the rows that are all zero"
    );
    assert_eq!(
        refusal("big_array.mtx", "%%MatrixMarket matrix array real symmetric\n4000000000 4000000000\n1\n"),
        "line 2 promises 8000000002000000000 entries, the file ends after line 3 with 1"
    );
    assert_eq!(
        coordinates("endless.mtx", &"1".repeat(2_000_000)),
        "line 3 is longer than 1048576 bytes: is this a text file?"
    );
}

#[test]
fn damaged_gzip_is_refused() {
    assert_eq!(
        refusal("plain.mtx.gz", "%%MatrixMarket matrix coordinate integer general\n"),
        "line 1 could not be read (invalid gzip header): the file is damaged or incomplete"
    );
    let whole = std::fs::read(fixture("coordinate_real.mtx.gz")).unwrap();
    let cut = refusal("cut.mtx.gz", &whole[..whole.len() - 9]);
    assert!(cut.ends_with(": the file is damaged or incomplete"), "{cut}");
}
