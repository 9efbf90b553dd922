"""Whether an architecture can compute a task: a witness that is checked, a proof that none exists, or neither."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from theodolite.errors import BadInput
from theodolite.nets.contract import canonical_arguments, nets
from theodolite.nets.from_file import is_file
from theodolite.nets.load import blueprint
from theodolite.nets.size import count_parameters
from theodolite.notebook import Shown
from theodolite.registry import unknown
from theodolite.tasks.boolean import FUNCTIONS
from theodolite.tasks.contract import Task, make_task, settings, tasks
from theodolite.witness import attention_nets, boolean_nets
from theodolite.witness.attention_nets import REMARKS
from theodolite.witness.contract import Impossible, Witness, architectures, constructions
from theodolite.witness.domain import MOST_INPUTS, SAMPLES
from theodolite.witness.registered_nets.boolean_programs import too_large
from theodolite.witness.verify import Verification, verify_network

# What a user may ask of the architectures that only witnesses have.
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {**boolean_nets.ARGUMENTS, "soft-attention": attention_nets.ARGUMENTS}


@dataclass(frozen=True)
class Expression(Shown):
    """`expressible`: True for a witness whose check found no error, False for a checked proof, else None.

    `parameters`, `units` and `depth` are counted on the witness; `predicted` holds the numbers of a formula under these
    names, `at_most` a theorem's bounds on them. `error_bound` speaks of the `drawn` inputs alone (see `Verification`).
    Parameters of threshold networks are the weights that are not 0 and one bias a unit, of other nets all that
    training would change. `checked` is what a proof was checked by.
    """

    task: str
    task_args: Mapping[str, Any]
    net: str
    shape: Mapping[str, Any]
    expressible: bool | None
    witness: str | None
    reason: str
    source: str | None = None
    parameters: int | None = None
    units: int | None = None
    depth: int | None = None
    predicted: Mapping[str, int] = field(default_factory=dict)
    at_most: Mapping[str, int] = field(default_factory=dict)
    verified_on: int = 0
    drawn: int = 0
    exhaustive: bool = False
    domain: str | None = None
    criterion: str | None = None
    errors: int | None = None
    error_bound: float | None = None
    margin: float | None = None
    largest_error: float | None = None
    explained_variance: float | None = None
    checked: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def express(
    task: str | Task,
    net: str,
    *,
    task_args: Mapping[str, Any] | None = None,
    seed: int = 0,
    most: int = MOST_INPUTS,
    samples: int = SAMPLES,
    **shape: Any,
) -> Expression:
    """Can a network compute a task? What is known of it is tried in order and checked on the task's inputs; a witness
    that is found wrong is never reported as one.

    Parameters:
        task: a task or its name
        net: a registered net, or an architecture of witnesses alone: threshold, nand, linear, recurrent-threshold,
            recurrent-tent, soft-attention
        task_args: fields of the task, such as {"bits": 8}
        seed: of the inputs that are drawn
        most: all inputs are looked at where there are no more
        samples: beyond, so many are drawn
        shape: arguments of the net to fix, such as depth=2

    Examples:
        >>> found = express("parity", "lstm", task_args={"bits": 8, "relevant": 8})
        >>> found.expressible, found.parameters, found.verified_on, found.exhaustive
        (True, 146, 256, True)
    """
    started = time.perf_counter()
    made = _task(task, task_args)
    shape = _shape(net, {name: value for name, value in shape.items() if value is not None})
    _check_kinds(net, made)
    about = {"task": made.name, "task_args": settings(made), "net": net, "seed": seed}
    failed: list[str] = []
    for construction in constructions(net):
        found = construction(made, shape)
        if isinstance(found, Impossible):
            outcome = {"witness": None, "reason": found.reason, "source": found.source, "checked": dict(found.checked)}
            return _finished(started, **about, shape=shape, expressible=False, **outcome)
        if isinstance(found, Witness):
            check = verify_network(found.module, made, seed, most, samples)
            if check.right:
                return _finished(started, **about, expressible=True, **_of_witness(found, check, shape))
            failed.append(f"'{found.name}' was wrong on {_wrong(check)}")
    if constructions(net) and net in nets and not failed and (large := too_large(made, net)):
        raise BadInput(large)
    sizes = f"{' in this shape' if shape else ''} at these sizes of the task"
    known = f"no witness is known for {net} on {made.name}{sizes}, and no proof against one"
    if (net, made.name) in REMARKS:
        known += f"; {REMARKS[net, made.name]}"
    reason = f"a witness failed its check: {'; '.join(failed)}" if failed else known
    return _finished(started, **about, shape=shape, expressible=None, witness=None, reason=reason)


def _task(task: str | Task, arguments: Mapping[str, Any] | None) -> Task:
    if isinstance(task, str):
        if task not in tasks and task in FUNCTIONS:
            raise BadInput(f"'{task}' is a function of the task 'boolean': use boolean with --task-arg function={task}")
        return make_task(task, arguments or {})
    if arguments:
        raise BadInput(f"the task '{task.name}' is made already: give its fields when making it, or its name here")
    return task


def _shape(net: str, given: dict[str, Any]) -> dict[str, Any]:
    """The shape with the net's own names; an unknown net or argument is answered with the near one."""
    if net in nets:
        blueprint(net, **given)  # refuses values that no net of this kind has
        return canonical_arguments(net, given, nets[net].arguments)
    if is_file(net):
        raise BadInput(f"witnesses are known for built-in nets alone, not for '{net}': name one of 'theodolite nets'")
    if net not in architectures():
        raise BadInput(unknown("net", net, sorted({*architectures(), *nets})))
    return canonical_arguments(net, given, dict.fromkeys(_ARGUMENTS.get(net, ())))


def _wrong(check: Verification) -> str:
    if check.errors is None:
        return f"{check.domain}: {check.explained_variance:.3g} of the variance explained"
    return f"{check.errors:,} of {check.verified_on:,} inputs"


def _of_witness(found: Witness, check: Verification, asked: Mapping[str, Any]) -> dict[str, Any]:
    checked = {f.name: getattr(check, f.name) for f in fields(check) if f.name != "right"}
    bounded = check.drawn and check.error_bound is not None
    drawn = "drawn" if check.drawn == check.verified_on else f"{check.drawn:,} drawn"
    share = (
        f"; of inputs like the {drawn} ones at most {check.error_bound:.2g} are wrong, with 95 % confidence"
        if bounded
        else ""
    )
    if check.errors is None:
        share = f"; it is an approximation, which explains {check.explained_variance:.4g} of the answers' variance"
    return {
        "witness": found.name,
        "reason": f"the witness is right on {check.domain}{share}",
        "source": found.source,
        "parameters": count_parameters(found.module),
        "units": found.units,
        "depth": found.depth,
        "shape": {**asked, **found.shape},
        "predicted": dict(found.predicted),
        "at_most": dict(found.at_most),
        **checked,
    }


def _check_kinds(net: str, task: Task) -> None:
    """A net of sequences reads a vector entry by entry; one of vectors reads no sequence."""
    if net in nets and nets[net].kind == "vector" and task.spec.kind == "sequence":
        raise BadInput(f"'{net}' reads a vector and '{task.name}' gives a sequence: choose a net that reads tokens")


def _finished(started: float, **values: Any) -> Expression:
    return Expression(**values, seconds=round(time.perf_counter() - started, 3))


def measure_express(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """config: task, net, and optionally task_args and shape."""
    options = {"task_args": config.get("task_args"), **config.get("shape", {})}
    found = express(config["task"], config["net"], seed=seed, **options).to_json()
    return {name: value for name, value in found.items() if name != "seconds"}
