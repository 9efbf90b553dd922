"""Three sentences, made from answers and costs by rules, and none for what is not settled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from theodolite.lab.cell import Cell, Row
from theodolite.report import Answer
from theodolite.surveys.conclusions import conclusions


def answers(ability: str, text: str = "", **standings: Any) -> list[Answer]:
    names = {"mine": "a.py:Mine"}
    return [Answer(names.get(net, net), ability, each, text, ability=ability) for net, each in standings.items()]


def cost(net: str, micro: float, per: str = "token") -> Row:
    found = {"training_seconds_per_token": {"value": micro * 1e-6, "diagnostics": {"per": per}}}
    return Row(Cell("cost", {"net": net}), found)


def told(nets: tuple[str, ...], learnt: list[Answer], others: list[Answer], costs: list[Row]) -> tuple[str, ...]:
    return conclusions(nets, learnt, others, costs)


def test_who_learns_most_what_tells_networks_apart_and_what_they_cost():
    learnt = [
        *answers("length generalisation on parity", "longer 0.99, 4/4 longer 1.00", lstm="yes", transformer="unlearnt"),
        *answers("length generalisation on copy", lstm="partly", transformer="partly"),
    ]
    others = [
        *answers("constant state size", lstm="yes", transformer="no"),
        *answers("time-shift equivariance", lstm="yes", transformer="no"),
        *answers("causality", lstm="yes", transformer="yes"),
        *answers("separation rank", lstm="yes", transformer="unknown"),
    ]
    found = told(("lstm", "transformer"), learnt, others, [cost("lstm", 4.0), cost("transformer", 12.0)])
    assert found == (
        "In training as short as this, lstm learns 1 of 2 tasks in every run, also on longer inputs than any in "
        "training (parity), and 1 in part; transformer none, and 1 in part.",
        "Only lstm has time-shift equivariance.",
        "Training takes 4 µs a token in lstm, the fastest, and 12 in transformer, the slowest; the state carried along "
        "is constant in lstm, and grows in transformer.",
    )


def test_networks_that_were_asked_other_tasks_are_not_counted_with_those_that_share_theirs():
    learnt = [
        *answers("learnability of carry", mlp="yes"),
        *answers("learnability of majority", mlp="yes"),
        *answers("length generalisation on copy", lstm="partly", gru="unlearnt"),
    ]
    assert told(("mlp", "lstm", "gru"), learnt, [], []) == (
        "In training as short as this, lstm learns none of 1 tasks in every run, and 1 in part; gru none.",
    )


def test_abilities_are_grouped_by_who_has_them():
    others = [
        *answers("time-shift equivariance", lstm="yes", conv="yes", transformer="no"),
        *answers("permutation equivariance", lstm="no", conv="no", transformer="yes"),
        *answers("translation equivariance", lstm="no", conv="no", transformer="yes"),
        *answers("one-symbol sensitivity", lstm="no", conv="partly", transformer="yes"),  # no plain yes or no
    ]
    assert told(("lstm", "conv", "transformer"), [], others, []) == (
        "Only lstm and conv have time-shift equivariance; only transformer has permutation equivariance and "
        "translation equivariance.",
    )


def test_of_the_users_network_it_is_said_what_it_alone_has_and_lacks():
    others = [
        *answers("permutation equivariance", mine="yes", lstm="no", gru="no"),
        *answers("constant state size", mine="no", lstm="yes", gru="yes"),
        *answers("recall capacity", mine="partly", lstm="yes", gru="yes"),
        *answers("one-symbol sensitivity", mine="yes", lstm="unlearnt", gru="no"),  # not settled for all
    ]
    (apart, state) = told(("a.py:Mine", "lstm", "gru"), [], others, [])
    assert apart == (
        "Yours (Mine) alone has permutation equivariance; it alone lacks constant state size; it alone has recall "
        "capacity only in part."
    )
    assert state == "The state carried along is constant in lstm and gru, and grows in yours (Mine)."


def test_marks_that_differ_while_intervals_meet_set_nothing_apart():
    near = [replace(one, interval=(0.8, 0.95)) for one in answers("recall capacity", mine="partly", lstm="yes")]
    apart = [replace(near[0], interval=(0.2, 0.3)), near[1]]
    assert told(("a.py:Mine", "lstm"), [], near, []) == ()
    assert told(("a.py:Mine", "lstm"), [], apart, []) == ("Yours (Mine) alone has recall capacity only in part.",)


def test_where_nothing_sets_it_apart_the_nearest_is_named():
    others = [
        *answers("causality", mine="yes", lstm="yes", gru="yes"),
        *answers("permutation equivariance", mine="no", lstm="no", gru="yes"),
        *answers("translation equivariance", mine="no", lstm="no", gru="no"),
    ]
    (near,) = told(("a.py:Mine", "lstm", "gru"), [], others, [])
    assert near == "Yours (Mine) answers as lstm does in 3 of 3 settled questions, the nearest here."
    (both,) = told(("a.py:Mine", "lstm", "gru"), [], [*others[:3], *others[6:]], [])
    assert both == "Yours (Mine) answers as lstm and gru do in 2 of 2 settled questions, the nearest here."


def test_nothing_settled_is_nothing_said():
    unsettled = answers("length generalisation on parity", lstm="unlearnt", transformer="unlearnt")
    others = answers("separation rank", lstm="unknown", transformer="failed")
    assert told(("lstm", "transformer"), unsettled, others, [Row(Cell("cost", {"net": "lstm"}), {}, error="no")]) == ()
    assert told(("lstm",), [], answers("causality", lstm="yes"), [cost("lstm", 4.0)]) == ()


def test_times_that_hardly_differ_are_not_ranked_and_other_units_not_compared():
    costs = [cost("lstm", 4.0), cost("gru", 4.5), cost("mlp", 100.0, "input")]
    assert told(("lstm", "gru", "mlp"), [], [], costs) == (
        "Training takes about the same time for all, 4 to 4.5 µs a token.",
    )
