"""What every drawing is made with: its colours, on a page or alone on white, its letters, and its opening tag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from theodolite.report.colours import FAINT, INK, OWN, PAGE, PALETTE, RULE, SOFT

FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
_LETTER = 0.6  # of a letter's size is its width, about


@dataclass(frozen=True)
class Ink:
    """`series` by number; `own` is for the user's network."""

    series: Sequence[str]
    own: str
    ink: str
    soft: str
    rule: str
    faint: str
    page: str


ALONE = Ink(PALETTE, OWN, INK, SOFT, RULE, FAINT, PAGE)
ON_PAGE = Ink(
    [f"var(--series-{i})" for i in range(len(PALETTE))],
    *(f"var(--{name})" for name in ("own", "ink", "soft", "rule", "faint", "page")),
)


def opening(width: float, height: float, alt: str, size: float = 12, more: str = "") -> str:
    """The tag of a drawing that scales to its room; `more` are attributes of its own."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'role="img" aria-label="{escape(alt, quote=True)}" font-family="{FONT}" font-size="{size:g}"{more}>'
    )


def ground(width: float, height: float) -> str:
    """White below a drawing that stands alone."""
    return f'<rect width="{width:.0f}" height="{height:.0f}" fill="{PAGE}"/>'


def text(x: float, y: float, words: str, fill: str, anchor: str = "start", size: float = 12, more: str = "") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}" text-anchor="{anchor}" font-size="{size:g}"{more}>'
        f"{escape(words)}</text>"
    )


def width_of(words: str, size: float = 12) -> float:
    """About, and rather too wide than too narrow: fonts differ."""
    return _LETTER * size * len(words)
