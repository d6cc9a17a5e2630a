"""Ratings: who likes what, and what should they see next? Recall at 20 on items that were held out.

    python examples/ratings.py                        users and items made up here
    python examples/ratings.py --file ratings.csv     lines of user,item,rating, as MovieLens has them (a header is skipped)

A fifth of the items of every user is hidden. Each method ranks the items that a user has not seen, and recall at 20 is the
share of the hidden ones among the first 20 (of 20, if more are hidden). Beside it KL-NMF of scikit-learn at several numbers of
components, and the most popular items for everybody.
"""

import argparse
import csv
import pathlib
import sys

import numpy as np
from common import arguments, save, sureness
from scipy import sparse
from sklearn.decomposition import NMF

import bpnmf

TOP = 20


def made_up(users=300, items=400, tastes=9, seed=0):
    """Users with one to three tastes, items with one or two."""
    rng = np.random.default_rng(seed)
    liked = rng.gamma(0.5, 1.0, (tastes, items)) * (rng.random((tastes, items)) < 0.15)
    popular = rng.gamma(0.7, 1.0, items)
    likes = rng.gamma(1.0, 1.0, (users, tastes)) * (rng.random((users, tastes)) < 2 / tastes)
    likes[np.arange(users), rng.integers(0, tastes, users)] += 1.0
    rates = likes @ (liked * popular)
    rates *= rng.gamma(2.0, 20.0, (users, 1)) / rates.sum(axis=1, keepdims=True)
    return sparse.csr_array(np.minimum(rng.poisson(rates), 5))


def of_file(path):
    """Users x items from lines of user,item,rating."""
    rows = []
    with open(path, newline="") as file:
        for row in csv.reader(file):
            try:
                rows.append((row[0], row[1], float(row[2])))
            except (ValueError, IndexError):
                continue
    if not rows:
        sys.exit(f"{path} has no line of user,item,rating")
    users, items = ({name: i for i, name in enumerate(sorted({row[k] for row in rows}))} for k in (0, 1))
    # Half stars become whole counts.
    values = [round(2 * row[2]) for row in rows]
    return sparse.csr_array((values, ([users[row[0]] for row in rows], [items[row[1]] for row in rows])))


def recall(scores, seen, hidden):
    """The share of the hidden items among the first TOP of those that were not seen, mean over users."""
    scores = np.where(seen.toarray() > 0, -np.inf, scores)
    first = np.argsort(-scores, axis=1, kind="stable")[:, :TOP]
    found = []
    for user, items in enumerate(first):
        there = hidden[[user]].indices
        if there.size:
            found.append(np.isin(items, there).sum() / min(there.size, TOP))
    return float(np.mean(found))


parser = argparse.ArgumentParser(add_help=False)
parser.add_argument("--file", type=pathlib.Path)
given, sys.argv[1:] = parser.parse_known_args()
options = arguments(__doc__)
X = of_file(given.file) if given.file else made_up()
hide = np.random.default_rng(1).random(X.nnz) < 0.2
seen, hidden = X.copy(), X.copy()
seen.data, hidden.data = np.where(hide, 0, X.data), np.where(hide, X.data, 0)
seen.eliminate_zeros()
hidden.eliminate_zeros()
print(f"{X.shape[0]} users, {X.shape[1]} items, {seen.nnz} ratings and {hidden.nnz} that are hidden")

model = bpnmf.BetaProcessNMF(random_state=0, n_chains=1 if options.quick else 4, n_jobs=-1).fit(seen)
number = model.components_.shape[0]
print(f"{model.n_components_} tastes ({sureness(model)})")
found = {f"bpnmf, {number} tastes": recall(model.activations_ @ model.components_, seen, hidden)}
for components in sorted({max(2, number // 2), number, 2 * number}):
    sweeps = 50 if options.quick else 300
    nmf = NMF(components, beta_loss="kullback-leibler", solver="mu", init="nndsvda", random_state=0, max_iter=sweeps)
    users = nmf.fit_transform(seen.astype(float))
    found[f"KL-NMF, {components} components"] = recall(users @ nmf.components_, seen, hidden)
found["the most popular"] = recall(np.tile(np.asarray(seen.sum(axis=0)).ravel(), (X.shape[0], 1)), seen, hidden)
print(f"recall at {TOP} of the hidden items:")
for name, value in found.items():
    print(f"  {name:<24} {value:.3f}")

if options.pictures:
    save(bpnmf.plot.activations(model), options.pictures, "ratings.png")
