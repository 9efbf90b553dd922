"""What theory says of the gradient signal: how far the gradient of a loss can depend on which target is learnt.

Source: Shalev-Shwartz, Shamir, Shammah 2017, "Failures of gradient-based deep learning", Theorems 1 and 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy import integrate, special

from theodolite.errors import OutsideDomain
from theodolite.theory.domain import whole


def variance_bound(gradient_power: float, members: int, largest: float = 1.0) -> float:
    """Theorem 1: Var(H, F, w) ≤ G(w)²/|H| for orthogonal members of norm at most 1.

    `largest` is the largest eigenvalue of the Gram matrix E[h h′]: Σ_h ⟨h, g⟩² ≤ largest · ‖g‖² for any class, so that
    the bound holds with that factor where the members are only nearly orthogonal. It is 1 for orthonormal ones.
    """
    whole("members", members)
    return largest * gradient_power / members


def parity_correlation(v: Sequence[int], other: Sequence[int], printed: bool = False) -> Fraction:
    """E_x[(−1)^⟨x, v + v′⟩] over x ∈ {0, 1}^d: the product of E[(−1)^(x_i (v_i + v′_i))] over the bits.

    A bit is 0 or 1 with probability ½, so a factor is (1 + (−1)^(v_i + v′_i))/2. The source prints
    ((−1)^(v_i + v′_i) + (−1)^(−(v_i + v′_i)))/2, as if the bit were ±1; that factor is −1, not 0, where v_i ≠ v′_i.
    """
    if len(v) != len(other):
        raise OutsideDomain(f"parities of {len(v)} and {len(other)} bits have no correlation: give one length")
    product = Fraction(1)
    for a, b in zip(v, other, strict=True):
        sign = -1 if (a + b) % 2 else 1
        product *= Fraction(2 * sign, 2) if printed else Fraction(1 + sign, 2)
    return product


# Linear-periodic targets: h_v(x) = cos⟨v, x⟩ with ‖v‖ = r, x ~ N(0, I_d), the predictor p_w(x) = cos⟨w, x⟩


def cosine_loss(w: np.ndarray, v: np.ndarray) -> np.ndarray:
    """E[(cos⟨w, x⟩ − cos⟨v, x⟩)²], by E cos⟨a, x⟩ = exp(−‖a‖²/2); `w` is (…, d)."""
    both = _bump(w - v) + _bump(w + v)
    return (1 + _bump(2 * w)) / 2 + (1 + _bump(2 * v)) / 2 - both


def cosine_loss_gradient(w: np.ndarray, v: np.ndarray) -> np.ndarray:
    """∇_w of `cosine_loss`."""
    apart, together = w - v, w + v
    own = -2 * w * _bump(2 * w)[..., None]
    return own + apart * _bump(apart)[..., None] + together * _bump(together)[..., None]


def _bump(a: np.ndarray) -> np.ndarray:
    return np.exp(-np.square(a).sum(axis=-1) / 2)


def cosine_variance(dimensions: int, radius: float, weight_norm: float) -> float:
    """Var(H, F, w) of F_v(w) = ½E(cos⟨w, x⟩ − cos⟨v, x⟩)² over v uniform on the sphere of this radius, in closed form.

    With κ = r‖w‖ and t the cosine of the angle between v and w, E[h_v g] = A(v sinh κt − w cosh κt) where
    A = exp(−(r² + ‖w‖²)/2); moments of cosh κt and t sinh κt over the sphere are Bessel functions.
    """
    _check(dimensions, radius, weight_norm)
    r, rho = radius, weight_norm
    kappa = r * rho
    # Everything is scaled by exp(−2κ), which the factor A² takes back: exp(2κ − r² − ρ²) = exp(−(r − ρ)²).
    two, one = _sphere_moments(dimensions, 2 * kappa), _sphere_moments(dimensions, kappa)
    flat = math.exp(-2 * kappa)
    power = rho**2 * (flat + two[0]) / 2 + r**2 * (two[0] - flat) / 2 - kappa * two[1]
    mean = r * one[1] - rho * one[0]
    return max(0.0, math.exp(-((r - rho) ** 2)) * (power - mean**2))


def cosine_variance_by_quadrature(dimensions: int, radius: float, weight_norm: float) -> float:
    """The same by one integral over the angle, centred before it is squared."""
    _check(dimensions, radius, weight_norm)
    r, rho = radius, weight_norm
    density = lambda t: (1 - t * t) ** ((dimensions - 3) / 2)
    scale = lambda kt: (math.exp(kt - r * rho) / 2, math.exp(-kt - r * rho) / 2)

    def along(t: float) -> float:
        up, down = scale(r * rho * t)
        return r * t * (up - down) - rho * (up + down)

    def across(t: float) -> float:
        up, down = scale(r * rho * t)
        return (r * (up - down)) ** 2 * (1 - t * t)

    def average(f: object) -> float:
        edge = np.cos(np.linspace(0, np.pi, 33))[1:-1]
        options = {"limit": 400, "points": edge, "epsabs": 0.0, "epsrel": 1e-11}
        value, _ = integrate.quad(lambda t: f(t) * density(t), -1, 1, **options)  # type: ignore[operator]
        return value / integrate.quad(density, -1, 1, limit=400)[0]

    mean = average(along)
    return math.exp(-((r - rho) ** 2)) * average(lambda t: (along(t) - mean) ** 2 + across(t))


def largest_cosine_variance(dimensions: int, radius: float, steps: int = 400) -> tuple[float, float]:
    """(the largest variance over all w, the norm of w where it is reached), on a grid of norms up to radius + 3."""
    norms = np.linspace(0, radius + 3, steps + 1)[1:]
    found = [cosine_variance(dimensions, radius, float(norm)) for norm in norms]
    best = int(np.argmax(found))
    return found[best], float(norms[best])


def cosine_gradient_power(weight_norm: float, dimensions: int) -> float:
    """G² = E‖∂ cos⟨w, x⟩/∂w‖² = E[sin²⟨w, x⟩ ‖x‖²]."""
    decay = math.exp(-2 * weight_norm**2)
    return (dimensions * (1 - decay) + 4 * weight_norm**2 * decay) / 2


def _sphere_moments(dimensions: int, kappa: float) -> tuple[float, float]:
    """exp(−κ)·E[cosh κt] and exp(−κ)·E[t sinh κt] for t the first entry of a point of the unit sphere."""
    if kappa == 0:
        return 1.0, 0.0
    order = dimensions / 2 - 1
    log_factor = special.gammaln(dimensions / 2) + order * math.log(2 / kappa)
    bessel = [special.ive(order + i, kappa) for i in (0, 1)]
    if min(bessel) > 1e-290:
        first, second = (math.exp(log_factor + math.log(b)) for b in bessel)
        return first, second
    return _series(dimensions, kappa)  # high dimensions: the Bessel functions underflow, the power series is short


def _series(dimensions: int, kappa: float) -> tuple[float, float]:
    """E cosh κt = Σ_m (κ²/4)^m / (m! (d/2)_m), and its derivative by κ."""
    term, even, odd = 1.0, 1.0, 0.0
    for m in range(1, 10_000):
        term *= kappa**2 / 4 / (m * (dimensions / 2 + m - 1))
        even += term
        odd += 2 * m * term / kappa
        if term < 1e-18 * even and m > kappa:
            break
    return even * math.exp(-kappa), odd * math.exp(-kappa)


def _check(dimensions: int, radius: float, weight_norm: float) -> None:
    whole("dimensions", dimensions, least=2)
    if not radius > 0 or not weight_norm >= 0:
        raise OutsideDomain(f"radius {radius} and weight norm {weight_norm} span no sphere: use one above 0")
