"""Kills runs at random moments with SIGKILL, resumes them, and compares the result with that of the unbroken run.

    soak.py PROGRAM [SECONDS]      random jobs for so long, 60 s unless told otherwise
    soak.py PROGRAM --kills N      N kills, over all engines, dense and sparse matrices and sound, in equal parts

model.npz and every wav file must be equal byte for byte, summary.json and trace.csv but for times and threads. Needs
nothing but Python. The seed of the jobs is printed; --seed N repeats them.
"""

import argparse
import json
import math
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

ENGINES = ["gibbs", "ssmf", "gibbs-expected", "map", "nb-process"]

# Of summary.json: what says how long it took, and on how many threads.
TIMES = {"seconds", "seconds_by_stage", "threads"}

# The lock on a folder of results. A run that was killed on its way out leaves the file.
LOCK = ".bpnmf.lock"


def counts(rng, features, observations, parts, density):
    """A matrix of counts with so many parts, as rows."""
    w = [[rng.gammavariate(0.5, 20.0) for _ in range(parts)] for _ in range(features)]
    h = [[rng.gammavariate(2.0, 0.5) * (rng.random() < 0.3) for _ in range(observations)] for _ in range(parts)]
    rate = lambda f, t: sum(w[f][k] * h[k][t] for k in range(parts))
    return [
        [int(rate(f, t) + rng.random()) * (rng.random() < density) for t in range(observations)]
        for f in range(features)
    ]


def write_matrix(path, rows):
    """As csv or as Matrix Market coordinates, by the name."""
    if path.suffix == ".csv":
        path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
        return
    entries = [(f, t, x) for f, row in enumerate(rows) for t, x in enumerate(row) if x]
    head = f"%%MatrixMarket matrix coordinate integer general\n{len(rows)} {len(rows[0])} {len(entries)}\n"
    path.write_text(head + "".join(f"{f + 1} {t + 1} {x}\n" for f, t, x in entries))


def write_sound(path, rng, seconds):
    """Notes of three harmonics that come and go, 16 bits at 8 kHz."""
    rate = 8000
    notes = [(rng.uniform(150, 1200), rng.uniform(1.0, 3.0), rng.random()) for _ in range(rng.randint(3, 6))]
    samples = []
    for i in range(int(seconds * rate)):
        at = i / rate
        value = 0.0
        for pitch, pace, phase in notes:
            if (at * pace + phase) % 1.0 < 0.6:
                value += sum(math.sin(2 * math.pi * pitch * n * at) / n for n in (1, 2, 3))
        samples.append(int(32767 * max(-1.0, min(1.0, 0.12 * value))))
    data = struct.pack(f"<{len(samples)}h", *samples)
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16,
                       b"data", len(data))
    path.write_bytes(head + data)


def draw(rng, folder, engine, kind):
    """A job: the words of its command, but for --out, --threads and the checkpoints."""
    seed = ["--seed", str(rng.randrange(1000)), "--engine", engine]
    if kind == "sound":
        path = folder / "mix.wav"
        write_sound(path, rng, rng.uniform(4.0, 10.0))
        job = ["separate", path.name, "--stems", "2", "-n", str(rng.randint(30, 120)), "--no-stop"]
        return job + seed
    path = folder / ("counts.mtx" if kind == "sparse" else "counts.csv")
    shape = rng.randint(20, 90), rng.randint(100, 500)
    write_matrix(path, counts(rng, *shape, rng.randint(3, 9), 0.15 if kind == "sparse" else 0.9))
    preset = rng.choice(["auto", "paper", "paper"])
    job = ["fit", path.name, "--preset", preset, "-n", str(rng.randint(40, 250))]
    if preset == "paper":
        job += ["-k", str(rng.randint(20, 120)), "--init", rng.choice(["random", "scaled"])]
        job += ["--prior", rng.choice(["paper", "authors"])]
        if engine == "ssmf" and rng.random() < 0.3:
            job += ["--prune", "0.001"]
    elif engine != "nb-process" and rng.random() < 0.3:
        job += ["--force-components", str(rng.randint(2, 9))]
    if rng.random() < 0.3:
        job += ["--held-out", "0.1"]
    if rng.random() < 0.5:
        job += ["--no-stop"]
    job += ["--chains", str(rng.choice([1, 1, 2, 4]))]
    return job + seed


