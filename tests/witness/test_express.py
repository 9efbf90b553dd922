"""`express` on tasks whose answer is known, and checks that find what is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from scipy.stats import binomtest
from torch import Tensor, nn

from tests.each import each
from theodolite.errors import BadInput
from theodolite.tasks import make_task
from theodolite.tasks.contract import Batch, TaskSpec
from theodolite.witness import contract
from theodolite.witness.contract import Witness
from theodolite.witness.domain import domain_of, is_boolean
from theodolite.witness.express import express
from theodolite.witness.verify import upper_bound, verify_network

BOOLEAN = [
    ("parity", {"bits": 7, "relevant": 7}),
    ("parity", {"bits": 6, "relevant": 1}),
    ("majority", {"bits": 6}),
    ("majority", {"bits": 7}),
    *(
        ("boolean", {"function": function, "bits": 6})
        for function in ("first", "and", "or", "carry", "inner-product", "equality", "multiplexer", "brackets")
    ),
]


@each("net", ["threshold", "nand"])
@each(("task", "fields"), BOOLEAN)
def test_every_boolean_task_has_a_witness_that_is_right_everywhere(task, fields, net):
    found = express(task, net, task_args=fields)
    assert found.expressible is True
    assert (found.exhaustive, found.errors, found.verified_on) == (True, 0, 2 ** fields["bits"])
    for name, number in found.predicted.items():
        assert getattr(found, name) == number
    json.dumps(found.to_json(), allow_nan=False)


@each(("task", "fields"), BOOLEAN)
def test_a_linear_unit_computes_exactly_the_tasks_that_are_linear(task, fields):
    found = express(task, "linear", task_args=fields)
    linear = task == "majority" or fields.get("relevant") == 1
    linear = linear or fields.get("function") in ("first", "and", "or", "carry")
    assert found.expressible is linear
    if not linear:
        checked = found.checked
        for i in range(fields["bits"]):
            terms = zip(checked["weights"], checked["answers"], checked["inputs"], strict=True)
            assert sum(weight * answer * row[i] for weight, answer, row in terms) == 0
        made = make_task(task, fields)
        assert [made.solve(row)[0] for row in checked["inputs"]] == checked["answers"]
        assert sum(w * a for w, a in zip(checked["weights"], checked["answers"], strict=True)) == 0
        assert min(checked["weights"]) > 0


@pytest.mark.parametrize(
    ("form", "units", "depth"), [("two-layer", 7, 2), ("iterated", 15, 10), ("tree", 15, 6), ("dnf", 33, 2)]
)
def test_forms_of_parity_have_the_sizes_theory_says(form, units, depth):
    found = express("parity", "threshold", task_args={"bits": 6, "relevant": 6}, form=form)
    assert (found.units, found.depth) == (units, depth) == (found.predicted["units"], found.predicted["depth"])
    assert found.expressible


def test_a_recurrence_of_two_units_computes_parity_of_any_length():
    vectors = [express("parity", "recurrent-threshold", task_args={"bits": n, "relevant": n}) for n in (1, 2, 9)]
    strings = express("parity-check", "recurrent-threshold", task_args={"longest": 10})
    for found in (*vectors, strings):
        assert (found.expressible, found.exhaustive, found.units) == (True, True, 2)
    assert len({found.parameters for found in vectors}) == 1
    assert strings.verified_on == 2**11 - 2
    longer = express("parity-check", "recurrent-threshold", samples=200)
    assert (longer.expressible, longer.exhaustive) == (True, False)
    assert "all 65,534 inputs of length 1 to 15" in (longer.domain or "")
    assert (longer.drawn, longer.verified_on) == (48, 65_534 + 48)
    known = binomtest(0, 48, alternative="less").proportion_ci(0.95, method="exact").high
    assert longer.error_bound == pytest.approx(known)  # of the drawn alone: those listed say nothing about them
    assert f"of inputs like the 48 drawn ones at most {known:.2g} are wrong" in longer.reason
    assert (strings.drawn, strings.error_bound) == (0, 0.0)
    assert "drawn" not in strings.reason


def test_a_domain_too_large_is_sampled_and_said_to_be():
    found = express("parity", "threshold", task_args={"bits": 40, "relevant": 40}, samples=500)
    assert (found.expressible, found.exhaustive, found.verified_on) == (True, False, 500)
    assert "2^40 are too many to verify" in (found.domain or "")
    assert found.error_bound == pytest.approx(3 / 500, rel=0.01)
    refused = express("parity", "linear", task_args={"bits": 40, "relevant": 20})
    assert refused.expressible is False


def test_what_nobody_knows_is_null():
    found = express("dyck", "threshold")
    assert found.expressible is None
    assert found.witness is None
    assert "no witness is known" in found.reason


ATTENTION = [
    ("parity-check", {"longest": 11}, {}),
    ("parity-check", {"longest": 11}, {"epsilon": 0.0}),
    ("parity", {"bits": 7, "relevant": 7}, {"epsilon": 1e-5}),
    ("boolean", {"function": "first", "bits": 7}, {}),
    ("dyck", {"types": 2, "depth": 3, "longest": 8}, {}),
    ("dyck", {"types": 1, "depth": 2, "longest": 9}, {}),
]


@pytest.mark.parametrize(("task", "fields", "shape"), ATTENTION, ids=str)
def test_soft_attention_answers_as_the_task_asks(task, fields, shape):
    found = express(task, "soft-attention", task_args=fields, **shape)
    assert (found.expressible, found.exhaustive, found.errors, found.depth) == (True, True, 0, 2)
    assert (found.parameters or 0) > 0
    json.dumps(found.to_json(), allow_nan=False)


def test_soft_attention_has_no_witness_for_what_its_sources_do_not_cover():
    for task, fields in (("parity", {"bits": 6, "relevant": 3}), ("majority", {}), ("copy", {}), ("boolean", {})):
        assert express(task, "soft-attention", task_args=fields).expressible is None
    assert express("dyck", "soft-attention", epsilon=1e-5).expressible is None


def test_a_transformer_without_a_witness_is_pointed_to_soft_attention():
    found = express("parity-check", "transformer")
    assert found.expressible is None
    assert "--net soft-attention" in found.reason
    assert "tends to chance" in found.reason
    assert "soft-attention" not in express("copy", "transformer").reason


def test_a_wrong_witness_is_never_reported_as_one(monkeypatch):
    def wrong(task: Any, shape: Mapping[str, Any]) -> Witness:
        return Witness("a guess", nn.Linear(3, 1), "nowhere", 0, 0)

    monkeypatch.setitem(contract._constructions, "linear", [wrong])
    found = express("parity", "linear", task_args={"bits": 3, "relevant": 3})
    assert found.expressible is None
    assert "'a guess' was wrong on" in found.reason
    assert found.parameters is None


@each(
    ("arguments", "words"),
    [
        (("parity", "threshhold", {}), "did you mean 'threshold'"),
        (("partiy", "threshold", {}), "did you mean 'parity'"),
        (("parity", "threshold", {"from": "dnf"}), "did you mean 'form'"),
        (("parity", "threshold", {"form": "dnff"}), "did you mean 'dnf'"),
        (("parity", "linear", {"width": 3}), "no argument is called 'width'"),
        (("parity", "mlp", {"widht": 3}), "did you mean 'width'"),
        (("parity", "mlp", {"width": 0}), "width of 'mlp' must be a whole number of at least 1, not 0"),
        (("parity", "transformer", {"heads": 0}), "heads of 'transformer' must be a whole number"),
        (("parity", "convolution", {"depth": 0, "kernel": 3}), "depth of 'convolution' must be a whole number"),
        (("parity", "soft-attention", {"epsilon": -1}), "is 0 or more"),
        (("parity", "soft-attention", {"eps": 1}), "did you mean 'epsilon'"),
        (("parity", "my.py:Net", {}), "built-in nets alone"),
        (("majority", "threshold", {"form": "tree"}), "'tree' is one of parity's"),
    ],
)
def test_unknown_names_are_answered_with_the_near_one(arguments, words):
    task, net, shape = arguments
    with pytest.raises(BadInput, match=words):
        express(task, net, **shape)


def test_fields_of_a_task_are_checked():
    with pytest.raises(BadInput, match="did you mean 'bits'"):
        express("parity", "threshold", task_args={"bit": 3})
    with pytest.raises(BadInput, match="made already"):
        express(make_task("parity", {}), "threshold", task_args={"bits": 3})


def test_a_dnf_of_too_many_bits_is_refused():
    with pytest.raises(BadInput, match="12 bits is out of reach"):
        express("parity", "threshold", task_args={"bits": 12}, form="dnf")


# verification


class Fixed(nn.Module):
    """Answers by a function of the input."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def test_errors_are_counted_input_by_input():
    task = make_task("parity", {"bits": 5, "relevant": 5})
    right = verify_network(Fixed(lambda x: x.prod(dim=-1, keepdim=True) * 3), task)
    assert (right.right, right.errors, right.margin, right.verified_on) == (True, 0, 3.0, 32)
    one = verify_network(
        Fixed(lambda x: x.prod(-1, keepdim=True) * torch.where((x == 1).all(-1, keepdim=True), -1, 1)), task
    )
    assert (one.right, one.errors, one.margin) == (False, 1, -1.0)
    zero = verify_network(Fixed(lambda x: 0 * x[:, :1]), task)
    assert zero.errors == 32
    nan = verify_network(Fixed(lambda x: x[:, :1] * torch.nan), task)
    assert nan.errors == 32


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("copy", {"symbols": 3, "longest": 4}),
        ("reverse", {"symbols": 2, "longest": 5}),
        ("parity-check", {"longest": 6}),
        ("dyck", {"types": 2, "depth": 2, "longest": 6}),
        ("recall", {"keys": 3, "values": 2, "longest": 3}),
    ],
)
def test_listed_strings_are_all_that_the_task_can_give_and_each_once(name, fields):
    task = make_task(name, fields)
    domain = domain_of(task)
    assert domain.exhaustive
    listed = [tuple(row) for block in domain.blocks() for row in block.inputs.tolist()]
    assert len(listed) == len(set(listed))
    drawn = set()
    generator = torch.Generator().manual_seed(0)
    for length in range(1, fields["longest"] + 1):
        drawn |= {tuple(row) for row in task.sample(1, 4000, length, generator).inputs[0].tolist()}
    assert drawn <= set(listed)
    assert len(drawn) > 0.9 * len(listed)


