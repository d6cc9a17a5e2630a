"""Samples on the workers of a Dask cluster: tasks that carry nothing and are keyed by round and block, and their sums by a tree.

Nothing of ours schedules, retries or moves data. A task depends on a block and on W alone, so that Dask does it again if a
worker is lost, with the same bits."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._blocks import TOGETHER, Round, added, block_rows, local, stacked


def is_lazy(X: Any) -> bool:
    """Whether X is a Dask array, or a list of delayed blocks."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(hasattr(part, "__dask_graph__") for part in X)
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def _rows_of(parts: list[Any], cuts: list[tuple[int, int]]) -> Any:
    """Slices of parts, one below the other."""
    return stacked([_sliced(part, first, last) for part, (first, last) in zip(parts, cuts, strict=True)])


def _sliced(part: Any, first: int, last: int) -> Any:
    if (first, last) == (0, part.shape[0]):
        return part
    if hasattr(part, "tocsr"):
        part = part.tocsr()
    return part[first:last]


def _picked(X: Any, rows: NDArray[np.int64]) -> Any:
    return (X.tocsr() if hasattr(X, "tocsr") else X)[rows]


def _shape(part: Any) -> tuple[int, ...]:
    return tuple(int(length) for length in part.shape)


def _first(pair: tuple[bytes, Any]) -> bytes:
    return pair[0]


def _mean(pair: tuple[bytes, Any], which: int) -> Any:
    return pair[1][which]


class OnCluster:
    """Rows of a Dask array or of delayed blocks, cut into the blocks of the fit wherever their own ends are."""

    def __init__(self, X: Any) -> None:
        import dask

        self.dask = dask
        # Of this fit alone: a cluster may be at several.
        self.name = f"bpnmf-{uuid.uuid4().hex[:12]}"
        self.parts, lengths, features = _parts(dask, X)
        self.starts = np.concatenate([[0], np.cumsum(lengths)])
        self.shape = (int(self.starts[-1]), features)

    def block(self, number: int) -> Any:
        """A block of the fit, delayed."""
        first, last = block_rows(number, self.shape[0])
        touched = np.flatnonzero((self.starts[:-1] < last) & (self.starts[1:] > first))
        cuts = []
        for part in touched:
            begin, end = int(self.starts[part]), int(self.starts[part + 1])
            cuts.append((max(first, begin) - begin, min(last, end) - begin))
        task = self.dask.delayed(_rows_of)
        return task([self.parts[part] for part in touched], cuts, dask_key_name=f"{self.name}-rows-{number}")

    def picked(self, samples: NDArray[np.int64]) -> Any:
        blocks = -(-self.shape[0] // _core.BLOCK)
        task, asked = self.dask.delayed(_picked), []
        for number in range(blocks):
            first, last = block_rows(number, self.shape[0])
            within = samples[(samples >= first) & (samples < last)] - first
            if within.size > 0:
                asked.append(task(self.block(number), within, dask_key_name=f"{self.name}-sample-{number}"))
        return stacked(list(self._computed(*asked)))

    def work(self, shared: bytes, asked: Round) -> tuple[bytes, Any, Any]:
        name = f"{self.name}-{asked.number}"
        # A task of its own, not scattered data: what is scattered is lost with the workers that have it.
        given = self.dask.delayed(shared, name=f"{name}-shared", traverse=False)
        task = self.dask.delayed(local)
        done = [
            task(given, self.block(number), place, asked, dask_key_name=f"{name}-local-{number}")
            for place, number in enumerate(asked.blocks)
        ]
        if not asked.means:
            (sums,) = self._computed(self._tree(name, done))
            return sums, None, None
        # The means stay where they are.
        done = list(self.dask.persist(*done))
        (sums,) = self._computed(self._tree(name, done))
        return sums, self._array(name, done, shared, 0), self._array(name, done, shared, 1)

    def _tree(self, name: str, done: list[Any]) -> Any:
        first, add = self.dask.delayed(_first), self.dask.delayed(added)
        level = [first(pair, dask_key_name=f"{name}-sums-{i}") for i, pair in enumerate(done)]
        height = 0
        while len(level) > 1 or height == 0:
            groups = [level[i : i + TOGETHER] for i in range(0, len(level), TOGETHER)]
            level = [add(group, dask_key_name=f"{name}-add-{height}-{i}") for i, group in enumerate(groups)]
            height += 1
        return level[0]

    def _array(self, name: str, done: list[Any], shared: bytes, which: int) -> Any:
        import dask.array

        mean = self.dask.delayed(_mean)
        components = int(np.frombuffer(shared, dtype="<u8", count=3)[2])
        arrays = []
        for number, pair in enumerate(done):
            first, last = block_rows(number, self.shape[0])
            part = mean(pair, which, dask_key_name=f"{name}-mean-{which}-{number}")
            arrays.append(dask.array.from_delayed(part, (last - first, components), dtype=np.float32))
        return dask.array.concatenate(arrays)

    def _computed(self, *tasks: Any) -> tuple[Any, ...]:
        return _computed(self.dask, *tasks)


def _computed(dask: Any, *tasks: Any) -> tuple[Any, ...]:
    try:
        results: tuple[Any, ...] = dask.compute(*tasks)
        return results
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] == "bpnmf":
            raise RuntimeError('a worker of the cluster has no bpnmf: install it there with pip install "bpnmf[dask]"') from error
        raise


def _parts(dask: Any, X: Any) -> tuple[list[Any], list[int], int]:
    """Delayed pieces of rows, how many rows each has, and the number of features."""
    if isinstance(X, (list, tuple)):
        task = dask.delayed(_shape)
        shapes = _computed(dask, *(task(part) for part in X))
        wrong = next((shape for shape in shapes if len(shape) != 2 or shape[1] != shapes[0][-1]), None)
        if wrong is not None:
            raise ValueError(f"a block has shape {wrong}, the first one {shapes[0]}: all must have the same features")
        return list(X), [shape[0] for shape in shapes], shapes[0][1]
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array()
    if X.ndim != 2:
        raise ValueError(f"X is {X.ndim}-D with shape {X.shape}: a matrix of samples x features is needed")
    if X.numblocks[1] != 1:
        raise ValueError(
            f"the chunks of X cut along the features, into {X.numblocks[1]}: a sample must be in one chunk, "
            "as after X.rechunk({1: -1})"
        )
    parts = list(X.to_delayed()[:, 0])
    lengths = list(X.chunks[0])
    if any(np.isnan(length) for length in lengths):
        task = dask.delayed(_shape)
        lengths = [shape[0] for shape in _computed(dask, *(task(part) for part in parts))]
    return parts, [int(length) for length in lengths], int(X.shape[1])


def projected(X: Any, components: int, function: Any) -> Any:
    """A Dask array of float64, samples x components: `function` of every chunk of X."""
    import dask
    import dask.array

    parts, lengths, _ = _parts(dask, X)
    task = dask.delayed(function)
    arrays = [
        dask.array.from_delayed(task(part), (length, components), dtype=np.float64)
        for part, length in zip(parts, lengths, strict=True)
    ]
    return dask.array.concatenate(arrays)
