"""A net beside a task: how its members are built and fed, or the reason why the two do not fit."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.utils._python_dispatch import TorchDispatchMode

from theodolite.errors import BadInput, NotApplicable, TheodoliteError
from theodolite.nets import fingerprint
from theodolite.nets.contract import nets
from theodolite.nets.failure import advice
from theodolite.nets.load import Blueprint, blueprint, seeded
from theodolite.nets.own_net import SIZES, meaning
from theodolite.nets.parts.as_vector import AsVector
from theodolite.nets.real_outputs import real
from theodolite.tasks.contract import Batch, Task

_ROWS = 3  # of the trial input


@dataclass(frozen=True)
class Pairing:
    """One net on one task. `reads_ids`: it gets integer ids, not one-hot features. `takes_present`: its forward has
    that argument. `pads`: right padding was seen not to change its outputs, so lengths can share a batch.
    `most`: the tokens it was built for. `token_by_token`: batched, it does more operations for more tokens, as
    recurrent nets do. `source`: which code a user's net is. `read_as`: how a user's net is called where that is not
    plain; `assumed`: what nobody said of it."""

    name: str
    task: Task
    build: Callable[[int], nn.Module]
    shape: Mapping[str, Any]
    source: str | None
    version: int
    reads_ids: bool
    takes_present: bool
    pads: bool
    token_by_token: bool
    registered: bool
    most: int = 1
    read_as: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    def feed(self, inputs: Tensor, one_hot: Tensor | None) -> Tensor:
        """What the net reads, from what the task gives; `one_hot` is the identity matrix of the vocabulary."""
        return inputs if self.reads_ids or one_hot is None else nn.functional.embedding(inputs, one_hot)

    def one_hot(self, device: torch.device) -> Tensor | None:
        vocab = self.task.spec.vocab
        return None if vocab is None or self.reads_ids else torch.eye(vocab, device=device)


def pair(
    net: str | Callable[..., Any], task: Task, shape: Mapping[str, Any] | None = None, longest: int | None = None
) -> Pairing:
    """Build once, run once at the shortest and the longest length, and see what comes out.

    A net that reads tokens takes a task's vector entry by entry and answers at the last (`AsVector`).

    `longest` is the greatest length that will be evaluated, the task's own in training unless given. Raises
    `NotApplicable` where a built-in net does not fit the task, `BadInput` where a user's net breaks the contract.
    """
    if isinstance(net, nn.Module):
        raise BadInput(f"a {type(net).__name__} that is built already has one set of weights: pass its class instead")
    spec = task.spec
    registered = isinstance(net, str) and net in nets
    lengths = _lengths(task, longest)
    given = with_shape(task_sizes(net, task, longest), shape or {})
    plan = blueprint(net, **given)
    entry_by_entry = plan.kind == "sequence" and spec.kind == "vector"
    if entry_by_entry:
        if plan.vocab is not None and not gives_signs(task):
            raise _misfit(registered, f"'{plan.name}' reads ids, and '{task.name}' gives numbers that are none")
        entries = _entries(task) if plan.vocab is None else {"vocab": 2, "tokens": spec.features}
        plan = blueprint(net, **with_shape({**given, **entries}, shape or {}))
    elif plan.kind != spec.kind:
        raise _misfit(registered, f"'{plan.name}' reads a {plan.kind} and '{task.name}' gives a {spec.kind}")
    if plan.vocab is not None and spec.vocab is None and spec.kind == "sequence":
        raise _misfit(registered, f"'{plan.name}' reads ids, and '{task.name}' gives numbers that are none")
    if plan.vocab is not None and spec.vocab is not None and plan.vocab < spec.vocab:
        raise BadInput(
            f"'{plan.name}' knows {plan.vocab} symbols and '{task.name}' has {spec.vocab}: give it a larger vocabulary"
        )
    chosen = {meaning(name) for name in shape or {}}
    if not registered and not entry_by_entry:
        told = any(meaning(name) == "outputs" for name in plan.known) and "outputs" not in chosen
        plan = _read_as(plan, task, lengths, told)

    def build(seed: int) -> nn.Module:
        with seeded(seed):
            return AsVector(plan.build(), ids=plan.vocab is not None) if entry_by_entry else plan.build()

    try:
        module = build(0).eval()
    except BadInput as error:
        if registered and _builds(net, shape):
            raise NotApplicable(f"{error} (the sizes are those of '{task.name}')") from error
        raise
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise BadInput(f"'{plan.name}' has no parameters that could be trained: give it some, or leave it out")
    pairing = Pairing(
        name=plan.name,
        task=task,
        build=build,
        shape={k: v for k, v in plan.shape.items() if k not in SIZES or (k in chosen and not registered)},
        source=plan.code if isinstance(net, str) else fingerprint.of_object(net),
        version=plan.version,
        reads_ids=plan.vocab is not None and not entry_by_entry,
        takes_present="present" in inspect.signature(module.forward).parameters,
        pads=False,
        token_by_token=False,
        registered=registered,
        read_as=() if plan.calling is None else tuple(plan.calling.words()),
        assumed=plan.assumed,
    )
    before = {} if registered else {name: weight.clone() for name, weight in module.named_parameters()}
    for length in lengths:
        _run_once(pairing, module, length)
    _check_steady(plan.name, before, module)
    if spec.kind == "vector":
        return pairing
    most = int(sample(task, lengths[-1], rows=1).inputs.shape[2])
    return replace(pairing, most=most, pads=_pads(pairing, lengths[0]), token_by_token=_token_by_token(pairing, module))


def with_shape(sizes: Mapping[str, Any], shape: Mapping[str, Any]) -> dict[str, Any]:
    """A task's sizes, and the net's shape, which may set one of them by any of its names."""
    chosen = {meaning(name) for name in shape}
    return {**{name: size for name, size in sizes.items() if name not in chosen}, **shape}


def _read_as(plan: Blueprint, task: Task, lengths: Sequence[int | None], told: bool) -> Blueprint:
    """A net that was not `told` how many outputs to have, and has more than the task: the first are read. One that has
    one answer for a whole sequence: it is read at the last token, where the task asks there alone."""
    if plan.calling is None:
        return plan
    with seeded(0):
        module = plan.build().eval()
    x = sample(task, lengths[min(1, len(lengths) - 1)]).inputs[0]  # the longest of training
    if plan.vocab is None and task.spec.vocab is not None:
        x = nn.functional.one_hot(x, task.spec.vocab).float()
    try:
        with torch.no_grad():
            found = module(x)
    except Exception:  # the run that follows will say why
        return plan
    if not isinstance(found, Tensor) or found.dim() < 2:
        return plan
    calling, outputs = plan.calling, task.spec.outputs
    if task.spec.kind == "sequence" and found.dim() == 2 and found.shape[1] != x.shape[1]:
        if any(sample(task, length).mask[..., :-1].any() for length in lengths):
            raise NotApplicable(
                f"'{plan.name}' gives one answer for a whole sequence and '{task.name}' asks at several places: return "
                "one for every token, or use a task of one answer, such as parity-check"
            )
        calling = replace(calling, pooled=True)
    if not told and found.shape[-1] > outputs:
        calling = replace(calling, outputs=outputs)
    return replace(plan, calling=calling)


def sample(task: Task, length: int | None, rows: int = _ROWS) -> Batch:
    """A few rows for looking at shapes."""
    return task.sample(1, rows, length, torch.Generator().manual_seed(0))


def task_sizes(net: str | Callable[..., Any], task: Task, longest: int | None = None) -> dict[str, Any]:
    """What the task says about the net's shape; a built-in net is told only what it has arguments for."""
    spec = task.spec
    sizes: dict[str, Any] = {"features": spec.features, "outputs": spec.outputs}
    if spec.kind == "sequence":
        sizes["tokens"] = int(sample(task, _lengths(task, longest)[-1], rows=1).inputs.shape[2])
        if spec.vocab is not None:
            sizes["vocab"] = spec.vocab
    if not isinstance(net, str) or net not in nets:
        return sizes
    entry = nets[net]
    if entry.kind == "vector" and spec.kind == "sequence":
        raise NotApplicable(f"'{net}' reads a vector and '{task.name}' gives tokens")
    if entry.kind == "sequence" and spec.kind == "vector":
        sizes |= _entries(task)
    if "outputs" not in entry.arguments and spec.outputs != 1:
        raise NotApplicable(f"'{net}' has one output and '{task.name}' asks for {spec.outputs}")
    return {name: value for name, value in sizes.items() if name in entry.arguments}


