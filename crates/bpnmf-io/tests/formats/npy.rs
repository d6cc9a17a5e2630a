//! numpy's single arrays.

use bpnmf_io::{Values, read_npy_array};

use super::{DENSE, fixture, read_bytes, read_fixture, refusal, refusal_of, rows, scratch};

/// A .npy file with this version, header and bytes of values.
fn npy(version: u8, header: &str, values: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend((header.len() as u16).to_le_bytes()),
        _ => bytes.extend((header.len() as u32).to_le_bytes()),
    }
    bytes.extend(header.as_bytes());
    bytes.extend(values);
    bytes
}

#[test]
fn every_number_type_in_both_byte_orders_is_read() {
    let mut codes = vec!["i1".to_owned(), "u1".to_owned()];
    for code in ["i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8"] {
        codes.extend([format!("le_{code}"), format!("be_{code}")]);
    }
    for code in codes {
        let table = read_fixture(&format!("dtype_{code}.npy"));
        assert_eq!(rows(&table.counts), DENSE, "{code}");
        assert!(!table.counts.is_sparse() && table.feature_names.is_none());
        assert_eq!(read_npy_array(&fixture(&format!("dtype_{code}.npy"))).unwrap().to_f64(), DENSE.concat());
    }
    let ones = DENSE.map(|row| row.map(|value| if value > 0.0 { 1.0 } else { 0.0 }));
    assert_eq!(rows(&read_fixture("dtype_bool.npy").counts), ones);
}

#[test]
fn half_precision_fractions_are_exact() {
    let smallest = 2f64.powi(-24);
    assert_eq!(rows(&read_fixture("fractions_f2.npy").counts), [[0.5, 65504.0], [smallest, 0.333251953125]]);
}

#[test]
fn fortran_order_and_all_versions_are_read() {
    for name in ["fortran.npy", "version2.npy", "version3.npy"] {
        assert_eq!(rows(&read_fixture(name).counts), DENSE, "{name}");
    }
}

#[test]
fn lengths_as_python_2_wrote_them_are_read() {
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1L, 2L), }\n";
    assert_eq!(rows(&read_bytes("python2.npy", npy(1, header, &[3, 4])).counts), [[3.0, 4.0]]);
}

#[test]
fn arrays_that_are_no_matrix_are_refused_with_their_shape() {
    let advice = "a matrix has 2: reshape it to features x observations";
    let cases = [
        ("one_dimension.npy", "shape (5,) has 1 dimensions"),
        ("three_dimensions.npy", "shape (2, 3, 4) has 3 dimensions"),
        ("number.npy", "shape () has 0 dimensions"),
    ];
    for (name, sentence) in cases {
        assert_eq!(refusal_of(&fixture(name)), format!("{sentence}, {advice}"));
    }
    assert_eq!(
        refusal_of(&fixture("no_rows.npy")),
        "the matrix is empty (0 x 4): give it at least one row and one column"
    );
}

#[test]
fn types_that_cannot_be_counts_are_refused_by_name() {
    for name in ["object", "complex", "structured", "string"] {
        assert_eq!(
            refusal_of(&fixture(&format!("{name}.npy"))),
            format!("its values are of type {name}: convert it to bool, integer or float (up to 64 bits)")
        );
    }
    let header = "{'descr': '<q7', 'fortran_order': False, 'shape': (1, 1), }";
    assert_eq!(refusal("unknown_type.npy", npy(1, header, &[0; 7])), "dtype \"<q7\" is not known");
}

