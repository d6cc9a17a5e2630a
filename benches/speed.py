"""Times the engine against its rivals, all on one thread, taking turns in one run.

    ./run bench

Prints a table of medians and ratios, the growth exponents, and the peak memory. Needs numpy, scipy and
scikit-learn (`./run bench` installs them into a virtual environment of its own).
"""

import argparse
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import math
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from rounds import ratio
from sklearn.decomposition import NMF

ROOT = Path(__file__).resolve().parent.parent

# The parts that are on in at least 1 % of the columns of the paper's data with seeds 1, 2, ...: the row "rate" of the
# rank table.
TRUE_PARTS = (16, 25, 29, 21, 21, 21, 20, 25, 28, 22, 16, 23, 27, 19, 29, 21, 24, 21, 27, 28)


class Engine:
    """The Rust side: a process that times what it is asked for."""

    def __init__(self, program):
        self.process = subprocess.Popen(
            [program, "speed"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def ask(self, request):
        self.process.stdin.write(request + "\n")
        answer = self.process.stdout.readline().strip()
        if not answer:
            sys.exit(f"the engine did not answer to: {request}")
        return answer

    def seconds(self, request):
        return float(self.ask(request))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def published_sweep(x, w, h, s, logit_pi, rng):
    """One sweep over the mask as the authors' code does it: the whole product anew for every component.

    Written from the formulas of section 3.1, vectorised over features and observations. x is F x T, w F x K, h and s
    K x T.
    """
    eps = np.finfo(np.float32).eps
    for k in range(w.shape[1]):
        own = np.outer(w[:, k], h[k])
        without = w @ (h * s) - own * s[k]
        on = logit_pi[k] + (x * np.log(without + own) - own).sum(0)
        off = (x * np.log(np.maximum(without, 0) + eps)).sum(0)
        with np.errstate(over="ignore"):
            s[k] = rng.random(s.shape[1]) < 1 / (1 + np.exp(off - on))


def sklearn_iteration(x, components, looks=True):
    """Seconds of one multiplicative update of both factors, from a short and a long run.

    As it is by default: every tenth iteration looks at the divergence. The tolerance is too small to stop at. Without
    `looks` there is nothing but the updates.
    """
    short, long = 4, 24
    spent = []
    for iterations in (short, long):
        model = NMF(
            components, solver="mu", beta_loss="kullback-leibler", init="random", tol=1e-12 if looks else 0,
            max_iter=iterations, random_state=0,
        )
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(x)
        spent.append(time.perf_counter() - start)
        assert model.n_iter_ == iterations
    return (spent[1] - spent[0]) / (long - short)


def sklearn_fit(x, components):
    """A whole fit, 200 multiplicative updates at a known number of parts."""
    model = NMF(
        components, solver="mu", beta_loss="kullback-leibler", init="random", tol=0, max_iter=200, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x)


def take_turns(rounds, **jobs):
    """The seconds of every job, all jobs once a round."""
    times = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            times[name].append(job())
    return times


def finer(rounds):
    """Rounds of jobs that are over in no time: the shorter a round, the more of them it takes."""
    return 3 * rounds


def exported(engine, folder):
    path = Path(folder) / "state.npz"
    engine.ask(f"export {path}")
    with np.load(path) as state:
        arrays = {name: state[name].astype(np.float32) for name in ("X", "W", "H", "S")}
        arrays["logit_pi"] = state["logit_pi"]
    arrays["W"] = np.ascontiguousarray(arrays["W"].T)
    return arrays


def timed(job):
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def row(what, ours, rival, limit, verdict):
    ours_ms, rival_ms = (1e3 * statistics.median(times) for times in (ours, rival))
    print(f"{what:<66} {ours_ms:10.3f} {rival_ms:12.3f} {ratio(ours, rival):10.4f} {limit:>9} {verdict}")


def judged(what, ours, rival, limit, text):
    row(what, ours, rival, text, "ok" if ratio(ours, rival) <= limit else "MISSED")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--program", default=str(ROOT / "target" / "release" / "experiments"))
    parser.add_argument("--quick", action="store_true", help="small shapes, to see that it runs")
    options = parser.parse_args()
    rounds = 1 if options.quick else options.rounds
    rng = np.random.default_rng(0)
    engine = Engine(options.program)
    print(f"{'what, against what (medians of ' + str(rounds) + ' rounds or more)':<66} {'ours ms':>10} {'rival ms':>12} {'ratio':>10} {'limit':>9}")

    with tempfile.TemporaryDirectory() as folder:
        engine.ask("load paper 100 200" if options.quick else "load paper 500 1000")
        state = exported(engine, folder)
        name = "75 x 1000, K = 500: mask sweep"
        times = take_turns(
            finer(rounds), gemm=lambda: engine.seconds("gemm"), sweep=lambda: engine.seconds("sweep auto")
        )
        judged(f"{name} / one GEMM of K x F by F x T", times["sweep"], times["gemm"], 5, "5")
        times = take_turns(
            rounds,
            sweep=lambda: engine.seconds("sweep auto"),
            avx2=lambda: engine.seconds("sweep avx2"),
            plain=lambda: engine.seconds("sweep plain"),
            exact=lambda: engine.seconds("exact-rule"),
            published=lambda: timed(
                lambda: published_sweep(state["X"], state["W"], state["H"], state["S"].copy(), state["logit_pi"], rng)
            ),
            ssmf=lambda: engine.seconds("ssmf"),
            gibbs=lambda: engine.seconds("gibbs"),
        )
        judged(f"{name} / the published sweep in numpy", times["sweep"], times["published"], 1 / 100, "1/100")
        row(f"{name} / the same with AVX2", times["sweep"], times["avx2"], "", "")
        row(f"{name} / the same without SIMD", times["sweep"], times["plain"], "", "")
        row(f"{name} / the same by logarithms alone", times["sweep"], times["exact"], "", "")
        row("75 x 1000, K = 500: SSMF iteration / mask sweep", times["ssmf"], times["sweep"], "", "")
        row("75 x 1000, K = 500: Gibbs iteration / mask sweep", times["gibbs"], times["sweep"], "", "")

        fits, nmfs = [], []
        for seed, parts in enumerate(TRUE_PARTS[:1] if options.quick else TRUE_PARTS, start=1):
            engine.ask(f"load paper 50 {200 if options.quick else 1000} {seed}")
            x = exported(engine, folder)["X"].T.copy()
            times = take_turns(
                min(rounds, 5), fit=lambda: engine.seconds("fit"), sklearn=lambda: timed(lambda: sklearn_fit(x, parts))
            )
            fits.append(times["fit"])
            nmfs.append(times["sklearn"])
        name = f"75 x 1000, {len(fits)} sets: default fit / a fit by NMF"
        together = [[sum(of_round) for of_round in zip(*times)] for times in (fits, nmfs)]
        judged(f"{name}, all", *together, 10, "10")
        ratios = [ratio(fit, nmf) for fit, nmf in zip(fits, nmfs)]
        for which, of in (("cheapest", min), ("costliest", max)):
            at = ratios.index(of(ratios))
            judged(f"{name}, {which}", fits[at], nmfs[at], 10, "10")

        engine.ask("load random 100 200" if options.quick else "load random 500 1000")
        times = take_turns(
            finer(rounds), gemm=lambda: engine.seconds("gemm"), sweep=lambda: engine.seconds("sweep auto")
        )
        row("the same, started as the authors' code does / one GEMM", times["sweep"], times["gemm"], "", "")

        engine.ask("load dense 100 200 20" if options.quick else "load dense 513 2325 50")
        state = exported(engine, folder)
        x = state["X"].T.copy()
        name = "513 x 2325, K = 50: "
        times = take_turns(
            rounds,
            gemm=lambda: engine.seconds("gemm"),
            sweep=lambda: engine.seconds("sweep auto"),
            published=lambda: timed(
                lambda: published_sweep(state["X"], state["W"], state["H"], state["S"].copy(), state["logit_pi"], rng)
            ),
        )
        row(f"{name}mask sweep / one GEMM", times["sweep"], times["gemm"], "", "")
        judged(f"{name}mask sweep / the published sweep", times["sweep"], times["published"], 1 / 60, "1/60")
        components = state["W"].shape[1]
        times = take_turns(
            finer(rounds),
            updates=lambda: sklearn_iteration(x, components, looks=False),
            ssmf=lambda: engine.seconds("ssmf"),
            sklearn=lambda: sklearn_iteration(x, components),
        )
        judged(f"{name}SSMF iteration / scikit-learn's", times["ssmf"], times["sklearn"], 1, "1")
        row(f"{name}SSMF iteration / scikit-learn's that never looks", times["ssmf"], times["updates"], "", "")
        times = take_turns(
            rounds, gibbs=lambda: engine.seconds("gibbs"), sklearn=lambda: sklearn_iteration(x, components)
        )
        row(f"{name}Gibbs iteration / scikit-learn's", times["gibbs"], times["sklearn"], "", "")

    features, observations = (400, 200) if options.quick else (20000, 5000)
    per_column = features // 100
    engine.ask(f"load sparse {features} {observations} 50 {per_column}")
    with tempfile.TemporaryDirectory() as folder:
        engine.ask(f"export {folder}/state.npz")
        with np.load(f"{folder}/state.npz") as state:
            # Compressed columns of ours are compressed rows of scikit-learn's samples x features.
            x = sp.csr_matrix(
                (state["data"], state["indices"].astype(np.int32), state["indptr"]), shape=(observations, features)
            )
    times = take_turns(
        rounds, ssmf=lambda: engine.seconds("ssmf"), sklearn=lambda: sklearn_iteration(x, 50)
    )
    judged("20000 x 5000, 1 % dense, K = 50: SSMF / scikit-learn's", times["ssmf"], times["sklearn"], 1 / 5, "1/5")
    engine.close()

    print("\nGrowth of the time of an SSMF iteration when one size doubles (1 is linear):")
    sizes = {
        "T": ("load dense 100 {} 40", 1000),
        "K": ("load dense 100 1000 {}", 40),
        "nonzeros": ("load sparse 5000 1000 40 {}", 50),
    }
    for name, (request, size) in sizes.items():
        size = size // 5 if options.quick else size
        pair = []
        for factor in (1, 2):
            engine = Engine(options.program)
            engine.ask(request.format(size * factor))
            pair.append(engine)
        times = take_turns(
            rounds, one=lambda: pair[0].seconds("ssmf"), two=lambda: pair[1].seconds("ssmf")
        )
        for engine in pair:
            engine.close()
        print(f"  {name:<10} {math.log2(ratio(times['two'], times['one'])):.2f}")

    print("\nPeak memory of ten SSMF iterations (limit: X + 24 bytes x (F + T) K + 200 MB):")
    for request in ("paper 500 1000", "dense 513 2325 50", "sparse 20000 5000 50 200"):
        if options.quick and "paper" not in request:
            continue
        engine = Engine(options.program)
        features, observations, nonzeros = map(int, engine.ask(f"load {request}").split())
        peak = int(engine.ask("memory"))
        engine.close()
        components = int(request.split()[1] if "paper" in request else request.split()[3])
        data = 12 * nonzeros if "sparse" in request else 8 * features * observations
        limit = data + 24 * (features + observations) * components + 200e6
        print(f"  {request:<26} {peak / 1e6:8.1f} MB of {limit / 1e6:8.1f} MB {'ok' if peak <= limit else 'MISSED'}")


if __name__ == "__main__":
    main()
