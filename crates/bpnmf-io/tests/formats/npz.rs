//! numpy's archives and scipy's sparse matrices.

use std::io::Write;

use bpnmf_io::{Array, Values, read_npz_arrays, write_npz};
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

use super::{DENSE, fixture, read_fixture, refusal, refusal_of, rows, scratch};

/// The arrays of a compressed-column matrix, 2 x 3 with two entries, some of them replaced.
fn sparse_refusal(name: &str, replaced: &[(&str, Array<'_>)]) -> String {
    let path = scratch(name);
    let mut arrays = vec![
        ("shape", Array::new(&[2], vec![2i64, 3])),
        ("data", Array::new(&[2], vec![1.0f64, 2.0])),
        ("indices", Array::new(&[2], vec![0i64, 1])),
        ("indptr", Array::new(&[4], vec![0i64, 1, 1, 2])),
    ];
    for (name, array) in replaced {
        arrays.retain(|(other, _)| other != name);
        arrays.push((name, array.clone()));
    }
    write_npz(&path, &arrays).unwrap();
    // Our writer has no strings, so the name of the format is added by hand.
    let mut zip =
        zip::ZipWriter::new_append(std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap())
            .unwrap();
    zip.start_file("format.npy", SimpleFileOptions::default()).unwrap();
    let header = "{'descr': '|S3', 'fortran_order': False, 'shape': (), }";
    zip.write_all(b"\x93NUMPY\x01\x00").unwrap();
    zip.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
    zip.write_all(header.as_bytes()).unwrap();
    zip.write_all(b"csc").unwrap();
    zip.finish().unwrap();
    refusal_of(&path)
}

#[test]
fn a_single_array_or_one_called_x_is_the_matrix() {
    for name in ["single.npz", "with_x.npz"] {
        let table = read_fixture(name);
        assert_eq!(rows(&table.counts), DENSE, "{name}");
        assert!(!table.counts.is_sparse());
    }
}

#[test]
fn several_arrays_without_x_are_listed() {
    assert_eq!(
        refusal_of(&fixture("no_x.npz")),
        "the archive holds w, h: keep one of them, or name the matrix X"
    );
}

#[test]
fn scipy_matrices_stay_sparse() {
    for name in ["csc_matrix.npz", "csr_matrix.npz", "coo_matrix.npz", "csc_array.npz", "csr_stored.npz"] {
        let table = read_fixture(name);
        assert_eq!(rows(&table.counts), DENSE, "{name}");
        assert!(table.counts.is_sparse(), "{name}");
        assert_eq!(table.counts.nonzeros(), 5);
    }
}

#[test]
fn unsorted_entries_are_sorted_duplicates_added_and_zeros_dropped() {
    let counts = read_fixture("messy.npz").counts;
    assert_eq!(rows(&counts), [[1.0, 0.0, 3.0, 0.0], [0.0, 3.0, 0.0, 0.0], [4.0, 0.0, 0.0, 5.0]]);
    assert!(counts.is_sparse());
    assert_eq!(counts.nonzeros(), 5);
}

#[test]
fn other_sparse_formats_are_refused_by_name() {
    assert_eq!(
        refusal_of(&fixture("bsr_matrix.npz")),
        "array \"format\": sparse format \"bsr\" cannot be read: save matrix.tocsc()"
    );
}

#[test]
fn sparse_arrays_that_contradict_each_other_are_refused() {
    let whole = |values: &[i64]| Array::new(&[values.len()], values.to_vec());
    let cases = [
        ("indptr", whole(&[0, 1, 2]), "3 entries, the shape asks for 4"),
        ("indptr", whole(&[0, 1, 1, 1]), "runs from 0 to 1, there are 2 values"),
        ("indptr", whole(&[0, 2, 1, 2]), "falls from 2 to 1 at entry 2"),
        ("indptr", whole(&[0, 1, 9, 2]), "entry 2 is 9, it must be from 0 to below 3"),
        ("indices", whole(&[0, 2]), "entry 1 is 2, it must be from 0 to below 2"),
        ("indices", whole(&[-1, 0]), "entry 0 is -1, it must be from 0 to below 2"),
        ("indices", whole(&[0, 1, 1]), "3 indices for 2 values"),
        ("indices", Array::new(&[2], vec![0.0f64, 1.0]), "its values must be integers"),
        ("shape", whole(&[2, 3, 4]), "the matrix has 3 dimensions, it must have 2"),
    ];
    for (i, (name, array, sentence)) in cases.into_iter().enumerate() {
        assert_eq!(
            sparse_refusal(&format!("contradiction{i}.npz"), &[(name, array)]),
            format!("array {name:?}: {sentence}")
        );
    }
    assert_eq!(
        sparse_refusal("sparse_negative.npz", &[("data", Array::new(&[2], vec![1.0f64, -2.0]))]),
        "entry (1, 2) is -2: counts cannot be negative; if these are logarithms or z-scores, give the raw counts"
    );
}

#[test]
fn a_shape_without_entries_to_fill_it_asks_for_no_memory() {
    let shape = Array::new(&[2], vec![4_000_000_000i64, 3]);
    assert_eq!(
        sparse_refusal("hollow.npz", &[("shape", shape)]),
        "4000000000 rows for 2 entries: remove the rows that are all zero"
    );
    let shape = Array::new(&[2], vec![5_000_000_000i64, 3]);
    assert_eq!(sparse_refusal("hollow2.npz", &[("shape", shape)]), "5000000000 x 3 is too large to index");
}

#[test]
fn what_is_no_archive_of_arrays_is_refused() {
    let start = "this is not an archive of arrays as numpy.savez writes it: ";
    assert!(refusal("text.npz", "1,2,3").starts_with(start));
    let whole = std::fs::read(fixture("with_x.npz")).unwrap();
    assert!(refusal("cut.npz", &whole[..whole.len() / 2]).starts_with(start));
    let path = scratch("no_arrays.npz");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    zip.start_file("readme.txt", SimpleFileOptions::default()).unwrap();
    zip.finish().unwrap();
    assert_eq!(refusal_of(&path), format!("{start}no file in it ends in .npy"));
}

#[test]
fn a_damaged_byte_is_noticed_by_the_checksum() {
    let mut bytes = std::fs::read(fixture("single.npz")).unwrap();
    let place = bytes.windows(4).position(|window| window == [5, 0, 0, 0]).unwrap();
    bytes[place] = 6;
    assert_eq!(
        refusal("damaged.npz", bytes),
        "array \"counts\": could not be read: Invalid checksum: the file is damaged"
    );
}

#[test]
fn an_archive_that_lies_about_its_sizes_is_refused_before_memory_is_asked_for() {
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (50000, 10000), }";
    let mut member = b"\x93NUMPY\x01\x00".to_vec();
    member.extend((header.len() as u16).to_le_bytes());
    member.extend(header.as_bytes());
    member.extend([0; 40]);
    let path = scratch("lie.npz");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    zip.start_file("X.npy", options).unwrap();
    zip.write_all(&member).unwrap();
    zip.finish().unwrap();
    assert_eq!(
        refusal_of(&path),
        "array \"X\": shape (50000, 10000) of float64 needs 4000000000 bytes, 40 are there: \
         the file is incomplete or its header is wrong"
    );

    // The central directory says how large a member is: 20 bytes after its mark packed, then unpacked.
    let mut bytes = std::fs::read(&path).unwrap();
    let place = bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    let packed = u32::from_le_bytes(bytes[place + 20..place + 24].try_into().unwrap());
    bytes[place + 24..place + 28].copy_from_slice(&4_000_000_000u32.to_le_bytes());
    assert_eq!(
        refusal("bigger_lie.npz", bytes),
        format!("array \"X\": its {packed} bytes cannot unpack to the 4000000000 that the archive claims")
    );
}

#[test]
fn arrays_are_read_by_name_with_their_types() {
    let arrays = read_npz_arrays(&fixture("arrays.npz")).unwrap();
    let names: Vec<&str> = arrays.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["f32", "f64", "u8", "u32", "i64", "i16", "flag", "number", "turned"]);
    let expected: [(&[usize], Values<'_>); 9] = [
        (&[1, 2], vec![0.1f32, 2.5].into()),
        (&[2], vec![0.1f64, std::f64::consts::PI].into()),
        (&[2], vec![0u8, 255].into()),
        (&[1], vec![u32::MAX].into()),
        (&[1], vec![i64::MIN].into()),
        (&[1], vec![-5i64].into()),
        (&[2], vec![1u8, 0].into()),
        (&[], vec![7.0f64].into()),
        (&[2, 3, 4], (0..24).collect::<Vec<i64>>().into()),
    ];
    for ((name, array), (shape, values)) in arrays.iter().zip(expected) {
        assert_eq!(array.shape(), shape, "{name}");
        assert_eq!(*array.values(), values, "{name}");
    }
}
