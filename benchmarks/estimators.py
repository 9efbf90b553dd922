"""What others fit to the rows of a table, set as somebody who knows them would: peers of our estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

GAUSSIAN_ROWS = 600  # by which scales are chosen


def boosting(x: Any, y: Any, classes: bool = False) -> Any:
    """Scikit-learn's, with its own categories, in the best of four settings on a tenth of the rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    found = [
        kind(
            learning_rate=rate,
            max_leaf_nodes=leaves,
            min_samples_leaf=min(20, max(2, len(x) // 50)),
            max_iter=1000,
            early_stopping=True,  # pyright: ignore[reportArgumentType]
            n_iter_no_change=15,
            categorical_features="from_dtype",
            random_state=0,
        ).fit(x, y)
        for leaves in (8, 31)
        for rate in (0.05, 0.15)
    ]
    return max(found, key=lambda trees: float(np.max(trees.validation_score_)))


def ebm(x: Any, y: Any, classes: bool = False) -> Any:
    """The explainable boosting machine, functions of one variable and of chosen pairs, with half its usual bags."""
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    kind = ExplainableBoostingClassifier if classes else ExplainableBoostingRegressor
    return kind(random_state=0, n_jobs=1, outer_bags=8).fit(x, y)


def gaussian_process(x: Any, y: Any) -> Any:
    """Scikit-learn's, a scale for every column: of the squared exponential and Matérn's 5/2 the one with more evidence,
    both maximised over up to 600 of the rows, then given all of them."""
    import contextlib
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = np.random.default_rng(0).permutation(len(x))[:GAUSSIAN_ROWS]
    wide = {"length_scale": np.full(x.shape[1], 2.0), "length_scale_bounds": (0.05, 1e4)}
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a scale at its bound: a column that means nothing
        scaling = StandardScaler().fit(x)
        for smooth in (RBF(**wide), Matern(nu=2.5, **wide)):
            kernel = ConstantKernel(1.0, (1e-3, 1e5)) * smooth + WhiteKernel(1e-2, (1e-9, 1e1))
            one = GaussianProcessRegressor(kernel, normalize_y=True).fit(scaling.transform(x[rows]), y[rows])
            found.append(one)
    best = max(found, key=lambda one: one.log_marginal_likelihood_value_)
    for more in (1e-10, 1e-8, 1e-6):  # without noise, rounding may make the first matrix singular
        chosen = {"optimizer": None, "normalize_y": True, "alpha": more}
        with contextlib.suppress(np.linalg.LinAlgError):
            return make_pipeline(scaling, GaussianProcessRegressor(best.kernel_, **chosen).fit(scaling.transform(x), y))
    raise ArithmeticError("the covariance matrix is singular")
