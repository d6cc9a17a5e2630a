"""A fit of blocks of samples: a sample of them first, then rounds over all blocks, wherever these are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._input import counts_of, is_sparse

# Sums that are added up at a time.
TOGETHER = 8


@dataclass(frozen=True)
class Round:
    """What the local half is asked for in a round, beside what it is given."""

    number: int
    stage: str
    blocks: list[int]
    burn_in: int
    kept: int
    seed: int
    missing: str

    @property
    def means(self) -> bool:
        """Whether it is the round that gives the means of every sample."""
        return self.stage == "last pass"


class Rows(Protocol):
    """Samples x features, block by block."""

    shape: tuple[int, int]

    def picked(self, samples: NDArray[np.int64]) -> Any:
        """These samples, rising, as a matrix in memory."""

    def work(self, shared: bytes, asked: Round) -> tuple[bytes, Any, Any]:
        """The sums over all blocks of a round; with its means also those of H S and of S, samples x components."""


def block_rows(block: int, samples: int) -> tuple[int, int]:
    """The first sample of a block, and the one after its last."""
    return block * _core.BLOCK, min((block + 1) * _core.BLOCK, samples)


def local(shared: bytes, X: Any, place: int, asked: Round) -> tuple[bytes, Any]:
    """The local half of the block at this place of a round: a function of nothing but what it is given, so that it can be done
    anywhere and again."""
    block = asked.blocks[place]
    try:
        counts, _ = counts_of(X, missing=asked.missing)
        return _core.local(
            shared,
            counts,
            seed=asked.seed,
            round=asked.number,
            block=block,
            place=place,
            burn_in=asked.burn_in,
            kept=asked.kept,
            means=asked.means,
        )
    except ValueError as error:
        first = block * _core.BLOCK
        raise ValueError(f"in the block that begins with sample {first}, whose samples are counted from 0: {error}") from None


def added(sums: Iterable[bytes]) -> bytes:
    """Their sum: the same bits in any order."""
    waiting: list[bytes] = []
    for one in sums:
        waiting.append(one)
        if len(waiting) == TOGETHER:
            waiting = [_core.add(waiting)]
    return _core.add(waiting)


def stacked(parts: Sequence[Any]) -> Any:
    """Matrices one below the other: sparse ones stay so."""
    if len(parts) == 1:
        return parts[0]
    if any(is_sparse(part) for part in parts):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.concatenate([np.asarray(part) for part in parts])


class Here:
    """Rows that this process can slice: an array, a sparse matrix, a backed AnnData."""

    def __init__(self, X: Any, threads: int) -> None:
        self.X = X.tocsr() if is_sparse(X) and X.format != "csr" else X
        self.shape: tuple[int, int] = (int(X.shape[0]), int(X.shape[1]))
        self.threads = threads

    def picked(self, samples: NDArray[np.int64]) -> Any:
        blocks = range(-(-self.shape[0] // _core.BLOCK))
        parts = (self._some(block, samples) for block in blocks)
        return stacked([part for part in parts if part.shape[0] > 0])

    def _some(self, block: int, samples: NDArray[np.int64]) -> Any:
        first, last = block_rows(block, self.shape[0])
        within = samples[(samples >= first) & (samples < last)]
        return self.X[first:last][within - first]

    def work(self, shared: bytes, asked: Round) -> tuple[bytes, Any, Any]:
        found: list[Any] = []

        def one(place: int) -> bytes:
            first, last = block_rows(asked.blocks[place], self.shape[0])
            sums, means = local(shared, self.X[first:last], place, asked)
            if asked.means:
                found.append((place, means))
            return sums

        with ThreadPoolExecutor(self.threads) as pool:
            sums = added(pool.map(one, range(len(asked.blocks))))
        found.sort(key=lambda part: part[0])
        if not asked.means:
            return sums, None, None
        activations, inclusion = (np.concatenate([means[i] for _, means in found]) for i in (0, 1))
        return sums, activations, inclusion


def fitted(model: Any, rows: Rows, wishes: dict[str, Any], size: int | None) -> dict[str, Any] | None:
    """What `_core.fit` finds in a sample of `size` rows, with the components, and the means, as all rows have them."""
    if wishes["time_budget"] is not None:
        raise ValueError("time_budget cannot be had of a fit block by block: leave it out, or fit fewer samples")
    size = _core.SAMPLE if size is None else int(size)
    if size < 1:
        raise ValueError(f"sample is {size}: it must be at least 1")
    chosen = np.asarray(_core.sample(rows.shape[0], size, wishes["seed"]), dtype=np.int64)
    counts, _ = counts_of(rows.picked(chosen), missing=model.missing)
    found, error = _core.fit(counts, watch=model._watch(None), samples=rows.shape[0], **wishes)
    if error is not None:
        raise error
    if found is None or found["stop_reason"] == "interrupted":
        return None
    blocks = found["blocks"]
    empty = np.zeros((rows.shape[0], 0), dtype=np.float32)
    activations, inclusion = empty, empty
    while (round_ := blocks.next_round()) is not None:
        number, stage, numbers, burn_in, kept = round_
        asked = Round(number, stage, list(numbers), burn_in, kept, wishes["seed"], model.missing)
        sums, activations, inclusion = rows.work(blocks.shared(), asked)
        blocks.take(sums)
    return {**found, **replaced(found, blocks, activations, inclusion), "looks_like": counts.looks_like()}


def replaced(found: dict[str, Any], blocks: _core.Blocks, activations: Any, inclusion: Any) -> dict[str, Any]:
    """What a fit of blocks says in place of what its sample said, the largest component first."""
    now = blocks.found()
    order = np.asarray(now["order"], dtype=np.int64)
    ordered = {
        name: None if found[name] is None else np.asarray(found[name])[order]
        for name in ("recurrence", "share_interval", "evidence")
    }
    return {
        **ordered,
        "W": now["W"],
        "pi": now["pi"],
        "share": now["share"],
        "usage": now["usage"],
        "H": activations[:, order].T,
        "S": inclusion[:, order].T,
        "intervals": None,
        "log_likelihood": now["log_likelihood"],
    }
