"""Draws docs/picture.png from the files of `bpnmf demo --out DIR`: `./run picture`."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np


def main():
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    x = np.load(folder / "X.npy")
    with np.load(folder / "model.npz") as model:
        w, h = model["W"], model["H"]
    with np.load(folder / "truth.npz") as truth:
        true_w = truth["W"]
        true_h = truth["H"] * truth["S"]
    cosine = (w / np.linalg.norm(w, axis=0)).T @ (true_w / np.linalg.norm(true_w, axis=0))
    order = np.argsort(w.argmax(0))
    w, h, cosine = w[:, order], h[order], cosine[order]
    twin = cosine.argmax(1)
    size = w.sum(0)

    plt.rcParams.update({"font.size": 10, "axes.titlesize": 11, "axes.titlelocation": "left"})
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), width_ratios=(3, 1.1, 3), layout="constrained")
    show = dict(aspect="auto", origin="lower", cmap="magma", interpolation="nearest")
    axes[0].imshow(np.sqrt(x), **show)
    axes[0].set(title="the counts: 60 pitches, 300 moments", xlabel="moment", ylabel="pitch")
    axes[1].imshow(np.sqrt(w / w.max(0)), **show)
    axes[1].set(title=f"the {w.shape[1]} parts it found", xlabel="part", xticks=range(0, w.shape[1], 2))
    for k in range(w.shape[1]):
        found, played = h[k] * size[k], true_h[twin[k]] * true_w[:, twin[k]].sum()
        top = max(found.max(), played.max()) * 1.1
        axes[2].fill_between(np.arange(h.shape[1]), k, k + played / top, color="#bbbbbb", lw=0)
        axes[2].plot(k + found / top, color="#b5367a", lw=0.9)
    axes[2].set(title="when each is on: found (line), played (grey)", xlabel="moment", ylabel="part", yticks=range(0, w.shape[1], 2))
    axes[2].set_xlim(0, h.shape[1])
    figure.savefig(out, dpi=120)
    print(f"{out}: {w.shape[1]} parts, {true_w.shape[1]} notes, least cosine {cosine.max(1).min():.3f}")


if __name__ == "__main__":
    main()
