//! Files whose observations are read as they are needed: in any pieces they are what reading them at once gives, and bad ones are
//! refused in the same words.

use bpnmf::{BlockSource, Counts};
use bpnmf_io::{BlockFile, ReadOptions, open_blocks, read};

use crate::{fixture, read_fixture, scratch};

fn opened(name: &str) -> BlockFile {
    open_blocks(&fixture(name), &ReadOptions::default()).unwrap().unwrap()
}

#[test]
fn observations_that_are_read_in_pieces_are_those_of_the_whole_file() {
    for name in ["csr.h5ad", "dense.h5ad", "ten_x.h5"] {
        let (file, table) = (opened(name), read_fixture(name));
        assert_eq!((file.features(), file.observations()), (3, 4), "{name}");
        assert_eq!(file.feature_names, table.feature_names, "{name}");
        assert_eq!(file.observation_names, table.observation_names, "{name}");
        assert_eq!(file.read(0..4).unwrap(), table.counts, "{name}");
        for cut in 1..4 {
            let pieces = [file.read(0..cut).unwrap(), file.read(cut..4).unwrap()];
            assert_eq!(Counts::joined(&pieces).unwrap(), table.counts, "{name} cut at {cut}");
        }
    }
}

#[test]
fn a_layer_is_read_in_pieces_too() {
    for layer in ["counts", "dense"] {
        let mut options = ReadOptions::default();
        options.layer = Some(layer.to_owned());
        let path = fixture("layers.h5ad");
        let file = open_blocks(&path, &options).unwrap().unwrap();
        assert_eq!(file.read(0..4).unwrap(), read(&path, &options).unwrap().counts);
    }
}

#[test]
fn files_whose_observations_lie_scattered_are_read_at_once() {
    for name in ["csc.h5ad", "ten_x_old.h5", "ten_x"] {
        assert!(open_blocks(&fixture(name), &ReadOptions::default()).unwrap().is_none(), "{name}");
    }
}

#[test]
fn bad_files_are_refused_in_the_words_of_reading_them_at_once() {
    let options = ReadOptions::default();
    for name in ["no_x.h5ad", "encoding.h5ad"] {
        let told = open_blocks(&fixture(name), &options).unwrap_err().to_string();
        assert_eq!(told, read(&fixture(name), &options).unwrap_err().to_string());
    }
    let at_once = read(&fixture("negative.h5ad"), &options).unwrap_err().to_string();
    let file = opened("negative.h5ad");
    let wrong = (0..file.observations()).find_map(|t| file.read(t..t + 1).err()).unwrap();
    assert_eq!(wrong.to_string(), at_once, "the place is that of the whole file");
}

#[test]
fn a_file_that_was_cut_off_is_refused_when_it_is_opened_or_read() {
    let bytes = std::fs::read(fixture("csr.h5ad")).unwrap();
    for share in [3, 10, 25, 50, 75, 90, 97] {
        let path = scratch(&format!("cut-{share}.h5ad"));
        std::fs::write(&path, &bytes[..bytes.len() * share / 100]).unwrap();
        let told = match open_blocks(&path, &ReadOptions::default()) {
            Err(error) => error.to_string(),
            Ok(Some(file)) => match file.read(0..file.observations()) {
                Err(error) => error.to_string(),
                Ok(counts) => {
                    assert_eq!(counts, read_fixture("csr.h5ad").counts, "{share} %");
                    continue;
                }
            },
            // Whatever cannot be read in blocks is left to the reader of whole files, which must refuse it, too.
            Ok(None) => read(&path, &ReadOptions::default()).unwrap_err().to_string(),
        };
        assert!(told.starts_with(&format!("{}: ", path.display())) && !told.contains('\n'), "{told}");
    }
}
