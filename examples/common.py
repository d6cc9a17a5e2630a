"""What the examples share: their arguments, where the data are, and how predictions are judged."""

import argparse
import os
import pathlib
import sys
import warnings

import numpy as np
from scipy import sparse

# A rate of zero where there is a count would be infinitely bad: no rate counts as less than this part of the mean count.
# The smaller it is, the worse for methods that are too sure that nothing can be somewhere.
LEAST = 0.01


def arguments(about):
    """--quick and --pictures DIR."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="less data, a few seconds")
    parser.add_argument("--pictures", metavar="DIR", type=pathlib.Path, help="draw pictures (needs matplotlib)")
    given = parser.parse_args()
    if given.quick:
        warnings.filterwarnings("ignore", message="Maximum number of iterations")
    if given.pictures:
        given.pictures.mkdir(parents=True, exist_ok=True)
        import matplotlib

        matplotlib.use("Agg")
    return given


def data(name, needed=True):
    """The folder of a data set: below $BPNMF_DATA, or ../shared/data. Without it there is nothing to do, or None."""
    root = pathlib.Path(__file__).parents[1]
    folder = pathlib.Path(os.environ.get("BPNMF_DATA", root / "../shared/data")) / name
    if folder.is_dir():
        return folder
    if needed:
        print(f"no data: {name} is not here, BPNMF_DATA says where it is")
        sys.exit(0)
    return None


def sureness(model):
    """How sure the number of components is, in words."""
    if model.n_components_interval_ is None:
        return "one chain: how sure is not known"
    least, most = model.n_components_interval_
    return f"90 %: {least} to {most}"


def save(figure, folder, name):
    """Writes a picture into `folder`, if there is one."""
    figure.savefig(folder / name, dpi=80)
    print(f"  drawn: {folder / name}")


def halves(X, seed=0):
    """Every count is thrown into one of two halves: independent Poisson counts with the same rates."""
    X = sparse.csr_array(X)
    one, other = X.copy(), X.copy()
    one.data = np.random.default_rng(seed).binomial(X.data.astype(np.int64), 0.5)
    other.data = X.data.astype(np.int64) - one.data
    one.eliminate_zeros()
    other.eliminate_zeros()
    return one, other


def divergence(X, activations, components):
    """Generalised Kullback-Leibler divergence of the counts X from activations @ components, mean over samples."""
    X = sparse.coo_array(X)
    x, (rows, columns) = X.data.astype(float), X.coords
    known = x > 0
    x, rows, columns = x[known], rows[known], columns[known]
    rate = np.concatenate([
        np.einsum("ik,ki->i", activations[rows[at : at + 100_000]], components[:, columns[at : at + 100_000]])
        for at in range(0, len(x), 100_000)
    ])
    expected = (activations @ components.sum(axis=1)).sum()
    least = LEAST * x.sum() / (X.shape[0] * X.shape[1])
    return (np.sum(x * np.log(x / np.maximum(rate, least))) - x.sum() + expected) / X.shape[0]
