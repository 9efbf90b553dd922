"""Threads: results in order, whoever takes the parts, and everything as it was afterwards."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from theodolite.device import cpu_threads
from theodolite.structure.fit.side_by_side import alone, one_thread, shares, side_by_side, threads


@pytest.mark.parametrize("number", [1, 2])
def test_parts_come_back_in_order_from_as_many_threads_as_torch_has(number: int) -> None:
    meeting = threading.Barrier(number, timeout=30)

    def work(part: int) -> tuple[int, int, str]:
        meeting.wait()  # passes only where so many parts are at work at once
        return part, torch.get_num_threads(), threading.current_thread().name

    with cpu_threads(number):
        found = side_by_side(work, range(2 * number))
        assert torch.get_num_threads() == number
    assert [part for part, _, _ in found] == list(range(2 * number))
    assert {own for _, own, _ in found} == {1}
    assert len({name for _, _, name in found}) == number


def test_in_one_thread_there_is_one_thread_of_everything_but_as_many_parts_side_by_side() -> None:
    with cpu_threads(2):
        before = threadpool_info()
        with one_thread(), one_thread():
            assert torch.get_num_threads() == 1
            assert threads() == 2
            assert {pool["num_threads"] for pool in threadpool_info()} == {1}
            assert len(set(side_by_side(lambda _: threading.get_ident(), range(8)))) >= 1
        assert torch.get_num_threads() == threads() == 2
        assert [pool["num_threads"] for pool in threadpool_info()] == [pool["num_threads"] for pool in before]


def test_while_others_have_the_threads_parts_come_one_after_another() -> None:
    busy = True
    with cpu_threads(2), one_thread(), alone(lambda: busy):
        assert threads() == 1
        assert set(side_by_side(lambda _: threading.get_ident(), range(4))) == {threading.get_ident()}
        busy = False
        assert threads() == 2


def test_what_a_part_raises_arrives_and_threads_are_as_they_were() -> None:
    def work(part: int) -> int:
        if part:
            raise ValueError("no part of this kind")
        return part

    with cpu_threads(2):
        with pytest.raises(ValueError, match="no part"):
            side_by_side(work, range(3))
        assert torch.get_num_threads() == 2


def test_gradients_are_recorded_in_parts_as_outside() -> None:
    with cpu_threads(2), torch.no_grad():
        assert side_by_side(lambda _: torch.is_grad_enabled(), range(2)) == [False, False]


@pytest.mark.parametrize(("count", "parts"), [(1, 4), (5, 2), (12, 5), (0, 2)])
def test_shares_are_all_and_alike(count: int, parts: int) -> None:
    found = [len(range(count)[part]) for part in shares(count, parts)]
    assert sum(found) == count
    assert max(found) - min(found) <= 1
    assert np.concatenate([np.arange(count)[part] for part in shares(count, parts)]).tolist() == list(range(count))
