"""Named Boolean functions: the vectorised truth against plain Python on every input, and the counted shares."""

from __future__ import annotations

import itertools

import pytest
import torch

from tests.each import each
from theodolite.errors import BadInput
from theodolite.tasks import make_task
from theodolite.tasks.boolean import FUNCTIONS


def every(bits):
    return list(itertools.product((0, 1), repeat=bits))


@each("name", FUNCTIONS)
@each("bits", range(1, 9))
def test_every_input_is_answered_alike_by_both_ways(name, bits):
    function = FUNCTIONS[name]
    if not function.fits(bits):
        with pytest.raises(BadInput, match=rf"'{name}' is not defined on {bits} bits: use"):
            make_task("boolean", {"function": name, "bits": bits})
        return
    rows = every(bits)
    truth = function.truth(torch.tensor(rows, dtype=torch.bool)).tolist()
    assert truth == [function.solve(row) for row in rows]
    assert function.share(bits) == sum(truth) / len(rows)


def test_the_multiplexer_reads_the_bit_that_is_addressed():
    for row in every(6):  # 2 address bits, 4 choices
        task = make_task("boolean", {"function": "multiplexer", "bits": 6})
        answer = row[2 + 2 * row[0] + row[1]]
        assert task.solve([1 - 2 * bit for bit in row]) == [1 - 2 * answer]


def test_an_unknown_function_is_answered_with_the_near_one():
    with pytest.raises(BadInput, match=r"'cary'.*carry"):
        make_task("boolean", {"function": "cary"})


def test_where_chance_is_high_solving_takes_more_than_chance():
    rare = make_task("boolean", {"function": "and", "bits": 10}).spec
    assert rare.chance > 0.999
    assert rare.solved > rare.chance
