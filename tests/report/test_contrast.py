"""Contrast by WCAG 2's formula, computed from the stylesheet itself, in both themes."""

import re
from importlib import resources

import pytest

from tests.each import each

TEMPLATES = resources.files("theodolite.report.page").joinpath("templates")
COLOURS, PAGE, VERDICTS = (
    TEMPLATES.joinpath(f"{name}.css").read_text(encoding="utf-8") for name in ("colours", "page", "verdicts")
)
TEXTS = ("ink", "soft", "accent", "yes", "no", "partly", "failed", "own")
GROUNDS = ("page", "raised", "hover", "own-ground")
CELLS = {"yes-ground": "yes", "no-ground": "no", "partly-ground": "partly", "unknown-ground": "failed"}


def variables(selector: str) -> dict[str, str]:
    block = COLOURS[COLOURS.index(selector + " {") :]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block[: block.index("}")]))


LIGHT = variables(":root")
THEMES = {
    "light": LIGHT,
    "dark": {**LIGHT, **variables(':root[data-theme="dark"]')},
    "dark by the system": {**LIGHT, **variables(':root:not([data-theme="light"])')},
}


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ratio(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_formula_gives_the_known_extremes() -> None:
    assert ratio("#000000", "#ffffff") == pytest.approx(21)
    assert ratio("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # the well-known grey that just fails


@each("theme", THEMES)
@each("text", TEXTS)
@each("ground", GROUNDS)
def test_every_text_stands_out_from_every_ground(theme: str, text: str, ground: str) -> None:
    assert ratio(THEMES[theme][text], THEMES[theme][ground]) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_the_note_that_swaps_ink_and_page_and_the_plots_labels_on_a_band_can_be_read(theme: str) -> None:
    assert ratio(THEMES[theme]["page"], THEMES[theme]["ink"]) >= 4.5
    assert ratio(THEMES[theme]["soft"], THEMES[theme]["faint"]) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("ground", CELLS)
def test_the_mark_and_the_number_of_an_answer_can_be_read_on_its_colour(theme: str, ground: str) -> None:
    for text in ("ink", CELLS[ground]):
        assert ratio(THEMES[theme][text], THEMES[theme][ground]) >= 4.5


def test_both_ways_into_the_dark_theme_are_one_theme_that_replaces_every_text_and_ground() -> None:
    assert THEMES["dark"] == THEMES["dark by the system"]
    assert all(LIGHT[name] != THEMES["dark"][name] for name in (*TEXTS, *GROUNDS, *CELLS))


def test_no_text_colour_is_written_outside_the_tested_variables() -> None:
    used = re.findall(r"(?<![-\w])(?:color|background): ([^;}]+)", PAGE + VERDICTS)
    allowed = {f"var(--{name})" for name in (*TEXTS, *GROUNDS, *CELLS)} | {"inherit", "none", "currentColor"}
    assert len(used) > 30
    assert set(used) <= allowed
