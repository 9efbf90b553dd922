"""Published tables of trained networks: the figures, the plans, the aggregation, and what is shown of them."""

from __future__ import annotations

import io
import json
import re
import statistics
from dataclasses import replace
from typing import get_args

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from theodolite.bench.runs import runs
from theodolite.claims.reproduce import reproduce, statements, tables
from theodolite.claims.tables import chomsky, recall, recall_published, universal_transformer
from theodolite.claims.tables import chomsky_published as chomsky_paper
from theodolite.claims.tables import universal_transformer_published as universal_paper
from theodolite.claims.tables.published_score import Origin, Score, find
from theodolite.claims.tables.trained import Entry, TrainedTable, Training, falls_short, spread_lengths
from theodolite.cli.reproduce import reproduce as command
from theodolite.cli.views.reproduce import markdown, print_table
from theodolite.errors import BadInput, CellsFailed, UnknownName
from theodolite.nets.contract import nets
from theodolite.tasks.contract import make_task

SCORE = "score on unseen lengths"
SCORES = (
    Score("parity-check", "rnn", SCORE, 1.0, "checked", "A"),
    Score("parity-check", "rnn", SCORE, 0.5, "second-hand", "B", "Elman's"),
    Score("parity-check", "transformer", SCORE, 0.52, "unchecked", "A"),
)


def entries(preset: str) -> list[Entry]:
    size = {"quick": 3, "full": 5}[preset]
    shapes = {"rnn": {"width": 8}, "transformer": {"width": 8, "heads": 2, "depth": 1}, "mlp": {}}
    return [
        Entry(task, "regular", task, net, task, {"longest": size}, shape, (6, 9))
        for task in ("parity-check", "copy")
        for net, shape in shapes.items()
    ]


TINY = TrainedTable(
    title="tiny",
    source="A",
    quantities={SCORE: "unseen", "strings right": "unseen_exact"},
    bar=0.9,
    training={
        "quick": Training(steps=20, batch=16, seeds=2, rates=(1e-2, 1e-3), rows=8),
        "full": Training(steps=60, batch=16, seeds=2, rates=(1e-2,), rows=8),
    },
    entries=entries,
    published=lambda entry, quantity: find(SCORES, entry.task, entry.net, quantity),
    shorter=lambda entry, training, members: falls_short(
        [("steps", training.steps, 60), ("width", entry.shape.get("width", 9), 16), ("members", members, None)]
    ),
    sides=True,
)


@pytest.fixture(autouse=True)
def tiny_table(monkeypatch: pytest.MonkeyPatch) -> None:
    table = TINY.as_published(
        ["parity-check", "copy"], ["rnn", "transformer", "mlp"], chomsky.statements, quick=["parity-check"]
    )
    monkeypatch.setitem(tables._items, "tiny", table)


def run(*arguments: str):
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, list(arguments))


def test_the_best_the_median_and_the_solved_share_are_those_of_the_members_in_the_store(tmp_path):
    results = reproduce("tiny", nets=["rnn", "transformer"], seeds=2, out=tmp_path / "kept")
    members = runs(tmp_path / "kept").rows
    assert len(members) == 2 * 2 * 2, "two nets, two seeds, two rates"
    for result in results:
        own = [row for row in members if row.cell.config["net"] == result["net"]]
        scores = [row["unseen"] for row in own]
        score, strings = result["quantities"]
        assert score["best"] == max(scores)
        assert score["median"] == pytest.approx(statistics.median(scores))
        assert score["lowest"] == min(scores)
        assert strings["best"] == max(row["unseen_exact"] for row in own)
        assert result["solved"]["count"] == sum(s >= 0.9 for s in scores)
        assert result["solved"]["of"] == len(own) == 4
        assert result["learnt"]["count"] == sum(row["status"] == "solved" for row in own)
        assert {row.cell.config["lr"] for row in own} == {1e-2, 1e-3}
        assert {row.cell.config["schedule"]["to_the_end"] for row in own} == {True}
        assert result["seconds"] == pytest.approx(sum(row.facts["seconds"] for row in own), abs=0.01)
    json.dumps(results, allow_nan=False)


