"""Draws docs/rank.png, K found against the mean count, from the file of `rank --csv`: `./run rank`."""

import csv
import sys
from collections import defaultdict

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# Row of the file, how the names of its sets begin, title.
PANELS = [
    ("levels", "low_rank_", "W and H ~ Gamma(0.5)"),
    ("grid", "grid_10_1_", "W ~ Gamma(0.3), H ~ Gamma(1)"),
]
FOUND, TRUTH = "#3b6fb6", "#c8553d"


def read(path):
    """For every panel that was run: its title, the K of all fits by mean count, and the truth."""
    with open(path, newline="") as file:
        lines = list(csv.DictReader(file))
    panels = []
    for row, prefix, title in PANELS:
        own = [line for line in lines if line["row"] == row and line["set"].startswith(prefix)]
        found = defaultdict(list)
        for line in own:
            found[float(line["set"].removeprefix(prefix))].append(int(line["found"]))
        if own:
            panels.append((title, found, int(own[0]["truth"])))
    return panels


def draw(axis, title, found, truth):
    axis.axhline(truth, color=TRUTH, lw=1.2, zorder=1)
    means = sorted(found)
    axis.annotate("truth", (1, truth), (3, 0), ("axes fraction", "data"), "offset points", color=TRUTH, va="center")
    for mean in means:
        for k in set(found[mean]):
            often = found[mean].count(k)
            axis.scatter(mean, k, s=24 * often, color=FOUND, lw=0, zorder=2)
    axis.plot(means, [sum(found[mean]) / len(found[mean]) for mean in means], color=FOUND, lw=0.8, zorder=2)
    axis.set(title=title, xlabel="mean count", xscale="log")
    axis.set_xticks(means, [f"{mean:g}" for mean in means])
    axis.minorticks_off()
    axis.spines[["top", "right"]].set_visible(False)


def main():
    path, out = sys.argv[1:]
    panels = read(path)
    if not panels:
        sys.exit(f"{path} has no fits of the rows {', '.join(row for row, *_ in PANELS)}: nothing to draw")
    plt.rcParams.update({"font.size": 9.5, "axes.titlesize": 10.5, "axes.titlelocation": "left", "axes.linewidth": 0.6})
    widths = [max(len(found), 5) + 1 for _, found, _ in panels]
    figure, axes = plt.subplots(
        1, len(panels), figsize=(10, 3.4), width_ratios=widths, layout="constrained", sharey=True, squeeze=False
    )
    for axis, panel in zip(axes[0], panels):
        draw(axis, *panel)
    fits = [k for _, found, _ in panels for ks in found.values() for k in ks]
    most = max(*fits, *(truth for *_, truth in panels))
    axes[0, 0].set(ylabel="K found (line: mean; area: number of fits)", ylim=(0, most * 1.1))
    axes[0, 0].yaxis.get_major_locator().set_params(integer=True)
    figure.savefig(out, dpi=120)
    print(f"{out}: {len(fits)} fits")


if __name__ == "__main__":
    main()
