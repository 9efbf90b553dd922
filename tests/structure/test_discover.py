"""From a table or a black box to a graph, end to end; test rows only measure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph, Node
from theodolite.graphs.equivalence import equivalent
from theodolite.measurement import finite
from theodolite.structure.data.tables import LEAST_ROWS
from theodolite.structure.discover import discover
from theodolite.structure.result import Discovery

ROWS = 240
NAMES = ("a", "b", "c", "d", "e")
TRUE = CompositionalGraph(NAMES, (Node("h1", ("a", "b")), Node("h2", ("c", "d")), Node("y", ("h1", "h2"), "sum")))


def composed(x: np.ndarray) -> np.ndarray:
    """Two interacting pairs, added; the fifth variable means nothing."""
    return np.sin(2 * x[:, 0] * x[:, 1]) + np.exp(x[:, 2] * x[:, 3])


def points(seed: int = 0, rows: int = ROWS) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (rows, 5))


def found_in(y: np.ndarray, **options: Any) -> Discovery:
    return discover((points(), y), variables=NAMES, effort="quick", boosting=False, **options)


@pytest.fixture(scope="module")
def found() -> Discovery:
    return discover((points(), composed(points())), variables=NAMES, effort="quick")


def test_a_table_shows_its_graph_and_the_network_of_it_beats_others(found: Discovery) -> None:
    assert not found.abstained
    assert equivalent(found.graph, TRUE)
    assert found.graph.variables == NAMES
    assert found.test_error is not None
    assert found.dense_test_error is not None
    assert found.boosting_test_error is not None
    assert found.test_error < found.dense_test_error
    assert found.test_error < found.boosting_test_error
    assert set(found.confidence) == set(found.graph.edges)
    assert all(0 <= sure <= 1 for sure in found.confidence.values())
    assert {max(found.pairs, key=found.pairs.__getitem__)} <= {("a", "b"), ("c", "d")}


def test_errors_are_those_of_the_returned_network_on_the_rows_held_out(found: Discovery) -> None:
    x, y = points(), composed(points())
    held = np.random.default_rng(0).permutation(ROWS)[: ROWS // 5]
    assert found.returned is not None
    expected = np.mean((found.returned.predict(x[held]) - y[held]) ** 2) / np.var(y[held])
    assert found.test_error == pytest.approx(expected, rel=1e-6)
    np.testing.assert_array_equal(found.predict(x[held]).value, found.returned.predict(x[held]))
    low, high = found.details["error_intervals"]["returned"]
    assert low < expected < high
    assert found.details["rows"] == {"train": ROWS * 4 // 5, "test": ROWS // 5}
    assert json.loads(json.dumps(finite(found.to_json())))["abstained"] is False


def test_nothing_is_chosen_by_the_test_rows(found: Discovery) -> None:
    """With other targets in those rows the same graph and the same network come out."""
    y = composed(points())
    held = np.random.default_rng(0).permutation(ROWS)[: ROWS // 5]
    y[held] = np.random.default_rng(5).normal(size=len(held))
    other = found_in(y)
    assert found.model is not None
    assert other.model is not None
    assert other.graph == found.graph
    np.testing.assert_array_equal(other.model.predict(points(9)), found.model.predict(points(9)))
    assert other.test_error != found.test_error
    assert other.boosting_test_error is None


def test_a_target_that_is_noise_leads_to_abstention() -> None:
    """Of a table with more rows than are asked for some are drawn, and a note says so."""
    told = found_in(np.random.default_rng(3).normal(size=ROWS), rows=100)
    assert told.details["rows"] == {"train": 80, "test": 20}
    assert "100 of 240 rows were drawn" in " ".join(told.details["notes"])
    assert told.abstained
    assert told.graph.is_dense
    assert told.reason
    assert told.model is not None
    assert told.test_error is not None
    assert 0.7 < told.test_error < 1.3, "no better than the target's mean, and not much worse"
    assert told.confidence == {}


def test_a_black_box_shows_its_graph_without_any_network() -> None:
    told = discover(composed, ranges=(-1, 1), variables=NAMES, fit=False)
    assert equivalent(told.graph, TRUE)
    assert told.target == told.graph.output.name == "composed"
    assert (told.model, told.test_error, told.abstained, told.mode) == (None, None, False, "black box")
    assert told.details["evaluations"] > 0


def test_networks_are_fitted_to_points_of_a_black_box(tmp_path: Path) -> None:
    (tmp_path / "box.py").write_text(
        "import numpy as np\n\n\ndef f(x):\n    return x[:, 0] * np.exp(x[:, 1]) + x[:, 2]\n"
    )
    told = discover(
        f"{tmp_path / 'box.py'}:f",
        ranges={"u": (0, 1), "v": (-1, 1), "w": (0, 2)},
        rows=120,
        effort="quick",
        boosting=False,
    )
    assert told.graph.variables == ("u", "v", "w")
    assert told.details["rows"] == {"train": 96, "test": 24}
    assert told.test_error is not None
    assert told.test_error < 1e-3
    assert told.model is not None
    draw = np.random.default_rng(1).uniform([0, -1, 0], [1, 1, 2], (50, 3))
    truth = draw[:, 0] * np.exp(draw[:, 1]) + draw[:, 2]
    assert np.mean((told.model.predict(draw) - truth) ** 2) < 1e-2 * np.var(truth)


def test_what_cannot_be_asked_is_refused_in_one_sentence(tmp_path: Path) -> None:
    table = (points(), composed(points()))
    (tmp_path / "box.py").write_text("three = 3\n")
    rare = composed(points()) * 0
    rare[np.random.default_rng(0).permutation(ROWS)[-1]] = 1.0
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (table, {"ranges": (0, 1)}, "goes with a black box"),
        (table, {"fit": False}, "goes with a black box"),
        (table, {"rows": 10}, f"at least {LEAST_ROWS}"),
        ((points(), rare), {}, "is 0 in all 48 test rows"),
        (composed, {}, "needs the ranges"),
        (composed, {"ranges": (0, 1)}, "how many there are"),
        (composed, {"ranges": (0, 1), "variables": 0}, "0 variables are none"),
        (composed, {"ranges": (1, 0), "variables": 5}, "range of 'x1' is 1 to 0"),
        (composed, {"ranges": (0, 1), "variables": 5, "drop": ["a"]}, "no columns to drop"),
        (lambda x: x[:, 0] * 0 + 2, {"ranges": (0, 1), "variables": 2}, "nothing to explain|constant"),
        (f"{tmp_path / 'box.py'}:three", {"ranges": (0, 1), "variables": 2}, "of type int"),
        (f"{tmp_path / 'box.py'}:four", {"ranges": (0, 1), "variables": 2}, "no class or function is called 'four'"),
        (str(tmp_path / "none.py") + ":f", {"ranges": (0, 1), "variables": 2}, "there is no file"),
    ]
    for data, options, told in cases:
        with pytest.raises(BadInput, match=told) as raised:
            discover(data, effort="quick", **options)
        assert "\n" not in str(raised.value)


def test_a_search_that_runs_out_of_time_abstains_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    import theodolite.structure.discover as module
    from theodolite.structure.data.source import Hurried

    late = lambda source, until: Hurried(source, 0.0)  # long ago
    monkeypatch.setattr(module, "Hurried", late)
    found = discover(lambda points: points[:, 0] * points[:, 1], ranges=(-1, 1), variables=3, fit=False, seconds=5)
    assert found.abstained
    assert found.graph.is_dense
    assert any("time for the search was over" in note for note in found.details["notes"])
