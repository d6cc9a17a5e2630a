//! Missing entries.

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