def test_a_string_network_is_judged_where_it_is_scored():
    task = make_task("copy", {"symbols": 2, "longest": 3})

    def shifted(x: Tensor) -> Tensor:
        half = x.shape[1] // 2
        return torch.cat([x[:, :half, :2] * 0, x[:, :half, :2]], dim=1)

    assert verify_network(Fixed(shifted), task).right
    broken = verify_network(Fixed(lambda x: shifted(x).flip(1)), task)
    assert not broken.right
    assert 0 < (broken.errors or 0) <= broken.verified_on
    with pytest.raises(BadInput, match="answers with the shape"):
        verify_network(Fixed(lambda x: x), task)


def test_real_answers_are_exact_or_explain_the_variance():
    task = make_task("sawtooth", {"folds": 1})
    exact = verify_network(Fixed(lambda x: 1 - (1 - 2 * x).abs()), task, samples=1000)
    assert (exact.right, exact.errors) == (True, 0)
    assert "1e-09" in exact.criterion
    near = verify_network(Fixed(lambda x: 1 - (1 - 2 * x).abs() + 0.01), task, samples=1000)
    assert (near.right, near.errors) == (True, None)
    assert "99% of the variance" in near.criterion
    far = verify_network(Fixed(lambda x: 0 * x + 0.5), task, samples=1000)
    assert not far.right
    assert far.explained_variance == pytest.approx(0, abs=0.05)