def timeless(folder):
    """All results of a folder by their names, without times."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() or name in ["report.html", LOCK]:
            continue
        if name == "summary.json":
            found[name] = {key: value for key, value in json.loads(path.read_text()).items() if key not in TIMES}
        elif name == "trace.csv":
            rows = [line.split(",") for line in path.read_text().splitlines()]
            at = rows[0].index("seconds")
            found[name] = [row[:at] + row[at + 1:] for row in rows]
        else:
            found[name] = path.read_bytes()
    return found


class Tally:
    """What was done and what came out of it."""

    def __init__(self):
        self.jobs = self.kills = self.equal = self.different = self.failed = 0
        self.from_iterations = self.from_search = 0

    def __str__(self):
        return (f"{self.jobs} jobs, {self.kills} kills, {self.from_iterations} times resumed after iterations, "
                f"{self.from_search} within a search, "
                f"{self.equal} equal, {self.different} different, {self.failed} failed")


def run(program, words, folder, after=None):
    """Runs the program; kills it after so many seconds. Gives whether it was killed, its exit code and its words."""
    process = subprocess.Popen([program, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        told = process.communicate(timeout=after)[1]
        return False, process.returncode, told.decode()
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        told = process.communicate()[1]
        return process.returncode == -signal.SIGKILL, process.returncode, told.decode()


def trial(program, rng, engine, kind, most_kills, tally):
    """One job, unbroken and broken. A run that ends before it is killed is done again, killed earlier."""
    with tempfile.TemporaryDirectory(prefix="bpnmf-soak-") as name:
        folder = pathlib.Path(name)
        job = draw(rng, folder, engine, kind)
        threads = lambda: ["--threads", str(rng.choice([1, 2]))]
        begin = time.monotonic()
        _, code, told = run(program, job + threads() + ["--out", "whole", "--checkpoint-every", "0"], folder)
        took = time.monotonic() - begin
        tally.jobs += 1
        if code != 0:
            tally.failed += 1
            print(f"failed: {' '.join(job)}: {told}", flush=True)
            return
        expected = timeless(folder / "whole")
        every = ["--checkpoint-every", rng.choice(["0.01", "0.05", "0.2"])]
        words, kills, within = job + threads() + ["--out", "broken", *every], 0, took
        for _ in range(20 * most_kills):
            killed, code, told = run(program, words, folder, None if kills == most_kills else rng.uniform(0, within))
            tally.from_iterations += "goes on after iteration" in told
            tally.from_search += "goes on in its search" in told
            if killed and not any((folder / "broken" / "checkpoint").glob("*.bin")):
                if (folder / "broken" / "summary.json").exists():
                    # Complete, and killed on its way out.
                    killed, code = False, 0
                else:
                    # Before there was anything to go on with: begin again.
                    within = max(took, within * 1.1)
                    continue
            if killed:
                kills += 1
                tally.kills += 1
                words = ["resume", "broken", "-v", *threads()]
                continue
            if code != 0 or kills == most_kills:
                break
            if kills == 0:
                # Over before it was killed.
                within *= 0.7
                subprocess.run(["rm", "-rf", "broken"], cwd=folder, check=True)
                continue
            break
        found = timeless(folder / "broken")
        if code != 0:
            tally.failed += 1
            print(f"failed with {code}: {' '.join(job)}: {told}", flush=True)
        elif found == expected:
            tally.equal += 1
        else:
            tally.different += 1
            names = [name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)]
            print(f"different in {', '.join(sorted(names))}: {' '.join(job)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("seconds", nargs="?", type=float, default=60.0)
    parser.add_argument("--kills", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    program = str(pathlib.Path(args.program).resolve())
    rng, tally = random.Random(args.seed), Tally()
    print(f"seed {args.seed}", flush=True)
    kinds = ["dense", "sparse", "sound"]
    if args.kills is not None:
        while tally.kills < args.kills and tally.jobs < 3 * args.kills:
            trial(program, rng, ENGINES[tally.kills % 3], kinds[tally.kills // 3 % 3], 1, tally)
        print(tally)
        print(f"{tally.equal} of {tally.kills} equal")
    else:
        end = time.monotonic() + args.seconds
        told = time.monotonic()
        while time.monotonic() < end:
            if time.monotonic() > told + 60:
                print(tally, flush=True)
                told = time.monotonic()
            trial(program, rng, rng.choice(ENGINES), rng.choice(kinds), rng.choice([1, 1, 2, 3, 5]), tally)
        print(tally)
    sys.exit(0 if tally.jobs > 0 and tally.different == tally.failed == 0 else 1)


if __name__ == "__main__":
    main()
