"""A survey as a whole: what it plans, what it keeps, what it makes of failures."""

from __future__ import annotations

import pytest

from theodolite.errors import BadInput
from theodolite.instruments.sensitivity.one_symbol import sensitivity
from theodolite.lab.campaign import Listener
from theodolite.lab.cell import Cell, Row
from theodolite.lab.condition import TRAINING
from theodolite.measures import measures
from theodolite.nets import nets
from theodolite.surveys.candidate import candidate, candidates
from theodolite.surveys.run import DEFAULT, survey
from theodolite.surveys.section import Section, Setting, sections

from .user_nets import write


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write(tmp_path_factory.mktemp("nets"))


@pytest.mark.parametrize("name", list(sections))
@pytest.mark.parametrize("preset", ["quick", "standard", "full"])
def test_every_section_plans_cells_that_can_be_measured(name, preset):
    section = sections[name]
    assert isinstance(section, Section)
    assert section.id == name
    chosen = [candidate(net) for net in (*DEFAULT, "self-attention")] if section.of_nets else [None]
    planned = 0
    for net in chosen:
        if net is not None and section.applies(net) is not None:
            continue
        cells = section.plan(net, preset)
        assert all(isinstance(cell, Cell) for cell in cells)
        keys = [cell.key for cell in cells if isinstance(cell, Cell)]
        assert len(set(keys)) == len(keys) or not section.of_nets
        for cell in cells:
            assert isinstance(cell, Cell)
            assert cell.measure == TRAINING or cell.measure in measures
            assert section.seconds(cell) > 0
        planned += len(cells)
    assert planned or (name, preset) == ("claims", "quick")


@pytest.mark.parametrize("name", list(sections))
def test_every_section_summarises_nothing_but_failures(name):
    """Errors of cells and of plans reach the reader: as notes, and as answers where a net is asked something."""
    section = sections[name]
    net = candidate("lstm" if name != "separation-rank" else "self-attention")
    planned = section.plan(net if section.of_nets else None, "standard")
    rows = [Row(cell, {}, error="it broke") for cell in planned if isinstance(cell, Cell)]
    summary = section.summarise(rows, Setting("quick", troubles={"mine.py:Net": "it could not be planned"}))
    assert summary.headline
    if section.of_nets:
        assert any("it broke" in note for note in summary.notes)
        assert any("it could not be planned" in note for note in summary.notes)
        assert {answer.standing for answer in summary.answers} == {"failed"}
        assert {"it broke"} <= {answer.text for answer in summary.answers}
    else:
        assert all(row["verdict"] == "not run" for row in summary.tables[0].rows)


def test_a_second_run_measures_nothing_and_answers_the_same(tmp_path):
    first = survey("sum-of-products", out=tmp_path / "out")
    again = survey("sum-of-products", out=tmp_path / "out")
    assert (first.reused, again.reused) == (0, again.asked)
    assert again.asked == first.asked > 4
    assert again.answers == first.answers
    assert [s.id for s in first.sections] == [
        "leakage",
        "sensitivity",
        "cost",
        "spectrum",
        "separation-rank",
        "symmetry",
    ]
    learning, matrix, trained = first.not_applicable
    assert learning.startswith(
        "Learnability and length generalisation: 'sum-of-products' fits none of the tasks, the last because"
    )
    assert "'sum-of-products' is a polynomial" in matrix
    assert "'sum-of-products' is a polynomial" in trained


def test_an_interrupted_survey_goes_on_where_it_was(tmp_path):
    seen: list[str] = []

    def stop(done: float, total: float, label: str) -> None:
        seen.append(label)
        if done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        survey("sum-of-products", out=tmp_path / "out", listener=Listener(watch=stop))
    again = survey("sum-of-products", out=tmp_path / "out")
    assert seen
    assert 0 < again.reused < again.asked


@pytest.mark.usefixtures("short_training")
def test_a_users_net_is_measured_beside_built_in_ones(file, tmp_path):
    found = survey(f"{file}:Square", out=tmp_path / "out")
    assert found.nets == ("nets.py:Square", "mlp")
    assert not found.failures
    exact = next(s for s in found.sections if s.id == "separation-rank")
    assert exact.summary.tables[0].rows[0]["left_right"] == 2 + 4  # 4 entries a side
    asked = {net: {a.question for a in found.answers if a.net == net} for net in found.nets}
    assert {q for q in asked["mlp"] if "depth" not in q} <= asked["nets.py:Square"]  # which has one layer
    (rows,) = [s.rows for s in found.sections if s.id == "learnability"]
    counts = {}
    for row in rows:
        counts.setdefault(row.cell.config["task"], {}).setdefault(row.cell.config["net"], row["parameters"])
    for found in counts.values():
        assert found["mlp"] == pytest.approx(found["nets.py:Square"], rel=0.5)


