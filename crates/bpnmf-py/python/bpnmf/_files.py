"""A fitted model in one npz file: arrays as arrays, the rest as JSON. Nothing in it is executed when it is read."""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core

if TYPE_CHECKING:
    from ._estimator import BetaProcessNMF

_FORMAT = 2
_PLAIN = (
    "n_components_",
    "burn_in_",
    "n_iter_",
    "stop_reason_",
    "prior_",
    "coarsening_",
    "noise_",
    "engine_",
    "seed_",
    "n_features_in_",
)
_OPTIONAL = ("evidence_", "component_recurrence_", "share_interval_", "components_interval_", "activations_interval_")


def write_model(path: str | os.PathLike[str], model: BetaProcessNMF) -> None:
    """Writes a fitted model; the file appears when it is complete."""
    params = model.get_params(deep=False)
    params.pop("callback", None)
    if not isinstance(params["random_state"], (int, np.integer)):
        params["random_state"] = None
    if params["prior"] is not None and not isinstance(params["prior"], dict):
        prior = params["prior"]
        params["prior"] = dict(prior) if hasattr(prior, "keys") else {k: v for k, v in vars(prior).items() if v is not None}
    names = getattr(model, "feature_names_in_", None)
    facts: dict[str, Any] = {name: getattr(model, name) for name in _PLAIN}
    about = {
        "format": _FORMAT,
        "version": _core.__version__,
        "params": params,
        "facts": facts,
        "pmf": None if model.n_components_pmf_ is None else sorted(model.n_components_pmf_.items()),
        "interval": model.n_components_interval_,
        "path": model.resolution_path_,
        "convergence": model.convergence_,
        # JSON has no infinity.
        "alpha": model.alpha_ if math.isfinite(model.alpha_) else None,
        "feature_names": None if names is None else list(names),
    }
    arrays = {
        "W": np.ascontiguousarray(model.components_.T),
        "H": np.ascontiguousarray(model.activations_.T),
        "S": np.ascontiguousarray(model.inclusion_.T),
        "pi": model.pi_,
        "share": model.share_,
        "usage": model.usage_,
    }
    for name in _OPTIONAL:
        if (array := getattr(model, name)) is not None:
            arrays[name.strip("_")] = array
    arrays.update({f"trace_{name}": column for name, column in model.trace_.items()})
    text = json.dumps(about, default=_number).encode()
    target = os.fspath(path)
    partial = f"{target}.{os.getpid()}.part"
    try:
        with open(partial, "wb") as file:
            np.savez(file, about=np.frombuffer(text, dtype=np.uint8), **arrays)  # type: ignore[arg-type, unused-ignore]
        os.replace(partial, target)
    finally:
        if os.path.exists(partial):
            os.remove(partial)


def read_model(path: str | os.PathLike[str], cls: type[Any]) -> Any:
    """The model in a file that `write_model` wrote."""
    with np.load(path, allow_pickle=False) as file:
        if "about" not in file:
            raise ValueError(f"{os.fspath(path)}: this was not written by BetaProcessNMF.save")
        about = json.loads(file["about"].tobytes())
        if about["format"] > _FORMAT:
            raise ValueError(f"{os.fspath(path)}: format {about['format']} is newer than this version of bpnmf")
        arrays = {name: file[name] for name in file.files if name != "about"}
    model = cls(**about["params"])
    # What was written before there was noise is of Poisson counts.
    model.noise_ = "poisson"
    model.alpha_ = math.inf if about.get("alpha") is None else about["alpha"]
    for name, value in about["facts"].items():
        setattr(model, name, value)
    model.components_ = np.ascontiguousarray(arrays["W"].T)
    model.activations_, model.inclusion_ = arrays["H"].T, arrays["S"].T
    model.pi_, model.share_, model.usage_ = arrays["pi"], arrays["share"], arrays["usage"]
    for name in _OPTIONAL:
        setattr(model, name, arrays.get(name.strip("_")))
    pmf, interval = about["pmf"], about["interval"]
    model.n_components_pmf_ = None if pmf is None else {int(number): share for number, share in pmf}
    model.n_components_interval_ = None if interval is None else tuple(interval)
    model.resolution_path_ = [tuple(at) for at in about["path"]]
    model.convergence_ = {name: tuple(pair) for name, pair in about["convergence"].items()}
    prefix = "trace_"
    model.trace_ = {name[len(prefix) :]: column for name, column in arrays.items() if name.startswith(prefix)}
    # Format 1 has no numbers of components but those that are on.
    model.trace_.setdefault("n_components", model.trace_["active"])
    if about["feature_names"] is not None:
        model.feature_names_in_ = np.asarray(about["feature_names"], dtype=object)
    return model


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written")
