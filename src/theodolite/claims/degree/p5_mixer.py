"""P5, a task of the degree paper: does the account by degree explain MLP-Mixer?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from theodolite.claims.contract import claim
from theodolite.claims.degree.cases import ATTENTION, SOURCE, Case, text
from theodolite.claims.rule import Verdict
from theodolite.lab.cell import Row

_MIXER = "polynomial-mixer"
_SAME = 1.25  # ratio of logarithms of ranks that counts as the same expressive power


def _mixer(family: str, tokens: int, width: int, degree: int, channel: int, depth: int, **more: Any) -> Case:
    shape = {"tokens": tokens, "width": width, "channel_degree": channel}
    return Case(family, _MIXER, shape, (degree,) * depth, **more)


def _attention(family: str, tokens: int, width: int, degrees: tuple[int, ...], **more: Any) -> Case:
    return Case(family, ATTENTION, {"tokens": tokens, "width": width}, degrees, **more)


_SMALL = "2 tokens of width 2, 48 parameters"
_SQUARE = "4 tokens of width 4, 96 parameters"
_LONG = "4 tokens of width 2, 48 parameters"


def _p5_cases() -> list[Case]:
    return [
        *(_mixer(_SMALL, 2, 2, *shape) for shape in ((2, 2, 3), (3, 3, 2), (2, 4, 2), (4, 2, 2))),
        *(_attention(_SMALL, 2, 2, (degree,) * (12 // degree)) for degree in (2, 3)),
        *(_mixer(_SQUARE, 4, 4, *shape, draws=2) for shape in ((3, 3, 1), (2, 4, 1), (4, 2, 1))),
        *(_attention(_SQUARE, 4, 4, degrees, draws=2) for degrees in ((3, 3), (2, 2, 2))),
        _mixer(_LONG, 4, 2, 2, 4, 1, draws=2),
        _attention(_LONG, 4, 2, (3, 3, 3, 3), points=600),
    ]


@claim(
    "P5",
    "Does the account by degree explain MLP-Mixer?",
    SOURCE + "Task 4",
    "The source asks for an analysis. Reported are exact ranks and total degrees of polynomial Mixers and of "
    "attention, d matrices a product, at equal measured parameters: whether with 2 tokens of width 2 the Mixer of "
    "degree 3 in both products has the largest total degree and rank of all Mixers of twelve matrices, and in three "
    "shapes (as many tokens as the width: 2 and 4; 4 tokens of width 2) the logarithm of the best rank of a Mixer "
    f"over that of attention; within a factor of {_SAME} they are called as expressive as each other.",
    lambda: [case.cell for case in _p5_cases()],
    quote="Task 4: It also explain the mixer MLP results (Need Detailed Analysis).",
    kind="task",
)
def _p5(rows: Sequence[Row]) -> Verdict:
    pairs = [(case, case.found(row)) for case, row in zip(_p5_cases(), rows, strict=True)]
    shapes = (_SMALL, _SQUARE, _LONG)
    best = {shape: {net: _strongest(pairs, shape, net) for net in (_MIXER, ATTENTION)} for shape in shapes}
    small = best[_SMALL][_MIXER]
    three = small["net"] == "3 and 3 × 2" and all(
        f["total degree"] <= small["total degree"] for c, f in pairs if c.family == _SMALL and c.net == _MIXER
    )
    ratio = {s: math.log(best[s][_MIXER]["rank"]) / math.log(best[s][ATTENTION]["rank"]) for s in shapes}
    # A lower bound of attention's rank makes the ratio an upper bound: `≥` stands beside such a rank.
    far = [s for s in shapes if not 1 / _SAME <= ratio[s] <= _SAME]
    shown = "; ".join(
        f"{shape}: Mixer {_one(best[shape][_MIXER])}, attention {_one(best[shape][ATTENTION])}, "
        f"ratio of logarithms {ratio[shape]:.2f}"
        for shape in shapes
    )
    return Verdict(
        "not a claim",
        predicted=None,
        measured={
            shape: [{"net": c.net, "blocks": _named(c), **f} for c, f in pairs if c.family == shape] for shape in shapes
        },
        detail=f"Best ranks at equal parameters. {shown}. Degree 3 is {'' if three else 'not '}the best Mixer of 12 "
        f"matrices; as expressive as attention in {len(shapes) - len(far)} of {len(shapes)} shapes.",
    )


def _named(case: Case) -> str:
    if case.net == ATTENTION:
        return text(case.degrees)
    return f"{case.degrees[0]} and {case.shape['channel_degree']} × {len(case.degrees)}"


def _strongest(pairs: Sequence[tuple[Case, dict[str, Any]]], shape: str, net: str) -> dict[str, Any]:
    of_net = [{"net": _named(c), **f} for c, f in pairs if c.family == shape and c.net == net]
    order: Callable[[dict[str, Any]], tuple[int, bool]] = lambda found: (found["rank"], found["exact"])
    return max(of_net, key=order)


def _one(found: Mapping[str, Any]) -> str:
    return f"({found['net']}) degree {found['total degree']} rank {'' if found['exact'] else '≥ '}{found['rank']}"
