"""Comparisons against the same numbers by scipy and by hand; what cannot be paired is refused or counted."""

from __future__ import annotations

import json
import random
from itertools import product

import pytest
from scipy import stats

from theodolite.bench.compare import compare
from theodolite.errors import BadInput, StoreError
from theodolite.statistics.intervals import paired_shares

from .members import member, stored

RATES = (1e-3, 3e-4)


def both(first: dict, second: dict, **common) -> list:
    """One member of each side over the same seeds and rates, with scores of their own."""
    draws = random.Random(5)
    rows = []
    for seed, lr in product(range(6), RATES):
        for side, best in ((first, 0.8), (second, 0.9)):
            settings = {"seed": seed, "lr": lr, **common, **side}
            scores = {"accuracy": best * draws.random(), "unseen": draws.random()}
            solved = {"solved_at": draws.randrange(100, 900)} if draws.random() < 0.5 else {}
            rows.append(member(**{**scores, **solved, **settings}))
    random.Random(6).shuffle(rows)
    return rows


def side(rows: list, **config) -> dict:
    """A side's rows by what pairs them."""
    chosen = [row for row in rows if all(row.cell.config[name] == value for name, value in config.items())]
    return {(row.cell.config["seed"], row.cell.config["lr"]): row for row in chosen}


@pytest.mark.parametrize(("metric", "entry"), [("accuracy", "accuracy"), ("unseen", "unseen"), ("steps", "solved_at")])
def test_a_comparison_is_students_and_the_sign_test_over_the_pairs(tmp_path, metric, entry):
    rows = both({"net": "lstm"}, {"net": "mlp"})
    (found,) = compare("lstm", "mlp", stored(tmp_path, rows), metric=metric).tasks
    one, other = side(rows, net="lstm"), side(rows, net="mlp")
    keys = [k for k in one if one[k][entry] is not None and other[k][entry] is not None]
    a, b = [one[k][entry] for k in keys], [other[k][entry] for k in keys]
    expected = stats.ttest_rel(b, a)
    assert (found.pairs, found.compared) == (12, len(keys))
    assert 2 <= len(keys) <= 12
    assert found.means == pytest.approx((sum(a) / len(a), sum(b) / len(b)))
    assert found.difference == pytest.approx(found.means[1] - found.means[0])
    assert found.interval == pytest.approx(tuple(expected.confidence_interval(0.95)))
    better = sum(y < x if metric == "steps" else y > x for x, y in zip(a, b, strict=True))
    assert (found.wins, found.ties, found.losses) == (better, 0, len(keys) - better)
    assert found.p == pytest.approx(stats.binomtest(better, len(keys)).pvalue)


def test_solved_shares_are_over_all_pairs_by_newcombe(tmp_path):
    rows = both({"net": "lstm"}, {"net": "mlp"})
    (found,) = compare("lstm", "mlp", stored(tmp_path, rows)).tasks
    one, other = side(rows, net="lstm"), side(rows, net="mlp")
    table = [0, 0, 0, 0]  # both, only the first, only the second, neither
    for key in one:
        table[2 * (one[key]["status"] != "solved") + (other[key]["status"] != "solved")] += 1
    assert found.solved == (table[0] + table[1], table[0] + table[2])
    assert (found.solved_difference, found.solved_interval) == paired_shares(*table)


def test_swapping_the_sides_turns_the_signs(tmp_path):
    folder = stored(tmp_path, both({"net": "lstm"}, {"net": "mlp"}))
    (there,), (back,) = compare("lstm", "mlp", folder).tasks, compare("mlp", "lstm", folder).tasks
    assert back.difference == pytest.approx(-there.difference)
    assert back.interval == pytest.approx((-there.interval[1], -there.interval[0]))
    assert (back.wins, back.losses, back.means) == (there.losses, there.wins, there.means[::-1])


@pytest.mark.parametrize(
    ("first", "second", "one", "other"),
    [
        ("lr=0.001", "lr=0.0003", {"lr": 1e-3}, {"lr": 3e-4}),
        ("net=lstm,width=16", "net=lstm,width=64", {"shape": {"width": 16}}, {"shape": {"width": 64}}),
        ("width=16", "lstm,shape.width=64", {"shape": {"width": 16}}, {"shape": {"width": 64}}),
        ("optimiser=adamw", "optimiser=sgd", {}, {"optimiser": {"name": "sgd"}}),
        ("steps=2000", "steps=4000", {}, {"schedule": {"steps": 4000, "every": 80}}),
        (
            "longest=40",
            "longest=20",
            {},
            {"task_args": {"shortest": 1, "longest": 20}, "schedule": {"unseen": [25, 100]}},
        ),
        ("source=aaaa", "source=bb", {"source": "aaaa1"}, {"source": "bbbb2"}),
    ],
    ids=str,
)
def test_what_the_selectors_name_may_differ_in_a_pair(tmp_path, first, second, one, other):
    rows = both(one, other) if "lr" not in one else [member(seed=s, **x) for s in range(5) for x in (one, other)]
    found = compare(first, second, stored(tmp_path, rows))
    assert sum(task.pairs for task in found.tasks) == len(rows) // 2
    assert found.unpaired == (0, 0)


