"""What a user's net reads, a sequence or a vector: told by its constructor, else found by trying."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from theodolite.errors import BadInput
from theodolite.nets.failure import advice
from theodolite.nets.load import blueprint, load, seeded

Kind = Literal["sequence", "vector"]
Net = str | torch.nn.Module | Callable[..., Any]
_ROWS, _TOKENS, _FEATURES = 2, 6, 4


def kind_of(net: Net, given: Mapping[str, Any]) -> Kind:
    """A constructor that names `tokens` or `vocab` says that it reads sequences. Others are run on both.

    A linear layer runs on both: on a sequence it treats every token alone, which is how vectors in a batch are treated.
    So a net that runs on both is one of sequences only if its tokens meet there, and each has an output of its own, or
    all have the outputs that were asked for where a vector would lose their axis, or rows of a batch of vectors meet,
    taken for the tokens of one sequence.
    """
    plan = blueprint(net, **given)
    if plan.kind == "sequence":
        found = _Trial.of(net, given, sequence=True, vocab=plan.vocab)
        if found.output is None:
            raise BadInput(f"'{plan.name}' {found.why} on an input of shape {found.shape}: check its forward")
        return "sequence"
    sequence, vector = (_Trial.of(net, given, sequence=choice) for choice in (True, False))
    if sequence.output is None and vector.output is None:
        raise BadInput(
            f"'{plan.name}' runs on no input: it {sequence.why} on a sequence of shape {sequence.shape} and "
            f"{vector.why} on a vector of shape {vector.shape}: check its forward"
        )
    if sequence.output is None or vector.output is None:
        return "vector" if sequence.output is None else "sequence"
    each = sequence.output.dim() == 3
    pools = sequence.output.shape[1:] == (plan.shape.get("outputs", 1),) and vector.output.dim() == 1
    return "sequence" if sequence.meets and (each or pools or vector.meets) else "vector"


@dataclass(frozen=True)
class _Trial:
    """One forward pass: its output, or why there is none; `meets`: a change of a token, or of a row where vectors are
    read, is felt beyond its own place."""

    shape: tuple[int, ...]
    output: torch.Tensor | None
    why: str = ""
    meets: bool = False

    @classmethod
    def of(cls, net: Net, given: Mapping[str, Any], *, sequence: bool, vocab: int | None = None) -> _Trial:
        sizes = {"features": _FEATURES, **({"tokens": _TOKENS} if sequence else {}), **given}
        plan = blueprint(net, **sizes)
        module = load(net, **sizes).module  # one that cannot be built is refused here
        tokens = int(plan.shape.get("tokens", _TOKENS))
        with torch.no_grad(), seeded(0):
            if vocab is not None:
                x = torch.randint(vocab, (_ROWS, tokens))
            else:
                features = int(plan.shape.get("features", _FEATURES))
                x = torch.randn((_ROWS, tokens, features) if sequence else (_ROWS, features))
            shape = tuple(x.shape)
            try:
                output = module(x)
                if not isinstance(output, torch.Tensor):
                    return cls(shape, None, f"returned a {type(output).__name__} instead of one tensor")
                least = 2 if sequence else 1  # one number for a vector needs no axis of its own
                most = x.dim() + (vocab is not None)
                if not least <= output.dim() <= most or output.shape[0] != _ROWS:
                    return cls(shape, None, f"returned the shape {tuple(output.shape)}")
                return cls(shape, output, meets=(_meets if sequence else _rows_meet)(module, x, output))
            except Exception as error:
                lines = str(error).strip().splitlines()
                hint = f"; {told}" if (told := advice(error)) else ""
                return cls(shape, None, f"failed ({type(error).__name__}: {lines[0] if lines else ''}{hint})")


def _rows_meet(module: torch.nn.Module, x: torch.Tensor, output: torch.Tensor) -> bool:
    changed = x.clone()
    changed[0] += 1.0
    return not torch.allclose(module(changed)[1:], output[1:], rtol=1e-4, atol=1e-6)  # rounding may differ in a batch


def _meets(module: torch.nn.Module, x: torch.Tensor, output: torch.Tensor) -> bool:
    if x.dim() != 3 or (output.dim() == 2 and output.shape != x.shape[:2]):
        return True
    changed = x.clone()
    changed[:, 2] += 1.0
    others = [token for token in range(x.shape[1]) if token != 2]
    return not torch.equal(module(changed)[:, others], output[:, others])
