"""Explicit weights in the registered nets, against the tasks' own solvers on every input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.each import each
from theodolite.nets.contract import ALIASES, nets
from theodolite.nets.parts.as_vector import AsVector
from theodolite.nets.size import count_parameters
from theodolite.tasks import Batch, make_task
from theodolite.tasks.contract import Task
from theodolite.witness import registered_nets
from theodolite.witness.contract import Impossible, Witness, constructions
from theodolite.witness.registered_nets.boolean_programs import MOST_UNITS, boolean_programs
from theodolite.witness.registered_nets.sign_program import answer_in_relus, in_relus, layer_of
from theodolite.witness.table import Table, all_signs, constant_on_levels, truth_table

assert registered_nets.__all__  # imported for its constructions

ARCHITECTURES = ("mlp", "rnn", "lstm", "convolution", "transformer", "linear-transformer")
BOOLEAN = [
    *(("boolean", {"function": f, "bits": 10}) for f in ("first", "carry", "inner-product", "multiplexer")),
    *(("boolean", {"function": f, "bits": 10}) for f in ("equality", "brackets", "and", "or")),
    *(("majority", {"bits": bits}) for bits in (1, 9, 10)),
    *(("parity", {"bits": 10, "relevant": k}) for k in (1, 2, 5, 10)),
]


def built(net: str, task: Task, **shape) -> Witness | Impossible | None:
    found = (construction(task, shape) for construction in constructions(net))
    return next((one for one in found if one is not None), None)


def answers(witness: Witness, inputs: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return witness.module(torch.as_tensor(inputs, dtype=torch.float64))[:, 0].numpy()


def agrees(witness: Witness | Impossible | None, task: Task) -> bool:
    """Every sign vector, the truth from the task's solver row by row."""
    assert isinstance(witness, Witness)
    inputs = np.array(list(itertools.product((1.0, -1.0), repeat=task.spec.features)))
    truth = np.array([task.solve(row)[0] for row in inputs.tolist()])
    assert len(set(truth)) == 2
    return bool((answers(witness, inputs) * truth > 0.5).all())


def own_net(witness: Witness) -> torch.nn.Module:
    return witness.module.net if isinstance(witness.module, AsVector) else witness.module


@each("net", ARCHITECTURES)
@each(("name", "arguments"), BOOLEAN)
def test_every_boolean_task_has_weights_in_every_architecture(net, name, arguments):
    task = make_task(name, arguments)
    witness = built(net, task)
    assert agrees(witness, task)
    assert isinstance(witness, Witness)
    # In single precision, in which nets are trained, the signs are right as well.
    table = truth_table(task)
    assert table is not None
    with torch.no_grad():
        single = witness.module.float()(torch.as_tensor(table.inputs, dtype=torch.float32))[:, 0].numpy()
    assert (single * table.values.ravel() > 0).all()
    # It is an instance of the class that is trained, of the shape it says.
    twin = nets[net].build(**witness.shape)
    assert type(own_net(witness)) is type(twin)
    assert count_parameters(witness.module) == count_parameters(twin)


class OfTable:
    """A task that is nothing but its truth table, so that no construction knows it by name."""

    name, summary, version = "of-table", "a drawn Boolean function", 1

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    @property
    def spec(self):
        return make_task("majority", {"bits": self.values.ndim}).spec

    def sample(self, members, batch, length, generator):
        bits = torch.randint(2, (members, batch, self.values.ndim), generator=generator)
        targets = torch.from_numpy(self.values)[bits.unbind(-1)].float().unsqueeze(-1)
        return Batch(1.0 - 2.0 * bits.float(), targets, torch.ones_like(targets, dtype=torch.bool))

    def solve(self, row):
        return [float(self.values[tuple(int(sign < 0) for sign in row)])]


@each("net", ARCHITECTURES)
@each("seed", range(3))
def test_a_drawn_function_of_five_bits_has_weights_in_every_architecture(net, seed):
    values = np.random.default_rng(seed).choice((-1, 1), size=(2,) * 5)
    task = OfTable(values)
    assert agrees(built(net, task), task)


