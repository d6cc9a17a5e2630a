"""Fits block by block: the same bits in one process and on a cluster, however the samples are cut, and when a worker is killed."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

from bpnmf import BetaProcessNMF

sparse = pytest.importorskip("scipy.sparse", reason="scipy is not installed")

SAMPLE = 300


@pytest.fixture(scope="module")
def cells():
    """5000 samples of 20 features made of 4 parts, some of them empty."""
    rng = np.random.default_rng(4)
    dictionary = rng.gamma(0.3, 9.0, (4, 20))
    activations = rng.gamma(2.0, 1.0, (5000, 4)) * (rng.random((5000, 4)) < 0.4)
    return rng.poisson(activations @ dictionary).astype(np.float32)


def fresh(**params):
    return BetaProcessNMF(random_state=3, n_chains=1, max_iter=10, **params)


@pytest.fixture(scope="module")
def here(cells):
    return fresh(n_jobs=2).fit(cells, sample=SAMPLE)


@pytest.fixture(scope="module")
def whole(cells):
    return fresh().fit(cells)


def same(one, other):
    for name in ("components_", "pi_", "share_", "usage_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("activations_", "inclusion_"):
        np.testing.assert_array_equal(np.asarray(getattr(one, name)), np.asarray(getattr(other, name)), err_msg=name)


def test_a_fit_block_by_block_is_that_of_all_samples(cells, here, whole):
    assert here.n_components_ == whole.n_components_ == 4
    assert here.activations_.shape == (5000, 4)
    unit = [m.components_ / np.linalg.norm(m.components_, axis=1, keepdims=True) for m in (here, whole)]
    assert ((unit[0] @ unit[1].T).max(axis=1) > 0.999).all()
    np.testing.assert_allclose(here.inclusion_.sum(axis=0), here.usage_, rtol=1e-3)
    off = ~cells.any(axis=1)
    assert off.any() and not here.inclusion_[off].any()


def test_sparse_and_dense_samples_and_any_threads_have_the_same_bits(cells, here):
    same(here, fresh(n_jobs=1).fit(sparse.csr_matrix(cells), sample=SAMPLE))


def test_a_stream_keeps_its_components_and_learns_from_every_batch(cells, whole):
    model = fresh()
    batches = np.array_split(cells, 10)
    first = model.partial_fit(batches[0]).components_
    for batch in batches[1:]:
        model.partial_fit(batch)
    assert model.components_.shape == (4, 20)

    def distance(one):
        unit = [w / w.sum(axis=1, keepdims=True) for w in (one, whole.components_)]
        pairs = np.abs(unit[0][:, None] - unit[1][None]).sum(axis=2)
        return pairs.min(axis=1).sum()

    assert distance(model.components_) < 0.8 * distance(first)
    assert not hasattr(model, "activations_") and model.transform(cells[:7]).shape == (7, 4)
    # It goes on after a journey.
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        model.partial_fit(cells[:500]).components_, other.partial_fit(cells[:500]).components_
    )


def test_bad_blocks_and_wishes_are_refused_in_a_sentence(cells):
    bad = cells.copy()
    bad[4500, 3] = -2
    with pytest.raises(ValueError, match="in the block that begins with sample 4096.*entry \\(404, 3\\) is -2"):
        fresh().fit(bad, sample=SAMPLE)
    bad[4500, 3] = 0.5
    with pytest.raises(ValueError, match="which is not a whole number"):
        fresh().fit(bad, sample=SAMPLE)
    with pytest.raises(ValueError, match="a mask cannot be had"):
        fresh().fit(cells, sample=SAMPLE, mask=cells > 3)
    with pytest.raises(ValueError, match="time_budget cannot be had"):
        fresh(time_budget=5).fit(cells, sample=SAMPLE)
    with pytest.raises(ValueError, match="sample is 0"):
        fresh().fit(cells, sample=0)


@pytest.fixture(scope="module")
def dask():
    found = pytest.importorskip("dask", reason="dask is not installed: pip install bpnmf[dask]")
    pytest.importorskip("distributed", reason="distributed is not installed: pip install bpnmf[dask]")
    return found


def chunked(cells, rows, kind=lambda block: block):
    """A Dask array with chunks of so many rows, each made by a task."""
    import dask
    import dask.array

    starts = range(0, len(cells), rows)
    blocks = [dask.delayed(kind)(cells[first : first + rows]) for first in starts]
    meta = kind(cells[:1])
    arrays = [
        dask.array.from_delayed(block, (min(rows, len(cells) - first), 20), dtype=np.float32, meta=meta)
        for block, first in zip(blocks, starts)
    ]
    return dask.array.concatenate(arrays)


@pytest.mark.parametrize("rows", [700, 5000])
def test_chunks_of_any_size_have_the_bits_of_one_process(dask, cells, here, rows):
    with dask.config.set(scheduler="threads"):
        model = fresh().fit(chunked(cells, rows), sample=SAMPLE)
        assert hasattr(model.activations_, "dask")
        same(here, model)
        lazy = model.transform(chunked(cells, rows))
        np.testing.assert_array_equal(lazy.compute(), here.transform(cells))


def test_sparse_chunks_delayed_blocks_and_an_anndata_have_them_too(dask, cells, here):
    with dask.config.set(scheduler="threads"):
        same(here, fresh().fit(chunked(cells, 1300, sparse.csr_matrix), sample=SAMPLE))
        delayed = [dask.delayed(sparse.csr_matrix)(part) for part in np.array_split(cells, 7)]
        same(here, fresh().fit(delayed, sample=SAMPLE))
        anndata = pytest.importorskip("anndata", reason="anndata is not installed")
        same(here, fresh().fit(anndata.AnnData(chunked(cells, 900)), sample=SAMPLE))


def test_chunks_that_cut_the_features_are_refused(dask, cells):
    with pytest.raises(ValueError, match="cut along the features, into 2"):
        fresh().fit(chunked(cells, 700).rechunk({1: 10}))


@pytest.fixture(scope="module")
def cluster(dask, tmp_path_factory):
    import distributed

    folder = tmp_path_factory.mktemp("dask")
    with dask.config.set({"temporary-directory": str(folder), "distributed.worker.daemon": True}):
        with distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster:
            yield cluster


@pytest.mark.parametrize("workers", [1, 2])
def test_worker_processes_have_the_bits_of_one_process(cluster, cells, here, workers):
    import distributed

    cluster.scale(workers)
    with distributed.Client(cluster) as client:
        client.wait_for_workers(workers)
        same(here, fresh().fit(chunked(cells, 600, sparse.csr_matrix), sample=SAMPLE))


def test_workers_that_are_killed_are_made_up_for_with_the_same_bits(cluster, cells, here, monkeypatch):
    import distributed

    from bpnmf._dask import OnCluster

    cluster.scale(2)
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        work, killed = OnCluster.work, []

        def kill():
            time.sleep(0.15)
            victim = next(iter(client.run(os.getpid).values()))
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

        def watched(self, shared, asked):
            # In the middle of a step, and of the whole pass.
            if asked.number == 3 or asked.stage == "whole pass":
                threading.Thread(target=kill).start()
            return work(self, shared, asked)

        monkeypatch.setattr(OnCluster, "work", watched)
        model = fresh().fit(chunked(cells, 300, sparse.csr_matrix), sample=SAMPLE)
        same(here, model)
        assert len(killed) == 2
