"""What scikit-learn gives an estimator, and what stands in for it where it is not installed."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    HAVE_SKLEARN: bool

    class NotFittedError(ValueError, AttributeError):
        """Something was asked of an estimator before it was fitted."""

    class ConvergenceWarning(UserWarning):
        """The chains of a fit do not agree."""

    class Base:
        """Parameters by name."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Any: ...
        def __sklearn_tags__(self) -> Any: ...
        def __repr__(self, N_CHAR_MAX: int = 700) -> str: ...

    class InvalidParameterError(ValueError, TypeError):
        """A parameter of the constructor is of the wrong type."""

    def _check_names(estimator: Base, X: Any, n_features: int, reset: bool) -> None: ...
    def wrapped_like_transform(estimator: Base, X: Any, values: Any) -> Any: ...

else:
    try:
        from sklearn.base import BaseEstimator, TransformerMixin
        from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning
        from sklearn.exceptions import NotFittedError
        from sklearn.utils._param_validation import InvalidParameterError
        from sklearn.utils._set_output import _wrap_data_with_container
        from sklearn.utils.validation import validate_data

        HAVE_SKLEARN = True
    except ImportError:
        HAVE_SKLEARN = False

    if HAVE_SKLEARN:

        class ConvergenceWarning(SklearnConvergenceWarning):
            """The chains of a fit do not agree: the sentence says about what. It is one of scikit-learn's, too."""

        class Base(TransformerMixin, BaseEstimator):
            """scikit-learn's own."""

        def _check_names(estimator, X, n_features, reset):
            validate_data(estimator, X, reset=reset, skip_check_array=True)

        def wrapped_like_transform(estimator, X, values):
            """What `transform` gives beside the activations, in the same kind of container."""
            return _wrap_data_with_container("transform", values, X, estimator)

    else:

        class ConvergenceWarning(UserWarning):
            """The chains of a fit do not agree: the sentence says about what."""

        class NotFittedError(ValueError, AttributeError):
            """Something was asked of an estimator before it was fitted."""

        class InvalidParameterError(ValueError, TypeError):
            """A parameter of the constructor is of the wrong type."""

        def wrapped_like_transform(estimator, X, values):
            """What `transform` gives beside the activations, in the same kind of container."""
            return values

        class Base:
            """Parameters by name, as scikit-learn has them."""

            @classmethod
            def _names(cls):
                return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

            def get_params(self, deep=True):
                """The parameters of the constructor by name."""
                return {name: getattr(self, name) for name in self._names()}

            def set_params(self, **params):
                """Sets parameters by name."""
                names = self._names()
                for name, value in params.items():
                    if name not in names:
                        raise ValueError(f"{type(self).__name__} has no parameter {name!r}: it has {', '.join(names)}")
                    setattr(self, name, value)
                return self

            def __repr__(self):
                defaults = inspect.signature(type(self).__init__).parameters
                set_here = (
                    f"{name}={value!r}"
                    for name, value in self.get_params().items()
                    if value is not defaults[name].default and value != defaults[name].default
                )
                return f"{type(self).__name__}({', '.join(set_here)})"

        def _check_names(estimator, X, n_features, reset):
            import numpy as np

            columns = getattr(X, "columns", None)
            names = None if columns is None else list(columns)
            if names is not None and not all(isinstance(name, str) for name in names):
                names = None
            if reset:
                estimator.n_features_in_ = n_features
                if names is not None:
                    estimator.feature_names_in_ = np.asarray(names, dtype=object)
                elif hasattr(estimator, "feature_names_in_"):
                    del estimator.feature_names_in_
                return
            known = getattr(estimator, "feature_names_in_", None)
            if known is not None and names is not None and names != list(known):
                raise ValueError("The feature names should match those that were passed during fit, in their order")
            if n_features != estimator.n_features_in_:
                raise ValueError(
                    f"X has {n_features} features, but {type(estimator).__name__} is expecting "
                    f"{estimator.n_features_in_} features as input"
                )


def is_anndata(X: Any) -> bool:
    """Whether X is an AnnData, or quacks like one."""
    return hasattr(X, "X") and hasattr(X, "var_names") and hasattr(X, "obs_names")


def check_names(estimator: Any, X: Any, n_features: int, reset: bool) -> None:
    """Keeps the number and the names of the features, or compares them with those of the fit."""
    if not is_anndata(X):
        _check_names(estimator, X, n_features, reset)
        return
    names = [str(name) for name in X.var_names]
    known = getattr(estimator, "feature_names_in_", None)
    if not reset and known is not None:
        if names != list(known):
            raise ValueError("The feature names should match those that were passed during fit, in their order")
        return
    _check_names(estimator, X.X, n_features, reset)
    if reset:
        import numpy as np

        estimator.feature_names_in_ = np.asarray(names, dtype=object)
