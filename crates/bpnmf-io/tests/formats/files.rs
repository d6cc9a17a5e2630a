//! What can be wrong before the first byte is understood, and what holds for all formats.

use bpnmf_io::{ReadOptions, read};

use super::{DENSE, fixture, read_bytes, read_fixture, refusal, refusal_of, rows, scratch};

const ACCEPTED: &str =
    "use .npy, .npz, .csv, .tsv, .txt, .mtx (the text formats also with .gz after it), .h5ad or .h5";

#[test]
fn a_missing_file_is_called_missing() {
    assert_eq!(refusal_of(&scratch("nowhere.npy")), "there is no such file");
}

#[test]
fn a_folder_is_called_a_folder() {
    let folder = scratch("folder.npy");
    std::fs::create_dir_all(&folder).unwrap();
    assert_eq!(
        refusal_of(&folder),
        "this is a folder, and not one of 10x Genomics with matrix.mtx: name a file inside it"
    );
}

#[cfg(unix)]
#[test]
fn a_device_is_refused_without_being_opened() {
    let link = scratch("device.csv");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
    assert_eq!(refusal_of(&link), "this is not a regular file: copy what it gives to a file first");
}

#[test]
fn a_file_without_bytes_is_called_empty() {
    for name in ["none.npy", "none.npz", "none.csv", "none.mtx", "none.mtx.gz"] {
        assert_eq!(refusal(name, ""), "the file is empty (0 bytes): was it written to the end?");
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_says_so() {
    use std::os::unix::fs::PermissionsExt;
    let path = scratch("locked.csv");
    std::fs::write(&path, "1,2\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    // Root may read everything: then there is nothing to see here.
    if std::fs::File::open(&path).is_err() {
        assert_eq!(refusal_of(&path), "permission denied: check who may read it");
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn an_unknown_extension_lists_the_known_ones() {
    let cases = [
        ("data.xlsx", "files that end in .xlsx cannot be read"),
        ("data.npy.gz", "files that end in .npy.gz cannot be read"),
        ("data.gz", "files that end in .gz cannot be read"),
        ("data", "the name has no extension, so its format is not known"),
    ];
    for (name, sentence) in cases {
        assert_eq!(refusal(name, "1"), format!("{sentence}: {ACCEPTED}"));
    }
}

#[test]
fn the_case_of_an_extension_does_not_matter() {
    assert_eq!(read_bytes("UPPER.CSV", "1,2\n").counts.observations(), 2);
    let gzipped = std::fs::read(fixture("coordinate_real.mtx.gz")).unwrap();
    assert_eq!(rows(&read_bytes("UPPER.Mtx.GZ", gzipped).counts), DENSE);
}

#[test]
fn transpose_turns_matrix_and_names() {
    let mut options = ReadOptions::default();
    options.transpose = true;
    let path = scratch("turned.csv");
    std::fs::write(&path, ",a,b\nx,1,2\ny,3,4\nz,5,6\n").unwrap();
    let table = read(&path, &options).unwrap();
    assert_eq!(rows(&table.counts), [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]);
    assert_eq!(table.feature_names.unwrap(), ["a", "b"]);
    assert_eq!(table.observation_names.unwrap(), ["x", "y", "z"]);

    for name in ["dtype_le_i4.npy", "csr_matrix.npz", "coordinate_integer.mtx"] {
        let turned = read(&fixture(name), &options).unwrap();
        assert_eq!(turned.counts, read_fixture(name).counts.transposed());
    }
}

#[test]
fn errors_name_the_place_in_the_file_even_when_it_is_transposed() {
    let mut options = ReadOptions::default();
    options.transpose = true;
    let sparse = scratch("turned_negative.mtx");
    std::fs::write(&sparse, "%%MatrixMarket matrix coordinate integer general\n2 3 1\n2 3 -6\n").unwrap();
    for path in [fixture("negative.npy"), sparse] {
        let text = read(&path, &options).unwrap_err().to_string();
        assert_eq!(
            text,
            format!(
                "{}: entry (1, 2) is -6: counts cannot be negative; if these are logarithms or z-scores, give the raw counts",
                path.display()
            )
        );
    }
}

#[test]
fn no_damaged_file_makes_the_reader_panic() {
    let mut state = 1u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    for entry in std::fs::read_dir(fixture("")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() || name.ends_with(".py") {
            continue;
        }
        let whole = std::fs::read(&path).unwrap();
        let damaged = scratch(&format!("damaged_{name}"));
        for _ in 0..100 {
            let mut bytes = whole.clone();
            for _ in 0..1 + draw(3) {
                let place = draw(bytes.len());
                bytes[place] = draw(256) as u8;
            }
            bytes.truncate(bytes.len() - draw(2) * draw(bytes.len()));
            std::fs::write(&damaged, bytes).unwrap();
            // Damage may go unnoticed, where it makes another valid file.
            let _ = read(&damaged, &ReadOptions::default());
            let _ = bpnmf_io::read_npz_arrays(&damaged);
            let _ = bpnmf_io::read_npy_array(&damaged);
        }
    }
}
