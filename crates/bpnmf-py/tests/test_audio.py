"""Sounds in and out, beside mir_eval and the program."""

import json
import subprocess
import warnings
import wave

import numpy as np
import pytest

import bpnmf


def tones(rate=8000, seconds=2.0):
    """Two sources of two tones each, on in turns."""
    time = np.arange(int(rate * seconds)) / rate
    gate = lambda period, phase: ((time / period + phase) % 1.0 < 0.5).astype(float)
    note = lambda f: sum(0.6**n * np.sin(2 * np.pi * f * (n + 1) * time) for n in range(4))
    low = 0.2 * note(220) * gate(0.8, 0.0) + 0.2 * note(277) * gate(0.5, 0.3)
    high = 0.15 * note(660) * gate(0.6, 0.1) + 0.15 * note(880) * gate(0.9, 0.6)
    return np.stack([low, high]), rate


@pytest.fixture(scope="module")
def sources():
    return tones()


def test_scores_equal_those_of_mir_eval(sources):
    mir_eval = pytest.importorskip("mir_eval")
    references, _ = sources
    rng = np.random.default_rng(0)
    estimates = references[::-1] + 0.1 * references + 0.01 * rng.standard_normal(references.shape)
    for permutation in (True, False):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = mir_eval.separation.bss_eval_sources(references, estimates, permutation)
        for got, want in zip(bpnmf.bss_eval(references, estimates, permutation), expected):
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)


def test_one_source_may_be_one_dimensional_and_what_is_silent_is_told():
    rng = np.random.default_rng(1)
    sound = rng.standard_normal(3000)
    sdr, sir, sar, perm = bpnmf.bss_eval(sound, sound + 0.1 * rng.standard_normal(3000))
    assert sdr.shape == (1,) and 15 < sdr[0] < 25 and np.isinf(sir[0]) and list(perm) == [0]
    with pytest.warns(UserWarning, match="silent"):
        assert np.isnan(bpnmf.bss_eval(np.zeros(3000), sound)[0][0])
    with pytest.raises(ValueError, match="estimates"):
        bpnmf.bss_eval(np.stack([sound, sound]), sound)
    with pytest.raises(ValueError, match="same length"):
        bpnmf.bss_eval(sound, sound[:-1])


def test_a_file_and_several_channels_are_taken_and_a_separation_is_told_in_a_line(sources, tmp_path):
    references, rate = sources
    y = np.round(32767 * references.sum(axis=0)).astype("<i2")
    with wave.open(str(tmp_path / "mix.wav"), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(y.tobytes())
    how = {"n_stems": 2, "random_state": 0, "max_iter": 5}
    sound = y / np.float32(32768)
    plain = bpnmf.separate(sound, rate, **how)
    assert repr(plain) == f"Separation({len(plain.components)} parts, 2 stems, 2.0 s)"
    for other in (bpnmf.separate(tmp_path / "mix.wav", **how), bpnmf.separate(np.stack([sound, sound], axis=1), rate, **how)):
        np.testing.assert_array_equal(other.stems, plain.stems)
    with pytest.raises(ValueError, match="leave sr out"):
        bpnmf.separate(tmp_path / "mix.wav", rate)
    with pytest.raises(ValueError, match="no such file"):
        bpnmf.separate(tmp_path / "none.wav")


def test_parts_and_stems_add_up_to_the_sound_and_sources_come_out(sources):
    references, rate = sources
    y = references.sum(axis=0)
    parts = bpnmf.separate(y, rate, reference=references, random_state=0)
    assert parts.components.shape == (parts.model.components_.shape[0], y.size)
    assert parts.spectra.shape[1] == parts.frequencies.size == parts.model.n_features_in_
    assert parts.activations.shape[0] == parts.times.size
    for sounds in (parts.components, parts.stems):
        np.testing.assert_allclose(sounds.sum(axis=0), y, atol=1e-4)
    assert bpnmf.bss_eval(references, parts.stems, False)[0].min() > 10
    two = bpnmf.separate(y, rate, n_stems=2, random_state=0)
    np.testing.assert_array_equal(two.components, parts.components)
    assert sorted(k for members in two.members for k in members) == list(range(len(parts.components)))
    three = bpnmf.separate(y, rate, n_stems=2, residual=True, random_state=0)
    assert three.stems.shape[0] == 3
    np.testing.assert_allclose(three.stems.sum(axis=0), y, atol=1e-4)


def test_the_program_gives_the_same_parts(sources, program, tmp_path):
    soundfile = pytest.importorskip("soundfile")
    references, rate = sources
    y = references.sum(axis=0).astype(np.float32)
    soundfile.write(tmp_path / "mix.wav", y, rate, subtype="FLOAT")
    command = [program, "separate", tmp_path / "mix.wav", "--out", tmp_path / "out", "--stems", "2", "--seed", "5", "--quiet"]
    subprocess.run(command, check=True)
    found = bpnmf.separate(y, rate, n_stems=2, random_state=5)
    written = np.load(tmp_path / "out" / "model.npz")
    np.testing.assert_array_equal(found.model.components_, written["W"].T)
    np.testing.assert_array_equal(found.spectra, written["W_filter"].T)
    np.testing.assert_array_equal(found.activations, written["H_filter"].T)
    for k, sound in enumerate(found.stems):
        np.testing.assert_array_equal(sound, soundfile.read(tmp_path / "out" / "stems" / f"{k + 1}.wav", dtype="float32")[0])
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["n_components"] == found.model.n_components_


@pytest.mark.parametrize(
    "y, params, error, words",
    [
        (np.zeros((2, 3, 100)), {}, ValueError, "one channel"),
        (np.zeros(0), {}, ValueError, "one channel"),
        (np.zeros(1000), {}, ValueError, "silent|silence"),
        (np.full(1000, np.nan), {}, ValueError, "finite"),
        (np.ones(1000), {"window": 7}, ValueError, "even window"),
        (np.ones(1000), {"n_stems": 2, "reference": np.ones((1, 1000))}, ValueError, "both"),
        (np.ones(1000), {"reference": np.ones((1, 10))}, ValueError, "as long as y"),
        (np.ones(1000), {"residual": True}, ValueError, "one stem more"),
        (np.ones(1000), {"n_stems": 0}, ValueError, "n_stems is 0"),
    ],
)
def test_bad_sounds_and_wishes_are_refused_with_a_sentence(y, params, error, words):
    with pytest.raises(error, match=words):
        bpnmf.separate(y, 8000, **params)
