//! Tables of text.

use std::io::Write;

use bpnmf_io::{ReadOptions, Table, read};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{read_bytes, refusal, rows, scratch};

type Names = Option<Vec<String>>;

/// Names of rows, names of columns, values.
fn parts(table: Table) -> (Names, Names, Vec<Vec<f64>>) {
    let values = rows(&table.counts);
    (table.feature_names, table.observation_names, values)
}

fn names<const N: usize>(names: [&str; N]) -> Names {
    Some(names.map(str::to_owned).to_vec())
}

#[test]
fn names_are_found_wherever_they_stand() {
    let values = vec![vec![1.0, 2.0], vec![3.0, 4.0]];
    let (row_names, column_names) = (names(["x", "y"]), names(["a", "b"]));
    let cases = [
        ("1,2\n3,4\n", None, None),
        ("a,b\n1,2\n3,4\n", None, column_names.clone()),
        ("x,1,2\ny,3,4\n", row_names.clone(), None),
        ("gene,a,b\nx,1,2\ny,3,4\n", row_names.clone(), column_names.clone()),
        (",a,b\nx,1,2\ny,3,4\n", row_names.clone(), column_names.clone()),
        (",7,9\nx,1,2\ny,3,4\n", row_names.clone(), names(["7", "9"])),
        // R's write.table: no cell above the row names.
        ("a,b\nx,1,2\ny,3,4\n", row_names.clone(), column_names.clone()),
        // pandas' to_csv without names: both are numbered.
        (",0,1\n0,1,2\n1,3,4\n", names(["0", "1"]), names(["0", "1"])),
        // Row names that are numbers, under an empty corner and named columns.
        (",a,b\n101,1,2\n102,3,4\n", names(["101", "102"]), column_names.clone()),
        // A first line with one number among its names.
        ("a,5\n1,2\n3,4\n", None, names(["a", "5"])),
    ];
    for (i, (text, row_names, column_names)) in cases.into_iter().enumerate() {
        let table = read_bytes(&format!("names{i}.csv"), text);
        assert_eq!(parts(table), (row_names, column_names, values.clone()), "{text}");
    }
}

/// What a table was understood to be.
fn layout(name: &str, text: &str) -> String {
    read_bytes(name, text).layout.unwrap().to_string()
}

#[test]
fn identifiers_that_are_numbers_are_names_if_their_column_says_so() {
    for corner in ["gene_id", "Entrez", "ID", "id", "Sample ID", "Unnamed: 0", "index"] {
        let table = read_bytes("ids.csv", format!("{corner},a,b\n7157,1,2\n672,3,4\n"));
        assert_eq!(table.feature_names, names(["7157", "672"]), "{corner}");
        assert_eq!(rows(&table.counts), [[1.0, 2.0], [3.0, 4.0]]);
    }
    // A column of counts is not told from identifiers by its head alone.
    assert_eq!(layout("counts.csv", "id,a,b\n1,1,2\n1,3,4\n"), "header: yes; names: none");
    let many: String = (0..12).map(|i| format!("{},{},{}\n", 1000 * i + 7, i % 3, i % 5)).collect();
    let table = read_bytes("looks.csv", format!("number,a,b\n{many}"));
    let layout = table.layout.unwrap();
    assert_eq!((layout.names, layout.doubts.len()), (0, 1));
    assert!(
        layout.doubts[0].contains("looks like identifiers and was read as counts"),
        "{:?}",
        layout.doubts
    );
    let mut options = ReadOptions::default();
    options.names = Some(1);
    let path = scratch("told.csv");
    std::fs::write(&path, format!("number,a,b\n{many}")).unwrap();
    let told = read(&path, &options).unwrap();
    assert_eq!((told.counts.observations(), told.layout.unwrap().doubts.len()), (2, 0));
    // Columns named by numbers, under a corner that names the rows.
    let table = read_bytes("numbered.csv", "gene,101,102\nTP53,1,2\nACTB,3,4\n");
    assert_eq!(
        (table.feature_names, table.observation_names),
        (names(["TP53", "ACTB"]), names(["101", "102"]))
    );
}

