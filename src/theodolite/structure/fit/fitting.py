"""A network of a given graph fitted to data: Adam from several starts, then least squares, over splits of the rows.

Rows are split into folds. A member learns from all rows but one fold, and is judged by that fold; the prediction is the
mean over folds, each member weighted by the inverse square of its held-out error, so that a member caught in a poor
minimum does not count. Every row thereby has a prediction by a network that never saw it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.graphs import CompositionalGraph
from theodolite.nets.compositional_net import CompositionalNet
from theodolite.structure.fit.descent import train_networks
from theodolite.structure.fit.effort import Effort, effort_named
from theodolite.structure.fit.growth import grown
from theodolite.structure.fit.guide import Guide, modules
from theodolite.structure.fit.guided_start import GuidedStart
from theodolite.structure.fit.jacobian import values
from theodolite.structure.fit.least_squares import least_squares
from theodolite.structure.fit.scaled_start import scaled_start
from theodolite.training.stacked import Stacked, draw

Array = NDArray[np.float64]
LEAST_ROWS = 6  # two in every one of three folds
LEAST_SECONDS = 0.1  # for a fit that begins late
SCHEMA = 1
TRIED = 15  # steps of least squares after which the guided network of a fold and the other are compared
STUCK = (5, 100, 100)  # times the median of the folds: with such errors a fold is tried a second, third, fourth time,
ENOUGH = 1e-7  # unless it is this small; or times the least,
MATTERS = 1e-3  # if it is above this
_ARRAYS = ("members", "shares", "centre", "scale")


Shape = tuple[CompositionalGraph, int, int, str, int]  # graph, width, depth, activation, shallow


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
    shallow: int  # inputs of a constituent, up to which it has one hidden layer whatever the depth
    members: Array = field(repr=False)  # (member, parameter)
    shares: Array = field(repr=False)  # (member,)
    centre: Array = field(repr=False)  # (variable,)
    scale: Array = field(repr=False)  # (variable,)
    offset: float = field(repr=False)
    spread: float = field(repr=False)
    validation_error: float
    held_out: Array | None = field(default=None, repr=False)

    @property
    def shape(self) -> Shape:
        return self.graph, self.width, self.depth, self.activation, self.shallow

    @property
    def parameters(self) -> int:
        """Of one network."""
        return self.members.shape[1]

    @property
    def module(self) -> CompositionalNet:
        """The network of the largest share, from standardised inputs to the standardised target."""
        net = Stacked(self._build())
        with torch.no_grad():
            values = net.named(torch.from_numpy(self.members[int(np.argmax(self.shares))]))
            for name, parameter in net.module.named_parameters():
                parameter.copy_(values[name])
        return net.module  # pyright: ignore[reportReturnType]

    def predict(self, x: ArrayLike) -> Array:
        rows = np.asarray(x, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.centre):
            raise BadInput(f"rows of {len(self.centre)} variables are needed, not an array of shape {rows.shape}")
        net = network_shape(*self.shape)
        scaled = torch.from_numpy((rows - self.centre) / self.scale)
        shares = torch.from_numpy(self.shares)
        with torch.no_grad():
            parts = [shares @ values(net, torch.from_numpy(self.members), part) for part in scaled.split(8192)]
        return self.offset + self.spread * torch.cat(parts).numpy()

    def widened(self, variables: tuple[str, ...], rows: ArrayLike) -> Fitted:
        """The same network among more columns, which it does not read: `rows` are what it learnt from, with these."""
        every = np.asarray(rows, dtype=np.float64)
        graph = replace(self.graph, variables=variables)
        return replace(self, graph=graph, centre=every.mean(0), scale=_scales(every))

    def fold_of(self, x: ArrayLike) -> NDArray[np.int64]:
        """The fold of every training row: the network that has not seen it is the one that said what was held out."""
        assert self.held_out is not None
        return np.abs(np.stack([one(np.asarray(x)) for one in self.guide().functions]) - self.held_out).argmin(0)

    def errors_of_folds(self, x: ArrayLike, y: Array) -> Array:
        """The mean squared error of every fold's network on the rows of the fold."""
        assert self.held_out is not None
        fold = self.fold_of(x)
        missed = (self.held_out - y) ** 2
        return np.array([missed[fold == one].mean() for one in range(len(self.members))], dtype=np.float64)

    def guide(self) -> Guide:
        """The network of every fold by itself, to guide networks of a graph on the same folds."""
        alone = [replace(self, members=self.members[f : f + 1], shares=np.ones(1)) for f in range(len(self.members))]
        return Guide(tuple(one.predict for one in alone), self.validation_error)

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays, and a JSON document, that `from_state` makes the same predictions of."""
        document = {
            "schema": SCHEMA,
            "graph": self.graph.to_json(),
            "width": self.width,
            "depth": self.depth,
            "activation": self.activation,
            "shallow": self.shallow,
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
        values["shallow"] = document.get("shallow", 0)  # of files from before there was a choice
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

    def _build(self) -> CompositionalNet:
        return _network(*self.shape)


def fit(
    graph: CompositionalGraph,
    x: ArrayLike,
    y: ArrayLike,
    generator: np.random.Generator,
    *,
    effort: str | Effort = "standard",
    fold: ArrayLike | None = None,
    guide: Guide | None = None,
    width: int | None = None,
    depth: int = 1,
    activation: str = "tanh",
    shallow: int = 0,
    start: Fitted | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Fitted:
    """The columns of `x` are the graph's variables, in its order. `fold` numbers the fold of every row from 0 (drawn at
    random if None). Constituents of up to `shallow` inputs have one hidden layer, whatever the `depth`. With a `guide`,
    one network of each fold starts from what it says of the graph's modules. From `start`, networks of the same graph,
    folds and depths, and of this width or less, least squares goes on. `seconds` ends training early; what is returned
    then depends on the machine's speed, and otherwise only on the arguments. `progress` gets (done, total, label)."""
    rows, targets = checked(x, y, graph)
    work = effort_named(effort, len(rows))
    until = None if seconds is None else time.monotonic() + seconds
    halfway = None if seconds is None else time.monotonic() + seconds / 2
    width = work.width if width is None else width
    centre, scale = rows.mean(0), _scales(rows)
    offset, spread = float(targets.mean()), float(targets.std())

    given = drawn_folds(len(rows), work, generator) if fold is None else _checked_folds(fold, len(rows))
    folds, fold = int(given.max()) + 1, torch.from_numpy(given)
    if not work.guided or not modules(graph):
        guide = None
    restarts = work.restarts if guide is None else max(1, work.restarts - 1)
    build = lambda part: _network(part, width, depth, activation, shallow)
    net = draw(lambda: build(graph), _seeds(generator, 1), dtype=torch.float64)[0]
    if np.ptp(targets) == 0:  # nothing to learn: the constant is predicted, exactly
        one, share = Stacked.vector(net.module)[None].numpy(), np.ones(1)
        shape = (graph, width, depth, activation, shallow)
        value = float(targets[0])  # not the mean, which rounding may move
        return Fitted(*shape, one, share, centre, scale, value, 0.0, validation_error=0.0, held_out=targets.copy())
    inputs = torch.from_numpy((rows - centre) / scale)
    wanted = torch.from_numpy((targets - offset) / spread)
    polish = work.polish_steps(len(rows), net.parameters)
    descent = work.descent_steps(polish)

    def counting(before: int, label: str) -> Callable[[int, int], None] | None:
        if progress is None:
            return None
        return lambda done, _, tell=progress: tell(before + done, descent + polish, label)

    def weighted(of: Sequence[int]) -> Tensor:
        return (fold[None, :] != torch.tensor(of)[:, None]).double()

    def descended(of: Sequence[int], count: int, tell: Callable[[int, int], None] | None) -> Tensor:
        """The best of so many random starts, for each of these folds."""
        _, members = draw(lambda: build(graph), _seeds(generator, count * len(of)), dtype=torch.float64)
        own = [f for _ in range(count) for f in of]
        members = train_networks(
            *(net, members, inputs, wanted, weighted(own), torch.Generator().manual_seed(_seeds(generator, 1)[0])),
            steps=descent,
            until=halfway if polish else until,
            progress=tell,
        )
        return members[_best(_judged(net, members, inputs, wanted, weighted(own)), len(of))]

    def guided(of: Sequence[int]) -> Tensor | None:
        if polish and (halfway is None or time.monotonic() < halfway):
            started = scaled_start(graph, build, inputs, wanted, fold, of, generator, replace(work, polish=polish))
            if started is not None:
                return started
        if guide is None:
            return None
        data = (rows, inputs, wanted, fold, of, generator)
        return GuidedStart(graph, build, *data, effort=work, until=halfway).members(guide)

    def polished(
        of: Sequence[int], members: Tensor, steps: int, tell: Callable[[int, int], None] | None, warm: bool = False
    ) -> Tensor:
        if not polish:
            return members
        with torch.no_grad():
            return least_squares(
                *(net, members, inputs, wanted, weighted(of)), warm=warm, steps=steps, until=until, progress=tell
            ).members

    def begun(start: Fitted) -> Tensor:
        members = torch.from_numpy(start.members)
        if start.width == width:
            return members
        _, drawn = draw(lambda: build(graph), _seeds(generator, len(members)), dtype=torch.float64)
        return grown(network_shape(graph, start.width, depth, activation, shallow), members, net, drawn)

    def trained(of: Sequence[int], count: int, tell: bool) -> tuple[Tensor, Tensor]:
        """A network for each of these folds, and its error on the rows of the fold."""
        if start is not None and tell:
            members = polished(of, begun(start), polish, counting(descent, "polish"), warm=True)
            return members, _judged(net, members, inputs, wanted, weighted(of))
        members = descended(of, count, counting(0, "descent") if tell else None)
        others, tried = guided(of), 0
        if others is not None:
            both, twice, tried = torch.cat([members, others]), [*of, *of], min(TRIED, polish // 2)
            both = polished(twice, both, tried, counting(descent, "polish") if tell else None)
            members = both[_best(_judged(net, both, inputs, wanted, weighted(twice)), len(of))]
        members = polished(of, members, polish - tried, counting(descent + tried, "polish") if tell else None)
        return members, _judged(net, members, inputs, wanted, weighted(of))

    members, errors = trained(range(folds), restarts, True)
    for far in STUCK if work.guided else ():
        stuck = _stuck(errors, far)
        if not stuck or (halfway is not None and time.monotonic() > halfway):
            break
        others, again = trained(stuck, work.restarts, False)
        members[stuck] = torch.where((again < errors[stuck])[:, None], others, members[stuck])
        errors[stuck] = torch.minimum(again, errors[stuck])
    return assembled((graph, width, depth, activation, shallow), members, rows, targets, given)


def fit_until(
    until: float | None,
    graph: CompositionalGraph,
    x: ArrayLike,
    y: ArrayLike,
    generator: np.random.Generator,
    *,
    share: float = 1.0,
    **options: Any,
) -> Fitted:
    """`fit` in a share of the time that is left, once it begins, until that moment (of `time.monotonic`)."""
    left = None if until is None else max(LEAST_SECONDS, share * (until - time.monotonic()))
    return fit(graph, x, y, generator, seconds=left, **options)


def assembled(shape: Shape, members: Tensor, x: Array, y: Array, fold: NDArray[np.int64]) -> Fitted:
    """Networks of this shape, one for every fold of the rows, and what they say of it."""
    centre, scale = x.mean(0), _scales(x)
    offset, spread = float(y.mean()), float(y.std())
    inputs, wanted = torch.from_numpy((x - centre) / scale), torch.from_numpy((y - offset) / spread)
    weights = (torch.from_numpy(fold)[None, :] != torch.arange(len(members))[:, None]).double()
    net = network_shape(*shape)
    errors = _judged(net, members, inputs, wanted, weights)
    with torch.no_grad():
        unseen = (values(net, members, inputs) * (1 - weights)).sum(0)
    shares = errors.clamp(min=1e-300) ** -2.0
    shares = torch.nan_to_num(shares / shares.max(), nan=0.0)
    held_out = offset + spread * unseen.numpy()
    return Fitted(
        *shape,
        members=members.numpy(),
        shares=(shares / shares.sum()).numpy(),
        centre=centre,
        scale=scale,
        offset=offset,
        spread=spread,
        validation_error=float(np.mean((held_out - y) ** 2) / spread**2),
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
    for name, numbers in (("x", rows), ("y", targets)):
        if not np.isfinite(numbers).all():
            raise BadInput(f"{name} holds NaN or infinity: drop or fill those rows")
    return rows, targets


def drawn_folds(rows: int, effort: Effort, generator: np.random.Generator) -> NDArray[np.int64]:
    """The number of the fold of every row, the folds of one size but for one row."""
    return generator.permutation(rows) % max(2, min(effort.folds, rows // 2))


def network_size(graph: CompositionalGraph, width: int, depth: int = 1, shallow: int = 0) -> int:
    """The number of parameters of one network."""
    return network_shape(graph, width, depth, "tanh", shallow).parameters


def _network(graph: CompositionalGraph, width: int, depth: int, activation: str, shallow: int) -> CompositionalNet:
    features = len(graph.variables)
    return CompositionalNet(graph, features, 1, width=width, depth=depth, activation=activation, shallow=shallow)


@lru_cache(maxsize=64)
def network_shape(graph: CompositionalGraph, width: int, depth: int, activation: str, shallow: int = 0) -> Stacked:
    """For networks whose weights are given: what a network is drawn with costs more than a prediction."""
    return Stacked(_network(graph, width, depth, activation, shallow))


def _checked_folds(given: ArrayLike, rows: int) -> NDArray[np.int64]:
    fold = np.asarray(given)
    numbers = np.unique(fold)
    if fold.shape != (rows,) or len(numbers) < 2 or not np.array_equal(numbers, np.arange(len(numbers))):
        raise BadInput(f"fold must number the fold of each of {rows} rows, from 0 on, with at least two folds")
    return fold.astype(np.int64)


def _best(errors: Tensor, folds: int) -> Tensor:
    """The member of the lowest error of every fold; members stand fold by fold, again and again."""
    return errors.reshape(-1, folds).argmin(0) * folds + torch.arange(folds)


def _stuck(errors: Tensor, far: float) -> list[int]:
    """Folds that are far behind most others, or behind one that shows what the graph can do."""
    behind = (errors > (far * errors.median()).clamp(min=ENOUGH)) | (errors > (far * errors.min()).clamp(min=MATTERS))
    return behind.nonzero()[:, 0].tolist()


def _seeds(generator: np.random.Generator, count: int) -> list[int]:
    return [int(seed) for seed in generator.integers(2**31, size=count)]


def _judged(net: Stacked, members: Tensor, inputs: Tensor, wanted: Tensor, weights: Tensor) -> Tensor:
    """The mean squared error of every member on the rows it did not see."""
    with torch.no_grad():
        held = 1 - weights
        return torch.nan_to_num((held * (values(net, members, inputs) - wanted) ** 2).sum(1) / held.sum(1), nan=1e300)


def _scales(rows: Array) -> Array:
    """Standard deviations of the columns, 1 for what does not vary."""
    return np.where(np.ptp(rows, axis=0) > 0, rows.std(0), 1.0)
