"""Functions that engineers compare methods by (mostly from the Virtual Library of Simulation Experiments of Surjanovic
and Bingham), as formulas with the ranges of their variables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Engineering:
    name: str
    text: str
    ranges: dict[str, tuple[float, float]]


def _all(names: str, low: float, high: float) -> dict[str, tuple[float, float]]:
    return dict.fromkeys(names.split(), (low, high))


_WET = "(g*(f+9))"
_MOMENT = "(p0*s + 19.62*m - k*v0/s)"
_VOLUME = f"(s/(2*k)*(sqrt({_MOMENT}**2 + 4*k*p0*v0/t0*ta) - {_MOMENT}))"
_ARM = [f"{length}*{{}}({'+'.join(angles)})" for length, angles in (("l2", ["b"]), ("l3", ["b", "c"]))]
_ARM.append("l4*{}(b+c+d)")
_ACROSS, _UP = "+".join(["l1", *(part.format("cos") for part in _ARM)]), "+".join(p.format("sin") for p in _ARM)
_HEAVY = 0.036  # of the wing
_D1 = "((log(s/k) + (r + v**2/2)*t)/(v*sqrt(t)))"

ENGINEERING = (
    Engineering("friedman 1", "10*sin(pi*x1*x2) + 20*(x3-0.5)**2 + 10*x4 + 5*x5", _all("x1 x2 x3 x4 x5", 0, 1)),
    Engineering(
        "friedman 2",
        "sqrt(x1**2 + (x2*x3 - 1/(x2*x4))**2)",
        {"x1": (1, 100), "x2": (126, 1759), "x3": (0, 1), "x4": (1, 11)},
    ),
    Engineering(
        "friedman 3",
        "arctan((x2*x3 - 1/(x2*x4))/x1)",
        {"x1": (1, 100), "x2": (126, 1759), "x3": (0, 1), "x4": (1, 11)},
    ),
    Engineering(
        "otl circuit",
        f"(12*b/(a+b) + 0.74)*{_WET}/({_WET}+c) + 11.35*c/({_WET}+c) + 0.74*c*{_WET}/(({_WET}+c)*d)",
        {"a": (50, 150), "b": (25, 70), "c": (0.5, 3), "d": (1.2, 2.5), "f": (0.25, 1.2), "g": (50, 300)},
    ),
    Engineering(
        "borehole",
        "2*pi*tu*(hu-hl)/(log(r/rw)*(1 + 2*l*tu/(log(r/rw)*rw**2*kw) + tu/tl))",
        {
            **{"rw": (0.05, 0.15), "r": (100, 50000), "tu": (63070, 115600), "hu": (990, 1110)},
            **{"tl": (63.1, 116), "hl": (700, 820), "l": (1120, 1680), "kw": (9855, 12045)},
        },
    ),
    Engineering(
        "piston",
        f"2*pi*sqrt(m/(k + s**2*p0*v0/t0*ta/{_VOLUME}**2))",
        {
            **{"m": (30, 60), "s": (0.005, 0.02), "v0": (0.002, 0.01), "k": (1000, 5000)},
            **{"p0": (90000, 110000), "ta": (290, 296), "t0": (340, 360)},
        },
    ),
    Engineering(
        "robot arm",  # the first angle turns the whole arm and so changes no distance
        f"sqrt(({_ACROSS})**2 + ({_UP})**2)",
        {**_all("b c d", 0, 6.283), **_all("l1 l2 l3 l4", 0, 1)},
    ),
    Engineering(
        "wing weight",
        f"{_HEAVY}*sw**0.758*wf**0.0035*(a/cos(z)**2)**0.6*q**0.006*l**0.04*(100*tc/cos(z))**(-0.3)*(nz*wd)**0.49 "
        "+ sw*wp",
        {
            **{"sw": (150, 200), "wf": (220, 300), "a": (6, 10), "z": (-0.17, 0.17), "q": (16, 45), "l": (0.5, 1)},
            **{"tc": (0.08, 0.18), "nz": (2.5, 6), "wd": (1700, 2500), "wp": (0.025, 0.08)},
        },
    ),
    Engineering("ishigami", "sin(x1) + 7*sin(x2)**2 + 0.1*x3**4*sin(x1)", _all("x1 x2 x3", -3.1416, 3.1416)),
    Engineering(
        "g-function",
        "(abs(4*x1-2)+0.2)*(abs(4*x2-2)+0.5)*(abs(4*x3-2)+1)*(abs(4*x4-2)+3)*(abs(4*x5-2)+5)*(abs(4*x6-2)+6)",
        _all("x1 x2 x3 x4 x5 x6", 0, 1),
    ),
    Engineering(
        "morris, short",
        "20*x1 - 15*x2 + 18*x3 - 30*x1*x2 + 25*x2*x3 - 20*x4*x5 + 12*x6 + 9*x7",
        _all("x1 x2 x3 x4 x5 x6 x7", -1, 1),
    ),
    Engineering(
        "ebola",
        "(b1 + b2*r1*(1-a)/g1 + p*b3/o)/(g1 + p)",
        {
            **{"b1": (0.1, 0.4), "b2": (0.1, 0.4), "b3": (0.05, 0.2), "r1": (0.41, 1), "a": (0, 0.9)},
            **{"g1": (0.0276, 0.1702), "o": (0.25, 0.5), "p": (0.05, 0.5)},
        },
    ),
    Engineering(
        "cantilever",
        "4*l**3/(m*w*t)*sqrt((v/t**2)**2 + (h/w**2)**2)",
        {"l": (80, 120), "m": (2e7, 4e7), "w": (2, 4), "t": (2, 4), "v": (600, 1400), "h": (300, 700)},
    ),
    Engineering(
        "short column",
        "1 - 4*m/(b*h**2*w) - p**2/(b**2*h**2*w**2)",
        {"b": (4, 6), "h": (13, 17), "m": (1400, 2600), "p": (300, 700), "w": (4, 6)},
    ),
    Engineering("glider", "-sin(a) - d*v**2 + v*cos(a)/m", {"a": (-1, 1), "d": (0, 1), "v": (0.5, 2), "m": (1, 3)}),
    Engineering("lotka–volterra", "3*x - 2*x*y - x**2 + h*y", {"x": (0.2, 3), "y": (0.2, 3), "h": (0, 1)}),
    Engineering("bacterial", "20 - x - x*y/(1 + h*x**2)", {"x": (1, 10), "y": (1, 10), "h": (0.1, 1)}),
    Engineering("shear flow", "cos(x)/tan(y)*k", {"x": (-1, 1), "y": (0.5, 1.4), "k": (0.5, 2)}),
    Engineering(  # the cumulative normal by the logistic function, within 0.01
        "black–scholes",
        f"s/(1 + exp(-1.702*{_D1})) - k*exp(-r*t)/(1 + exp(-1.702*({_D1} - v*sqrt(t))))",
        {"s": (80, 120), "k": (80, 120), "r": (0.01, 0.08), "v": (0.1, 0.4), "t": (0.2, 2)},
    ),
    Engineering(
        "haversine",
        "2*arcsin(sqrt(sin((b-a)/2)**2 + cos(a)*cos(b)*sin((d-c)/2)**2))",
        {**_all("a b", -1, 1), **_all("c d", -1.2, 1.2)},
    ),
    Engineering(
        "environmental",
        "10*(m/sqrt(4*pi*d*t)*exp(-z**2/(4*d*t)) + m/sqrt(4*pi*d*(t+l))*exp(-(z-1)**2/(4*d*(t+l))))",
        {"m": (7, 13), "d": (0.02, 0.12), "l": (0.01, 3), "t": (5, 30), "z": (0, 3)},
    ),
    Engineering(
        "nernst-like",
        "e0 + r*t*log(a/b)/(n + 1)",
        {"e0": (0, 1), "r": (0.5, 2), "t": (1, 2), "a": (1, 10), "b": (1, 10), "n": (1, 4)},
    ),
)
