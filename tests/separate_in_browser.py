"""The sounds of a page against the files of the same separation: run by `./run test` with the program.

The page makes its sounds by itself, from the recording and the model; it says they are those of the files."""

import subprocess
import sys
import tempfile
import wave
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright
from report_in_browser import BROWSER, FLAGS, SAMPLES, open_page, wait_for_sounds

RATE = 8000


def write_recordings(folder):
    """Notes that come and go, of two instruments alone, and together with a little noise."""
    t = np.arange(3 * RATE + 55) / RATE
    mix = 0.003 * np.random.default_rng(1).standard_normal(len(t))
    for name, speed, pitches in (("high", 1.3, (980, 1470)), ("low", 2.0, (220, 330, 495))):
        turn = (t * speed).astype(int)
        pitch = np.array(pitches)[turn % len(pitches)]
        x = np.where(turn % 4 < 3, 0.2, 0) * sum(np.sin(2 * np.pi * pitch * n * t) / n for n in (1, 2, 3))
        write(folder / f"{name}.wav", x)
        mix += x
    write(folder / "mix.wav", mix)


def write(path, x):
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(np.round(x * 32767 / 1.5).astype("<i2").tobytes())


def floats(path):
    data = path.read_bytes()
    return np.frombuffer(data[data.index(b"data") + 8 :], "<f4").astype(float)


def main():
    program = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        folder = Path(folder)
        write_recordings(folder)
        references = ["--reference", folder / "high.wav", folder / "low.wav"]
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        for number, flags in enumerate((["--stems", "2"], ["--stems", "2", "--residual"], references)):
            out = folder / str(number)
            subprocess.run([program, "separate", folder / "mix.wav", "--out", out, *flags], check=True)
            complaints = []
            page = open_page(browser, out / "report.html", complaints, bypass_csp=True)
            wait_for_sounds(page)
            stems = sorted((out / "stems").iterdir())  # numbers, then the residual: as on the page
            parts = sorted((out / "components").iterdir())
            players = page.evaluate(SAMPLES)[1:]
            assert len(players) == len(stems) + len(parts) and not complaints, complaints
            for path, (_, _, sound) in zip(stems + parts, players):
                off = np.abs(np.array(sound) - 32768 * floats(path)).max()
                assert off < 0.51, f"{path.name}: {off} steps of 16 bits apart, where rounding is 0.5"
        browser.close()


if __name__ == "__main__":
    main()
