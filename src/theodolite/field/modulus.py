"""A prime p and arithmetic modulo it on float64 tensors that hold centred residues.

Exactness. Integers up to 2⁵³ are exact in float64. Let |x| ≤ min(2⁵³ − p, 2³⁰·p). The computed quotient x·(1/p) is
wrong by at most 2⁻⁵²·|x|/p, so after rounding it the remainder has magnitude at most p/2 + 2 and its computation is
exact. Hence a sum of `terms` products of residues stays exact, and a residue is zero modulo p exactly when it is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from theodolite.errors import BadInput
from theodolite.field import kernels

LARGEST = 1 << 25  # beyond it fewer than 32 products fit into one exact sum
_SLACK = 2
_TILE = 1 << 19  # entries reduced at a time on a CPU, so that the three passes stay in cache


@dataclass(frozen=True)
class Modulus:
    """A prime between 2 and 2²⁵, refused otherwise."""

    p: int

    def __post_init__(self) -> None:
        if self.p >= LARGEST:
            raise BadInput(f"modulus {self.p} is too large for exact sums in float64: use a prime below 2^25")
        if not is_prime(self.p):
            raise BadInput(f"modulus {self.p} is not prime: the nearest prime below is {prime_below(self.p)}")

    @property
    def terms(self) -> int:
        """How many products of residues may be added before the sum must be reduced (512 just below 2²³)."""
        bound = self.p // 2 + _SLACK
        return min((1 << 53) - 2 * self.p, self.p << 30) // (bound * bound)

    def reduce_(self, x: Tensor) -> Tensor:
        """Centred residues of a tensor of integers in the range above, in place."""
        if x.device.type == "cuda" and kernels.available():
            flat = x.view(1, -1) if x.is_contiguous() else x
            if flat.dim() == 2 and flat.stride(1) == 1:
                kernels.reduce_(flat, self.p)
                return x
        if x.device.type == "cpu" and x.numel() > _TILE:
            if x.is_contiguous():
                for tile in x.view(-1).split(_TILE):
                    self._reduce_tile(tile)
                return x
            if x.dim() == 2:
                for tile in x.split(max(1, _TILE // x.shape[1])):
                    self._reduce_tile(tile)
                return x
        self._reduce_tile(x)
        return x

    def _reduce_tile(self, x: Tensor) -> None:
        quotient = x * (1.0 / self.p)
        x.sub_(quotient.round_(), alpha=float(self.p))

    def reduce(self, x: Tensor) -> Tensor:
        return self.reduce_(x.to(torch.float64, copy=True))

    def canonical(self, x: Tensor) -> Tensor:
        """Residues as int64 from 0 to p − 1: the one form that can be compared and printed."""
        return x.to(torch.int64).remainder(self.p)

    def centred(self, x: Tensor) -> Tensor:
        """Any int64 tensor as centred residues."""
        r = x.remainder(self.p)
        return torch.where(r > self.p // 2, r - self.p, r).to(torch.float64)

    def inverse(self, value: int) -> int:
        if value % self.p == 0:
            raise BadInput(f"{value} is 0 modulo {self.p} and has no inverse: use another prime")
        return pow(value, -1, self.p)

    def power(self, x: Tensor, exponent: int) -> Tensor:
        """Entrywise power by repeated squaring; the exponent is at least 0."""
        result, base = torch.ones_like(x), x
        while exponent:
            if exponent & 1:
                result = self.reduce_(result * base)
            exponent >>= 1
            if exponent:
                base = self.reduce_(base * base)
        return result

    def inverses(self, x: Tensor) -> Tensor:
        """Entrywise inverse, 0 for 0, as the power p − 2: no branch and no host synchronisation."""
        return self.power(x, self.p - 2) if self.p > 2 else x.clone()

    def lift(self, x: Tensor) -> Tensor:
        """An ordinary tensor as residues; a float is taken as the dyadic rational it is, exactly."""
        if x.dtype == torch.bool or not x.dtype.is_floating_point:
            if x.dtype.is_complex:
                raise BadInput("a complex tensor has no residues modulo a prime: use real parameters")
            return self.centred(x.to(torch.int64))
        if not bool(torch.isfinite(x).all()):
            raise BadInput("a constant that is infinite or NaN has no residue modulo a prime: remove it from the net")
        if self.p == 2:
            if bool((x != x.round()).any()):
                raise BadInput("a fraction such as 0.5 has no residue modulo 2: use an odd prime")
            return self.centred(x.to(torch.int64))
        mantissa, exponent = torch.frexp(x.to(torch.float64))
        whole = self.centred((mantissa * 2.0**53).to(torch.int64))
        low = int(exponent.min()) if exponent.numel() else 0
        high = int(exponent.max()) if exponent.numel() else 0
        powers = torch.tensor(
            [pow(2, e - 53, self.p) for e in range(low, high + 1)], dtype=torch.int64, device=x.device
        )
        return self.reduce_(whole * self.centred(powers)[(exponent - low).to(torch.int64)])

    def lift_number(self, value: float | int) -> int:
        """A Python number as a residue from 0 to p − 1; a float is taken as the dyadic rational it is."""
        try:
            numerator, denominator = value.as_integer_ratio()
        except (OverflowError, ValueError):
            raise BadInput(f"the constant {value} has no residue modulo a prime: remove it from the net") from None
        return numerator * self.inverse(denominator) % self.p


def is_prime(n: int) -> bool:
    """Miller–Rabin with bases that decide every n below 3·10²⁴."""
    if n < 2:
        return False
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    for q in bases:
        if n % q == 0:
            return n == q
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in bases:
        x = pow(base, odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def prime_below(n: int) -> int:
    """The largest prime smaller than n (2 if there is none)."""
    n -= 1
    while n > 2 and not is_prime(n):
        n -= 1
    return max(n, 2)
