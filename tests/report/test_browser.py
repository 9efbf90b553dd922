"""The page as a reader meets it: in a browser, from a file, with no network."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from theodolite.report import Answer, Column, Figure, Panel, Series, Summary, Table
from theodolite.report.page.page import RenderedSection, render_page

from .survey_example import MINE, NETS, REASON, TASKS, survey_sections

pytestmark = pytest.mark.browser

Opener = Callable[..., Any]


@pytest.fixture(scope="module")
def page_file(example_page: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(example_page, encoding="utf-8")
    return path


@pytest.fixture
def opened(chromium: Any, page_file: Path) -> Iterator[Opener]:
    """Opens a page; at the end, no request but the file itself, and no complaint of the browser, is allowed."""
    contexts, requests, complaints = [], [], []
    allowed = set()

    def visit(path: Path = page_file, width: int = 1280, height: int = 800, **settings: Any) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": height}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        allowed.add(path.as_uri())
        page.goto(path.as_uri())
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []
    assert {url for url in requests if not url.startswith(("data:", "blob:"))} <= allowed


@pytest.fixture(scope="module")
def survey_file(survey: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("survey") / "report.html"
    path.write_text(survey, encoding="utf-8")
    return path


def until(page: Any, expression: str) -> None:
    """Playwright's own waiting evaluates text inside the page, which the page's policy forbids."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(25)
    raise AssertionError(f"never true: {expression}")


def draw_all(page: Any) -> None:
    count = page.locator(".plot").count()
    for i in range(count):
        page.locator(".plot").nth(i).scroll_into_view_if_needed()
        page.locator(".plot").nth(i).locator("xpath=self::*[@data-drawn]").wait_for()


def column(page: Any, table: int, index: int) -> list[str]:
    cells = page.locator("table[data-table]").nth(table).locator(f"tbody tr > :nth-child({index + 1})")
    return cells.all_inner_texts()


def test_every_plot_is_drawn_with_all_its_series(opened: Opener) -> None:
    page = opened()
    draw_all(page)
    for i in range(3):
        plot = page.locator(".plot").nth(i)
        assert plot.locator("svg.main-svg").count() >= 1
        assert plot.locator(".scatterlayer .trace").count() == 4
        assert plot.locator(".scatterlayer .trace .point").count() == 24
        assert plot.locator(".modebar a").count() == 0


def test_hover_tells_the_values(opened: Opener) -> None:
    page = opened()
    draw_all(page)
    point = page.locator(".plot").first.locator(".scatterlayer .trace").first.locator(".point").last
    box = point.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
    label = page.locator(".plot").first.locator(".hoverlayer .hovertext")
    label.wait_for()
    assert "self-attention" in label.text_content()


def test_the_legend_switches_a_series_in_every_panel(opened: Opener) -> None:
    page = opened()
    draw_all(page)
    button = page.locator(".series").first
    button.focus()
    page.keyboard.press("Space")
    assert button.get_attribute("aria-pressed") == "false"
    until(page, "document.querySelectorAll('.scatterlayer .trace').length === 9")
    button.click()
    until(page, "document.querySelectorAll('.scatterlayer .trace').length === 12")


def test_zooming_one_panel_moves_all_and_can_be_undone(opened: Opener) -> None:
    page = opened()
    draw_all(page)
    ranges = "[...document.querySelectorAll('.plot')].map((p) => p.layout.yaxis.range.map((v) => v.toFixed(6)).join())"
    before = page.evaluate(ranges)
    box = page.locator(".plot").first.locator(".nsewdrag").bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 180, steps=5)
    page.mouse.up()
    reset = page.get_by_role("button", name="Reset zoom")
    reset.wait_for()
    until(page, f"new Set({ranges}).size === 1 && {ranges}[0] !== '{before[0]}'")
    reset.click()
    until(page, f"{ranges}.every((v) => v === '{before[0]}')")


def test_headers_sort_by_click_and_by_keyboard(opened: Opener, rank_table: Table) -> None:
    page = opened()
    first = column(page, 0, 0)
    assert first == [row["net"] for row in rank_table.rows]
    head = page.locator("table[data-table]").first.locator("thead th").nth(5)
    by_rank = [row["net"] for row in sorted(rank_table.rows, key=lambda row: row["rank"])]
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert column(page, 0, 0) == by_rank
    page.keyboard.press("Enter")  # the click left the focus on the header
    assert head.get_attribute("aria-sort") == "descending"
    assert column(page, 0, 0) == by_rank[::-1]
    page.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "none"
    assert column(page, 0, 0) == first


