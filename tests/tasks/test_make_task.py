"""Tasks made from a name and fields, as the command line gives them."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from tests.each import each
from theodolite.errors import BadInput, UnknownName
from theodolite.tasks import make_task, tasks


@each("name", list(tasks))
def test_every_task_is_made_again_from_its_fields(name):
    default = tasks[name]()
    assert make_task(name, {}) == default
    assert make_task(name, asdict(default)) == default  # type: ignore[call-overload]


def test_a_field_is_set():
    assert make_task("parity", {"bits": 6, "relevant": 2}).spec.features == 6


def test_a_whole_number_serves_as_a_real_one():
    made = make_task("linear-periodic", {"frequency": 2})
    assert made == make_task("linear-periodic", {"frequency": 2.0})
    assert type(made.frequency) is float  # type: ignore[attr-defined]


def test_unknown_names_are_answered_with_the_near_ones():
    with pytest.raises(UnknownName, match="did you mean 'majority'"):
        make_task("majorty", {})
    with pytest.raises(BadInput, match=r"'dyck'.*'dept'.*did you mean 'depth'"):
        make_task("dyck", {"dept": 3})


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("parity", "bits", "ten"),
        ("parity", "bits", 7.0),
        ("parity", "bits", True),
        ("parity", "bits", None),
        ("parity", "bits", [7]),
        ("linear-periodic", "frequency", "fast"),
        ("linear-periodic", "frequency", False),
        ("linear-periodic", "frequency", float("nan")),
        ("linear-periodic", "frequency", float("inf")),
        ("linear-periodic", "frequency", 10**400),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_in_one_sentence(name, field, value):
    with pytest.raises(BadInput) as refused:
        make_task(name, {field: value})
    message = str(refused.value)
    assert f"the field '{field}' of the task '{name}' is a" in message
    assert message.endswith(f"not {value!r}")
    assert "\n" not in message


@each(
    ("name", "arguments", "fault"),
    [
        ("parity", {"bits": 0}, "bits=0"),
        ("parity", {"relevant": 0}, "0 relevant"),
        ("parity", {"relevant": 11}, "11 relevant"),
        ("majority", {"bits": 0}, "bits=0"),
        ("linear-periodic", {"dimensions": 0}, "dimensions=0"),
        ("linear-periodic", {"frequency": 0}, "frequency=0"),
        ("linear-periodic", {"frequency": -1.5}, "frequency=-1.5"),
        ("sawtooth", {"folds": 0}, "folds=0"),
        ("sawtooth", {"folds": 17}, "folds=17"),
        ("copy", {"symbols": 1}, "symbols=1"),
        ("copy", {"shortest": 50}, "longest=40"),
        ("reverse", {"symbols": 1}, "symbols=1"),
        ("reverse", {"longest": 0}, "longest=0"),
        ("parity-check", {"shortest": 0}, "shortest=0"),
        ("dyck", {"types": 0}, "types=0"),
        ("dyck", {"depth": 0}, "depth=0"),
        ("dyck", {"shortest": 41}, "longest=40"),
        ("recall", {"keys": 0}, "keys=0"),
        ("recall", {"values": 1}, "values=1"),
        ("recall", {"longest": 65}, "longest=65"),
    ],
)
def test_fields_that_make_no_task_are_refused(name, arguments, fault):
    with pytest.raises(BadInput, match=fault):
        make_task(name, arguments)