def gives_signs(task: Task) -> bool:
    """Whether all inputs are −1 or 1."""
    return bool((task.sample(1, 64, None, torch.Generator().manual_seed(0)).inputs.abs() == 1).all())


def _entries(task: Task) -> dict[str, int]:
    """A vector as a sequence net reads it: one entry a token, the answer at the last."""
    return {"features": 1, "tokens": task.spec.features}


def _lengths(task: Task, longest: int | None) -> tuple[int | None, ...]:
    """The shortest and longest of training, and the longest of all, where the task has lengths."""
    if task.spec.lengths is None:
        return (None,)
    shortest, trained = task.spec.lengths
    return (shortest, trained, max(longest or trained, trained))


def _run_once(pairing: Pairing, module: nn.Module, length: int | None) -> None:
    """One forward pass at this length, its shape and its numbers."""
    batch = sample(pairing.task, length)
    read = pairing.feed(batch.inputs[0], pairing.one_hot(torch.device("cpu")))
    outputs = pairing.task.spec.outputs
    expected = (*batch.inputs.shape[1:3], outputs) if pairing.task.spec.kind == "sequence" else (_ROWS, outputs)
    at = f"on '{pairing.task.name}'" + ("" if length is None else f" at length {length} ({read.shape[1]} tokens)")
    try:
        with torch.no_grad():
            found = module(read)
    except TheodoliteError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        trained = pairing.task.spec.lengths
        beyond = length is not None and trained is not None and length > trained[1]
        hint = "; that is beyond training, so evaluate shorter lengths only (--unseen)" if beyond else ""
        hint = f": {told}" if (told := advice(error)) else hint
        raise _misfit(pairing.registered, f"'{pairing.name}' cannot run {at}: {reason}{hint}") from error
    if not isinstance(found, Tensor):
        raise _misfit(pairing.registered, f"'{pairing.name}' returned a {type(found).__name__} {at}: return one tensor")
    if tuple(found.shape) != expected:
        raise _misfit(
            pairing.registered,
            f"'{pairing.name}' returned the shape {tuple(found.shape)} {at}, and {expected} is needed",
        )
    if not torch.isfinite(real(found, pairing.name)).all():
        raise _misfit(pairing.registered, f"'{pairing.name}' returned numbers that are not finite {at}: check its init")


