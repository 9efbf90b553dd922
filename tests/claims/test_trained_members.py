"""The measure against the session it stands for, and what it says of members that differ in their rates."""

from __future__ import annotations

from theodolite.measures import measure

CONFIG = {
    "net": "mlp",
    "shape": {"width": 16},
    "task": "majority",
    "task_args": {"bits": 5},
    "seeds": 2,
    "rates": [1e-2, 1e-9],
    "schedule": {"steps": 300, "batch": 32, "every": 100},
}


def test_there_is_one_member_per_seed_and_rate_and_only_a_rate_that_moves_learns():
    found = measure("trained-members", CONFIG, 0, "cpu")
    told = {rate: [m for m in found["members"] if m["rate"] == rate] for rate in CONFIG["rates"]}
    assert [len(members) for members in told.values()] == [2, 2]
    assert all(m["status"] == "solved" and m["accuracy"] >= 0.99 for m in told[1e-2])
    assert all(m["status"] == "unsolved" and m["accuracy"] < 0.99 for m in told[1e-9])
    assert found["parameters"] == (5 + 1) * 16 + (16 + 1) * 16 + (16 + 1)


def test_another_seed_draws_other_members():
    first, again, other = (measure("trained-members", CONFIG, seed, "cpu") for seed in (0, 0, 1))
    assert first == again
    assert first != other
