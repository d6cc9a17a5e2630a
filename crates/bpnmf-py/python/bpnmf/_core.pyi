"""The compiled half: counts, fits, projections and sounds."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__version__: str
BLOCK: int
SAMPLE: int

class Counts:
    @staticmethod
    def dense(array: NDArray[Any]) -> Counts: ...
    @staticmethod
    def sparse(features: int, starts: NDArray[Any], rows: NDArray[Any], values: NDArray[Any]) -> Counts: ...
    def with_missing(self, starts: NDArray[Any], rows: NDArray[Any]) -> Counts: ...
    def total(self) -> float: ...
    def whole(self) -> bool: ...
    def looks_like(self) -> str | None: ...
    def is_sparse(self) -> bool: ...

def fit(
    counts: Counts,
    *,
    preset: str,
    engine: str | None,
    components: int | None,
    forced: int | None,
    iterations: int | None,
    tolerance: float | None,
    alpha: float | None,
    seed: int,
    prior: Mapping[str, float],
    components_prior: str | None,
    chains: int | None,
    until_sure: bool,
    time_budget: str | None,
    threads: int,
    watch: Callable[[dict[str, Any]], bool] | None,
    guess: tuple[int, int, int] | None = None,
    samples: int | None = None,
) -> tuple[dict[str, Any] | None, BaseException | None]: ...
class Blocks:
    @staticmethod
    def from_bytes(bytes: bytes) -> Blocks: ...
    def to_bytes(self) -> bytes: ...
    def next_round(self) -> tuple[int, str, list[int], int, int] | None: ...
    def rounds(self) -> int: ...
    def shared(self) -> bytes: ...
    def take(self, statistics: bytes) -> None: ...
    def partial_fit(self, counts: Counts, threads: int) -> None: ...
    def found(self) -> dict[str, Any]: ...

def local(
    shared: bytes,
    counts: Counts,
    *,
    seed: int,
    round: int,
    block: int,
    place: int,
    burn_in: int,
    kept: int,
    means: bool,
) -> tuple[bytes, tuple[NDArray[np.float32], NDArray[np.float32]] | None]: ...
def add(statistics: list[bytes]) -> bytes: ...
def sample(samples: int, size: int, seed: int) -> list[int]: ...
def project(
    counts: Counts,
    components: NDArray[np.float32],
    pi: NDArray[np.float64],
    prior: Mapping[str, float],
    coarsening: float,
    alpha: float,
    *,
    seed: int,
    burn_in: int,
    draws: int,
    keep: bool,
    threads: int,
) -> dict[str, NDArray[Any]]: ...
def assign(
    counts: Counts,
    components: NDArray[np.float32],
    known: tuple[NDArray[np.float64], Mapping[str, float], float, float] | None,
    alpha: float | None,
    *,
    seed: int,
    draws: int,
    threads: int,
) -> dict[str, Any]: ...
def channels(names: list[str]) -> tuple[list[int], list[str], list[tuple[str, str, int]]] | None: ...
def read_sound(path: str) -> tuple[NDArray[np.float32], int]: ...
def log_likelihood(counts: NDArray[np.float64], rates: NDArray[np.float64], alpha: float) -> float: ...
class Recording:
    window: int
    hop: int
    scale: float

def spectrogram(
    samples: NDArray[np.float32],
    rate: int,
    window: int | None,
    hop: int | None,
    levels: int | None,
    threads: int,
) -> tuple[Recording, Counts]: ...
def sounds(
    recording: Recording,
    dictionary: NDArray[np.float32],
    activations: NDArray[np.float32],
    inclusion: NDArray[np.float32],
    groups: int | None,
    polyphonic: bool,
    references: NDArray[np.float32] | None,
    residual: bool,
    threads: int,
) -> dict[str, Any]: ...
def bss_eval(
    references: NDArray[np.float64],
    estimates: NDArray[np.float64],
    taps: int,
    permutation: bool,
    threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], list[str]]: ...
