"""On how many tokens well-known models were trained, as their authors say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedRun:
    model: str
    params: float
    tokens: float
    source: str

    @property
    def tokens_per_parameter(self) -> float:
        return self.tokens / self.params


RUNS = (
    PublishedRun("GPT-3", 175e9, 300e9, "Brown et al. 2020"),
    PublishedRun("Chinchilla", 70e9, 1.4e12, "Hoffmann et al. 2022"),
    PublishedRun("Llama 3.1 405B", 405e9, 15.6e12, "Grattafiori et al. 2024"),
    PublishedRun("LLaMA 7B", 6.7e9, 1.0e12, "Touvron et al. 2023a"),
    PublishedRun("Llama 2 7B", 6.7e9, 2.0e12, "Touvron et al. 2023b"),
    PublishedRun("Llama 3 8B", 8.0e9, 15e12, "Grattafiori et al. 2024"),
)
"""By tokens per parameter, fewest first."""


def nearest_runs(ratio: float) -> tuple[PublishedRun, ...]:
    """The last with fewer tokens per parameter and the first with as many or more; one at either end."""
    fewer = [run for run in RUNS if run.tokens_per_parameter < ratio]
    more = [run for run in RUNS if run.tokens_per_parameter >= ratio]
    return (*fewer[-1:], *more[:1])
