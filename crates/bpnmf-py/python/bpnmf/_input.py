"""Whatever holds a matrix of samples x features becomes checked counts. Compressed matrices stay compressed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._base import is_anndata
from ._core import Counts

MaskLike = Any  # A bool array or a compressed matrix of bools.
Places = NDArray[np.int64]

# The types that are read as they are; others are converted.
_READ = frozenset(np.dtype(name) for name in ("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"))


def is_sparse(X: Any) -> bool:
    """Whether X is a matrix or an array of scipy.sparse."""
    return hasattr(X, "tocsr") and hasattr(X, "format") and hasattr(X, "shape")


def counts_of(X: Any, *, missing: str, mask: Any = None, held_out: Any = None) -> tuple[Counts, tuple[int, int]]:
    """The counts of X, and its shape.

    ``missing`` is "error" or "nan"; entries where ``mask`` or ``held_out`` is true are as if they were not observed.
    """
    if missing not in ("error", "nan"):
        raise ValueError(f'missing is {missing!r}: it must be "error" or "nan"')
    X = _matrix(X)
    if X.ndim != 2:
        raise ValueError(
            f"X is {X.ndim}-D with shape {X.shape}: a matrix of samples x features is needed. Reshape your data: "
            "X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) if it is one sample"
        )
    shape = _checked_shape(X.shape)
    named = (("mask", mask), ("held_out", held_out))
    places = [places_of(name, given, shape) for name, given in named if given is not None]
    counts, unseen = (_sparse if is_sparse(X) else _dense)(X, shape, missing, places)
    if unseen is None:
        return counts, shape
    samples, features = np.divmod(unseen, shape[1])
    starts = np.searchsorted(samples, np.arange(shape[0] + 1))
    return counts.with_missing(starts.astype(np.int64), features), shape


def places_of(name: str, mask: Any, shape: tuple[int, int]) -> Places:
    """Where a mask is true: sample * features + feature, rising. Compressed masks are not made dense."""
    if not is_sparse(mask):
        mask = np.asarray(mask)
    if mask.shape != shape or mask.dtype != np.bool_:
        means = "not observed" if name == "mask" else "held out"
        raise ValueError(
            f"{name} is {mask.dtype} of shape {mask.shape}: it must be bool of shape {shape}, true where an entry was {means}"
        )
    if not is_sparse(mask):
        return np.flatnonzero(mask).astype(np.int64)
    pairs = mask.tocoo()
    true = np.asarray(pairs.data)
    return np.unique(np.asarray(pairs.row)[true].astype(np.int64) * shape[1] + np.asarray(pairs.col)[true])


def values_at(X: Any, places: Places) -> NDArray[np.float64]:
    """The entries of X at places as `places_of` gives them."""
    X = _matrix(X)
    rows, columns = np.divmod(places, X.shape[1])
    if is_sparse(X):
        if places.size == 0:
            return np.empty(0)
        X = X.tocsr()
    return np.asarray(X[rows, columns], dtype=np.float64).reshape(-1)


def _matrix(X: Any) -> Any:
    """X as a compressed matrix if it is one, else as an array of numbers."""
    if is_anndata(X):
        X = X.X
    if hasattr(X, "__dask_graph__"):
        # Here they are needed at once; a fit has another way.
        X = X.compute()
    if not is_sparse(X) and hasattr(X, "sparse") and _all_sparse(X):
        X = X.sparse.to_coo()
    return X if is_sparse(X) else _array(X)


def _all_sparse(frame: Any) -> bool:
    """Whether all columns of a frame are compressed."""
    try:
        return all(hasattr(dtype, "fill_value") for dtype in frame.dtypes)
    except TypeError:
        return False


def _sparse(X: Any, shape: tuple[int, int], missing: str, places: list[Places]) -> tuple[Counts, Places | None]:
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: counts are real numbers")
    if X.format != "csr":
        X = X.tocsr()
    nan = np.isnan(X.data) if missing == "nan" and X.dtype.kind == "f" else None
    if nan is None or not nan.any():
        return _compressed(X, shape, X.data), _union(places)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
        nan = np.isnan(X.data)
    rows = np.repeat(np.arange(shape[0], dtype=np.int64), np.diff(X.indptr))
    places = [*places, rows[nan] * shape[1] + np.asarray(X.indices)[nan]]
    return _compressed(X, shape, np.where(nan, 0, X.data)), _union(places)


def _compressed(X: Any, shape: tuple[int, int], values: NDArray[Any]) -> Counts:
    starts, rows = (a if a.dtype in (np.int32, np.int64) else a.astype(np.int64) for a in (X.indptr, X.indices))
    return Counts.sparse(shape[1], starts, rows, _numbers(values))


def _dense(
    X: NDArray[Any], shape: tuple[int, int], missing: str, places: list[Places]
) -> tuple[Counts, Places | None]:
    if missing == "nan" and X.dtype.kind == "f":
        nan = np.flatnonzero(np.isnan(X)).astype(np.int64)
        if nan.size > 0:
            places = [*places, nan]
    unseen = _union(places)
    if unseen is not None:
        X = X.copy(order="C")
        X.reshape(-1)[unseen] = 0
    return Counts.dense(X), unseen


def _union(places: list[Places]) -> Places | None:
    """All places, rising; None if none were named."""
    if len(places) < 2:
        return places[0] if places else None
    return np.unique(np.concatenate(places))


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