def _check_steady(name: str, before: Mapping[str, Tensor], module: nn.Module) -> None:
    """Refuse a net whose forward changes its weights, which are the optimiser's to change."""
    now = dict(module.named_parameters())
    changed = next((n for n, weight in before.items() if n not in now or not torch.equal(weight, now[n])), None)
    if changed is not None:
        raise BadInput(f"'{name}' changes its weight '{changed}' in forward: keep what changes there in a buffer")


def _builds(net: str | Callable[..., Any], shape: Mapping[str, Any] | None) -> bool:
    """Whether the net can be built where the task says nothing about its sizes."""
    try:
        with seeded(0):
            blueprint(net, **(shape or {})).build()
    except BadInput:
        return False
    return True


def _token_by_token(pairing: Pairing, module: nn.Module) -> bool:
    """Told by counting operations at two lengths, of the net as it runs in an ensemble where that is possible."""
    counts = []
    for length in (4, 12):
        try:
            read = pairing.feed(sample(pairing.task, length).inputs[0], pairing.one_hot(torch.device("cpu")))
            with torch.no_grad(), _Counter() as counter:
                vmap(module, randomness="different")(read[None])
        except Exception:
            return False
        counts.append((counter.count, read.shape[1]))
    (few, short), (many, long) = counts
    return many - few >= long - short


class _Counter(TorchDispatchMode):
    """Counts operations."""

    count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return function(*args, **(kwargs or {}))


def _misfit(registered: bool, sentence: str) -> TheodoliteError:
    return NotApplicable(sentence) if registered else BadInput(sentence)


def _pads(pairing: Pairing, shortest: int | None) -> bool:
    """Whether tokens after the end, marked in `present` where the net takes it, leave the others' outputs alone.

    What training can change is stirred first and outputs are compared at their own scale: fresh weights may hide how
    tokens meet, behind a readout that starts at zero or in a product of many small numbers.
    """
    module = pairing.build(0).eval()
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        if parameter.requires_grad:
            scale = (parameter.shape[-1] if parameter.dim() else 1) ** -0.5
            parameter.data += scale * torch.randn(parameter.shape, generator=generator).to(parameter.dtype)
    length = max(shortest or 1, min(5, pairing.task.spec.lengths[1] if pairing.task.spec.lengths else 5))
    inputs = sample(pairing.task, length).inputs[0]
    one_hot = pairing.one_hot(torch.device("cpu"))
    tokens = inputs.shape[1]
    longer = torch.cat([inputs, inputs.flip(0)[:, : min(3, tokens)]], dim=1)
    present = (torch.arange(longer.shape[1]) < tokens).expand(len(longer), -1)
    try:
        with torch.no_grad():
            alone = module(pairing.feed(inputs, one_hot))
            fed = pairing.feed(longer, one_hot)
            padded = module(fed, present) if pairing.takes_present else module(fed)
            return torch.allclose(alone, padded[:, :tokens], rtol=0, atol=1e-5 * float(alone.abs().max()))
    except Exception:
        return False
