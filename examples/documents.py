"""Documents: which topics are they about, and how many are there? Beside scikit-learn's LDA, by held-out perplexity.

    python examples/documents.py                      bags of words of the data set `bars`, or documents made up here
    python examples/documents.py --folder articles    text files, *.txt, a document each

The topics are learned from four fifths of the documents. Every word of the others is thrown into one of two halves: from one
the proportions of the topics are inferred, the other is predicted. Perplexity is exp(-mean log probability of its words): as
many equally likely words it could be. Smaller is better.
"""

import argparse
import pathlib
import sys

import numpy as np
from common import arguments, data, halves, save, sureness
from scipy import io, sparse
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

import bpnmf


def made_up(documents=400, words=300, topics=8, seed=0):
    """Documents of a hundred words, each about one to three topics."""
    rng = np.random.default_rng(seed)
    beta = rng.dirichlet(np.full(words, 0.05), topics)
    theta = rng.gamma(0.7, 1.0, (documents, topics)) * (rng.random((documents, topics)) < 2 / topics)
    theta[np.arange(documents), rng.integers(0, topics, documents)] += 0.5
    theta /= theta.sum(axis=1, keepdims=True)
    return sparse.csr_array(rng.poisson(100 * theta @ beta)), [f"word {w}" for w in range(words)]


def of_folder(folder):
    """Counts of the words that are in at least five files and at most half of them."""
    texts = [path.read_text(errors="replace") for path in sorted(folder.glob("*.txt"))]
    if len(texts) < 10:
        sys.exit(f"{folder} has {len(texts)} files *.txt: a few dozen documents are needed")
    words = CountVectorizer(min_df=5, max_df=0.5, stop_words="english")
    X = words.fit_transform(texts)
    return sparse.csr_array(X), list(words.get_feature_names_out())


def perplexity(X, proportions, topics):
    """Of the words in X, where the topics of each document have these proportions."""
    X = sparse.coo_array(X)
    proportions = proportions / np.maximum(proportions.sum(axis=1, keepdims=True), 1e-300)
    rows, columns = X.coords
    chance = np.einsum("ik,ki->i", proportions[rows], topics[:, columns])
    # A thousandth of all words may be any word: no method is to be ruined by a single one.
    chance = 0.999 * chance + 0.001 / X.shape[1]
    return float(np.exp(-np.sum(X.data * np.log(chance)) / X.data.sum()))


parser = argparse.ArgumentParser(add_help=False)
parser.add_argument("--folder", type=pathlib.Path)
given, sys.argv[1:] = parser.parse_known_args()
options = arguments(__doc__)
if given.folder:
    X, words = of_folder(given.folder)
elif (folder := data("bars", needed=False)) and not options.quick:
    X = sparse.csr_array(io.mmread(folder / "bars_many.mtx"))
    words = [f"word {w}" for w in range(X.shape[1])]
else:
    X, words = made_up()
new = np.arange(X.shape[0]) % 5 == 0
seen, (half, other) = X[~new], halves(X[new])
print(f"{X.shape[0]} documents, {X.shape[1]} words, {int(X.sum())} in all")

model = bpnmf.BetaProcessNMF(random_state=0, n_chains=1 if options.quick else 4, n_jobs=-1).fit(seen)
number = model.components_.shape[0]
print(f"{model.n_components_} topics ({sureness(model)}); the words that are special to the largest of them:")
for name, special in list(zip(model.component_names_, model.markers(6)))[:10]:
    print(f"  {name}: {', '.join(words[w] for w in special)}")

scale = model.components_.sum(axis=1, dtype=float)
found = {f"bpnmf, {number} topics": perplexity(other, model.transform(half) * scale, model.components_ / scale[:, None])}
for topics in sorted({max(2, number // 2), number, 2 * number}):
    lda = LatentDirichletAllocation(topics, max_iter=10 if options.quick else 50, random_state=0).fit(seen)
    beta = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    found[f"LDA, {topics} topics"] = perplexity(other, lda.transform(half), beta)
print("perplexity of the other halves of new documents:")
for name, value in found.items():
    print(f"  {name:<20} {value:8.1f}")

if options.pictures:
    save(bpnmf.plot.components(model, names=words, limit=8), options.pictures, "documents.png")
