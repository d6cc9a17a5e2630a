//! Small valid files of every kind, to be damaged.

use bpnmf::{Gibbs, Observer, Prior, Recipe, RunOptions, Search, Ssmf, Standing, TraceRow, Workers};

macro_rules! files {
    ($folder:literal: $($name:literal),* $(,)?) => {
        vec![$(include_bytes!(concat!("../../crates/", $folder, "/tests/fixtures/", $name)).to_vec()),*]
    };
}

pub(crate) fn npy() -> Vec<Vec<u8>> {
    files!("bpnmf-io": "dtype_le_f8.npy", "dtype_be_u4.npy", "dtype_le_f2.npy", "dtype_bool.npy", "fortran.npy",
        "version3.npy", "no_rows.npy", "string.npy", "three_dimensions.npy", "structured.npy")
}

pub(crate) fn npz() -> Vec<Vec<u8>> {
    files!("bpnmf-io": "single.npz", "with_x.npz", "csr_matrix.npz", "csc_array.npz", "coo_matrix.npz", "csr_stored.npz",
        "messy.npz", "bsr_matrix.npz")
}

pub(crate) fn mtx() -> Vec<Vec<u8>> {
    files!("bpnmf-io": "coordinate_integer.mtx", "coordinate_unsigned.mtx", "array_real.mtx", "pattern.mtx", "symmetric.mtx",
        "symmetric_array.mtx")
}

pub(crate) fn mtx_gz() -> Vec<Vec<u8>> {
    files!("bpnmf-io": "coordinate_real.mtx.gz")
}

pub(crate) fn hdf5() -> Vec<Vec<u8>> {
    files!("bpnmf-io": "csr.h5ad", "csc.h5ad", "dense.h5ad", "layers.h5ad", "ten_x.h5", "ten_x_old.h5", "other.h5")
}

pub(crate) fn tables() -> Vec<Vec<u8>> {
    [
        "gene,cell 1,cell 2\nACTB,3,0\nGAPDH,1,4\nTP53,0,2\n",
        "1,2,3\n4,5,6\n",
        "\u{feff}\"a \"\"quoted\"\" name\",\"with,comma\"\r\n1,2\r\n3,4\r\n",
        "name;x;y\na;1;2.5\nb;NA;\n",
        "\"x\" \"y\"\n\"1\" 3 4\n\"2\" 5 6\n",
        "a\tb\n1\t2\n3\t4e2\n\n",
        ",0,1\n0,5,6\n1,7,8\n",
        "\"two\nlines\",1\n\"x\",2\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

pub(crate) fn flac() -> Vec<Vec<u8>> {
    files!("bpnmf-audio": "tone.flac")
}

pub(crate) fn mp3() -> Vec<Vec<u8>> {
    files!("bpnmf-audio": "tone.mp3")
}

pub(crate) fn ogg() -> Vec<Vec<u8>> {
    files!("bpnmf-audio": "tone.ogg")
}

pub(crate) fn aiff() -> Vec<Vec<u8>> {
    files!("bpnmf-audio": "tone.aiff")
}

/// Of 16 bits with two channels, of 8 bits, and of floats.
pub(crate) fn wav() -> Vec<Vec<u8>> {
    let wav = |format: u16, channels: u16, bits: u16, data: &[u8]| {
        let width = channels * bits / 8;
        let mut bytes = b"RIFF".to_vec();
        bytes.extend((36 + data.len() as u32).to_le_bytes());
        bytes.extend(b"WAVEfmt \x10\0\0\0");
        bytes.extend([format, channels].map(u16::to_le_bytes).concat());
        bytes.extend([8000u32, 8000 * u32::from(width)].map(u32::to_le_bytes).concat());
        bytes.extend([width, bits].map(u16::to_le_bytes).concat());
        bytes.extend(b"data");
        bytes.extend((data.len() as u32).to_le_bytes());
        bytes.extend(data);
        bytes
    };
    let ramp: Vec<u8> = (0..=255).collect();
    let floats: Vec<u8> = (0..64).flat_map(|i| (i as f32 * 0.01).to_le_bytes()).collect();
    vec![wav(1, 2, 16, &ramp), wav(1, 1, 8, &ramp), wav(3, 1, 32, &floats), wav(1, 3, 24, &ramp[..252])]
}

pub(crate) fn groups() -> Vec<Vec<u8>> {
    [
        r#"{"piano": [0, 3, 1], "violin": [2]}"#,
        r#"{"a": [0], "b": [1, 2], "rest": [3, 4, 5, 6, 7]}"#,
        r#"{ "caf\u00e9 1" : [ 7 ] }"#,
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

struct Keep(Vec<Vec<u8>>);

impl Observer for Keep {
    fn step(&mut self, _: &TraceRow) -> bool {
        true
    }

    fn stands(&mut self, standing: &Standing<'_>) -> bool {
        let mut bytes = Vec::new();
        standing.write(&mut bytes).expect("memory takes it");
        self.0.push(bytes);
        true
    }
}

/// What the library writes of three small runs, in their search and after it.
pub(crate) fn standings() -> Vec<Vec<u8>> {
    let counts = Recipe { features: 4, observations: 5, components: 6, ..Default::default() }.draw(3);
    let counts = counts.expect("a small matrix").counts;
    let prior = Prior { components: 3, ..Default::default() }.check().expect("the default prior");
    let options = RunOptions { iterations: 3, seed: 5, stop: None, ..Default::default() };
    let search = Some(Search { coarsening: Some(1.0), ..Default::default() });
    let mut keep = Keep(Vec::new());
    let workers = Workers::serial();
    let gibbs = Gibbs { burn_in: 1, ..Default::default() };
    let searched = RunOptions { search, ..options.clone() };
    for run in [
        bpnmf::run(&gibbs, &counts, &prior, &options, &workers, &mut keep),
        bpnmf::run(&Ssmf::default(), &counts, &prior, &options, &workers, &mut keep),
        bpnmf::run(&gibbs, &counts, &prior, &searched, &workers, &mut keep),
    ] {
        run.expect("a small run");
    }
    keep.0
}