@each("net", ARCHITECTURES)
@each(("name", "arguments"), [("sawtooth", {"folds": 3}), ("linear-periodic", {})])
def test_real_tasks_are_explained_to_the_bar_of_a_solved_task(net, name, arguments):
    task = make_task(name, arguments)
    witness = built(net, task)
    assert isinstance(witness, Witness)
    points = task.sample(1, 3000, None, torch.Generator().manual_seed(1)).inputs[0].double()
    truth = np.array([task.solve(row)[0] for row in points.tolist()])
    off = answers(witness, points.numpy()) - truth
    assert 1 - (off**2).mean() / truth.var() >= task.spec.solved
    if name == "sawtooth" and net not in ("rnn", "lstm"):
        assert np.abs(off).max() < 1e-9


@pytest.mark.parametrize("net", ["rnn", "lstm"])
def test_parity_of_strings_of_any_length_in_a_net_of_constant_size(net):
    task = make_task("parity-check", {})
    witness = built(net, task)
    assert isinstance(witness, Witness)
    assert witness.shape["width"] == 7
    for length in range(1, 9):
        rows = [[*bits, 2] for bits in itertools.product((0, 1), repeat=length)]
        assert wrong(witness, task, rows) == 0
    long = torch.randint(2, (4, 3000), generator=torch.Generator().manual_seed(0)).tolist()
    assert wrong(witness, task, [[*bits, 2] for bits in long]) == 0


@pytest.mark.parametrize("net", ["rnn", "lstm"])
@pytest.mark.parametrize(("types", "depth"), [(1, 3), (2, 2), (2, 4)])
def test_nested_brackets_on_every_prefix_up_to_eight(net, types, depth):
    task = make_task("dyck", {"types": types, "depth": depth})
    witness = built(net, task)
    assert isinstance(witness, Witness)
    rows = [[]]
    for _ in range(8):
        rows = [
            [*row, bracket] for row in rows for bracket in range(2 * types) if nested([*row, bracket], types, depth)
        ]
        assert rows
        assert wrong(witness, task, rows) == 0


def nested(row: list[int], types: int, depth: int) -> bool:
    stack: list[int] = []
    for bracket in row:
        if bracket < types:
            stack.append(bracket)
        elif not stack or stack.pop() != bracket - types:
            return False
    return len(stack) <= depth


def wrong(witness: Witness, task: Task, rows: list[list[int]]) -> int:
    """Scored positions with a wrong class; a string with a marker is scored at its end alone."""
    with torch.no_grad():
        found = witness.module(F.one_hot(torch.tensor(rows), task.spec.vocab).double()).argmax(-1)
    truth = torch.tensor([task.solve(row) for row in rows])
    return int((found[:, -1] != truth[:, -1]).sum())


@each(
    ("net", "shape"),
    [
        ("mlp", {"depth": 3, "width": 24}),
        ("rnn", {"depth": 4, "width": 16}),
        ("lstm", {"depth": 3, "width": 12}),
        ("convolution", {"depth": 3, "width": 20, "kernel": 13}),
        ("convolution", {"causal": False, "kernel": 13}),
        ("convolution", {"causal": False, "kernel": 13, "padding": "circular"}),
        ("transformer", {"depth": 4, "width": 32, "heads": 4, "causal": False}),
        ("linear-transformer", {"depth": 3, "width": 32, "heads": 4}),
        ("transformer", {"hidden_size": 24, "num_attention_heads": 2}),
    ],
)
@each("function", ["inner-product", "brackets"])
def test_a_larger_shape_that_is_asked_for_is_filled_up(net, shape, function):
    task = make_task("boolean", {"function": function, "bits": 6})
    witness = built(net, task, **shape)
    assert isinstance(witness, Witness)
    assert agrees(witness, task)
    # No size was changed, and the net is one that these arguments build.
    assert all(witness.shape[ALIASES.get(name, name)] == value for name, value in shape.items())
    twin = nets[net].build(**{**witness.shape, **shape} if not set(shape) & set(ALIASES) else witness.shape)
    assert {k: v.shape for k, v in own_net(witness).state_dict().items()} == {
        k: v.shape for k, v in twin.state_dict().items()
    }


@pytest.mark.parametrize("positions", ["none", "sinusoidal", "rotary"])
def test_a_symmetric_function_needs_no_positions_and_minds_none(positions):
    task = make_task("majority", {"bits": 7})
    assert agrees(built("transformer", task, positions=positions, heads=2), task)


