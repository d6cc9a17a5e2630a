"""Every engine on the same data, beside KL-NMF and latent Dirichlet allocation, and the claims of the paper.

    ./run compare [--seed N] [--data NAME ...] [--out FILE]

A tenth of every count is set aside at random (binomial thinning), so that what is left and what is set aside are independent
Poisson counts with 9/10 and 1/10 of the rate; engines and peers are fitted to what is left, one chain on one thread. Writes a
document: components, the log-likelihood of what was set aside, seconds. Data that are not there are skipped.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
import wave
from pathlib import Path

import numpy as np
from scipy.io import mmread
from scipy.signal import stft
from scipy.special import gammaln
from sklearn.decomposition import NMF, LatentDirichletAllocation

SHARE = 0.1
# KL-NMF can set a rate to zero where a count was set aside, which is a likelihood of zero.
LEAST_RATE = 1e-9

ENGINES = {
    "`gibbs`": "--engine gibbs",
    "`map`": "--engine map",
    "`ssmf`": "--engine ssmf",
    "`ssmf --gradient full`": "--engine ssmf --gradient full",
    "`nb-process`": "--engine nb-process -k 50 -n 300",
    "`ssmf`, as printed": "--preset paper --engine ssmf --no-stop",
    "`gibbs-expected`, as printed": "--preset paper --engine gibbs-expected --no-stop",
}


def place():
    return Path(os.environ.get("BPNMF_DATA", "../shared/data"))


def thinned(counts, seed):
    """What is left and what is set aside, F x T."""
    aside = np.random.default_rng(seed).binomial(counts.astype(np.int64), SHARE)
    left = counts - aside
    occupied = left.sum(1) > 0, left.sum(0) > 0
    return left[occupied[0]][:, occupied[1]], aside[occupied[0]][:, occupied[1]]


def score(rate, aside):
    """The log-likelihood of what was set aside, a count. `rate` is that of what is left, F x T."""
    rate = np.maximum(rate * SHARE / (1 - SHARE), LEAST_RATE)
    return (aside * np.log(rate) - rate - gammaln(aside + 1)).sum() / aside.sum()


class Program:
    """The program bpnmf in a folder of its own."""

    def __init__(self, path, folder):
        self.path, self.folder = path, folder

    def synthetic(self, seed):
        """The paper's recipe, smaller."""
        out = self.folder / "made"
        words = ["synth", "--seed", str(seed), "--features", "40", "--observations", "200", "--out", out, "--force"]
        subprocess.run([self.path, *words], check=True, stdout=subprocess.DEVNULL)
        return np.load(out / "X.npy")

    def fit(self, left, flags, seed):
        """K, the rate, the mask, pi and seconds."""
        np.save(self.folder / "left.npy", left)
        words = ["fit", self.folder / "left.npy", "--out", self.folder / "result", "--force", "--quiet", "--seed", str(seed)]
        start = time.perf_counter()
        subprocess.run([self.path, *words, "--chains", "1", "--threads", "1", *flags.split()], check=True, stderr=subprocess.DEVNULL)
        seconds = time.perf_counter() - start
        with np.load(self.folder / "result" / "model.npz") as model:
            w, h, s, pi = (model[name].astype(float) for name in ["W", "H", "S", "pi"])
        summary = json.loads((self.folder / "result" / "summary.json").read_text())
        return {"K": summary["n_components"], "rate": w @ h, "S": s, "H": h, "W": w, "pi": pi, "seconds": seconds}


def bars(seed):
    x = mmread(place() / "bars/bars_many.mtx").toarray()
    x = x if x.shape[0] == 144 else x.T
    return x[:, np.random.default_rng(seed).permutation(x.shape[1])[:250]]


def genomes(_):
    lines = (place() / "breast21/Samples_SBS.txt").read_text().splitlines()[1:]
    return np.array([[float(cell) for cell in line.split("\t")[1:]] for line in lines])


def cells(seed):
    """The 200 genes with most counts in 200 cells."""
    x = mmread(place() / "pbmc_facs/counts.mtx.gz").tocsr()
    x = x[np.random.default_rng(seed).permutation(x.shape[0])[:200]]
    genes = np.asarray(x.sum(0)).ravel().argsort()[::-1][:200]
    return x[:, genes].toarray().T


def clip(_):
    """The magnitudes of ten notes, in whole numbers up to 100."""
    with wave.open(str(place() / "clip_identifiable/mix.wav")) as sound:
        samples = np.frombuffer(sound.readframes(sound.getnframes()), dtype="<i2").astype(float)
    magnitude = np.abs(stft(samples, nperseg=512, noverlap=256)[2])
    return np.round(100 * magnitude / magnitude.max())


DATA = {
    "recipe": "the paper's recipe, 40 x 200",
    "clip": "ten notes, whole magnitudes up to 100",
    "genomes": "mutations in 21 genomes",
    "bars": "bars as documents, 250 of them",
    "cells": "200 blood cells, 200 genes",
}


def load(name, program, seed):
    """The counts of a data set; None if they are not there."""
    made = {"clip": clip, "genomes": genomes, "bars": bars, "cells": cells}
    try:
        return program.synthetic(seed) if name == "recipe" else made[name](seed)
    except FileNotFoundError as absent:
        print(f"{name} is skipped: {absent.filename} is not there", file=sys.stderr)
        return None


