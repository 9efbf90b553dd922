"""Sections keep their contract: registry-wide, and the separation-rank section on made-up rows."""

from __future__ import annotations

import pytest

from theodolite.errors import BadInput
from theodolite.instruments.measures import measures
from theodolite.lab.cell import Cell, Row
from theodolite.nets import nets
from theodolite.survey.run import DEFAULT, run_survey
from theodolite.survey.section import Section, sections


@pytest.mark.parametrize("name", list(sections))
def test_contract(name):
    section = sections[name]
    assert isinstance(section, Section)
    assert section.id == name
    for preset in ("quick", "standard", "full"):
        for net in DEFAULT:
            if section.applies(net) is None:
                cells = section.plan(net, preset)
                assert cells
                assert len({cell.key for cell in cells}) == len(cells)
                assert all(cell.measure in measures for cell in cells)


def test_shapes_that_are_planned_can_be_built():
    for net in DEFAULT:
        for preset in ("quick", "standard"):
            for cell in sections["separation-rank"].plan(net, preset):
                nets[net].build(**cell.config["shape"])


def test_rows_arrive_one_by_one_and_the_summary_counts_them():
    seen: list[Row] = []
    survey = run_survey(["conv-circuit"], on_row=seen.append)
    (result,) = survey.sections
    assert list(result.rows) == seen
    assert result.summary.headline.startswith(f"{len(seen)} ranks measured")
    assert "2 left-right against 256 interleaved" in result.summary.headline
    (table,) = result.summary.tables
    assert [row["interleaved"] for row in table.rows] == [4, 16, 9, 81, 256]
    (figure,) = result.summary.figures
    assert [panel.title for panel in figure.panels] == ["conv-circuit"]


def row(rank: int, partition: str, exact: bool = True, error: str | None = None) -> Row:
    cell = Cell("separation-rank", {"net": "conv-circuit", "shape": {"width": 2, "tokens": 8}, "partition": partition})
    result = {
        "net": "conv-circuit",
        "shape": {"width": 2, "tokens": 8},
        "partition": partition,
        "rank": rank,
        "exact": exact,
        "saturated": False,
        "cap": None,
        "bounds": {"lower": None, "upper": None, "reason": ""},
        "degree": 8,
    }
    return Row(cell, {} if error else result, error)


def test_a_lower_bound_is_marked_and_an_error_is_shown():
    section = sections["separation-rank"]
    summary = section.summarise([row(2, "left-right"), row(1024, "interleaved", exact=False)])
    (table,) = summary.tables
    assert table.rows[0]["interleaved"] == "≥ 1,024"
    assert table.rows[0]["status"] == "exact / ≥"
    assert "at least 1,024" in summary.headline
    broken = section.summarise([row(0, "left-right", error="it failed")])
    assert any("it failed" in note for note in broken.notes)
    assert broken.headline.startswith("0 ranks")


def test_presets_and_nets_are_strict():
    with pytest.raises(BadInput, match="quick, standard, full"):
        run_survey(["conv-circuit"], preset="fast")  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadInput, match="no net is called"):
        run_survey(["conv"])


def test_a_users_net_is_surveyed(tmp_path):
    file = tmp_path / "net.py"
    file.write_text(
        "from torch import nn\n"
        "class Square(nn.Module):\n"
        "    def __init__(self, features):\n"
        "        super().__init__()\n"
        "        self.f = nn.Linear(features, 3)\n"
        "    def forward(self, x):\n"
        "        return self.f(x) ** 2\n"
    )
    survey = run_survey([f"{file}:Square"])
    (table,) = survey.sections[0].summary.tables
    # (a + b)² with a, b linear in either side is a² + 2ab + b²: three products.
    assert table.rows[0]["left_right"] == 3