@pytest.mark.parametrize(
    ("net", "shape"),
    [
        ("mlp", {"width": 2}),
        ("rnn", {"width": 3}),
        ("lstm", {"depth": 1, "width": 4}),
        ("convolution", {"width": 2}),
        ("transformer", {"depth": 1}),
        ("transformer", {"positions": "none"}),
        ("transformer", {"block": "parallel"}),
        ("linear-transformer", {"width": 4}),
    ],
)
def test_a_shape_that_is_too_small_gets_no_witness(net, shape):
    assert built(net, make_task("boolean", {"function": "inner-product", "bits": 8}), **shape) is None


def test_a_window_that_does_not_reach_a_bit_is_a_proof():
    task = make_task("boolean", {"function": "first", "bits": 10})
    proof = built("convolution", task, depth=2, kernel=3, dilation=2)
    assert isinstance(proof, Impossible)
    assert proof.checked["reach"] == 6
    # Any weights: the two inputs of the proof get one answer, and the task asks for two.
    net = AsVector(nets["convolution"].build(features=1, depth=2, kernel=3, dilation=2)).double()
    first, second = net(torch.tensor(proof.checked["inputs"], dtype=torch.float64))
    assert torch.equal(first, second)
    assert proof.checked["answers"] == [task.solve(row)[0] for row in proof.checked["inputs"]]
    assert len(set(proof.checked["answers"])) == 2
    assert not isinstance(built("convolution", task, depth=2, kernel=5, dilation=2), Impossible)


def test_building_a_witness_draws_no_random_numbers():
    before = torch.get_rng_state()
    for net in ARCHITECTURES:
        built(net, make_task("parity", {"bits": 6, "relevant": 3}))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("value", [-1, 1])
def test_a_constant_has_no_program_and_raises_nothing(value):
    task = OfTable(np.full((2,) * 3, value))
    assert boolean_programs(task, "mlp") == ()
    assert all(built(net, task) is None for net in ARCHITECTURES)


def test_copying_has_no_known_witness():
    assert all(built(net, make_task("copy", {})) is None for net in ARCHITECTURES)


# Theory's numbers beside the counted ones


@each("net", ARCHITECTURES)
@each(("name", "arguments"), BOOLEAN)
def test_counts_are_those_of_the_formula_or_within_the_bound(net, name, arguments):
    witness = built(net, make_task(name, arguments))
    assert isinstance(witness, Witness)
    for counted, number in witness.predicted.items():
        assert getattr(witness, counted) == number
    for counted, number in witness.at_most.items():
        assert getattr(witness, counted) <= number
    if net not in ("rnn", "lstm"):
        assert {*witness.predicted, *witness.at_most} == {"units", "depth"}


@pytest.mark.parametrize("net", ["mlp", "convolution"])
def test_parity_of_k_bits_takes_k_units_in_one_layer(net):
    for relevant in (1, 3, 6):
        witness = built(net, make_task("parity", {"bits": 6, "relevant": relevant}))
        assert isinstance(witness, Witness)
        assert (witness.units, witness.depth) == (relevant, 1)
        assert witness.predicted == {"units": relevant, "depth": 1}


def test_a_program_of_very_many_units_is_not_even_looked_at(monkeypatch):
    """Majority of 15 bits read as a number changes sign thousands of times: that was 140 seconds."""
    made = []
    alternation = registered_nets.boolean_programs.alternation  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setattr(
        registered_nets.boolean_programs,  # pyright: ignore[reportAttributeAccessIssue]
        "alternation",
        lambda name, weights, cuts, highest: made.append(len(cuts)) or alternation(name, weights, cuts, highest),
    )
    programs = boolean_programs(make_task("majority", {"bits": 15}), "mlp")
    assert made
    assert max(made) <= MOST_UNITS
    assert programs[0].units == 1
    assert all(program.units <= MOST_UNITS for program in programs)


# The truth table, and the programs made of it


def test_signs_come_in_the_order_of_the_table():
    table = truth_table(make_task("boolean", {"function": "multiplexer", "bits": 6}))
    assert table is not None
    task = make_task("boolean", {"function": "multiplexer", "bits": 6})
    for row, value in zip(table.inputs.tolist(), table.values.ravel().tolist(), strict=True):
        assert task.solve(row) == [value]
        assert table.values[tuple(int(s < 0) for s in row)] == value
    assert np.array_equal(all_signs(3), list(itertools.product((1, -1), repeat=3)))


