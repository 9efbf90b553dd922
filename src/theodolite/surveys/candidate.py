"""A net that is surveyed: how the user named it, what it reads, and the size it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from theodolite.bench.plan import Net, location
from theodolite.errors import BadInput, NotApplicable
from theodolite.instruments.rank.separation import separation_rank
from theodolite.measurement import canonical
from theodolite.nets import fingerprint
from theodolite.nets.checkpoint import Checkpoint
from theodolite.nets.contract import nets
from theodolite.nets.load import blueprint, load
from theodolite.nets.reading import Kind, kind_of
from theodolite.nets.size import count_parameters, fit_budget, own_name


@dataclass(frozen=True)
class Candidate:
    """`name` is what tables show; `given` are arguments the user set. `like` is the net whose size it is given at
    equal inputs and outputs, `budget` a number of parameters; with neither it keeps its own shape."""

    net: Net
    name: str
    kind: Kind
    polynomial: bool
    version: int = 1
    source: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    budget: int | None = None
    like: Candidate | None = None
    _fitted: dict[str, dict[str, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def spelt(self) -> str:
        """How it is written on the command line."""
        arguments = "".join(f" --arg {name}={value}" for name, value in self.given.items())
        if isinstance(self.net, Checkpoint):
            return f"{self.net.net} --weights {self.net.file}"
        return f"{self.net if isinstance(self.net, str) else self.name}{arguments}"

    @property
    def built(self) -> bool:
        """It has one set of weights, and is not trained anew."""
        return isinstance(self.net, torch.nn.Module | Checkpoint)

    @property
    def registered(self) -> bool:
        return isinstance(self.net, str) and self.net in nets

    def named(self) -> dict[str, Any]:
        """What a cell says of its net."""
        return {"net": self.name, "net_version": self.version, "source": self.source}

    def parameters(self, **sizes: Any) -> int:
        """How many there are at these sizes of input and output."""
        return count_parameters(load(self.net, **self.shape(**sizes), **sizes).module)

    def target(self, **sizes: Any) -> int | None:
        """The number of parameters it should have at these sizes; its budget where the other net fails there."""
        if self.like is None:
            return self.budget
        try:
            return self.like.parameters(**self.like.fitting(sizes))
        except BadInput:
            return self.budget

    def shape(self, **sizes: Any) -> dict[str, Any]:
        """Its arguments at these sizes, which are not among them; fitted once, whichever sections ask."""
        asked = canonical(sizes)
        if asked not in self._fitted:
            self._fitted[asked] = self._fit(sizes)
        return dict(self._fitted[asked])

    def _fit(self, sizes: Mapping[str, Any]) -> dict[str, Any]:
        target = self.target(**sizes)
        if target is None or not self.registered or own_name("width", nets[str(self.net)].arguments) is None:
            return dict(self.given)
        try:
            fitted = fit_budget(self.net, target, **sizes, **self.given)
        except BadInput as error:  # no width comes near: this size is not for this architecture
            raise NotApplicable(str(error)) from error
        return {name: value for name, value in fitted.items() if name not in sizes}

    def measured(self, tokens: int = 8) -> dict[str, Any]:
        """The shape that instruments measure: so many tokens of 4 features, or a vector of 8, at its size."""
        sizes = self.fitting({"tokens": tokens, "features": 4} if self.kind == "sequence" else {"features": 8})
        return {**sizes, **self.shape(**sizes)}

    def fitting(self, sizes: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the sizes that the net can be told."""
        if not self.registered:
            return dict(sizes)
        known = nets[str(self.net)].arguments
        return {name: value for name, value in sizes.items() if name in known}


def candidate(net: Net, given: Mapping[str, Any] | None = None) -> Candidate:
    """What the survey needs to know of a net before it plans anything."""
    given = dict(given or {})
    plan = blueprint(net, **given)
    source = plan.code if isinstance(net, str) else fingerprint.of_object(net)
    if plan.registered:
        entry = nets[plan.name]
        return Candidate(net, plan.name, entry.kind, entry.polynomial, entry.version, source, given)
    kind = kind_of(net, given)
    return Candidate(net, plan.name, kind, _polynomial(net, kind, given), plan.version, source, given)


def before_and_after(net: Net, weights: str | Path, given: Mapping[str, Any] | None = None) -> tuple[Candidate, ...]:
    """One net as it is built anew, and with the weights of a file."""
    named = location(net)
    pair = [Checkpoint(named, str(Path(weights).resolve()), dict(given or {}), trained) for trained in (False, True)]
    kind = kind_of(pair[0], {})
    return tuple(Candidate(one, one.name, kind, polynomial=False, source=one.source) for one in pair)


def candidates(
    named: Sequence[Net],
    defaults: Sequence[str],
    given: Mapping[str, Any] | None,
    budget: int | None,
    fallback: int,
    alone: bool = False,
) -> tuple[Candidate, ...]:
    """The nets of a survey. A user's net brings built-in ones of its kind and size to compare it with.

    Built-in nets have `budget` parameters, without one as many as the user's net, without such a net `fallback`.
    """
    chosen = [candidate(net, given) for net in dict.fromkeys(named)] if named else []
    names = [one.name for one in chosen]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"two nets are called '{twice}': rename one of them, or survey them one at a time")
    own = next((one for one in chosen if not one.registered), None)
    if not chosen:
        chosen = [candidate(name) for name in defaults]
    elif own is not None and not alone:
        others = [candidate(name) for name in defaults if name not in names]
        chosen += [one for one in others if one.kind == own.kind]
    return tuple(_sized(one, budget, own, fallback) for one in chosen)


def _sized(one: Candidate, budget: int | None, own: Candidate | None, fallback: int) -> Candidate:
    if not one.registered:
        return one
    if any(name in one.given for name in ("width", "hidden_size", "d_model", "n_embd")):
        return one  # the user chose the width
    return replace(one, budget=budget or fallback, like=own if budget is None else None)


def _polynomial(net: Net, kind: Kind, given: Mapping[str, Any]) -> bool:
    """Whether the exact instrument takes it: told by using it at four points."""
    sizes = {"tokens": 4} if kind == "sequence" else {}
    try:
        separation_rank(net, points=4, repeats=1, **{**sizes, **given})
    except Exception:  # not polynomial, or broken: then an instrument that reports it will find out
        return False
    return True