def test_every_published_score_stands_beside_its_entry():
    (result,) = reproduce("tiny", nets=["rnn"], seeds=1)
    rnn, strings = result["quantities"]
    assert [(p["value"], p["origin"], p["called"]) for p in rnn["published"]] == [
        (1.0, "checked", None),
        (0.5, "second-hand", "Elman's"),
    ]
    assert strings["published"] == []
    assert result["shorter"] == "steps 20 (60), width 8 (16)"


def test_a_net_that_does_not_fit_is_shown_with_its_reason_and_the_others_run():
    done = run("tiny", "--seeds", "1", "--nets", "rnn,mlp", "--json")
    assert done.exit_code == 0, done.output
    rnn, misfit = json.loads(done.stdout)["results"]
    assert (rnn["net"], misfit["net"]) == ("rnn", "mlp")
    assert "reads a vector" in misfit["error"]
    assert (misfit["applicable"], misfit["quantities"], misfit["solved"]) == (False, [], None)
    assert rnn["error"] is None
    assert rnn["quantities"]
    shown = Console(width=100, record=True, file=io.StringIO())
    print_table(shown, [rnn, misfit], [])
    assert "reads a vector" in " ".join(shown.export_text().split())


def test_an_entry_that_fails_in_training_is_kept_with_the_reason_and_the_command_says_so(monkeypatch):
    import theodolite.lab.work as work

    real = work.paired

    def breaks(config, locations):
        if config["net"] == "transformer":
            raise BadInput("the net broke: mend it")
        return real(config, locations)

    monkeypatch.setattr(work, "paired", breaks)
    rnn, broken = reproduce("tiny", nets=["rnn", "transformer"], seeds=1)
    assert rnn["error"] is None
    assert broken["applicable"]
    assert broken["error"] == "2 of 2 members were not trained, the first with: the net broke: mend it"
    done = run("tiny", "--seeds", "1", "--nets", "rnn,transformer", "--json")
    assert isinstance(done.exception, CellsFailed)
    assert [r["error"] is None for r in json.loads(done.stdout)["results"]] == [True, False]


def test_a_folder_keeps_finished_members_and_more_seeds_join_them(tmp_path):
    folder = tmp_path / "kept"
    few = reproduce("tiny", nets=["rnn"], seeds=1, out=folder)
    before = {row.cell.key: row.facts["finished"] for row in runs(folder).rows}
    again = reproduce("tiny", nets=["rnn"], seeds=1, out=folder)
    assert again[0]["quantities"] == few[0]["quantities"]
    more = reproduce("tiny", nets=["rnn"], seeds=2, out=folder)
    after = {row.cell.key: row.facts["finished"] for row in runs(folder).rows}
    assert more[0]["solved"]["of"] == len(after) == 4
    assert len(before) == 2
    assert {key: after[key] for key in before} == before, "finished members are not run again"


def test_the_quick_preset_runs_its_own_experiments_and_named_ones_come_in_the_order_named():
    (quick,) = reproduce("tiny", nets=["rnn"], seeds=1)
    assert (quick["experiment"], quick["settings"]["steps"]) == ("parity-check", 20)
    named = reproduce("tiny", only=["copy", "parity-check"], nets=["rnn"], seeds=1)
    assert [r["experiment"] for r in named] == ["copy", "parity-check"]
    full = reproduce("tiny", "full", nets=["rnn"], seeds=1, steps=30)
    assert [r["experiment"] for r in full] == ["parity-check", "copy"]
    assert full[0]["settings"]["steps"] == 30
    assert full[0]["task_args"]["longest"] == 5


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"table": "chomski"}, "no table is called 'chomski': did you mean 'chomsky'"),
        ({"table": "tiny", "experiments": ["parity"]}, "did you mean 'parity-check'"),
        ({"table": "tiny", "nets": ["rn"]}, "no net of the table 'tiny' is called 'rn': did you mean 'rnn'"),
        ({"table": "failures", "nets": ["rnn"]}, "the table 'failures' is not one of nets"),
        ({"table": "chomsky", "nets": ["delta-net"], "experiments": ["reverse"]}, "has no entry for delta-net"),
        ({"table": "tiny", "experiments": []}, "no experiment is named: name some of parity-check, copy"),
        ({"table": "tiny", "nets": []}, "no net is named: name some of rnn, transformer, mlp"),
        ({"table": "tiny", "engine": "moon"}, "moon"),
    ],
)
def test_bad_input_is_one_sentence(options, told):
    with pytest.raises(BadInput, match=told):
        reproduce(**options)


