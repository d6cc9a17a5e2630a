//! Missing entries, and rows and columns without a count.

use super::*;

#[test]
fn missing_entries_are_forgotten_and_follow_the_matrix() {
    let nan = f64::NAN;
    let dense = Counts::from_dense_with_missing(2, 3, vec![nan, 4.0, 1.0, 0.0, nan, nan]).unwrap();
    assert_eq!([0, 1, 2].map(|t| dense.missing(t).to_vec()), [vec![0], vec![], vec![0, 1]]);
    assert_eq!((dense.observed(), dense.nonzeros(), dense.total()), (3, 2, 5.0));
    let turned = dense.transposed();
    assert_eq!([0, 1].map(|t| turned.missing(t).to_vec()), [vec![0, 2], vec![2]]);
    assert_eq!(turned.transposed(), dense);

    let sparse = Counts::from_sparse(2, 3, vec![0, 2, 3, 4], vec![0, 1, 0, 1], vec![7.0, 4.0, 1.0, 9.0]);
    let sparse = sparse.unwrap().with_missing(vec![0, 1, 1, 3], vec![0, 0, 1]).unwrap();
    assert_eq!((sparse.observed(), sparse.nonzeros(), sparse.total()), (3, 2, 5.0));
    assert_eq!(sparse.transposed().transposed(), sparse);
    let (kept, held) = dense.thinned(0.5, 1).unwrap();
    assert_eq!((kept.missing(2), held.missing(2)), (dense.missing(2), dense.missing(2)));
    assert!(!dense.with_missing(vec![0; 4], vec![]).unwrap().has_missing());
    for (starts, rows) in [(vec![0, 1], vec![0]), (vec![0, 2, 2, 2], vec![1, 1]), (vec![0, 1, 1, 1], vec![2])]
    {
        assert!(sparse.clone().with_missing(starts, rows).is_err());
    }
    assert!(Counts::from_dense(1, 1, vec![nan]).is_err());
}

#[test]
fn the_occupied_part_is_the_matrix_without_its_empty_rows_and_columns() {
    let nan = f64::NAN;
    // Rows 0, 2 and 4 are empty, and columns 1 and 3; a missing entry is no count.
    let columns = [[0.0, 3.0, nan, nan, 0.0], [0.0, 0.0, nan, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0, nan]];
    let values: Vec<f64> =
        columns.concat().into_iter().chain([nan; 5]).chain([nan, 1.0, nan, 5.0, 0.0]).collect();
    let dense = Counts::from_dense_with_missing(5, 5, values.clone()).unwrap();
    let kept = Counts::from_dense_with_missing(2, 3, vec![3.0, nan, 0.0, 2.0, 1.0, 5.0]).unwrap();
    let occupied = dense.occupied().unwrap();
    assert_eq!(occupied.counts(), &kept);
    assert_eq!(
        (occupied.rows(), occupied.columns(), occupied.empty_rows()),
        (&[1, 3][..], &[0, 2, 4][..], &[0, 2, 4][..])
    );
    assert_eq!([0, 1, 2].map(|e| occupied.unobserved(e).to_vec()), [vec![2], vec![0, 2], vec![1]]);
    assert_eq!(
        *occupied.select_features(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]),
        [1.0, 3.0, 6.0, 8.0]
    );

    let compressed = |features: usize, values: &[f64]| {
        let (mut starts, mut rows, mut kept) = (vec![0], Vec::new(), Vec::new());
        for column in values.chunks(features) {
            for (f, &value) in column.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                rows.push(f as u32);
                kept.push(value);
            }
            starts.push(rows.len());
        }
        Counts::from_sparse_with_missing(features, values.len() / features, starts, rows, kept).unwrap()
    };
    let sparse = compressed(5, &values);
    let small = compressed(2, &[3.0, nan, 0.0, 2.0, 1.0, 5.0]);
    assert_eq!(sparse.occupied().unwrap().counts(), &small);
    let shared = |counts: &Counts| match &counts.storage {
        Storage::Sparse { values, .. } => Arc::as_ptr(values),
        Storage::Dense(_) => core::ptr::null(),
    };
    assert_eq!(shared(&sparse), shared(sparse.occupied().unwrap().counts()));

    // What was missing and is no longer belongs to the part, too.
    let observed = sparse.clone().with_missing(vec![0; 6], vec![]).unwrap();
    assert!(!observed.occupied().unwrap().counts().has_missing());
    assert_eq!(observed, compressed(5, &values).with_missing(vec![0; 6], vec![]).unwrap());
}

#[test]
fn counts_without_empty_rows_and_columns_are_not_copied_and_without_a_count_nothing_is_set_aside() {
    assert!(Counts::from_dense(2, 2, vec![1.0, 0.0, 0.0, 1.0]).unwrap().occupied().is_none());
    assert!(Counts::from_dense(2, 2, vec![0.0; 4]).unwrap().occupied().is_none());
    assert!(Counts::from_sparse(2, 1, vec![0, 0], vec![], vec![]).unwrap().occupied().is_none());
    assert!(Counts::from_dense(1, 2, vec![0.0, 1.0]).unwrap().occupied().is_some());
}
