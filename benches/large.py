"""Makes an .h5ad file of cells with known programs, fits it block by block, and says what it took.

    ./run large [--cells 32000] [--genes 5000] [--programs 20] [--file FILE] [--gzip] [-- OPTIONS OF bpnmf fit]

The file is made once and kept with --file. Every cell has one program for sure and each other one with probability 0.15; genes of a
program are gamma distributed with shape 0.25, and a cell has about 900 counts."""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np

CHUNK = 2000


def programs(rng, number, genes):
    """W by rows, each adding up to 1."""
    w = rng.gamma(0.25, size=(number, genes)) + 1e-9
    return w / w.sum(axis=1, keepdims=True)


def cells(rng, w, number):
    """The counts of some cells."""
    own = rng.integers(len(w), size=number)
    on = rng.random((number, len(w))) < 0.15
    on[np.arange(number), own] = True
    h = rng.gamma(2.0, size=on.shape) * on
    h *= (rng.lognormal(np.log(850.0), 0.35, size=number) / h.sum(axis=1))[:, None]
    return rng.poisson(h @ w)


def write(path, w, number, seed, packed):
    """The file, as anndata writes it, made chunk by chunk."""
    rng = np.random.default_rng(seed)
    genes = w.shape[1]
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        group = file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0"})
        group.attrs["shape"] = np.array([number, genes], dtype=np.int64)
        how = {"maxshape": (None,), "chunks": (1 << 18,)} | ({"compression": "gzip", "compression_opts": 4} if packed else {})
        data = group.create_dataset("data", (0,), dtype=np.float32, **how)
        indices = group.create_dataset("indices", (0,), dtype=np.int32, **how)
        ends = [0]
        for first in range(0, number, CHUNK):
            x = cells(rng, w, min(CHUNK, number - first))
            rows, columns = np.nonzero(x)
            for array, values in ((data, x[rows, columns]), (indices, columns)):
                array.resize((ends[-1] + len(columns),))
                array[ends[-1] :] = values
            ends.extend(ends[-1] + np.cumsum(np.bincount(rows, minlength=len(x))))
        group.create_dataset("indptr", data=np.array(ends, dtype=np.int64))
        for axis, name, count in (("obs", "cell", number), ("var", "gene", genes)):
            table = file.create_group(axis)
            table.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"})
            table.attrs["column-order"] = np.array([], dtype=h5py.string_dtype())
            names = np.array([f"{name}{i}" for i in range(count)], dtype=object)
            index = table.create_dataset("_index", data=names, dtype=h5py.string_dtype())
            index.attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})
    return ends[-1]


def matched(truth, found):
    """The cosine of every program with the component that is nearest to it, each component once, best pairs first."""
    unit = lambda rows: rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = unit(truth) @ unit(found).T
    best = np.zeros(len(truth))
    for at in np.argsort(-cosines, axis=None):
        i, j = divmod(int(at), cosines.shape[1])
        if best[i] == 0 and cosines[i, j] > -1:
            best[i] = cosines[i, j]
            cosines[:, j] = -2
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=32_000)
    parser.add_argument("--genes", type=int, default=5_000)
    parser.add_argument("--programs", type=int, default=20)
    parser.add_argument("--file")
    parser.add_argument("--gzip", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--program", default="target/release/bpnmf")
    parser.add_argument("options", nargs="*", help="of bpnmf fit")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(given.file or f"{folder}/cells.h5ad")
        w = programs(np.random.default_rng([given.seed, 1]), given.programs, given.genes)
        if not path.exists():
            begin = time.time()
            nonzeros = write(path, w, given.cells, given.seed, given.gzip)
            print(f"{path.name}: {nonzeros} entries, {path.stat().st_size >> 20} MB, made in {time.time() - begin:.0f} s")
        out = f"{folder}/result"
        command = [given.program, "fit", str(path), "--out", out, "--quiet", "--blocks", *given.options]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin = time.time()
        if subprocess.run(command).returncode:
            sys.exit("the fit failed")
        seconds = time.time() - begin
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(f"{out}/summary.json") as file:
            summary = json.load(file)
        found = np.load(f"{out}/model.npz")["W"].T
        cosines = matched(w, found)
        print(f"{given.cells} cells x {given.genes} genes: {seconds:.0f} s, {used.ru_utime - before.ru_utime:.0f} s of processor")
        print(f"most memory: {used.ru_maxrss / 1e6:.2f} GB; {os.cpu_count()} processors")
        print(f"components: {summary['n_components']} of {given.programs}; cosines: least {cosines.min():.4f}, median {np.median(cosines):.4f}")
        for stage, time_of in summary.get("blocks", {}).get("seconds", {}).items():
            print(f"  {stage}: {time_of:.0f} s")


if __name__ == "__main__":
    main()
