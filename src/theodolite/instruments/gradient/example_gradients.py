"""∂p(x)/∂w for every input x of a set: the gradients of single examples, parameter by parameter.

Two ways. Where every parameter belongs to a linear layer that sees each example once, the gradient of a weight is the
product of what entered the layer and what came back to it, so that one backward pass gives all of them. Any other net
is batched with `torch.func`, in passes over groups of parameters that fit into memory.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from theodolite.device import free_bytes
from theodolite.errors import BadInput, NotEnoughMemory, TheodoliteError
from theodolite.nets.real_outputs import real

logger = logging.getLogger(__name__)

_SHARE = 0.5  # of the free memory, for blocks that are as large as fits
_ALL = 0.9  # of it, for what is needed in one piece
_COLUMNS = 1 << 16  # inputs that are looked at together where a whole layer would be copied
STEP = {"cpu": 1 << 20, "cuda": 1 << 28}  # numbers in a block: what a cache holds, or what keeps a GPU busy


@dataclass(frozen=True)
class LinearLayer:
    """`back` is ∂p/∂(output of the layer), `entered` its input; `raw` where that is the net's own input."""

    name: str
    back: Float[Tensor, "units inputs"]
    entered: Float[Tensor, "features inputs"]
    bias: bool
    raw: bool


@dataclass(frozen=True)
class ExampleGradients:
    """`outputs` p(x) and `power` ‖g(x)‖² of every input; `blocks` gives g itself, (some parameters, inputs) at a time,
    every parameter once, theirs to overwrite. `layers` is empty where the net is not made of linear layers."""

    parameters: int
    outputs: Float[Tensor, " inputs"]
    power: Float[Tensor, " inputs"]
    layers: tuple[LinearLayer, ...]
    others: Callable[[], Iterator[Tensor]]
    method: str

    def blocks(self, skip_raw: bool = False) -> Iterator[Float[Tensor, "parameters inputs"]]:
        """`skip_raw` leaves out the layers that read the net's own input."""
        for layer in self.layers:
            if not (skip_raw and layer.raw):
                yield from layer_blocks(layer)
        if not self.layers:
            yield from self.others()


def example_gradients(
    module: nn.Module, inputs: Float[Tensor, "inputs feature"], name: str = "the net", fast: bool = True
) -> ExampleGradients:
    """Of the net's one output, in the dtype and on the device of the inputs; `fast=False` always takes the general way.

    Raises `BadInput` for a net with no trainable parameters, with more than one output, or with a gradient that is not
    finite, and `NotEnoughMemory` where the inputs are too many.
    """
    module, count = _trainable(module, inputs, name)
    outputs = _outputs(module, inputs, name)
    if fast and (layers := _linear_layers(module, inputs, name)):
        power = sum(power_of(layer.back) * (power_of(layer.entered) + layer.bias) for layer in layers)
        assert isinstance(power, Tensor)
        return ExampleGradients(count, outputs, power, layers, lambda: iter(()), "one backward pass")
    general = _Batched(module, inputs, name)
    power = torch.zeros(len(inputs), dtype=torch.float64, device=inputs.device)
    if count <= general.room // 2:  # they fit as a whole: taken once, handed out as copies
        kept = list(general.blocks())
        for block in kept:
            power += power_of(block)
        return ExampleGradients(count, outputs, power, (), lambda: (block.clone() for block in kept), general.method)
    for block in general.blocks():
        power += power_of(block)
    return ExampleGradients(count, outputs, power, (), general.blocks, general.method)


def gradient_power(module: nn.Module, inputs: Float[Tensor, "inputs feature"], name: str = "the net") -> float:
    """E‖g(x)‖² over these inputs, without keeping any gradient."""
    module = _copied(module, inputs, name)
    _outputs(module, inputs, name)  # refuses what is not one number an input
    if layers := _linear_layers(module, inputs, name):
        return float(sum((power_of(layer.back) * (power_of(layer.entered) + layer.bias)).mean() for layer in layers))
    return _Batched(module, inputs, name).power() / len(inputs)


