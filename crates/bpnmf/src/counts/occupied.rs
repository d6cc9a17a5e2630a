//! The part of a matrix that holds counts: the same matrix without its empty rows and columns, and where they were. Knows
//! nothing of models.

use super::{Column, Counts, Missing, Storage, turned};
use std::sync::{Arc, OnceLock};

/// The rows and columns of [`Counts`] that have a positive entry, and the matrix of these alone.
#[derive(Debug)]
pub(crate) struct Occupied {
    /// The matrix without its empty rows and columns, held the same way.
    counts: Counts,
    features: Line,
    observations: Line,
    /// The columns, as the reduced matrix counts them, in which an empty row was not observed: entry e is of the empty
    /// row e.
    unobserved: Missing,
}

/// The rows of a matrix, or its columns.
#[derive(Debug)]
struct Line {
    /// Those with a positive entry, increasing.
    occupied: Vec<u32>,
    /// The others, increasing.
    empty: Vec<u32>,
}

impl Line {
    fn new(occupied: &[bool]) -> Self {
        let those =
            |which: bool| (0..occupied.len()).filter(move |&i| occupied[i] == which).map(|i| i as u32);
        Self { occupied: those(true).collect(), empty: those(false).collect() }
    }

    fn len(&self) -> usize {
        self.occupied.len() + self.empty.len()
    }

    /// The new number of every old one; that of an empty one means nothing.
    fn numbers(&self) -> Vec<u32> {
        let mut numbers = vec![u32::MAX; self.len()];
        self.occupied.iter().zip(0..).for_each(|(&old, new)| numbers[old as usize] = new);
        numbers
    }
}

impl Occupied {
    /// `None` if every row and every column has a positive entry, or none has: a matrix has at least one of each.
    fn of(counts: &Counts) -> Option<Arc<Self>> {
        if counts.nonzeros == 0 {
            return None;
        }
        let columns: Vec<bool> = counts.column_totals.iter().map(|total| *total > 0.0).collect();
        let mut rows = vec![false; counts.features];
        let mut unknown = rows.len();
        for t in 0..counts.observations {
            if unknown == 0 {
                break;
            }
            for (f, _) in counts.column(t).positive() {
                unknown -= usize::from(!rows[f]);
                rows[f] = true;
            }
        }
        if unknown == 0 && !columns.contains(&false) {
            return None;
        }
        let (features, observations) = (Line::new(&rows), Line::new(&columns));
        let (missing, unobserved) = split_missing(counts, &features, &observations);
        let storage = reduced(counts, &features, &observations);
        let (rows, columns) = (features.occupied.len(), observations.occupied.len());
        let counts = Counts::summarised(rows, columns, storage, missing);
        Some(Arc::new(Self { counts, features, observations, unobserved }))
    }

    /// The matrix without its empty rows and columns.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// F of the whole matrix.
    pub(crate) fn features(&self) -> usize {
        self.features.len()
    }

    /// T of the whole matrix.
    pub(crate) fn observations(&self) -> usize {
        self.observations.len()
    }

    /// The rows of the whole matrix that were kept, increasing.
    pub(crate) fn rows(&self) -> &[u32] {
        &self.features.occupied
    }

    /// The rows that were set aside, increasing.
    pub(crate) fn empty_rows(&self) -> &[u32] {
        &self.features.empty
    }

    /// The columns of the whole matrix that were kept, increasing.
    pub(crate) fn columns(&self) -> &[u32] {
        &self.observations.occupied
    }

    /// The kept columns in which the row that was set aside as number `empty` was not observed, as the reduced matrix
    /// counts them.
    pub(crate) fn unobserved(&self, empty: usize) -> &[u32] {
        self.unobserved.of(empty)
    }

    /// Of vectors over all features, one after the other, the entries of the rows that were kept.
    pub(crate) fn select_features(&self, vectors: &[f32]) -> Arc<[f32]> {
        let kept = |vector: &[f32]| self.rows().iter().map(|&f| vector[f as usize]).collect::<Vec<f32>>();
        vectors.chunks(self.features()).flat_map(kept).collect()
    }
}

/// The entries of the occupied rows and columns.
fn reduced(counts: &Counts, features: &Line, observations: &Line) -> Storage {
    match &counts.storage {
        Storage::Dense(_) => {
            let mut kept = Vec::with_capacity(features.occupied.len() * observations.occupied.len());
            for &t in &observations.occupied {
                if let Column::Dense(column) = counts.column(t as usize) {
                    kept.extend(features.occupied.iter().map(|&f| column[f as usize]));
                }
            }
            Storage::Dense(kept)
        }
        Storage::Sparse { starts, rows, values } => {
            // Empty columns hold no entry: where a kept one ends, the next kept one starts.
            let ends = observations.occupied.iter().map(|&t| starts[t as usize + 1]);
            let starts = core::iter::once(0).chain(ends).collect();
            let rows = if features.empty.is_empty() {
                Arc::clone(rows)
            } else {
                let numbers = features.numbers();
                Arc::new(rows.iter().map(|&f| numbers[f as usize]).collect())
            };
            Storage::Sparse { starts, rows, values: Arc::clone(values) }
        }
    }
}

/// The missing entries of the occupied columns: those of occupied rows, if there are any, and those of empty rows with rows
/// and columns exchanged.
fn split_missing(counts: &Counts, features: &Line, observations: &Line) -> (Option<Missing>, Missing) {
    let nothing = || Missing { starts: vec![0], rows: Vec::new() };
    let (mut kept, mut aside) = (nothing(), nothing());
    let (kept_number, mut aside_number) = (features.numbers(), vec![u32::MAX; features.len()]);
    features.empty.iter().zip(0..).for_each(|(&f, e)| aside_number[f as usize] = e);
    for &t in &observations.occupied {
        for &f in counts.missing(t as usize) {
            let (number, aside_number) = (kept_number[f as usize], aside_number[f as usize]);
            if number == u32::MAX {
                aside.rows.push(aside_number);
            } else {
                kept.rows.push(number);
            }
        }
        kept.starts.push(kept.rows.len());
        aside.starts.push(aside.rows.len());
    }
    let (starts, rows) = turned(features.empty.len(), observations.occupied.len(), |t| aside.of(t));
    ((!kept.rows.is_empty()).then_some(kept), Missing { starts, rows })
}

/// What is occupied, found when it is first asked for: chains on the same counts share it.
#[derive(Debug, Clone, Default)]
pub(super) struct OccupiedOnce(OnceLock<Option<Arc<Occupied>>>);

/// It follows from the rest of the matrix, whether it is known already or not.
impl PartialEq for OccupiedOnce {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Counts {
    /// The matrix without its empty rows and columns; `None` if there are no such rows and columns, or if all are. A row or
    /// a column is empty if it has no positive entry that was observed.
    pub(crate) fn occupied(&self) -> Option<&Occupied> {
        self.occupied.0.get_or_init(|| Occupied::of(self)).as_deref()
    }
}
