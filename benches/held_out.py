"""How well counts that were set aside are predicted: bpnmf, which is not told K, against scikit-learn's KL-NMF at every K.

    ./run held-out [--seed N] [--sets NAME ...]

A tenth of every count is set aside at random (binomial thinning), so that what is left and what is set aside are independent
Poisson counts with 9/10 and 1/10 of the rate. Prints the log-likelihood of what was set aside, a count: differences of 0.001
are 1 nat a thousand counts. The best K of KL-NMF is chosen by the very counts that were set aside, which favours it.
"""

import argparse
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from scipy.special import gammaln
from sklearn.decomposition import NMF

SETS = ["grid_10_1_50", "grid_10_1_300", "low_rank_50", "low_rank_300"]
RANKS = range(6, 17)
INITS = ["nndsvda", "random"]
SHARE = 0.1
# KL-NMF can set a rate to zero where a count was set aside, which is a likelihood of zero.
LEAST_RATE = 1e-9


def thinned(counts, seed):
    """What is left and what is set aside, F x T."""
    aside = np.random.default_rng(seed).binomial(counts.astype(np.int64), SHARE)
    return counts - aside, aside


def score(rate, aside):
    """The log-likelihood of what was set aside, a count. `rate` is that of what is left, F x T."""
    rate = np.maximum(rate * SHARE / (1 - SHARE), LEAST_RATE)
    return (aside * np.log(rate) - rate - gammaln(aside + 1)).sum() / aside.sum()


def bpnmf(program, left, seed, folder):
    """K and the rate."""
    np.save(folder / "left.npy", left)
    words = ["fit", folder / "left.npy", "--seed", str(seed), "--chains", "1", "--quiet", "--out", folder / "result"]
    subprocess.run([program, *words], check=True)
    with np.load(folder / "result" / "model.npz") as model:
        return model["W"].shape[1], model["W"].astype(float) @ model["H"]


def kl_nmf(left, rank, init, seed):
    """The rate."""
    model = NMF(rank, init=init, solver="mu", beta_loss="kullback-leibler", max_iter=2000, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 2000 iterations are enough or they are not: the table says how good it is
        return model.fit_transform(left) @ model.components_


def row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", help="the program of the experiments, which writes the data")
    parser.add_argument("bpnmf", help="the program bpnmf")
    parser.add_argument("--seed", type=int, default=1, help="of data, thinning and fits [default: 1]")
    parser.add_argument("--sets", nargs="+", default=SETS, help="names of `rank dump` [default: %(default)s]")
    args = parser.parse_args()
    row("data", "method", "K", "held out, a count", "below the best", *(f"K = {rank}" for rank in RANKS))
    row(*["---"] * (5 + len(RANKS)))
    for name in args.sets:
        with tempfile.TemporaryDirectory(prefix="bpnmf-held-out-") as folder:
            folder = Path(folder)
            dump = [args.experiments, "rank", "dump", name, str(args.seed), folder / "data.npy"]
            subprocess.run(dump, check=True, stdout=subprocess.DEVNULL)
            left, aside = thinned(np.load(folder / "data.npy"), args.seed)
            components, rate = bpnmf(args.bpnmf, left, args.seed, folder)
        scans = {init: [score(kl_nmf(left, rank, init, args.seed), aside) for rank in RANKS] for init in INITS}
        ours = score(rate, aside)
        best = max(ours, *(max(scan) for scan in scans.values()))
        row(name, "bpnmf", str(components), f"{ours:.4f}", f"{best - ours:.4f}", *[""] * len(RANKS))
        for init, scan in scans.items():
            at = int(np.argmax(scan))
            told = [f"{value:.4f}" for value in scan]
            row(name, f"KL-NMF, {init}", f"{RANKS[at]}, the best", told[at], f"{best - scan[at]:.4f}", *told)


if __name__ == "__main__":
    sys.exit(main())
