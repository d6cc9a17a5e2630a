"""Sounds: taking one apart, and scoring what came out. Numpy arrays in and out; no files."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._estimator import WARNINGS, BetaProcessNMF, _threads, _warn, _whole

Singles = NDArray[np.float32]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Separation:
    """A sound that was taken apart.

    Attributes
    ----------
    components : ndarray of shape (n_components, n_samples), float32
        The sound of every part; together they are the recording.
    stems : ndarray of shape (n_stems, n_samples), float32
        The stems, if any were asked for: together they are the recording. With `residual` the last one is what no part
        explains.
    members : list of list of int
        The parts of every stem; a part that several stems share is in each of them.
    spectra : ndarray of shape (n_components, n_bins), float32
        The spectrum of every part, as the filter used it.
    activations : ndarray of shape (n_frames, n_components), float32
        How strongly every part is on, as the filter used it.
    frequencies : ndarray of shape (n_bins,)
        In Hz.
    times : ndarray of shape (n_frames,)
        In seconds.
    model : BetaProcessNMF
        The model of the spectrogram, frames x bins, in counts.
    scale : float
        Counts are magnitudes times this, rounded.
    """

    components: Singles
    stems: Singles
    members: list[list[int]]
    spectra: Singles
    activations: Singles
    frequencies: Floats
    times: Floats
    model: BetaProcessNMF
    scale: float


def separate(
    y: ArrayLike,
    sr: int,
    *,
    n_stems: int | None = None,
    polyphonic: bool = False,
    reference: ArrayLike | None = None,
    residual: bool = False,
    window: int | None = None,
    hop: int | None = None,
    levels: int | None = None,
    **params: Any,
) -> Separation:
    """Takes a sound apart into parts, as ``bpnmf separate`` does.

    Parameters
    ----------
    y : array of shape (n_samples,)
        One channel of samples.
    sr : int
        Samples a second. The sound is worked on at this rate.
    n_stems : int, optional
        So many stems, each of the notes of one instrument: a guess.
    polyphonic : bool, default=False
        With `n_stems`: an instrument may play several notes at once.
    reference : array of shape (n_sources, n_samples), optional
        The sources alone: a stem for each of them. Parts that several share are split between them.
    residual : bool, default=False
        One stem more, for what no part explains; without it that is shared out.
    window, hop : int, optional
        Samples in a frame (even; by default the power of two nearest to 46 ms, or half of it for a recording of less than
        200 such frames), and from one to the next (half a window).
    levels : int, optional
        The count that the largest magnitude becomes; by default such that a typical count is 11.
    **params
        Parameters of `BetaProcessNMF`; `n_chains` None means one. The same `random_state` gives what the command line gives with ``--seed``.
    """
    sound = np.asarray(y)
    if sound.ndim != 1 or sound.dtype.kind not in "fiu" or sound.size == 0:
        raise ValueError(
            f"y is {sound.dtype} of shape {sound.shape}: one channel of real samples is needed, y.mean(axis=...) makes one"
        )
    samples = np.ascontiguousarray(sound, dtype=np.float32)
    if not np.isfinite(samples).all():
        raise ValueError("y has samples that are NaN or infinite: samples must be finite")
    rate = _whole("sr", sr)
    if rate is None:
        raise TypeError("sr is None: it must be an int")
    if n_stems is not None and reference is not None:
        raise ValueError("n_stems and reference both say which stems there are: give one of them")
    if residual and n_stems is None and reference is None:
        raise ValueError("residual is one stem more: say which stems with n_stems or reference")
    sources = None
    if reference is not None:
        sources = np.atleast_2d(np.asarray(reference, dtype=np.float32))
        if sources.ndim != 2 or sources.shape[1] != samples.size:
            raise ValueError(f"reference has shape {sources.shape}: (n_sources, {samples.size}) is needed, as long as y")
    model = BetaProcessNMF(**params)
    threads = _threads(model.n_jobs)
    recording, counts = _core.spectrogram(
        samples, rate, _whole("window", window), _whole("hop", hop), _whole("levels", levels), threads
    )
    size, step = recording.window, recording.hop
    for about, sentence in model._fit_counts(counts, model._wishes(), (rate, size, step)):
        # A recording is not counts, and nobody takes it for them.
        if about != "data":
            _warn(sentence, WARNINGS[about])
    model.n_features_in_ = size // 2 + 1
    if model.components_.shape[0] == 0:
        raise ValueError("no part is on often enough to count, so there is nothing to take apart: use a larger max_iter")
    made = _core.sounds(
        recording,
        np.ascontiguousarray(model.components_.T),
        np.ascontiguousarray(model.activations_.T),
        np.ascontiguousarray(model.inclusion_.T),
        _whole("n_stems", n_stems),
        bool(polyphonic),
        sources,
        residual,
        threads,
    )
    parts = made["W"].shape[1]
    return Separation(
        components=made["sounds"][:parts],
        stems=made["sounds"][parts:],
        members=made["members"],
        spectra=np.ascontiguousarray(made["W"].T),
        activations=made["H"].T,
        frequencies=np.arange(size // 2 + 1, dtype=np.float64) * (rate / size),
        times=np.arange(made["H"].shape[1], dtype=np.float64) * (step / rate),
        model=model,
        scale=recording.scale,
    )


def bss_eval(
    reference_sources: ArrayLike,
    estimated_sources: ArrayLike,
    compute_permutation: bool = True,
    *,
    filter_length: int = 512,
    n_jobs: int | None = None,
) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
    """SDR, SIR and SAR of estimates of known sources, in dB, as BSS Eval 3 and ``mir_eval.separation`` define them.

    Parameters
    ----------
    reference_sources : array of shape (n_sources, n_samples)
    estimated_sources : array of shape (n_sources, n_samples)
    compute_permutation : bool, default=True
        Whether the estimates may be in another order: the one with the highest mean SIR is taken.
    filter_length : int, default=512
        Taps of the distortion filters.
    n_jobs : int or None, default=None
        Threads; -1 for all cores, None for one.

    Returns
    -------
    sdr, sir, sar : ndarrays of shape (n_sources,)
        By reference. NaN where a score is not defined, with a warning that says why.
    perm : ndarray of shape (n_sources,)
        The estimate of each reference.
    """
    references, estimates = (_sounds(name, x) for name, x in (
        ("reference_sources", reference_sources), ("estimated_sources", estimated_sources)
    ))
    taps = _whole("filter_length", filter_length)
    if taps is None:
        raise TypeError("filter_length is None: it must be an int")
    sdr, sir, sar, perm, doubts = _core.bss_eval(references, estimates, taps, bool(compute_permutation), _threads(n_jobs))
    for doubt in doubts:
        warnings.warn(doubt, stacklevel=2)
    return sdr, sir, sar, perm


def _sounds(name: str, values: ArrayLike) -> Floats:
    sounds = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if sounds.ndim != 2:
        raise ValueError(f"{name} has shape {sounds.shape}: (n_sources, n_samples) is needed")
    return sounds
