"""What is trained and measured are real numbers: a net that returns complex ones is refused, by name."""

from __future__ import annotations

from torch import Tensor

from theodolite.errors import BadInput


def real(output: Tensor, name: str) -> Tensor:
    if output.is_complex():
        raise BadInput(f"'{name}' returns complex numbers: return real ones, such as their real and imaginary parts")
    return output
