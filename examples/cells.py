"""Kinds of cells in single-cell counts: blood cells whose kind was measured (FACS), which the programs are not told.

Every method is fitted to four fifths of the cells. A cell belongs to the component with most of its expected counts.
"""

import csv
import gzip
import time

import numpy as np
from common import arguments, data, divergence, halves, save
from scipy.io import mmread
from scipy.sparse import csr_array
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.metrics import adjusted_rand_score

import bpnmf

options = arguments(__doc__)
folder = data("pbmc_facs")
with gzip.open(folder / "counts.mtx.gz") as file:
    X = csr_array(mmread(file))
with open(folder / "samples.csv", newline="") as file:
    rows = list(csv.DictReader(file))
broad, fine = (np.array([row[key] for row in rows]) for key in ("subpop", "celltype"))

if options.quick:
    some = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:400])
    X, broad, fine = X[some], broad[some], fine[some]
    mean = X.mean(axis=0)
    variance = (X * X).mean(axis=0) - mean**2
    X = X[:, np.sort(np.argsort(-variance)[:1000])]
new = np.arange(X.shape[0]) % 5 == 0
seen, unseen = X[~new], X[new]
half, other = halves(unseen)
print(f"{X.shape[0]} cells, {X.shape[1]} genes; fitted to {seen.shape[0]} of them")


def judge(name, activations_of, components, seconds):
    """How well the groups agree with the measured kinds, and how well the model describes cells it has not seen.

    KL same: the counts that the activations were inferred from. KL half: inferred from one half, the other half predicted.
    """
    groups = np.argmax(activations_of(X) * components.sum(axis=1), axis=1)
    broad_ari, fine_ari = (adjusted_rand_score(kinds, groups) for kinds in (broad, fine))
    same = divergence(unseen, activations_of(unseen), components)
    told = divergence(other, activations_of(half), components)
    print(f"  {name:<16} {len(components):>3} {broad_ari:>10.3f} {fine_ari:>10.3f} {same:>10.1f} {told:>10.1f} {seconds:>8.0f}")
    return groups


print("  method             K  ARI broad   ARI fine    KL same    KL half  seconds")
start = time.perf_counter()
model = bpnmf.BetaProcessNMF(random_state=0, n_chains=1, n_jobs=-1).fit(seen)
number = model.components_.shape[0]
groups = judge("bpnmf", model.transform, model.components_.astype(float), time.perf_counter() - start)

# As scikit-learn starts it, and from random starts: what these find depends on the seed.
for init, seed in [("nndsvda", 0)] + [("random", seed) for seed in range(1 if options.quick else 5)]:
    start = time.perf_counter()
    sweeps = 40 if options.quick else 200
    nmf = NMF(number, beta_loss="kullback-leibler", solver="mu", init=init, random_state=seed, max_iter=sweeps)
    nmf.fit(seen.astype(np.float32))
    seconds = time.perf_counter() - start
    name = f"KL-NMF, {init}" + (f" {seed}" if init == "random" else "")
    judge(name, lambda x: nmf.transform(x.astype(np.float32)), nmf.components_.astype(float), seconds)

start = time.perf_counter()
lda = LatentDirichletAllocation(number, max_iter=5 if options.quick else 30, random_state=0, n_jobs=1).fit(seen)
topics = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
judge("LDA", lambda x: lda.transform(x) * x.sum(axis=1)[:, None], topics, time.perf_counter() - start)

print("The cells of each component of bpnmf, by their measured kind:")
for k in range(number):
    kinds, counts = np.unique(broad[groups == k], return_counts=True)
    most = ", ".join(f"{counts[i]} {kinds[i]}" for i in np.argsort(-counts)[:3])
    print(f"  {k + 1:>2}: {most or 'no cell has it as its strongest'}")
if options.pictures:
    save(bpnmf.plot.activations(model, model.transform(X), order=broad), options.pictures, "cells.png")
    save(bpnmf.plot.trace(model), options.pictures, "cells-trace.png")