def test_an_error_among_the_listed_is_no_share_of_the_drawn():
    task = make_task("parity-check", {"longest": 40})

    def at_the_marker(x: Tensor) -> Tensor:
        odd = (x[..., 1].sum(dim=1) % 2).unsqueeze(-1) * 2 - 1
        if x.shape[1] == 3:  # two bits: all wrong
            odd = -odd
        return torch.stack([-odd.expand(-1, x.shape[1]), odd.expand(-1, x.shape[1])], dim=-1)

    found = verify_network(Fixed(at_the_marker), task, most=2**8, samples=400)
    assert (found.right, found.errors, found.drawn) == (False, 4, 100)
    assert found.error_bound == pytest.approx(upper_bound(0, 100))


@pytest.mark.parametrize(("errors", "samples"), [(0, 10), (0, 16384), (3, 50), (50, 50)])
def test_the_bound_on_the_share_of_errors_is_that_of_clopper_and_pearson(errors, samples):
    if errors == samples:
        assert upper_bound(errors, samples) == 1.0
    else:
        known = binomtest(errors, samples, alternative="less").proportion_ci(0.95, method="exact").high
        assert upper_bound(errors, samples) == pytest.approx(known)


@dataclass(frozen=True)
class Ends:
    """Whether the first and the last bit differ; it can list its own inputs."""

    name: ClassVar[str] = "ends"
    summary: ClassVar[str] = "first against last"
    version: ClassVar[int] = 1

    @property
    def spec(self) -> TaskSpec:
        return TaskSpec("sequence", 2, 2, 2, (1, 4), loss="cross-entropy", chance=0.5, solved=0.99)

    def every_input(self, length: int) -> Sequence[Sequence[int]]:
        return [[i >> place & 1 for place in range(length)] for i in range(2**length)]

    def sample(self, members: int, batch: int, length: int | None, generator: torch.Generator) -> Batch:
        inputs = torch.randint(2, (members, batch, length or 4), generator=generator)
        mask = torch.zeros_like(inputs, dtype=torch.bool)
        mask[..., -1] = True
        return Batch(inputs, (inputs ^ inputs[..., :1]), mask)

    def solve(self, row: Sequence[float]) -> Sequence[float]:
        return [0.0] * (len(row) - 1) + [float(row[0] != row[-1])]


def test_a_task_of_ones_own_may_list_its_inputs():
    task: Any = Ends()
    assert not is_boolean(task)
    differ = verify_network(Fixed(lambda x: torch.stack([0 * x[..., 0], (x[:, :1] - x)[..., 0].abs() - 0.5], -1)), task)
    assert (differ.right, differ.exhaustive, differ.verified_on) == (True, True, 2 + 4 + 8 + 16)
