"""The estimator: scikit-learn's manners around the Rust library. Samples are rows here, as everywhere in Python."""

from __future__ import annotations

import inspect
import math
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arviz import inference_data
from ._assign import Assignment, component_names, framed, specificity
from ._base import (
    Base,
    ConvergenceWarning,
    InvalidParameterError,
    NotFittedError,
    check_names,
    is_anndata,
    wrapped_like_transform,
)
from ._files import read_model, write_model
from ._blocks import Here, Rows, fitted
from ._dask import OnCluster, is_lazy, projected
from ._input import MaskLike, counts_of, places_of, values_at
from ._progress import Progress

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Callback = Callable[[dict[str, Any]], object]
Self = TypeVar("Self", bound="BetaProcessNMF")

# Sweeps over the samples of transform, score and sample_posterior: first those that are not averaged.
_BURN_IN = 20
_DRAWS = 80

_TAKES_LENGTH = "N_CHAR_MAX" in inspect.signature(Base.__repr__).parameters

# No rate is below, so that a count where none is expected is very unlikely but not impossible; as in the Rust library.
_LEAST_RATE = 1e-300


class DataWarning(UserWarning):
    """X is unlikely to hold counts: the sentence says what it looks like and what to give instead."""


# What a warning of the library is about, and how Python has it.
WARNINGS: dict[str, type[Warning]] = {"data": DataWarning, "disagreement": ConvergenceWarning, "limit": UserWarning}


@dataclass(frozen=True)
class Prior:
    """The prior: W ~ Gamma(a, b), H ~ Gamma(c, d), pi ~ Beta(a0 / K, b0 (K - 1) / K).

    What is None is learned (a, b, c, d with ``preset="auto"``) or the paper's.
    """

    a: float | None = None
    b: float | None = None
    c: float | None = None
    d: float | None = None
    a0: float | None = None
    b0: float | None = None


