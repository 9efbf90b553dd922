"""The shared vocabulary: errors and exit codes, the registry, measurements, partitions."""

# pyright: reportIndexIssue=false

import hashlib
import inspect
import itertools
import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.each import each
from theodolite import errors
from theodolite.errors import BadInput, CertificateRefused, Finding, TheodoliteError, UnknownName
from theodolite.measurement import SCHEMA, Measurement, Provenance, canonical, finite, seed_of
from theodolite.partition import Partition
from theodolite.registry import Registry, unknown
from theodolite.version import __version__

KINDS = [e for _, e in inspect.getmembers(errors, inspect.isclass) if issubclass(e, TheodoliteError)]


@each("kind", KINDS)
def test_exit_codes(kind):
    """2 for what the user should change, 1 for a finding the user asked to fail on."""
    assert kind.exit_code == (1 if issubclass(kind, Finding) else 2)
    assert kind.__doc__


def test_every_error_is_bad_input_or_a_finding():
    for kind in set(KINDS) - {TheodoliteError}:
        assert issubclass(kind, BadInput) != issubclass(kind, Finding)
    assert issubclass(CertificateRefused, Finding)
    assert issubclass(UnknownName, BadInput)


@pytest.fixture
def fruit() -> Registry[int]:
    registry: Registry[int] = Registry("fruit")
    for i, name in enumerate(["pear", "apple", "grape"]):
        registry.add(name, i)
    return registry


def test_a_registry_keeps_names_in_order(fruit):
    assert list(fruit) == ["pear", "apple", "grape"]
    assert list(fruit.items()) == [("pear", 0), ("apple", 1), ("grape", 2)]
    assert len(fruit) == 3
    assert fruit["apple"] == 1
    assert "apple" in fruit
    assert "appel" not in fruit
    assert 3 not in fruit


def test_a_duplicate_is_refused_and_the_first_stays(fruit):
    with pytest.raises(BadInput, match="fruit 'apple' is registered already"):
        fruit.add("apple", 9)
    assert fruit["apple"] == 1


def test_register_is_a_decorator_that_returns_what_it_decorates(fruit):
    @fruit.register("plum")
    def plum() -> int:
        return 5

    assert fruit["plum"] is plum
    assert plum() == 5


def test_a_miss_names_near_ones_first_then_all(fruit):
    with pytest.raises(UnknownName, match=r"no fruit is called 'appel': did you mean 'apple'.*pear, apple, grape"):
        fruit["appel"]
    with pytest.raises(UnknownName) as raised:
        fruit["zzzz"]
    assert "did you mean" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_unknown_with_nothing_known():
    assert "known: none" in unknown("task", "x", [])


def provenance() -> Provenance:
    return Provenance("0.2.0", 3, "cpu", "2025-01-01T00:00:00+00:00", "3.11.0", "2.13.0", "a" * 40, "b" * 16)


def measurement(**changes) -> Measurement:
    row = {
        "quantity": "separation rank",
        "value": 15,
        "exact": False,
        "method": "exact mode",
        "seconds": 0.5,
        "provenance": provenance(),
        "interval": (3.0, 7.5),
        "diagnostics": {"cap": 15, "ranks": [15, 15], "deep": {"list": [1, None, "x"]}},
    }
    return Measurement(**{**row, **changes})


def test_a_measurement_survives_json():
    for row in (measurement(), measurement(value=None, interval=None, diagnostics={}), measurement(value=0.1)):
        text = json.dumps(row.to_json(), allow_nan=False)
        assert Measurement.from_json(json.loads(text)) == row
        assert json.loads(text)["schema"] == SCHEMA


def test_a_measurement_of_schema_1_is_still_read():
    """As 0.1.0 wrote it: its provenance does not say which code it was."""
    old = measurement().to_json() | {"schema": 1}
    old["provenance"] = {
        name: old["provenance"][name] for name in ("version", "seed", "device", "date", "python", "torch")
    }
    found = Measurement.from_json(old)
    assert found == replace(measurement(), provenance=replace(provenance(), commit=None, package=None))
    assert found.to_json()["schema"] == SCHEMA


def test_a_measurement_cannot_be_changed():
    with pytest.raises(AttributeError):
        measurement().value = 3  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.update(schema=3),
        lambda row: row.update(schema=1),
        lambda row: row.pop("schema"),
        lambda row: row.pop("value"),
        lambda row: row.update(extra=1),
        lambda row: row["provenance"].pop("seed"),
        lambda row: row["provenance"].pop("commit"),
        lambda row: row["provenance"].update(branch="abc"),
        lambda row: row.update(provenance=None),
    ],
    ids=[
        *("schema", "schema 1 and a commit", "no schema", "no value", "extra"),
        *("provenance short", "no commit", "provenance long", "no provenance"),
    ],
)
def test_a_row_of_another_shape_is_refused(change):
    row = measurement().to_json()
    change(row)
    with pytest.raises(BadInput):
        Measurement.from_json(row)


