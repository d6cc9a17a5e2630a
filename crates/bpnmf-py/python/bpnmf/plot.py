"""Pictures of a fitted model; every function gives a figure. They need matplotlib, asked for only when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from ._estimator import BetaProcessNMF

__all__ = ["activations", "components", "n_components", "signatures", "trace"]

# Up to so many features a component is drawn with a bar for each, and with the name of each; of more, the largest by name.
_MOST_BARS = 120
_MOST_NAMES = 40

_INK = "#2f5d8a"
_FAINT = "#b8c4d0"


def components(
    model: BetaProcessNMF,
    *,
    image_shape: tuple[int, int] | None = None,
    positions: ArrayLike | None = None,
    names: Sequence[object] | None = None,
    top: int = 10,
    limit: int = 24,
    figure: Figure | None = None,
) -> Figure:
    """What the components look like, largest share first.

    Parameters
    ----------
    model : a fitted BetaProcessNMF
    image_shape : (rows, columns), optional
        The features are the pixels of an image of this shape. Every component has colours of its own.
    positions : array of shape (n_features,), optional
        The features are points of an axis, frequencies for example: components are drawn as curves over it.
    names : sequence of str, optional
        Names of the features. None: those of the frame that was fitted.
    top : int
        With many named features: how many of the largest are shown.
    limit : int
        The most components that are drawn.
    figure : matplotlib Figure, optional
        Where to draw. None: a new one.

    Returns
    -------
    figure : matplotlib Figure
    """
    weights = _fitted(model)
    number = _how_many(weights, limit)
    if image_shape is not None and image_shape[0] * image_shape[1] != weights.shape[1]:
        raise ValueError(f"image_shape is {image_shape}: its pixels must be the {weights.shape[1]} features")
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    if names is not None and len(names) != weights.shape[1]:
        raise ValueError(f"{len(names)} names for {weights.shape[1]} features")
    by_name = names is not None and weights.shape[1] > _MOST_BARS and image_shape is None and positions is None
    if image_shape is not None:
        wide, size = min(number, 8), (1.25, 1.45)
    elif by_name:
        wide, size = min(number, 4), (2.9, 0.5 + 0.19 * top)
    else:
        wide, size = min(number, 2), (5.0, 1.8 if names is not None and positions is None else 1.3)
    axes = _grid(number, wide, size, figure)
    for k, axis in enumerate(axes):
        axis.set_title(_title(model, k), fontsize=9, loc="left")
        row = weights[k]
        if image_shape is not None:
            axis.imshow(row.reshape(image_shape), cmap="magma", interpolation="nearest")
            axis.set_axis_off()
        elif positions is not None:
            axis.fill_between(np.asarray(positions, dtype=float), row, color=_INK, linewidth=0)
            _plain(axis)
        elif by_name:
            assert names is not None
            order = np.argsort(-row, kind="stable")[:top]
            axis.barh(np.arange(len(order)), row[order], color=_INK)
            axis.set_yticks(np.arange(len(order)), [str(names[f]) for f in order], fontsize=8)
            axis.invert_yaxis()
            axis.set_xticks([])
            _plain(axis)
        else:
            axis.bar(np.arange(len(row)), row, width=0.9, color=_INK)
            _plain(axis)
            if names is not None and len(row) <= _MOST_NAMES:
                axis.set_xticks(np.arange(len(row)), [str(name) for name in names], rotation=90, fontsize=7)
            elif names is not None:
                _name_the_largest(axis, row, names)
    return _done(axes, len(weights) - number)


def signatures(
    model: BetaProcessNMF,
    *,
    names: Sequence[str] | None = None,
    limit: int = 24,
    figure: Figure | None = None,
) -> Figure:
    """Mutational signatures as their field draws them: shares of all types of mutations with 90 % intervals.

    Parameters
    ----------
    model : a fitted BetaProcessNMF
        Its features are all 96 substitutions in their context (A[C>A]A, or C>A:ACA) or all 83 insertions and deletions
        (DEL:C:1:0, or 1:Del:C:0), in any order.
    names : sequence of str, optional
        Names of the features. None: those of the frame that was fitted.
    limit : int
        The most signatures that are drawn.
    figure : matplotlib Figure, optional
        Where to draw. None: a new one.
    """
    weights = _fitted(model)
    number = _how_many(weights, limit)
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise ValueError("the features have no names: give the types of mutations with names=")
    if len(names) != weights.shape[1]:
        raise ValueError(f"{len(names)} names for {weights.shape[1]} features")
    found = _core.channels([str(name) for name in names])
    if found is None:
        raise ValueError(
            f"the features are neither the 96 substitutions nor the 83 insertions and deletions, {str(names[0])!r} is one: "
            "plot.components draws any features"
        )
    order, labels, groups = found
    colours = [colour for _, colour, size in groups for _ in range(size)]
    sums = weights.sum(axis=1)
    intervals = getattr(model, "components_interval_", None)
    axes = _grid(number, 1, (11.0, 1.9), figure)
    places = np.arange(len(order))
    for k, axis in enumerate(axes):
        shares = 100 * weights[k][order] / sums[k]
        axis.bar(places, shares, width=0.7, color=colours)
        most = float(shares.max())
        if intervals is not None:
            low, high = (100 * np.asarray(end[k], dtype=float)[order] / sums[k] for end in intervals)
            ends = np.maximum([shares - low, high - shares], 0.0)
            axis.errorbar(places, shares, yerr=ends, fmt="none", ecolor="#444444", elinewidth=0.7)
            most = max(most, float(high.max()))
        axis.set_ylim(0, 1.25 * most)
        at = 0
        for name, colour, size in groups:
            axis.axvspan(at - 0.5, at + size - 0.5, ymin=0.94, color=colour, linewidth=0)
            if len(groups) <= 6:
                axis.text(at + size / 2 - 0.5, 1.17 * most, name, ha="center", va="top", fontsize=8, transform=axis.transData)
            at += size
        axis.set_title(_title(model, k), fontsize=9, loc="left")
        axis.set_xlim(-0.7, len(order) - 0.3)
        axis.set_ylabel("%", fontsize=8)
        _plain(axis)
        axis.set_xticks([])
    axes[-1].set_xticks(places, labels, rotation=90, fontsize=5, family="monospace")
    return _done(axes, len(weights) - number)


def activations(
    model: BetaProcessNMF,
    H: ArrayLike | None = None,
    *,
    positions: ArrayLike | None = None,
    order: ArrayLike | None = None,
    figure: Figure | None = None,
) -> Figure:
    """When each component is on, and how strongly: a row a component, a column a sample.

    Parameters
    ----------
    model : a fitted BetaProcessNMF
    H : array of shape (n_samples, n_components), optional
        Activations as `transform` gives them. None: those of the fit.
    positions : array of shape (n_samples,), optional
        Where the samples stand, at equal distances: times for example.
    order : array of shape (n_samples,), optional
        The samples are drawn in the order ``np.argsort(order)``, labels for example.
    figure : matplotlib Figure, optional
        Where to draw. None: a new one.
    """
    weights = _fitted(model)
    if len(weights) == 0:
        raise ValueError("there is nothing to draw: the model has no component")
    given = np.asarray(model.activations_ if H is None else H, dtype=float)
    if given.ndim != 2 or given.shape[1] != len(weights):
        raise ValueError(f"H has shape {given.shape}: (n_samples, {len(weights)}) is needed")
    # Expected counts: W has a scale of its own in every component.
    counts = given * weights.sum(axis=1)
    if order is not None:
        if positions is not None:
            raise ValueError("positions and order both say where samples stand: give one of them")
        counts = counts[np.argsort(np.asarray(order), kind="stable")]
    (axis,) = _grid(1, 1, (8.0, max(1.6, 0.8 + 0.22 * len(weights))), figure)
    first, last, half = 1.0, float(len(counts)), 0.5
    if positions is not None:
        points = np.asarray(positions, dtype=float)
        if points.shape != (len(counts),):
            raise ValueError(f"positions has shape {points.shape}: ({len(counts)},) is needed, one for each sample")
        first, last = float(points[0]), float(points[-1])
        half = (last - first) / (2 * max(len(counts) - 1, 1)) or 0.5
    extent = (first - half, last + half, len(weights) + 0.5, 0.5)
    image = axis.imshow(
        np.sqrt(counts.T), aspect="auto", cmap="magma", interpolation="nearest", extent=extent
    )
    axis.set_ylabel("component")
    axis.set_xlabel("position" if positions is not None else "sample")
    axis.set_yticks(np.arange(1, len(weights) + 1), model.component_names_)
    if len(weights) > 40:
        _whole_numbers(axis.yaxis)
    bar = axis.figure.colorbar(image, ax=axis, pad=0.01)
    ticks = np.linspace(0.0, float(np.sqrt(counts.max(initial=0.0))), 4)
    digits = 0 if ticks[-1] > 5 else 2
    bar.set_ticks(list(ticks), labels=[f"{tick**2:,.{digits}f}" for tick in ticks])
    bar.set_label("expected counts")
    return _done([axis])


def n_components(model: BetaProcessNMF, *, ax: Axes | None = None, figure: Figure | None = None) -> Figure:
    """How frequent each number of components is over all chains; the 90 % interval is dark. With `ax` into these axes."""
    _fitted(model)
    if model.n_components_pmf_ is None or model.n_components_interval_ is None:
        raise ValueError("there is nothing to draw: only several chains that find the number tell how sure it is")
    axis = _grid(1, 1, (4.0, 2.6), figure)[0] if ax is None else ax
    numbers = sorted(model.n_components_pmf_)
    least, most = model.n_components_interval_
    colours = [_INK if least <= number <= most else _FAINT for number in numbers]
    axis.bar(numbers, [model.n_components_pmf_[number] for number in numbers], color=colours)
    middle = model.n_components_
    _plain(axis)
    axis.set_xlim(min([*numbers, middle - 2]) - 0.8, max([*numbers, middle + 2]) + 0.8)
    axis.set_ylim(0, 1)
    _whole_numbers(axis.xaxis)
    axis.set_xlabel("number of components")
    axis.set_ylabel("probability")
    return _done([axis])


def trace(model: BetaProcessNMF, *, figure: Figure | None = None) -> Figure:
    """The log joint and the number of components by iteration, a line a chain; what was burnt in is faint."""
    _fitted(model)
    columns = model.trace_
    axes = _grid(2, 1, (7.0, 1.8), figure)
    for axis, name, label in zip(axes, ("log_joint", "n_components"), ("log joint", "components"), strict=True):
        for chain, burn_in in zip(np.unique(columns["chain"]), model.burn_in_, strict=True):
            rows = columns["chain"] == chain
            x, y = columns["iteration"][rows], np.asarray(columns[name][rows], dtype=float)
            axis.plot(x[: burn_in + 1], y[: burn_in + 1], color=_FAINT, linewidth=1)
            axis.plot(x[burn_in:], y[burn_in:], linewidth=1.2)
        axis.set_ylabel(label)
        _plain(axis)
    numbers = columns["n_components"]
    axes[1].set_ylim(numbers.min() - 1.2, numbers.max() + 1.2)
    _whole_numbers(axes[1].yaxis)
    axes[1].set_xlabel("iteration")
    return _done(axes)


def _fitted(model: BetaProcessNMF) -> NDArray[np.float64]:
    model._check_fitted()
    return np.asarray(model.components_, dtype=np.float64)


def _how_many(weights: NDArray[np.float64], limit: int) -> int:
    """How many components are drawn."""
    number = min(len(weights), limit)
    if number < 1:
        why = f"limit is {limit}" if len(weights) > 0 else "the model has no component"
        raise ValueError(f"there is nothing to draw: {why}")
    return number


def _title(model: BetaProcessNMF, k: int) -> str:
    """The name of a component, and its share of the counts if it is known."""
    share = getattr(model, "share_", None)
    return model.component_names_[k] + ("" if share is None else f": {100 * share[k]:.1f} %")


def _grid(number: int, wide: int, size: tuple[float, float], figure: Figure | None) -> list[Axes]:
    """Axes for `number` pictures, `wide` in a row."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("bpnmf.plot needs matplotlib: pip install matplotlib") from error
    wide = max(wide, 1)
    high = max(1, -(-number // wide))
    if figure is None:
        figure = pyplot.figure(figsize=(wide * size[0], high * size[1] + 0.3), layout="constrained")
    axes: Any = figure.subplots(high, wide, squeeze=False)
    flat = list(axes.ravel())
    for unused in flat[number:]:
        unused.remove()
    return flat[:number]


def _name_the_largest(axis: Axes, row: NDArray[np.float64], names: Sequence[object]) -> None:
    """Writes the names of up to four of the largest bars over them, as far as there is room between them."""
    named: list[int] = []
    for f in np.argsort(-row, kind="stable")[:8]:
        if len(named) < 4 and all(abs(f - other) > 0.13 * len(row) for other in named):
            named.append(int(f))
            side = "left" if f < 0.05 * len(row) else "right" if f > 0.95 * len(row) else "center"
            axis.annotate(str(names[f]), (float(f), float(row[f])), ha=side, va="bottom", fontsize=7)
    axis.margins(y=0.18)


def _whole_numbers(axis: Axis) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))


def _plain(axis: Axes) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8)
    axis.margins(x=0.01)


def _done(axes: list[Axes], left_out: int = 0) -> Figure:
    figure: Figure = axes[0].figure  # type: ignore[assignment, unused-ignore]
    if left_out > 0:
        figure.supxlabel(f"{left_out} smaller components are not shown", fontsize=9)
    return figure