def test_an_unknown_table_ends_the_command_with_two():
    done = run("recal")
    assert isinstance(done.exception, UnknownName)
    assert done.exception.exit_code == 2
    assert "did you mean 'recall'" in str(done.exception)


def test_the_command_shows_published_beside_measured_with_settings_and_what_is_shorter(tmp_path):
    page = tmp_path / "table.md"
    done = run("tiny", "--nets", "rnn,transformer", "--markdown", str(page), "--seeds", "1")
    assert done.exit_code == 0, done.output
    shown = " ".join(done.stdout.split())
    for part in (
        "parity-check (regular, chance 50.0)",
        "100.0 / 50.0²",
        "52.0ᵘ",
        "20 steps of batch 16, Adam at 0.01, 0.001",
        "1 seed × 2 rates = 2 members for each net; trained on lengths 1–3, scored on 2 from 6 to 9",
        "Shorter than published: steps 20 (60), width 8 (16).",
        "Elman's beside our rnn",
    ):
        assert part in shown, part
    text = page.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| parity-check")]
    assert len(rows) == 2, "one table per quantity"
    assert re.fullmatch(r"\| parity-check \| 100\.0 / 50\.0² → [\d.]+ \(\d/2\) \| 52\.0ᵘ → [\d.]+ \(\d/2\) \|", rows[0])
    assert re.fullmatch(r"\| parity-check \| – → [\d.]+ \| – → [\d.]+ \|", rows[1]), "members are counted once"


def test_markdown_covers_the_failures_too():
    results = reproduce("failures", experiments=["remedies"], seeds=1)
    text = markdown(results)
    assert "| reformulate: elimination over GF(2), d = 30 | examples |" in text
    assert len(text.splitlines()) == 2 + sum(len(r["rows"]) for r in results)


def test_members_that_diverged_count_as_the_lowest():
    entry = entries("quick")[0]
    assert TINY._quantity(entry, SCORE, [0.7, None, None])["median"] is None
    assert TINY._quantity(entry, SCORE, [0.7, 0.6, None])["median"] == 0.6
    assert TINY._quantity(entry, SCORE, [None])["best"] is None


@pytest.mark.parametrize(
    ("best", "learnt", "published", "agrees"),
    [
        (0.95, True, 1.0, True),
        (0.95, True, 0.5, False),
        (0.5, True, 0.5, True),
        (0.5, False, 0.5, None),
        (0.5, True, 1.0, None),
    ],
)
def test_an_entry_agrees_where_it_stands_on_the_published_side_of_the_bar(best, learnt, published, agrees):
    quantity = {"best": best, "published": [{"value": published, "source": "A"}]}
    assert TINY._agrees(entries("quick")[0], quantity, learnt) is agrees


def test_the_chomsky_table_is_fifteen_tasks_by_five_nets_with_thirty_members_at_the_papers_shapes():
    full = [e for e in chomsky.entries("full") if e.net in chomsky_paper.NETS]
    assert len(full) == 15 * 5 == len({(e.task, e.net) for e in full})
    training = chomsky.TRAINING["full"]
    assert training.seeds * len(training.rates) == 30
    assert {e.task_args["longest"] for e in full} == {40}
    assert {(min(e.unseen), max(e.unseen)) for e in full} == {(41, 500)}
    assert {e.net: e.shape["width"] for e in full} == {
        **dict.fromkeys(("rnn", "stack-rnn", "tape-rnn", "lstm"), 256),
        "transformer": 64,
    }
    assert chomsky.shorter(full[0], replace(training, steps=10**6, batch=128), 30) is None
    extra = [e for e in chomsky.entries("full") if e.net not in chomsky_paper.NETS]
    assert {e.section for e in extra} == {"regular"}