def test_what_a_table_says_of_known_functions():
    parity = truth_table(make_task("parity", {"bits": 6, "relevant": 4}))
    assert parity is not None
    assert parity.relevant == (0, 1, 2, 3)
    assert constant_on_levels(parity, np.array([1, 1, 1, 1, 0, 0]))
    carry = truth_table(make_task("boolean", {"function": "carry", "bits": 6}))
    assert carry is not None
    assert not constant_on_levels(carry, np.ones(6, dtype=np.int64))
    assert constant_on_levels(carry, np.array([4, 2, 1, 4, 2, 1]))
    assert (carry.values == carry.rarer).sum() == 28  # 0 + 1 + … + 7 pairs of numbers below 8 add up to 8 or more
    brackets = truth_table(make_task("boolean", {"function": "brackets", "bits": 8}))
    assert brackets is not None
    assert brackets.rarer == -1
    assert (brackets.values == brackets.rarer).sum() == 14  # the fourth Catalan number
    assert truth_table(make_task("sawtooth", {})) is None
    assert truth_table(make_task("parity-check", {})) is None


@pytest.mark.parametrize("seed", range(5))
def test_cubes_are_disjoint_and_hold_exactly_the_rarer_value(seed):
    table = Table(np.random.default_rng(seed).choice((-1, 1), size=(2,) * 6, p=(0.3, 0.7)))
    hits = np.zeros(64, dtype=int)
    for cube in table.cubes:
        hits += np.all([table.inputs[:, bit] == sign for bit, sign in cube], axis=0)
    assert np.array_equal(hits, (table.values.ravel() == table.rarer).astype(int))
    assert len(table.cubes) <= hits.sum()


@pytest.mark.parametrize("seed", range(10))
def test_a_layer_in_relus_is_the_layer_of_signs(seed):
    random = np.random.default_rng(seed)
    weights = random.integers(-3, 4, size=(6, 5))
    weights[1] = weights[0]
    thresholds = random.integers(-6, 7, size=6) + 0.5
    layer = layer_of(weights, thresholds)
    signs = all_signs(5)
    relus = in_relus(layer)
    made = np.maximum(signs @ relus.weights.T - relus.knots, 0) @ relus.mix.T + relus.shift
    assert np.allclose(made, np.where(signs @ weights.T > thresholds, 1, -1))


def test_every_program_of_a_task_computes_it_in_relus_too():
    count = 0
    for name, arguments in BOOLEAN:
        task = make_task(name, arguments)
        table = truth_table(task)
        assert table is not None
        for program in boolean_programs(task, "mlp"):
            signs = table.inputs
            for layer in program.layers[:-1]:
                signs = layer(signs)
            relus = answer_in_relus(program)
            made = np.maximum(signs @ relus.weights.T - relus.knots, 0) @ relus.mix.T + relus.shift
            assert (made[:, 0] * table.values.ravel() > 0.5).all()
            count += 1
    assert count > 30


def test_parity_takes_one_relu_a_bit_and_a_threshold_function_one_in_all():
    for bits in (2, 5, 9):
        witness = built("mlp", make_task("parity", {"bits": bits, "relevant": bits}))
        assert isinstance(witness, Witness)
        assert witness.units == bits
    for name in ("carry", "and", "or", "first"):
        witness = built("mlp", make_task("boolean", {"function": name, "bits": 8}))
        assert isinstance(witness, Witness)
        assert witness.units == 1


@pytest.mark.parametrize("net", ["mlp", "rnn", "lstm", "convolution", "transformer", "linear-transformer"])
def test_a_task_too_large_for_a_table_is_built_by_name(net):
    task = make_task("majority", {"bits": 31})
    witness = built(net, task)
    assert isinstance(witness, Witness)
    inputs = 1.0 - 2.0 * np.random.default_rng(0).integers(0, 2, size=(500, 31))
    truth = np.array([task.solve(row)[0] for row in inputs.tolist()])
    assert (answers(witness, inputs) * truth > 0).all()


def test_parity_of_many_bits_has_a_witness_and_what_is_too_large_is_told_with_the_most_that_fits():
    from theodolite.errors import BadInput
    from theodolite.witness.express import express

    assert express("parity", "mlp", task_args={"bits": 1000}, samples=256).expressible
    with pytest.raises(BadInput, match=r"bits = 4097 is too large .* use at most 4096"):
        express("parity", "mlp", task_args={"bits": 4097})
