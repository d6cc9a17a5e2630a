"""What the program writes is what numpy reads: run by `./run test` with the path of the program."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not set(done.stderr) & set("\r\x1b"), f"a log must have plain lines: {done.stderr!r}"
    if arguments[0] == "fit":
        told = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
        assert told, "a log must say what is done"
    return done.stdout


def check_model(folder, features, observations):
    summary = json.loads((folder / "summary.json").read_text())
    with np.load(folder / "model.npz") as model:
        w, h, s, pi = model["W"], model["H"], model["S"], model["pi"]
    k = len(summary["components"])
    assert summary["n_components"] == k
    first, last = summary["n_components_interval"]
    assert first <= summary["n_components"] <= last
    assert abs(sum(frequency for _, frequency in summary["n_components_pmf"]) - 1) < 1e-9
    trace = np.genfromtxt(folder / "trace.csv", delimiter=",", names=True)
    assert set(trace["chain"]) == set(range(1, summary["chains"] + 1))
    path = trace[(trace["iteration"] == 0) & (trace["chain"] == summary["chain_shown"])]
    told = [(at["n_components"], at["coarsening"]) for at in summary["resolution_path"]]
    assert list(zip(path["active"], path["coarsening"])) == told, "the path of resolutions"
    trace = trace[trace["iteration"] > 0]
    assert (trace["coarsening"] > 0).all() and (trace["coarsening"] <= 1).all()
    assert np.isfinite(trace["activation"]).all() and (trace["reconstruction_4"] > 0).all()
    assert w.shape == (features, k) and h.shape == s.shape == (k, observations) and pi.shape == (k,)
    assert (w >= 0).all() and (h >= 0).all() and ((0 <= s) & (s <= 1 + 1e-6)).all() and ((0 < pi) & (pi < 1)).all()
    share = w.sum(0) * h.sum(1)
    assert (np.diff(share) <= 1e-3 * share.max()).all(), "components come ordered by their share"
    return w, h, summary


def main():
    program = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(program, "synth", "--out", folder / "data", "--seed", 2, "--observations", 120, "--gamma", "scale")
        x = np.load(folder / "data" / "X.npy")
        with np.load(folder / "data" / "truth.npz") as truth:
            rate = truth["W"] @ (truth["H"] * truth["S"])
            assert truth["S"].shape == (100, 120)
        assert x.shape == (75, 120) and abs(x.sum() / rate.sum() - 1) < 0.05

        run(program, "fit", folder / "data" / "X.npy", "--out", folder / "auto", "--seed", 1, "--chains", 2)
        w, h, summary = check_model(folder / "auto", 75, 120)
        assert len(summary["resolution_path"]) > 1
        error = np.abs(w @ h - rate).sum() / rate.sum()
        assert error < 0.35, f"the reconstruction is off by {error:.2f} of the true rates"
        run(program, "fit", folder / "data" / "X.npy", "--out", folder / "paper", "--preset", "paper", "--engine", "gibbs",
            "--init", "scaled", "--max-components", 40, "--iterations", 300, "--seed", 1, "--chains", 2)
        w, h, summary = check_model(folder / "paper", 75, 120)
        assert summary["resolution_path"] == []
        error = np.abs(w @ h - rate).sum() / rate.sum()
        assert error < 0.35, f"the reconstruction is off by {error:.2f} of the true rates"

        matrix = sp.random(50, 80, 0.1, "csr", random_state=0, data_rvs=lambda n: np.arange(1, n + 1) % 7 + 1)
        sp.save_npz(folder / "sparse.npz", matrix)
        np.save(folder / "dense.npy", matrix.toarray())
        for file in ("sparse.npz", "dense.npy"):
            run(program, "fit", folder / file, "--out", folder / file[:6], "--max-components", 10, "--iterations", 20)
            check_model(folder / file[:6], 50, 80)
        same = (folder / "sparse" / "model.npz").read_bytes() == (folder / "dense." / "model.npz").read_bytes()
        assert same, "sparse and dense input give different models"
    print("5 passed, 0 failed")


if __name__ == "__main__":
    main()
