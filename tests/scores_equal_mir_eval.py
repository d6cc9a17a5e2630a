"""The scores of `bpnmf score` are those of mir_eval: run by `./run test` with the path of the program.

    tests/scores_equal_mir_eval.py target/release/bpnmf [--full] [--show]

--full scores the whole stems of the quintet (mir_eval takes minutes), --show prints the largest differences."""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import soundfile
from mir_eval.separation import bss_eval_sources

LIMIT = 1e-6  # dB
STEMS = ("bassoon", "clarinet", "flute", "horn", "oboe")


def ours(program, folder, references, estimates, rate, *flags):
    files = {}
    for kind, sounds in (("reference", references), ("estimate", estimates)):
        files[kind] = [folder / f"{kind}{i}.wav" for i in range(len(sounds))]
        for file, sound in zip(files[kind], sounds):
            soundfile.write(file, sound, rate, "FLOAT")
    command = [program, "score", "--json", "--reference", *files["reference"], "--estimate", *files["estimate"], *flags]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    scores = json.loads(done.stdout)
    assert scores["warnings"] == [], scores["warnings"]
    order = [files["estimate"].index(Path(source["estimate"])) for source in scores["sources"]]
    return [[float(source[key]) for source in scores["sources"]] for key in ("sdr", "sir", "sar")], order


def compare(program, folder, name, references, estimates, rate=22050, permutation=True):
    # What a file of 32 bit floats holds is what both read.
    references, estimates = (np.asarray(sounds, np.float32) for sounds in (references, estimates))
    found, order = ours(program, folder, references, estimates, rate, *([] if permutation else ["--no-permutation"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        *peer, peer_order = bss_eval_sources(references.astype(float), estimates.astype(float), permutation)
    assert order == list(peer_order), f"{name}: order {order}, mir_eval has {list(peer_order)}"
    found, peer = np.array(found), np.array(peer)
    # What we call infinite is rounding to mir_eval, at least 200 dB below.
    infinite = np.isinf(found)
    assert (peer[infinite] > 200).all(), f"{name}: mir_eval has {peer[infinite]} where we have infinity"
    difference = np.abs(found[~infinite] - peer[~infinite])
    if "--show" in sys.argv:
        print(f"{name:58} {difference.max():8.1e} dB  (SDR {min(found[0]):.1f} to {max(found[0]):.1f},"
              f" SAR {min(found[2]):.1f} to {max(found[2]):.1f})", flush=True)
    assert difference.max() <= LIMIT, f"{name}: off by {difference.max()} dB"


def smoothed(rng, sounds, length):
    return np.array([np.convolve(sound, rng.standard_normal(length) * 0.9 ** np.arange(length))[: len(sound)] for sound in sounds])


def made_up(program, folder):
    """Random sounds of several shapes, mixed, filtered, delayed, coloured, faint and loud."""
    rng = np.random.default_rng(0)
    count = 0
    for sources, samples, level in ((1, 3000, 0.1), (2, 1500, 1.0), (2, 5000, 1e-2), (3, 9001, 1e-4), (4, 4000, 3.0)):
        for colour in (1, 60):
            references = smoothed(rng, rng.standard_normal((sources, samples)), colour)
            mixing = np.eye(sources) + 0.3 * rng.standard_normal((sources, sources))
            noise = level * rng.standard_normal((sources, samples))
            estimates = (mixing @ smoothed(rng, references, 20) + noise)[rng.permutation(sources)]
            # Levels do not matter, from file to file.
            references *= 10.0 ** rng.uniform(-3, 0, (sources, 1)) / 10
            for permutation in (True, False):
                name = f"{sources} x {samples}, noise {level}, colour {colour}, {'any' if permutation else 'given'} order"
                compare(program, folder, name, references, estimates, permutation=permutation)
                count += 1
    return count


def recorded(program, folder, full):
    """The stems of a quintet and mixtures of them, as a separation would leave them."""
    data = Path(os.environ.get("BPNMF_DATA", Path(__file__).resolve().parent.parent.parent / "shared" / "data")) / "quintet"
    if not data.is_dir():
        print(f"skipped the quintet: there is no folder {data}; name its parent in BPNMF_DATA")
        return 0
    rng = np.random.default_rng(1)
    stems = np.array([soundfile.read(data / f"{stem}.wav")[0] for stem in STEMS])
    stems = stems if full else stems[:3, 22050 * 20 : 22050 * 23]
    mixing = np.eye(len(stems)) + 0.2 * rng.standard_normal((len(stems), len(stems)))
    estimates = mixing @ stems + 1e-3 * stems.std() * rng.standard_normal(stems.shape)
    name = f"{len(stems)} stems of {stems.shape[1] / 22050:.0f} s, mixed"
    if full:
        compare(program, folder, name, stems, estimates)
        return 1
    compare(program, folder, name, stems, estimates)
    compare(program, folder, f"{name}, mix as every estimate", stems, np.array([stems.sum(0)] * 3), permutation=False)
    compare(program, folder, f"{name} a little", stems, (stems + 1e-3 * estimates)[[1, 2, 0]])
    return 3


def main():
    program = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder, full = Path(name), "--full" in sys.argv
        passed = recorded(program, folder, full) + (0 if full else made_up(program, folder))
    print(f"{passed} passed, 0 failed")


if __name__ == "__main__":
    main()