def test_sorting_knows_huge_integers_and_keeps_dashes_last(opened: Opener, rank_table: Table) -> None:
    page = opened()
    heads = page.locator("table[data-table]").first.locator("thead button")
    heads.nth(6).click()
    heads.nth(6).click()
    assert column(page, 0, 0) == [row["net"] for row in sorted(rank_table.rows, key=lambda row: -row["bound"])]
    for _ in range(2):
        heads.nth(3).click()
        assert column(page, 0, 3)[-4:] == ["–"] * 4


def test_a_note_shows_on_keyboard_focus_and_leaves_on_escape(opened: Opener, rank_table: Table) -> None:
    page = opened()
    page.locator("table[data-table]").first.locator("xpath=..").focus()
    page.keyboard.press("Tab")
    tip = page.locator("#tip")
    tip.wait_for(state="visible")
    assert tip.inner_text() == rank_table.columns[0].note
    page.mouse.wheel(0, 40)  # focus by keyboard scrolls too: the note stays with its header
    page.wait_for_timeout(200)
    assert tip.is_visible()
    page.keyboard.press("Escape")
    tip.wait_for(state="hidden")
    page.mouse.wheel(0, 40)
    page.wait_for_timeout(200)
    assert not tip.is_visible()


def test_downloads_hold_the_exact_values(opened: Opener, rank_table: Table, rank_figure: Figure) -> None:
    page = opened()

    def saved(selector: str) -> str:
        with page.expect_download() as download:
            page.locator(selector).click()
        return Path(download.value.path()).read_bytes().decode()

    rows = list(csv.DictReader(io.StringIO(saved("#table-1 [data-download=csv]"))))
    assert [row["net"] for row in rows] == [row["net"] for row in rank_table.rows]
    assert [int(row["bound"]) for row in rows] == [row["bound"] for row in rank_table.rows]
    assert [float(row["seconds"]) for row in rows] == [row["seconds"] for row in rank_table.rows]
    assert [row["heads"] for row in rows][1] == ""
    table = json.loads(saved("#table-1 [data-download=json]"))
    assert table["rows"][0]["exact"] is True
    assert table["command"] == rank_table.command
    points = list(csv.DictReader(io.StringIO(saved("#figure-1 [data-download=csv]"))))
    assert len(points) == 3 * 4 * 6
    assert points[0]["series"] == "self-attention, measured"
    figure = json.loads(saved("#figure-1 [data-download=json]"))
    assert figure["series"][0]["y"] == list(rank_figure.panels[0].series[0].y)
    whole = json.loads(saved("[data-of=page]"))
    assert [section["id"] for section in whole["sections"]] == ["rank", "learning"]
    assert whole["provenance"]["seed"] == "6917529027641081855"
    drawing = saved("#figure-1 [data-svg] >> nth=0")
    assert drawing.startswith("<svg")
    assert "separation rank" in drawing


