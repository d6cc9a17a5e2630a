"""What each field expects: known components, AnnData, the program's models, markers, names that stay."""

import subprocess

import numpy as np
import pytest

import bpnmf
from bpnmf import BetaProcessNMF


def made(present=3, samples=30, mutations=800, seed=0):
    """Components that are known, counts of them and the true exposures."""
    rng = np.random.default_rng(seed)
    components = rng.dirichlet(np.full(40, 0.15), 8)
    exposures = rng.dirichlet(np.ones(present), samples) * mutations
    truth = np.zeros((samples, 8))
    for row, values in zip(truth, exposures):
        row[rng.choice(8, present, replace=False)] = values
    return components, rng.poisson(truth @ components), truth


def test_known_components_are_found_in_new_samples_with_intervals_that_hold():
    components, X, truth = made()
    model = BetaProcessNMF.from_components(components, random_state=0)
    found = model.assign(X)
    said = found.inclusion >= 0.5
    assert 2 * (said & (truth > 0)).sum() / (said.sum() + (truth > 0).sum()) > 0.9
    within = (found.exposures_low <= truth) & (truth <= found.exposures_high)
    assert 0.8 < within[said].mean() <= 0.98
    assert found.component_names == ["C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8"]
    assert repr(found) == "Assignment(30 samples, 8 of 8 components present)"
    np.testing.assert_array_equal(found.exposures, model.assign(X).exposures)
    with pytest.raises(ValueError, match=r"assign\(X\) learns it"):
        model.transform(X)


def test_an_assignment_of_a_fitted_model_has_the_prior_of_the_fit(model, counts):
    found = model.assign(counts[:10])
    expected = model.activations_[:10] * model.components_.sum(axis=1)
    assert np.abs(found.exposures - expected).max() < 0.2 * expected.max()
    alone = model.assign(counts[:1])
    np.testing.assert_array_equal(alone.exposures, found.exposures[:1])


def test_what_are_no_components_is_refused():
    for components, words in ((np.zeros((2, 3)), "zero everywhere"), ([1.0, 2.0], "shape"), (-np.ones((2, 2)), "negative")):
        with pytest.raises(ValueError, match=words):
            BetaProcessNMF.from_components(components)
    with pytest.raises(ValueError, match="feature_names has 1 names"):
        BetaProcessNMF.from_components(np.ones((2, 3)), feature_names=["a"])


def test_frames_keep_their_names_in_all_outputs(counts):
    pandas = pytest.importorskip("pandas")
    components, X, _ = made(samples=6)
    names = [f"type {f}" for f in range(40)]
    table = pandas.DataFrame(components.T, index=names, columns=[f"S{k}" for k in range(8)])
    frame = pandas.DataFrame(X, columns=names, index=[f"tumour {t}" for t in range(6)])
    found = BetaProcessNMF.from_components(table.T, random_state=0).assign(frame)
    for values in (found.exposures, found.exposures_low, found.inclusion):
        assert list(values.index) == list(frame.index) and list(values.columns) == list(table.columns)
    with pytest.raises(ValueError, match="feature names"):
        BetaProcessNMF.from_components(table.T).assign(frame[names[::-1]])
    pytest.importorskip("sklearn")
    frame = pandas.DataFrame(counts[:60], columns=[f"word {f}" for f in range(30)])
    model = BetaProcessNMF(random_state=0, n_chains=1).set_output(transform="pandas").fit(frame)
    mean, std = model.transform(frame, return_std=True)
    assert list(mean.columns) == list(std.columns) == model.component_names_
    assert list(mean.columns)[0] == "C1"


def test_markers_are_special_and_not_merely_large():
    rng = np.random.default_rng(0)
    components = rng.gamma(1.0, 1.0, (3, 30))
    components[:, 0] = 40.0
    for k in range(3):
        components[k, 1 + 3 * k : 4 + 3 * k] = 15.0
    X = rng.poisson((rng.gamma(1.0, 1.0, (150, 3)) * (rng.random((150, 3)) < 0.5)) @ components)
    model = BetaProcessNMF(random_state=0, n_chains=1).fit(X)
    assert all(row[0] == 0 for row in model.top_features(1))
    assert all(0 not in row for row in model.markers(3))
    assert sorted(sum(model.markers(3), [])) == list(range(1, 10))


def test_empty_features_change_nothing_that_counts(counts):
    wide = np.hstack([counts, np.zeros((len(counts), 20), dtype=counts.dtype)])
    one, other = (BetaProcessNMF(random_state=0, n_chains=1).fit(X) for X in (counts, wide))
    assert one.n_components_ == other.n_components_


