"""A network of the user's own, over GF(p): is it a polynomial, and the one that it is in floats?

A built-in network is read and tested. A file of somebody else may do anything with the residues that it is handed: look
a table up, know the prime, tell the field from floats. Two checks, at places that are drawn from the system's entropy
and so cannot be foreseen. (a) Along lines through the very weights and points that are used, in random directions of
weights and inputs together, the values are those of one polynomial of low degree. (b) At fractions whose residues look
like any others its values modulo many primes are the residues of one fraction, and that is the value in floats.
"""

from __future__ import annotations

import copy
import math
import secrets
from collections.abc import Iterator
from fractions import Fraction

import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.field import FieldTensor, Modulus, draw_residues
from theodolite.field.modulus import prime_below
from theodolite.instruments.rank.field_sample import FieldSample
from theodolite.instruments.rank.line_degree import degree_of_values

PAIRS = 32  # lines, each through another pair of points
_LONGEST = 1024  # values along a line
_PRIMES = 16  # to begin with; as many as a fraction of the degree found can need, constants of 60 bits counted
_DENOMINATOR = 1 << 26  # above the primes: a fraction is as likely to have one residue as another
_TOLERANCE = Fraction(1, 10**6)


def check_own_net(sample: FieldSample, points: Tensor) -> None:
    """Refuse what is not one polynomial through these points (of all sites), or another one in floats."""
    _check_floats(sample, _check_lines(sample, points))


def _check_lines(sample: FieldSample, points: Tensor) -> int:
    """The degree in weights and inputs together."""
    m, weights = sample.modulus, sample.weights()
    stream = secrets.token_hex(16)
    step = draw_residues(f"{stream}/inputs", tuple(points.shape), m, device=sample.device)
    turn = {
        name: draw_residues(f"{stream}/{name}", tuple(w.shape), m, device=sample.device) for name, w in weights.items()
    }
    size = 64
    while True:
        values = []
        for t in range(size):
            moved = {k: FieldTensor(m.reduce(w.residues + m.reduce(turn[k] * t)), m) for k, w in weights.items()}
            values.append(sample.function.over_field(moved, m)(m.reduce(points + m.reduce(step * t))))
        degree = degree_of_values(torch.stack(values), m)
        if degree < size - 16:
            return degree
        if 4 * size > _LONGEST:
            raise BadInput(
                f"'{sample.function.subject.name}' is no polynomial of degree below {size - 16} in weights and inputs "
                "along a random line, so a rank over GF(p) says nothing of it: it must not read residues or the prime"
            )
        size *= 4


def _check_floats(sample: FieldSample, degree: int) -> None:
    function, subject = sample.function, sample.function.subject
    wild = secrets.SystemRandom()

    def fractions(shape: tuple[int, ...]) -> Tensor:
        numbers = [wild.randrange(_DENOMINATOR) / _DENOMINATOR - 0.5 for _ in range(math.prod(shape))]
        return torch.tensor(numbers, dtype=torch.float64, device=sample.device).view(shape)

    x = fractions((3, subject.sites, subject.features))
    weights = {name: fractions(tuple(parameter.shape)) for name, parameter in subject.module.named_parameters()}
    module = copy.deepcopy(subject.module).to(dtype=torch.float64)
    floats = [Fraction(v) if math.isfinite(v) else None for v in function.with_weights(module, weights)(x).tolist()]
    if None in floats:
        raise BadInput(
            f"'{subject.name}' is not finite at small inputs, so its values over GF(p) cannot be compared with floats"
        )
    allowed = _TOLERANCE * max(abs(v) for v in floats if v is not None)
    # modulo a small prime a polynomial may have a lower degree than it has
    most = _PRIMES + 8 * (degree if sample.modulus.p >= 1 << 20 else 64)
    residues, product = [0] * len(x), 1
    for count, modulus in enumerate(_moduli(sample.modulus, most, wild), 1):
        lifted = {name: FieldTensor(modulus.lift(w), modulus) for name, w in weights.items()}
        found = modulus.canonical(function.over_field(lifted, modulus)(modulus.lift(x))).tolist()
        scale = product * pow(product, -1, modulus.p)
        residues = [(r + (f - r) * scale) % (product * modulus.p) for r, f in zip(residues, found, strict=True)]
        product *= modulus.p
        if count % _PRIMES == 0:
            near = zip([_fraction(r, product) for r in residues], floats, strict=True)
            if all(f is not None and v is not None and abs(f - v) <= allowed for f, v in near):
                return
    raise BadInput(
        f"'{subject.name}' computes something else over GF(p) than in floats: it must not look at the type of its "
        "inputs, at residues or at the prime"
    )


def _moduli(own: Modulus, most: int, wild: secrets.SystemRandom) -> Iterator[Modulus]:
    """The sample's prime, unless it is 2, modulo which fractions have no residue, and others that no file can know."""
    used = {2}
    while len(used) <= most + -most % _PRIMES:
        p = own.p if own.p not in used else prime_below((1 << 23) - wild.randrange(1 << 21))
        if p not in used:
            used.add(p)
            yield Modulus(p)


def _fraction(residue: int, modulus: int) -> Fraction | None:
    """The fraction N/D with this residue and |N|, D well below the root of the modulus, where there is one."""
    largest = math.isqrt(modulus) >> 24
    before, here, under, below = modulus, residue, 0, 1
    while here > largest:
        quotient = before // here
        before, here = here, before - quotient * here
        under, below = below, under - quotient * below
    if not below or abs(below) > largest:
        return None
    found = Fraction(here, below)
    # a factor that both had in common with the modulus would hide a residue that does not fit
    return found if (residue * found.denominator - found.numerator) % modulus == 0 else None
