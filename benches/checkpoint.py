"""What checkpoints cost: the same run without them and with them, taking turns.

    ./run bench-checkpoint [--rounds N] [--threads N] [--every SECONDS ...] [--iterations N]

The quintet through `bpnmf separate`, and single cells (a sparse matrix) through `bpnmf fit`, from BPNMF_DATA. Besides the
times of the whole command, which on a busy machine differ more than checkpoints cost, it prints what the program says of
every checkpoint with -v: their number, their size, and their share of the time.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("BPNMF_DATA", ROOT.parent / "shared" / "data"))
# No search: where all the time goes to iterations, checkpoints weigh most.
CELLS = ["--preset", "paper", "--engine", "gibbs", "-k", "30", "--init", "scaled"]
TOLD = re.compile(r"checkpoint of chain \d+ [a-z ]+\d*: ([\d.]+) MB in ([\d.]+) s")


def run(program, words, every):
    with tempfile.TemporaryDirectory(prefix="bpnmf-bench-") as folder:
        command = [program, *words, "-v", "--out", f"{folder}/out", "--checkpoint-every", str(every)]
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        took = time.perf_counter() - start
    return took, [(float(size), float(seconds)) for size, seconds in TOLD.findall(done.stderr)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--every", type=float, nargs="+", default=[60, 5])
    parser.add_argument("--iterations", type=int, help="of every run [default: the program's]")
    parser.add_argument("--only", choices=["quintet", "cells"])
    args = parser.parse_args()
    jobs = {
        "quintet": ["separate", str(DATA / "quintet" / "mix.wav"), "--stems", "5"],
        "cells": ["fit", str(DATA / "pbmc_facs" / "counts.mtx.gz"), "--transpose", "--chains", "1", *CELLS],
    }
    more = ["--threads", str(args.threads)]
    if args.iterations:
        more += ["--iterations", str(args.iterations), "--no-stop"]
    for name, words in jobs.items():
        if args.only not in (None, name):
            continue
        if not Path(words[1]).exists():
            print(f"{name}: skipped, there is no {words[1]}")
            continue
        kinds = [0, *args.every]
        times, told = {kind: [] for kind in kinds}, {kind: [] for kind in kinds}
        for _ in range(args.rounds):
            for kind in kinds:
                took, checkpoints = run(args.program, words + more, kind)
                times[kind].append(took)
                told[kind].append(checkpoints)
        for kind in kinds:
            label = f"every {kind:g} s" if kind else "none"
            line = f"{name:8} {label:12} median {statistics.median(times[kind]):7.2f} s, least {min(times[kind]):7.2f} s"
            if kind:
                all_of_them = [one for checkpoints in told[kind] for one in checkpoints]
                share = 100 * sum(seconds for _, seconds in all_of_them) / sum(times[kind])
                largest = max((size for size, _ in all_of_them), default=0.0)
                number = len(all_of_them) / args.rounds
                line += f"; {number:.1f} checkpoints a run, at most {largest:.2f} MB, {share:.3f} % of the time"
            print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