def test_a_command_can_be_copied(opened: Opener, rank_figure: Figure) -> None:
    page = opened(permissions=["clipboard-read", "clipboard-write"])
    button = page.locator("#figure-1 [data-copy]")
    button.click()
    until(page, "document.querySelector('#figure-1 [data-copy]').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == rank_figure.command


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_until_the_button_is_used(opened: Opener, scheme: str) -> None:
    page = opened(color_scheme=scheme)
    draw_all(page)
    background = "getComputedStyle(document.body).backgroundColor"
    light, dark = "rgb(255, 255, 255)", "rgb(21, 24, 27)"
    before, after = (light, dark) if scheme == "light" else (dark, light)
    assert page.evaluate(background) == before
    page.locator("#theme").click()
    assert page.evaluate(background) == after
    paper = "document.querySelector('.plot .main-svg').style.background"
    until(page, f"{paper} === '{after}'")
    page.reload()
    assert page.evaluate(background) == after


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_background(opened: Opener, scheme: str) -> None:
    page = opened(color_scheme=scheme)
    ratios = page.evaluate(
        """() => {
          const style = getComputedStyle(document.documentElement);
          const light = (name) => {
            const hex = style.getPropertyValue(name).trim();
            const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255)
              .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const ratio = (a, b) => {
            const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
            return (x + 0.05) / (y + 0.05);
          };
          const texts = ["--ink", "--soft", "--accent"], grounds = ["--page", "--raised", "--hover"];
          return {
            text: Math.min(...texts.flatMap((t) => grounds.map((g) => ratio(t, g)))),
            lines: Math.min(...[0, 1, 2, 3, 4].map((i) => ratio(`--series-${i}`, "--page"))),
          };
        }"""
    )
    assert ratios["text"] >= 4.5
    assert ratios["lines"] >= 3


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_narrow_screen_never_scrolls_sideways(opened: Opener, width: int) -> None:
    page = opened(width=width)
    draw_all(page)
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    until(page, "document.querySelector('.figure-data td')")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    wide = page.locator("table[data-table]").first.locator("xpath=..")
    assert wide.evaluate("(e) => e.scrollWidth > e.clientWidth && e.getBoundingClientRect().right <= innerWidth")
    assert page.evaluate("[...document.querySelectorAll('.plot .main-svg')].every((s) => s.clientWidth <= innerWidth)")


def test_header_texts_do_not_run_into_each_other(opened: Opener) -> None:
    page = opened()
    overlaps = page.evaluate(
        """() => [...document.querySelectorAll("table[data-table] thead button")]
          .filter((button) => button.scrollWidth > button.clientWidth).map((button) => button.textContent)"""
    )
    assert overlaps == []


# Ticks and labels of one plot that lie on each other.
OVERLAPS = """() => [...document.querySelectorAll(".plot")].flatMap((plot) => {
  const texts = [...plot.querySelectorAll(".xtick text, .ytick text, .annotation-text")]
    .map((e) => [e.textContent, e.getBoundingClientRect()]).filter(([, r]) => r.width > 0);
  return texts.flatMap(([a, p], i) => texts.slice(i + 1)
    .filter(([, q]) => p.left < q.right && q.left < p.right && p.top < q.bottom && q.top < p.bottom)
    .map(([b]) => `${a} | ${b}`));
})"""


@pytest.mark.parametrize(
    ("name", "width", "height", "scheme"),
    [("wide", 1280, 800, "light"), ("wide-dark", 1280, 800, "dark"), ("phone", 390, 844, "light")],
)
def test_the_first_screen_says_what_every_net_can_do(
    opened: Opener, survey_file: Path, screenshots: Path, name: str, width: int, height: int, scheme: str
) -> None:
    page = opened(survey_file, width=width, height=height, color_scheme=scheme)
    page.screenshot(path=screenshots / f"first-screen-{name}.png")
    lines = page.locator(".sentences li")
    assert lines.count() == len(NETS)
    assert all(": " in text and text.endswith(".") for text in lines.all_inner_texts())
    for i in range(len(NETS)):
        box = lines.nth(i).bounding_box()
        assert 0 <= box["y"] < box["y"] + box["height"] <= height
    matrix, cards = page.locator(".matrix"), page.locator(".cards")
    assert (matrix.is_visible(), cards.is_visible()) == (width > 1000, width < 1000)
    if width > 1000:  # and the first rows of the matrix
        assert page.locator(".matrix tbody tr").nth(2).bounding_box()["y"] < height
    draw_all(page)
    assert page.locator(".plot .annotation-text").count() > 10
    assert page.evaluate(OVERLAPS) == []
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=screenshots / f"report-{name}.png", full_page=True)


def test_a_verdict_leads_to_its_section_and_a_failure_tells_its_reason(opened: Opener, survey_file: Path) -> None:
    page = opened(survey_file)
    failed = page.locator(".matrix .standing.failed")
    assert failed.count() == 1
    failed.hover()
    page.locator("#tip").wait_for(state="visible")
    assert page.locator("#tip").inner_text() == REASON
    page.mouse.move(0, 0)
    page.locator("#tip").wait_for(state="hidden")
    page.evaluate(
        """() => {
          const links = [...document.querySelectorAll(".matrix .standing")];
          links[links.findIndex((link) => link.matches(".failed")) - 1].focus();
        }"""
    )
    page.keyboard.press("Tab")
    page.locator("#tip").wait_for(state="visible")
    page.keyboard.press("Enter")
    until(page, "document.getElementById('section-symmetry').getBoundingClientRect().top < innerHeight")
    assert page.evaluate("location.hash") == "#section-symmetry"


