"""Beta process non-negative matrix factorization: the parts of a matrix of counts, and how many there are."""

from . import plot
from ._audio import Separation, bss_eval, separate
from ._base import ConvergenceWarning, NotFittedError
from ._core import __version__
from ._estimator import BetaProcessNMF, DataWarning, Prior

__all__ = [
    "BetaProcessNMF",
    "ConvergenceWarning",
    "DataWarning",
    "NotFittedError",
    "Prior",
    "Separation",
    "__version__",
    "bss_eval",
    "plot",
    "separate",
]
