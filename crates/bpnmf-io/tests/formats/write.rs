//! Writing, and reading back what was written.

use std::io::Write;
use std::path::Path;

use bpnmf_io::{Array, NewFile, read_npy_array, read_npz_arrays, write_atomically, write_npy, write_npz};

use super::{DENSE, fixture, read_bytes, rows, scratch};

/// Odd values of every type, so that a lost bit shows.
fn odd_arrays() -> Vec<(&'static str, Array<'static>)> {
    let long: Vec<f64> = (0..30_000).map(|i| f64::from(i).sqrt()).collect();
    vec![
        ("f32", Array::new(&[2, 2], vec![0.1f32, -0.0, f32::MIN_POSITIVE, f32::INFINITY])),
        ("f64", Array::new(&[3], vec![0.1f64, f64::MAX, 5e-324])),
        ("u8", Array::new(&[1, 1, 2], vec![0u8, 255])),
        ("u32", Array::new(&[1], vec![u32::MAX])),
        ("i64", Array::new(&[2], vec![i64::MIN, i64::MAX])),
        ("scalar", Array::new(&[], vec![1.5f64])),
        ("nothing", Array::new(&[0, 3], Vec::<f32>::new())),
        ("long", Array::new(&[300, 100], long)),
    ]
}

#[test]
fn a_written_npz_is_read_back_bit_for_bit() {
    let path = scratch("back.npz");
    let arrays = odd_arrays();
    write_npz(&path, &arrays).unwrap();
    let back = read_npz_arrays(&path).unwrap();
    assert_eq!(back.len(), arrays.len());
    for ((name, array), (expected_name, expected)) in back.iter().zip(&arrays) {
        assert_eq!(name, expected_name);
        assert_eq!(array, expected);
        let bits = |array: &Array<'_>| array.to_f64().iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(array), bits(expected), "{name}");
    }
}

#[test]
fn a_written_npy_is_read_back_and_equals_what_numpy_writes() {
    for (name, array) in odd_arrays() {
        let path = scratch(&format!("back_{name}.npy"));
        write_npy(&path, &array).unwrap();
        assert_eq!(read_npy_array(&path).unwrap(), array);
    }
    let path = scratch("same.npy");
    let dense: Vec<f64> = DENSE.concat();
    write_npy(&path, &Array::new(&[3, 4], &dense[..])).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(fixture("dtype_le_f8.npy")).unwrap());
    assert_eq!(rows(&read_bytes("same_again.npy", std::fs::read(&path).unwrap()).counts), DENSE);
}

#[test]
fn the_same_arrays_give_the_same_bytes() {
    let (one, two) = (scratch("one.npz"), scratch("two.npz"));
    write_npz(&one, &odd_arrays()).unwrap();
    write_npz(&two, &odd_arrays()).unwrap();
    assert_eq!(std::fs::read(one).unwrap(), std::fs::read(two).unwrap());
}

#[test]
fn values_that_do_not_fill_their_shape_are_not_written() {
    let path = scratch("unfilled.npz");
    let error = write_npz(&path, &[("w", Array::new(&[2, 3], vec![1.0f32; 5]))]).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}: array \"w\": shape (2, 3) does not fit its 5 values, nothing was written",
            path.display()
        )
    );
    assert!(!path.exists());
}

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let folder = scratch("atomic");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("trace.csv");
    write_atomically(&path, |writer| writeln!(writer, "old")).unwrap();
    let error = write_atomically(&path, |writer| {
        writeln!(writer, "new")?;
        Err(std::io::Error::other("the disk is full"))
    })
    .unwrap_err();
    assert_eq!(error.to_string(), format!("{}: could not write it: the disk is full", path.display()));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old\n");
    write_atomically(&path, |writer| writeln!(writer, "new")).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new\n");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn a_new_file_appears_when_it_is_finished_and_leaves_nothing_when_it_is_not() {
    let folder = scratch("bit_by_bit");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let (kept, dropped) = (folder.join("kept.txt"), folder.join("dropped.txt"));
    let mut files = [NewFile::create(&kept).unwrap(), NewFile::create(&dropped).unwrap()];
    for file in &mut files {
        file.write(|writer| write!(writer, "one,")).unwrap();
        assert_eq!(file.write(|writer| write!(writer, "two").map(|()| 7)).unwrap(), 7);
    }
    assert!(!kept.exists());
    let [first, second] = files;
    first.finish().unwrap();
    drop(second);
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "one,two");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn places_that_cannot_be_written_are_refused() {
    let path = scratch("no_such_folder").join("model.npz");
    let write = |path: &Path| write_npz(path, &odd_arrays()).unwrap_err().to_string();
    assert_eq!(write(&path), format!("{}: could not write it: its folder does not exist", path.display()));
    let folder = scratch("folder.npz");
    std::fs::create_dir_all(&folder).unwrap();
    assert_eq!(write(&folder), format!("{}: this is a folder: name a file inside it", folder.display()));
}

#[cfg(unix)]
#[test]
fn a_device_is_written_to_and_a_link_is_followed_never_replaced() {
    let device = Path::new("/dev/null");
    write_atomically(device, |writer| writeln!(writer, "gone")).unwrap();
    assert!(!std::fs::metadata(device).unwrap().is_file());

    let (file, link) = (scratch("linked.txt"), scratch("link.txt"));
    std::fs::write(&file, "old").unwrap();
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(&file, &link).unwrap();
    write_atomically(&link, |writer| write!(writer, "new")).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
}