def test_with_many_nets_the_matrix_scrolls_in_its_box_and_keeps_the_questions_in_sight(
    opened: Opener, tmp_path: Path
) -> None:
    many = [f"net-{i}" for i in range(12)]
    answers = [Answer(net, f"Can it do {q}?", "yes", "8 of 8 seeds") for net in many for q in range(5)]
    path = tmp_path / "many.html"
    path.write_text(render_page("t", "", [RenderedSection("a", "A", Summary("h", answers=answers))], {}, []), "utf-8")
    page = opened(path)
    box = page.locator(".matrix")
    assert box.evaluate("(e) => e.scrollWidth > e.clientWidth + 200")
    before = page.locator(".matrix tbody th").first.bounding_box()["x"]
    box.focus()
    box.evaluate("(e) => { e.scrollLeft = 400; }")
    assert page.locator(".matrix tbody th").first.bounding_box()["x"] == pytest.approx(before, abs=1)
    assert page.locator(".matrix tbody td").first.bounding_box()["x"] < before
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_whole_survey_never_scrolls_sideways(opened: Opener, survey_file: Path) -> None:
    page = opened(survey_file, width=360)
    draw_all(page)
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    until(page, "document.querySelectorAll('.figure-data td').length > 100")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_keyboard_reaches_every_control(opened: Opener, survey_file: Path) -> None:
    page = opened(survey_file)
    controls = page.evaluate(
        """() => {
          const shown = [...document.querySelectorAll("button, a[href], summary, [tabindex='0']")]
            .filter((e) => e.checkVisibility());
          shown.forEach((e, i) => { e.dataset.number = i; });
          return shown.length;
        }"""
    )
    page.evaluate(
        "window.reached = []; document.addEventListener('focusin', (e) => reached.push(e.target.dataset.number))"
    )
    for _ in range(controls + 5):
        page.keyboard.press("Tab")
    reached = set(page.evaluate("reached"))
    assert controls > 100
    assert {str(i) for i in range(controls)} <= reached


def test_verdicts_and_dots_can_be_downloaded(opened: Opener, survey_file: Path) -> None:
    page = opened(survey_file)

    def saved(selector: str) -> str:
        with page.expect_download() as download:
            page.locator(selector).click()
        return Path(download.value.path()).read_bytes().decode()

    rows = list(csv.DictReader(io.StringIO(saved("#verdicts [data-download=csv]"))))
    assert len(rows) == 8 * len(NETS)
    assert [row["answer"] for row in rows if row["net"] == MINE and row["section"] == "Symmetries"] == ["failed"]
    assert sum(row["agrees"] == "false" for row in rows) == 3
    points = list(csv.DictReader(io.StringIO(saved("#figure-2 [data-download=csv]"))))
    assert [row["x"] for row in points[: len(TASKS)]] == list(TASKS)
    figure = survey_sections()[1].summary.figures[0]
    assert [float(row["y"]) for row in points] == [y for series in figure.panels[0].series for y in series.y]
    whole = json.loads(saved("[data-of=page]"))
    assert whole["verdicts"]["rows"][0]["net"] == NETS[0]


def test_hostile_text_stays_text(opened: Opener, tmp_path: Path) -> None:
    evil = "</script><script>window.hurt=1</script><img src='http://127.0.0.1:9/x' onerror='window.hurt=1'>"
    table = Table(evil, [Column("a", evil, evil, numeric=False)], [{"a": evil}], evil, evil)
    series = Series(evil, [evil, "b"], [1, 2], hover=[evil, evil])
    figure = Figure(evil, evil, evil, evil, [Panel(evil, [series])], command=evil)
    answers = [Answer(evil, evil, "failed", evil, evil), Answer("b", evil, "yes", evil, evil, False, evil)]
    section = RenderedSection("x", evil, Summary(evil, [table], [figure], [evil], answers))
    path = tmp_path / "evil.html"
    path.write_text(render_page(evil, evil, [section], {evil: evil}, [evil]), encoding="utf-8")
    page = opened(path)
    draw_all(page)
    page.evaluate("document.querySelector('.figure-data').open = true")
    until(page, "document.querySelector('.figure-data td')")
    assert page.evaluate("window.hurt") is None
    assert page.locator("h1").inner_text() == evil
    assert page.locator("img").count() == 0