def test_a_model_of_the_program_is_loaded_and_is_that_of_python(tmp_path, program, counts):
    np.save(tmp_path / "counts.npy", counts.T)
    run = [program, "fit", str(tmp_path / "counts.npy"), "--out", str(tmp_path / "out"), "--seed", "3", "--quiet"]
    subprocess.run(run, check=True, capture_output=True)
    model = BetaProcessNMF(random_state=3).fit(counts)
    for path in (tmp_path / "out", tmp_path / "out" / "model.npz"):
        loaded = bpnmf.load(path)
        np.testing.assert_array_equal(loaded.components_, model.components_)
        np.testing.assert_array_equal(loaded.transform(counts[:5]), model.transform(counts[:5]))
        assert loaded.n_components_interval_ == model.n_components_interval_
        assert loaded.prior_ == pytest.approx(model.prior_) and loaded.alpha_ == model.alpha_
        assert loaded.burn_in_ == model.burn_in_
        np.testing.assert_allclose(loaded.trace_["log_joint"], model.trace_["log_joint"], rtol=1e-6)
        np.testing.assert_array_equal(loaded.trace_["chain"], model.trace_["chain"])
        np.testing.assert_array_equal(loaded.components_interval_, model.components_interval_)
    import json

    parts = json.loads((tmp_path / "out" / "summary.json").read_text())["components"]
    assert [part["markers"] for part in parts] == model.markers(5)
    loaded.save(tmp_path / "again.npz")
    np.testing.assert_array_equal(bpnmf.load(tmp_path / "again.npz").pi_, model.pi_)
    (tmp_path / "out" / "summary.json").unlink()
    with pytest.raises(ValueError, match="summary.json"):
        bpnmf.load(tmp_path / "out")


def test_an_anndata_goes_in_and_comes_out_in_one_call(counts, tmp_path):
    anndata = pytest.importorskip("anndata")
    sparse = pytest.importorskip("scipy.sparse")
    import pandas

    adata = anndata.AnnData(
        np.log1p(counts).astype(np.float32),
        obs=pandas.DataFrame(index=[f"cell {i}" for i in range(200)]),
        var=pandas.DataFrame(index=[f"gene {i}" for i in range(30)]),
        layers={"counts": sparse.csr_matrix(counts)},
    )
    assert bpnmf.fit_anndata(adata, random_state=3, n_chains=2) is None
    number = adata.uns["bpnmf"]["n_components"]
    assert adata.obsm["X_bpnmf"].shape == (200, number) == adata.obsm["bpnmf_inclusion"].shape
    assert adata.varm["bpnmf"].shape == (30, number)
    np.testing.assert_allclose(adata.varm["bpnmf"].sum(axis=0), 1.0, rtol=1e-5)
    expected = adata.obsm["X_bpnmf"].sum(axis=1)
    assert abs(expected.sum() / counts.sum() - 1) < 0.05
    markers = adata.uns["bpnmf"]["markers"]
    assert list(markers["component"].unique()) == list(adata.uns["bpnmf"]["component_names"])
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(again.obsm["X_bpnmf"], adata.obsm["X_bpnmf"])
    other = bpnmf.fit_anndata(adata, layer="counts", key="programs", copy=True, random_state=3, n_chains=2)
    assert "X_programs" in other.obsm and "X_programs" not in adata.obsm
    with pytest.raises(ValueError, match="layer is 'raw'"):
        bpnmf.fit_anndata(adata, layer="raw")
    direct = BetaProcessNMF(random_state=3, n_chains=1).fit(anndata.AnnData(counts.astype(np.float32), var=adata.var))
    assert list(direct.feature_names_in_) == list(adata.var_names)
    assert direct.assign(adata[:4].copy() if adata.X is None else anndata.AnnData(counts[:4], var=adata.var)).exposures.shape[0] == 4


def test_a_fitted_model_says_in_a_line_what_it_found(model):
    least, most = model.n_components_interval_
    assert repr(model).endswith(f": {model.n_components_} components (90 %: {least} to {most})")
    assert repr(BetaProcessNMF()) == "BetaProcessNMF()"


def test_signatures_are_drawn_in_the_order_of_their_field_with_intervals(model):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    groups = ["C>A", "C>G", "C>T", "T>A", "T>C", "T>G"]
    names = [f"{a}[{g}]{b}" for g in groups for a in "ACGT" for b in "ACGT"]
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(1.0, 50.0, (40, 2)) @ rng.dirichlet(np.full(96, 0.2), 2))
    fit = BetaProcessNMF(random_state=0, n_chains=2, max_iter=20).fit(X[:, ::-1])
    figure = bpnmf.plot.signatures(fit, names=names[::-1])
    axis = figure.axes[0]
    heights = [bar.get_height() for bar in axis.patches if bar.get_width() < 1][:96]
    expected = 100 * fit.components_[0][::-1] / fit.components_[0].sum()
    np.testing.assert_allclose(heights, expected, rtol=1e-5)
    assert [text.get_text() for text in axis.texts] == groups
    figure.canvas.draw()
    with pytest.raises(ValueError, match="96 substitutions"):
        bpnmf.plot.signatures(model, names=[f"word {f}" for f in range(30)])
