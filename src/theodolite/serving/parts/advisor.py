"""The advisor: which depth, width and heads fit a budget of parameters."""

from __future__ import annotations

from theodolite.advice.advice import advise
from theodolite.advice.plane.drawing import draw_plane
from theodolite.advice.result import Advice, short
from theodolite.report.table import Column, Table
from theodolite.serving.parts.part import Part
from theodolite.serving.requests import Choice, Number, Whole
from theodolite.serving.shown import Drawing, Shown

_COLUMNS = (
    Column("name", "shape", numeric=False),
    Column("depth", "depth"),
    Column("width", "width"),
    Column("heads", "heads"),
    Column("ratio", "width / depth"),
    Column("params", "parameters", numeric=False),
)


def answer(params: float, vocab: int, modality: str, tp: int, multiple_of: int) -> Shown:
    advice = advise(
        params=round(params),
        vocab=vocab if modality == "language" else None,
        modality=modality,
        tp=tp,
        multiple_of=multiple_of,
        progress=lambda done, total, label: None,  # not a line in the notebook that serves the page
    )
    assert advice.advised is not None  # a budget is always advised, or refused
    assert advice.regime is not None
    shape = advice.advised.shape
    others = [one.shape for one in advice.alternatives if one.shape != shape]
    rows = [("advised", shape), *(("also possible", one) for one in others)]
    return Shown(
        says=[advice.headline],
        facts=[
            ("width of the perceptron", f"{shape.mlp_width:,}"),
            ("depth against log₃ width", f"{shape.depth} against {advice.regime.log3_width:.1f}: {_theorem(advice)}"),
            ("models in use at this size", _usage(advice)),
        ],
        drawings=[_plane(advice)],
        tables=[
            Table(
                "Shapes of this size",
                _COLUMNS,
                [
                    {
                        "name": name,
                        "depth": one.depth,
                        "width": one.width,
                        "heads": one.heads,
                        "ratio": round(one.width / one.depth, 1),
                        "params": short(one.params),
                    }
                    for name, one in rows
                ],
            )
        ],
        notes=advice.warnings,
        data=advice.to_json(),
    )


def _theorem(advice: Advice) -> str:
    assert advice.regime is not None
    return f"Theorem {advice.regime.theorem}" if advice.regime.theorem[0].isdigit() else advice.regime.theorem


def _usage(advice: Advice) -> str:
    if advice.usage is None:
        return "too few are public"
    return f"width / depth from {advice.usage.low:.0f} to {advice.usage.high:.0f}, the median {advice.usage.median:.0f}"


def _plane(advice: Advice) -> Drawing:
    return Drawing(draw_plane(advice), advice.headline, alone=True, narrow=draw_plane(advice, narrow=True))


PART = Part(
    "advisor",
    "Advisor",
    "Which depth, width and heads fit a budget of parameters, and where public models stand.",
    (
        Number("params", "parameters", 1.3e9, 1e6, 1e13, logarithmic=True),
        Whole("vocab", "vocabulary", 50_257, 256, 300_000),
        Choice("modality", "modality", ("language", "bytes", "image")),
        Whole("tp", "devices that share a layer", 1, 1, 16),
        Whole("multiple_of", "sizes are multiples of", 1, 1, 256),
    ),
    {"": answer},
    "theodolite advise --params 1.3e9 --vocab 50257",
)