def layer_blocks(layer: LinearLayer) -> Iterator[Tensor]:
    """Outer products, as many rows at a time as stay in the cache."""
    inputs = layer.entered.shape[1]
    rows = max(1, STEP[layer.entered.device.type] // inputs)
    width = min(rows, len(layer.entered))
    units = max(1, rows // width)
    for first in range(0, len(layer.back), units):
        back = layer.back[first : first + units]
        for start in range(0, len(layer.entered), width):
            entered = layer.entered[start : start + width]
            yield (back[:, None] * entered).reshape(-1, inputs)
        if layer.bias:
            yield back.clone()


def power_of(values: Float[Tensor, "rows inputs"]) -> Float[Tensor, " inputs"]:
    return torch.cat([part.square().sum(dim=0).double() for part in values.split(_COLUMNS, dim=1)])


def stored_rows(module: nn.Module, trial: Float[Tensor, "inputs feature"], name: str = "the net") -> int:
    """How many numbers an input `example_gradients` keeps of this net, by trying it on a few inputs.

    0 for a net that is not made of linear layers: its gradients are taken in passes, as many as memory asks for.
    """
    module, _ = _trainable(module, trial, name)
    _outputs(module, trial, name)
    linear = _all_linear(module, trial, name)
    found = _backward(module, linear, trial) if linear else None
    entered = {key: seen for key, (_, seen) in found.items()} if found else {}
    kept = [part.out_features + (0 if _same(entered[key], trial) else part.in_features) for key, part in linear.items()]
    return sum(kept)


def _copied(module: nn.Module, inputs: Tensor, name: str) -> nn.Module:
    """In the dtype and on the device of the inputs."""
    for weight, values in module.state_dict().items():
        if values.is_complex():
            raise BadInput(f"the weights '{weight}' of '{name}' are complex: keep pairs of real numbers (view_as_real)")
    return copy.deepcopy(module).to(device=inputs.device, dtype=inputs.dtype).eval()


def _trainable(module: nn.Module, inputs: Tensor, name: str) -> tuple[nn.Module, int]:
    """A copy in the dtype and on the device of the inputs, and how many parameters it has."""
    module = _copied(module, inputs, name)
    count = sum(p.numel() for p in module.parameters() if p.requires_grad)
    if count == 0:
        raise BadInput(f"'{name}' has no parameters that could be trained, so no gradient: give it some")
    return module, count


def _outputs(module: nn.Module, inputs: Tensor, name: str) -> Tensor:
    found = []
    for chunk in inputs.split(8192):
        try:
            with torch.no_grad():
                out = module(chunk)
        except TheodoliteError:
            raise
        except Exception as error:
            first = next((part for part in module.modules() if isinstance(part, nn.Linear)), None)
            if first is not None and first.in_features not in (1, chunk.shape[1]):
                read, given = first.in_features, chunk.shape[1]
                raise BadInput(
                    f"the first linear layer of '{name}' reads {read} numbers and the inputs have {given} bits: use "
                    f"{read} bits, or let the net take the number of bits as its argument 'features'"
                ) from error
            reason = f"{type(error).__name__}: {(str(error).strip().splitlines() or ['no message'])[0]}"
            hint = "a net that reads tokens is wrapped in nets.as_vector.AsVector"
            raise BadInput(f"'{name}' failed on inputs of {tuple(chunk.shape)} ({reason}): {hint}") from error
        if not isinstance(out, Tensor) or out.numel() != len(chunk):
            shape = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
            raise BadInput(f"'{name}' maps {tuple(chunk.shape)} to {shape}: one number an input is needed")
        found.append(real(out, name).reshape(-1))
    return torch.cat(found)


def _finite(values: Tensor, name: str, parameter: str) -> None:
    if not all(bool(torch.isfinite(part).all()) for part in values.split(_COLUMNS, dim=1)):
        raise BadInput(
            f"the gradient of '{name}' by its parameter '{parameter}' is not finite: check its init, or use float64"
        )


# Linear layers


def _linear_layers(
    module: nn.Module, inputs: Tensor, name: str, changed: frozenset[str] = frozenset()
) -> tuple[LinearLayer, ...]:
    """The layers, if they hold all parameters, each saw every example once, and a few gradients agree."""
    linear = _all_linear(module, inputs[:: max(1, len(inputs) // 4)][:4], name)
    if not linear:
        return ()
    # What enters the layers that read the net's own input is not kept a second time. The first inputs say which these
    # are; a layer that turns out to read something else (`changed`) is kept when all is done again.
    first = _backward(module, linear, inputs[:8192])
    assert first is not None
    raw = {key for key, (_, entered) in first.items() if _same(entered, inputs[:8192])} - changed
    kept = {key: (part.out_features, 0 if key in raw else part.in_features) for key, part in linear.items()}
    _fits(inputs, sum(sum(size) for size in kept.values()), name, _ALL)
    new = lambda rows: torch.empty(rows, len(inputs), dtype=inputs.dtype, device=inputs.device)
    stores = {key: (new(size[0]), inputs.T if key in raw else new(size[1])) for key, size in kept.items()}
    for start in range(0, len(inputs), 8192):
        part = slice(start, min(start + 8192, len(inputs)))
        captured = _backward(module, linear, inputs[part])
        assert captured is not None
        for key, (back, entered) in captured.items():
            stores[key][0][:, part] = back.T
            if key in raw and not _same(entered, inputs[part]):
                return _linear_layers(module, inputs, name, changed | {key})
            if key not in raw:
                stores[key][1][:, part] = entered.T
    layers = []
    for key, (back, entered) in stores.items():
        _finite(back, name, f"{key}.weight")
        _finite(entered, name, f"{key}.weight")
        layers.append(LinearLayer(key, back, entered, linear[key].bias is not None, key in raw))
    return tuple(layers)


def _same(entered: Tensor, inputs: Tensor) -> bool:
    return entered.shape == inputs.shape and torch.equal(entered, inputs)


def _all_linear(module: nn.Module, trial: Tensor, name: str) -> dict[str, nn.Linear]:
    """The linear layers by name, if they hold all parameters and give the gradients of the trial; else none."""
    linear = {key: part for key, part in module.named_modules() if type(part) is nn.Linear}
    held = [id(p) for part in linear.values() for p in part.parameters()]
    if len(held) != len(set(held)) or set(held) != {id(p) for p in module.parameters() if p.requires_grad}:
        return {}
    try:
        found = _backward(module, linear, trial)
        return {} if found is None or not _agree(module, found, trial) else linear
    except TheodoliteError:
        raise
    except Exception as error:
        logger.info("'%s' is not read as linear layers: %s", name, error)
        return {}


def _backward(module: nn.Module, linear: Mapping[str, nn.Linear], x: Tensor) -> dict[str, tuple[Tensor, Tensor]] | None:
    """(what came back, what entered) of every layer; None where one was not called exactly once on rows."""
    calls: dict[str, list[tuple[Tensor, Tensor]]] = {key: [] for key in linear}

    def keep(key: str) -> Callable[[nn.Module, Any, Any], None]:
        return lambda _, given, out: calls[key].append((given[0], out))

    handles = [part.register_forward_hook(keep(key)) for key, part in linear.items()]
    try:
        total = module(x).sum()
    finally:
        for handle in handles:
            handle.remove()
    if any(len(seen) != 1 or seen[0][0].shape[:-1] != x.shape[:1] for seen in calls.values()):
        return None
    outs = [seen[0][1] for seen in calls.values()]
    backs = torch.autograd.grad(total, outs, allow_unused=True)
    return {
        key: (torch.zeros_like(out) if back is None else back, calls[key][0][0].detach())
        for key, out, back in zip(calls, outs, backs, strict=True)
    }


def _agree(module: nn.Module, found: Mapping[str, tuple[Tensor, Tensor]], trial: Tensor) -> bool:
    parameters = dict(module.named_parameters())
    for i, x in enumerate(trial):
        exact = torch.autograd.grad(module(x[None]).sum(), list(parameters.values()), allow_unused=True)
        for (key, parameter), true in zip(parameters.items(), exact, strict=True):
            layer, _, kind = key.rpartition(".")
            back, entered = (part[i] for part in found[layer])
            guess = back if kind == "bias" else torch.outer(back, entered)
            true = torch.zeros_like(parameter) if true is None else true
            # What is not finite is reported with the parameter's name once all inputs have been seen.
            if not torch.allclose(guess, true, rtol=1e-3, atol=1e-4 * float(true.abs().max()), equal_nan=True):
                return False
    return True


# Any other net


class _Batched:
    """vmap of the gradient over inputs, or one input after the other for a net that cannot be batched."""

    def __init__(self, module: nn.Module, inputs: Tensor, name: str) -> None:
        self._module, self._inputs, self._name = module, inputs, name
        trainable = {key: p for key, p in module.named_parameters() if p.requires_grad}
        self._weights = {key: p.detach() for key, p in trainable.items()}
        self._fixed = {key: p.detach() for key, p in module.named_parameters() if key not in trainable}
        self._fixed |= dict(module.named_buffers())
        self.method = "batched"
        try:
            self._gradients(self._weights, inputs[:2])
        except Exception as error:
            logger.info("'%s' cannot be batched, its gradients are taken one by one: %s", name, error)
            self.method = "one by one"
        self.room = _fits(inputs, 1, name)

    def blocks(self) -> Iterator[Tensor]:
        for pieces in self._passes():
            chosen = {key: self._weights[key] for key, _, _ in pieces}
            columns = sum(stop - start for _, start, stop in pieces)
            total = sum(weight.numel() for weight in chosen.values())
            rows = torch.empty(columns, len(self._inputs), dtype=self._inputs.dtype, device=self._inputs.device)
            step = max(1, min(4096, STEP[rows.device.type] * 8 // total))
            for first in range(0, len(self._inputs), step):
                part = slice(first, first + step)
                found = self._gradients(chosen, self._inputs[part])
                flat = [found[key].flatten(1)[:, start:stop] for key, start, stop in pieces]
                rows[:, part] = torch.cat(flat, dim=1).T
            place = 0
            for key, start, stop in pieces:
                _finite(rows[place : place + stop - start], self._name, key)
                place += stop - start
            yield from rows.split(max(1, STEP[rows.device.type] // rows.shape[1]))

    def power(self) -> float:
        """Σ_x ‖g(x)‖²."""
        total = 0.0
        step = max(1, min(1024, STEP[self._inputs.device.type] * 8 // sum(w.numel() for w in self._weights.values())))
        for part in self._inputs.split(step):
            for key, found in self._gradients(self._weights, part).items():
                _finite(found, self._name, key)
                total += float(found.double().square().sum())
        return total

    def _passes(self) -> Iterator[list[tuple[str, int, int]]]:
        """(parameter, from, to) of what is taken in one pass."""
        room, group = self.room, []
        for key, weight in self._weights.items():
            start = 0
            while start < weight.numel():
                stop = min(weight.numel(), start + room)
                group.append((key, start, stop))
                room -= stop - start
                start = stop
                if room == 0:
                    yield group
                    room, group = self.room, []
        if group:
            yield group

    def _gradients(self, chosen: dict[str, Tensor], x: Tensor) -> dict[str, Tensor]:
        rest = {**{key: weight for key, weight in self._weights.items() if key not in chosen}, **self._fixed}

        def output(weights: dict[str, Tensor], row: Tensor) -> Any:
            return functional_call(self._module, {**rest, **weights}, (row[None],)).reshape(())

        if self.method == "batched":
            return vmap(grad(output), in_dims=(None, 0))(chosen, x)
        found = []
        for row in x:
            weights = {key: weight.clone().requires_grad_() for key, weight in chosen.items()}
            each = torch.autograd.grad(output(weights, row), list(weights.values()), allow_unused=True)
            pairs = zip(weights.items(), each, strict=True)
            found.append({key: torch.zeros_like(w) if g is None else g for (key, w), g in pairs})
        return {key: torch.stack([one[key] for one in found]) for key in chosen}


def _fits(inputs: Tensor, rows: int, name: str, share: float = _SHARE) -> int:
    """How many rows of one number an input fit into memory; refused where that is fewer than are needed."""
    free = free_bytes(inputs.device)
    room = int(share * free) // (inputs.shape[0] * inputs.element_size())
    if room < rows:
        bits = inputs.shape[0].bit_length() - 1
        most = bits
        while most > 0 and int(share * free) // ((1 << most) * inputs.element_size()) < rows:
            most -= 1
        needed = rows * inputs.shape[0] * inputs.element_size() / share
        raise NotEnoughMemory(
            f"the gradients of '{name}' on {inputs.shape[0]:,} inputs need {needed / 2**30:.1f} GiB and "
            f"{free / 2**30:.1f} GiB are free on {inputs.device}: use at most {most} bits, or a smaller net"
        )
    return room