def test_a_size_that_no_built_in_net_has_does_not_apply():
    found = survey("transformer", params=200)
    assert not found.answers
    told = [reason for reason in found.not_applicable if "not polynomial" not in reason]
    assert all("a budget of 200 parameters is too small" in reason for reason in told)
    titles = [title for reason in told for title in reason.partition(": ")[0].split("; ")]
    assert len(titles) == len(set(titles)) == 8
    assert len(told) < 8, "the same reason is told once"


@pytest.mark.usefixtures("short_training")
def test_a_net_that_fails_an_instrument_fails_there_alone(file):
    found = survey(f"{file}:Short", alone=True)
    standing = {answer.ability: answer for answer in found.answers}
    assert standing["length generalisation on copy"].standing == "failed"
    assert "more than eight tokens" in standing["length generalisation on copy"].text
    assert standing["permutation equivariance"].standing == "no"
    assert standing["separation rank"].standing in ("yes", "no", "unknown")
    assert any("more than eight tokens" in failure for failure in found.failures)


@pytest.mark.usefixtures("short_training")
def test_a_net_that_reads_ids_is_surveyed(file):
    found = survey(f"{file}:Ids", alone=True)
    learnt = [a for a in found.answers if a.ability.startswith(("length generalisation", "recall capacity"))]
    assert len(learnt) == 5
    assert all(a.standing != "failed" for a in learnt)


@pytest.mark.usefixtures("short_training")
def test_a_net_that_does_not_name_its_tokens_is_measured_on_tokens(file):
    """A GRU takes a batch of vectors for one sequence and forgets nothing across it: the wrong input shows at once."""
    found = survey(f"{file}:Recurrent", alone=True)
    (row,) = next(section.rows for section in found.sections if section.id == "sensitivity")
    alone = sensitivity(
        f"{file}:Recurrent", tokens=8, features=4, lengths=row.cell.config["lengths"], seed=row.cell.seed
    )
    assert row["value"] is alone.value is None
    assert row["diagnostics"]["over_length"] == alone.diagnostics["over_length"]
    assert row["diagnostics"]["over_length"]["shape"] == "exponential"
    assert any("does not name them: let its constructor have an argument 'tokens'" in r for r in found.not_applicable)


def test_only_the_sections_that_are_named_are_run():
    found = survey("sum-of-products", only=["cost", "symmetry"])
    assert [section.id for section in found.sections] == ["cost", "symmetry"]
    assert found.command == "theodolite survey sum-of-products --only cost,symmetry --preset quick"
    with pytest.raises(BadInput, match=r"no section is called 'costs': did you mean 'cost'"):
        survey("sum-of-products", only=["costs"])


def test_presets_names_and_arguments_are_strict(file, tmp_path):
    with pytest.raises(BadInput, match="quick, standard, full"):
        survey("mlp", preset="fast")  # pyright: ignore[reportArgumentType]
    with pytest.raises(BadInput, match="no net is called 'conv'"):
        survey("conv")
    with pytest.raises(BadInput, match="no engine is called 'slrum'"):
        survey("sum-of-products", engine="slrum")
    with pytest.raises(BadInput, match="name one, or leave --arg out"):
        survey(args={"width": 3})
    with pytest.raises(BadInput, match=r"needs 'rooms'"):
        survey(f"{file}:Needs")
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(BadInput, match=r"holds something else \('thesis.tex'\)"):
        survey("sum-of-products", out=tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_survey_says_how_to_make_it_again():
    assert survey("sum-of-products").command == "theodolite survey sum-of-products --preset quick"
    asked = survey("sum-of-products", args={"terms": 2}, params="2k", alone=True)
    assert asked.command == "theodolite survey sum-of-products --arg terms=2 --params 2k --alone --preset quick"


def test_shapes_of_the_sweeps_can_be_built():
    for one in candidates(["self-attention", "conv-circuit", "polynomial-mixer"], DEFAULT, None, None, 8000):
        for preset in ("quick", "standard"):
            for cell in sections["separation-rank"].plan(one, preset):
                assert isinstance(cell, Cell)
                nets[one.name].build(**cell.config["shape"])
