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


def load(path: str | os.PathLike[str]) -> BetaProcessNMF:
    """A model from a file: what ``BetaProcessNMF.save`` wrote, or the output folder of ``bpnmf fit`` or its model.npz.

    Nothing in the files is executed. Of a folder, ``summary.json``, ``trace.csv`` and ``names.json`` are read, too.
    """
    from ._estimator import BetaProcessNMF

    model: BetaProcessNMF = read_model(path, BetaProcessNMF)
    return model


def read_model(path: str | os.PathLike[str], cls: type[Any]) -> Any:
    """The model in a file that `write_model` wrote, or that the program did."""
    if os.path.isdir(path):
        path = os.path.join(path, "model.npz")
    with np.load(path, allow_pickle=False) as file:
        if "about" not in file:
            if not {"W", "H", "S", "pi"} <= set(file.files):
                raise ValueError(f"{os.fspath(path)}: neither BetaProcessNMF.save nor bpnmf fit has written this")
            return _of_program(os.path.dirname(os.path.abspath(path)), {name: file[name] for name in file.files}, cls)
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


def _of_program(folder: str, arrays: dict[str, Any], cls: type[Any]) -> Any:
    """The model of the program's files in `folder`."""

    def read(name: str) -> Any:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return json.load(file)

    try:
        summary = read("summary.json")
    except FileNotFoundError:
        raise ValueError(f"{folder} has no summary.json: the files of bpnmf fit belong together") from None
    names = read("names.json") if os.path.exists(os.path.join(folder, "names.json")) else {}
    parts, alpha = summary["components"], summary["alpha"]
    model = cls(random_state=summary["seed"], preset=summary["preset"])
    model.components_ = np.ascontiguousarray(arrays["W"].T)
    model.activations_, model.inclusion_, model.pi_ = arrays["H"].T, arrays["S"].T, arrays["pi"]

    def column(name: str) -> Any:
        values = [part[name] for part in parts]
        return None if not values or any(value is None for value in values) else np.asarray(values, dtype=np.float64)

    model.share_ = np.asarray([part["share"] for part in parts], dtype=np.float64)
    model.usage_ = np.asarray([part["usage"] for part in parts], dtype=np.float64)
    model.evidence_, model.component_recurrence_ = column("evidence"), column("recurrence")
    unknown = (math.nan, math.nan)
    shares = [unknown if part["share_interval"] is None else part["share_interval"] for part in parts]
    model.share_interval_ = None if model.component_recurrence_ is None else np.asarray(shares)
    for name, ends in (("components_interval_", ("W_low", "W_high")), ("activations_interval_", ("H_low", "H_high"))):
        known = all(end in arrays for end in ends)
        setattr(model, name, np.stack([arrays[end].T for end in ends]) if known else None)
    model.n_components_ = summary["n_components"]
    pmf, interval = summary["n_components_pmf"], summary["n_components_interval"]
    model.n_components_pmf_ = None if pmf is None else {int(number): share for number, share in pmf}
    model.n_components_interval_ = None if interval is None else tuple(interval)
    model.resolution_path_ = [(at["coarsening"], at["n_components"]) for at in summary["resolution_path"]]
    model.convergence_ = {found["name"]: (found["r_hat"], found["ess"]) for found in summary["convergence"]}
    model.prior_ = {name: value for name, value in summary["prior"].items() if name != "number"}
    model.coarsening_, model.noise_ = summary["coarsening"], summary["noise"]
    model.alpha_ = math.inf if alpha is None else alpha
    model.engine_, model.seed_ = summary["method"], summary["seed"]
    model.n_iter_, model.stop_reason_ = summary["iterations"], summary["stop_reason"]
    model.n_features_in_ = arrays["W"].shape[0]
    if names.get("features") is not None:
        model.feature_names_in_ = np.asarray(names["features"], dtype=object)
    rows = np.genfromtxt(os.path.join(folder, "trace.csv"), delimiter=",", names=True, ndmin=1)
    rows = rows[rows["iteration"] > 0]
    moves = ("births", "births_accepted", "deaths", "deaths_accepted")
    whole = ("chain", "iteration", "active", "n_components", "on_anywhere", "sites_on", *moves)
    wanted = (*whole, "log_likelihood", "log_joint", "activation", "seconds", *(f"reconstruction_{i}" for i in range(1, 5)))
    model.trace_ = {name: rows[name].astype(np.int64) if name in whole else rows[name] for name in wanted}
    # Python counts from 0.
    model.trace_["chain"] = model.trace_["chain"] - 1
    model.burn_in_ = summary["burn_in"]
    return model


def _number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written")