#[test]
fn several_columns_of_names_become_one_name() {
    let text = "Mutation type,Trinucleotide,a,b\nC>A,ACA,1,2\nC>A,ACC,3,4\n";
    let table = read_bytes("sbs.csv", text);
    assert_eq!(table.feature_names, names(["C>A:ACA", "C>A:ACC"]));
    assert_eq!(table.observation_names, names(["a", "b"]));
    assert_eq!(table.layout.unwrap().to_string(), "header: yes; names: first 2 columns, joined by :");
    let mut text = "Type,Subtype,Indel_size,Repeat_MH_size,s\n".to_owned();
    for (size, count) in [("1", "0"), ("1", "5+"), ("5+", "0"), ("5+", "5+")] {
        text += &format!("DEL,C,{size},{count},7\n");
    }
    assert_eq!(read_bytes("indel.csv", &text).feature_names.unwrap()[1], "DEL:C:1:5+");
}

#[test]
fn numbers_are_read_as_their_country_writes_them() {
    let values = |name: &str, text: &str| rows(&read_bytes(name, text).counts);
    assert_eq!(values("de.csv", "g;a;b\nx;1.885;2\ny;3;1.234.567\n"), [[1885.0, 2.0], [3.0, 1_234_567.0]]);
    assert_eq!(values("thousands.csv", "g;a;b\nx;1.885;2\ny;3;40\n"), [[1885.0, 2.0], [3.0, 40.0]]);
    assert_eq!(values("comma.csv", "g;a;b\nx;0,5;2\ny;1.885,25;40\n"), [[0.5, 2.0], [1885.25, 40.0]]);
    assert_eq!(values("bare.csv", "0,5;2\n3;40\n"), [[0.5, 2.0], [3.0, 40.0]]);
    assert_eq!(values("tabs.tsv", "g\ta\tb\nx\t0,5\t2\ny\t3\t40\n"), [[0.5, 2.0], [3.0, 40.0]]);
    assert_eq!(values("us.csv", "g,a,b\nx,\"1,885\",2\ny,3,\"1,234.5\"\n"), [[1885.0, 2.0], [3.0, 1234.5]]);
    // Points that stand before fractions somewhere stand before fractions everywhere.
    assert_eq!(values("points.csv", "g;a;b\nx;1.885;2\ny;0.25;40\n"), [[1.885, 2.0], [0.25, 40.0]]);
    assert_eq!(values("large.csv", "g;a;b\nx;1.885;2\ny;3;4000\n"), [[1.885, 2.0], [3.0, 4000.0]]);
    assert_eq!(values("international.csv", "g,a,b\nx,1.885,2\ny,3,40\n"), [[1.885, 2.0], [3.0, 40.0]]);
    let layout = read_bytes("told.csv", "g;a;b\nx;1.885;2\ny;3;40\n").layout.unwrap();
    assert_eq!(layout.to_string(), "header: yes; names: first column; 1.885 is 1885");
    assert!(layout.doubts[0].contains("line 2, column 2 is 1885"), "{:?}", layout.doubts);
}

#[test]
fn numbers_that_may_mean_two_things_are_refused_with_the_remedy() {
    let remedy = "say which mark stands before fractions (decimal point or comma)";
    assert_eq!(
        refusal("either.tsv", "g\ta\nx\t1,885\ny\t2\n"),
        format!("line 2 column 2 may be a fraction or have a thousands separator: {remedy}")
    );
    assert_eq!(
        refusal("both.csv", "g;a;b\nx;0,5;2\ny;0.5;4\n"),
        format!("line 2 has a number with a decimal comma, other lines have points: {remedy}")
    );
    let path = scratch("given.tsv");
    std::fs::write(&path, "g\ta\nx\t1,885\ny\t2\n").unwrap();
    for (decimal, value) in [(bpnmf_io::Decimal::Comma, 1.885), (bpnmf_io::Decimal::Point, 1885.0)] {
        let mut options = ReadOptions::default();
        options.decimal = Some(decimal);
        assert_eq!(rows(&read(&path, &options).unwrap().counts), [[value], [2.0]]);
    }
}

