"""What a Gaussian process makes of the evaluations so far, over the ids of a space.

The process is scikit-learn's, https://scikit-learn.org/stable/modules/gaussian_process.html. Which of its kernels
and which features serve was tried on recorded spaces: docs/search.md.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from m3gen.space import Choice, Space

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Length scales, in ranges of their parameter, are a priori lognormal about the whole range.
SCALE_DEVIATION = 1.0
# So is the variance of the noise, in variances of the signal.
NOISE_MEAN, NOISE_DEVIATION = -5.0, 2.0
OPTIMISER_STEPS = 20


@lru_cache(maxsize=8)
def features(space: Space) -> Floats:
    """A row per id: the place of each parameter's value in its range of 0 to 1, or, where values have no order, a
    column per value. A parameter that may be inactive has one more column, which tells whether it is."""
    import numpy as np

    columns = []
    for position, parameter in zip(space.positions.T, space.parameters, strict=True):
        size = len(parameter.values)
        if parameter.active is not None:
            columns.append(position == size)
        if isinstance(parameter, Choice) and size > 2:
            columns += [position == value for value in range(size)]
        elif size > 1:
            columns.append(np.where(position == size, 0.5, position / (size - 1)))
    return np.stack(columns, axis=1).astype(np.float64) if columns else np.zeros((len(space), 1))


def fitted_kernel(rows: Floats, values: Floats) -> Any:
    """The kernel whose scales explain `values` (mean 0, deviation 1) at `rows` best, by the maximum of posterior
    density."""
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    # Bounds that the prior keeps away from: scikit-learn warns of scales that reach one.
    wide = (1e-6, 1e6)
    kernel = ConstantKernel(1.0, wide) * Matern([1.0] * rows.shape[1], wide, nu=2.5)
    kernel += WhiteKernel(math.exp(NOISE_MEAN), wide)
    with _one_thread():
        return _processes()(kernel, fit=True).fit(rows, values).kernel_


def posterior(kernel: Any, rows: Floats, values: Floats, asked: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation at the rows `asked`, given `values` at `rows`."""
    with _one_thread():
        mean, deviation = _processes()(kernel, fit=False).fit(rows, values).predict(asked, return_std=True)
    return mean, deviation


def _one_thread() -> Any:
    """Matrices of a hundred rows gain nothing from threads, which wait for each other on a busy machine."""
    return _threads().limit(limits=1)


@cache
def _threads() -> Any:
    from threadpoolctl import ThreadpoolController

    _processes()  # only what is loaded by now is controlled
    return ThreadpoolController()


@cache
def _processes() -> Any:
    """scikit-learn is imported when the first process is made: it takes a second."""
    import numpy as np
    from scipy.optimize import minimize
    from sklearn.gaussian_process import GaussianProcessRegressor

    class Process(GaussianProcessRegressor):  # type: ignore[misc]
        """Weighs the likelihood with what is believed of the scales beforehand: with ten evaluations it would
        take any parameter for irrelevant."""

        def log_marginal_likelihood(
            self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True
        ) -> Any:
            found = super().log_marginal_likelihood(theta, eval_gradient, clone_kernel)
            if theta is None:
                return found
            off = (theta - self._means) / self._deviations
            if not eval_gradient:
                return found - 0.5 * off @ off
            value, gradient = found
            return value - 0.5 * off @ off, gradient - off / self._deviations

        @property
        def _means(self) -> Any:  # of the logarithms of the signal's variance, the scales, the noise
            return np.array([0.0] * (self.kernel_.n_dims - 1) + [NOISE_MEAN])

        @property
        def _deviations(self) -> Any:
            return np.array([1.0] + [SCALE_DEVIATION] * (self.kernel_.n_dims - 2) + [NOISE_DEVIATION])

    def climb(objective: Any, start: Any, bounds: Any) -> tuple[Any, float]:
        options = {"maxiter": OPTIMISER_STEPS}
        found = minimize(objective, start, method="L-BFGS-B", jac=True, bounds=bounds, options=options)
        return found.x, found.fun

    def make(kernel: Any, *, fit: bool) -> Any:
        return Process(kernel, alpha=1e-8, optimizer=climb if fit else None, copy_X_train=False)

    return make
