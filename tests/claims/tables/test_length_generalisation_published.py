"""Published scores, and when a measured one contradicts them."""

from __future__ import annotations

import pytest

from theodolite.claims.tables import chomsky_published as chomsky
from theodolite.claims.tables.length_generalisation_published import Published, agreement, published
from theodolite.nets import nets
from theodolite.tasks import tasks
from theodolite.tasks.contract import make_task


@pytest.mark.parametrize(
    ("task", "net", "score", "source"),
    [
        ("parity-check", "transformer", 0.52, "Delétang et al. 2022"),
        ("reverse", "lstm", 0.609, "Delétang et al. 2022"),  # and 0.66 elsewhere: the first table tells
        ("bucket-sort", "lstm", 0.993, "Delétang et al. 2022"),
        ("copy", "transformer", 0.53, "Dehghani et al. 2019"),
        ("decimal-addition", "universal-transformer", 0.34, "Dehghani et al. 2019"),
    ],
)
def test_a_figure_is_the_one_printed_in_its_paper(task, net, score, source):
    told = published(task, net)
    assert told is not None
    assert (told.score, told.source) == (pytest.approx(score), source)


def test_all_tasks_of_the_hierarchy_have_figures_and_every_figure_is_of_a_net_and_a_task_there_are():
    found = {(task, net): published(task, net) for task in tasks for net in nets if task != "parity"}
    told = {pair: figure for pair, figure in found.items() if figure is not None}
    hierarchy = {task for names in chomsky.LEVELS.values() for task in names}
    assert {task for task, _ in told} == hierarchy | {"copy", "decimal-addition"}
    assert {net for _, net in told} == {*chomsky.NETS, "universal-transformer"}
    assert all(0 <= figure.score <= 1 and (figure.task, figure.net) == pair for pair, figure in told.items())


def test_what_later_papers_ran_is_not_told_of_our_nets():
    assert published("parity-check", "delta-net") is None  # theirs is gated DeltaProduct
    assert published("cycle-navigation", "transformer").score == pytest.approx(0.619)


def test_parity_depends_on_the_number_of_bits():
    assert [published("parity", "mlp", bits) is not None for bits in (5, 10, 11, 30, None)] == [
        True, True, False, True, False,
    ]  # fmt: skip
    assert published("parity", "mlp", 10).solved
    assert not published("parity", "mlp", 30).solved
    assert published("parity", "transformer", 10) is None
    assert published("sawtooth", "mlp") is None


@pytest.mark.parametrize(
    ("task", "net", "args", "trained", "farthest", "alike"),
    [
        ("reverse", "lstm", {"symbols": 2}, (1, 40), 500, True),
        ("reverse", "lstm", {"symbols": 8}, (1, 40), 500, False),  # another alphabet
        ("reverse", "lstm", {"symbols": 2}, (1, 5), 25, False),  # other lengths
        ("reverse", "lstm", {"symbols": 2}, (1, 40), 200, False),  # tested on others
        ("copy", "lstm", {"symbols": 10}, [1, 40], 400, True),
        ("copy", "lstm", {"symbols": 2}, (1, 40), 400, False),  # .55 with 2 symbols is not .45 on decimal strings
        ("modular-arithmetic", "lstm", {"modulus": 7}, (1, 40), 500, False),
        ("parity", "mlp", {"bits": 10, "relevant": 5}, None, None, True),
        ("parity", "mlp", {"bits": 10, "relevant": 2}, None, None, False),
    ],
)
def test_scores_are_compared_where_task_alphabet_and_lengths_are_the_papers(task, net, args, trained, farthest, alike):
    figure = published(task, net, args.get("bits"))
    assert figure is not None
    ours = {**vars(make_task(task, args)), "longest": 17}
    assert figure.same_setting(ours, trained, farthest) is alike


def test_a_figure_says_its_setting():
    assert published("copy", "lstm").setting.startswith("10 symbols, length 400 after 1–40")
    assert published("parity-check", "lstm").setting.startswith("lengths 41–500 after 1–40")


@pytest.mark.parametrize(
    ("score", "best", "learnt", "expected"),
    [
        (1.0, 0.95, True, True),
        (1.0, 0.5, True, None),  # our training is shorter: nothing follows
        (1.0, 0.5, False, None),
        (0.52, 0.6, True, True),  # learnt, and lost beyond the lengths of training
        (0.52, 0.6, False, None),  # not learnt at all
        (0.52, 0.99, True, False),  # a paper's failure is refuted by one success
    ],
)
def test_only_what_shows_something_is_marked(score, best, learnt, expected):
    assert agreement(Published("t", "n", score, "s", "x"), best, learnt) is expected
