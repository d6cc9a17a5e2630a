"""The estimator by itself: numbers, files, sparse matrices, Ctrl-C. scikit-learn is not needed here."""

import json
import math
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import types
import warnings

import numpy as np
import pytest

import bpnmf
from bpnmf import BetaProcessNMF, DataWarning, NotFittedError, Prior


def test_the_parts_that_made_the_counts_are_found(model, counts):
    assert model.n_components_ == 4
    assert model.components_.shape == (4, 30)
    assert set(model.trace_["chain"]) == {0, 1, 2, 3}, "four chains"
    assert model.n_components_interval_[0] <= 4 <= model.n_components_interval_[1]
    assert sum(model.n_components_pmf_.values()) == pytest.approx(1.0)
    np.testing.assert_array_equal(model.component_recurrence_, np.ones(4))
    assert model.share_interval_.shape == (4, 2)
    assert (model.share_interval_[:, 0] <= model.share_).all() and (model.share_ <= model.share_interval_[:, 1]).all()
    assert model.pi_.shape == model.share_.shape == (4,)
    assert model.inclusion_.shape == model.activations_.shape == (200, 4)
    for means, ends in (
        (model.components_, model.components_interval_),
        (model.activations_, model.activations_interval_),
    ):
        assert ends.shape == (2, *means.shape) and ends.dtype == np.float32
        assert (ends[0] <= means).all() and (means <= ends[1]).all() and (ends[0] < ends[1]).any()
    assert model.n_iter_ == model.trace_["iteration"][-1]
    rate = model.inverse_transform(model.transform(counts))
    assert np.corrcoef(rate.ravel(), counts.ravel())[0, 1] > 0.95


def test_the_program_with_the_same_seed_gives_the_same_bits(program, counts, tmp_path):
    np.save(tmp_path / "X.npy", counts.astype(np.float64))
    cases = [
        ([], {}),
        (["--force-components", "3"], {"n_components": 3}),
        (["--engine", "ssmf"], {"engine": "ssmf"}),
        (["--noise", "20"], {"noise": 20}),
        (["--noise", "20.5", "--engine", "ssmf"], {"noise": np.float32(20.5), "engine": "ssmf"}),
        (["--noise", "poisson"], {"noise": "poisson"}),
        (["--chains", "2", "--iterations", "30"], {"n_chains": 2, "max_iter": 30}),
        (["--preset", "paper", "-k", "20", "--a", "0.3"], {"preset": "paper", "max_components": 20, "prior": {"a": 0.3}}),
    ]
    for number, (flags, params) in enumerate(cases):
        out = tmp_path / str(number)
        command = [program, "fit", tmp_path / "X.npy", "--transpose", "--seed", "7", "--quiet", "--out", out, *flags]
        subprocess.run(command, check=True)
        written = np.load(out / "model.npz")
        for n_jobs in (1, 2):
            model = BetaProcessNMF(random_state=7, n_jobs=n_jobs, **params).fit(counts)
            np.testing.assert_array_equal(model.components_, written["W"].T)
            np.testing.assert_array_equal(model.activations_, written["H"].T)
            np.testing.assert_array_equal(model.inclusion_, written["S"].T)
            np.testing.assert_array_equal(model.pi_, written["pi"])
            assert ("W_low" in written) == (model.engine_ == "gibbs") == (model.components_interval_ is not None)
            for end, name in enumerate(("low", "high") if model.engine_ == "gibbs" else ()):
                np.testing.assert_array_equal(model.components_interval_[end], written[f"W_{name}"].T)
                np.testing.assert_array_equal(model.activations_interval_[end], written[f"H_{name}"].T)


def test_chains_until_they_are_sure_and_a_time_budget(counts):
    sure = BetaProcessNMF(random_state=0, n_chains=1, until_sure=True).fit(counts)
    assert sure.stop_reason_ == "sure" and len(sure.burn_in_) >= 4
    same = BetaProcessNMF(random_state=0, n_chains=len(sure.burn_in_)).fit(counts)
    np.testing.assert_array_equal(sure.components_, same.components_)
    for budget in (0.01, "0.01s"):
        short = BetaProcessNMF(random_state=0, time_budget=budget).fit(counts)
        assert short.stop_reason_ == "time budget" and short.n_components_ >= 1
    with pytest.raises(ValueError, match='"soon" is no time: write 60s, 5m, 2h or a number of seconds'):
        BetaProcessNMF(time_budget="soon").fit(counts)
    with pytest.raises(ValueError, match="until the number of components is sure"):
        BetaProcessNMF(3, until_sure=True).fit(counts)


