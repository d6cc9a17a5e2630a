"""Data whose parts are known."""

import os
import pathlib
import shutil

import numpy as np
import pytest


@pytest.fixture(scope="session")
def counts():
    """200 samples of 30 features made of 4 parts."""
    rng = np.random.default_rng(1)
    dictionary = rng.gamma(0.3, 20.0, (4, 30))
    activations = rng.gamma(2.0, 1.0, (200, 4)) * (rng.random((200, 4)) < 0.5)
    return rng.poisson(activations @ dictionary)


@pytest.fixture(scope="session")
def model(counts):
    from bpnmf import BetaProcessNMF

    return BetaProcessNMF(random_state=3).fit(counts)


@pytest.fixture(scope="session")
def program():
    """The command line program."""
    root = pathlib.Path(__file__).parents[3]
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    found = os.environ.get("BPNMF_PROGRAM") or shutil.which(str(target / "release" / "bpnmf"))
    if not found:
        pytest.skip("the program is not built: cargo build --release -p bpnmf-cli")
    return found
