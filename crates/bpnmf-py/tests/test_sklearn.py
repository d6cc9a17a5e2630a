"""scikit-learn's own checks, and its tools around the estimator."""

import pickle
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator

import bpnmf
from bpnmf import BetaProcessNMF


def checks():
    for missing in ("error", "nan"):
        for estimator, check in estimator_checks_generator(BetaProcessNMF(missing=missing)):
            yield pytest.param(estimator, check, id=f"{getattr(check, 'func', check).__name__}-{missing}")


@pytest.mark.parametrize("estimator, check", list(checks()))
def test_scikit_learns_checks_pass(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_an_estimator_that_takes_nan_says_so():
    tags = BetaProcessNMF(missing="nan").__sklearn_tags__()
    assert tags.input_tags.allow_nan and tags.input_tags.sparse and tags.input_tags.positive_only
    assert not BetaProcessNMF().__sklearn_tags__().input_tags.allow_nan


def test_a_pipeline_a_grid_and_a_clone_work(counts):
    pipeline = make_pipeline(FunctionTransformer(lambda X: X), BetaProcessNMF(random_state=0, max_iter=20))
    assert pipeline.fit_transform(counts).shape[0] == len(counts)
    grid = GridSearchCV(BetaProcessNMF(random_state=0, max_iter=20), {"n_components": [1, 4]}, cv=2)
    grid.fit(counts)
    assert grid.best_params_ == {"n_components": 4}
    assert issubclass(bpnmf.ConvergenceWarning, ConvergenceWarning)
    copy = clone(BetaProcessNMF(n_chains=2, prior={"a0": 2.0}))
    assert (copy.n_chains, copy.prior) == (2, {"a0": 2.0})
    assert not hasattr(clone(grid.best_estimator_), "components_")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_bring_their_names_and_set_output_gives_frames(counts, library):
    frames = pytest.importorskip(library)
    names = [f"gene {f}" for f in range(counts.shape[1])]
    frame = frames.DataFrame(dict(zip(names, counts.T)))
    model = BetaProcessNMF(random_state=3).fit(frame)
    assert list(model.feature_names_in_) == names
    np.testing.assert_array_equal(model.components_, BetaProcessNMF(random_state=3).fit(counts).components_)
    assert all(name in names for row in model.top_features(3) for name in row)
    out = model.set_output(transform=library).transform(frame)
    assert isinstance(out, frames.DataFrame)
    assert list(out.columns) == list(model.get_feature_names_out())
    np.testing.assert_array_equal(out.to_numpy(), model.set_output(transform="default").transform(frame))


def test_other_names_are_refused(counts):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(counts, columns=[f"gene {f}" for f in range(counts.shape[1])])
    model = BetaProcessNMF(random_state=3, max_iter=5).fit(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.rename(columns={"gene 0": "other"}))


def test_joblib_and_pickle_keep_the_model(model, counts, tmp_path):
    joblib = pytest.importorskip("joblib")
    joblib.dump(model, tmp_path / "model.joblib")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(copy.transform(counts[:9]), model.transform(counts[:9]))