def test_a_verdict_is_what_the_interval_says(tmp_path):
    def verdict(name: str, gains: list[float]) -> str:
        rows = [
            member(net, seed=i, accuracy=0.5 + (gain if net == "mlp" else 0.0))
            for i, gain in enumerate(gains)
            for net in ("lstm", "mlp")
        ]
        (found,) = compare("lstm", "mlp", stored(tmp_path / name, rows)).tasks
        return found.verdict

    assert verdict("clear", [0.1, 0.12, 0.11, 0.09]) == "second"
    assert verdict("worse", [-0.1, -0.12, -0.11, -0.09]) == "first"
    assert verdict("mixed", [0.3, -0.2, 0.1, -0.1]) == "undecided"
    assert verdict("alone", [0.3]) == "too few pairs"
    assert verdict("same", [0.0] * 4) == "undecided"
    # Equal differences have an interval without width: two of them show nothing, ten do.
    assert verdict("twice", [0.1] * 2) == "undecided"
    assert verdict("often", [0.1] * 10) == "second"


def test_diverged_members_are_left_out_of_the_mean_and_count_as_unsolved(tmp_path):
    rows = [member(net, seed=seed, accuracy=0.9, solved_at=100) for seed in range(3) for net in ("lstm", "mlp")]
    rows += [member("lstm", seed=3, accuracy=0.9, solved_at=100), member("mlp", seed=3, accuracy=None)]
    (found,) = compare("lstm", "mlp", stored(tmp_path, rows)).tasks
    assert (found.pairs, found.compared, found.difference) == (4, 3, 0.0)
    assert found.solved == (4, 3)
    assert found.solved_difference == -0.25


def test_pairs_without_a_single_value_are_no_division_by_zero(tmp_path):
    rows = [member(net, seed=seed, accuracy=None) for seed in range(2) for net in ("lstm", "mlp")]
    (found,) = compare("lstm", "mlp", stored(tmp_path, rows)).tasks
    assert (found.compared, found.means, found.difference, found.verdict) == (0, None, None, "too few pairs")
    assert found.p == 1.0


def test_members_without_a_partner_are_counted_and_tasks_stand_apart(tmp_path):
    rows = both({"net": "lstm"}, {"net": "mlp"}) + both({"net": "lstm"}, {"net": "mlp"}, task="reverse")
    rows += [member("lstm", seed=77), member("mlp", "copy"), member("mlp", seed=78, task="reverse")]
    found = compare("lstm", "mlp", stored(tmp_path, rows))
    assert {t.task: (t.pairs, t.unpaired) for t in found.tasks} == {
        "parity-check": (12, (1, 0)),
        "reverse": (12, (0, 1)),
    }
    assert found.unpaired == (1, 2)
    only = compare("lstm", "mlp", tmp_path, task="reverse")
    assert [t.task for t in only.tasks] == ["reverse"]
    json.dumps(only.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ("lsmt", "mlp", r"no net of these runs is called 'lsmt': did you mean 'lstm'"),
        ("lstm,mlp", "rnn", "names two nets"),
        ("lstm,=3", "mlp", "is not KEY=VALUE"),
        ("lstm,widht=3", "mlp", r"did you mean 'width'\?"),
        ("lstm,width=17", "mlp", "no member is chosen by 'lstm,width=17'"),
        ("lstm", "lstm", "share 5 members: name what differs"),
        ("mlp", "lstm", "'lstm' has two members for one pair, which differ in shape.width .*add shape.width=16 or"),
        ("mlp", "width=16", "'width=16' has two members for one pair, which differ in net .*add net="),
        ("mlp", "cnn", "have no pair of members: they differ in task .parity-check against copy."),
        ("mlp", "rnn", "have no pair of members: they differ in seed .0, 1 against 8."),
    ],
)
def test_what_cannot_be_paired_is_refused_in_a_sentence(tmp_path, first, second, told):
    rows = [member("lstm", seed=s, shape={"width": w}) for s in (0, 1) for w in (16, 64)]
    rows += [member("lstm", seed=6, shape={"width": 16})]
    rows += [member(net, seed=s, shape={"width": w}) for net, w in (("gru", 16), ("mlp", 8)) for s in (0, 1)]
    rows += [member("cnn", "copy", shape={"width": 4}), member("rnn", seed=8, shape={"width": 4})]
    with pytest.raises(BadInput, match=told):
        compare(first, second, stored(tmp_path, rows))


def test_unseen_scores_are_compared_at_the_same_lengths_only(tmp_path):
    short = {"task_args": {"shortest": 1, "longest": 20}, "schedule": {"unseen": [25, 100]}}
    folder = stored(tmp_path, both({}, short))
    with pytest.raises(BadInput, match=r"schedule\.unseen .*50,200.* against .*25,100"):
        compare("longest=40", "longest=20", folder, metric="unseen")


def test_a_metric_or_store_nobody_knows_is_refused(tmp_path):
    with pytest.raises(BadInput, match="no metric is called 'acuracy': did you mean 'accuracy'"):
        compare("lstm", "mlp", tmp_path, metric="acuracy")
    with pytest.raises(StoreError, match="there is no store in"):
        compare("lstm", "mlp", tmp_path / "nothing")
