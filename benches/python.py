"""What Python costs: the time of a fit beside the same fit of the program, and the memory of a large compressed one.

    ./run bench-python

Prints medians of fits that take turns, the median of their ratios, and the peak of a CSR of 20000 x 5000 with a
million entries. Needs the package and the program; `./run bench-python` builds both.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from rounds import ratio

ROOT = Path(__file__).resolve().parent.parent


def low_rank(samples, features, parts, rng):
    """Dense counts."""
    dictionary = rng.gamma(0.3, 10.0, (parts, features))
    activations = rng.gamma(2.0, 1.0, (samples, parts)) * (rng.random((samples, parts)) < 0.3)
    return rng.poisson(activations @ dictionary)


def documents(samples, features, entries, parts, rng):
    """Compressed counts: words of one or two subjects each."""
    subjects = rng.dirichlet(np.full(features, 0.05), parts)
    length = 54 * entries // (50 * samples)
    rows = np.repeat(np.arange(samples), length)
    two = rng.integers(0, parts, (samples, 2))
    subject = two[rows, rng.integers(0, 2, rows.size)]
    cumulated = np.cumsum(subjects, axis=1)
    columns = np.empty(rows.size, dtype=np.int64)
    for part in range(parts):
        here = subject == part
        columns[here] = np.searchsorted(cumulated[part], rng.random(here.sum()) * cumulated[part, -1])
    X = sp.coo_array((np.ones(rows.size), (rows, columns)), shape=(samples, features)).tocsr()
    X.sum_duplicates()
    X.indptr, X.indices = X.indptr.astype(np.int32), X.indices.astype(np.int32)
    return X


def times(program, repeats, samples):
    """Seconds of the same fit from Python and from the program, taking turns: by the clock, and of the processor, which a
    busy machine disturbs less. Those of the program's processor have the reading and writing of files in them."""
    from bpnmf import BetaProcessNMF

    rng = np.random.default_rng(0)
    for name, X in (("dense", low_rank(samples, 200, 8, rng)), ("sparse", documents(2 * samples, 1000, 80 * samples, 8, rng))):
        ours, theirs, ours_busy, theirs_busy = [], [], [], []
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / ("X.npy" if name == "dense" else "X.npz")
            np.save(file, X.astype(float)) if name == "dense" else sp.save_npz(file, X)
            for _ in range(repeats):
                start, busy = time.perf_counter(), time.process_time()
                model = BetaProcessNMF(random_state=1, n_jobs=1, n_chains=1).fit(X)
                ours.append(time.perf_counter() - start)
                ours_busy.append(time.process_time() - busy)
                busy = processor_of_children()
                command = [program, "fit", file, "--transpose", "--seed", "1", "--chains", "1", "--threads", "1", "--quiet", "--force"]
                subprocess.run([*command, "--out", Path(folder) / "out"], check=True)
                theirs_busy.append(processor_of_children() - busy)
                theirs.append(json.loads((Path(folder) / "out" / "summary.json").read_text())["seconds"])
            assert (model.components_ == np.load(Path(folder) / "out" / "model.npz")["W"].T).all()
        for what, one, two in (("clock", ours, theirs), ("processor", ours_busy, theirs_busy)):
            a, b = statistics.median(one), statistics.median(two)
            change = f"{100 * (ratio(one, two) - 1):+.1f} %"
            print(f"{name:6} {X.shape[0]} x {X.shape[1]}, {what}: Python {a:.3f} s, Rust {b:.3f} s, {change}", flush=True)


def processor_of_children():
    used = os.times()
    return used.children_user + used.children_system


def status(name):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def memory(samples, features, entries, parts):
    """The peak of a fit above what was there before it. Run in a process of its own."""
    from bpnmf import BetaProcessNMF

    X = documents(samples, features, entries, parts, np.random.default_rng(0))
    BetaProcessNMF(random_state=0, max_iter=2).fit(np.ones((5, 5)))
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    start = time.perf_counter()
    model = BetaProcessNMF(random_state=0, n_jobs=1, n_chains=1).fit(X)
    seconds = time.perf_counter() - start
    peak = status("VmHWM") - before
    k = model.components_.shape[0]
    factors = model.components_.nbytes + model.activations_.nbytes + model.inclusion_.nbytes
    start = time.perf_counter()
    model.transform(X)
    print(
        f"CSR {samples} x {features} with {X.nnz} entries: {size / 1e6:.1f} MB; factors of {k} parts {factors / 1e6:.1f} MB; "
        f"peak of the fit {peak / 1e6:.1f} MB above the start = {peak / (3 * size + factors):.2f} of 3 CSR + factors; "
        f"{seconds:.1f} s, transform {time.perf_counter() - start:.1f} s"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default=str(ROOT / "target" / "release" / "bpnmf"))
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--samples", type=int, default=1000, help="of the timed fits")
    parser.add_argument("--memory", type=int, nargs=4, metavar="N", help="only the memory, of samples features entries parts")
    given = parser.parse_args()
    if given.memory:
        memory(*given.memory)
    else:
        times(given.program, given.repeats, given.samples)
        if os.path.exists("/proc/self/clear_refs"):
            subprocess.run([sys.executable, __file__, "--memory", "20000", "5000", "1000000", "10"], check=True)
