"""What a net is to the rest of the package: an `nn.Module`, an entry in the registry, and what theory says of it.

Sequences map (batch, token, feature) to (batch, token, output), or to (batch, output) where the net pools its tokens;
vectors map (batch, feature) to (batch, output). A factory takes `features`, `outputs`, `tokens` and shape arguments.

A sequence net that is trained (all that are not polynomial) is called as `forward(x, present=None)`: `present`, of
(batch, token), is true where a token is real. Padding stands on the right and never affects a real token's output.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from torch import nn

from theodolite.errors import BadInput
from theodolite.notebook import Entries
from theodolite.partition import Partition
from theodolite.registry import Registry, unknown
from theodolite.theory.sensitivity import InfluenceLaw

# Names other libraries and authors use for the same argument.
_SPELLINGS = {
    "width": "hidden_size d_model n_embd n_embed dim model_dim dim_model hidden hidden_dim d_hidden embed_dim emb_dim "
    "embedding_dim embed_size emb_size nhid ninp channels",
    "depth": "num_hidden_layers n_layer num_layers n_layers nlayers num_blocks n_blocks n_block",
    "heads": "num_attention_heads n_head num_heads n_heads nhead nheads",
    "attention_width": "head_dim d_kv d_head dim_head head_size",
    "embedding_rank": "embedding_size",
    "vocab": "vocab_size n_vocab vocabulary_size num_tokens ntoken ntokens n_token num_embeddings alphabet_size",
    "tokens": "seq_len n_positions seq_length sequence_length max_seq_len max_seq_length max_len max_length block_size "
    "context_length context_size ctx_len n_ctx max_position_embeddings l_max",
    "features": "input_size input_dim input_features in_features in_dim in_size in_channels dim_in d_in d_input "
    "n_features num_features n_inputs num_inputs n_in",
    "outputs": "num_classes num_class n_classes n_class nclass num_labels output_size output_dim output_features "
    "out_features out_dim out_size out_channels dim_out d_out d_output n_outputs num_outputs num_targets n_out",
}
ALIASES = {alias: name for name, spelt in _SPELLINGS.items() for alias in spelt.split()}

LISTS = ("degrees",)
"""Arguments that are a list of numbers, one per block: `[3, 2]`, or the text `3,2`."""


@dataclass(frozen=True)
class Prediction:
    """What theory says of the separation rank of one output entry, for almost all weights.

    `cap` holds for all weights and is proven; `lower` and `upper` are published bounds; `reason` says which, or why
    there is none. `degree` is the total degree in the inputs, `weight_degree` that in the weights; `coefficients_log2`
    the logarithm of the sum of all coefficients of the output, a polynomial in both with whole coefficients.
    """

    degree: int
    cap: int | None
    lower: int | None = None
    upper: int | None = None
    reason: str = "no published bound covers this network"
    weight_degree: int | None = None
    coefficients_log2: float | None = None


@runtime_checkable
class Predictable(Protocol):
    """A net that theory speaks of; `token` is the one whose output is read."""

    def predict(self, partition: Partition, token: int) -> Prediction: ...


@dataclass(frozen=True)
class Symmetry:
    """Whether a net of this architecture commutes with a group that acts on its tokens, for almost all weights."""

    holds: bool
    reason: str


@runtime_checkable
class Symmetrical(Protocol):
    """A net that says which groups it is equivariant under: translation, permutation, time-shift."""

    def symmetries(self) -> Mapping[str, Symmetry]: ...


@runtime_checkable
class Influenced(Protocol):
    """A net of which theory says how far one changed symbol moves the output."""

    def influence(self) -> InfluenceLaw: ...


@runtime_checkable
class Arrival(Protocol):
    """How a batch of inputs arrives at its fixed points: the share of them that do."""

    @property
    def share(self) -> float: ...


@runtime_checkable
class Converging(Protocol):
    """A net that solves for a fixed point, and may fail to."""

    def convergence(self, x: Any, present: Any = None) -> Arrival: ...


@runtime_checkable
class Pondering(Protocol):
    """A net that decides for every token how many steps it takes."""

    def steps_taken(self, x: Any, present: Any = None) -> Any: ...


@dataclass(frozen=True)
class NetEntry:
    """A registered architecture. `version` changes whenever the function it computes does."""

    name: str
    factory: Callable[..., nn.Module]
    summary: str
    kind: Literal["sequence", "vector"]
    polynomial: bool
    version: int = 1
    defaults: Mapping[str, Any] = field(default_factory=dict)  # shape of a small net to measure

    @property
    def arguments(self) -> dict[str, Any]:
        """Argument names with the values used when they are not given."""
        known = inspect.signature(self.factory).parameters
        return {n: self.defaults.get(n, None if p.default is p.empty else p.default) for n, p in known.items()}

    def build(self, **shape: Any) -> nn.Module:
        return self.factory(**{**self.defaults, **canonical_arguments(self.name, shape, self.arguments)})


nets: Registry[NetEntry] = Registry("net")
Factory = TypeVar("Factory", bound=Callable[..., nn.Module])


def list_nets() -> Entries[dict[str, Any]]:
    """Every registered net: name, kind, whether it is polynomial, its arguments with defaults, one line.

    Examples:
        >>> [net["name"] for net in list_nets() if net["name"].startswith("l")]
        ['linear-transformer', 'lstm']
    """
    found = [
        {
            "name": name,
            "kind": entry.kind,
            "polynomial": entry.polynomial,
            "arguments": entry.arguments,
            "summary": entry.summary,
            "version": entry.version,
        }
        for name, entry in sorted(nets.items())
    ]
    return Entries("nets", found)


def register(name: str, summary: str, **entry: Any) -> Callable[[Factory], Factory]:
    """Decorator of a class or a function that builds a net: `@register(name, summary, kind=…, polynomial=…)`."""

    def add(factory: Factory) -> Factory:
        nets.add(name, NetEntry(name, factory, summary, **entry))
        return factory

    return add


def register_trained(name: str, summary: str, version: int = 1, **changed: Any) -> Callable[[Factory], Factory]:
    """Decorator of a sequence net that is trained; `changed` are arguments of its small net that are not its own."""
    defaults = {"features": 4, "tokens": 8, **changed}
    return register(name, summary, kind="sequence", polynomial=False, version=version, defaults=defaults)


def canonical_arguments(net: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Aliases resolved, unknown arguments refused with the near name."""
    result: dict[str, Any] = {}
    for name, value in given.items():
        target = name if name in known else ALIASES.get(name, name)
        if target not in known:
            raise BadInput(f"for the net '{net}': {unknown('argument', name, known)}")
        if target in result:
            raise BadInput(f"for the net '{net}': '{target}' is given twice (as '{name}' too): give it once")
        result[target] = value
    return result


def positive(**sizes: int) -> None:
    """Refuse sizes below 1."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise BadInput(f"{name.replace('_', ' ')} must be a whole number of at least 1, not {size!r}")


def number_list(name: str, value: object) -> tuple[int | float, ...]:
    """The numbers of a list, of a text such as `3,2`, or of one number alone; whole numbers are integers."""
    given: object = value
    if isinstance(value, str):
        given = value.split(",")
    elif isinstance(value, int | float):
        given = [value]
    if not isinstance(given, Sequence) or not given:
        raise BadInput(f"{name} must be numbers with commas between them, such as 3,2, not {value!r}")
    return tuple(_number(name, part, value) for part in given)


def _number(name: str, part: object, value: object) -> int | float:
    try:
        found = float(part) if isinstance(part, int | float | str) and not isinstance(part, bool) else math.nan
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise BadInput(f"{name} must be numbers with commas between them, such as 3,2, not {value!r}")
    return int(found) if found.is_integer() else found


def choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse what is not one of the choices."""
    if value not in choices:
        listed = f"{', '.join(choices[:-1])} or {choices[-1]}"
        raise BadInput(f"{name.replace('_', ' ')} must be {listed}, not {value!r}")