#[test]
fn lines_after_a_hash_are_left_out_unless_they_are_the_header_or_a_row() {
    let table = read_bytes("otu.tsv", "# Constructed from biom file\n#OTU ID\ts1\ts2\nx\t1\t2\ny\t3\t4\n");
    assert_eq!(table.observation_names, names(["s1", "s2"]));
    assert_eq!(
        table.layout.unwrap().to_string(),
        "header: yes; names: first column; 1 line after # left out"
    );
    let table = read_bytes("notes.csv", "# made by hand, on Monday\na,b\n1,2\n# checked\n3,4\n");
    assert_eq!(
        (rows(&table.counts), table.layout.unwrap().comments),
        (vec![vec![1.0, 2.0], vec![3.0, 4.0]], 2)
    );
    let table = read_bytes("tags.csv", "word,a\nthe,1\n#tag,2\n");
    assert_eq!(table.feature_names, names(["the", "#tag"]));
}

#[test]
fn a_gzipped_table_needs_no_gz_in_its_name() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(b"a,b\n1,2\n").unwrap();
    assert_eq!(rows(&read_bytes("unnamed.csv", encoder.finish().unwrap()).counts), [[1.0, 2.0]]);
}

#[test]
fn names_and_header_may_be_told() {
    let path = scratch("told_names.csv");
    std::fs::write(&path, "1,2,3\n4,5,6\n").unwrap();
    let mut options = ReadOptions::default();
    (options.names, options.header) = (Some(1), Some(true));
    let table = read(&path, &options).unwrap();
    assert_eq!((table.feature_names, table.observation_names), (names(["4"]), names(["2", "3"])));
    options.names = Some(3);
    let told = read(&path, &options).unwrap_err().to_string();
    assert!(
        told.ends_with("line 1 has 3 cells, and 3 of them shall be names: nothing is left to fit"),
        "{told}"
    );
}

#[test]
fn row_names_may_look_like_numbers_if_most_do_not() {
    let table = read_bytes("vocabulary.csv", "word,a\nthe,1\n2008,2\nnan,3\nof,4\nand,5\n");
    assert_eq!(table.feature_names, names(["the", "2008", "nan", "of", "and"]));
}

#[test]
fn one_typing_error_does_not_turn_a_column_into_names() {
    assert_eq!(
        refusal("typo.csv", "a,b\n1,2\nx3,4\n5,6\n"),
        "line 3, column 1 is \"x3\": cells must be numbers; \
         if the first column holds names, leave the first cell of the header empty"
    );
}

#[test]
fn single_rows_and_single_columns_are_read() {
    assert_eq!(parts(read_bytes("row.csv", "1,2")), (None, None, vec![vec![1.0, 2.0]]));
    assert_eq!(parts(read_bytes("named_row.csv", "x,1,2")), (names(["x"]), None, vec![vec![1.0, 2.0]]));
    assert_eq!(parts(read_bytes("column.csv", "1\n2\n")), (None, None, vec![vec![1.0], vec![2.0]]));
    assert_eq!(
        parts(read_bytes("named_column.csv", "n\n1\n2\n")),
        (None, names(["n"]), vec![vec![1.0], vec![2.0]])
    );
}

