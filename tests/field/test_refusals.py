"""What a field tensor refuses: an operation that is not polynomial, and every way out of the field."""

# pyright: reportAttributeAccessIssue=false

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.each import each
from theodolite.errors import BadInput, NotPolynomial
from theodolite.field import FieldTensor, Modulus, draw_residues

M = Modulus(8388593)


def field(*shape: int, m: Modulus = M, name: str = "x") -> FieldTensor:
    return FieldTensor(draw_residues(name, shape, m), m)


def write(target: torch.Tensor, place, value) -> None:
    target[place] = value


NOT_POLYNOMIAL = {
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "relu": lambda x: F.relu(x),
    "gelu": lambda x: F.gelu(x),
    "silu": lambda x: F.silu(x),
    "sigmoid": lambda x: x.sigmoid(),
    "tanh": lambda x: x.tanh(),
    "exp": lambda x: x.exp(),
    "log": lambda x: x.log(),
    "sin": lambda x: torch.sin(x),
    "sqrt": lambda x: x.sqrt(),
    "rsqrt": lambda x: x.rsqrt(),
    "abs": lambda x: abs(x),
    "sign": lambda x: x.sign(),
    "reciprocal": lambda x: 1 / x,
    "floor": lambda x: x.floor(),
    "round": lambda x: x.round(),
    "floor_divide": lambda x: x // 2,
    "remainder": lambda x: x % 2,
    "clamp": lambda x: x.clamp(0, 1),
    "maximum": lambda x: torch.maximum(x, x),
    "max": lambda x: x.max(),
    "argmax": lambda x: x.argmax(),
    "sort": lambda x: x.sort(),
    "topk": lambda x: x.topk(1),
    "std": lambda x: x.std(),
    "var": lambda x: x.var(),
    "norm": lambda x: x.norm(),
    "gt": lambda x: x > 0,
    "eq": lambda x: x == x,
    "ne": lambda x: x != 0,
    "equal": lambda x: torch.equal(x, x),
    "nonzero": lambda x: x.nonzero(),
    "isnan": lambda x: x.isnan(),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "batch_norm": lambda x: F.batch_norm(x, torch.zeros(4), torch.ones(4)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "max_pool": lambda x: F.max_pool1d(x[None], 2),
    "cdist": lambda x: torch.cdist(x, x),
    "rand_like": lambda x: torch.rand_like(x),
    "bernoulli": lambda x: torch.bernoulli(x),
    "dropout": lambda x: F.dropout(x, 0.5, training=True),
    "inverse": lambda x: torch.linalg.inv(x[:3, :3]),
    "pow": lambda x: x**0.5,
    "softmax|scaled_dot_product": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
}


@each("name", NOT_POLYNOMIAL)
def test_an_operation_that_is_not_polynomial_is_refused_by_name(name):
    message = {"dropout": "bernoulli|native_dropout|dropout|rand|empty", "inverse": "inv"}.get(name, name)
    with pytest.raises(NotPolynomial, match=f"'.*({message}).*'.*epsilon"):
        NOT_POLYNOMIAL[name](field(3, 4))


@pytest.mark.parametrize("exponent", [0.5, -1, -2.0, 1.5, torch.tensor(2.0), torch.tensor(2)])
def test_powers_that_are_not_polynomial(exponent):
    with pytest.raises(NotPolynomial, match="pow"):
        field(3) ** exponent
    with pytest.raises(NotPolynomial, match="pow"):
        2 ** field(3)


@pytest.mark.parametrize(
    "divide",
    [
        lambda x: x / x,
        lambda x: torch.ones(3, 4) / x,
        lambda x: x.div(2, rounding_mode="floor"),
        lambda x: x.div(torch.tensor(2.0), rounding_mode="trunc"),
        lambda x: torch.true_divide(x, x),
        lambda x: x.clone().div_(x),
    ],
    ids=["field", "constant by field", "floor", "trunc by a tensor", "true_divide", "in place"],
)
def test_divisions_that_are_not_polynomial(divide):
    with pytest.raises(NotPolynomial, match="div"):
        divide(field(3, 4))


def test_dividing_by_zero_is_refused():
    for zero in (0, 0.0, M.p, torch.tensor([1.0, 0.0]), torch.tensor([1, M.p])):
        with pytest.raises(BadInput, match="another prime"):
            field(3, 2) / zero


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
def test_infinite_constants_are_refused(bad):
    x, mask = field(2, 2), torch.tensor([True, False])
    for use in (
        lambda: x + bad,
        lambda: x * torch.tensor(bad),
        lambda: x.masked_fill(mask, bad),
        lambda: torch.where(mask, x, bad),
        lambda: F.pad(x, (1, 1), value=bad),
        lambda: torch.cat([x, torch.full((1, 2), bad)]),
    ):
        with pytest.raises(BadInput, match="no residue"):
            use()


def test_a_complex_constant_is_refused():
    with pytest.raises(BadInput, match="complex"):
        field(2) * torch.tensor(1j)
    with pytest.raises(BadInput):
        field(2) * 1j


LEAVING = {
    "item": lambda x: x.item(),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "numpy force": lambda x: x.numpy(force=True),
    "asarray": lambda x: np.asarray(x),
    "numpy function": lambda x: np.sin(x),
    "float": lambda x: float(x),
    "int": lambda x: int(x),
    "bool": lambda x: bool(x),
    "if": lambda x: 1 if x else 0,
    "index": lambda x: [1, 2, 3][x],
    "complex": lambda x: complex(x),
    "contains": lambda x: 1.0 in x[None],
    "data_ptr": lambda x: x.data_ptr(),
    "storage": lambda x: x.untyped_storage(),
    "torch.tensor": lambda x: torch.tensor([x, x]),
    "torch.full": lambda x: torch.full((2,), x),
    "arange": lambda x: torch.arange(0, x),
    "apply_": lambda x: x.clone().apply_(lambda v: v),
    "map_": lambda x: x.clone().map_(x, lambda v, w: v),
    "long": lambda x: x.long(),
    "to bool": lambda x: x.bool(),
    "type": lambda x: x.type(torch.int32),
    "to complex": lambda x: x.to(torch.complex128),
    "bits": lambda x: x[None].view(torch.int64),
    "bits of float32": lambda x: x[None].view(torch.float32),
    "sum to integers": lambda x: x.sum(dtype=torch.int64),
    "prod to integers": lambda x: x[None].prod(0, dtype=torch.int64),
    "cumsum to integers": lambda x: x[None].cumsum(0, dtype=torch.int64),
    "mean to integers": lambda x: x.to(torch.float64).mean(dtype=torch.int64),
    "dlpack": lambda x: torch.from_dlpack(x),
}


@each("name", LEAVING)
def test_no_way_out_of_the_field(name):
    with pytest.raises(NotPolynomial):
        LEAVING[name](field())


WRITES = {
    "slice": lambda plain, x: write(plain, 0, x[0]),
    "entry": lambda plain, x: write(plain, (0, 0), x[0, 0]),
    "list": lambda plain, x: write(plain, [0, 1], x[:2]),
    "mask": lambda plain, x: write(plain, plain == 0, x[0, 0]),
    "copy_": lambda plain, x: plain.copy_(x),
    "add_": lambda plain, x: plain.add_(x),
    "mul_": lambda plain, x: plain.mul_(x),
    "fill_": lambda plain, x: plain.fill_(x[0, 0]),
    "masked_fill_": lambda plain, x: plain.masked_fill_(plain == 0, x[0, 0]),
    "addmm_": lambda plain, x: plain.addmm_(x[:, :3], x),
    "index_add_": lambda plain, x: plain.index_add_(0, torch.tensor([0]), x[:1]),
    "scatter_": lambda plain, x: plain.scatter_(0, torch.zeros(1, 4, dtype=torch.int64), x[:1]),
    "out": lambda plain, x: torch.add(x, x, out=plain),
    "out of matmul": lambda plain, x: torch.matmul(x[:, :3], x, out=plain),
    "out of stack": lambda plain, x: torch.stack([x[0], x[1], x[2]], out=plain),
}


@each("name", WRITES)
def test_nothing_is_written_into_an_ordinary_tensor(name):
    plain = torch.zeros(3, 4, dtype=torch.float64)
    with pytest.raises(NotPolynomial, match="ordinary tensor"):
        WRITES[name](plain, field(3, 4))
    assert not plain.any()


def test_two_primes_do_not_meet():
    x, y = field(2, 2), field(2, 2, m=Modulus(101))
    for meet in (
        lambda: x + y,
        lambda: x @ y,
        lambda: torch.cat([x, y]),
        lambda: torch.addcmul(x, x, y),
        lambda: x.copy_(y),
        lambda: F.linear(x, x, y[0]),
    ):
        with pytest.raises(NotPolynomial, match=r"101.*8388593"):
            meet()


@pytest.mark.parametrize(
    ("module", "named"),
    [
        (lambda: nn.LSTM(4, 4, batch_first=True), "sigmoid|tanh|lstm"),
        (lambda: nn.GRU(4, 4, batch_first=True), "sigmoid|tanh|gru"),
        (lambda: nn.MultiheadAttention(4, 2, batch_first=True), "softmax|attention"),
        (lambda: nn.TransformerEncoderLayer(4, 2, batch_first=True), "layer_norm|softmax|attention"),
        (lambda: nn.BatchNorm1d(3), "batch_norm"),
        (lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU()), "relu"),
        (lambda: nn.Softmax(-1), "softmax"),
        (lambda: nn.ConvTranspose1d(3, 2, 2), "transposed"),
    ],
    ids=["LSTM", "GRU", "MultiheadAttention", "TransformerEncoderLayer", "BatchNorm", "ReLU", "Softmax", "Transposed"],
)
def test_modules_of_torch_that_are_not_polynomial(module, named):
    """With their weights drawn from the field, as a measurement calls them."""
    net = module().eval()
    weights = {name: field(*w.shape, name=name) for name, w in net.named_parameters()}
    x = field(2, 3, 4)
    inputs = (x, x, x) if isinstance(net, nn.MultiheadAttention) else (x,)
    with torch.no_grad(), pytest.raises(NotPolynomial, match=named):
        torch.func.functional_call(net, weights, inputs)


def test_supported_operations_that_sum_over_a_batch_are_right_or_refused():
    """addbmm adds over the batch; a version that does not would return another shape in silence."""
    c, x, y = field(3, 2), field(4, 3, 5), field(4, 5, 2, name="y")
    try:
        found = torch.addbmm(c, x, y)
    except NotPolynomial:
        return
    assert torch.equal(M.canonical(found.residues), M.canonical((c + (x @ y).sum(0)).residues))
