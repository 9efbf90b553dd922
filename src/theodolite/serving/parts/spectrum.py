"""The gradient spectrum of a network at its start: of which parities does it speak?"""

from __future__ import annotations

from typing import Any

from theodolite.instruments.gradient.shown import degrees_figure
from theodolite.instruments.gradient.signal import LOSSES, Signal, signal
from theodolite.instruments.gradient.target_signal import target_signal
from theodolite.nets.load import blueprint
from theodolite.report.table import Column, Table
from theodolite.serving.figures import drawn
from theodolite.serving.parts.part import Part
from theodolite.serving.requests import Choice, Whole
from theodolite.serving.shown import Shown

_NETS = ("mlp", "convolution", "rnn", "gru", "lstm", "transformer", "linear-transformer", "state-space")
_TASKS = ("majority", "parity", "boolean")
_BEYOND = 1e6  # single precision tells no larger ratios apart
_COLUMNS = (Column("bits", "bits"), Column("signal", "signal"), Column("share", "of all power, %"))


def answer(net: str, width: int, depth: int, bits: int, loss: str) -> Shown:
    found = signal(net, bits=bits, loss=loss, **_shape(net, width, depth))
    assert found.by_degree is not None  # parities have degrees
    assert found.share_by_degree is not None
    rows = [
        {"bits": degree, "signal": value, "share": 100 * share}
        for degree, (value, share) in enumerate(zip(found.by_degree, found.share_by_degree, strict=True))
    ]
    return Shown(
        says=[_said(found)],
        facts=[
            ("parameters", f"{found.parameters:,}"),
            ("variance over all parities", f"{found.variance:.3g}"),
            ("bound of Theorem 1", f"{found.bound:.3g}"),
            ("how", f"exact over all {2**bits:,} inputs and parities, at one draw of the weights"),
        ],
        drawings=drawn(degrees_figure(found.by_degree)),
        tables=[Table("Signal of a parity by the number of its bits", _COLUMNS, rows)],
        data=found.to_json(),
    )


def task_answer(net: str, width: int, depth: int, bits: int, task: str) -> Shown:
    fields = {"bits": bits} | ({"function": "first"} if task == "boolean" else {})
    found = target_signal(net, task, fields, draws=1, **_shape(net, width, depth))
    name = {"boolean": "the first bit", "majority": "the majority", "parity": f"the parity of all {bits} bits"}[task]
    beside = "" if found.baseline is None else f"; a parity drawn at random gets {found.baseline:.2g} on average"
    return Shown(
        facts=[(f"share of the gradient that speaks of {name}", f"{found.share:.3g}{beside}")], data=found.to_json()
    )


def _shape(net: str, width: int, depth: int) -> dict[str, Any]:
    known = blueprint(net).known
    return {name: value for name, value in (("width", width), ("depth", depth), ("heads", 1)) if name in known}


def _said(found: Signal) -> str:
    assert found.by_degree is not None
    first, last = found.by_degree[1], found.by_degree[-1]
    if last <= 0:
        return f"The gradient says nothing of the parity of all {found.bits} bits."
    ratio = first / last
    if ratio < 1:
        return f"The gradient says more of the parity of all {found.bits} bits than of one bit."
    if ratio > _BEYOND:
        return f"The gradient says over a million times more of one bit than of the parity of all {found.bits}."
    return f"The gradient says {ratio:,.0f} times more of one bit than of the parity of all {found.bits}."


PART = Part(
    "spectrum",
    "Gradient spectrum",
    "Build a network and see what its first gradient says of parities, by the number of their bits: where it is near "
    "nothing, one target looks like any other.",
    (
        Choice("net", "network", _NETS),
        Whole("width", "width", 8, 2, 16),
        Whole("depth", "depth", 1, 1, 2),
        Whole("bits", "bits of the input", 8, 2, 8),
        Choice("loss", "loss", LOSSES),
        Choice("task", "task", _TASKS),
    ),
    {"": answer, "task": task_answer},
    "theodolite signal --net mlp --width 8 --depth 1 --bits 8",
)
