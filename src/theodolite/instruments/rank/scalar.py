"""One output entry of a net as a scalar function of its sites, in floats or over GF(p)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.errors import BadInput, TheodoliteError
from theodolite.field import FieldTensor, Modulus, draw_residues
from theodolite.instruments.precision import Precision, precision_of
from theodolite.instruments.rank.one_entry import cut_head
from theodolite.nets.failure import advice
from theodolite.nets.load import Subject
from theodolite.nets.real_outputs import real

Points = Tensor  # (points, sites, features)
Evaluate = Callable[[Points], Tensor]  # → (points,)


@dataclass(frozen=True)
class ScalarFunction:
    """y(x) = net(x)[token, entry]; the last token and the first entry unless said otherwise."""

    subject: Subject
    token: int
    entry: int

    @classmethod
    def of(cls, subject: Subject, token: int | None = None, entry: int = 0) -> ScalarFunction:
        last = subject.sites - 1 if subject.kind == "sequence" else 0
        token = last if token is None else token
        if not 0 <= token <= last:
            raise BadInput(f"output token {token} is not there: tokens run from 0 to {last}")
        if entry < 0:
            raise BadInput(f"output entry {entry} is not there: entries are counted from 0")
        return cls(subject, token, entry)

    def over_field(self, weights: Mapping[str, FieldTensor], modulus: Modulus) -> Evaluate:
        """The net over GF(p) with these weights; buffers keep their values, as the dyadic rationals they are."""
        module = self.subject.module

        def evaluate(points: Points) -> Tensor:
            x = self._arrange(points)
            x = x.to(torch.int64) if self.subject.vocab else FieldTensor(x, modulus)
            output = self._call(lambda: torch.func.functional_call(module, dict(weights), (x,)))
            return self._pick(output, points.shape[0], FieldTensor).residues

        return evaluate

    def with_weights(self, module: nn.Module, weights: Mapping[str, Tensor]) -> Evaluate:
        """In floats, with these weights instead of the module's own."""

        def evaluate(points: Points) -> Tensor:
            x = self._arrange(points)
            output = self._call(lambda: torch.func.functional_call(module, dict(weights), (x,)))
            return self._pick(output, points.shape[0], Tensor)

        return evaluate

    def in_floats(self, dtype: torch.dtype, device: torch.device, trial: Points) -> tuple[Evaluate, Precision]:
        """With the precision it is computed in: that asked for, or as much of it as the net's own tensors leave."""
        module = copy.deepcopy(self.subject.module).to(device=device, dtype=dtype)
        precision = Precision(dtype, torch.finfo(dtype).eps)
        x = self._arrange(trial)
        x = x.to(torch.int64) if self.subject.vocab else x.to(dtype)
        if dtype == torch.float64:
            precision = precision_of(module, x)
            module, dtype = module.to(dtype=precision.dtype), precision.dtype
        alone = cut_head(module, self.entry, x if self.subject.vocab else x.to(dtype))
        read = replace(self, entry=0) if alone else self

        def evaluate(points: Points) -> Tensor:
            x = self._arrange(points)
            x = x.to(torch.int64) if self.subject.vocab else x.to(dtype)
            output = real(read._pick(self._call(lambda: module(x)), points.shape[0], Tensor), self.subject.name)
            if not bool(torch.isfinite(output).all()):
                raise BadInput(
                    f"'{self.subject.name}' returned NaN or infinity on standard inputs: "
                    "check its initialisation, or use --dtype float64"
                )
            return output

        return evaluate, precision

    def draw_weights(self, stream: str, modulus: Modulus, device: torch.device) -> dict[str, FieldTensor]:
        """Every parameter by the draw rule, from the stream `<stream>/<its name>`."""
        return {
            name: FieldTensor(
                draw_residues(f"{stream}/{name}", tuple(parameter.shape), modulus, device=device), modulus
            )
            for name, parameter in self.subject.module.named_parameters()
        }

    def own_weights(self, modulus: Modulus, device: torch.device) -> dict[str, FieldTensor]:
        """The net's own weights, as the dyadic rationals they are."""
        return {
            name: FieldTensor(modulus.lift(parameter.detach().to(device)), modulus)
            for name, parameter in self.subject.module.named_parameters()
        }

    def check(self, evaluate: Evaluate, trial: Points, tolerance: float = 0.0) -> None:
        """Refuse a net whose output for one input depends on the others in the batch, beyond rounding."""
        forward = evaluate(trial)
        allowed = tolerance * forward.abs().max()
        others = [evaluate(trial.roll(k, 0)).roll(-k, 0) for k in range(1, len(trial))]
        others += [evaluate(trial.flip(0)).flip(0), torch.cat([evaluate(row[None]) for row in trial])]
        if any(bool(((forward - other).abs() > allowed).any()) for other in others):
            raise BadInput(
                f"'{self.subject.name}' gives one input different outputs in different batches: "
                "remove batch statistics and random draws from its forward pass"
            )

    def _arrange(self, points: Points) -> Tensor:
        if self.subject.vocab or self.subject.kind == "vector":
            return points.squeeze(-1)
        return points

    def _call(self, run: Callable[[], object]) -> object:
        try:
            with torch.no_grad():
                return run()
        except TheodoliteError:
            raise
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            cause = str(error).strip().splitlines()
            refused = next((line for line in cause if "NotPolynomial" in line), None)
            reason = refused or f"{type(error).__name__}: {cause[0] if cause else 'no message'}"
            shapes = "check the shapes it expects"
            hint = advice(error) or (shapes if self.subject.kind == "sequence" else "give --tokens if it reads tokens")
            raise BadInput(
                f"'{self.subject.name}' failed on an input of shape {self._input_shape()} ({reason}): {hint}"
            ) from error

    def _pick(self, output: Any, batch: int, expected: type) -> Any:
        name = self.subject.name
        if isinstance(output, tuple | list | dict):
            raise BadInput(f"'{name}' returns {len(output)} outputs as a {type(output).__name__}: return one tensor")
        if not isinstance(output, expected):
            raise BadInput(f"'{name}' returns {type(output).__name__}, not a tensor computed from its input")
        tokens = (self.subject.sites,) if self.subject.kind == "sequence" else ()
        shape = tuple(output.shape)
        if shape == (batch,) and self.entry == 0:
            return output
        if len(shape) == 2 and shape[0] == batch and self.entry < shape[1]:
            return output[:, self.entry]
        if len(shape) == 3 and tokens and shape[:2] == (batch, *tokens) and self.entry < shape[2]:
            return output[:, self.token, self.entry]
        if len(shape) > 1 and shape[0] == batch and self.entry >= shape[-1] and len(shape) == 2 + len(tokens):
            raise BadInput(f"output entry {self.entry} is not there: '{name}' has {shape[-1]} outputs, counted from 0")
        wanted = "(batch, token, output)" if tokens else "(batch, output)"
        raise BadInput(
            f"'{name}' maps {self._input_shape()} to {('batch', *shape[1:]) if shape[:1] == (batch,) else shape}: "
            f"it must return {wanted} or (batch, output)"
        )

    def _input_shape(self) -> str:
        sizes = [self.subject.sites]
        if self.subject.kind == "sequence" and not self.subject.vocab:
            sizes.append(self.subject.features)
        return "(" + ", ".join(map(str, ["batch", *sizes])) + ")"
