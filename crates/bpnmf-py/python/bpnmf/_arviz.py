"""The chains as ArviZ reads them, before its version 1 and after."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def inference_data(trace: dict[str, NDArray[Any]], burn_in: list[int], attrs: dict[str, Any]) -> Any:
    """What every iteration after the burn-in says: chain x draw."""
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_inference_data needs ArviZ: pip install arviz") from error
    kept = [np.flatnonzero(trace["chain"] == chain)[first:] for chain, first in enumerate(burn_in)]
    draws = min(len(rows) for rows in kept)
    rows = np.stack([rows[len(rows) - draws :] for rows in kept])
    probes = sorted(name for name in trace if name.startswith("reconstruction_"))
    posterior = {
        "n_components": trace["n_components"][rows],
        "activation": trace["activation"][rows],
        "reconstruction": np.stack([trace[name][rows] for name in probes], axis=-1),
        "log_likelihood_total": trace["log_likelihood"][rows],
    }
    stats = {"lp": trace["log_joint"][rows], "sites_on": trace["sites_on"][rows]}
    dims = {"reconstruction": ["entry"]}
    coords = {"entry": np.arange(1, len(probes) + 1)}
    if int(arviz.__version__.split(".")[0]) >= 1:
        groups = {"posterior": posterior, "sample_stats": stats}
        data = arviz.from_dict(groups, dims=dims, coords=coords)
        data["posterior"].attrs.update(attrs)
        return data
    data = arviz.from_dict(posterior=posterior, sample_stats=stats, dims=dims, coords=coords)
    data.posterior.attrs.update(attrs)
    return data
