"""AnnData in and out, in one call."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from . import _core
from ._assign import specificity
from ._estimator import BetaProcessNMF


def fit_anndata(
    adata: Any,
    *,
    layer: str | None = None,
    key: str = "bpnmf",
    n_markers: int = 50,
    copy: bool = False,
    **params: Any,
) -> Any:
    """Finds the gene programs of an AnnData, and writes them into it.

    Parameters
    ----------
    adata : AnnData
        Cells x genes, raw counts.
    layer : str, optional
        The layer that has the counts. None: "counts" if there is one, else X.
    key : str, default="bpnmf"
        The names under which results are written begin with it.
    n_markers : int, default=50
        Markers of each component.
    copy : bool, default=False
        Whether to write into a copy, which is returned.
    **params
        Parameters of `BetaProcessNMF`.

    Returns
    -------
    adata : AnnData or None
        With `copy`; else None, as scanpy has it.

    Notes
    -----
    What is written, for the key "bpnmf":

    - ``obsm["X_bpnmf"]``: cells x components, the counts that are expected of each; ``sc.pp.neighbors(adata,
      use_rep="X_bpnmf")`` takes it.
    - ``obsm["bpnmf_inclusion"]``: the probability that a component is on in a cell.
    - ``varm["bpnmf"]``: genes x components, what each component looks like; columns add up to 1.
    - ``uns["bpnmf"]``: ``n_components``, its 90 % interval, ``component_names``, ``share``, ``usage``, ``recurrence``,
      ``params``, and ``markers``, a frame with component, rank, feature, weight and specificity.
    """
    import pandas

    target = adata.copy() if copy else adata
    if layer is None and "counts" in target.layers:
        layer = "counts"
    if layer is not None and layer not in target.layers:
        there = ", ".join(map(repr, target.layers)) or "none"
        raise ValueError(f"layer is {layer!r}: adata has {there}")
    counts = target.X if layer is None else target.layers[layer]
    if counts is None:
        raise ValueError("adata has no X: name the layer with the raw counts")
    seen = SimpleNamespace(X=counts, var_names=target.var_names, obs_names=target.obs_names)
    model = BetaProcessNMF(**params).fit(seen)
    scale = model.components_.sum(axis=1, dtype=np.float64)
    names = model.component_names_
    target.obsm[f"X_{key}"] = (model.activations_ * scale).astype(np.float32)
    target.obsm[f"{key}_inclusion"] = np.asarray(model.inclusion_)
    target.varm[key] = np.ascontiguousarray((model.components_ / scale[:, None]).T.astype(np.float32))
    special = specificity(model.components_, model.share_)
    rows = [
        (names[k], rank + 1, str(model.feature_names_in_[f]), float(target.varm[key][f, k]), float(special[k, f]))
        for k in range(len(names))
        for rank, f in enumerate(np.argsort(-special[k], kind="stable")[:n_markers])
    ]
    interval = model.n_components_interval_
    about: dict[str, Any] = {
        "n_components": model.n_components_,
        "component_names": np.asarray(names, dtype=object),
        "share": model.share_,
        "usage": model.usage_,
        "markers": pandas.DataFrame(rows, columns=["component", "rank", "feature", "weight", "specificity"]),
        "params": {name: value for name, value in params.items() if isinstance(value, (int, float, str))},
        "layer": "X" if layer is None else layer,
        "version": _core.__version__,
    }
    if interval is not None:
        about["n_components_interval"] = np.asarray(interval)
    if model.component_recurrence_ is not None:
        about["recurrence"] = model.component_recurrence_
    target.uns[key] = about
    return target if copy else None
