//! The folders of 10x Genomics: matrix.mtx, features.tsv (genes.tsv in older ones) and barcodes.tsv, each gzipped or not.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use crate::error::Fault;
use crate::hdf5::unique;
use crate::lines::Lines;
use crate::mtx;
use crate::read::{Nan, Room, Table, open, text};

const LONGEST_LINE: usize = 1 << 16;

/// Reads the matrix of a folder, features x barcodes, with its names.
pub(crate) fn read(folder: &Path, nan: Nan, room: Room) -> Result<Table, Fault> {
    let Some(matrix) = there(folder, &["matrix.mtx"]) else { return Err(Fault::OtherFolder) };
    let missing = |what: &'static str| Fault::IncompleteFolder { what };
    let features = there(folder, &["features.tsv", "genes.tsv"]).ok_or(missing("features.tsv"))?;
    let barcodes = there(folder, &["barcodes.tsv"]).ok_or(missing("barcodes.tsv"))?;
    let (file, size) = open(&matrix)?;
    let counts = mtx::read(text(BufReader::with_capacity(1 << 16, file), gzipped(&matrix)), size, nan, room)
        .map_err(|fault| fault.in_file(&matrix))?;
    let names = |path: &Path, count: usize| {
        let (file, _) = open(path)?;
        columns(file, gzipped(path), count, room)
    };
    let rows = names(&features, counts.features()).map_err(|fault| fault.in_file(&features))?;
    let observations = names(&barcodes, counts.observations()).map_err(|fault| fault.in_file(&barcodes))?;
    let (ids, symbols): (Vec<String>, Vec<String>) = rows.into_iter().unzip();
    Ok(Table {
        feature_names: Some(unique(&symbols, &ids)),
        observation_names: Some(observations.into_iter().map(|(id, _)| id).collect()),
        counts,
        layout: None,
    })
}

/// The first of some files that a folder has, gzipped or not.
fn there(folder: &Path, names: &[&str]) -> Option<PathBuf> {
    let paths = names.iter().flat_map(|name| [folder.join(name), folder.join(format!("{name}.gz"))]);
    paths.into_iter().find(|path| path.is_file())
}

fn gzipped(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
}

/// The first and the second cell of every line, the first for both where there is one.
fn columns(file: File, gzipped: bool, count: usize, room: Room) -> Result<Vec<(String, String)>, Fault> {
    let mut lines = Lines::new(text(BufReader::new(file), gzipped), LONGEST_LINE);
    let (mut names, mut bytes) = (Vec::new(), 0);
    while lines.advance()? {
        if lines.text().trim().is_empty() {
            lines.skip()?;
            continue;
        }
        let mut cells = lines.text().split('\t');
        let first = cells.next().unwrap_or_default().trim().to_owned();
        let second = cells.next().map_or_else(|| first.clone(), |cell| cell.trim().to_owned());
        bytes += first.len() + second.len() + size_of::<(String, String)>();
        room.check(bytes, 1)?;
        names.push((first, second));
    }
    if names.len() != count {
        let told = format!("is the last one, after {} names: the matrix has {count}", names.len());
        return Err(Fault::line(lines.number(), told));
    }
    Ok(names)
}
