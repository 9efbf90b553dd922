"""Networks of blocks of degree d that all spend one budget of square matrices, by their measured parameters.

A budget of B at width w is B·w² parameters in blocks. A degree takes part where its blocks spend the budget to the
last parameter: p equal blocks for a whole p, or mixed blocks in some order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from theodolite.errors import BadInput, NotPolynomial
from theodolite.nets.contract import Predictable, nets, positive
from theodolite.nets.from_file import is_file
from theodolite.nets.load import Subject, blueprint, load
from theodolite.nets.size import measured_parameters
from theodolite.partition import Partition
from theodolite.registry import unknown
from theodolite.theory.degree import COUNTS

WIDE, NARROW = 4, 2  # widths unless given: of fully connected nets; of nets of tokens, whose ranks are larger
USUAL = (2, 3, 4, 5, 6)  # degrees that are tried unless others are asked for
OWN = "own"  # the count of a user's net, which says itself how many matrices its blocks have
_LARGEST_MIXED = 60  # budgets above have too many mixtures to list
_FAMILIES = {"fully-connected": "polynomial-mlp", "attention": "degree-attention", "mixer": "polynomial-mixer"}


@dataclass(frozen=True)
class Family:
    """An architecture of blocks: a built-in one, or a user's own that takes `degree`, `depth` and `width`.

    A Mixer's block of degree d mixes the tokens with degree d and then the channels with degree d, so it counts twice.
    """

    name: str
    net: str
    width: int
    shape: Mapping[str, int]  # of the input: `features`, `tokens`

    @classmethod
    def named(cls, name: str, width: int | None = None, inputs: int | None = None, tokens: int | None = None) -> Family:
        """`inputs` are the numbers on each side of a fully connected net, `tokens` all tokens of the others."""
        width = (NARROW if name in ("attention", "mixer") else WIDE) if width is None else width
        positive(width=width, inputs=1 if inputs is None else inputs, tokens=1 if tokens is None else tokens)
        if is_file(name):
            given = {"features": None if inputs is None else 2 * inputs, "tokens": tokens}
            given = {key: value for key, value in given.items() if value is not None}
            known = blueprint(name, width=width, degree=2, depth=1, **given).known
            if "features" in known and not given and not {"tokens", "vocab"} & set(known):
                given["features"] = 2 * max(1, width // 2)
            return cls(name, name, width, given)
        if name not in _FAMILIES:
            if name in nets and not nets[name].polynomial:
                raise NotPolynomial(
                    f"the blocks of '{name}' are not polynomial, so their rank cannot be exact: use "
                    f"{', '.join(_FAMILIES)}, or 'theodolite rank {name} --mode epsilon'"
                )
            raise BadInput(unknown("family", name, _FAMILIES))
        if name == "fully-connected":
            if tokens is not None:
                raise BadInput(f"--tokens {tokens} is for attention and mixer and the family is {name}: use --inputs")
            return cls(name, _FAMILIES[name], width, {"features": 2 * (inputs or max(1, width // 2))})
        if inputs is not None:
            raise BadInput(f"--inputs {inputs} is for fully connected nets and the family is {name}: use --tokens")
        if tokens == 1:
            raise BadInput("1 token leaves a side without any: use --tokens 2 or more")
        return cls(name, _FAMILIES[name], width, {"tokens": tokens or (max(2, width) if name == "mixer" else 2)})

    @cached_property
    def known(self) -> Mapping[str, Any]:
        """Arguments of the net; one that takes no degree, depth or width is refused by name."""
        return blueprint(self.net, width=self.width, degree=2, depth=1, **self.shape).known

    def counts(self, matrices: str) -> tuple[str, ...]:
        """The counts of matrices that were asked for."""
        if matrices not in (*COUNTS, "all"):
            raise BadInput(unknown("count of matrices", matrices, (*COUNTS, "all")))
        if "matrices" in self.known:
            return COUNTS if matrices == "all" else (matrices,)
        if matrices not in ("all", "d"):
            raise BadInput(f"'{self.name}' takes no argument 'matrices', so {matrices} cannot be set: leave it out")
        return (OWN,)

    @property
    def own(self) -> bool:
        """Whether it is the user's."""
        return self.name not in _FAMILIES

    def cap(self, degrees: Sequence[int], count: str) -> int | None:
        """The bound on the rank for all weights, where theory has one, without building the net in memory."""
        if self.own:
            return None
        with torch.device("meta"):
            subject = self.subject(degrees, count, 0)
        module, sites = subject.module, subject.sites
        if not isinstance(module, Predictable):
            return None
        split = Partition.parse("left-right", sites)
        return module.predict(split, sites - 1 if subject.kind == "sequence" else 0).cap

    def subject(self, degrees: Sequence[int], count: str, seed: int) -> Subject:
        return load(self.net, seed=seed, **self._arguments(degrees, count))

    def parameters(self, degrees: Sequence[int], count: str) -> int:
        """Measured, where it can be on a net that takes no memory."""
        return measured_parameters(blueprint(self.net, **self._arguments(degrees, count)))

    def block(self, degree: int, count: str) -> int:
        """Parameters that one block more adds."""
        added = self.parameters((degree, degree), count) - self.parameters((degree,), count)
        if added < 1:
            raise BadInput(f"a block more adds {added} parameters to '{self.name}': no budget can be spent on such")
        return added

    def total_degree(self, degrees: Sequence[int]) -> int:
        """Blocks are composed, so their degrees multiply."""
        return math.prod(degrees) ** (2 if self.name == "mixer" else 1)

    def _arguments(self, degrees: Sequence[int], count: str) -> dict[str, Any]:
        """What the net is built with: equal blocks by `depth` and `degree`, others by `degrees`."""
        chosen: dict[str, Any] = {"width": self.width, **self.shape}
        if count != OWN:
            chosen["matrices"] = count
        if len(set(degrees)) == 1:
            channels = {"channel_degree": degrees[0]} if self.name == "mixer" else {}
            return {**chosen, "degree": degrees[0], "depth": len(degrees), **channels}
        return {**chosen, "degrees": list(degrees)}

    def check_mixed(self) -> None:
        if self.name == "mixer":
            raise BadInput("--mixed is for fully-connected and attention and the family is mixer: leave it out")
        if "degrees" not in self.known:
            raise BadInput(
                f"'{self.name}' takes no argument 'degrees', so its blocks cannot be mixed: leave --mixed out"
            )


