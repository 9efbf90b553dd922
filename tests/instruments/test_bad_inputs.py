"""What a measurement refuses, in a sentence that names the fault and says what to do."""

import pytest
import torch
from torch import nn

from tests.each import each
from theodolite import device as device_module
from theodolite.device import resolve_device
from theodolite.errors import BadInput, NotEnoughMemory, NotPolynomial
from theodolite.instruments.gradient.example_gradients import example_gradients
from theodolite.instruments.rank.separation import separation_rank
from theodolite.partition import Partition

SMALL = {"depth": 1, "width": 2, "tokens": 4}


class Returning(nn.Module):
    """A net that answers with whatever it was told to."""

    def __init__(self, answer) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, x):
        return self.answer(x)


BAD_OUTPUTS = {
    "a tuple": (lambda x: (1, None), "2 outputs as a tuple"),
    "a list": (lambda x: ["y", x.shape, 1], "3 outputs as a list"),
    "a dict": (lambda x: {"y": 1}, "1 outputs as a dict"),
    "nothing": (lambda x: None, "NoneType"),
    "a constant": (lambda x: torch.zeros(x.shape[0], 1), "not a tensor computed from its input|0 at every drawn point"),
    "no batch": (lambda x: x.sum(), "must return"),
    "batch last": (lambda x: x.flatten(1).T, "must return|output entry"),
    "four dimensions": (lambda x: x[:, :, None, None], "must return"),
    "an error": (lambda x: x @ torch.zeros(99, 1, dtype=torch.float64), "failed on an input of shape"),
    "no index": (lambda x: x[:, 77], "failed on an input of shape.*IndexError"),
}


@each("name", BAD_OUTPUTS)
@each("mode", ["exact", "epsilon", "grid"])
def test_a_module_that_does_not_return_one_tensor_of_the_right_shape(name, mode):
    answer, message = BAD_OUTPUTS[name]
    with pytest.raises(BadInput, match=message):
        separation_rank(Returning(answer), mode=mode, features=4)


def test_complex_outputs_are_refused_and_not_cut_to_real_ones():
    complex_net = lambda x: x[:, :1] * (1 + 1j)
    measured = (
        lambda: separation_rank(Returning(complex_net), mode="epsilon", features=4),
        lambda: example_gradients(nn.Sequential(nn.Linear(4, 1), Returning(complex_net)), torch.randn(8, 4), "a net"),
    )
    for measure in measured:
        with pytest.raises(BadInput, match="returns complex numbers: return real ones"):
            measure()


def test_a_sequence_with_the_wrong_number_of_tokens():
    with pytest.raises(BadInput, match=r"\(batch, token, output\)"):
        separation_rank(Returning(lambda x: x[:, 1:]), features=2, tokens=4)


@pytest.mark.parametrize("mode", ["exact", "epsilon", "grid"])
def test_outputs_of_every_allowed_shape(mode):
    square = lambda x: x[:, 0] * x[:, 1]
    for answer in (square, lambda x: square(x)[:, None], lambda x: torch.stack([square(x), x[:, 0]], 1)):
        assert separation_rank(Returning(answer), mode=mode, features=2, **_few(mode)).rank == 1
    token = lambda x: x * x.sum(1, keepdim=True)
    assert separation_rank(Returning(token), mode=mode, features=1, tokens=2, **_few(mode)).rank == 2


def _few(mode: str) -> dict:
    return {"exact": {"max_points": 80}, "epsilon": {"points": 16}, "grid": {"templates": 3}}[mode]


@each(
    ("partition", "message"),
    [
        ("0,1|1,2,3", "site 1 twice"),
        ("0,0|1,2,3", "site 0 twice"),
        ("0|1,3", "2 is missing|every site"),
        ("0,1|2", "3 sites and the input has 4"),
        ("0,1|2,3,4", "site 4"),
        ("0,1,2,3|", "not a site|both sides"),
        ("0-3|", "not a site|both sides"),
        ("0,1;2,3", "two lists"),
        ("0|1|2,3", "two lists"),
        ("a,b|c,d", "'a'"),
        ("0,1|-2,3", "-2"),
        ("leftright", "left-right"),
        (Partition((0,), (1,)), "2 sites and the input has 4"),
    ],
)
@each("mode", ["exact", "epsilon", "grid"])
def test_partitions_that_do_not_fit(partition, message, mode):
    with pytest.raises(BadInput, match=message):
        separation_rank("self-attention", mode=mode, partition=partition, **SMALL)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_nan_and_infinity_are_refused(bad):
    with pytest.raises(BadInput, match="NaN or infinity"):
        separation_rank(Returning(lambda x: x[:, 0] * bad), mode="epsilon", features=4, points=16)
    with pytest.raises(BadInput, match="no residue"):
        separation_rank(Returning(lambda x: x[:, 0] * bad), features=4)

    class Broken(nn.Module):
        def __init__(self, features: int) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.full((features,), bad))

        def forward(self, x):
            return x @ self.w

    with pytest.raises(BadInput, match="infinite or NaN"):
        separation_rank(Broken, weights="own", features=4)


