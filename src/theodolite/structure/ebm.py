"""An additive model to compare with: the explainable boosting machine of `interpret`, where that is installed."""

from __future__ import annotations

import importlib.util

import numpy as np
from numpy.typing import NDArray

from theodolite.errors import BadInput

Array = NDArray[np.float64]


def require_ebm() -> None:
    if importlib.util.find_spec("interpret") is None:
        raise BadInput("the additive model (EBM) needs interpret: pip install interpret-core, or leave out --additive")


def ebm_losses(x_train: Array, y_train: Array, x_test: Array, y_test: Array, seed: int) -> Array:
    """Squared errors on the test rows over their variance, with the machine's own settings."""
    from interpret.glassbox import ExplainableBoostingRegressor  # pyright: ignore[reportMissingImports]

    machine = ExplainableBoostingRegressor(random_state=seed, n_jobs=1).fit(x_train, y_train)
    return (machine.predict(x_test) - y_test) ** 2 / np.var(y_test)
