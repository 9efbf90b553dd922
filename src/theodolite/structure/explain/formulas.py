"""A short formula for a function of one or two variables, where one fits as well as the refits agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

Array = NDArray[np.float64]
CLOSE = 1e-3  # of the variance that a formula may miss, where the refits agree better
DOUBTFUL = 0.05  # where refits differ by more, no formula is told from another
DIGITS = 4
_SCALES = (0.5, 1.0, 2.0, 4.0)  # of the inner factor, in units of the range, from which a fit starts


@dataclass(frozen=True)
class Formula:
    """As text, in LaTeX and as Python of arrays; `error` is the part of the variance that it misses."""

    text: str
    latex: str
    code: str
    error: float

    def to_json(self) -> dict[str, Any]:
        return {"text": self.text, "latex": self.latex, "code": self.code, "error": self.error}


@dataclass(frozen=True)
class _Shape:
    """An outer function of k · u + m, of which k, m, both or neither is `free`: the others change nothing that the
    factor in front does not. How long it is decides between shapes that fit."""

    length: int
    text: str
    latex: str
    code: str
    apply: Callable[[Array], Array]
    free: Literal["", "k", "m", "km"]


_OUTER = (
    _Shape(1, "{u}", "{u}", "{u}", lambda u: u, ""),
    _Shape(2, "({u})²", "\\left({u}\\right)^2", "({u})**2", np.square, "m"),
    _Shape(3, "exp({u})", "e^{{{u}}}", "np.exp({u})", lambda u: np.exp(np.clip(u, -50, 50)), "k"),
    _Shape(3, "sin({u})", "\\sin\\left({u}\\right)", "np.sin({u})", np.sin, "km"),
    _Shape(3, "tanh({u})", "\\tanh\\left({u}\\right)", "np.tanh({u})", np.tanh, "km"),
    _Shape(3, "log({u})", "\\log\\left({u}\\right)", "np.log({u})", lambda u: np.log(np.where(u > 0, u, np.nan)), "m"),
    _Shape(3, "√({u})", "\\sqrt{{{u}}}", "np.sqrt({u})", lambda u: np.sqrt(np.where(u >= 0, u, np.nan)), "m"),
    _Shape(3, "1/({u})", "\\frac{{1}}{{{u}}}", "1/({u})", lambda u: 1 / np.where(np.abs(u) > 1e-9, u, np.nan), "m"),
)


@dataclass(frozen=True)
class _Inner:
    length: int
    text: str
    latex: str
    code: str
    value: Array


def short_formula(variables: Sequence[str], points: Array, values: Array, doubt: float) -> Formula | None:
    """Of values at points (point, variable). `doubt` is the part of the variance that the refits leave open; a formula
    must miss no more than this, or than 0.1 %. The shortest that does is taken; None where there is none.

    Examples:
        >>> x = np.linspace(1, 4, 40)
        >>> found = short_formula(["v"], x[:, None], 0.5 * x**2, 0.0)
        >>> found.text, found.code
        ('0.5·(v)²', '0.5*(v)**2')
    """
    spread = float(np.var(values))
    if spread == 0 or doubt > DOUBTFUL or len(values) < 8:
        return None
    allowed = max(CLOSE, doubt)
    tried = sorted(
        ((outer.length + inner.length, outer, inner) for outer, inner in product(_OUTER, _inners(variables, points))),
        key=lambda item: item[0],
    )
    found: list[tuple[int, Formula]] = []
    for length, outer, inner in tried:
        if found and length > found[0][0]:
            break  # the shortest that fits is there
        formula = _fitted(outer, inner, values, spread)
        if formula is not None and formula.error <= allowed:
            found.append((length, formula))
    return min((formula for _, formula in found), key=lambda one: one.error, default=None)


def _inners(variables: Sequence[str], points: Array) -> Iterator[_Inner]:
    """The numbers inside: the variable, or short combinations of two."""
    names = [_plain(name) for name in variables]
    latex = [f"\\mathrm{{{name}}}".replace("_", "\\_") if len(name) > 1 else name for name in names]
    code = [name if name.isidentifier() else f"x{place + 1}" for place, name in enumerate(names)]
    if len(variables) == 1:
        yield _Inner(0, names[0], latex[0], code[0], points[:, 0])
        return
    (a, b), (u, v), (c, d) = names, latex, code
    p, q = points.T
    yield _Inner(2, f"{a}·{b}", f"{u}\\,{v}", f"{c}*{d}", p * q)
    yield _Inner(3, f"({a}² + {b}²)", f"({u}^2+{v}^2)", f"({c}**2 + {d}**2)", p**2 + q**2)
    for s, t, e, f, g, h, n, m in ((a, b, u, v, c, d, p, q), (b, a, v, u, d, c, q, p)):
        yield _Inner(3, f"{s}²·{t}", f"{e}^2\\,{f}", f"{g}**2*{h}", n**2 * m)
        if np.all(m > 0) or np.all(m < 0):
            yield _Inner(2, f"{s}/{t}", f"\\frac{{{e}}}{{{f}}}", f"{g}/{h}", n / m)
    ratio = float(np.ptp(p) / max(float(np.ptp(q)), 1e-300))
    for sign, weight in (("+", 1.0), ("-", -1.0)) if 0.1 < ratio < 10 else ():
        yield _Inner(3, f"({a} {sign} {b})", f"({u}{sign}{v})", f"({c} {sign} {d})", p + weight * q)


def _fitted(outer: _Shape, inner: _Inner, values: Array, spread: float) -> Formula | None:
    """c + a · outer(k · inner + m), rounded, with the error of the rounded one."""
    best: tuple[float, tuple[float, float, float, float]] | None = None
    for start in _starts(outer, inner.value):
        k, m = _settled(outer, inner.value, values, start)
        c, a, _ = _linear(outer, inner.value, values, k, m)
        k, m, c, a = (_rounded(number) for number in (k, m, c, a))
        said = c + a * _said(outer, inner.value, k, m)
        error = float(np.mean((said - values) ** 2) / spread)
        if np.isfinite(error) and a != 0 and (best is None or error < best[0]):
            best = (error, (c, a, k, m))
    if best is None:
        return None
    text, latex, code = (_written(kind, outer, inner, *best[1]) for kind in ("text", "latex", "code"))
    return Formula(text, latex, code, best[0])


def _starts(outer: _Shape, u: Array) -> list[tuple[float, float]]:
    """Inner factors and shifts to begin with, round ones first."""
    width, middle = max(float(np.ptp(u)), 1e-300), float(u.mean())
    scaled = [scale * 2 / width for scale in _SCALES]
    return {
        "": [(1.0, 0.0)],
        "k": [(1.0, 0.0), *((sign * k, 0.0) for k in scaled for sign in (1, -1))],
        "m": [(1.0, 0.0), (1.0, -middle), (1.0, 0.1 * width - float(u.min()))],
        "km": [(1.0, 0.0), *((k, -k * middle) for k in scaled)],
    }[outer.free]


def _settled(outer: _Shape, u: Array, values: Array, start: tuple[float, float]) -> tuple[float, float]:
    """k and m by least squares from a start; the start itself where it is good enough, for its numbers are round."""
    enough = CLOSE / 10 * float(np.var(values))
    if not outer.free or _linear(outer, u, values, *start)[2] <= enough:
        return start
    inside = lambda t: {"k": (t[0], start[1]), "m": (start[0], t[0]), "km": (t[0], t[-1])}[outer.free]

    def residuals(t: Array) -> Array:
        k, m = inside(t)
        c, a, _ = _linear(outer, u, values, k, m)
        said = c + a * _said(outer, u, k, m)
        return np.where(np.isfinite(said), said - values, 1e3 * np.std(values))

    first = {"k": [start[0]], "m": [start[1]], "km": list(start)}[outer.free]
    k, m = inside(least_squares(residuals, first, max_nfev=60).x)
    return float(k), float(m)


def _linear(outer: _Shape, u: Array, values: Array, k: float, m: float) -> tuple[float, float, float]:
    """The best c and a of c + a · outer(k u + m), and the mean square that is left."""
    g = _said(outer, u, k, m)
    if not np.isfinite(g).all() or np.ptp(g) == 0:
        return 0.0, 0.0, np.inf
    (c, a), *_ = np.linalg.lstsq(np.stack([np.ones_like(g), g], axis=1), values, rcond=None)
    return float(c), float(a), float(np.mean((c + a * g - values) ** 2))


def _said(outer: _Shape, u: Array, k: float, m: float) -> Array:
    with np.errstate(all="ignore"):
        return outer.apply(k * u + m)


def _written(kind: str, outer: _Shape, inner: _Inner, c: float, a: float, k: float, m: float) -> str:
    times = {"text": "·", "latex": "\\,", "code": "*"}[kind]
    u = getattr(inner, kind)
    inside = u if k == 1 else f"-{u}" if k == -1 else f"{k:g}{times}{u}"
    if m:
        inside += f" {'+' if m > 0 else '-'} {abs(m):g}"
    said = getattr(outer, kind).format(u=inside)
    said = said if a == 1 else f"-{said}" if a == -1 else f"{a:g}{times}{said}"
    return said if c == 0 else f"{c:g} {'+' if not said.startswith('-') else '-'} {said.lstrip('-')}"


def _rounded(number: float) -> float:
    """To a few digits, and nothing for what is nothing beside 1."""
    return 0.0 if abs(number) < 1e-9 else float(f"{number:.{DIGITS}g}")


def _plain(name: str) -> str:
    return name.replace("{", "(").replace("}", ")")
