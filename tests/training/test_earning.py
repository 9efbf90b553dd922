"""When steps are compiled, by how long they take."""

from __future__ import annotations

import pytest

from theodolite.errors import BadInput
from theodolite.training.earning import Earning, check_compiling


def test_a_short_run_is_not_compiled_and_the_row_says_so():
    earning = Earning("auto", "cuda", shapes=7)
    assert not any(earning.compiles(False, step, 0.001, 5000 - step) for step in (100, 200, 300))
    assert earning.said == "not compiled: 5 s of steps do not earn about 140 s"


def test_a_long_run_is_compiled_once_its_speed_is_known():
    earning = Earning("auto", "cuda", shapes=7)
    assert not earning.compiles(False, 100, 5.0, 99_900)  # capturing is part of the first look
    assert earning.compiles(False, 200, 0.01, 99_800)
    assert earning.compiles(True, 300, 3.0, 99_700)  # and compiling of this one
    assert earning.compiles(True, 400, 0.005, 99_600)
    assert earning.said == "compiled from step 200 on"


def test_what_is_on_the_disk_costs_little():
    needed = [Earning("auto", "cuda", shapes=7, kept=kept) for kept in (0, 7)]
    for earning in needed:
        earning.compiles(False, 100, 0.01, 4900)
    assert [earning.compiles(False, 200, 0.01, 4800) for earning in needed] == [False, True]


def test_compiled_steps_that_are_no_faster_are_given_up_for_good():
    earning = Earning("auto", "cpu", shapes=1)
    earning.compiles(False, 100, 0.1, 9900)
    assert earning.compiles(False, 200, 0.1, 9800)
    assert earning.compiles(True, 300, 1.0, 9700)
    assert not earning.compiles(True, 400, 0.1, 9600)
    assert not earning.compiles(False, 500, 0.1, 9500)
    assert earning.said == "not compiled after step 400: no faster"


def test_what_the_compiler_refuses_is_not_tried_again():
    earning = Earning("auto", "cpu", shapes=1)
    earning.refused("there is no C++ compiler: install g++")
    assert not any(earning.compiles(False, step, 1.0, 10_000) for step in (100, 200, 300))
    assert earning.said == "not compiled: there is no C++ compiler: install g++"


@pytest.mark.parametrize(("way", "compiled"), [("always", True), ("never", False)])
def test_a_choice_is_kept_whatever_the_speed(way, compiled):
    earning = Earning(way, "cpu", shapes=1)
    assert all(earning.compiles(compiled, step, 1.0, 10_000) is compiled for step in (100, 200, 300))


def test_a_way_that_is_none_is_refused():
    with pytest.raises(BadInput, match="auto, always, never, not 'yes'"):
        check_compiling("yes")
