"""A network of a given graph fitted to data: Adam from several starts, then least squares, over splits of the rows.

Rows are split into folds. A member learns from all rows but one fold, and is judged by that fold; the prediction is the
mean over folds, each member weighted by the inverse square of its held-out error, so that a member caught in a poor
minimum does not count. Every row thereby has a prediction by a network that never saw it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph
from theodolite.nets.graph_net import GraphNet
from theodolite.structure.descent import descend
from theodolite.structure.effort import Effort, effort_named
from theodolite.structure.least_squares import least_squares
from theodolite.structure.stacked import Stacked, start

Array = NDArray[np.float64]
LEAST_ROWS = 6  # two in every one of three folds
SCHEMA = 1
_ARRAYS = ("members", "shares", "centre", "scale")


@dataclass(frozen=True)
class Fitted:
    """A network of `graph` for each fold, their weights in the prediction (`shares`), and the scales of the data.

    `held_out` are the predictions of the training rows, each by the network that did not see it (None once read back),
    and `validation_error` their mean squared error over the variance of the target.
    """

    graph: CompositionalGraph
    width: int
    depth: int
    activation: str
    members: Array = field(repr=False)  # (member, parameter)
    shares: Array = field(repr=False)  # (member,)
    centre: Array = field(repr=False)  # (variable,)
    scale: Array = field(repr=False)  # (variable,)
    offset: float = field(repr=False)
    spread: float = field(repr=False)
    validation_error: float
    held_out: Array | None = field(default=None, repr=False)

    @property
    def parameters(self) -> int:
        """Of one network."""
        return self.members.shape[1]

    @property
    def module(self) -> GraphNet:
        """The network of the largest share, from standardised inputs to the standardised target."""
        net = Stacked(self._build())
        with torch.no_grad():
            values = net.unflatten(torch.from_numpy(self.members[int(np.argmax(self.shares))]))
            for name, parameter in net.module.named_parameters():
                parameter.copy_(values[name])
        return net.module  # pyright: ignore[reportReturnType]

    def predict(self, x: ArrayLike) -> Array:
        rows = np.asarray(x, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.centre):
            raise BadInput(f"rows of {len(self.centre)} variables are needed, not an array of shape {rows.shape}")
        net = Stacked(self._build())
        scaled = torch.from_numpy((rows - self.centre) / self.scale)
        shares = torch.from_numpy(self.shares)
        with torch.no_grad():
            parts = [shares @ net.outputs(torch.from_numpy(self.members), part) for part in scaled.split(8192)]
        return self.offset + self.spread * torch.cat(parts).numpy()

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays, and a JSON document, that `from_state` makes the same predictions of."""
        document = {
            "schema": SCHEMA,
            "graph": self.graph.to_json(),
            "width": self.width,
            "depth": self.depth,
            "activation": self.activation,
            "offset": self.offset,
            "spread": self.spread,
            "validation_error": self.validation_error,
        }
        return {name: getattr(self, name) for name in _ARRAYS}, document

    @classmethod
    def from_state(cls, arrays: Mapping[str, ArrayLike], document: Mapping[str, Any]) -> Fitted:
        if document.get("schema") != SCHEMA:
            raise BadInput(f"this is no fitted network of schema {SCHEMA}: its schema is {document.get('schema')!r}")
        wanted = ("schema", "graph", "width", "depth", "activation", "offset", "spread", "validation_error")
        missing = [name for name in wanted if name not in document] + [n for n in _ARRAYS if n not in arrays]
        if missing:
            raise BadInput(f"this fitted network lacks '{missing[0]}': save it again with state()")
        values: dict[str, Any] = {name: np.asarray(arrays[name], dtype=np.float64) for name in _ARRAYS}
        values |= {name: document[name] for name in wanted if name not in ("schema", "graph")}
        found = cls(graph=CompositionalGraph.from_json(document["graph"]), **values)
        variables, parameters = len(found.graph.variables), Stacked(found._build()).parameters
        shapes = {
            "members": (len(found.shares), parameters),
            "shares": (len(found.shares),),
            "centre": (variables,),
            "scale": (variables,),
        }
        for name, shape in shapes.items():
            if getattr(found, name).shape != shape:
                raise BadInput(f"'{name}' of this fitted network has shape {getattr(found, name).shape}, not {shape}")
        return found

    def _build(self) -> GraphNet:
        return _network(self.graph, self.width, self.depth, self.activation)


