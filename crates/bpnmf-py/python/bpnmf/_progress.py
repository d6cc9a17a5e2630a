"""The line that is seen while a fit goes on."""

from __future__ import annotations

import sys
import time
from typing import Any


def _in_notebook() -> bool:
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return shell is not None and hasattr(shell, "kernel")


class Progress:
    """One line on stderr: updated on a terminal and in a notebook, now and then a new one elsewhere."""

    def __init__(self) -> None:
        self._parts: dict[int, int] = {}
        self._shown = 0.0
        self._width = 0
        self._line = ""
        self._handle: Any = None
        self._notebook = _in_notebook()
        self._terminal = sys.stderr.isatty()
        self._every = 0.1 if self._notebook or self._terminal else 2.0

    def step(self, info: dict[str, Any]) -> None:
        """Shows an event, but not too often."""
        self._parts[info["chain"]] = info["n_components"]
        parts = " ".join(str(self._parts[chain]) for chain in sorted(self._parts)[:8])
        word = "part" if parts == "1" else "parts"
        if info["stage"] == "search":
            what = f"searching: {parts} {word} ({info['step']})"
        else:
            what = f"iteration {info['iteration']}: {parts} {word}, objective {info['log_joint']:.5e}"
        self._line = f"bpnmf: {what}, {info['seconds']:.1f} s"
        now = time.monotonic()
        if now - self._shown >= self._every:
            self._shown = now
            self._write()

    def finish(self, line: str) -> None:
        """The last line."""
        self._line = f"bpnmf: {line}"
        self._write()
        if self._terminal and not self._notebook:
            print(file=sys.stderr, flush=True)

    def _write(self) -> None:
        if self._notebook:
            from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

            content = {"text/plain": self._line}
            if self._handle is None:
                self._handle = display(content, raw=True, display_id=True)
            else:
                self._handle.update(content, raw=True)
        elif self._terminal:
            print(f"\r{self._line.ljust(self._width)}", end="", file=sys.stderr, flush=True)
            self._width = len(self._line)
        else:
            print(self._line, file=sys.stderr, flush=True)