@pytest.mark.parametrize(
    ("scores", "tasks", "nets"),
    [
        (chomsky_paper.SCORES, [t for names in chomsky_paper.LEVELS.values() for t in names], tables["chomsky"].nets),
        (universal_paper.SCORES, universal_paper.TASKS, universal_paper.NETS),
        (recall_published.SCORES, recall_published.TASKS, recall.NETS),
    ],
)
def test_published_scores_are_shares_of_tasks_and_nets_of_their_table(scores, tasks, nets):
    assert scores
    for score in scores:
        assert 0 <= score.value <= 1
        assert score.task in tasks
        assert score.net in nets
        assert score.origin in get_args(Origin)
    keys = [(s.task, s.net, s.quantity, s.source) for s in scores]
    assert len(keys) == len(set(keys)), "one figure per source"
    assert {s.task for s in scores} == set(tasks)


def test_rows_that_were_not_checked_are_marked():
    origin = {(s.task, s.net): s.origin for s in chomsky_paper.SCORES if s.source == chomsky_paper.SOURCE}
    assert origin["reverse", "tape-rnn"] == "checked"
    assert origin["bucket-sort", "lstm"] == "unchecked"
    assert find(chomsky_paper.SCORES, "duplicate", "lstm", chomsky_paper.SCORE)[0].value == pytest.approx(0.576)


def test_over_widths_and_pairs_no_score_is_shown_and_over_tasks_it_is():
    grid = next(e for e in recall.entries("full") if e.experiment == recall.GRID and e.net == "delta-net")
    task = next(e for e in recall.entries("full") if e.experiment == "recall" and e.net == "delta-net")
    assert recall.published(grid, recall_published.ACCURACY) == ()
    assert recall.published(task, recall_published.ACCURACY)[0].value == 1.0


def grid_result(net: str, pairs: int, width: int, best: float) -> dict:
    return {
        "experiment": recall.GRID,
        "net": net,
        "error": None,
        "task_args": {"longest": pairs},
        "settings": {"shape": {"width": width}},
        "quantities": [{"best": best}],
    }


@pytest.mark.parametrize(
    ("net", "reached", "verdict"),
    [
        ("transformer", {(4, 16): 1.0, (4, 32): 1.0, (64, 16): 1.0, (64, 32): 1.0}, "holds"),
        ("transformer", {(4, 16): 1.0, (4, 32): 1.0, (16, 16): 1.0, (16, 32): 1.0}, "open"),  # it speaks of 64
        ("delta-net", {(2, 16): 1.0, (4, 16): 1.0}, "open"),
        ("delta-net", {(2, 16): 1.0, (64, 16): 1.0}, "holds"),
        ("transformer", {(4, 16): 0.5, (4, 32): 1.0, (16, 16): 0.5, (16, 32): 1.0}, "open"),
        ("lstm", {(4, 16): 1.0, (4, 32): 1.0, (16, 16): 0.5, (16, 32): 1.0}, "holds"),
        ("lstm", {(4, 16): 1.0, (4, 32): 1.0, (16, 16): 0.5, (16, 32): 0.5}, "holds"),
        ("lstm", {(4, 16): 0.5, (4, 32): 1.0, (16, 16): 0.5, (16, 32): 1.0}, "fails"),
        ("lstm", {(4, 16): 1.0, (4, 32): 1.0, (16, 16): 1.0, (16, 32): 1.0}, "open"),
        ("lstm", {(4, 16): 0.5, (4, 32): 1.0, (16, 16): 1.0, (16, 32): 1.0}, "open"),
        ("lstm", dict.fromkeys([(4, 16), (4, 32), (16, 16), (16, 32)], 0.5), "open"),
        ("lstm", {(2, 16): 1.0, (4, 16): 1.0, (4, 32): 1.0, (16, 32): 1.0}, "open"),  # 16 may need no more than 16
    ],
)
def test_the_sentence_on_width_and_pairs_is_decided_by_its_rule(net, reached, verdict):
    results = [grid_result(net, pairs, width, best) for (pairs, width), best in reached.items()]
    (said,) = statements("recall", results)
    assert (said["verdict"], said["statement"].split(":")[0]) == (verdict, net)


