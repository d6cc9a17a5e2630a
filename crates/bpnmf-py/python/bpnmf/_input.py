"""Whatever holds a matrix of samples x features becomes checked counts. Compressed matrices stay compressed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._core import Counts

# The types that are read as they are; others are converted.
_READ = frozenset(np.dtype(name) for name in ("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"))


def is_sparse(X: Any) -> bool:
    """Whether X is a matrix or an array of scipy.sparse."""
    return hasattr(X, "tocsr") and hasattr(X, "format") and hasattr(X, "shape")


def counts_of(X: Any, *, missing: str, mask: Any = None) -> tuple[Counts, tuple[int, int]]:
    """The counts of X, and its shape.

    ``missing`` is "error" or "nan"; entries where ``mask`` is true were not observed.
    """
    if missing not in ("error", "nan"):
        raise ValueError(f'missing is {missing!r}: it must be "error" or "nan"')
    if not is_sparse(X) and hasattr(X, "sparse") and _all_sparse(X):
        X = X.sparse.to_coo()
    if is_sparse(X):
        return _sparse(X, missing, mask)
    return _dense(_array(X), missing, mask)


def _all_sparse(frame: Any) -> bool:
    """Whether all columns of a frame are compressed."""
    try:
        return all(hasattr(dtype, "fill_value") for dtype in frame.dtypes)
    except TypeError:
        return False


def _sparse(X: Any, missing: str, mask: Any) -> tuple[Counts, tuple[int, int]]:
    if X.ndim != 2:
        raise ValueError(f"X is {X.ndim}-D: a matrix of samples x features is needed. Reshape your data")
    shape = _checked_shape(X.shape)
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: counts are real numbers")
    if X.format != "csr":
        X = X.tocsr()
    unknown = None if mask is None else _mask(mask, shape)
    nan = np.isnan(X.data) if missing == "nan" and X.dtype.kind == "f" else None
    if nan is not None and nan.any():
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
            nan = np.isnan(X.data)
        places = np.asarray(X.indices)[nan]
        starts = np.concatenate([[0], np.cumsum(nan)])[X.indptr]
        if unknown is not None:
            unknown = unknown.copy()
            unknown[np.repeat(np.arange(shape[0]), np.diff(starts)), places] = True
        counts = _compressed(X, shape, np.where(nan, 0, X.data))
        if unknown is None:
            return counts.with_missing(starts.astype(np.int64), places.astype(np.int64)), shape
    else:
        counts = _compressed(X, shape, X.data)
    return (counts if unknown is None else _with_missing(counts, unknown)), shape


def _compressed(X: Any, shape: tuple[int, int], values: NDArray[Any]) -> Counts:
    starts, rows = (a if a.dtype in (np.int32, np.int64) else a.astype(np.int64) for a in (X.indptr, X.indices))
    return Counts.sparse(shape[1], starts, rows, _numbers(values))


def _dense(X: NDArray[Any], missing: str, mask: Any) -> tuple[Counts, tuple[int, int]]:
    if X.ndim != 2:
        raise ValueError(
            f"X is {X.ndim}-D with shape {X.shape}: a matrix of samples x features is needed. Reshape your data: "
            "X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) if it is one sample"
        )
    shape = _checked_shape(X.shape)
    unknown = None if mask is None else _mask(mask, shape)
    if missing == "nan" and X.dtype.kind == "f":
        nan = np.isnan(X)
        if nan.any():
            unknown = nan if unknown is None else unknown | nan
    if unknown is None:
        return Counts.dense(X), shape
    return _with_missing(Counts.dense(np.where(unknown, 0, X)), unknown), shape


def _array(X: Any) -> NDArray[Any]:
    if hasattr(X, "to_numpy") and hasattr(X, "columns"):
        X = X.to_numpy()
    return _numbers(np.asarray(X))


def _numbers(X: NDArray[Any]) -> NDArray[Any]:
    """X as numbers of a type that is read, and in the byte order of the machine."""
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: counts are real numbers")
    if X.dtype.kind in "US":
        raise ValueError("X holds text: counts are numbers. Convert it, or leave the columns of text out")
    if X.dtype in _READ and X.dtype.isnative:
        return X
    try:
        return X.astype(np.float64)
    except TypeError as error:
        raise TypeError(f"X holds something that is not a number: {error}") from None
    except ValueError as error:
        raise ValueError(f"X holds something that is not a number: {error}") from None


def _checked_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    samples, features = shape
    if samples == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape=({samples}, {features})) while a minimum of 1 is required.")
    if features == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape=({samples}, {features})) while a minimum of 1 is required.")
    return samples, features


def _mask(mask: Any, shape: tuple[int, int]) -> NDArray[np.bool_]:
    unknown = np.asarray(mask)
    if unknown.shape != shape or unknown.dtype != np.bool_:
        raise ValueError(
            f"mask is {unknown.dtype} of shape {unknown.shape}: it must be bool of shape {shape}, true where an entry "
            "was not observed"
        )
    return unknown


def _with_missing(counts: Counts, unknown: NDArray[np.bool_]) -> Counts:
    starts = np.concatenate([[0], np.cumsum(unknown.sum(axis=1))]).astype(np.int64)
    return counts.with_missing(starts, np.nonzero(unknown)[1].astype(np.int64))
