"""What every registered net must do; a new entry is tested by being registered."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch
from torch import Tensor

from theodolite.field import FieldTensor, Modulus
from theodolite.instruments.rank.field_sample import FieldSample
from theodolite.instruments.rank.line_degree import line_degree
from theodolite.instruments.rank.scalar import ScalarFunction
from theodolite.nets import nets
from theodolite.nets.contract import Predictable
from theodolite.nets.load import Subject, load
from theodolite.partition import Partition

ALL = list(nets)
POLYNOMIAL = [name for name, entry in nets.items() if entry.polynomial]

# More shapes than a net's own small one: (name, arguments)
SHAPES: list[tuple[str, dict]] = [
    *((name, {}) for name in POLYNOMIAL),
    ("self-attention", {"depth": 1, "width": 3, "heads": 3, "tokens": 3}),
    ("self-attention", {"depth": 2, "width": 4, "heads": 2, "attention_width": 3, "features": 3, "tokens": 2}),
    ("self-attention", {"depth": 2, "width": 4, "embedding_rank": 2, "outputs": 2, "tokens": 5}),
    ("self-attention", {"depth": 3, "width": 2, "tokens": 2}),
    *(("degree-attention", {"degree": d, "depth": 1, "width": 3, "tokens": 3}) for d in (2, 4, 5, 6)),
    ("degree-attention", {"degree": 2, "depth": 3, "width": 2, "tokens": 3, "matrices": "d-1"}),
    ("degree-attention", {"degree": 4, "depth": 2, "width": 2, "tokens": 2, "attention_width": 1, "outputs": 3}),
    ("degree-attention", {"degrees": [3, 2], "width": 2, "tokens": 3, "matrices": "d+1"}),
    ("degree-attention", {"degrees": "3,5", "width": 2, "tokens": 4, "matrices": "d-1"}),
    ("polynomial-mlp", {"degrees": "2,4", "width": 3, "features": 5, "matrices": "d-1"}),
    ("polynomial-mlp", {"degrees": [5, 2], "width": 2, "features": 4, "matrices": "d+1"}),
    ("polynomial-mlp", {"degree": 2, "depth": 2, "width": 3, "features": 5, "embed": False, "matrices": "d+1"}),
    ("polynomial-mixer", {"degrees": "2,3", "channel_degree": 2, "width": 2, "tokens": 3, "matrices": "d-1"}),
    ("polynomial-mixer", {"degrees": "3,2", "width": 2, "tokens": 3, "matrices": "d+1"}),
    ("polynomial-mlp", {"degree": 3, "depth": 3, "width": 3, "features": 5, "outputs": 2}),
    ("polynomial-mixer", {"degree": 3, "channel_degree": 2, "depth": 2, "width": 2, "tokens": 3}),
    ("conv-circuit", {"tokens": 4, "width": 3, "features": 2}),
    ("recurrent-circuit", {"depth": 2, "tokens": 4, "width": 2, "features": 3, "outputs": 2}),
    ("recurrent-circuit", {"depth": 3, "tokens": 3, "width": 2}),
]


def described(case: object) -> str:
    return " ".join(f"{k}={v}" for k, v in case.items()) or "small" if isinstance(case, dict) else str(case)


def example(subject: Subject, batch: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    if subject.vocab:
        return torch.randint(subject.vocab, (batch, subject.sites), generator=generator)
    shape = (batch, subject.sites, subject.features) if subject.kind == "sequence" else (batch, subject.sites)
    return torch.randn(shape, generator=generator, dtype=dtype)


@pytest.fixture(params=ALL)
def subject(request) -> Subject:
    loaded = load(request.param)
    loaded.module.double()
    return loaded


def test_the_output_has_the_shape_of_the_contract(subject):
    for batch in (1, 3):
        shape = tuple(subject.module(example(subject, batch)).shape)
        assert shape[0] == batch
        if subject.kind == "sequence":
            assert len(shape) == 2 or shape[1] == subject.sites
            assert len(shape) in (2, 3)
        else:
            assert len(shape) == 2


@pytest.mark.parametrize("name", [n for n in ALL if "outputs" in nets[n].arguments])
def test_the_number_of_outputs_is_the_one_asked_for(name):
    asked = load(name, outputs=3)
    assert asked.module.double()(example(asked, 2)).shape[-1] == 3


def test_every_parameter_gets_a_gradient(subject):
    loss = subject.module(example(subject, 5)).square().sum()
    assert torch.isfinite(loss)
    loss.backward()
    for name, parameter in subject.module.named_parameters():
        assert parameter.grad is not None, f"{name} does not enter the output"
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().max() > 0, f"{name} has no influence"


def test_float32_gives_finite_numbers(subject):
    module = copy.deepcopy(subject.module).float()
    x = example(subject, 4, dtype=torch.float32)
    output = module(x)
    assert output.dtype == torch.float32
    assert torch.isfinite(output).all()


def test_an_input_does_not_see_the_rest_of_its_batch(subject):
    x = example(subject, 6)
    whole = subject.module(x)
    for i in range(6):
        torch.testing.assert_close(subject.module(x[i : i + 1])[0], whole[i], rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(subject.module(x.flip(0)).flip(0), whole, rtol=1e-9, atol=1e-12)


def test_the_input_is_not_changed(subject):
    x = example(subject, 3)
    before = x.clone()
    subject.module(x)
    assert torch.equal(x, before)


def test_an_ensemble_equals_its_members_one_by_one(subject):
    """Ensemble-pure: forward and gradient under vmap, three members with weights of their own."""
    members = [load(subject.name, seed=seed).module.double() for seed in range(3)]
    assert any(not torch.equal(*pair) for pair in zip(members[0].parameters(), members[1].parameters(), strict=True))
    x = torch.stack([example(subject, 4, seed) for seed in range(3)])
    parameters, buffers = torch.func.stack_module_state(members)
    skeleton = copy.deepcopy(members[0]).to("meta")

    def loss(weights, extra, inputs):
        return torch.func.functional_call(skeleton, (weights, extra), (inputs,)).square().sum()

    def output(weights, extra, inputs):
        return torch.func.functional_call(skeleton, (weights, extra), (inputs,))

    together = torch.func.vmap(output)(parameters, buffers, x)
    gradients = torch.func.vmap(torch.func.grad(loss))(parameters, buffers, x)
    for i, member in enumerate(members):
        alone = member(x[i])
        torch.testing.assert_close(together[i], alone, rtol=1e-9, atol=1e-12)
        alone.square().sum().backward()
        for name, parameter in member.named_parameters():
            torch.testing.assert_close(gradients[name][i], parameter.grad, rtol=1e-8, atol=1e-10)


def test_the_same_seed_builds_the_same_net_and_leaves_the_global_generator_alone(subject):
    before = torch.random.get_rng_state()
    first, second = (load(subject.name, seed=5).module.state_dict() for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("name", ALL)
def test_an_entry_describes_itself(name):
    entry = nets[name]
    assert entry.name == name
    assert entry.summary
    assert entry.kind in ("sequence", "vector")
    assert entry.version >= 1
    assert set(entry.defaults) <= set(entry.arguments)


@pytest.mark.parametrize(("name", "shape"), SHAPES, ids=described)
@pytest.mark.parametrize("p", [101, 8388593])
def test_over_the_field_equals_integers(name, shape, p):
    """Small whole weights and inputs, where float64 is exact; the same net over GF(p) must agree modulo p."""
    loaded = load(name, **shape)
    module, x, truth = whole_example(loaded)
    m = Modulus(p)
    weights = {n: FieldTensor(m.lift(w.detach()), m) for n, w in module.named_parameters()}
    with torch.no_grad():
        found = torch.func.functional_call(module, weights, (FieldTensor(m.lift(x), m),))
    assert isinstance(found, FieldTensor)
    assert found.shape == truth.shape
    assert torch.equal(m.canonical(found.residues), truth.to(torch.int64).remainder(p))


def whole_example(subject: Subject) -> tuple[torch.nn.Module, Tensor, Tensor]:
    """The net with whole weights, as dense as they can be with every number on the way below 2⁵³, input and output."""
    for density, attempt in itertools.product((1.0, 0.6, 0.3, 0.0), range(40)):
        generator = torch.Generator().manual_seed(attempt)
        module = copy.deepcopy(subject.module).double()
        with torch.no_grad():
            for parameter in module.parameters():
                draw = torch.tensor([-2.0, -1.0, 1.0, 2.0] if density == 1 else [-1.0, 1.0])
                values = draw[torch.randint(len(draw), parameter.shape, generator=generator)]
                keep = torch.rand(parameter.shape, generator=generator) < density
                one = torch.randint(parameter.shape[-1], parameter.shape[:-1], generator=generator)
                keep |= torch.nn.functional.one_hot(one, parameter.shape[-1]).bool()
                parameter.copy_(values * keep)
            shape = example(subject, 4).shape
            x = torch.tensor([-1.0, 1.0, 2.0], dtype=torch.float64)[torch.randint(3, shape, generator=generator)]
            truth = module(x)
            # With every sign positive no partial sum can be larger than the result.
            positive = copy.deepcopy(module)
            for parameter in positive.parameters():
                parameter.abs_()
            if float(positive(x.abs()).max()) < 2**53 and len(truth.unique()) > 3:
                return module, x, truth
    raise AssertionError("no whole weights of this net stay exact in float64: add a smaller shape")


@pytest.mark.parametrize(("name", "shape"), SHAPES, ids=described)
def test_the_degree_is_the_predicted_one(name, shape):
    loaded = load(name, **shape)
    if not isinstance(loaded.module, Predictable):
        pytest.skip("theory says nothing of this net")
    for partition in {Partition.left_right(loaded.sites), Partition.interleaved(loaded.sites)}:
        for token in {0, loaded.sites - 1} if loaded.kind == "sequence" else {0}:
            function = ScalarFunction.of(loaded, token)
            sample = FieldSample.make(function, partition, 3, 0, torch.device("cpu"))
            assert line_degree(sample) == loaded.module.predict(partition, token).degree


@pytest.mark.parametrize("name", [n for n in ALL if not nets[n].polynomial])
def test_a_net_that_is_not_polynomial_is_refused_over_the_field(name):
    """The registry's word is checked in both directions."""
    from theodolite.errors import NotPolynomial
    from theodolite.instruments.rank.exact import exact_rank

    with pytest.raises(NotPolynomial):
        exact_rank(load(name))