@pytest.mark.parametrize(
    ("entries", "verdict"),
    [
        ([(1.0, 30, 30), (0.5, 0, 30)], "holds"),
        ([(1.0, 30, 30)], "open"),  # that a network is right somewhere says nothing of where it is not
        ([(0.5, 0, 30)], "open"),
        ([(1.0, 30, 30), (0.5, 30, 30)], "fails"),
        ([(1.0, 30, 30), (0.5, 0, 1)], "open"),
    ],
)
def test_the_hierarchy_is_told_by_successes_and_failures_alike(entries, verdict):
    """Entries: the published score, members that reach the bar, members that learn the lengths of training, of 30."""
    results = [
        {
            **{"net": "rnn", "task": f"task {place}", "solved": {"count": reached, "of": 30}},
            "learnt": {"count": learnt},
            "quantities": [{"published": [{"source": chomsky_paper.SOURCE, "value": value}]}],
        }
        for place, (value, reached, learnt) in enumerate(entries)
    ]
    (said,) = chomsky.statements(results)
    assert said["verdict"] == verdict


def test_nothing_is_said_of_one_number_of_pairs():
    assert statements("recall", [grid_result("lstm", pairs, width, 1.0) for pairs, width in ((4, 16), (8, 32))]) == []


@pytest.mark.parametrize(
    ("own", "learnt", "verdict"),
    [(0.8, 1, "holds"), (0.8, 0, "holds"), (0.52, 1, "open"), (0.4, 1, "fails"), (0.4, 0, "open")],
)
def test_the_order_of_universal_transformers_is_decided_by_its_margin_and_by_what_was_learnt(own, learnt, verdict):
    results = [
        {"task": "copy", "net": net, "quantities": [{"best": best}], "learnt": {"count": count}}
        for net, best, count in (("lstm", 0.3, 1), ("transformer", 0.5, 1), ("universal-transformer", own, learnt))
    ]
    (said,) = statements("universal-transformer", results)
    assert said["verdict"] == verdict


def test_a_rule_that_decides_several_sentences_is_shown_once_below_them():
    said = [
        {"statement": text, "source": "A", "rule": rule, "verdict": "open", "detail": "1 against 2"}
        for text, rule in (("first", "twice"), ("second", "twice"), ("third", "once"))
    ]
    shown = Console(width=100, record=True, file=io.StringIO())
    (result,) = reproduce("tiny", nets=["rnn"], seeds=1)
    print_table(shown, [result], said)
    order = re.findall(r"“(\w+)”|rule: (\w+)", shown.export_text())
    assert ["".join(pair) for pair in order] == ["first", "second", "twice", "third", "once"]


def test_every_block_of_a_table_says_whether_it_agrees_where_one_does():
    (result,) = reproduce("tiny", nets=["rnn"], seeds=1)
    shown = Console(width=100, record=True, file=io.StringIO())
    print_table(shown, [{**result, "agrees": True}, {**result, "row": "another", "agrees": None}], [])
    text = shown.export_text()
    assert re.findall(r"learnt +(\w+)", text)[:2] == ["agrees", "agrees"]
    assert "open" in text.split("another")[1]


@pytest.mark.parametrize("preset", ["quick", "full"])
@pytest.mark.parametrize("table", [chomsky, universal_transformer, recall])
def test_every_entry_names_a_task_and_a_net_with_arguments_they_have(table, preset):
    found = table.entries(preset)
    assert found
    for entry in found:
        spec = make_task(entry.task, entry.task_args).spec
        assert spec.lengths is not None
        assert all(n > spec.lengths[1] for n in entry.unseen)
        assert set(entry.shape) <= set(nets[entry.net].arguments), entry.net


def test_the_quick_hierarchy_has_one_task_of_each_level():
    levels = [level for task in tables["chomsky"].quick for level, own in chomsky_paper.LEVELS.items() if task in own]
    assert levels == list(chomsky_paper.LEVELS)


def test_lengths_are_spread_from_end_to_end():
    assert spread_lengths(41, 500, 4) == (41, 194, 347, 500)
    assert spread_lengths(3, 4, 9) == (3, 4)
    assert falls_short([("steps", 5, 5), ("batch", 9, None)]) is None
    assert len(universal_transformer.entries("full")) == 12, "four columns, one of them of our own"


