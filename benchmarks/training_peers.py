"""What stands beside our ensemble in benchmarks/training.py: the same members in JAX and under `torch.compile`.

A peer is used only if it trains the same net: the losses after three steps are ours to 1e-3 in float32. One that
fails says so in its row, and the others go on. Nobody waits for the device between blocks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from compiled_peer import CompiledPeer
from theodolite.tasks.contract import Batch
from theodolite.training.members import Members
from theodolite.training.optimiser import Optimiser, Rates, Rule
from theodolite.training.pairing import Pairing
from theodolite.training.program import Batching, Program
from theodolite.training.scoring import losses

Run = Callable[[], int]  # trains a little and says how many model-steps that was
_STEPS = 3
_CLOSE = 1e-3  # of a loss: Adam divides by tiny gradients, which tells orders of summation apart


@dataclass(frozen=True)
class Setting:
    """What all sides share. `precisions` of products: float32, and tf32 where the device has it."""

    pairing: Pairing
    weights: Mapping[str, Tensor]  # (member, …)
    batches: Sequence[Batch]
    rule: Rule
    rates: Rates
    device: torch.device
    precisions: Sequence[str]

    @property
    def model_steps(self) -> int:
        return len(self.batches) * len(next(iter(self.weights.values())))

    def expected(self) -> Tensor:
        """Our losses of every member on the fourth batch after three steps."""
        members = len(next(iter(self.weights.values())))
        stacked = Members(self.pairing, [self.pairing.build(0)] * members, self.device, batched=True)
        for name, parameter in stacked.parameters.items():
            parameter.copy_(self.weights[name])
        optimiser = Optimiser(self.rule, [self.rates] * members, stacked.parameters)
        program = Program(stacked, optimiser, Batching(members, batched=True), self.device)
        program.train(self.batches[:_STEPS], 1)
        batch = self.batches[_STEPS]
        outputs = torch.cat([found for _, _, found in program.outputs(batch.inputs)])
        return losses(self.pairing.task.spec, outputs, batch).cpu()


@dataclass
class Peer:
    """Runs by the name of their figure, what waits until they are done, and what else its row says."""

    runs: dict[str, Run] = field(default_factory=dict)
    waits: list[Callable[[], None]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


def prepare(name: str, setting: Setting) -> Peer:
    """A peer compiled and checked, or the one line of why not."""
    try:
        return {"jax": in_jax, "compile": compiled}[name](setting)
    except Exception as error:
        return Peer(facts={name: None, f"{name}_error": one_line(error)})


def one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def in_jax(setting: Setting) -> Peer:
    """The loop over tokens of recurrent nets as a scan or unrolled, whichever is faster in float32."""
    from jax_peer import NETS, RECURRENT, JaxPeer

    pairing = setting.pairing
    if pairing.name not in NETS:
        return Peer(facts={"jax": None, "jax_error": f"'{pairing.name}' is not written in JAX"})
    make = partial(
        JaxPeer,
        pairing.name,
        pairing.shape,
        pairing.task.spec,
        setting.weights,
        setting.batches,
        setting.rule,
        setting.rates,
        setting.device,
    )
    found = Peer()
    forms = {
        form: make(unrolled=form == "unrolled") for form in ("scan", "unrolled")[: 1 + (pairing.name in RECURRENT)]
    }
    differences = {form: _difference_in_jax(peer, setting) for form, peer in forms.items()}
    form = min(forms, key=lambda form: _seconds(forms[form]))
    found.facts |= {
        "jax_form": form,
        "jax_difference": differences[form],
        "jax_compile_seconds": {form: peer.compile_seconds for form, peer in forms.items()},
    }
    check(differences[form])
    found.runs["jax"] = _counted(forms[form].run, setting)
    found.waits.append(forms[form].wait)
    if "tf32" in setting.precisions:
        again = make(precision="tf32", unrolled=form == "unrolled")
        found.facts["jax_tf32_difference"] = _difference_in_jax(again, setting)
        found.runs["jax_tf32"] = _counted(again.run, setting)
        found.waits.append(again.wait)
    return found


def _difference_in_jax(peer: Any, setting: Setting) -> float:
    peer.run()
    return difference(torch.tensor(peer.losses()), setting)


def compiled(setting: Setting) -> Peer:
    peer = CompiledPeer(setting.pairing, setting.weights, setting.batches, setting.rule, setting.rates, setting.device)
    peer.run()
    apart = difference(peer.losses(), setting)
    check(apart)
    facts = {
        "compile_fullgraph": peer.fullgraph,
        "compile_difference": apart,
        "compile_compile_seconds": peer.compile_seconds,
    }
    precisions = {"compile": "float32"} | ({"compile_tf32": "tf32"} if "tf32" in setting.precisions else {})
    return Peer({name: _counted(partial(peer.run, kind), setting) for name, kind in precisions.items()}, facts=facts)


def difference(found: Tensor, setting: Setting) -> float:
    """Of a peer's losses (step, member) from ours after three steps, at most, as a share of ours."""
    expected = setting.expected()
    return float(((found[_STEPS] - expected) / expected).abs().max())


def check(apart: float) -> None:
    if not apart < _CLOSE:
        raise ValueError(f"it trains another net: losses differ by {apart:.1e} of themselves after {_STEPS} steps")


def _counted(run: Callable[[], Any], setting: Setting) -> Run:
    def counted() -> int:
        run()
        return setting.model_steps

    return counted


def _seconds(peer: Any) -> float:
    """The best of three, after one more."""
    spent = []
    for _ in range(4):
        started = time.perf_counter()
        peer.run()
        peer.wait()
        spent.append(time.perf_counter() - started)
    return min(spent[1:])
