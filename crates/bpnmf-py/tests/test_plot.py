"""Pictures are drawn, and say what is in the model."""

import subprocess
import sys

import numpy as np
import pytest

import bpnmf
from bpnmf import plot

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot


@pytest.fixture(autouse=True)
def drawn():
    """Whatever is drawn can be written."""
    yield
    for number in pyplot.get_fignums():
        pyplot.figure(number).canvas.draw()
    pyplot.close("all")


@pytest.fixture(scope="module")
def chains(counts):
    return bpnmf.BetaProcessNMF(random_state=0, n_chains=2, max_iter=40).fit(counts)


@pytest.fixture(scope="module")
def wide():
    """150 features."""
    rng = np.random.default_rng(2)
    rates = rng.gamma(2.0, 1.0, (60, 3)) @ rng.gamma(0.2, 20.0, (3, 150))
    return bpnmf.BetaProcessNMF(random_state=0, max_iter=20).fit(rng.poisson(rates))


def test_components_are_bars_one_picture_each_in_order(model):
    axes = plot.components(model).axes
    assert len(axes) == len(model.components_)
    for k, axis in enumerate(axes):
        assert axis.get_title(loc="left").startswith(f"C{k + 1}: {100 * model.share_[k]:.1f}")
        heights = [bar.get_height() for bar in axis.patches]
        np.testing.assert_allclose(heights, model.components_[k], rtol=1e-6)


def test_components_are_named_images_or_curves(model, wide):
    names = [f"word {f}" for f in range(30)]
    ticks = plot.components(model, names=names).axes[0].get_xticklabels()
    assert [tick.get_text() for tick in ticks] == names
    image = plot.components(model, image_shape=(5, 6)).axes[1].images[0]
    np.testing.assert_allclose(image.get_array(), model.components_[1].reshape(5, 6), rtol=1e-6)
    plot.components(model, positions=np.linspace(0, 1000, 30))
    names = [f"word {f}" for f in range(150)]
    ticks = plot.components(wide, names=names, top=4).axes[0].get_yticklabels()
    assert [tick.get_text() for tick in ticks] == [names[f] for f in wide.top_features(4)[0]]


def test_the_largest_of_many_bars_are_named(counts):
    X = np.hstack([counts, counts])
    model = bpnmf.BetaProcessNMF(random_state=0, max_iter=10).fit(X)
    names = [f"word {f}" for f in range(60)]
    axis = plot.components(model, names=names).axes[0]
    assert names[model.top_features(1)[0][0]] in [text.get_text() for text in axis.texts]


def test_what_is_left_out_is_told(model):
    figure = plot.components(model, limit=3)
    assert len(figure.axes) == 3 and "1 smaller" in figure.get_supxlabel()


def test_activations_are_expected_counts_by_component_and_sample(model, counts):
    axis = plot.activations(model).axes[0]
    expected = model.activations_ * model.components_.sum(axis=1)
    np.testing.assert_allclose(axis.images[0].get_array() ** 2, expected.T, rtol=1e-5, atol=1e-12)
    labels = np.arange(200) % 3
    axis = plot.activations(model, model.transform(counts), order=labels).axes[0]
    rows = (model.transform(counts) * model.components_.sum(axis=1))[np.argsort(labels, kind="stable")]
    np.testing.assert_allclose(axis.images[0].get_array() ** 2, rows.T, rtol=1e-5, atol=1e-12)
    axis = plot.activations(model, positions=np.arange(200) * 0.5).axes[0]
    assert axis.images[0].get_extent()[:2] == [-0.25, 99.75]
    plot.activations(model, model.transform(counts[:1]), positions=[3.0])


def test_the_probabilities_of_the_numbers_of_components_are_drawn(chains):
    axis = plot.n_components(chains).axes[0]
    heights = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in axis.patches}
    assert heights == pytest.approx(chains.n_components_pmf_)
    figure, axis = pyplot.subplots()
    assert plot.n_components(chains, ax=axis) is figure


def test_the_trace_has_a_line_a_chain(chains):
    log_joint, components = plot.trace(chains).axes
    # Burnt in, and after.
    assert len(log_joint.lines) == len(components.lines) == 4
    after = log_joint.lines[1].get_ydata()
    first = chains.trace_["log_joint"][chains.trace_["chain"] == chains.trace_["chain"][0]]
    np.testing.assert_array_equal(after, first[chains.burn_in_[0] :])


def test_a_figure_can_be_given(model):
    for draw in (plot.components, plot.activations, plot.trace):
        figure = pyplot.figure()
        assert draw(model, figure=figure) is figure


def test_bad_wishes_are_refused_with_a_sentence(model, counts):
    with pytest.raises(ValueError, match="image_shape"):
        plot.components(model, image_shape=(4, 4))
    with pytest.raises(ValueError, match="3 names for 30"):
        plot.components(model, names=["a", "b", "c"])
    with pytest.raises(ValueError, match="H has shape"):
        plot.activations(model, counts)
    with pytest.raises(ValueError, match="positions has shape"):
        plot.activations(model, positions=[1.0, 2.0])
    with pytest.raises(ValueError, match="give one of them"):
        plot.activations(model, positions=np.arange(200), order=np.arange(200))
    with pytest.raises(bpnmf.NotFittedError):
        plot.trace(bpnmf.BetaProcessNMF())
    empty = bpnmf.BetaProcessNMF(random_state=0).fit(np.zeros((5, 4)))
    for draw in (plot.components, plot.activations):
        with pytest.raises(ValueError, match="no component"):
            draw(empty)


def test_matplotlib_is_asked_for_only_when_something_is_drawn():
    code = """
import sys
import numpy as np
import bpnmf
assert "matplotlib" not in sys.modules
sys.modules["matplotlib"] = None
model = bpnmf.BetaProcessNMF(random_state=0, max_iter=5).fit(np.random.default_rng(0).poisson(3.0, (40, 6)))
try:
    bpnmf.plot.components(model)
    raise SystemExit("drawn")
except ImportError as error:
    assert "pip install matplotlib" in str(error)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