BATCHY = {
    "mean": lambda x: (x - x.mean(0, keepdim=True)).prod(1),
    "neighbour": lambda x: x.roll(1, 0).prod(1),
    "order": lambda x: x.prod(1) * torch.arange(1, x.shape[0] + 1, dtype=torch.float64),
    "first": lambda x: x.prod(1) * x[:1, 0],
    "size": lambda x: x.prod(1) * x.shape[0],
    "a little by size": lambda x: x.prod(1) + min(x.shape[0] - 1, 1),
    "a little by order": lambda x: x.prod(1) + torch.arange(x.shape[0], dtype=torch.float64) % 2,
    "random": lambda x: x.prod(1) * torch.randint(1, 99, (x.shape[0],)),
}


@each("name", BATCHY)
@each("mode", ["exact", "epsilon", "grid"])
def test_an_output_that_depends_on_the_batch_is_refused(name, mode):
    with pytest.raises(BadInput, match="different outputs in different batches"):
        separation_rank(Returning(BATCHY[name]), mode=mode, features=4)


@pytest.mark.parametrize(
    ("answer", "operation"),
    [
        (lambda x: x.softmax(-1), "softmax"),
        (lambda x: torch.relu(x), "relu"),
        (lambda x: x / (1 + x**2), "div"),
        (lambda x: x * float(x.sum()), "__float__"),
        (lambda x: x if x.sum() > 0 else -x, "gt"),
        (lambda x: torch.nn.functional.layer_norm(x, x.shape[1:]), "layer_norm"),
    ],
)
def test_exact_mode_names_the_operation_and_the_way_out(answer, operation):
    with pytest.raises(NotPolynomial, match=f"'{operation}'.*epsilon"):
        separation_rank(Returning(answer), features=4)


def test_a_transformer_in_exact_mode_is_pointed_to_epsilon():
    for name in ("transformer", "lstm", "mlp"):
        with pytest.raises(NotPolynomial, match="--mode epsilon"):
            separation_rank(name)


@pytest.mark.parametrize(
    ("prime", "message"), [(15, "not prime"), (2**31 - 1, "too large"), (0, "not prime"), (-7, "not prime")]
)
@pytest.mark.parametrize("mode", ["exact", "grid"])
def test_primes_that_cannot_be_used(prime, message, mode):
    with pytest.raises(BadInput, match=message):
        separation_rank("self-attention", mode=mode, prime=prime, **SMALL)


@pytest.mark.parametrize("option", ["points", "max_points", "repeats"])
@pytest.mark.parametrize("value", [0, -5])
def test_counts_below_one_are_refused(option, value):
    with pytest.raises(BadInput, match="at least 1"):
        separation_rank("self-attention", **{option: value}, **SMALL)


@each(
    ("arguments", "message"),
    [
        ({"token": 4}, "tokens run from 0 to 3"),
        ({"token": -1}, "tokens run from 0 to 3"),
        ({"entry": 2}, "2 outputs, counted from 0"),
        ({"entry": -1}, "counted from 0"),
        ({"mode": "exactly"}, "exact, epsilon or grid"),
        ({"weights": "mine"}, "drawn, own"),
        ({"epsilon": 0.1}, "--epsilon belongs to --mode epsilon"),
        ({"inputs": "normal"}, "--inputs belongs to --mode epsilon"),
        ({"dtype": "float32"}, "--dtype belongs to --mode epsilon"),
        ({"templates": 3}, "--templates belongs to --mode grid"),
        ({"mode": "grid", "certificate": True}, "--certificate belongs to --mode exact"),
        ({"mode": "grid", "max_points": 4}, "--max-points belongs to --mode exact"),
        ({"mode": "grid", "points": 4}, "--templates"),
        ({"mode": "epsilon", "templates": 4}, "--templates belongs to --mode grid"),
        ({"heads": 3}, "3 heads do not divide width 2"),
        ({"tokens": 1}, "at least 2 sites"),
        ({"widht": 3}, "'width'"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"device": "tpu"}, "device 'tpu'|cpu or cuda"),
        ({"device": "mps"}, "cpu or cuda"),
    ],
)
def test_options_that_do_not_fit(arguments, message):
    with pytest.raises(BadInput, match=message):
        separation_rank("self-attention", **{**SMALL, **arguments})


def test_a_token_of_a_vector_is_refused():
    with pytest.raises(BadInput, match="tokens run from 0 to 0"):
        separation_rank("polynomial-mlp", token=1)


def test_memory_that_is_not_there_is_counted(monkeypatch):
    monkeypatch.setattr(device_module, "free_bytes", lambda device: 2 << 30)
    with pytest.raises(NotEnoughMemory, match=r"needs 7\.5 GiB and 2\.0 GiB are free on cpu.*fewer points"):
        separation_rank("self-attention", points=31_623, **SMALL)
    with pytest.raises(NotEnoughMemory, match=r"GiB.*2\.0 GiB are free"):
        separation_rank("self-attention", mode="epsilon", points=20_000, **SMALL)
    assert separation_rank("self-attention", points=80, **SMALL).rank > 0


def test_free_memory_is_a_plausible_number():
    assert 1 << 20 < device_module.free_bytes(torch.device("cpu")) < 1 << 45


def test_devices():
    assert resolve_device("cpu") == torch.device("cpu")
    if torch.cuda.is_available():
        assert resolve_device("cuda").type == "cuda"
        with pytest.raises(BadInput, match="CUDA devices"):
            resolve_device("cuda:99")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("mode", ["exact", "epsilon", "grid"])
def test_cuda_that_is_absent_is_never_replaced(mode):
    with pytest.raises(BadInput, match="no CUDA device: use --device cpu"):
        separation_rank("self-attention", mode=mode, device="cuda", **SMALL)
