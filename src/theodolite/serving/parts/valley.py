"""The depth–width valley: what `scale` has kept below the folder, and what our own trainings showed."""

from __future__ import annotations

from theodolite.advice.trained import trained
from theodolite.errors import TheodoliteError
from theodolite.lab.store.trained import Trained
from theodolite.report.table import Column, Table
from theodolite.scaling.kept import kept_valleys
from theodolite.scaling.shown import said, valley_figure
from theodolite.scaling.valley import Valley
from theodolite.serving.figures import drawn
from theodolite.serving.folder import Folder
from theodolite.serving.parts.part import Part
from theodolite.serving.shown import Shown
from theodolite.serving.stores import Stores

_LOOKED_AT = 8  # stores, the newest
_COLUMNS = (
    Column("size", "parameters in the blocks"),
    Column("symbols", "read as", numeric=False),
    Column("best", "best depth"),
    Column("interval", "95 % interval", numeric=False),
    Column("flat", "depths within 1 % of its loss", numeric=False),
    Column("deepest", "deepest trained", numeric=False),
)


def part(folder: Folder, stores: Stores) -> Part:
    def answer() -> Shown:
        places, _ = folder.places()
        found: dict[str, list[Valley]] = {}
        for place in [place for place in places if place.store][:_LOOKED_AT]:
            try:
                valleys = stores.read(place.path, _valleys)
            except TheodoliteError:  # a store that cannot be read says so among the runs
                continue
            if valleys:
                found[place.path] = valleys
        return _shown(found)

    return Part(
        "valley",
        "Depth–width valley",
        "Networks of equal size and different depth, trained on the same text: which depth learns best, and how much "
        "it matters.",
        (),
        {"": answer},
        "theodolite scale TEXT --out scale",
        changes=True,
    )


def _valleys(store: Trained) -> list[Valley]:
    texts = [one for one in store.conditions if one.config["task"] == "text"]
    return kept_valleys(row for _, row in store.rows(texts))


def _shown(found: dict[str, list[Valley]]) -> Shown:
    if not found:
        return Shown(
            ["Nothing that 'theodolite scale' has trained is below this folder, so there is no valley to draw."],
            tables=[_archived()],
        )
    return Shown(
        says=[f"Best depth in '{path}': {_best(valleys)}." for path, valleys in found.items()],
        facts=[(f"{path}, {v.size:,} parameters", said(v)) for path, valleys in found.items() for v in valleys],
        drawings=[drawing for valleys in found.values() for drawing in drawn(valley_figure(valleys))],
        tables=[_archived()],
        data={path: [v.to_json() for v in valleys] for path, valleys in found.items()},
    )


def _best(valleys: list[Valley]) -> str:
    return ", ".join(f"{v.best} at {v.size:,} parameters" for v in valleys)


def _archived() -> Table:
    """The study that comes with the package: its verdicts, without its curves."""
    study = trained()
    rows = [
        {
            "size": one.size,
            "symbols": one.symbols,
            "best": one.best,
            "interval": f"{one.interval[0]} to {one.interval[1]}",
            "flat": ", ".join(map(str, one.flat)),
            "deepest": f"{one.deepest}, {100 * one.deepest_worse:.0f} % more loss",
        }
        for one in study.sizes
    ]
    few, many = (edge(one.tokens for one in study.sizes) for edge in (min, max))
    caption = f"Decoders on {study.text}, {few:,} to {many:,} tokens each; kept with the package."
    return Table("What our own trainings showed", _COLUMNS, rows, caption)
