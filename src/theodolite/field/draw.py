"""Draws by a counter-based rule that anyone can repeat without this library.

Rule 1. The key of a stream named `name` is the first 8 bytes, big-endian, of SHA-256 over the UTF-8 text
"theodolite-draw-1/" + name. The n-th number of the stream (n = 0, 1, …) is z after, modulo 2⁶⁴,

    z = key + (n + 1)·0x9E3779B97F4A7C15
    z = (z ^ (z >> 30))·0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27))·0x94D049BB133111EB
    z = z ^ (z >> 31)

and the n-th residue modulo p is (z >> 1) mod p. (This is the finaliser of SplitMix64 on a keyed counter.)
"""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from theodolite.field.modulus import Modulus, prime_below

RULE = 1
PRIMES_FROM, PRIMES_TO = 3 << 21, (1 << 23) - 64  # primes of 512-term sums: between 1.5·2²² and 2²³


def stream_key(name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"theodolite-draw-{RULE}/{name}".encode()).digest()[:8], "big")


def draw_words(name: str, count: int, start: int = 0, device: torch.device | str = "cpu") -> Tensor:
    """Numbers `start` to `start + count` of a stream, as non-negative int64 (z >> 1)."""
    z = torch.arange(start + 1, start + count + 1, dtype=torch.int64, device=device)
    z = z * _signed(0x9E3779B97F4A7C15) + _signed(stream_key(name))
    z = (z ^ _shift(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shift(z, 27)) * _signed(0x94D049BB133111EB)
    return _shift(z ^ _shift(z, 31), 1)


def draw_residues(
    name: str, shape: tuple[int, ...], modulus: Modulus, start: int = 0, device: torch.device | str = "cpu"
) -> Tensor:
    """Centred residues in row-major order, beginning with number `start` of the stream."""
    count = 1
    for size in shape:
        count *= size
    return modulus.centred(draw_words(name, count, start, device)).reshape(shape)


def draw_prime(name: str) -> int:
    """A prime just below a drawn number, in the range whose exact sums hold 512 terms."""
    word = int(draw_words(name, 1)[0])
    return prime_below(PRIMES_FROM + word % (PRIMES_TO - PRIMES_FROM))


def _signed(word: int) -> int:
    """The int64 with these 64 bits."""
    return word - (1 << 64) if word >> 63 else word


def _shift(z: Tensor, bits: int) -> Tensor:
    """Logical shift right: torch's is arithmetic, so the sign's copies are masked away."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)