def test_one_chain_does_not_say_how_sure_it_is(counts, tmp_path):
    model = BetaProcessNMF(random_state=0, n_chains=1).fit(counts)
    assert model.n_components_ == model.components_.shape[0] == 4
    for name in ("n_components_interval_", "n_components_pmf_", "component_recurrence_", "share_interval_"):
        assert getattr(model, name) is None, name
    assert all(r_hat is None for r_hat, _ in model.convergence_.values())
    model.save(tmp_path / "model.npz")
    again = BetaProcessNMF.load(tmp_path / "model.npz")
    assert again.n_components_interval_ is None and again.component_recurrence_ is None
    assert BetaProcessNMF(3, random_state=0, n_chains=2).fit(counts).n_components_interval_ is None, "it was given"
    paper = BetaProcessNMF(preset="paper", max_components=20, max_iter=5, random_state=0).fit(counts)
    assert set(paper.trace_["chain"]) == {0}


def test_chains_that_do_not_agree_are_warned_of_and_the_number_is_that_of_the_model():
    rng = np.random.default_rng(1)
    X = rng.poisson(rng.gamma(0.3, 2.0, (12, 9)) @ rng.gamma(0.3, 2.0, (9, 20)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = BetaProcessNMF(preset="paper", engine="gibbs", max_components=40, n_chains=3, max_iter=12, random_state=0).fit(X)
    told = [str(warning.message) for warning in caught if issubclass(warning.category, bpnmf.ConvergenceWarning)]
    assert len(told) == 1 and told[0].startswith("the chains ") and "R-hat" in told[0]
    assert issubclass(bpnmf.ConvergenceWarning, UserWarning)
    assert caught[0].filename == __file__, "it points at whoever called fit"
    assert model.n_components_ == model.components_.shape[0]
    assert model.component_recurrence_.shape == (model.n_components_,)
    assert ((model.component_recurrence_ >= 0) & (model.component_recurrence_ <= 1)).all()
    shown = model.trace_["n_components"][model.trace_["chain"] == 0]
    assert shown.shape == (12,)


def test_a_number_near_a_limit_that_was_given_is_warned_of_and_there_is_no_other_limit(counts):
    with pytest.warns(UserWarning, match="comes within 10 % of the most there can be, 4: use a larger max_components"):
        BetaProcessNMF(max_components=4, random_state=0, n_chains=1).fit(counts)
    assert BetaProcessNMF().max_components is None


def test_fractions_give_way_to_ssmf_as_in_the_program(program, counts, tmp_path):
    fractions = counts + 0.25
    np.save(tmp_path / "X.npy", fractions)
    command = [program, "fit", tmp_path / "X.npy", "--transpose", "--seed", "1", "--quiet", "--out", tmp_path / "out"]
    subprocess.run(command, check=True)
    model = BetaProcessNMF(random_state=1).fit(fractions)
    assert model.engine_ == "ssmf"
    np.testing.assert_array_equal(model.components_, np.load(tmp_path / "out" / "model.npz")["W"].T)
    assert np.isfinite(model.transform(fractions)).all()


def test_the_transform_of_what_was_fitted_agrees_with_the_fit(model, counts):
    mean, std = model.transform(counts, return_std=True)
    off = (mean - model.activations_) / np.maximum(std, 0.02)
    assert np.mean(np.abs(off) > 2) < 0.05
    assert np.mean(off**2) < 0.5


def test_a_sample_has_the_same_numbers_in_any_company(model, counts):
    whole = model.transform(counts)
    np.testing.assert_array_equal(model.transform(counts[[17, 3]]), whole[[17, 3]])
    np.testing.assert_array_equal(model.fit(counts).fit_transform(counts), whole)
    model.n_jobs = 2
    np.testing.assert_array_equal(model.transform(counts), whole)
    model.n_jobs = None


def test_scores_tell_good_models_from_bad_ones(counts):
    train, test = counts[::2], counts[1::2]
    good = BetaProcessNMF(random_state=0).fit(train)
    bad = BetaProcessNMF(n_components=1, random_state=0).fit(train)
    assert good.score(test) > bad.score(test)
    assert good.perplexity(test) < bad.perplexity(test)
    rate = good.inverse_transform(good.transform(test))
    from math import lgamma

    factorials = np.vectorize(lambda x: lgamma(x + 1))(test)
    expected = np.where(test > 0, test * np.log(np.maximum(rate, 1e-300)), 0) - rate - factorials
    assert good.score(test) == pytest.approx(expected.sum(axis=1).mean(), rel=1e-4)


def test_draws_have_the_moments_of_the_transform(model, counts):
    draws = model.sample_posterior(counts[:5], 500, random_state=1)
    assert draws.shape == (500, 5, 4)
    mean, std = model.transform(counts[:5], return_std=True)
    assert (np.abs(draws.mean(axis=0) - mean) < 0.5 * std + 0.02).all()
    np.testing.assert_array_equal(draws, model.sample_posterior(counts[:5], 500, random_state=1))
    assert (draws != model.sample_posterior(counts[:5], 500)).any()


def test_saved_models_are_the_same_when_they_are_read(counts, tmp_path):
    model = BetaProcessNMF(random_state=0, prior=Prior(a0=2.0), n_chains=2).fit(counts)
    model.save(tmp_path / "model.npz")
    copy = BetaProcessNMF.load(tmp_path / "model.npz")
    for same in (copy, pickle.loads(pickle.dumps(model))):
        for name, value in vars(model).items():
            if name == "prior":
                continue
            if name == "_blocks":
                # From how much it has learned is pickled, and not in the file.
                assert hasattr(same, name) == (same is not copy)
                continue
            other = getattr(same, name)
            if name == "trace_":
                assert value.keys() == other.keys()
                assert all(np.array_equal(value[key], other[key]) for key in value)
            elif isinstance(value, np.ndarray):
                np.testing.assert_array_equal(value, other)
            else:
                assert value == other, name
        np.testing.assert_array_equal(same.transform(counts), model.transform(counts))
    assert copy.prior == {"a0": 2.0}
    with pytest.raises(ValueError, match="does not know from how much it has learned"):
        copy.partial_fit(counts)
    pickled = pickle.loads(pickle.dumps(model))
    for same in (model, pickled):
        same.partial_fit(counts)
    np.testing.assert_array_equal(pickled.components_, model.components_)
    np.savez(tmp_path / "other.npz", W=np.zeros(3))
    with pytest.raises(ValueError, match="has written this"):
        BetaProcessNMF.load(tmp_path / "other.npz")


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix", "coo_array", "csr_array"])
def test_compressed_matrices_stay_compressed_and_give_the_same(kind, counts, model):
    sparse = pytest.importorskip("scipy.sparse")
    from bpnmf._input import counts_of

    X = getattr(sparse, kind)(counts)
    held, shape = counts_of(X, missing="error")
    assert held.is_sparse() and shape == counts.shape
    same = BetaProcessNMF(random_state=3).fit(X)
    np.testing.assert_array_equal(same.components_, model.components_)
    np.testing.assert_array_equal(same.transform(X), model.transform(counts))


def test_a_compressed_matrix_that_could_not_be_dense_is_taken():
    """Eight terabytes if it were."""
    sparse = pytest.importorskip("scipy.sparse")
    from bpnmf._input import counts_of

    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, 1_000_000, (2, 3000))
    for kind in (sparse.csr_array, sparse.csc_array):
        X = kind((np.ones(3000), (rows, columns)), shape=(1_000_000, 1_000_000))
        held, shape = counts_of(X, missing="error")
        assert held.is_sparse() and held.total() == 3000 and shape == X.shape


def test_unsorted_and_double_entries_are_added_and_the_matrix_is_left_alone():
    sparse = pytest.importorskip("scipy.sparse")
    from bpnmf._input import counts_of

    X = sparse.csr_array((np.array([1, 2, 4, 8]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3))
    before = X.indices.copy()
    held, _ = counts_of(X, missing="error")
    assert held.total() == 15
    np.testing.assert_array_equal(X.indices, before)
    dense = np.array([[2, 0, 5], [0, 8, 0]])
    for params in ({}, {"n_components": 2}):
        one, other = (BetaProcessNMF(random_state=0, max_iter=5, **params).fit(m) for m in (X, dense))
        np.testing.assert_array_equal(one.components_, other.components_)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "u2", "u1", ">f8", ">i4", object])