def test_infinities_become_none_at_any_depth():
    diagnostics = {"a": [math.nan, {"b": -math.inf}], 3: (1.5,)}
    row = measurement(value=math.inf, interval=(1.0, math.inf), diagnostics=diagnostics)
    found = row.to_json()
    assert found["value"] is None
    assert found["interval"] == [1.0, None]
    assert found["diagnostics"] == {"a": [None, {"b": None}], "3": [1.5]}
    json.dumps(found, allow_nan=False)
    assert finite(True) is True


def test_provenance_of_this_machine():
    import platform

    import torch

    here = Provenance.here(seed=7, device="cpu")
    assert (here.version, here.seed, here.device) == (__version__, 7, "cpu")
    assert here.python == platform.python_version()
    assert here.torch == torch.__version__
    assert here.date.endswith("+00:00")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(json_values)
def test_canonical_text_is_json_that_does_not_depend_on_order(value):
    text = canonical(value)
    assert json.loads(text) == value
    assert text.isascii()
    assert canonical(reordered(value)) == text
    assert canonical(json.loads(text)) == text


def reordered(value):
    if isinstance(value, dict):
        return {k: reordered(v) for k, v in reversed(value.items())}
    return [reordered(v) for v in value] if isinstance(value, list) else value


def test_canonical_text_by_hand():
    assert canonical({"b": [1, 2.5], "a": "é"}) == '{"a":"\\u00e9","b":[1,2.5]}'
    with pytest.raises(ValueError, match="JSON"):
        canonical({"x": math.nan})


@given(json_values)
def test_the_seed_is_the_first_63_bits_of_the_hash(value):
    digest = hashlib.sha256(canonical(value).encode()).hexdigest()
    assert seed_of(value) == int(bin(int(digest, 16))[2:].zfill(256)[:63], 2)
    assert 0 <= seed_of(value) < 1 << 63


def test_different_configurations_have_different_seeds():
    assert len({seed_of({"seed": i}) for i in range(1000)}) == 1000


@given(st.integers(2, 12), st.data())
def test_a_partition_is_two_sorted_sides(sites, data):
    order = data.draw(st.permutations(range(sites)))
    cut = data.draw(st.integers(1, sites - 1))
    partition = Partition(tuple(order[:cut]), tuple(order[cut:]))
    assert partition.a == tuple(sorted(order[:cut]))
    assert set(partition.a) | set(partition.b) == set(range(sites))
    assert partition.sites == sites
    assert partition.balanced == (2 * cut == sites)
    assert Partition.parse(str(partition), sites) == partition
    assert Partition.parse(partition, sites) is partition
    assert hash(partition) == hash(Partition(partition.a, partition.b))


def test_named_partitions():
    assert Partition.left_right(4) == Partition((0, 1), (2, 3))
    assert Partition.left_right(5) == Partition((0, 1), (2, 3, 4))
    assert Partition.interleaved(4) == Partition((0, 2), (1, 3))
    assert Partition.interleaved(5) == Partition((0, 2, 4), (1, 3))
    assert [str(Partition.parse(t, 6)) for t in ("left-right", "interleaved", "0,1,3|2,4,5")] == [
        "left-right",
        "interleaved",
        "0,1,3|2,4,5",
    ]
    assert Partition.parse("0-2|3-5", 6) == Partition.left_right(6)
    assert Partition.parse(" 0 - 1 , 4 | 2,3, 5", 6) == Partition((0, 1, 4), (2, 3, 5))
    assert Partition.parse("2,3|0,1", 4).a == (2, 3), "the sides are not exchanged"


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ((), (0, 1), "both sides"),
        ((0,), (), "both sides"),
        ((0, 1), (1, 2), "site 1 twice"),
        ((0, 0), (1,), "site 0 twice"),
        ((0, 1), (3,), "2 is missing"),
        ((1,), (2,), "0 is missing"),
        ((-1, 0), (1,), "-1 is not a site"),
    ],
)
def test_sides_that_make_no_partition(a, b, message):
    with pytest.raises(BadInput, match=message):
        Partition(a, b)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("left_right", "left-right, interleaved or two lists"),
        ("0,1", "two lists"),
        ("0|1|2", "two lists"),
        ("0,x|1,2", "'x'"),
        ("0,|1,2", "''"),
        ("0.5|1,2", "'0.5'"),
        ("0,1|2,3", "site 3, but sites run from 0 to 2"),
        ("0|1", "2 sites and the input has 3"),
        ("2-0|1", "both sides"),
    ],
)
def test_texts_that_make_no_partition_of_three_sites(text, message):
    with pytest.raises(BadInput, match=message):
        Partition.parse(text, 3)


@pytest.mark.parametrize("sites", [1, 0, -1])
def test_fewer_than_two_sites_cannot_be_parted(sites):
    for text in ("left-right", "0|1"):
        with pytest.raises(BadInput, match="at least 2 sites"):
            Partition.parse(text, sites)


def test_a_partition_of_another_size_is_refused():
    with pytest.raises(BadInput, match="4 sites and the input has 6"):
        Partition.parse(Partition.left_right(4), 6)


def test_all_partitions_of_four_sites_are_told_apart():
    sides = [a for n in (1, 2, 3) for a in itertools.combinations(range(4), n)]
    assert len({str(Partition(a, tuple(set(range(4)) - set(a)))) for a in sides}) == 14
