"""Witnesses in the residual convolution: the first window sees the whole input, later ones their own token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.nets.contract import canonical_arguments, nets
from theodolite.nets.parts.as_vector import AsVector
from theodolite.nets.size import count_parameters
from theodolite.tasks.contract import Task
from theodolite.witness.contract import Impossible, Witness, constructs
from theodolite.witness.registered_nets.shape import blank, fitted, put
from theodolite.witness.registered_nets.stages import Plan, plans
from theodolite.witness.table import truth_table

_SOURCE = "a window over the whole input, sharp GELUs in place of the ReLUs of a threshold network"


@constructs("convolution")
def unseen_bit(task: Task, shape: Mapping[str, Any]) -> Impossible | None:
    """Windows that together do not reach back to a bit that matters: two inputs that differ there get one answer."""
    asked = canonical_arguments("convolution", shape, nets["convolution"].arguments)
    if not {"depth", "kernel"} <= set(asked) or asked.get("padding", "zeros") != "zeros":
        return None
    table = truth_table(task)
    if table is None or not table.relevant:
        return None
    full = {**nets["convolution"].arguments, **asked}
    back = full["kernel"] - 1 - (0 if full["causal"] else full["kernel"] // 2)
    reach = back * sum(full["dilation"] ** layer for layer in range(full["depth"]))
    bit, last = table.relevant[0], table.bits - 1
    if last - bit <= reach:
        return None
    plus, minus = np.take(table.values, 0, axis=bit), np.take(table.values, 1, axis=bit)
    others = table.inputs.reshape(*table.values.shape, table.bits).take(0, axis=bit)[plus != minus][0].tolist()
    pair = [[*others[:bit], sign, *others[bit + 1 :]] for sign in (1, -1)]
    return Impossible(
        name="a bit out of sight",
        reason=f"the last token sees {reach} tokens back and bit {bit + 1} of {table.bits} is {last - bit} back",
        source="the receptive field: (kernel − 1) · (1 + dilation + dilation² + …) tokens, a term a layer",
        checked={"reach": reach, "bit": bit, "inputs": pair, "answers": [task.solve(row)[0] for row in pair]},
    )


@constructs("convolution")
def convolution(task: Task, shape: Mapping[str, Any]) -> Witness | None:
    if task.spec.kind != "vector":
        return None
    asked = canonical_arguments("convolution", shape, nets["convolution"].arguments)
    made = [_build(plan, asked) for plan in plans(task, "convolution")]
    return min((w for w in made if w is not None), key=lambda w: count_parameters(w.module), default=None)


def _build(plan: Plan, asked: Mapping[str, Any]) -> Witness | None:
    """Coordinate 0 holds the token's entry; every stage writes its sums, at last the answer, into further ones."""
    written = 1 + sum(len(stage.shift) for stage in plan.stages)
    width = max(written, *(stage.relus for stage in plan.stages))
    causal = asked.get("causal", True)
    kernel = plan.entries if causal else 2 * plan.entries - 1  # a centred window reads as far back as ahead
    needed = {"features": 1, "outputs": 1, "depth": len(plan.stages), "width": width, "kernel": kernel}
    shape = fitted("convolution", needed, asked)
    if shape is None:
        return None
    module: Any = blank("convolution", shape)
    width, here = shape["width"], shape["kernel"] - 1 - (0 if causal else shape["kernel"] // 2)
    put(module.embed.weight, [[1.0]])

    sharp, free = plan.sharp, 1
    for number, (block, stage) in enumerate(zip(module.blocks, plan.stages, strict=False)):
        taps = np.zeros((stage.relus, shape["kernel"], width))
        if number == 0:
            taps[:, here - plan.entries + 1 : here + 1, 0] = plan.directions[stage.group]
        else:
            taps[np.arange(stage.relus), here, free - len(plan.stages[number - 1].shift) + stage.group] = 1.0
        put(block.window.taps.weight, sharp * taps.reshape(stage.relus, -1))
        put(block.window.taps.bias, -sharp * stage.knots)
        put(block.combine.weight, stage.write / sharp, row=free)
        put(block.combine.bias, stage.shift, row=free)
        free += len(stage.shift)
    put(module.read.weight, [[1.0]], column=free - 1)
    units = sum(stage.relus for stage in plan.stages)
    known = {"predicted": plan.predicted, "at_most": plan.at_most}
    return Witness(plan.name, AsVector(module), _SOURCE, units, len(plan.stages), shape, **known)