@dataclass(frozen=True)
class Design:
    """One network of the comparison: its blocks' degrees, first block first."""

    family: Family
    count: str
    budget: int
    degrees: tuple[int, ...]

    @cached_property
    def parameters(self) -> int:
        """All of them: an embedding or what else is not a block is the same in every design."""
        return self.family.parameters(self.degrees, self.count)

    @cached_property
    def cap(self) -> int | None:
        return self.family.cap(self.degrees, self.count)

    @property
    def total_degree(self) -> int:
        return self.family.total_degree(self.degrees)

    @property
    def matrices(self) -> int:
        """Square matrices in all blocks, as their measured parameters say."""
        each = {degree: self.family.block(degree, self.count) for degree in set(self.degrees)}
        spent = sum(each[degree] for degree in self.degrees)
        return spent // self.family.width**2


def designs(
    family: Family,
    budgets: Sequence[int],
    counts: Sequence[str],
    degrees: Sequence[int] | None,
    mixed: int = 0,
    needed: bool = True,
) -> tuple[list[Design], list[str]]:
    """All designs that spend a budget exactly, and a sentence for everything that was left out.

    `mixed` is how many orders of the best mixed degrees are added for each budget and count. A budget without any
    design is refused where one is `needed`.
    """
    if mixed:
        family.check_mixed()
    found: list[Design] = []
    left: list[str] = []
    ordered: list[str] = []
    unmixed: list[str] = []
    tried = tuple(sorted(set(degrees or USUAL)))
    costs = {count: {degree: family.block(degree, count) for degree in tried} for count in counts}
    for budget in budgets:
        before, spend = len(found), budget * family.width**2
        for count, blocks in costs.items():
            fitting = {degree: spend // cost for degree, cost in blocks.items() if spend % cost == 0}
            found += [Design(family, count, budget, (degree,) * depth) for degree, depth in fitting.items()]
            where = f"(budget {budget})" if count == OWN else f"(budget {budget}, {count} matrices a block)"
            if others := [str(degree) for degree in tried if degree not in fitting]:
                left.append(f"{', '.join(others)} {where}")
            if mixed:
                orders, every = _best_mixed(blocks, spend, budget, mixed)
                found += [Design(family, count, budget, order) for order in orders]
                if not every:
                    unmixed.append(where)
                elif len(orders) < every:
                    ordered.append(f"{len(orders)} of {every} {where}")
        if needed and len(found) == before:
            raise BadInput(_nothing_fits(budget, costs, family.width**2))
    notes = (
        [f"left out of the ranks, for their blocks do not divide the budget: degrees {'; '.join(left)}"] if left else []
    )
    if ordered:
        notes.append(f"orders of the best mixed degrees that are measured: {'; '.join(ordered)}")
    if unmixed:
        note = f"no mixed degrees spend the budget {'; '.join(unmixed)}"
        named = ", ".join(map(str, tried))
        notes.append(f"{note}: --degrees restricts the mix, here to {named}" if degrees else note)
    return found, notes


def _nothing_fits(budget: int, costs: Mapping[str, Mapping[int, int]], square: int) -> str:
    cost, degree, count = min((cost, degree, count) for count, own in costs.items() for degree, cost in own.items())
    size = f"{cost / square:g}"
    per = "" if count == OWN else f" ({count} a block)"
    if cost > budget * square:
        return (
            f"a budget of {budget} is smaller than one block of degree {degree}, which has {size} square "
            f"matrices{per}: use a budget of at least {math.ceil(cost / square)}"
        )
    return (
        f"no block of the degrees asked for divides a budget of {budget}: degree {degree} has {size} square "
        f"matrices{per}, so use a multiple of that"
    )


def _best_mixed(blocks: Mapping[int, int], spend: int, budget: int, most: int) -> tuple[list[tuple[int, ...]], int]:
    """Orders of the mixed degrees whose product is largest, at most so many, and how many there are."""
    if budget > _LARGEST_MIXED:
        raise BadInput(f"mixed degrees are listed up to a budget of {_LARGEST_MIXED}, not {budget}: leave --mixed out")
    mixtures = [m for m in _mixtures(sorted(blocks), blocks, spend) if len(set(m)) > 1]
    best = max((math.prod(m) for m in mixtures), default=0)
    winners = sorted((m for m in mixtures if math.prod(m) == best), key=len)
    orders: list[tuple[int, ...]] = []
    for number, mixture in enumerate(winners):  # a fair share for each of equal mixtures
        orders += _orders(mixture, (most - len(orders)) // (len(winners) - number))
    every = sum(math.factorial(len(m)) // math.prod(math.factorial(m.count(d)) for d in set(m)) for m in winners)
    return orders, every


def _mixtures(degrees: Sequence[int], blocks: Mapping[int, int], spend: int) -> Iterator[tuple[int, ...]]:
    """Multisets of degrees whose blocks spend exactly so much, in rising order."""
    if spend == 0:
        yield ()
    for place, degree in enumerate(degrees):
        if blocks[degree] <= spend:
            for rest in _mixtures(degrees[place:], blocks, spend - blocks[degree]):
                yield (degree, *rest)


def _orders(mixture: tuple[int, ...], most: int) -> list[tuple[int, ...]]:
    """Orders of one multiset: rising, falling, then the falling one turned round step by step."""
    falling = mixture[::-1]
    turned = [falling[-shift:] + falling[:-shift] for shift in range(1, len(falling))]
    return list(dict.fromkeys([mixture, falling, *turned]))[:most]
