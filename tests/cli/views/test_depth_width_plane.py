"""The depth–width plane: every model is there, in its place, and the picture stands alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from theodolite.advice.advice import advise
from theodolite.advice.catalogue import models
from theodolite.cli.views.depth_width_plane import draw_plane

GPT2 = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}
VIT = {"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
T5_11B = {
    "model_type": "t5",
    **{"d_model": 1024, "d_kv": 128, "d_ff": 65536, "num_layers": 24, "num_heads": 128, "vocab_size": 32128},
}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def picture() -> ElementTree.Element:
    return ElementTree.fromstring(draw_plane(advise(GPT2)))


def markers(picture: ElementTree.Element, kind: str) -> Iterator[tuple[str, tuple[float, float]]]:
    for path in picture.iter(f"{SVG}path"):
        title = path.find(f"{SVG}title")
        if title is not None and title.text and kind in path.get("class", "").split():
            x, y = re.fullmatch(r"translate\((.+),(.+)\)", path.get("transform", "")).groups()  # type: ignore[union-attr]
            yield title.text, (float(x), float(y))


def test_every_public_model_is_named_on_a_marker(picture):
    shown = "\n".join(title for title, _ in markers(picture, "model"))
    for model in models():
        assert f"{model.name}: {model.shape.layers} layers of width {model.shape.width}," in shown


def test_a_model_far_from_its_line_of_equal_size_is_told_with_both_numbers(picture):
    titles = "\n".join(title for title, _ in markers(picture, "model")).splitlines()
    (far,) = [title for title in titles if title.startswith("T5 11B:")]
    (near,) = [title for title in titles if title.startswith("GPT-2 small:")]
    assert "24 + 24 layers" in far
    assert far.endswith("11.3B parameters; 11.3B in the blocks, where 12·L·d² is 604M")
    assert near.endswith("124M parameters")


def test_markers_stand_where_the_ticks_say(picture):
    """Positions against a line through two tick labels of each axis, in logarithms."""
    ticks = [(text.text, float(text.get("x")), float(text.get("y"))) for text in picture.iter(f"{SVG}text")
             if text.get("class") == "tick"]  # fmt: skip
    middle = {text: x for text, x, y in ticks if y > 600}
    side = {text: y for text, x, y in ticks if x < 100}

    def place(ticks: dict[str, float], low: str, high: str, value: float) -> float:
        share = math.log(value / int(low)) / math.log(int(high) / int(low))
        return ticks[low] + share * (ticks[high] - ticks[low])

    seen = dict(markers(picture, "mark"))
    for title, (x, y) in seen.items():
        depth, width = map(int, re.search(r"(\d+) layers of width (\d+)", title).groups())  # type: ignore[union-attr]
        assert x == pytest.approx(place(middle, "6", "96", depth), abs=0.2)
        assert y == pytest.approx(place(side, "512", "8192", width) - 4, abs=0.2)  # ticks stand 4 below their line
    assert [title.split(":")[0] for title in seen] == ["yours", "advised"]


def test_it_has_a_title_a_description_and_nothing_from_outside(picture):
    text = draw_plane(advise(GPT2))
    assert picture.get("role") == "img"
    assert "124M parameters" in picture.find(f"{SVG}desc").text  # type: ignore[union-attr, operator]
    assert not re.search(r"href|@import|url\((?!#)|<script", text)
    assert "prefers-color-scheme:dark" in text


def test_a_name_cannot_break_out_of_the_picture(tmp_path):
    folder = tmp_path / "<script>&"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12}')
    text = draw_plane(advise(folder))
    ElementTree.fromstring(text)
    assert "<script" not in text


@pytest.mark.parametrize(
    "advice",
    [
        {"params": 20_000, "vocab": 16},
        {"params": 10**14, "vocab": 50257},
        {"params": "600M", "modality": "image"},
        {"config": {**GPT2, "n_layer": 700}},
    ],
)
def test_shapes_far_from_all_models_are_still_inside(advice):
    picture = ElementTree.fromstring(draw_plane(advise(**advice)))
    width, height = map(float, picture.get("viewBox", "").split()[2:])
    for _, (x, y) in markers(picture, "mark"):
        assert 70 <= x <= width - 20
        assert 64 <= y <= height - 150


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_never_scrolls_sideways_and_its_letters_stay_readable(chromium: Any, tmp_path: Path, width: int):
    path = tmp_path / "plane.html"
    path.write_text(draw_plane(advise(GPT2), html=True), encoding="utf-8")
    context = chromium.new_context(viewport={"width": width, "height": 844})
    page = context.new_page()
    page.goto(path.as_uri())
    whole, inside, drawn = page.evaluate(
        "[document.documentElement.scrollWidth, document.querySelector('.plane').scrollWidth,"
        " document.querySelector('svg').getBoundingClientRect().width]"
    )
    context.close()
    assert whole == width
    assert inside >= drawn >= 850  # of 980 units: letters of 12 units are more than 10 pixels high


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("config", [GPT2, VIT, T5_11B], ids=lambda config: config["model_type"])
def test_the_browser_draws_it_without_overlapping_labels(chromium: Any, tmp_path: Path, scheme: str, config: Any):
    path = tmp_path / "plane.html"
    path.write_text(draw_plane(advise(config), html=True), encoding="utf-8")
    context = chromium.new_context(viewport={"width": 1100, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(path.as_uri())
    boxes = page.eval_on_selector_all(
        "text.label, text.strong, text.curve, text.faint",
        "all => all.map(t => { const b = t.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom] })",
    )
    ground = page.eval_on_selector("rect.page", "r => getComputedStyle(r).fill")
    page.screenshot(path=str(tmp_path / "plane.png"))
    context.close()
    assert asked == [path.as_uri()]
    assert complaints == []
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(21, 24, 27)")
    assert len(boxes) > 20
    for i, a in enumerate(boxes):
        for b in boxes[:i]:  # line boxes are taller than letters: a few pixels may touch
            across, down = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
            assert across <= 1 or down <= 5
