"""The remedies: a failure turned into a success, and what it costs.

Two need no gradient and are measured here. *Reformulate*: the parity that fits examples is a system of linear equations
over GF(2). *Guess*: in a small class try the members in random order; one that is wrong errs on every second example.
The other three (decompose, another objective, geometry) are variants of the experiments; `balance` puts all side by
side.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.claims.tables.experiment import Experiment, Part, experiments, read, result
from theodolite.errors import BadInput
from theodolite.nets.contract import positive


@dataclass(frozen=True)
class Elimination:
    """A random parity of `bits` bits, for each of `seeds` seeds, checked on `test` fresh examples."""

    bits: int
    seeds: int = 5
    test: int = 10_000

    def __post_init__(self) -> None:
        positive(bits=self.bits, seeds=self.seeds, test=self.test)


@dataclass(frozen=True)
class Guessing:
    """The class: prefixes of `bits` bits (`size` None, the class of §2), or all subsets of `size` of them.

    A guess is taken once it was right on `confirm` examples.
    """

    bits: int
    size: int | None = None
    seeds: int = 5
    confirm: int = 64

    def __post_init__(self) -> None:
        positive(bits=self.bits, seeds=self.seeds, confirm=self.confirm)
        if self.size is not None and not 0 < self.size <= self.bits:
            raise BadInput(f"size = {self.size} of {self.bits} bits is no class of parities: give 1 to {self.bits}")
        if self.members > 10**6:
            raise BadInput(f"a class of {self.members:,} parities is too large to guess in: give fewer bits or size")

    @property
    def members(self) -> int:
        return self.bits + 1 if self.size is None else math.comb(self.bits, self.size)


@dataclass(frozen=True)
class Solved:
    """`subset` has bit i set where input i matters; `operations` counts the bits that were added or compared."""

    subset: int
    examples: int
    operations: int


def parity_by_elimination(examples: Iterable[tuple[int, bool]], bits: int) -> Solved:
    """Read examples (bits of x as an integer, whether y = −1) until one parity is left that fits them.

    Every example is reduced by the pivots so far; what remains is a pivot or carries nothing new. About bits + 1.6 of
    them suffice, since a random matrix over GF(2) is soon regular, and about bits³/4 operations.
    """
    pivots: dict[int, int] = {}
    used = operations = 0
    for inputs, odd in examples:
        used += 1
        row = inputs << 1 | odd  # the label is the lowest bit
        while row > 1:
            top = row.bit_length() - 1
            if top not in pivots:
                pivots[top] = row
                break
            row ^= pivots[top]
            operations += bits + 1
        if row == 1:
            raise BadInput(f"no parity fits the first {used} examples: elimination needs labels without noise")
        if len(pivots) == bits:
            break
    else:
        raise BadInput(f"{used} examples leave {2 ** (bits - len(pivots))} parities of {bits} bits: give more")
    subset = 0
    for top in sorted(pivots):  # lower ones are known: read off the one that is new
        known = pivots[top] & (subset << 1)
        operations += bits
        if (known.bit_count() + pivots[top]) & 1:
            subset |= 1 << (top - 1)
    return Solved(subset, used, operations)


def run_elimination(settings: Elimination, seed: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    solved, accuracy = [], []
    for _ in range(settings.seeds):
        truth = _bits((settings.bits,), generator)
        drawn = _bits((settings.bits + 64, settings.bits), generator)
        found = parity_by_elimination(zip(_integers(drawn), _odd(drawn, truth), strict=True), settings.bits)
        subset = torch.tensor([found.subset >> i & 1 for i in range(settings.bits)])
        fresh = _bits((settings.test, settings.bits), generator)
        accuracy.append(float(np.mean(np.equal(_odd(fresh, truth), _odd(fresh, subset)))))
        solved.append(found)
    return result(
        f"reformulate: elimination over GF(2), d = {settings.bits}",
        {
            "examples": [s.examples for s in solved],
            "bit operations": [s.operations for s in solved],
            "final accuracy": accuracy,
        },
    )


def run_guessing(settings: Guessing, seed: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    every = _class(settings)
    tried, evaluations = [], []
    for _ in range(settings.seeds):
        order = torch.randperm(len(every), generator=generator)
        truth = every[int(torch.randint(0, len(every), (1,), generator=generator))]
        drawn = _bits((settings.confirm, settings.bits), generator)
        wrong = ((drawn @ every[order].T) - (drawn @ truth)[:, None]) % 2 != 0  # (example, guess)
        right = int((~wrong.any(0)).int().argmax())
        errs = wrong[:, :right].int().argmax(0)
        tried.append(right + 1)
        evaluations.append(int((errs + 1).sum()) + settings.confirm)
    name = "prefixes" if settings.size is None else f"subsets of {settings.size}"
    wrong_before = (settings.members - 1) / 2
    return result(
        f"guess: {name}, d = {settings.bits}",
        {"guesses": tried, "evaluations": evaluations},
        members=settings.members,
        expected_guesses=wrong_before + 1,
        expected_evaluations=2 * wrong_before + settings.confirm,
        expected_guesses_all_parities=2.0 ** (settings.bits - 1),
    )


def balance(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Failure beside remedy with the cost, from `result` rows; a remedy that was not run is left out."""
    quantities = {row["setting"]: row["quantities"] for row in rows}
    cost = {row["setting"]: row["details"] for row in rows}
    lines = []
    for name, failed, cured, quantity, cost_of in _PAIRS:
        if failed in quantities and cured in quantities and quantity in quantities[failed]:
            shared = quantity if quantity in quantities[cured] else next(iter(quantities[cured]))
            lines.append(
                {
                    "remedy": name,
                    "failure": failed,
                    "success": cured,
                    "quantity": quantity,
                    "before": _median(quantities[failed][quantity]),
                    "after": _median(quantities[cured][shared]),
                    "cost": cost_of(quantities, cost),
                }
            )
    return lines