#[test]
fn the_delimiter_follows_extension_and_first_line() {
    let cases = [
        ("comma.csv", "1,2\n3,4\n"),
        ("tab.csv", "1\t2\n3\t4\n"),
        ("semicolon.csv", "1;2\n3;4\n"),
        ("tab.tsv", "1\t2\n3\t4\n"),
        ("tab.txt", "1\t2\n3\t4\n"),
        ("comma.txt", "1, 2\n3, 4\n"),
        ("semicolon.txt", "1;2\n3;4\n"),
        ("space.txt", "1 2\n3 4\n"),
        ("spaces.txt", "  1   2 \n  3   4\n"),
        ("savetxt.txt", "1.000000000000000000e+00 2.0e+00\n3e0 4e0\n"),
    ];
    for (name, text) in cases {
        assert_eq!(rows(&read_bytes(name, text).counts), [[1.0, 2.0], [3.0, 4.0]], "{name}");
    }
    let table = read_bytes("names.tsv", "gene\ta, b\tc\nx\t1\t2\n");
    assert_eq!(table.observation_names, names(["a, b", "c"]));
    let table = read_bytes("quoted.csv", "\"a,b\";c\n1;2\n");
    assert_eq!(table.observation_names, names(["a,b", "c"]));
}

#[test]
fn quoted_cells_may_hold_delimiters_quotes_and_line_ends() {
    let text = "\"\",\"a, \"\"b\"\"\",\"two\nlines\"\r\n\"x\",\"1\", \"2\"\r\n6\" pipe,3,4\r\n";
    let table = read_bytes("quotes.csv", text);
    assert_eq!(
        parts(table),
        (names(["x", "6\" pipe"]), names(["a, \"b\"", "two\nlines"]), vec![vec![1.0, 2.0], vec![3.0, 4.0]])
    );
    assert_eq!(refusal("open.csv", "a,b\n1,2\n\"3,4\n5,6\n"), "line 3 opens a quote that is never closed");
    assert_eq!(
        refusal("open_long.csv", format!("a,b\n\"1,2\n{}", "3,4\n".repeat(5000))),
        "line 2 opens a quote that is never closed"
    );
}

#[test]
fn byte_order_mark_crlf_and_blank_lines_around_are_ignored() {
    let table = read_bytes("excel.csv", "\u{feff}a,b\r\n1,2\r\n3,4\r\n\r\n  \r\n\r\n");
    assert_eq!(parts(table), (None, names(["a", "b"]), vec![vec![1.0, 2.0], vec![3.0, 4.0]]));
    let table = read_bytes("excel_numbers.csv", "\u{feff}1,2\r\n3,4");
    assert_eq!(parts(table), (None, None, vec![vec![1.0, 2.0], vec![3.0, 4.0]]));
    assert_eq!(read_bytes("late.csv", "\n\n1,2\n").counts.features(), 1);
}

#[test]
fn gzipped_tables_are_read() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(b"a\tb\n1\t2\n").unwrap();
    assert_eq!(rows(&read_bytes("packed.tsv.gz", encoder.finish().unwrap()).counts), [[1.0, 2.0]]);
}

#[test]
fn ragged_rows_are_refused_with_both_widths() {
    assert_eq!(refusal("ragged.csv", "1,2,3,4,5\n1,2,3,4,5\n1,2,3,4\n"), "line 3 has 4 cells, line 1 has 5");
    assert_eq!(refusal("ragged_crlf.csv", "\r\na,b\r\n1,2\r\n1,2,3\r\n"), "line 4 has 3 cells, line 2 has 2");
    assert_eq!(refusal("ragged_header.csv", "a,b\n1,2,3\n"), "line 2 has 3 cells, line 1 has 2");
}

#[test]
fn text_in_a_cell_is_refused_by_place() {
    assert_eq!(
        refusal("text.csv", "gene,a,b\nx,1,2\ny,3,NA\n"),
        "line 3, column 3 is \"NA\": cells must be numbers; if it was not observed, say that entries are missing"
    );
    assert_eq!(
        refusal("text_lines.csv", "gene,a,\"b\nc\"\r\nx,1,2\r\ny,3,4 5\r\n"),
        "line 4, column 3 is \"4 5\": cells must be numbers"
    );
    assert_eq!(
        refusal("long_text.csv", format!("1,2\n1,{}\n", "long ".repeat(100))),
        "line 2, column 2 is \"long long long long long long long long ...\": cells must be numbers"
    );
}