#[test]
fn a_header_that_claims_more_than_the_file_holds_is_refused_before_memory_is_asked_for() {
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }";
    assert_eq!(
        refusal("giant.npy", npy(1, header, &[0; 20])),
        "shape (1000000, 1000000) of float64 needs 8000000000000 bytes, 20 are there: \
         the file is incomplete or its header is wrong"
    );
    let header =
        "{'descr': '<f8', 'fortran_order': False, 'shape': (18446744073709551615, 18446744073709551615), }";
    assert_eq!(
        refusal("overflow.npy", npy(1, header, &[0; 20])),
        "shape (18446744073709551615, 18446744073709551615) of float64 needs \
         340282366920938463463374607431768211455 bytes, 20 are there: \
         the file is incomplete or its header is wrong"
    );
    assert_eq!(
        refusal("giant_header.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr"),
        "the header claims 4294967295 bytes for itself, 7 are there: the file is incomplete"
    );
}

#[test]
fn files_that_are_cut_or_go_on_are_refused() {
    let whole = std::fs::read(fixture("dtype_le_i4.npy")).unwrap();
    let mut longer = whole.clone();
    longer.extend([0; 4]);
    let sentence = "the file is incomplete or its header is wrong";
    assert_eq!(
        refusal("cut.npy", &whole[..whole.len() - 1]),
        format!("shape (3, 4) of int32 needs 48 bytes, 47 are there: {sentence}")
    );
    assert_eq!(
        refusal("longer.npy", longer),
        format!("shape (3, 4) of int32 needs 48 bytes, 52 are there: {sentence}")
    );
    assert_eq!(
        refusal("cut_header.npy", &whole[..50]),
        "the header claims 118 bytes for itself, 40 are there: the file is incomplete"
    );
    for length in 1..whole.len() {
        refusal("cut_anywhere.npy", &whole[..length]);
    }
}

#[test]
fn what_is_not_npy_is_refused() {
    let sentence = "this is not an array as numpy.save writes it";
    assert_eq!(refusal("short.npy", "1"), sentence);
    assert_eq!(refusal("text.npy", "1,2,3\n4,5,6\n"), sentence);
    assert_eq!(
        refusal("version9.npy", npy(9, "{}", &[])),
        "version 9 of the npy format is not known, versions 1 to 3 are"
    );
    assert_eq!(
        refusal("no_shape.npy", npy(1, "{'descr': '<f8', 'fortran_order': False, }", &[])),
        "the header has no readable \"shape\""
    );
    let negative = "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 2), }";
    assert_eq!(refusal("negative_shape.npy", npy(1, negative, &[])), "the header has no readable \"shape\"");
    assert_eq!(
        refusal("no_order.npy", npy(1, "{'descr': '<f8', 'shape': (1, 1), }", &[0; 8])),
        "the header has no readable \"fortran_order\""
    );
}

#[test]
fn entries_that_are_no_counts_are_refused_by_place() {
    assert_eq!(
        refusal_of(&fixture("negative.npy")),
        "entry (1, 2) is -6: counts cannot be negative; if these are logarithms or z-scores, give the raw counts"
    );
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }";
    let values: Vec<u8> = [1.0, f64::NAN].iter().flat_map(|value: &f64| value.to_le_bytes()).collect();
    assert_eq!(
        refusal("nan.npy", npy(1, header, &values)),
        "entry (0, 1) is NaN: counts must be finite; if it was not observed, say that entries are missing"
    );
}

#[test]
fn unsigned_numbers_beyond_int64_are_not_read_as_negative_ones() {
    let header = "{'descr': '<u8', 'fortran_order': False, 'shape': (1, 1), }";
    let path = scratch("huge_u8.npy");
    std::fs::write(&path, npy(1, header, &[0xff; 8])).unwrap();
    assert_eq!(
        read_npy_array(&path).unwrap_err().to_string(),
        format!("{}: a value is beyond what int64 holds: save the array as float64", path.display())
    );
    assert!(refusal_of(&path).contains("counts above 1e15 are not supported"));
}

#[test]
fn a_single_number_is_an_array_of_no_dimensions() {
    let array = read_npy_array(&fixture("number.npy")).unwrap();
    assert_eq!(array.shape(), [0usize; 0]);
    assert_eq!(*array.values(), Values::from(vec![3.0f64]));
}
