"""Mutational signatures: 21 breast-cancer genomes, counts of 96 types of mutation. What processes made them, how many?"""

import csv

import numpy as np
from common import arguments, data, save, sureness
from scipy.optimize import linear_sum_assignment

import bpnmf

options = arguments(__doc__)
with open(data("breast21") / "Samples_SBS.txt", newline="") as file:
    header, *rows = csv.reader(file, delimiter="\t")
types = [row[0] for row in rows]
X = np.array([row[1:] for row in rows], dtype=int).T
print(f"{X.shape[0]} genomes, {X.shape[1]} types, {X.sum()} mutations")

fits = [bpnmf.BetaProcessNMF(random_state=seed, n_chains=1 if options.quick else 4).fit(X) for seed in (0, 1)]
model = fits[0]
print(f"{model.n_components_} signatures ({sureness(model)}); the largest first:")
for k, top in enumerate(model.top_features(4)):
    weights = model.components_[k] / model.components_[k].sum()
    told = ", ".join(f"{types[f]} {100 * weights[f]:.0f} %" for f in top)
    print(f"  {k + 1}: {100 * model.share_[k]:4.1f} % of the mutations, on in {model.usage_[k]:4.1f} genomes; {told}")

one, other = (fit.components_ / np.linalg.norm(fit.components_, axis=1, keepdims=True) for fit in fits)
cosines = one @ other.T
pairs = linear_sum_assignment(-cosines)
print(f"Another seed finds {fits[1].n_components_}. Cosines of the pairs:", *(f"{c:.3f}" for c in cosines[pairs]))

if options.pictures:
    save(bpnmf.plot.signatures(model, names=types), options.pictures, "signatures.png")
    if not options.quick:
        save(bpnmf.plot.n_components(model), options.pictures, "signatures-number.png")
