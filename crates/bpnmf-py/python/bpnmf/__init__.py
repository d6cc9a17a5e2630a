"""Beta process non-negative matrix factorization: the parts of a matrix of counts, and how many there are."""

from . import plot
from ._anndata import fit_anndata
from ._assign import Assignment
from ._audio import Separation, bss_eval, separate
from ._base import ConvergenceWarning, NotFittedError
from ._core import __version__
from ._estimator import BetaProcessNMF, DataWarning, Prior
from ._files import load

__all__ = [
    "Assignment",
    "BetaProcessNMF",
    "ConvergenceWarning",
    "DataWarning",
    "NotFittedError",
    "Prior",
    "Separation",
    "__version__",
    "bss_eval",
    "fit_anndata",
    "load",
    "plot",
    "separate",
]