_PARITY, _ELIMINATED = "d = 30, k = 15", "reformulate: elimination over GF(2), d = 30"
_PAIRS = (
    (
        "reformulate",
        _PARITY,
        _ELIMINATED,
        "final accuracy",
        lambda q, c: (
            f"{_median(q[_ELIMINATED]['examples'])} examples and {_median(q[_ELIMINATED]['bit operations'])} bit "
            f"operations, against {c[_PARITY]['iterations'] * c[_PARITY]['batch']:,} examples for nothing"
        ),
    ),
    *(
        (
            "decompose",
            f"k = {k}, end to end",
            f"k = {k}, decomposed",
            "accuracy",
            lambda q, c, k=k: (
                f"{c[f'k = {k}, decomposed']['labels_per_tuple']} labels a tuple instead of 1, "
                f"{c[f'k = {k}, decomposed']['iterations']:,} iterations instead of "
                f"{c[f'k = {k}, end to end']['iterations']:,}"
            ),
        )
        for k in (3, 4)
    ),
    *(
        (
            "other objective",
            "approximation",
            cured,
            "share near",
            lambda q, c, cured=cured, price=price: f"{price}; {c[cured]['iterations']:,} iterations",
        )
        for cured, price in (
            ("multi-class", "30,300 weights instead of 101, one class a step"),
            ("forward only", "no weight more; its update is no gradient of the loss"),
        )
    ),
    (
        "geometry",
        "linear",
        "conditioned",
        "loss at 500",
        lambda q, c: "3 weights instead of 10,000, and the inverse root of a 3×3 matrix",
    ),
)


def _median(values: Sequence[float | None]) -> str:
    known = sorted(math.inf if v is None else v for v in values)
    middle = known[len(known) // 2]
    return "never" if middle == math.inf else f"{middle:,}" if isinstance(middle, int) else f"{middle:.3g}"


def _bits(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    return torch.randint(0, 2, tuple(shape), generator=generator)


def _odd(x: Tensor, subset: Tensor) -> list[bool]:
    return (x @ subset % 2).bool().tolist()


def _integers(x: Tensor) -> list[int]:
    """Rows of bits as integers, column i as bit i."""
    packed = np.packbits(x.numpy().astype(np.uint8), axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


def _class(settings: Guessing) -> Tensor:
    """(member, bit): every parity of the class."""
    bits = settings.bits
    if settings.size is None:
        return torch.tril(torch.ones(bits + 1, bits, dtype=torch.int64), diagonal=-1)
    places = torch.tensor(list(itertools.combinations(range(bits), settings.size)))
    return torch.zeros(len(places), bits, dtype=torch.int64).scatter_(1, places, 1)


def measure_failure_elimination(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    return run_elimination(read(Elimination, config), seed)


def measure_failure_guessing(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    return run_guessing(read(Guessing, config), seed)


_PARTS = (
    *(Part("failure-elimination", Elimination(bits)) for bits in (30, 100, 1_000)),
    *(Part("failure-guessing", Guessing(30, size)) for size in (None, 3)),
)
experiments.add(
    "remedies", Experiment("remedies", "Remedies without a gradient", "§2", {"quick": _PARTS, "full": _PARTS})
)
