//! Small files that stand for large ones: refused before the memory is asked for.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use bpnmf_io::{ReadOptions, read_bytes};
use flate2::{Compression, write::GzEncoder};
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

/// What these files may take.
const MEMORY: u64 = 10_000_000;

fn told(name: &str, bytes: &[u8]) -> String {
    let mut options = ReadOptions::default();
    options.memory = Some(MEMORY);
    let begin = Instant::now();
    let text = read_bytes(Path::new(name), bytes, &options).unwrap_err().to_string();
    assert!(begin.elapsed().as_secs() < 20, "{name}");
    text
}

fn gzipped(pieces: impl Iterator<Item = String>) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    pieces.for_each(|piece| out.write_all(piece.as_bytes()).unwrap());
    out.finish().unwrap()
}

/// An archive of `count` zeros of eight bytes.
fn archive_of_zeros(count: usize) -> Vec<u8> {
    let mut out = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    out.start_file("X.npy", options).unwrap();
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': (1, {count}), }}");
    out.write_all(b"\x93NUMPY\x01\x00").unwrap();
    out.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
    out.write_all(header.as_bytes()).unwrap();
    out.write_all(&vec![0; 8 * count]).unwrap();
    out.finish().unwrap().into_inner()
}

#[test]
fn an_archive_that_unpacks_to_more_than_there_is_memory_is_refused() {
    let bytes = archive_of_zeros(4_000_000);
    assert!(bytes.len() < 100_000);
    assert_eq!(
        told("bomb.npz", &bytes),
        "bomb.npz: its values need at least 32000000 bytes of memory, more than there is"
    );
    assert!(read_bytes(Path::new("bomb.npz"), &bytes, &ReadOptions::default()).is_ok(), "without a limit");
}

#[test]
fn small_numbers_that_become_large_ones_are_refused() {
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2000000), }";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + 2_000_000, 1);
    assert!(told("bytes.npy", &bytes).contains("at least 16000000 bytes"));
}

#[test]
fn text_that_unpacks_to_more_than_there_is_memory_is_refused() {
    let rows = gzipped((0..2000).map(|_| "0,".repeat(1000) + "0\n"));
    assert!(rows.len() < 200_000);
    assert!(told("rows.csv.gz", &rows).contains("bytes of memory, more than there is"));
    // One line of nothing but commas, and names without end.
    let commas = gzipped((0..20).map(|_| ",".repeat(1_000_000)));
    assert!(told("commas.csv.gz", &commas).contains("bytes of memory, more than there is"));
    let names = gzipped((0..20).map(|_| "a".repeat(1_000_000) + ",1\n"));
    assert!(told("names.csv.gz", &names).contains("bytes of memory, more than there is"));
}

#[test]
fn a_matrix_market_file_that_unpacks_to_more_than_there_is_memory_is_refused() {
    let head = "%%MatrixMarket matrix coordinate integer general\n2 2 9000000000\n".to_owned();
    let entries = gzipped(std::iter::once(head).chain((0..1000).map(|_| "1 1 1\n".repeat(1000))));
    assert!(told("entries.mtx.gz", &entries).contains("bytes of memory, more than there is"));
    let head = "%%MatrixMarket matrix array integer general\n3000000 3\n".to_owned();
    let values = gzipped(std::iter::once(head).chain((0..9000).map(|_| "1\n".repeat(1000))));
    assert!(told("values.mtx.gz", &values).contains("bytes of memory, more than there is"));
    let hollow = "%%MatrixMarket matrix coordinate integer general\n16000000 16000000 1\n1 1 1\n";
    assert!(told("hollow.mtx", hollow.as_bytes()).contains("bytes of memory, more than there is"));
}

#[test]
fn lines_without_end_that_say_nothing_are_refused() {
    let head = "%%MatrixMarket matrix coordinate integer general\n".to_owned();
    let comments = gzipped(std::iter::once(head).chain((0..80).map(|_| "%\n".repeat(500_000))));
    assert!(told("comments.mtx.gz", &comments).contains("of comments and blank lines: is this a table?"));
    let blanks = gzipped((0..80).map(|_| "\n".repeat(1_000_000)));
    assert!(told("blanks.csv.gz", &blanks).contains("of comments and blank lines: is this a table?"));
}

#[test]
fn a_quote_that_is_never_closed_is_not_looked_for_again_and_again() {
    let lines = gzipped(std::iter::once("\"".to_owned()).chain((0..900).map(|_| "a".repeat(200_000) + "\n")));
    assert_eq!(told("quote.csv.gz", &lines), "quote.csv.gz: line 1 opens a quote that is never closed");
}

/// Found by fuzzing: the bits of such a string are more than a number holds.
#[test]
fn a_string_of_any_length_has_a_type() {
    for descr in ["<U1844674407370955161", "|S18446744073709551615", "|S9223372036854775808"] {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (1, 2), }}");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend([0; 8]);
        let text = told("string.npy", &bytes);
        assert!(text.ends_with(" 8 are there: the file is incomplete or its header is wrong"), "{text}");
    }
}
