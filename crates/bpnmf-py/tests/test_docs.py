"""The code of docs/python.md runs from top to bottom and gives what it says."""

import pathlib
import re

import numpy as np
import pytest

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "python.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="the documentation is not here")
def test_the_code_of_the_documentation_runs(tmp_path, monkeypatch):
    for name in ("scipy", "sklearn", "anndata", "arviz", "pandas"):
        pytest.importorskip(name)
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 8
    names = {}
    for block in blocks:
        exec(compile(block, f"{PAGE.name}: {block.splitlines()[0]}", "exec"), names)
    assert names["model"].n_components_ == 3
    scores = names["scores"]
    assert scores[3] > scores[1] and scores[3] > scores[2]
    np.testing.assert_array_equal(names["again"].transform(names["X"]), names["model"].transform(names["X"]))
