//! What anndata, h5py and 10x Genomics write.

use bpnmf_io::{ReadOptions, Table, read, read_bytes};

use crate::{DENSE, fixture, read_fixture, refusal, refusal_of, rows, scratch};

const CELLS: [&str; 4] = ["cell 1", "cell 2", "cell 3", "cell 4"];
const GENES: [&str; 3] = ["ACTB", "GAPDH", "TP53"];

fn layer(name: &str, layer: &str) -> Result<Table, bpnmf_io::Error> {
    let mut options = ReadOptions::default();
    options.layer = Some(layer.to_owned());
    read(&fixture(name), &options)
}

fn told(name: &str, options: &ReadOptions) -> String {
    let text = read(&fixture(name), options).unwrap_err().to_string();
    text.split_once(": ").unwrap().1.to_owned()
}

#[test]
fn anndata_is_read_with_its_genes_as_features_however_it_is_stored() {
    for name in ["csr.h5ad", "csc.h5ad", "dense.h5ad"] {
        let table = read_fixture(name);
        assert_eq!(rows(&table.counts), DENSE, "{name}");
        assert_eq!(table.feature_names.unwrap(), GENES, "{name}");
        assert_eq!(table.observation_names.unwrap(), CELLS, "{name}");
        assert_eq!(table.counts.is_sparse(), name != "dense.h5ad", "{name}");
    }
}

#[test]
fn a_file_reads_the_same_from_memory() {
    for name in ["csr.h5ad", "dense.h5ad", "ten_x.h5"] {
        let bytes = std::fs::read(fixture(name)).unwrap();
        let table = read_bytes(std::path::Path::new(name), &bytes, &ReadOptions::default()).unwrap();
        assert_eq!(table, read_fixture(name));
    }
}

#[test]
fn a_layer_is_read_in_place_of_x() {
    for name in ["counts", "dense"] {
        let table = layer("layers.h5ad", name).unwrap();
        assert_eq!(rows(&table.counts), DENSE);
        assert_eq!(table.feature_names.unwrap(), GENES);
    }
    assert!(read_fixture("layers.h5ad").counts.first_fraction().is_some(), "X has logarithms");
}

#[test]
fn files_and_folders_of_10x_genomics_are_read_with_names_that_tell_genes_apart() {
    for name in ["ten_x.h5", "ten_x_old.h5", "ten_x"] {
        let table = read_fixture(name);
        assert_eq!(rows(&table.counts), DENSE, "{name}");
        assert_eq!(table.feature_names.unwrap(), ["ACTB (ENSG1)", "GAPDH", "ACTB (ENSG3)"], "{name}");
        assert_eq!(table.observation_names.unwrap(), ["AAAC-1", "AAAC-2", "AAAC-3", "AAAC-4"], "{name}");
    }
}

#[test]
fn what_cannot_be_read_says_why_and_what_to_do() {
    let plain = ReadOptions::default();
    assert_eq!(
        told("negative.h5ad", &plain),
        "entry (0, 0) is -1: counts cannot be negative; if these are logarithms or z-scores, give the raw counts"
    );
    assert_eq!(
        told("no_x.h5ad", &plain),
        "there is no X in it: the counts may be in a layer (counts), ask for one, as in --layer counts"
    );
    assert_eq!(
        told("encoding.h5ad", &plain),
        "array \"X\": encoding \"coo_matrix\" cannot be read: it must be an array, csr_matrix or csc_matrix"
    );
    assert_eq!(
        told("other.h5", &plain),
        "there is no matrix of counts in it, neither X as anndata writes it nor a matrix of 10x Genomics"
    );
    let asked = |name, wanted| layer(name, wanted).unwrap_err().fault.to_string();
    assert_eq!(asked("layers.h5ad", "raw"), "there is no layer \"raw\" in it: it has counts, dense");
    assert_eq!(
        asked("csr.h5ad", "raw"),
        "there is no layer \"raw\" in it: it has no layers, the counts may be in X"
    );
    assert_eq!(
        asked("ten_x.h5", "counts"),
        "this is not a file as anndata or 10x Genomics write it: layer \"counts\" was asked for, but only .h5ad files have \
         layers"
    );
    let mut turned = ReadOptions::default();
    turned.transpose = true;
    assert_eq!(
        told("csr.h5ad", &turned),
        "the file says itself what its observations are: leave out the wish to transpose it"
    );
    assert!(
        refusal("text.h5ad", "no HDF5 at all")
            .starts_with("this is not a file as anndata or 10x Genomics write it: ")
    );
}

#[test]
fn a_folder_that_lacks_a_file_or_has_the_wrong_number_of_names_is_refused() {
    let folder = scratch("ten_x_parts");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    assert_eq!(
        refusal_of(&folder),
        "this is a folder, and not one of 10x Genomics with matrix.mtx: name a file inside it"
    );
    let header = "%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 2 3\n";
    std::fs::write(folder.join("matrix.mtx"), header).unwrap();
    std::fs::write(folder.join("genes.tsv"), "g1\tA\ng2\tB\n").unwrap();
    assert_eq!(
        refusal_of(&folder),
        "this folder has matrix.mtx but no barcodes.tsv: the three files matrix.mtx, features.tsv and barcodes.tsv belong \
         together"
    );
    std::fs::write(folder.join("barcodes.tsv"), "b1\n").unwrap();
    assert_eq!(refusal_of(&folder), "barcodes.tsv: line 1 is the last one, after 1 names: the matrix has 2");
    std::fs::write(folder.join("barcodes.tsv"), "b1\nb2\n").unwrap();
    let table = read(&folder, &ReadOptions::default()).unwrap();
    assert_eq!(table.feature_names.unwrap(), ["A", "B"]);
    assert_eq!(rows(&table.counts), [[0.0, 3.0], [0.0, 0.0]]);
}