def test_the_type_of_the_numbers_and_their_order_in_memory_do_not_matter(dtype, counts, model):
    small = np.minimum(counts, 200)
    expected = BetaProcessNMF(random_state=3).fit(small).components_
    for order in "CF":
        X = np.asarray(small.astype(dtype), order=order)
        np.testing.assert_array_equal(BetaProcessNMF(random_state=3).fit(X).components_, expected)
    wide = np.zeros((400, 60), dtype=dtype)
    wide[::2, ::2] = small
    np.testing.assert_array_equal(BetaProcessNMF(random_state=3).fit(wide[::2, ::2]).components_, expected)


BAD = [
    (np.array([[1.0, np.nan]]), ValueError, "NaN"),
    (np.array([[1.0, np.inf]]), ValueError, "inf"),
    (np.array([[1.0], [-2.0]]), ValueError, r"entry \(1, 0\) is -2, counts cannot be negative; .* give the raw counts"),
    (np.array([1.0, 2.0]), ValueError, "1-D"),
    (np.float64(3.0), ValueError, "0-D"),
    (np.zeros((2, 2, 2)), ValueError, "3-D"),
    (np.empty((0, 3)), ValueError, "0 sample"),
    (np.empty((3, 0)), ValueError, "0 feature"),
    (np.array([["a", "b"]]), ValueError, "text"),
    (np.array([[1.0, {}]], dtype=object), TypeError, "not a number"),
    (np.array([[1.0, "x"]], dtype=object), ValueError, "not a number"),
    (np.array([[1 + 2j]]), ValueError, "Complex"),
    (np.array([[1e16]]), ValueError, "1e15"),
]


