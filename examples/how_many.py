"""How many components? The answer of one fit, beside a scan over their number with scikit-learn's NMF.

The counts are drawn here, so the truth is known. The scan is the usual one: every count is thrown into one of two
halves, NMF is fitted to one of them, the best of three starts, and judged by the other.
"""

import time

import numpy as np
from common import arguments, divergence, halves, save, sureness
from sklearn.decomposition import NMF

import bpnmf

TRUTH = 8
options = arguments(__doc__)
rng = np.random.default_rng(0)
samples = 150 if options.quick else 600
components = rng.gamma(0.3, 10.0, (TRUTH, 60))
activations = rng.gamma(2.0, 0.5, (samples, TRUTH)) * (rng.random((samples, TRUTH)) < 0.3)
X = rng.poisson(activations @ components)
print(f"{samples} samples, 60 features; {TRUTH} components are true")

start = time.perf_counter()
model = bpnmf.BetaProcessNMF(random_state=0, n_chains=2 if options.quick else 4).fit(X)
seconds = time.perf_counter() - start
print(f"bpnmf: {model.n_components_} ({sureness(model)}), {seconds:.1f} s")

half, other = (part.toarray() for part in halves(X))
start = time.perf_counter()
scan = {}
for number in (2, 5, 7, 8, 9, 12) if options.quick else range(1, 17):
    tries = []
    for init, seed in (("nndsvda", 0), ("random", 0), ("random", 1)):
        sweeps = 100 if options.quick else 1000
        nmf = NMF(number, beta_loss="kullback-leibler", solver="mu", init=init, random_state=seed, max_iter=sweeps)
        found = nmf.fit_transform(half.astype(float))
        tries.append([divergence(counts, found, nmf.components_) for counts in (half, other)])
    scan[number] = min(tries)
seconds = time.perf_counter() - start
print("KL-NMF, KL divergence, mean over samples:")
print("   K  fitted half  other half")
for number, (fitted, told) in scan.items():
    print(f"  {number:>2} {fitted:>12.2f} {told:>11.2f}")
best = min(scan, key=lambda number: scan[number][1])
print(f"KL-NMF: the other half is predicted best with {best}, {seconds:.1f} s; the fitted half always wants more")

if options.pictures:
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 2.8), layout="constrained")
    bpnmf.plot.n_components(model, ax=left)
    left.set_title("bpnmf", fontsize=10)
    for place, label in enumerate(("the fitted half", "the other half")):
        right.plot(list(scan), [pair[place] for pair in scan.values()], "o-", label=label)
    right.axvline(TRUTH, color="grey", linewidth=1, linestyle=":")
    right.set(xlabel="number of components", ylabel="KL divergence")
    right.set_title("KL-NMF", fontsize=10)
    right.legend()
    save(figure, options.pictures, "how-many.png")
