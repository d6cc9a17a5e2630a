"""Times `bpnmf score` against fast_bss_eval and mir_eval on five sounds of 54 s, taking turns in one run.

    ./run bench-score [--threads N] [--rounds N] [--mir-eval N] [--quick]

Ours is the whole command, reading the files and all; the others get the sounds in memory. The stems are those of the
quintet in BPNMF_DATA if they are there, otherwise noise of the same size.
"""

import argparse
import os

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--threads", type=int, default=1, help="of all rivals")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--mir-eval", type=int, default=1, help="rounds of mir_eval, which takes minutes each")
parser.add_argument("--quick", action="store_true", help="three seconds and one round, to see that it runs")
OPTIONS = parser.parse_args()
# Before numpy is there.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(OPTIONS.threads)

import json
import statistics
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import fast_bss_eval
import mir_eval
import numpy as np
import soundfile

ROOT = Path(__file__).resolve().parent.parent
RATE, SECONDS, LIMIT = 22050, 54, 1 / 3


def stems():
    folder = Path(os.environ.get("BPNMF_DATA", ROOT.parent / "shared" / "data")) / "quintet"
    if folder.is_dir():
        names = ("bassoon", "clarinet", "flute", "horn", "oboe")
        return "the quintet's stems", np.array([soundfile.read(folder / f"{name}.wav")[0] for name in names])
    return "noise", 0.1 * np.random.default_rng(1).standard_normal((5, RATE * SECONDS))


def seconds(job):
    start = time.perf_counter()
    result = job()
    return time.perf_counter() - start, result


def main():
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    what, references = stems()
    if OPTIONS.quick:
        references = references[:, : 3 * RATE]
    mixing = np.eye(5) + 0.2 * rng.standard_normal((5, 5))
    estimates = mixing @ references + 0.01 * references.std() * rng.standard_normal(references.shape)
    references, estimates = (sounds.astype(np.float32).astype(float) for sounds in (references, estimates))
    with tempfile.TemporaryDirectory() as name:
        files = {}
        for kind, sounds in (("reference", references), ("estimate", estimates)):
            files[kind] = [f"{name}/{kind}{i}.wav" for i in range(5)]
            for file, sound in zip(files[kind], sounds):
                soundfile.write(file, sound, RATE, "FLOAT")
        program = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "bpnmf"
        command = [program, "score", "--json", "--threads", str(OPTIONS.threads),
                   "--reference", *files["reference"], "--estimate", *files["estimate"]]

        def ours():
            sources = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)["sources"]
            return [[source[key] for source in sources] for key in ("sdr", "sir", "sar")]

        rounds = 1 if OPTIONS.quick else OPTIONS.rounds
        rivals = {
            "bpnmf score": (rounds, ours),
            "fast_bss_eval": (rounds, lambda: fast_bss_eval.bss_eval_sources(references, estimates)[:3]),
            "mir_eval": (OPTIONS.mir_eval, lambda: mir_eval.separation.bss_eval_sources(references, estimates)[:3]),
        }
        times, scores = {name: [] for name in rivals}, {}
        for turn in range(max(limit for limit, _ in rivals.values())):
            for name, (limit, job) in rivals.items():
                if turn < limit:
                    spent, scores[name] = seconds(job)
                    times[name].append(spent)
    print(f"5 sources of {references.shape[1] / RATE:.0f} s at {RATE} Hz ({what}), threads: {OPTIONS.threads}")
    print(f"{'':14} {'rounds':>6} {'median s':>9} {'ours / its':>10} {'largest difference':>19}")
    mine = statistics.median(times["bpnmf score"])
    for name, values in times.items():
        if values:
            median = statistics.median(values)
            apart = np.abs(np.array(scores[name]) - np.array(scores["bpnmf score"])).max()
            verdict = ("ok" if mine / median <= LIMIT else "MISSED") + ": limit 1/3" if name == "fast_bss_eval" else ""
            print(f"{name:14} {len(values):6} {median:9.3f} {mine / median:10.4f} {apart:16.1e} dB  {verdict}".rstrip())


if __name__ == "__main__":
    main()
