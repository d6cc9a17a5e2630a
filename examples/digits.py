"""Handwritten digits, 8 x 8 pixels of 0 to 16, as counts of ink: of what strokes are they made?

The strokes are learned from two thirds of the images. How well they describe the others is measured twice: by the very
counts the activations were inferred from, and by throwing every count into one of two halves, inferring the activations
from one half and predicting the other. Beside scikit-learn's NMF with as many components.
"""

import numpy as np
from common import arguments, divergence, halves, save, sureness
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

import bpnmf

options = arguments(__doc__)
digits = load_digits()
X, kinds = digits.data.astype(int), digits.target
if options.quick:
    X, kinds = X[:450], kinds[:450]
new = np.arange(len(X)) % 3 == 0
half, other = halves(X[new])
half = half.toarray()

chains, most_sweeps = (1, 30) if options.quick else (2, None)
model = bpnmf.BetaProcessNMF(random_state=0, n_chains=chains, max_iter=most_sweeps, n_jobs=-1).fit(X[~new])
number = model.components_.shape[0]
print(f"{(~new).sum()} images are made of {model.n_components_} strokes ({sureness(model)})")
print("  by chain:", *(model.trace_["n_components"][model.trace_["chain"] == chain][-1] for chain in range(chains)))
on = model.inclusion_.sum(axis=1).mean()
print(f"{on:.1f} of them are on in an image, on average")

sweeps = 100 if options.quick else 2000
nmf = NMF(number, beta_loss="kullback-leibler", solver="mu", init="nndsvda", random_state=0, max_iter=sweeps)
nmf.fit(X[~new].astype(float))

print(f"KL divergence of {new.sum()} new images, mean over images, both with {number} components:")
print("          the same counts  the other half")
for name, transform, components in (
    ("bpnmf", model.transform, model.components_.astype(float)),
    ("KL-NMF", lambda counts: nmf.transform(counts.astype(float)), nmf.components_),
):
    same = divergence(X[new], transform(X[new]), components)
    told = divergence(other, transform(half), components)
    print(f"  {name:<7} {same:>15.2f} {told:>15.2f}")

if options.pictures:
    save(bpnmf.plot.components(model, image_shape=(8, 8), limit=40), options.pictures, "digits.png")
    save(bpnmf.plot.activations(model, order=kinds[~new]), options.pictures, "digits-activations.png")
