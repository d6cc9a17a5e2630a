"""The compiled half: counts, fits, projections and sounds."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__version__: str

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
) -> tuple[dict[str, Any] | None, BaseException | None]: ...
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
