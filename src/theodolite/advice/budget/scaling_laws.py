"""Loss against parameters and tokens by published fits, and the sizes that a budget of FLOPs is best spent on.

L(N, D) = E + A/N^α + B/D^β, with C = 6·N·D. Sources: Hoffmann et al. 2022, *Training compute-optimal large language
models*, approach 3; Besiroglu et al. 2024, *Chinchilla scaling: a replication attempt*, who fitted the same runs again
and found constants that agree with that paper's other two approaches, which its own do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from theodolite.errors import OutsideDomain

CHINCHILLA = 20.0
"""Tokens per parameter: 1.4T for Chinchilla's 70B, and about what the first two approaches of Hoffmann et al. give."""


@dataclass(frozen=True)
class ScalingLaw:
    """N counts all parameters; fitted to dense models of 70M to 16B on text, so larger budgets are extrapolated."""

    source: str
    floor: float  # E, the loss that nothing takes away
    size_factor: float  # A
    size_power: float  # α
    data_factor: float  # B
    data_power: float  # β

    def loss(self, params: float, tokens: float) -> float:
        """Nats a token."""
        return self.floor + self.size_factor / params**self.size_power + self.data_factor / tokens**self.data_power

    def best_size(self, flops: float) -> float:
        """N with the least loss at C = 6·N·D: where α·A/N^α = β·B/D^β.

        Examples:
            >>> f"{BESIROGLU.best_size(5.76e23):.2e}"  # Chinchilla's and Gopher's budget
            '7.22e+10'
        """
        if not flops > 0 or math.isinf(flops):
            raise OutsideDomain(f"FLOPs = {flops!r} is outside the domain: pass a positive number")
        return self._ratio() * (flops / 6) ** (self.data_power / (self.size_power + self.data_power))

    def size_for_tokens(self, tokens: float) -> float:
        """N for which these tokens are the best number of them."""
        power = self.size_power / (self.size_power + self.data_power)
        return tokens ** (1 / power - 1) * self._ratio() ** (1 / power)

    def best_loss(self, flops: float) -> float:
        size = self.best_size(flops)
        return self.loss(size, flops / (6 * size))

    def sizes_within(self, flops: float, share: float = 0.01) -> tuple[float, float]:
        """The least and the largest N whose loss at this budget is at most `share` above the best."""
        best, most = self.best_size(flops), self.best_loss(flops) * (1 + share)

        def end(step: float) -> float:
            near, far = 0.0, step
            while self.loss(best * math.exp(far), flops / (6 * best * math.exp(far))) < most:
                near, far = far, 2 * far
            for _ in range(60):
                middle = (near + far) / 2
                size = best * math.exp(middle)
                near, far = (middle, far) if self.loss(size, flops / (6 * size)) < most else (near, middle)
            return best * math.exp(near)

        return end(-0.1), end(0.1)

    def _ratio(self) -> float:
        """G in N = G·(C/6)^(β/(α+β))."""
        ratio = self.size_power * self.size_factor / (self.data_power * self.data_factor)
        return ratio ** (1 / (self.size_power + self.data_power))


HOFFMANN = ScalingLaw("Hoffmann et al. 2022", 1.69, 406.4, 0.34, 410.7, 0.28)
BESIROGLU = ScalingLaw("Besiroglu et al. 2024", 1.8172, 482.01, 0.3478, 2085.43, 0.3658)
LAWS = (BESIROGLU, HOFFMANN)
"""The first is what tables are computed with."""