def test_one_net_may_have_two_columns_and_each_says_how_many_steps_its_tokens_take(monkeypatch):
    both = {"universal-transformer": {}, "tied": {"halting": False}}
    shape = {"width": 8, "heads": 2, "depth": 3}
    table = replace(
        TINY,
        entries=lambda preset: [
            Entry("copy", "", "copy", "universal-transformer", "copy", {"longest": 3}, {**shape, **own}, (6,), column)
            for column, own in both.items()
        ],
    )
    monkeypatch.setitem(tables._items, "tiny", table.as_published(["copy"], list(both), lambda results: []))
    asking, tied = reproduce("tiny", only=["copy"], seeds=1)
    assert [r["net"] for r in (asking, tied)] == list(both)
    assert {r["settings"]["architecture"] for r in (asking, tied)} == {"universal-transformer"}
    assert tied["mean_steps"] == {"mean": 3, "min": 3, "max": 3}
    assert 1 <= asking["mean_steps"]["mean"] <= 3
    assert "Steps a token takes" in markdown([asking, tied])
    (alone,) = reproduce("tiny", only=["copy"], seeds=1, nets=["tied"])
    assert alone["quantities"] == tied["quantities"]


def test_the_curve_over_lengths_is_that_of_the_best_member_and_of_the_median(tmp_path):
    (result,) = reproduce("tiny", nets=["rnn"], seeds=2, out=tmp_path / "kept")
    members, curve = runs(tmp_path / "kept").rows, result["lengths"]
    best = max(members, key=lambda row: row["unseen"])
    assert (curve["trained"], curve["length"]) == ([1, 3], [1, 2, 3, 6, 9])
    assert curve["best"] == [score for _, score in best["by_length"]]
    for place, length in enumerate(curve["length"]):
        assert curve["median"][place] == statistics.median(dict(row["by_length"])[length] for row in members)


def test_a_preset_that_grows_looks_at_the_same_steps_however_long_it_is():
    longer = replace(chomsky.TRAINING["full"], steps=20_000)
    schedules = [training.schedule((41,)) for training in (chomsky.TRAINING["full"], longer)]
    assert all(s.grows and s.to_the_end for s in schedules)
    assert len({replace(s, steps=0) for s in schedules}) == 1
    assert not replace(longer, steps=777).schedule(()).grows, "that would not end with a look"


def test_with_a_folder_the_table_is_a_page_of_pictures_too(tmp_path):
    done = run("tiny", "--seeds", "1", "--nets", "rnn,mlp", "--out", str(tmp_path / "kept"), "--json")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "kept" / "report.html").read_text(encoding="utf-8")
    for title in ("Score on unseen lengths, published and ours", "Who learns it, and when", "Scores by length"):
        assert title in page
    assert "theodolite reproduce tiny --nets rnn,mlp --preset quick --seeds 1" in page


def test_the_precision_is_the_presets_or_the_one_asked_for():
    with pytest.raises(BadInput, match="tf32 is a mode of CUDA devices and this runs on cpu: use float32"):
        reproduce("chomsky", "full", ["parity-check"], seeds=1, nets=["rnn"], steps=250)
    (found,) = reproduce("tiny", "full", ["parity-check"], nets=["rnn"], seeds=1, steps=10, precision="bf16")
    assert found["settings"]["precision"] == "bf16"
    with pytest.raises(BadInput, match="leave out --precision"):
        reproduce("failures", precision="bf16")


def test_what_is_kept_is_shown_without_training(tmp_path):
    folder = tmp_path / "kept"
    with pytest.raises(BadInput, match="name it with --out"):
        reproduce("tiny", out=folder, kept=True)
    (trained_now,) = reproduce("tiny", nets=["rnn"], seeds=1, out=folder)
    rnn, other = reproduce("tiny", nets=["rnn", "transformer"], seeds=1, out=folder, kept=True)
    assert rnn == trained_now
    assert "members were not trained" in other["error"]
    done = run("tiny", "--nets", "rnn,transformer", "--seeds", "1", "--out", str(folder), "--kept", "--json")
    assert done.exit_code == 0


def test_what_is_published_stands_in_the_table_of_an_entry_that_was_not_trained(tmp_path):
    reproduce("tiny", nets=["rnn"], seeds=1, out=tmp_path / "kept")
    results = reproduce("tiny", nets=["rnn", "transformer"], seeds=1, out=tmp_path / "kept", kept=True)
    told = io.StringIO()
    print_table(Console(file=told, width=120), results, ())
    assert re.search(r"transformer +52\.0\S* +– +– +not measured", told.getvalue())
    assert re.search(r"52\.0\S* → not measured", markdown(results))
