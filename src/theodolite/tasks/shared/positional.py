"""Exact arithmetic on rows of digits, the least significant first: (…, place) int64, any number of places.

Nothing here waits for the device: what a loop runs over is known from the shapes alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor

_WORD = 62  # bits that an int64 holds with room to spare
_FLOAT = 52  # bits below which the root of a float64, rounded down, is that of the whole number


def draw_positive(bits: Tensor, width: int, generator: torch.Generator) -> Tensor:
    """Binary numbers uniform on 1 … 2^bits − 1, written in `width` places; `bits` (…) is 1 to `width`.

    Drawn from 0 on, and a zero is replaced by a draw of another kind. That has at most 30 bits, so that the law is
    exact up to 30 and wrong by less than 2⁻³⁰ beyond.
    """
    places = torch.arange(width, device=bits.device)
    digits = torch.randint(2, (*bits.shape, width), generator=generator, device=bits.device)
    digits = digits * (places < bits[..., None])
    noise = torch.empty(bits.shape, dtype=torch.int64, device=bits.device).random_(generator=generator)
    instead = 1 + noise % ((1 << bits.clamp(max=30)) - 1)
    return torch.where(digits.any(dim=-1, keepdim=True), digits, unpack(instead, width))


def pack(digits: Tensor) -> Tensor:
    """The numbers behind at most 62 binary digits."""
    return (digits << torch.arange(digits.shape[-1], device=digits.device)).sum(dim=-1)


def unpack(numbers: Tensor, width: int) -> Tensor:
    """The lowest `width` binary digits of numbers below 2^62."""
    return (numbers[..., None] >> torch.arange(width, device=numbers.device).clamp(max=_WORD)) & 1


def count_digits(digits: Tensor) -> Tensor:
    """How many digits each number has, those above its highest non-zero one left out; none for zero."""
    return ((digits != 0) * torch.arange(1, digits.shape[-1] + 1, device=digits.device)).amax(dim=-1)


def carries(generate: Tensor, propagate: Tensor) -> Tensor:
    """What every place hands to the next one: 1 where it generates a carry, or propagates one handed to it.

    That is decided by the last place before which does not propagate; the largest number so far tells which.
    """
    width = generate.shape[-1]
    small = torch.int16 if width < 2**14 else torch.int64  # a quarter of the memory to go through
    places = torch.arange(0, 2 * width, 2, device=generate.device, dtype=small)
    return (places + generate).masked_fill_(propagate, 0).cummax(dim=-1).values & 1


def add(first: Tensor, second: Tensor, base: int) -> Tensor:
    """The sum, in as many places as the two are written in: what it carries beyond is lost."""
    return _settle(first + second, base)


def _settle(sums: Tensor, base: int) -> Tensor:
    """The digits of a number of which the sum of two digits is known at every place."""
    carried = carries(sums >= base, sums == base - 1)
    sums[..., 1:] += carried[..., :-1]
    return sums.remainder_(base)


def multiply(first: Tensor, second: Tensor) -> Tensor:
    """The product of two binary numbers, in as many places as each of the two is written in: more are lost."""
    width = first.shape[-1]
    if width <= _WORD:
        return unpack(pack(first) * pack(second), width)
    size = 1 << (2 * width - 1).bit_length()
    spectrum = torch.fft.rfft(first.double(), size) * torch.fft.rfft(second.double(), size)
    sums = torch.fft.irfft(spectrum, size)[..., :width].round().long()
    # Up to `width` ones meet in a place. Each such count, written in binary, gives every place at most as many ones
    # as a count has digits; once there are only two, a carry is enough.
    most = width
    while most > 2:
        shifted = (F.pad((sums >> bit) & 1, (bit, 0))[..., :width] for bit in range(most.bit_length()))
        sums, most = _sum(shifted), most.bit_length()
    return _settle(sums, base=2)


def square_root(digits: Tensor) -> Tensor:
    """The square root of a binary number, rounded down, in half as many places, rounded up."""
    places = (digits.shape[-1] + 1) // 2
    if digits.shape[-1] <= _FLOAT:
        return unpack(pack(digits).double().sqrt().long(), places)
    # Digit by digit from the top: what the root's square leaves of the number, less what the next digit would add.
    rest = F.pad(digits, (0, 2 * places + 2 - digits.shape[-1])).to(torch.int16)
    root = torch.zeros((*digits.shape[:-1], places), dtype=torch.int16, device=digits.device)
    for place in range(places - 1, -1, -1):
        known = places - 1 - place
        window = rest[..., 2 * place : 2 * place + known + 3]
        left = window.clone()
        left[..., 0] -= 1
        left[..., 2 : known + 2] -= root[..., place + 1 :]
        borrowed = carries(left < 0, left == 0)
        fits = borrowed[..., -1:] == 0
        left[..., 1:] -= borrowed[..., :-1]
        window.copy_(torch.where(fits, left & 1, window))
        root[..., place] = fits[..., 0]
    return root.long()


def to_number(digits: Iterable[float], base: int) -> int:
    """The Python integer behind some digits, the least significant first."""
    return sum(int(digit) * base**place for place, digit in enumerate(digits))


def to_digits(number: int, base: int) -> list[int]:
    """The digits of a Python integer, the least significant first; none for zero."""
    digits = []
    while number:
        number, digit = divmod(number, base)
        digits.append(digit)
    return digits


def _sum(parts: Iterable[Tensor]) -> Tensor:
    first, *others = parts
    return sum(others, start=first)
