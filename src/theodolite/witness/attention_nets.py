"""The architecture `soft-attention`: softmax attention whose places are i/n, or whose logits grow with the length.

Neither is in reach of the registered Transformers. `epsilon` asks for a layer norm with that ε (see `soft_attention`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from theodolite.errors import BadInput
from theodolite.tasks.boolean import Boolean
from theodolite.tasks.contract import Task
from theodolite.tasks.dyck import Dyck
from theodolite.tasks.parity import Parity
from theodolite.tasks.parity_check import ParityCheck
from theodolite.witness.contract import Witness, constructs
from theodolite.witness.dyck_attention import DyckAttention
from theodolite.witness.soft_attention import EncoderLayer, SoftAttention

ARGUMENTS = ("epsilon",)
_CHIANG = "Chiang and Cholak 2022, Overcoming a theoretical limitation of self-attention"
_YAO = (
    "Yao, Peng, Papadimitriou and Narasimhan 2021, Self-attention networks can process bounded hierarchical languages"
)
_NAMES: Mapping[str, str] = {
    "parity": "uniform attention counts the ones, the marker asks whether that many is an even or an odd place",
    "first": "attention that prefers the first place",
}

# Said where a registered net has no witness: what is known beside it.
REMARKS: Mapping[tuple[str, str], str] = {
    ("transformer", "parity-check"): (
        "outside of the registered nets there are exact weights, with places i/n (--net soft-attention), "
        "but their cross-entropy tends to chance as strings grow"
    ),
    ("transformer", "dyck"): (
        "outside of the registered nets there are exact weights (--net soft-attention), with logits that grow with the "
        "length"
    ),
}


class AtMarker(nn.Module):
    """Bits and a marker, one-hot, as `parity-check` gives them; the logit of "one" is said at the marker."""

    def __init__(self, net: SoftAttention) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Float[Tensor, "batch token 3"]) -> Float[Tensor, "batch token 2"]:
        said = x.new_zeros(*x.shape[:2], 2)
        said[:, -1, 1] = self.net(x[:, :-1].argmax(dim=-1)).to(x.dtype)
        return said


class OfSigns(nn.Module):
    """Signs, −1 for a true bit, as the tasks on vectors give them; a true answer is negative."""

    def __init__(self, net: SoftAttention) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Float[Tensor, "batch bit"]) -> Float[Tensor, "batch 1"]:
        return -self.net((x < 0).long()).unsqueeze(-1).to(x.dtype)


@constructs("soft-attention")
def parity_and_first(task: Task, shape: Mapping[str, Any]) -> Witness | None:
    epsilon = _epsilon(shape)
    given: Any = task  # its fields are those of its own kind
    if isinstance(task, ParityCheck):
        net = SoftAttention("parity", epsilon)
        module: nn.Module = AtMarker(net)
    elif isinstance(task, Parity) and given.relevant == given.bits:
        net = SoftAttention("parity", epsilon)
        module = OfSigns(net)
    elif isinstance(task, Boolean) and given.function == "first":
        net = SoftAttention("first", epsilon)
        module = OfSigns(net)
    else:
        return None
    units = sum(map(_nonlinear, (net.first, net.second)))
    return Witness(_NAMES[net.language], module, _CHIANG, units, depth=2, shape=dict(shape), predicted={"depth": 2})


@constructs("soft-attention")
def brackets(task: Task, shape: Mapping[str, Any]) -> Witness | None:
    if not isinstance(task, Dyck) or shape:
        return None
    given: Any = task
    assert task.spec.lengths is not None
    net = DyckAttention.exact(given.types, given.depth, task.spec.lengths[1])
    name = "attention to the latest opening bracket of the present depth"
    return Witness(name, net, _YAO, units=2, depth=2, predicted={"depth": 2})  # a layer norm, and a softmax


def _nonlinear(layer: EncoderLayer) -> int:
    """ReLUs that read something, heads that are not uniform, and the two norms where there are any."""
    relus, heads = (int(part.any(dim=1).sum()) for part in (layer.inner, layer.query))
    return relus + heads + (0 if layer.epsilon is None else 2)


def _epsilon(shape: Mapping[str, Any]) -> float | None:
    epsilon = shape.get("epsilon")
    if epsilon is not None and (isinstance(epsilon, bool | str) or not epsilon >= 0):
        raise BadInput(f"epsilon, the ε of the layer norms, is 0 or more, such as 1e-5, not {epsilon!r}")
    return epsilon