class BetaProcessNMF(Base):
    """Beta process non-negative matrix factorization: the parts of a matrix of counts, and how many there are.

    The model is that of Liang & Hoffman (2014): ``X[t, f] ~ Poisson(sum_k W[k, f] H[t, k] S[t, k])`` with gamma priors
    on W and H and a beta process on the binary mask S, so that the data choose how many components are used.

    Parameters
    ----------
    n_components : int or None, default=None
        None to find the number of components; an int for exactly so many. Only with ``preset="auto"``.
    max_components : int or None, default=None
        The most components (the truncation level of the beta process). None: 500, and more if there are more; with
        ``preset="paper"`` 500.
    engine : {"gibbs", "ssmf", "gibbs-expected", "map", "nb-process"} or None, default=None
        The algorithm. "gibbs" is exact and needs whole counts; "ssmf" is Algorithm 1 of the paper; "gibbs-expected" is
        its Algorithm 2 as printed; "map" is the mean field with the most probable mask; "nb-process" is another model,
        without a mask and without a search, and needs whole counts. None: "gibbs", or "ssmf" if X has fractions; with
        ``preset="paper"`` "ssmf".
    preset : {"auto", "paper"}, default="auto"
        "auto": a search for the components and for the prior comes first. "paper": no search, the prior as given.
    prior : Prior, mapping or None, default=None
        Numbers of the prior by name: a, b, c, d, a0, b0. With ``preset="auto"`` only a0 and b0: the others are learned.
    components_prior : str or None, default=None
        Sample the number of components, too, with this prior: "beta-process", "uniform", "poisson:MEAN" or
        "geometric:P". Only for the engine "gibbs", and not with `n_components`; takes more iterations. None: each chain
        keeps about the number that its search found.
    noise : "auto", "poisson" or a number, default="auto"
        How counts scatter about their rates. "auto" learns it; "poisson" is counting noise alone; with a number alpha
        the variance is rate + rate^2 / alpha, so that beyond counting noise a count scatters by 1 / sqrt(alpha) of its
        rate. With ``preset="paper"`` "auto" means "poisson".
    n_chains : int or None, default=None
        Runs to make, each from a start of its own: they tell how sure the number of components is and which components
        come back in every run, and the best one of the right size is the model. One chain seldom leaves the number it
        starts with, and says nothing about how sure it is. None: 4, and 1 with ``preset="paper"``. They share the
        threads: with ``n_jobs=2`` four chains take less than twice the time of one.
    until_sure : bool, default=False
        Make more chains until they say the same: twice as many while the last half of them changed the number of
        components or its interval, at most 64. Not with `n_components`.
    time_budget : number, str or None, default=None
        Stop after so many seconds, or "60s", "5m", "2h", with what there is by then. The result depends on the machine.
    max_iter : int or None, default=None
        The most iterations. None: 40 to 120 after a search; with ``preset="paper"`` 200 for "ssmf" and "map", 400 for the
        Gibbs engines; 400 for "nb-process".
    tol : float or None, default=1e-4
        Relative change of the objective below which it has settled. None: run all iterations.
    random_state : int, RandomState, Generator or None, default=None
        An int gives the same numbers again, whatever `n_jobs`, and those of the command line with ``--seed``.
    n_jobs : int or None, default=None
        Threads; -1 for all cores, None for one. Results do not depend on it.
    verbose : int, default=0
        1 for a line on stderr that shows how far the fit is; in a notebook it is updated.
    callback : callable or None, default=None
        Called with a dictionary after every stage of the search and every iteration: stage, step, chain, iteration,
        n_components, seconds, and in an iteration log_likelihood and log_joint. If it returns False the run ends there.
    missing : {"error", "nan"}, default="error"
        "nan": NaN in X means not observed. "error": NaN is refused.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features), float32
        Posterior mean of W, largest share first.
    n_components_ : int
        The number of components of the model: the median over all chains, or the nearest to it that a chain
        has.
    n_components_pmf_ : dict or None
        How frequent each number of components is over all chains. None with one chain, and with `n_components` given.
    n_components_interval_ : tuple of two ints or None
        Between these are 90 % of the draws of all chains. None with one chain, and with `n_components` given.
    component_recurrence_ : ndarray of shape (n_components,) or None
        The share of the other chains that found a component again. None with one chain.
    pi_ : ndarray of shape (n_components,)
        Posterior mean of the probability that a component is on.
    inclusion_ : ndarray of shape (n_samples, n_components), float32
        Posterior probability that a component is on in a sample of the fit.
    activations_ : ndarray of shape (n_samples, n_components), float32
        Posterior mean of H S in the samples of the fit. `transform` gives nearly the same, from W alone.
    components_interval_ : ndarray of shape (2, n_components, n_features), float32, or None
        The low and the high ends of 90 % intervals of `components_`, from the draws of all chains that have a
        component; of one chain within it. The scale between W and H is held, so that divided by
        ``components_.sum(axis=1)`` they are the intervals of the shares of the features. None unless the engine is "gibbs".
    activations_interval_ : ndarray of shape (2, n_samples, n_components), float32, or None
        The same of `activations_`; times ``components_.sum(axis=1)`` in expected counts.
    share_ : ndarray of shape (n_components,)
        Share of the counts that a component explains.
    share_interval_ : ndarray of shape (n_components, 2) or None
        The smallest and the largest share over the chains that have the component; NaN where only one has it. None with
        one chain.
    usage_ : ndarray of shape (n_components,)
        In how many samples of the fit a component is on, posterior mean.
    evidence_ : ndarray of shape (n_components,) or None
        What deleting a component would cost in log evidence; only after a search.
    trace_ : dict of ndarray
        A row an iteration, chain after chain: chain, iteration, active, n_components, on_anywhere, sites_on,
        log_likelihood, log_joint, activation, reconstruction_1 to 4, seconds.
    burn_in_ : list of int
        The first rows of every chain that say nothing about the result.
    convergence_ : dict
        (R-hat, effective sample size) by quantity; None where there is none, as R-hat of one chain.
    n_iter_ : int
        Iterations of the chain that became the model.
    stop_reason_ : str
        Why it ended: "converged", "iteration limit", "interrupted", "time budget" or "no counts"; with `until_sure`
        "sure", or "chain limit" if 64 chains were not enough.
    prior_ : dict
        The prior that was used: learned, or as given.
    coarsening_ : float
        The power of the likelihood: 1 for counts, less for data too smooth to be counts.
    noise_ : str
        How counts scatter: "poisson" or "scattered".
    alpha_ : float
        The alpha of `noise`, learned or as given; infinite for "poisson".
    resolution_path_ : list of (float, int)
        The number of components by coarsening, coarsest first; only after a search.
    engine_ : str
        The engine that was used.
    seed_ : int
        The seed that was used.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if X is a frame whose columns have names.

    Notes
    -----
    Ctrl-C during `fit` raises KeyboardInterrupt within a second. If the run could be ended in that time, the attributes
    hold what it found so far; if not, they are those from before.

    Examples
    --------
    >>> import numpy as np
    >>> from bpnmf import BetaProcessNMF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(rng.gamma(1.0, 2.0, (60, 2)) @ rng.gamma(0.5, 4.0, (2, 20)))
    >>> model = BetaProcessNMF(random_state=0).fit(X)
    >>> model.transform(X).shape == (60, model.components_.shape[0])
    True
    """

    components_: Singles
    n_components_: int
    n_components_pmf_: dict[int, float] | None
    n_components_interval_: tuple[int, int] | None
    component_recurrence_: Floats | None
    pi_: Floats
    inclusion_: Singles
    activations_: Singles
    components_interval_: Singles | None
    activations_interval_: Singles | None
    share_: Floats
    share_interval_: Floats | None
    usage_: Floats
    evidence_: Floats | None
    trace_: dict[str, NDArray[Any]]
    burn_in_: list[int]
    convergence_: dict[str, tuple[float | None, float | None]]
    n_iter_: int
    stop_reason_: str
    prior_: dict[str, float]
    coarsening_: float
    noise_: str
    alpha_: float
    resolution_path_: list[tuple[float, int]]
    engine_: str
    seed_: int
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    _component_names: list[str]
    _blocks: _core.Blocks

    def __init__(
        self,
        n_components: int | None = None,
        *,
        max_components: int | None = None,
        engine: str | None = None,
        preset: str = "auto",
        prior: Prior | Mapping[str, float] | None = None,
        components_prior: str | None = None,
        noise: str | float = "auto",
        n_chains: int | None = None,
        until_sure: bool = False,
        time_budget: float | str | None = None,
        max_iter: int | None = None,
        tol: float | None = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
        missing: str = "error",
    ) -> None:
        self.n_components = n_components
        self.max_components = max_components
        self.engine = engine
        self.preset = preset
        self.prior = prior
        self.components_prior = components_prior
        self.noise = noise
        self.n_chains = n_chains
        self.until_sure = until_sure
        self.time_budget = time_budget
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
        self.missing = missing

    def fit(
        self: Self, X: Any, y: object = None, *, mask: MaskLike | None = None, sample: int | None = None
    ) -> Self:
        """Finds the components of X.

        A Dask array, an AnnData with one in it, a list of delayed blocks and an AnnData that is backed by its file are fitted
        block by block: chains on a sample of the samples find the components, and passes over all blocks fit them to all
        samples. Blocks of a Dask collection are worked on by the cluster of its client; `activations_` and `inclusion_` are
        then Dask arrays. The result does not depend on chunks and workers.

        Parameters
        ----------
        X : array, sparse matrix, frame, AnnData, Dask array or list of delayed, of shape (n_samples, n_features)
            Counts, or non-negative numbers. Compressed matrices are not made dense.
        y : ignored
        mask : bool array or sparse matrix of the shape of X, optional
            True where an entry was not observed. Not of a fit block by block.
        sample : int, optional
            In how many samples the components are looked for. Given, any X is fitted block by block.

        Warns
        -----
        DataWarning
            If X is unlikely to hold counts: frequencies, counts per million, logarithms, scaled counts; or if the search
            finds more components than X has rows or columns.
        ConvergenceWarning
            If the chains do not agree about the number of components, or about the model.
        UserWarning
            If the number of components comes within 10 % of a `max_components` that was given.
        """
        wishes = self._wishes()
        rows = self._rows(X, sample is not None, wishes["threads"])
        if rows is not None:
            if mask is not None:
                raise ValueError("a mask cannot be had of a fit block by block: give NaN and missing=\"nan\"")
            return self._fit_blocks(rows, X, wishes, sample)
        counts, shape = counts_of(X, missing=self.missing, mask=mask)
        check_names(self, X, shape[1], True)
        _warn(counts.looks_like())
        for about, sentence in self._fit_counts(counts, wishes, samples=shape[0]):
            _warn(sentence, WARNINGS[about])
        return self

    def _fit_counts(
        self,
        counts: _core.Counts,
        wishes: dict[str, Any],
        guess: tuple[int, int, int] | None = None,
        samples: int | None = None,
    ) -> list[tuple[str, str]]:
        """Fits, and says what keeps the result from being trusted; `guess` is (rate, window, hop) of a spectrogram."""
        progress = Progress() if self.verbose else None
        found, error = _core.fit(counts, watch=self._watch(progress), guess=guess, samples=samples, **wishes)
        if found is not None:
            self._keep(found, wishes["seed"])
            if found["blocks"] is not None:
                self._blocks = found["blocks"]
            if progress is not None:
                progress.finish(self._last_line(found))
        if error is not None:
            raise error
        return [] if found is None else list(found["warnings"])

    def partial_fit(self: Self, X: Any, y: object = None) -> Self:
        """One step with samples that come next in a stream.

        Of a model that is not fitted it is a `fit` of these samples, which should be enough to show every component. Else the
        components are kept and brought up to date, as if all samples so far were like these, by ever smaller steps. What
        is known of single samples is not kept: `transform` says it.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : ignored
        """
        if not hasattr(self, "components_"):
            return self.fit(X)
        if not hasattr(self, "_blocks"):
            raise ValueError("this model was not fitted here and does not know from how much it has learned: fit it first")
        counts = self._counts(X, None)
        self._blocks.partial_fit(counts, _threads(self.n_jobs))
        found = self._blocks.found()
        self.components_ = np.ascontiguousarray(found["W"].T)
        self.pi_, self.share_, self.usage_ = found["pi"], found["share"], found["usage"]
        self.components_interval_ = self.activations_interval_ = None
        for name in ("activations_", "inclusion_"):
            self.__dict__.pop(name, None)
        return self

    def _rows(self, X: Any, asked: bool, threads: int) -> Rows | None:
        """X block by block, if it is to be fitted so."""
        if is_anndata(X):
            asked, X = asked or bool(getattr(X, "isbacked", False)), X.X
        if is_lazy(X):
            return OnCluster(X)
        if not asked:
            return None
        if hasattr(X, "to_numpy") and hasattr(X, "columns"):
            X = X.to_numpy()
        sliced = hasattr(X, "shape") and (isinstance(X, np.ndarray) or hasattr(X, "format"))
        return Here(X if sliced else np.asarray(X), threads or os.cpu_count() or 1)

    def _fit_blocks(self: Self, rows: Rows, X: Any, wishes: dict[str, Any], sample: int | None) -> Self:
        known = hasattr(X, "columns") or is_anndata(X)
        check_names(self, X if known else np.empty((1, rows.shape[1])), rows.shape[1], True)
        found = fitted(self, rows, wishes, sample)
        if found is None:
            raise RuntimeError("the fit was ended before all blocks were done: there is no result")
        self._keep(found, wishes["seed"])
        self._blocks = found["blocks"]
        _warn(found["looks_like"])
        for about, sentence in found["warnings"]:
            _warn(sentence, WARNINGS[about])
        return self

    def fit_transform(self, X: Any, y: object = None, *, mask: MaskLike | None = None) -> Floats:
        """`fit`, then `transform` of the same X: what `activations_` holds is the average over W as well."""
        return self.fit(X, mask=mask).transform(X, mask=mask)

    @overload
    def transform(
        self, X: Any, *, return_std: Literal[False] = False, mask: MaskLike | None = None
    ) -> Floats: ...
    @overload
    def transform(
        self, X: Any, *, return_std: Literal[True], mask: MaskLike | None = None
    ) -> tuple[Floats, Floats]: ...
    def transform(
        self, X: Any, *, return_std: bool = False, mask: MaskLike | None = None
    ) -> Floats | tuple[Floats, Floats]:
        """Posterior means of the activations of new samples, W and pi as they were found.

        A sample has the same numbers alone, in a batch and in any order.

        Parameters
        ----------
        X : array, sparse matrix, frame or Dask array of shape (n_samples, n_features)
            Of a Dask array the result is one, too.
        return_std : bool, default=False
            Whether to return the posterior standard deviations as well.
        mask : bool array or sparse matrix of the shape of X, optional
            True where an entry was not observed.

        Returns
        -------
        activations : ndarray of shape (n_samples, n_components)
        std : ndarray of shape (n_samples, n_components), if `return_std`
        """
        lazy = X.X if is_anndata(X) else X
        if is_lazy(lazy):
            means: Floats = self._transform_lazily(lazy, return_std, mask)
            return means
        found = self._project(X, mask)
        mean = found["mean"].astype(np.float64)
        if not return_std:
            return mean
        # scikit-learn gives names to the first of several results alone.
        return mean, wrapped_like_transform(self, X, found["std"].astype(np.float64))

    def _transform_lazily(self, X: Any, return_std: bool, mask: MaskLike | None) -> Any:
        """A Dask array of the means, chunk by chunk where the chunks are."""
        self._check_fitted()
        if return_std or mask is not None:
            raise ValueError("return_std and mask cannot be had of a Dask array: transform its chunks one by one")
        bare = type(self)(missing=self.missing)
        known = ("components_", "pi_", "prior_", "coarsening_", "alpha_", "seed_", "n_features_in_")
        bare.__dict__.update({name: getattr(self, name) for name in known})
        return projected(X, self.components_.shape[0], bare.transform)

    def assign(self, X: Any, *, n_draws: int = 400, random_state: Any = None, mask: MaskLike | None = None) -> Assignment:
        """Exposures of samples on the components: expected counts, 90 % intervals, the probability that each is present.

        As ``bpnmf assign`` does it, with the exact sampler. Of a model that was fitted, pi, the prior and the noise are
        those of the fit; of one `from_components` they are learned from all samples of X together, so that a sample alone
        may have other numbers than among others.

        Parameters
        ----------
        X : array, sparse matrix, frame or AnnData of shape (n_samples, n_features)
        n_draws : int, default=400
            Sweeps that are averaged; more are more exact.
        random_state : int, RandomState, Generator or None, default=None
            None takes the seed of the model.
        mask : bool array or sparse matrix of the shape of X, optional
            True where an entry was not observed.
        """
        self._check_fitted()
        if n_draws < 10:
            raise ValueError(f"n_draws is {n_draws}: it must be at least 10")
        counts = self._counts(X, mask)
        seed = self.seed_ if random_state is None else _seed(random_state)
        known = None
        if self.pi_ is not None:
            known = (self.pi_, self._prior_of_fit(), self.coarsening_, self.alpha_)
        alpha = _alpha(self.noise) if known is None else None
        found = _core.assign(
            counts, self.components_, known, alpha, seed=seed, draws=n_draws, threads=_threads(self.n_jobs)
        )
        names = self.component_names_
        tables = (found[name].astype(np.float64) for name in ("exposures", "low", "high", "inclusion"))
        exposures, low, high, inclusion = (framed(X, values, names) for values in tables)
        return Assignment(
            exposures,
            low,
            high,
            inclusion,
            float(found["present_from"]),
            found["log_likelihood"],
            float(found["alpha"]),
            found["pi"],
            names,
        )

    @classmethod
    def from_components(
        cls: type[Self],
        components: Any,
        *,
        feature_names: Any = None,
        component_names: Any = None,
        **params: Any,
    ) -> Self:
        """A model of components that are known, published signatures for example: for `assign`.

        Parameters
        ----------
        components : array of shape (n_components, n_features), or a frame
            What the components look like; each is scaled to add up to 1, so that activations are expected counts. Of a
            pandas frame the index names the components and the columns the features (of a table of features x signatures
            give its transpose, ``table.T``).
        feature_names, component_names : sequences of str, optional
        **params
            Parameters of the constructor: `noise`, `random_state`, `n_jobs` and `missing` are used.

        Examples
        --------
        >>> import numpy as np
        >>> from bpnmf import BetaProcessNMF
        >>> model = BetaProcessNMF.from_components([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], random_state=0)
        >>> model.assign(np.array([[80, 10, 10], [45, 10, 45]]))
        Assignment(2 samples, 2 of 2 components present)
        """
        if hasattr(components, "to_numpy") and hasattr(components, "columns"):
            feature_names = list(components.columns) if feature_names is None else feature_names
            if component_names is None and hasattr(components, "index"):
                component_names = [str(name) for name in components.index]
            components = components.to_numpy()
        weights = np.asarray(components, dtype=np.float64)
        if weights.ndim != 2 or weights.size == 0:
            raise ValueError(f"components has shape {weights.shape}: (n_components, n_features) is needed")
        if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights.sum(axis=1) > 0).all()):
            raise ValueError("components must be finite and not negative, and none of them zero everywhere")
        for what, names, number in (
            ("feature_names", feature_names, weights.shape[1]), ("component_names", component_names, weights.shape[0])
        ):
            if names is not None and len(names) != number:
                raise ValueError(f"{what} has {len(names)} names: {number} are needed")
        model = cls(**params)
        model.components_ = np.ascontiguousarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float32)
        model.n_components_ = weights.shape[0]
        model.pi_ = None  # type: ignore[assignment]
        model.seed_ = _seed(model.random_state)
        model.n_features_in_ = weights.shape[1]
        if feature_names is not None:
            model.feature_names_in_ = np.asarray([str(name) for name in feature_names], dtype=object)
        if component_names is not None:
            model._component_names = [str(name) for name in component_names]
        return model

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """The expected counts of activations: ``X @ components_``, of shape (n_samples, n_features)."""
        self._check_fitted()
        activations = np.asarray(X, dtype=np.float64)
        parts = self.components_.shape[0]
        if activations.ndim != 2 or activations.shape[1] != parts:
            raise ValueError(f"activations have shape {activations.shape}: (n_samples, {parts}) is needed")
        return activations @ self.components_.astype(np.float64)

    def score(
        self, X: Any, y: object = None, *, mask: MaskLike | None = None, held_out: MaskLike | None = None
    ) -> float:
        """Log-likelihood of a sample, mean over samples; log x! included.

        The counts are Poisson, or with ``noise_ == "scattered"`` negative binomial with `alpha_`.

        The activations are the means that `transform` gives. Without `held_out` they come from the very entries that
        are scored: W is new to them, the activations are not, and more components tend to look better. To compare
        models, fit on most entries and score the others:

        >>> import numpy as np
        >>> from bpnmf import BetaProcessNMF
        >>> rng = np.random.default_rng(0)
        >>> X = rng.poisson(rng.gamma(1.0, 2.0, (60, 3)) @ rng.gamma(0.5, 4.0, (3, 20)))
        >>> held_out = rng.random(X.shape) < 0.1
        >>> one, free = (BetaProcessNMF(n, random_state=0).fit(X, mask=held_out) for n in (1, None))
        >>> free.score(X, held_out=held_out) > one.score(X, held_out=held_out)
        True

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : ignored
        mask : bool array or sparse matrix of the shape of X, optional
            True where an entry was not observed: neither used nor scored.
        held_out : bool array or sparse matrix of the shape of X, optional
            True where an entry is scored but not used for the activations. Only these are scored.

        Returns
        -------
        score : float
            The sum over the entries of a sample, mean over samples; with `held_out` the sum over the entries of a sample
            that were held out, mean over the samples that have any. NaN if there are none. Every count where the
            model expects nothing at all costs 691.
        """
        if held_out is None:
            return float(np.mean(self._project(X, mask)["log_likelihood"]))
        self._check_fitted()
        counts, shape = counts_of(X, missing=self.missing, mask=mask, held_out=held_out)
        check_names(self, X, shape[1], False)
        places = places_of("held_out", held_out, shape)
        if mask is not None:
            places = np.setdiff1d(places, places_of("mask", mask, shape), assume_unique=True)
        values = values_at(X, places)
        if self.missing == "nan":
            places, values = places[~np.isnan(values)], values[~np.isnan(values)]
        bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if bad.size > 0:
            sample, feature = divmod(int(places[bad[0]]), shape[1])
            raise ValueError(f"entry ({sample}, {feature}) is {values[bad[0]]:g}: what is held out must be a count, too")
        if places.size == 0:
            return float("nan")
        mean = self._projected(counts)["mean"]
        samples, features = np.divmod(places, shape[1])
        total = _log_likelihood(values, mean, self.components_, samples, features, self.alpha_)
        return total / np.unique(samples).size

    def perplexity(self, X: Any, *, mask: MaskLike | None = None) -> float:
        """exp(-log-likelihood / number of counts): smaller is better."""
        self._check_fitted()
        counts = self._counts(X, mask)
        found = self._projected(counts)
        total = counts.total()
        return float(np.exp(-np.sum(found["log_likelihood"]) / total)) if total > 0 else float("nan")

    def sample_posterior(
        self, X: Any, n_draws: int = 100, *, random_state: Any = None, mask: MaskLike | None = None
    ) -> Floats:
        """Draws of the activations H S of samples given X, W and pi, of shape (n_draws, n_samples, n_components).

        They come from one chain a sample, one sweep after the other. W is at its posterior mean: its own uncertainty
        is not in the draws. `random_state` None takes the seed of the fit.
        """
        self._check_fitted()
        if n_draws < 1:
            raise ValueError(f"n_draws is {n_draws}: it must be at least 1")
        seed = self.seed_ if random_state is None else _seed(random_state)
        found = self._projected(self._counts(X, mask), draws=n_draws, keep=True, seed=seed)
        return np.ascontiguousarray(found["draws"].transpose(1, 0, 2), dtype=np.float64)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """The names of the columns of `transform`: those of the components, C1, C2, ..."""
        return np.asarray(self.component_names_, dtype=object)

    @property
    def component_names_(self) -> list[str]:
        """The names of the components, the same as in the files of the program: C1, C2, ..., the largest first."""
        self._check_fitted()
        given: list[str] | None = getattr(self, "_component_names", None)
        return component_names(self.components_.shape[0]) if given is None else list(given)

    def top_features(self, k: int = 10) -> list[list[Any]]:
        """The `k` features with the largest weight in every component, largest first: names if there are, else numbers."""
        self._check_fitted()
        return self._named(self.components_, k)

    def markers(self, k: int = 10) -> list[list[Any]]:
        """The `k` features that tell every component best from the others: names if there are, else numbers.

        A feature's share p of the component and q of all others together, weighted by their share of the counts, are
        compared by p log(p / q): what is large everywhere is no marker, nor is what is hardly there.
        """
        self._check_fitted()
        share = getattr(self, "share_", None)
        number = self.components_.shape[0]
        share = np.full(number, 1.0 / max(number, 1)) if share is None else share
        return self._named(specificity(self.components_, share), k)

    def _named(self, values: NDArray[Any], k: int) -> list[list[Any]]:
        order = np.argsort(-values, axis=1, kind="stable")[:, : max(k, 0)]
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return [[int(f) for f in row] for row in order]
        return [[names[f] for f in row] for row in order]

    def to_inference_data(self) -> Any:
        """The chains for ArviZ: InferenceData before its version 1, a DataTree after.

        The posterior has what does not depend on the order of components: n_components, activation (the expected number of counts), reconstruction (the rate at four entries) and
        log_likelihood_total; lp in sample_stats is the log joint.
        """
        self._check_fitted()
        attrs = {"inference_library": "bpnmf", "inference_library_version": _core.__version__}
        return inference_data(self.trace_, self.burn_in_, attrs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted model to one npz file, with the names W, H, S and pi of the command line's model.npz.

        The callback is not written, nor is a `random_state` that is not an int.
        """
        self._check_fitted()
        if self.pi_ is None:
            raise ValueError("only a fitted model can be saved: of components that were given keep their table")
        write_model(path, self)

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """Reads what `save` or the program wrote (a file, or the folder of ``bpnmf fit``). Nothing in it is executed."""
        model: Self = read_model(path, cls)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.allow_nan = self.missing == "nan"
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = str(super().__repr__(N_CHAR_MAX)) if _TAKES_LENGTH else str(super().__repr__())
        if not hasattr(self, "components_"):
            return text
        number = self.components_.shape[0]
        found = f"{number} component{'' if number == 1 else 's'}"
        interval = getattr(self, "n_components_interval_", None)
        if interval is not None:
            found += f" (90 %: {interval[0]} to {interval[1]})"
        return f"{text}: {found}"

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _check_fitted(self) -> None:
        if not hasattr(self, "components_"):
            name = type(self).__name__
            raise NotFittedError(f"This {name} instance is not fitted yet: call fit first")

    def _wishes(self) -> dict[str, Any]:
        """The parameters as the library takes them."""
        forced = _whole("n_components", self.n_components)
        most = _whole("max_components", self.max_components)
        texts = (("preset", self.preset), ("engine", self.engine), ("components_prior", self.components_prior))
        for name, value in texts:
            if not (isinstance(value, str) or (name != "preset" and value is None)):
                raise InvalidParameterError(f"{name} is {value!r}: it must be a string")
        chains = _whole("n_chains", self.n_chains)
        if self.tol is not None and not isinstance(self.tol, (int, float, np.integer, np.floating)):
            raise InvalidParameterError(f"tol is {self.tol!r}: it must be a number or None")
        return {
            "preset": self.preset,
            "engine": self.engine,
            "components": most,
            "forced": forced,
            "iterations": _whole("max_iter", self.max_iter),
            "tolerance": None if self.tol is None else float(self.tol),
            "alpha": _alpha(self.noise),
            "seed": _seed(self.random_state),
            "prior": self._prior(),
            "components_prior": self.components_prior,
            "chains": chains,
            "until_sure": bool(self.until_sure),
            "time_budget": None if self.time_budget is None else str(self.time_budget),
            "threads": _threads(self.n_jobs),
        }

    def _prior(self) -> dict[str, float]:
        if self.prior is None:
            return {}
        given: Mapping[str, Any] = asdict(self.prior) if isinstance(self.prior, Prior) else self.prior
        if not isinstance(given, Mapping):
            raise InvalidParameterError(f"prior is {self.prior!r}: it must be a Prior, a mapping or None")
        return {name: float(value) for name, value in given.items() if value is not None}

    def _watch(self, progress: Progress | None) -> Callable[[dict[str, Any]], bool] | None:
        callback = self.callback
        if callback is None and progress is None:
            return None

        def watch(info: dict[str, Any]) -> bool:
            if progress is not None:
                progress.step(info)
            return callback is None or callback(info) is not False

        return watch

    def _keep(self, found: dict[str, Any], seed: int) -> None:
        self.components_ = np.ascontiguousarray(found["W"].T)
        # Those of components that were given are no names of these.
        self.__dict__.pop("_component_names", None)
        self.activations_ = found["H"].T
        self.inclusion_ = found["S"].T
        self.components_interval_, self.activations_interval_ = found["intervals"] or (None, None)
        self.pi_ = found["pi"]
        self.share_ = found["share"]
        self.usage_ = found["usage"]
        self.evidence_ = found["evidence"]
        self.n_components_ = found["n_components"]
        self.n_components_pmf_ = found["pmf"]
        self.n_components_interval_ = found["interval"]
        self.component_recurrence_ = found["recurrence"]
        self.share_interval_ = found["share_interval"]
        self.trace_ = found["trace"]
        self.burn_in_ = found["burn_in"]
        self.convergence_ = found["convergence"]
        self.n_iter_ = found["iterations"][found["chain"]]
        self.stop_reason_ = found["stop_reason"]
        self.prior_ = {**found["prior"], "components": int(found["prior"]["components"])}
        self.coarsening_ = found["coarsening"]
        self.noise_ = found["noise"]
        self.alpha_ = found["alpha"]
        self.resolution_path_ = found["path"]
        self.engine_ = found["engine"]
        self.seed_ = seed

    def _last_line(self, found: dict[str, Any]) -> str:
        word = "part" if self.n_components_ == 1 else "parts"
        interval = self.n_components_interval_
        sure = "one chain: how sure is not known" if interval is None else f"90 %: {interval[0]} to {interval[1]}"
        if self.n_components is not None:
            sure = "as asked for"
        return (
            f"{self.n_components_} {word} ({sure}) after {self.n_iter_} iterations, "
            f"{found['seconds']:.1f} s, {self.stop_reason_}"
        )

    def _counts(self, X: Any, mask: MaskLike | None) -> _core.Counts:
        counts, shape = counts_of(X, missing=self.missing, mask=mask)
        check_names(self, X, shape[1], False)
        return counts

    def _prior_of_fit(self) -> dict[str, float]:
        return {name: value for name, value in self.prior_.items() if name != "components"}

    def _project(self, X: Any, mask: MaskLike | None) -> dict[str, NDArray[Any]]:
        self._check_fitted()
        return self._projected(self._counts(X, mask))

    def _projected(
        self, counts: _core.Counts, *, draws: int = _DRAWS, keep: bool = False, seed: int | None = None
    ) -> dict[str, NDArray[Any]]:
        if self.pi_ is None:
            raise ValueError(
                "of components alone nobody knows how often they are on: assign(X) learns it; or fit the model"
            )
        return _core.project(
            counts,
            self.components_,
            self.pi_,
            self._prior_of_fit(),
            self.coarsening_,
            self.alpha_,
            seed=self.seed_ if seed is None else seed,
            burn_in=_BURN_IN,
            draws=draws,
            keep=keep,
            threads=_threads(self.n_jobs),
        )


def _warn(sentence: str | None, category: type[Warning] = DataWarning) -> None:
    """Warns whoever called `fit`."""
    if sentence is not None:
        warnings.warn(sentence, category, stacklevel=3)


def _log_likelihood(
    values: Floats,
    activations: Singles,
    weights: Singles,
    samples: NDArray[np.int64],
    features: NDArray[np.int64],
    alpha: float,
) -> float:
    """Log-likelihood of the entries at (samples, features), log x! included."""
    total = 0.0
    # So many at a time that the factors of their rates take some megabytes.
    step = max(1, 2**20 // max(1, len(weights)))
    for at in range(0, len(values), step):
        part = slice(at, at + step)
        h, w = (a.astype(np.float64) for a in (activations[samples[part]], weights[:, features[part]]))
        rate = np.einsum("ik,ki->i", h, w)
        x = values[part]
        if math.isfinite(alpha):
            total += _core.log_likelihood(x, rate, alpha)
            continue
        total += float(np.sum(x * np.log(np.maximum(rate, _LEAST_RATE)) - rate))
    if math.isfinite(alpha):
        return total
    numbers, times = np.unique(values, return_counts=True)
    return total - sum(math.lgamma(x + 1.0) * int(n) for x, n in zip(numbers, times, strict=True))


def _alpha(noise: Any) -> float | None:
    """alpha, None if it is to be learned, infinite for Poisson counts."""
    if isinstance(noise, str):
        named = {"auto": None, "poisson": math.inf}
        if noise in named:
            return named[noise]
    elif isinstance(noise, (int, float, np.integer, np.floating)) and not isinstance(noise, bool):
        if math.isfinite(noise) and noise > 0:
            return float(noise)
    raise ValueError(f'noise is {noise!r}: it must be "auto", "poisson" or a finite number above 0')


def _whole(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise InvalidParameterError(f"{name} is {value!r}: it must be an int or None")
    if value < 1:
        raise ValueError(f"{name} is {value}: it must be at least 1")
    return int(value)


def _threads(n_jobs: int | None) -> int:
    """Threads as scikit-learn counts them: None is one, -1 all, -2 all but one."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)):
        raise InvalidParameterError(f"n_jobs is {n_jobs!r}: it must be an int or None")
    if n_jobs == 0:
        raise ValueError("n_jobs is 0: use -1 for all cores, or None for one")
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))


def _seed(random_state: Any) -> int:
    """A seed of 64 bits: an int is the seed itself, anything else is asked for one."""
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if not 0 <= random_state < 2**64:
            raise ValueError(f"random_state is {random_state}: it must be at least 0 and below 2^64")
        return int(random_state)
    if random_state is None or random_state is np.random:
        return int(np.random.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**63 - 1))
    raise ValueError(f"random_state is {random_state!r}: it must be an int, a RandomState, a Generator or None")
