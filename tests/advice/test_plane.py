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
from theodolite.advice.plane.drawing import draw_plane

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
            x, y = re.match(r"translate\((.+),(.+?)\)", path.get("transform", "")).groups()  # type: ignore[union-attr]
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


def test_no_model_is_moved_and_those_of_one_shape_are_counted(picture):
    """All markers against the line through those of two models; a marker names all models of its shape, with number."""
    places = dict(markers(picture, "model"))
    numbers = {
        (text.get("x"), text.text) for text in picture.iter(f"{SVG}text") if text.get("class") == "number"
    }  # fmt: skip
    found = {}
    for title, point in places.items():
        names = title.split("\n")
        shapes = {re.search(r": (.+) layers of width (\d+)", name).groups() for name in names}  # type: ignore[union-attr]
        sizes = {(sum(map(int, layers.split(" + "))), int(width)) for layers, width in shapes}
        assert len(sizes) == 1  # 24 + 24 layers are 48
        found[sizes.pop()] = point
        assert len(names) == 1 or (f"{point[0]:.1f}", str(len(names))) in numbers
    assert len(found) == len({(model.shape.depth, model.shape.width) for model in models()})
    (shallow, narrow), (deep, wide) = (8, 512), (126, 16384)
    for (depth, width), (x, y) in found.items():
        across = math.log(depth / shallow) / math.log(deep / shallow)
        up = math.log(width / narrow) / math.log(wide / narrow)
        left, right = found[shallow, narrow], found[deep, wide]
        assert x == pytest.approx(left[0] + across * (right[0] - left[0]), abs=0.2)
        assert y == pytest.approx(left[1] + up * (right[1] - left[1]), abs=0.2)


def test_the_mark_says_which_models_it_covers(picture):
    (yours,) = [title for title, _ in markers(picture, "mark") if title.startswith("yours")]
    assert "of the same shape: " in yours
    assert "GPT-2 small" in yours


@pytest.mark.parametrize(
    "advice", [{"config": GPT2}, {"config": VIT}, {"config": T5_11B}, {"params": "7B", "vocab": 32000}]
)
def test_the_legend_has_a_sample_of_everything_that_is_drawn(advice):
    picture = ElementTree.fromstring(draw_plane(advise(**advice)))
    (key,) = [group for group in picture.iter(f"{SVG}g") if group.get("class") == "key"]

    def kinds(element: ElementTree.Element) -> set[str]:
        return {path.get("class", "").replace("model several", "several") for path in element.iter(f"{SVG}path")}

    assert kinds(key) == kinds(picture) - {"grid"}
    for path in key.iter(f"{SVG}path"):
        assert path.find(f"{SVG}title") is None


def test_the_band_of_what_is_in_use_holds_models_inside_and_not_those_outside(picture):
    *bands, _ = [path.get("d", "") for path in picture.iter(f"{SVG}path") if path.get("class") == "used"]
    corners = [[tuple(map(float, one.split(","))) for one in band.strip("MZ").split("L")] for band in bands]
    at = {name.split(":")[0]: point for title, point in markers(picture, "model") for name in title.split("\n")}

    def held(point: tuple[float, float]) -> bool:
        """Edges that a ray to the right crosses."""
        crossed = 0
        for polygon in corners:
            for (left, high), (right, low) in zip(polygon, [*polygon[1:], polygon[0]], strict=True):
                if (high > point[1]) != (low > point[1]):
                    crossed += left + (point[1] - high) / (low - high) * (right - left) > point[0]
        return crossed % 2 == 1

    assert all(held(at[name]) for name in ("Gemma 2 2B", "Qwen3 4B", "LLaMA 33B", "GPT-2 large"))
    assert not any(held(at[name]) for name in ("ALBERT xxlarge", "DeiT-Ti", "T5 11B"))


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
        assert 64 <= y <= 650 < height


def shown(page: Any, chosen: str, value: str) -> Any:
    """Of the elements that are drawn; of the two pictures one is."""
    script = f"all => all.filter(t => t.getClientRects().length).map(t => {{ {value} }})"
    return page.eval_on_selector_all(chosen, script)


_BOX = "const b = t.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]"


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 400, 700, 1400])
def test_the_page_never_scrolls_sideways_and_its_letters_stay_readable(chromium: Any, tmp_path: Path, width: int):
    path = tmp_path / "plane.html"
    path.write_text(draw_plane(advise(GPT2), html=True), encoding="utf-8")
    context = chromium.new_context(viewport={"width": width, "height": 844})
    page = context.new_page()
    page.goto(path.as_uri())
    whole = page.evaluate("document.documentElement.scrollWidth")
    (scale,) = shown(page, ".plane svg", "return t.getBoundingClientRect().width / t.viewBox.baseVal.width")
    letters = shown(page, ".plane svg text:not(.number)", "return parseFloat(getComputedStyle(t).fontSize)")
    page.click("summary")
    opened = page.evaluate("document.documentElement.scrollWidth")
    rows = page.evaluate("document.querySelectorAll('tbody tr').length")
    context.close()
    assert whole == opened == width
    assert min(letters) * scale >= 9.5
    assert rows == len(models()) + 2


@pytest.mark.browser
def test_on_paper_it_is_light_and_wide(chromium: Any, tmp_path: Path):
    path = tmp_path / "plane.html"
    path.write_text(draw_plane(advise(GPT2), html=True), encoding="utf-8")
    context = chromium.new_context(viewport={"width": 600, "height": 844}, color_scheme="dark")
    page = context.new_page()
    page.goto(path.as_uri())
    page.emulate_media(media="print", color_scheme="dark")
    drawn = shown(page, ".plane svg", "return t.getAttribute('class')")
    ground = shown(page, "rect.page", "return getComputedStyle(t).fill")
    context.close()
    assert drawn == ["wide"]
    assert ground == ["rgb(255, 255, 255)"]


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("config", [GPT2, VIT, T5_11B], ids=lambda config: config["model_type"])
def test_the_browser_draws_it_without_overlapping_labels(
    chromium: Any, tmp_path: Path, scheme: str, config: Any, width: int
):
    path = tmp_path / "plane.html"
    path.write_text(draw_plane(advise(config), html=True), encoding="utf-8")
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(path.as_uri())
    boxes = shown(page, "text.label, text.strong, text.curve, text.faint", _BOX)
    keys = shown(page, "text.legend", _BOX)
    points = shown(page, "path.model, path.mark", _BOX)
    (ground,) = shown(page, "rect.page", "return getComputedStyle(t).fill")
    (edge,) = shown(page, ".plane svg", "return t.getBoundingClientRect().right")
    context.close()
    assert asked == [path.as_uri()]
    assert complaints == []
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(21, 24, 27)")
    assert len(boxes) > (20 if width > 1000 else 12)
    assert all(box[2] <= edge for box in (*boxes, *keys))
    for i, a in enumerate(boxes):
        for b in boxes[:i]:  # line boxes are taller than letters: a few pixels may touch
            assert _apart(a, b)
        for left, top, right, bottom in points:
            assert _apart(a, [left + 2, top + 2, right - 2, bottom - 2])
    assert all(_apart(a, b) for i, a in enumerate(keys) for b in keys[:i])


def _apart(a: list[float], b: list[float]) -> bool:
    across, down = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return across <= 1 or down <= 5
