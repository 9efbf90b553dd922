"""Draw a partition of the tokens and see the exact separation rank of a small network."""

from __future__ import annotations

from theodolite.errors import BadInput
from theodolite.instruments.rank.result import RankResult
from theodolite.instruments.rank.separation import separation_rank
from theodolite.report.numbers import format_value
from theodolite.serving.parts.part import Part
from theodolite.serving.requests import Choice, Whole, Words
from theodolite.serving.shown import Shown

_NETS = ("self-attention", "degree-attention", "polynomial-mixer")
_MOST = 256  # points: a larger rank is known to be at least that


def answer(net: str, depth: int, width: int, tokens: int, partition: str) -> Shown:
    if not all(partition.split("|")):
        raise BadInput("a partition has tokens on both sides: move one to the empty side")
    found = separation_rank(net, "exact", partition, depth=depth, width=width, tokens=tokens, max_points=_MOST)
    return Shown(
        says=[_said(found)],
        facts=[
            ("separation rank", format_value(found.rank) if found.exact else f"at least {format_value(found.rank)}"),
            (
                "theory's cap",
                "none known" if found.cap is None else f"{format_value(found.cap)}, proven for every weight",
            ),
            ("partition", found.partition),
            ("how", _how(found)),
        ],
        notes=[] if found.exact else [f"Ranks are followed up to {_MOST} here; 'theodolite rank' goes on."],
        data=found.to_json(),
    )


def _said(found: RankResult) -> str:
    sides = f"Between the two sides {found.net} has separation rank"
    if not found.exact:
        return f"{sides} {format_value(found.rank)} or more."
    if found.saturated:
        return f"{sides} {format_value(found.rank)}, all that theory allows a network of this shape."
    return f"{sides} {format_value(found.rank)}."


def _how(found: RankResult) -> str:
    exact = "exactly, over a finite field" if found.exact else "a lower bound, over a finite field"
    return (
        f"{exact}: {len(found.primes)} primes with drawn weights, {found.points} points a side, {found.seconds:.2f} s"
    )


PART = Part(
    "partition",
    "Partition and rank",
    "The separation rank of a small polynomial network, exactly: how many products of a function of one group of "
    "tokens and one of the other its output takes, beside what theory proves it cannot exceed.",
    (
        Choice("net", "network", _NETS),
        Whole("depth", "depth", 2, 1, 3),
        Whole("width", "width", 2, 1, 4),
        Whole("tokens", "tokens", 6, 2, 8),
        Words("partition", "partition", "0,1,2|3,4,5", longest=40, hidden=True),
    ),
    {"": answer},
    "theodolite rank self-attention --depth 2 --width 2 --tokens 6 --partition '0,1,2|3,4,5'",
)