@pytest.mark.parametrize("X, error, words", BAD)
def test_bad_input_is_refused_with_a_sentence(X, error, words, model):
    with pytest.raises(error, match=words):
        BetaProcessNMF().fit(X)
    with pytest.raises(error, match=words):
        model.transform(X)


def test_data_that_are_no_counts_are_fitted_with_a_warning_that_names_them(counts):
    some = counts[:30][counts[:30].sum(axis=1) > 0]
    totals = some.sum(axis=1, keepdims=True)
    for X, words in (
        (some / totals, "adds up to 1: the data look like frequencies"),
        (1e6 * some / totals, "counts per million"),
        (np.log1p(some), "logarithms"),
        (0.3 * some, "whole numbers times 0.3"),
    ):
        with pytest.warns(DataWarning, match=words + ".*give the raw counts") as caught:
            BetaProcessNMF(max_iter=5, random_state=0).fit(X)
        assert caught[0].filename == __file__
    assert issubclass(DataWarning, UserWarning)


def test_counts_and_recordings_are_fitted_without_a_warning(counts):
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        BetaProcessNMF(max_iter=5, random_state=0).fit(counts[:30])
        BetaProcessNMF(12, max_iter=5, random_state=0).fit(counts[:8])
        bpnmf.separate(np.sin(np.arange(8000) * 0.3), 8000, window=256, max_iter=5, random_state=0)


