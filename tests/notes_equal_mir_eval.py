"""The scores of `bpnmf score --notes` are those of mir_eval.transcription: run by `./run test` with the path of the program.

    tests/notes_equal_mir_eval.py target/release/bpnmf [--show]

Tables and MIDI files, the latter written here, by hand. --show prints the largest difference."""

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from mir_eval.transcription import precision_recall_f1_overlap

LIMIT = 1e-9


def hertz(midi):
    return 440.0 * 2.0 ** ((np.asarray(midi, float) - 69.0) / 12.0)


def write_table(path, notes):
    lines = [f"{onset!r},{offset!r},x,{midi!r}" for onset, offset, midi in notes]
    path.write_text("onset_s,offset_s,name,midi\n" + "\n".join(lines) + "\n")


def write_midi(path, notes):
    """One track, 1000 ticks a beat of one second; onsets and offsets are whole ticks, pitches are keys."""
    number = lambda n: bytes([(n >> shift & 127) | (128 if shift else 0) for shift in (21, 14, 7, 0)])
    moments = []
    for onset, offset, midi in notes:
        moments += [(round(1000 * onset), 1, int(midi)), (round(1000 * offset), 0, int(midi))]
    body, now = b"\0\xff\x51\x03" + (1_000_000).to_bytes(3, "big"), 0
    for tick, on, key in sorted(moments):
        body += number(tick - now) + bytes([0x90, key, 90 * on])
        now = tick
    body += b"\0\xff\x2f\0"
    path.write_bytes(b"MThd" + bytes([0, 0, 0, 6, 0, 0, 0, 1, 3, 232]) + b"MTrk" + len(body).to_bytes(4, "big") + body)


def ours(program, played, found):
    command = [program, "score", "--json", "--notes", played, "--estimate", found]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    scores = json.loads(done.stdout)
    return [scores[kind][key] for kind in ("onset", "onset_offset") for key in ("precision", "recall", "f1")]


def theirs(played, found):
    columns = lambda notes: (np.array([note[:2] for note in notes]), hertz([note[2] for note in notes]))
    scores = []
    for ratio in (None, 0.2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores += precision_recall_f1_overlap(*columns(played), *columns(found), offset_ratio=ratio)[:3]
    return scores


def made_up(rng, keys):
    """Notes, and notes like them: some left out, some doubled, some added, times and pitches a little off, also by
    exactly as much as is allowed."""
    thousandth = lambda seconds: round(float(seconds), 3)
    played = []
    for _ in range(rng.integers(1, 60)):
        onset = thousandth(rng.uniform(0, 6))
        played.append((onset, thousandth(onset + rng.uniform(0.02, 1)), int(rng.integers(55, 62))))
    found = []
    for onset, offset, midi in played + played[:5]:
        if rng.random() < 0.8:
            off = rng.choice([0.0, 0.05, -0.05, 0.0501, rng.normal(0, 0.04)])
            start = thousandth(max(onset + off, 0))
            end = thousandth(max(offset + rng.choice([0.05, rng.normal(0, 0.1)]), start + 0.003))
            detuned = int(rng.choice([0, 0, 0, 1])) if keys else float(rng.choice([0.0, 0.3, -0.49, 0.51]))
            found.append((start, end, midi + detuned))
    return played, found or [(0.0, 1.0, 60)]


def apart(notes):
    """No two notes of a key at once: MIDI cannot tell them apart."""
    kept = []
    for note in sorted(notes):
        if all(note[2] != other[2] or note[0] > other[1] for other in kept):
            kept.append(note)
    return kept


def main():
    program, rng, worst = Path(sys.argv[1]).resolve(), np.random.default_rng(0), 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in range(60):
            midi = case % 3 == 0
            played, found = made_up(rng, midi)
            if midi:
                played, found = apart(played), apart(found)
            files = [folder / f"{kind}.{'mid' if midi else 'csv'}" for kind in ("played", "found")]
            for file, notes in zip(files, (played, found)):
                (write_midi if midi else write_table)(file, notes)
            difference = np.abs(np.subtract(ours(program, *files), theirs(played, found))).max()
            assert difference <= LIMIT, f"case {case}: off by {difference}: {played} {found}"
            worst = max(worst, difference)
    if "--show" in sys.argv:
        print(f"largest difference {worst:.1e}")
    print("60 passed, 0 failed")


if __name__ == "__main__":
    main()