def fit(
    graph: CompositionalGraph,
    x: ArrayLike,
    y: ArrayLike,
    generator: np.random.Generator,
    *,
    effort: str | Effort = "standard",
    width: int | None = None,
    depth: int = 1,
    activation: str = "tanh",
    seconds: float | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Fitted:
    """The columns of `x` are the graph's variables, in its order. `seconds` ends training early; what is returned then
    depends on the machine's speed, and otherwise only on the arguments. `progress` gets (done, total, label)."""
    rows, targets = checked(x, y, graph)
    work = effort_named(effort, len(rows))
    until = None if seconds is None else time.monotonic() + seconds
    halfway = None if seconds is None else time.monotonic() + seconds / 2
    width = work.width if width is None else width
    centre, scale = rows.mean(0), _scales(rows)
    offset, spread = float(targets.mean()), float(targets.std())

    folds = max(2, min(work.folds, len(rows) // 2))
    fold = torch.from_numpy(generator.permutation(len(rows)) % folds)
    seeds = [int(seed) for seed in generator.integers(2**31, size=folds * work.restarts)]
    net, members = start(lambda: _network(graph, width, depth, activation), seeds)
    if np.ptp(targets) == 0:  # nothing to learn: the constant is predicted, exactly
        one, share = members[:1].numpy(), np.ones(1)
        shape = (graph, width, depth, activation)
        value = float(targets[0])  # not the mean, which rounding may move
        return Fitted(*shape, one, share, centre, scale, value, 0.0, validation_error=0.0, held_out=targets.copy())
    inputs = torch.from_numpy((rows - centre) / scale)
    wanted = torch.from_numpy((targets - offset) / spread)
    owner = torch.arange(len(seeds)) % folds  # the fold that a member does not see
    weights = (fold[None, :] != owner[:, None]).double()
    polish = work.polish_steps(len(rows), net.parameters)
    descent = work.descent_steps(polish)

    def told(before: int, label: str) -> Callable[[int, int], None] | None:
        if progress is None:
            return None
        return lambda done, _, tell=progress: tell(before + done, descent + polish, label)

    torch_generator = torch.Generator().manual_seed(int(generator.integers(2**63)))
    members = descend(
        *(net, members, inputs, wanted, weights, torch_generator),
        steps=descent,
        until=halfway if polish else until,
        progress=told(0, "descent"),
    )
    with torch.no_grad():
        errors = _judged(net, members, inputs, wanted, weights)
        best = torch.stack([torch.where(owner == f, errors, torch.inf).argmin() for f in range(folds)])
        members, weights = members[best], weights[best]
        if polish:
            members = least_squares(
                net, members, inputs, wanted, weights, steps=polish, until=until, progress=told(descent, "polish")
            ).members
        errors = _judged(net, members, inputs, wanted, weights)
        unseen = (net.outputs(members, inputs) * (1 - weights)).sum(0)
    shares = errors.clamp(min=1e-300) ** -2.0
    shares = torch.nan_to_num(shares / shares.max(), nan=0.0)
    held_out = offset + spread * unseen.numpy()
    return Fitted(
        *(graph, width, depth, activation),
        members=members.numpy(),
        shares=(shares / shares.sum()).numpy(),
        centre=centre,
        scale=scale,
        offset=offset,
        spread=spread,
        validation_error=float(np.mean((held_out - targets) ** 2) / spread**2),
        held_out=held_out,
    )


def checked(x: ArrayLike, y: ArrayLike, graph: CompositionalGraph) -> tuple[Array, Array]:
    """Rows and targets as float64, refused unless finite and of matching shapes."""
    rows, targets = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(graph.variables):
        raise BadInput(f"x must have a column for each of the graph's {len(graph.variables)} variables: {rows.shape}")
    if targets.shape != (len(rows),):
        raise BadInput(f"y must have one number for each of the {len(rows)} rows of x, not the shape {targets.shape}")
    if len(rows) < LEAST_ROWS:
        raise BadInput(f"{len(rows)} rows are too few to hold some out: give at least {LEAST_ROWS}")
    for name, values in (("x", rows), ("y", targets)):
        if not np.isfinite(values).all():
            raise BadInput(f"{name} holds NaN or infinity: drop or fill those rows")
    return rows, targets


def _network(graph: CompositionalGraph, width: int, depth: int, activation: str) -> GraphNet:
    return GraphNet(graph, features=len(graph.variables), outputs=1, width=width, depth=depth, activation=activation)


def _judged(net: Stacked, members: Tensor, inputs: Tensor, wanted: Tensor, weights: Tensor) -> Tensor:
    """The mean squared error of every member on the rows it did not see."""
    with torch.no_grad():
        held = 1 - weights
        return torch.nan_to_num((held * (net.outputs(members, inputs) - wanted) ** 2).sum(1) / held.sum(1), nan=1e300)


def _scales(rows: Array) -> Array:
    """Standard deviations of the columns, 1 for what does not vary."""
    return np.where(np.ptp(rows, axis=0) > 0, rows.std(0), 1.0)