#[test]
fn empty_cells_are_refused_by_place() {
    let advice = "is an empty cell: fill it in, or say that entries are missing";
    assert_eq!(refusal("empty.csv", "a,b\n1,2\n3,\n"), format!("line 3, column 2 {advice}"));
    assert_eq!(refusal("empty_first.csv", "a,b\n1,2\n ,4\n5,6\n"), format!("line 3, column 1 {advice}"));
    // Not names: nothing but the missing number says so.
    assert_eq!(refusal("empty_corner.csv", ",20\n30,40\n50,60\n"), format!("line 1, column 1 {advice}"));
    assert_eq!(refusal("gap.csv", "1\n\n2\n"), "line 2 is blank and rows follow it: delete the line");
}

#[test]
fn numbers_that_are_no_counts_are_refused_by_entry() {
    assert_eq!(
        refusal("nan.csv", "a,b\n1,NaN\n"),
        "entry (0, 1) is NaN: counts must be finite; if it was not observed, say that entries are missing"
    );
    assert_eq!(refusal("inf.csv", "1,2\ninf,3\n"), "entry (1, 0) is inf: counts must be finite");
    assert_eq!(
        refusal("negative.csv", "g,a,b\nx,1,-2\n"),
        "entry (0, 1) is -2: counts cannot be negative; if these are logarithms or z-scores, give the raw counts"
    );
}

#[test]
fn empty_cells_and_na_are_missing_if_that_is_said() {
    let mut options = ReadOptions::default();
    options.missing = true;
    let cases = [
        ("g,a,b,c\nx,1,,3\ny,NA,5,nan\n", names(["x", "y"])),
        ("a,b,c\n1,,3\nNA,5,NaN\n", None),
        ("1,,3\nNA,5,NaN\n", None),
    ];
    for (i, (text, feature_names)) in cases.into_iter().enumerate() {
        let path = scratch(&format!("missing{i}.csv"));
        std::fs::write(&path, text).unwrap();
        let table = read(&path, &options).unwrap();
        assert_eq!(table.feature_names, feature_names, "{text}");
        let counts = &table.counts;
        assert_eq!([0, 1, 2].map(|t| counts.missing(t).to_vec()), [vec![1], vec![0], vec![1]], "{text}");
        assert_eq!(rows(counts), [[1.0, 0.0, 3.0], [0.0, 5.0, 0.0]]);
        options.transpose = true;
        assert_eq!(read(&path, &options).unwrap().counts.missing(0), [1]);
        options.transpose = false;
    }
    let path = scratch("missing.mtx");
    std::fs::write(&path, "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 1 1\n2 2 nan\n1 3 2\n")
        .unwrap();
    let counts = read(&path, &options).unwrap().counts;
    assert_eq!((counts.missing(1), counts.missing_entries(), counts.nonzeros()), (&[1][..], 1, 2));
}

#[test]
fn a_table_without_rows_is_called_empty() {
    let advice = "give it at least one row and one column";
    assert_eq!(refusal("header.csv", "a,b,c\n"), format!("the matrix is empty (0 x 3): {advice}"));
    assert_eq!(refusal("corner_header.csv", ",a,b,c\n"), format!("the matrix is empty (0 x 3): {advice}"));
    assert_eq!(refusal("blank.csv", "\n\n"), format!("the matrix is empty (0 x 0): {advice}"));
}

#[test]
fn text_that_is_not_utf8_with_line_feeds_is_refused() {
    assert_eq!(
        refusal("latin1.csv", b"a,b\n1,2\nM\xfcller,3\n"),
        "line 3 is not UTF-8 text: save the file as UTF-8"
    );
    assert_eq!(
        refusal("utf16.csv", b"\xff\xfe1\x00,\x002\x00\n\x00"),
        "line 1 is not UTF-8 text: save the file as UTF-8"
    );
    assert_eq!(
        refusal("mac.csv", "a,b\r1,2\r"),
        "line 1 has a carriage return inside: save the file with line feeds"
    );
}
