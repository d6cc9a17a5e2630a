"""Draws docs/picture.png from the files of `bpnmf demo --out DIR`: `./run picture`."""

import csv
import json
import sys
import wave
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

LOWEST, HIGHEST = 130, 6000  # Hz
COLOURS = {"piano": "#3b6fb6", "clarinet": "#c8553d"}


def spectrogram(path, window, hop):
    with wave.open(str(path)) as file:
        rate, samples = file.getframerate(), np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
    padded = np.pad(samples, window // 2)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    frames = np.lib.stride_tricks.sliding_window_view(padded, window)[::hop]
    return rate, np.abs(np.fft.rfft(frames * hann)).T


def played(path):
    """Instrument, name and pitch of every note, from low to high, and when it is played."""
    notes = {}
    for row in csv.DictReader(path.open()):
        key = row["instrument"], row["note"], float(row["hertz"])
        notes.setdefault(key, []).append((float(row["onset_s"]), float(row["offset_s"])))
    return notes


def main():
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    summary = json.loads((folder / "summary.json").read_text())
    window, hop = summary["sound"]["window"], summary["sound"]["hop"]
    rate, magnitudes = spectrogram(folder / "mixture.wav", window, hop)
    with np.load(folder / "model.npz") as model:
        w, h, s = model["W"], model["H"], model["S"]
    notes = played(folder / "truth" / "notes.csv")
    bins, seconds = np.arange(window // 2 + 1) * rate / window, np.arange(h.shape[1]) * hop / rate

    # Each part beside the note that is played when it is on.
    on = {key: sum(((seconds >= a) & (seconds < b)).astype(float) for a, b in times) for key, times in notes.items()}
    alike = lambda k, key: h[k] @ on[key] / np.linalg.norm(h[k]) / np.linalg.norm(on[key])
    twin = {k: max(notes, key=lambda key: alike(k, key)) for k in range(w.shape[1])}
    parts = sorted(twin, key=lambda k: (twin[k][0] != "piano", twin[k][2]))
    colours = [COLOURS[twin[k][0]] for k in parts]

    plt.rcParams.update({"font.size": 9.5, "axes.titlesize": 10.5, "axes.titlelocation": "left", "axes.linewidth": 0.6})
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), width_ratios=(3, 1.9, 3), layout="constrained")
    figure.set_facecolor("white")

    level = 20 * np.log10(np.maximum(magnitudes, 1e-9) / magnitudes.max())
    axes[0].pcolormesh(seconds, bins[1:], level[1:], vmin=-55, vmax=0, cmap="magma", shading="nearest", rasterized=True)
    axes[0].set(title="given: one recording", xlabel="seconds", ylabel="Hz", yscale="log", ylim=(LOWEST, HIGHEST))
    ticks = [200, 500, 1000, 2000, 5000]
    axes[0].set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    axes[0].minorticks_off()

    shown = bins >= 60
    for row, (k, colour) in enumerate(zip(parts, colours)):
        height = np.sqrt(w[shown, k] / w[:, k].max()) * 0.85
        axes[1].fill_between(bins[shown], row, row + height, color=colour, lw=0)
    axes[1].set(title=f"found: {len(parts)} parts, each a spectrum", xlabel="Hz", xscale="log", xlim=(LOWEST, HIGHEST))
    axes[1].set_xticks([200, 1000, 5000], ["200", "1,000", "5,000"])
    axes[1].minorticks_off()

    for row, (k, colour) in enumerate(zip(parts, colours)):
        for start, end in notes[twin[k]]:
            axes[2].fill_between([start, end], row - 0.04, row + 0.9, color="#e4e4e4", lw=0)
        heard = h[k] * (s[k] > 0.5)
        axes[2].fill_between(seconds, row, row + 0.85 * heard / heard.max(), color=colour, lw=0)
    axes[2].set(title="and when it is on (grey: when the note is played)", xlabel="seconds", xlim=(0, seconds[-1]))
    for axis in axes[1:]:
        axis.set(ylim=(-0.15, len(parts)), yticks=np.arange(len(parts)) + 0.35, yticklabels=[])
        axis.tick_params(axis="y", length=0)
        axis.spines[["top", "right", "left"]].set_visible(False)
    axes[1].set_yticklabels([f"{twin[k][0]} {twin[k][1]}" for k in parts])
    for label, colour in zip(axes[1].get_yticklabels(), colours):
        label.set_color(colour)

    figure.savefig(out, dpi=120)
    least = min(alike(k, twin[k]) for k in parts)
    print(f"{out}: {len(parts)} parts, {len(notes)} notes, least cosine in time {least:.2f}")


if __name__ == "__main__":
    main()