def peers(left, rank, seed):
    """Name, rate and seconds of the other programs, which are told K."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 1000 iterations are enough or they are not: the table says how good it is
        nmf = NMF(rank, init="nndsvda", solver="mu", beta_loss="kullback-leibler", max_iter=1000, random_state=seed)
        rate = nmf.fit_transform(left) @ nmf.components_
    yield "KL-NMF of scikit-learn, told K", rate, time.perf_counter() - start
    start = time.perf_counter()
    lda = LatentDirichletAllocation(rank, max_iter=100, random_state=seed)
    shares = lda.fit_transform(left.T)
    topics = lda.components_ / lda.components_.sum(1, keepdims=True)
    rate = ((shares @ topics) * left.sum(0)[:, None]).T
    yield "LDA of scikit-learn, told K", rate, time.perf_counter() - start


def table(name, program, seed, fits):
    """The rows of one data set."""
    counts = load(name, program, seed)
    if counts is None:
        return
    left, aside = thinned(counts, seed)
    yield f"\n### {DATA[name]}\n"
    yield "| method | K | set aside, a count | seconds |"
    yield "|---|---|---|---|"
    for engine, flags in ENGINES.items():
        fit = fits[name, engine] = program.fit(left, flags, seed)
        told = f"| {engine} | {fit['K']} | {score(fit['rate'], aside):.4f} | {fit['seconds']:.1f} |"
        print(name, told, file=sys.stderr)
        yield told
    for method, rate, seconds in peers(left, max(1, fits[name, "`gibbs`"]["K"]), seed):
        yield f"| {method} | | {score(rate, aside):.4f} | {seconds:.1f} |"


def dense_share(fit):
    """Of the components by their share of the counts: the mean of S, weighted by it, and how much of H one column leaves out."""
    size = fit["W"].sum(0) * fit["H"].sum(1)
    return float((fit["S"].mean(1) * size).sum() / max(size.sum(), 1e-300))


def claims(program, seed, fits):
    """What the paper says, and what is seen here."""
    yield "\n## The paper's claims\n"
    yield "| claim | here | holds |"
    yield "|---|---|---|"
    counts = program.synthetic(seed)
    truth = json.loads((program.folder / "made" / "truth.json").read_text()) if (program.folder / "made/truth.json").exists() else {}
    left, _ = thinned(counts, seed)
    printed = {name: program.fit(left, f"--preset paper --engine {name} -n 200 --no-stop", seed) for name in ["ssmf", "gibbs-expected"]}
    found = fits.get(("recipe", "`gibbs`")) or program.fit(left, ENGINES["`gibbs`"], seed)
    known = f", of {truth['components']} that were put in" if "components" in truth else ""
    k = printed["ssmf"]["K"]
    yield (f"| roughly 20 of 500 components are significant on the recipe | SSMF as printed {k}, the search and `gibbs` {found['K']}{known} "
           f"| {'yes' if 15 <= k <= 25 else 'no'} as printed |")
    ratio = printed["gibbs-expected"]["seconds"] / printed["ssmf"]["seconds"]
    yield (f"| Gibbs takes about twice as long as SSMF | {ratio:.1f} times, 200 iterations of each as printed on the recipe "
           f"| {'yes' if 1.5 <= ratio <= 2.7 else 'no'} |")
    sparse, dense = (program.fit(left, f"--preset paper --init scaled --engine gibbs -n 200 --no-stop --c {c} --d {c}", seed) for c in (0.3, 5))
    on = [dense_share(fit) for fit in (sparse, dense)]
    yield (f"| with c < 1 the mask is on everywhere and H is sparse instead | mean of S weighted by the counts: {on[0]:.2f} with c = d = 0.3, "
           f"{on[1]:.2f} with c = d = 5 (`gibbs`, 200 iterations) | {'yes' if on[0] > 1.2 * on[1] else 'no'} |")
    yield "| Gibbs separates the quintet better than SSMF | [quintet.md](quintet.md) has both as printed | see there |"
    yield "| SSMF separates better than the model of 2013 | that model is not here | not tested |"


HEAD = """# Engines beside each other

What `./run compare` prints: every engine on the same data, beside KL-NMF and latent Dirichlet allocation of scikit-learn, with
one seed, one chain and one thread. Data are small, so that it takes minutes: it shows that the engines work and about how they
compare, not which is best. A tenth of every count was set aside by binomial thinning, and the fit to the rest is scored by
its log-likelihood a count: differences of 0.001 are 1 nat a thousand counts. `gibbs`, `map` and `ssmf` start where a search
ended, so their seconds are mostly those of the search; `nb-process` has 50 slots and no search; what is "as printed" has 500 slots, no
search and a random start. KL-NMF and LDA are told the number that `gibbs` found.

## Data
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bpnmf", help="the program bpnmf")
    parser.add_argument("--seed", type=int, default=1, help="of data, thinning and fits [default: 1]")
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=list(DATA), help="data sets [default: all]")
    parser.add_argument("--out", type=Path, help="the document to write [default: print it]")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bpnmf-compare-") as folder:
        program, fits = Program(args.bpnmf, Path(folder)), {}
        lines = [HEAD.rstrip()]
        for name in args.data:
            lines += table(name, program, args.seed, fits)
        lines += claims(program, args.seed, fits)
    text = "\n".join(lines) + "\n"
    if args.out:
        args.out.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    sys.exit(main())
