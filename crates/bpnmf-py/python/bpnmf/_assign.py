"""What known components do in samples, and which features are special to a component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, repr=False)
class Assignment:
    """Exposures of samples on known components.

    Attributes
    ----------
    exposures : array or frame of shape (n_samples, n_components)
        The counts that are expected of each component, posterior mean. A pandas frame if X was one, else an array.
    exposures_low, exposures_high : the same
        The ends of 90 % intervals.
    inclusion : the same
        The probability that a component is present.
    present_from : float
        The probability from which on a component is best said to be present: where the expected F1 of all that is said is
        largest. At most 0.5.
    log_likelihood : ndarray of shape (n_samples,)
        Of the counts at the mean exposures.
    alpha : float
        How the counts scatter, with the variance rate + rate^2 / alpha; infinite for Poisson counts.
    pi : ndarray of shape (n_components,)
        How often a component is on, as it was used.
    component_names : list of str
    """

    exposures: Any
    exposures_low: Any
    exposures_high: Any
    inclusion: Any
    present_from: float
    log_likelihood: NDArray[np.float64]
    alpha: float
    pi: NDArray[np.float64]
    component_names: list[str]

    def __repr__(self) -> str:
        samples, components = self.exposures.shape
        present = int((np.asarray(self.inclusion) >= self.present_from).any(axis=0).sum())
        return f"Assignment({samples} samples, {present} of {components} components present)"


def framed(X: Any, values: NDArray[Any], names: list[str]) -> Any:
    """`values` as a frame with the index of X, if that is a pandas frame or an AnnData, else as they are."""
    index = getattr(X, "obs_names", None)
    if index is None and hasattr(X, "index") and hasattr(X, "columns"):
        index = X.index
    if index is None:
        return values
    import pandas

    return pandas.DataFrame(values, index=index, columns=names)


def component_names(number: int) -> list[str]:
    """C1, C2, ... with zeros in front, as the program names them."""
    width = len(str(number))
    return [f"C{k + 1:0{width}d}" for k in range(number)]


def specificity(components: NDArray[Any], share: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much each feature tells a component from all others, of shape (n_components, n_features), in nats.

    With p the shares of the features in a component and q those in all the others together, weighted by their shares of the
    counts: p log(p / q), which adds up to the divergence of the component from the others. A feature that is large
    everywhere has little, and so has one that is hardly there.
    """
    number, features = components.shape
    p: NDArray[np.float64] = components / np.maximum(components.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    if number < 2:
        return p
    weighted = p * share[:, None]
    others = weighted.sum(axis=0) - weighted
    q = others / np.maximum(1.0 - share[:, None], np.finfo(float).tiny)
    # No feature is so special that a millionth of an even share elsewhere would not say so.
    q = np.maximum(q, 1e-6 / features)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(p > 0, p * np.log(p / q), 0.0)
    return np.asarray(found)