def test_negative_and_nan_entries_of_compressed_matrices_are_refused():
    sparse = pytest.importorskip("scipy.sparse")
    for value, words in ((-1.0, "negative"), (np.nan, "NaN"), (np.inf, "inf")):
        X = sparse.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]]))
        X.data[2] = value
        with pytest.raises(ValueError, match=words) as caught:
            BetaProcessNMF().fit(X)
        assert "(1, 1)" in str(caught.value)
    # Two entries at one place that add up to something good.
    X = sparse.csr_array((np.array([-1.0, 3.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    with pytest.raises(ValueError, match="negative"):
        BetaProcessNMF().fit(X)


WISHES = [
    ({"n_components": 0}, ValueError, "n_components is 0"),
    ({"n_components": 2.5}, TypeError, "n_components is 2.5"),
    ({"n_components": 20_000}, ValueError, "n_components is 20000"),
    ({"max_components": -1}, ValueError, "max_components is -1"),
    ({"engine": "vi"}, ValueError, "engine is"),
    ({"preset": "fast"}, ValueError, "preset is"),
    ({"preset": "paper", "n_components": 3}, ValueError, 'n_components belongs to the search: .* preset="auto"'),
    ({"n_components": 6, "max_components": 5}, ValueError, "n_components is 6: it must be between 1 and 5"),
    ({"prior": {"a": 1.0}}, ValueError, 'a cannot be set here, a, b, c and d are learned: .* preset="paper"'),
    ({"prior": {"x": 1.0}}, ValueError, "no \"x\""),
    ({"prior": {"a0": -1.0}}, ValueError, "a0 is -1"),
    ({"prior": 3}, TypeError, "prior is 3"),
    ({"n_chains": 0}, ValueError, "n_chains is 0"),
    ({"max_iter": 0}, ValueError, "max_iter is 0"),
    ({"tol": 2.0}, ValueError, "tol is 2"),
    ({"tol": "small"}, TypeError, "tol is"),
    ({"n_jobs": 0}, ValueError, "n_jobs is 0"),
    ({"n_jobs": 5000}, ValueError, "n_jobs is 5000"),
    ({"random_state": -1}, ValueError, "random_state is -1"),
    ({"random_state": "x"}, ValueError, "random_state is 'x'"),
    ({"missing": "drop"}, ValueError, "missing is 'drop'"),
]


@pytest.mark.parametrize("params, error, words", WISHES)
def test_bad_wishes_are_refused_with_a_sentence(params, error, words, counts):
    with pytest.raises(error, match=words):
        BetaProcessNMF(**params).fit(counts)


def test_gibbs_refuses_fractions_where_they_stand():
    with pytest.raises(ValueError, match=r"entry \(1, 0\) is 0.5"):
        BetaProcessNMF(engine="gibbs").fit(np.array([[1.0, 2.0], [0.5, 1.0]]))


@pytest.fixture(scope="module")
def holes(counts):
    """Counts of which a fifth were not observed."""
    unseen = np.random.default_rng(4).random(counts.shape) < 0.2
    return np.where(unseen, np.nan, counts), unseen


def test_entries_that_were_not_observed_are_nan_or_masked(counts, holes):
    X, unseen = holes
    by_nan = BetaProcessNMF(missing="nan", random_state=2).fit(X)
    by_mask = BetaProcessNMF(random_state=2).fit(counts, mask=unseen)
    np.testing.assert_array_equal(by_nan.components_, by_mask.components_)
    assert by_nan.n_components_ == 4
    np.testing.assert_array_equal(by_nan.transform(X), by_mask.transform(counts, mask=unseen))
    assert by_nan.score(X) == by_mask.score(counts, mask=unseen)
    full = by_nan.transform(counts)
    mean, std = by_nan.transform(X, return_std=True)
    assert np.mean(np.abs(mean - full) > 4 * std + 0.05) < 0.02
    # What was left out is predicted.
    rate = by_nan.inverse_transform(mean)
    assert np.corrcoef(rate[unseen], counts[unseen])[0, 1] > 0.85
    with pytest.raises(ValueError, match="missing=\"nan\""):
        BetaProcessNMF().fit(X)
    with pytest.raises(ValueError, match="mask is"):
        BetaProcessNMF().fit(counts, mask=[True])


def poisson(x, rate):
    from math import lgamma

    return x * np.log(np.maximum(rate, 1e-300)) - rate - np.array([lgamma(value + 1) for value in x])


def test_a_held_out_score_is_that_of_these_entries_given_the_others(model, counts):
    rng = np.random.default_rng(5)
    held_out = rng.random(counts.shape) < 0.1
    held_out[::3] = False
    rate = model.inverse_transform(model.transform(counts, mask=held_out))
    expected = poisson(counts[held_out], rate[held_out]).sum() / held_out.any(axis=1).sum()
    assert model.score(counts, held_out=held_out) == pytest.approx(expected, rel=1e-9)
    # What is masked is neither used nor scored.
    masked = rng.random(counts.shape) < 0.2
    scored = held_out & ~masked
    rate = model.inverse_transform(model.transform(counts, mask=held_out | masked))
    expected = poisson(counts[scored], rate[scored]).sum() / scored.any(axis=1).sum()
    assert model.score(counts, mask=masked, held_out=held_out) == pytest.approx(expected, rel=1e-9)
    copy = BetaProcessNMF(random_state=3, missing="nan").fit(counts)
    assert copy.score(np.where(masked, np.nan, counts), held_out=held_out) == pytest.approx(expected, rel=1e-9)
    # The numbers of held-out entries do not touch the activations.
    other = np.where(held_out, 7, counts)
    rate = model.inverse_transform(model.transform(counts, mask=held_out))
    expected = poisson(other[held_out], rate[held_out]).sum() / held_out.any(axis=1).sum()
    assert model.score(other, held_out=held_out) == pytest.approx(expected, rel=1e-9)


def test_a_held_out_score_does_not_depend_on_how_the_matrices_are_stored(model, counts):
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(6)
    held_out, masked = (rng.random(counts.shape) < share for share in (0.1, 0.2))
    expected = model.score(counts, mask=masked, held_out=held_out)
    for X in (counts, sparse.csr_array(counts), sparse.coo_matrix(counts)):
        for kind in (np.asarray, sparse.csr_array, sparse.coo_matrix, sparse.csc_array):
            assert model.score(X, mask=kind(masked), held_out=kind(held_out)) == expected
    nan = BetaProcessNMF(random_state=3, missing="nan").fit(counts)
    assert nan.score(sparse.csr_array(np.where(masked, np.nan, counts)), held_out=held_out) == expected
    fits = [BetaProcessNMF(random_state=2, max_iter=5).fit(sparse.csr_array(counts), mask=kind(masked))
            for kind in (np.asarray, sparse.csr_array)]
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)


def test_held_out_entries_tell_the_right_number_of_components_from_others(counts):
    held_out = np.random.default_rng(7).random(counts.shape) < 0.1
    scores = {
        number: BetaProcessNMF(number, random_state=0).fit(counts, mask=held_out).score(counts, held_out=held_out)
        for number in (1, 3, 4, None)
    }
    assert scores[1] < scores[3] < scores[4] == pytest.approx(scores[None], rel=0.01)


def test_held_out_entries_that_cannot_be_scored_are_told(model, counts):
    none = np.zeros(counts.shape, dtype=bool)
    assert np.isnan(model.score(counts, held_out=none))
    with pytest.raises(ValueError, match="held_out is int64 of shape"):
        model.score(counts, held_out=none.astype(np.int64))
    with pytest.raises(ValueError, match="held_out is bool of shape"):
        model.score(counts, held_out=none[:3])
    for value, words in ((np.nan, "nan"), (-2.0, "-2")):
        X, one = counts.astype(float), none.copy()
        X[3, 5], one[3, 5] = value, True
        with pytest.raises(ValueError, match=rf"entry \(3, 5\) is {words}"):
            model.score(X, held_out=one)
    with pytest.raises(NotFittedError):
        BetaProcessNMF().score(counts, held_out=none)


def test_the_examples_in_the_documentation_of_the_estimator_are_right():
    import doctest

    from bpnmf import _estimator

    assert doctest.testmod(_estimator).failed == 0


def test_nan_in_a_compressed_matrix_is_not_observed_either(holes):
    sparse = pytest.importorskip("scipy.sparse")
    X, unseen = holes
    dense = BetaProcessNMF(missing="nan", random_state=2, max_iter=10).fit(X)
    same = BetaProcessNMF(missing="nan", random_state=2, max_iter=10).fit(sparse.csr_array(X))
    np.testing.assert_array_equal(same.components_, dense.components_)
    half = unseen & (np.arange(unseen.size).reshape(unseen.shape) % 2 == 0)
    both = BetaProcessNMF(missing="nan", random_state=2, max_iter=10)
    both.fit(sparse.csr_array(np.where(half, 1.0, X)), mask=half)
    np.testing.assert_array_equal(both.components_, dense.components_)


def test_the_program_gives_the_same_bits_with_missing_entries(program, holes, tmp_path):
    np.save(tmp_path / "X.npy", holes[0])
    command = [program, "fit", tmp_path / "X.npy", "--transpose", "--missing", "--seed", "2", "--quiet"]
    subprocess.run([*command, "--out", tmp_path / "out"], check=True)
    model = BetaProcessNMF(missing="nan", random_state=2).fit(holes[0])
    np.testing.assert_array_equal(model.components_, np.load(tmp_path / "out" / "model.npz")["W"].T)


def test_nothing_can_be_asked_before_the_fit(counts):
    for call in ("transform", "score", "perplexity", "sample_posterior", "inverse_transform"):
        with pytest.raises(NotFittedError):
            getattr(BetaProcessNMF(), call)(counts)


def test_samples_without_counts_and_data_without_any_work():
    model = BetaProcessNMF(random_state=0).fit(np.zeros((5, 4)))
    assert model.n_components_ == 0 and model.components_.shape == (0, 4)
    assert model.transform(np.zeros((2, 4))).shape == (2, 0)
    assert model.stop_reason_ == "no counts"


@pytest.mark.parametrize("compressed", [False, True])
def test_genes_and_cells_without_counts_change_nothing(compressed, counts, model):
    rng = np.random.default_rng(5)
    genes, cells = np.sort(rng.permutation(2030)[:30]), np.sort(rng.permutation(240)[:200])
    padded = np.zeros((240, 2030))
    padded[np.ix_(cells, genes)] = counts
    X = pytest.importorskip("scipy.sparse").csr_matrix(padded) if compressed else padded
    found = BetaProcessNMF(random_state=3).fit(X)
    assert found.n_components_ == model.n_components_ and found.n_components_pmf_ == model.n_components_pmf_
    assert found.components_.shape == (4, 2030) and found.activations_.shape == found.inclusion_.shape == (240, 4)
    np.testing.assert_array_equal(found.components_[:, genes], model.components_)
    np.testing.assert_array_equal(found.activations_[cells], model.activations_)
    np.testing.assert_array_equal(found.inclusion_[cells], model.inclusion_)
    np.testing.assert_array_equal(found.share_, model.share_)
    empty = np.delete(found.components_, genes, axis=1)
    assert (empty > 0).all()
    assert (empty.sum(axis=1) < 1e-3 * model.components_.sum(axis=1)).all()
    assert not np.delete(found.activations_, cells, axis=0).any()
    assert not np.delete(found.inclusion_, cells, axis=0).any()
    # New cells are explained as they are without the genes, and may have a count in one of them.
    np.testing.assert_allclose(found.transform(X)[cells], model.transform(counts), rtol=0.5, atol=0.3)
    new = padded[cells[:1]].copy()
    before = found.score(new)
    new[0, np.setdiff1d(np.arange(2030), genes)[0]] = 1
    assert np.isfinite(found.transform(new)).all()
    assert before - 40 < found.score(new) < before


def test_the_callback_sees_every_step_and_ends_the_run(counts):
    seen = []
    model = BetaProcessNMF(random_state=0, n_chains=1, callback=seen.append, tol=None, max_iter=12).fit(counts)
    assert [info["iteration"] for info in seen if info["stage"] == "sampling"] == list(range(1, 13))
    assert seen[0]["stage"] == "search" and seen[-1]["n_components"] >= 1
    model = BetaProcessNMF(random_state=0, callback=lambda info: info["iteration"] < 5).fit(counts)
    assert (model.n_iter_, model.stop_reason_) == (5, "interrupted")

    def fail(info):
        raise RuntimeError("from the callback")

    with pytest.raises(RuntimeError, match="from the callback"):
        BetaProcessNMF(callback=fail).fit(counts)


def test_verbose_prints_to_stderr_and_only_there(counts, capsys):
    BetaProcessNMF(random_state=0, verbose=1).fit(counts)
    out, err = capsys.readouterr()
    assert out == "" and "4 parts" in err.splitlines()[-1]
    BetaProcessNMF(random_state=0).fit(counts)
    assert capsys.readouterr() == ("", "")


def test_a_notebook_has_one_line_that_is_updated(counts, monkeypatch, capsys):
    shown = []

    class Handle:
        def update(self, content, raw):
            shown[-1] = content["text/plain"]

    def display(content, raw, display_id):
        shown.append(content["text/plain"])
        return Handle()

    notebook = types.ModuleType("IPython")
    notebook.get_ipython = lambda: types.SimpleNamespace(kernel=None)
    notebook.display = types.ModuleType("IPython.display")
    notebook.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook.display)
    BetaProcessNMF(random_state=0, verbose=1).fit(counts)
    assert len(shown) == 1 and "4 parts" in shown[0]
    assert capsys.readouterr() == ("", "")


def long_fit(**params):
    X = np.random.default_rng(0).poisson(2.0, (3000, 400))
    return BetaProcessNMF(random_state=0, tol=None, max_iter=100_000, **params), X


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("after", [0.3, 2.0])
def test_ctrl_c_ends_a_fit_within_a_second_and_the_estimator_can_be_used_again(after, counts):
    # What is started in the background of a shell ignores Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    model, X = long_fit()
    sent = []

    def press():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    signal.signal(signal.SIGINT, before)
    assert time.monotonic() - sent[0] < 1.0
    if hasattr(model, "components_"):
        assert model.stop_reason_ == "interrupted"
        assert model.transform(X[:3]).shape == (3, model.components_.shape[0])
    model.set_params(max_iter=5).fit(counts)
    assert model.n_iter_ == 5


def test_other_python_threads_run_during_a_fit(counts):
    beats = []
    stop = threading.Event()

    def beat():
        while not stop.is_set():
            beats.append(time.monotonic())
            time.sleep(0.01)

    thread = threading.Thread(target=beat)
    thread.start()
    start = time.monotonic()
    BetaProcessNMF(random_state=0, n_chains=4).fit(np.tile(counts, (5, 1)))
    seconds = time.monotonic() - start
    stop.set()
    thread.join()
    gaps = np.diff(beats)
    assert len(beats) > 10 * seconds and gaps.max() < max(0.5, seconds / 2)


def test_arviz_reads_the_chains(counts):
    arviz = pytest.importorskip("arviz")
    model = BetaProcessNMF(random_state=0, n_chains=2, tol=None).fit(counts)
    data = model.to_inference_data()
    posterior = data["posterior"]
    assert dict(posterior.sizes)["chain"] == 2 and dict(posterior.sizes)["draw"] == 58
    assert model.n_iter_ - model.burn_in_[0] == 58
    summary = arviz.summary(data)
    assert any(name.startswith("n_components") for name in summary.index)


def test_without_scikit_learn_and_scipy_everything_else_works(tmp_path):
    """Another process in which neither can be imported."""
    code = """
import sys
for name in ("sklearn", "scipy", "pandas", "arviz"):
    sys.modules[name] = None
import numpy as np
from bpnmf import BetaProcessNMF, NotFittedError
X = np.random.default_rng(0).poisson(3.0, (40, 6))
model = BetaProcessNMF(random_state=0)
assert model.get_params()["random_state"] == 0
assert repr(model.set_params(max_iter=7)) == "BetaProcessNMF(max_iter=7, random_state=0)"
try:
    model.transform(X)
    raise SystemExit("not refused")
except NotFittedError:
    pass
try:
    model.set_params(wrong=1)
    raise SystemExit("not refused")
except ValueError:
    pass
assert model.fit_transform(X).shape == (40, model.components_.shape[0])
assert model.n_features_in_ == 6
try:
    model.transform(X[:, :5])
    raise SystemExit("not refused")
except ValueError as error:
    assert "5 features" in str(error)
model.save(sys.argv[1])
assert (BetaProcessNMF.load(sys.argv[1]).transform(X) == model.transform(X)).all()
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "model.npz")], check=True)


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert bpnmf.__version__ == version("bpnmf")


@pytest.fixture(scope="module")
def scattered():
    """Counts of two components that scatter by half of their rates."""
    rng = np.random.default_rng(5)
    W, H = rng.gamma(0.7, 3.0, (2, 30)), rng.gamma(2.0, 8.0, (80, 2))
    return rng.poisson(H @ W * rng.gamma(4.0, 1 / 4.0, (80, 30)))


def test_noise_is_what_was_asked_for(counts, scattered):
    for engine in ("gibbs", "ssmf", "gibbs-expected"):
        for preset in ("auto", "paper"):
            params = {"engine": engine, "preset": preset, "random_state": 0, "max_iter": 10, "max_components": 20}
            model = BetaProcessNMF(noise=4, **params).fit(scattered)
            assert (model.noise_, model.alpha_) == ("scattered", 4.0)
            model = BetaProcessNMF(noise="poisson", **params).fit(scattered)
            assert (model.noise_, model.alpha_) == ("poisson", np.inf)
    # Without a search nobody learns it.
    model = BetaProcessNMF(preset="paper", random_state=0, max_iter=10, max_components=20).fit(scattered)
    assert (model.noise_, model.alpha_) == ("poisson", np.inf)


@pytest.mark.parametrize("noise", [0, -3, np.nan, np.inf, "nb", "", None, True, [4]])
def test_a_noise_that_is_none_is_refused(counts, noise):
    with pytest.raises(ValueError) as error:
        BetaProcessNMF(noise=noise).fit(counts)
    assert str(error.value) == f'noise is {noise!r}: it must be "auto", "poisson" or a finite number above 0'


def test_new_samples_and_their_scores_know_the_noise(scattered, tmp_path):
    model = BetaProcessNMF(2, noise=4.0, random_state=0).fit(scattered)
    plain = BetaProcessNMF(2, noise="poisson", random_state=0).fit(scattered)
    assert model.score(scattered) > plain.score(scattered) + 10
    assert np.mean(model.transform(scattered, return_std=True)[1]) > 1.5 * np.mean(
        plain.transform(scattered, return_std=True)[1]
    )
    held_out = np.zeros(scattered.shape, dtype=bool)
    held_out[:, ::3] = True
    mean = model.transform(scattered, mask=held_out)
    rate, x = model.inverse_transform(mean)[held_out], scattered[held_out].astype(float)
    lgamma = np.vectorize(math.lgamma)
    exact = lgamma(4 + x) - lgamma(4.0) - lgamma(x + 1) + x * np.log(rate / (4 + rate)) + 4 * np.log(4 / (4 + rate))
    assert model.score(scattered, held_out=held_out) == pytest.approx(exact.sum() / len(scattered), rel=1e-6)
    model.save(tmp_path / "model.npz")
    same = BetaProcessNMF.load(tmp_path / "model.npz")
    assert (same.noise, same.noise_, same.alpha_) == (4.0, "scattered", 4.0)
    np.testing.assert_array_equal(same.transform(scattered), model.transform(scattered))


def test_a_model_from_before_there_was_noise_is_poisson(model, counts, tmp_path):
    model.save(tmp_path / "new.npz")
    with np.load(tmp_path / "new.npz") as file:
        arrays = dict(file)
    about = json.loads(arrays["about"].tobytes())
    del about["params"]["noise"], about["facts"]["noise_"], about["alpha"]
    del arrays["component_recurrence"], arrays["share_interval"], arrays["trace_n_components"]
    about["format"] = 1
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    np.savez(tmp_path / "old.npz", **arrays)
    old = BetaProcessNMF.load(tmp_path / "old.npz")
    assert (old.noise, old.noise_, old.alpha_) == ("auto", "poisson", np.inf)
    assert old.component_recurrence_ is None and len(old.trace_["n_components"]) == len(old.trace_["active"])
    np.testing.assert_array_equal(
        old.transform(counts), BetaProcessNMF.load(tmp_path / "new.npz").transform(counts)
    )
