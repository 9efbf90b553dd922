"""The page as a reader meets it: in a browser, from a file, with no network."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

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


def unfolded(page: Any) -> Any:
    """A long table is folded below what is drawn of it."""
    for fold in page.locator("details.rows > summary").all():
        fold.click()
    page.mouse.move(0, 0)  # what is below the pointer shows its note
    return page


def column(page: Any, table: int, index: int) -> list[str]:
    cells = page.locator("table[data-table]").nth(table).locator(f"tbody tr > :nth-child({index + 1})")
    return [text.removesuffix("yours").strip() for text in cells.all_inner_texts()]


def saved(page: Any, item: str, button: str) -> str:
    """What a button of an item's menu saves."""
    page.evaluate("for (const menu of document.querySelectorAll('.menu, .answers')) menu.open = true")
    with page.expect_download() as download:
        page.locator(f"{item} {button}").first.click()
    return Path(download.value.path()).read_bytes().decode()


@pytest.mark.parametrize("script", [True, False])
def test_every_plot_is_drawn_with_all_its_series_with_a_script_or_without(opened: Opener, script: bool) -> None:
    page = opened(java_script_enabled=script)
    for i in range(3):
        plot = page.locator("svg.plot").nth(i)
        box = plot.bounding_box()
        assert box["width"] > 150
        assert box["height"] > 100
        assert plot.locator(".series").count() == 4
        assert plot.locator(".point").count() == 24
        assert plot.locator(".point").last.is_visible()
    assert page.locator(".menu").first.is_visible() is script  # what needs the script is not offered without


def test_a_point_tells_its_values_to_the_pointer_and_to_the_arrow_keys(opened: Opener) -> None:
    page = opened()
    plot, tip = page.locator("svg.plot").first, page.locator("#tip")
    plot.locator(".series").nth(3).locator(".point").last.hover(force=True)
    tip.wait_for(state="visible")
    assert tip.inner_text().splitlines()[:2] == ["recurrent, predicted", "depth (layers): 6"]
    assert tip.inner_text().splitlines()[-1] == "row 6 of the table"
    page.mouse.move(0, 0)
    tip.wait_for(state="hidden")
    plot.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    tip.wait_for(state="visible")
    assert tip.inner_text().splitlines()[:2] == ["self-attention, measured", "depth (layers): 2"]
    assert page.locator("#said").text_content() == tip.text_content()
    page.keyboard.press("Tab")
    tip.wait_for(state="hidden")


def test_the_legend_makes_a_series_stand_out_in_every_panel(opened: Opener) -> None:
    page = opened()
    faint = "[...document.querySelectorAll('.plot .series')].filter((e) => getComputedStyle(e).opacity < 0.5).length"
    assert page.evaluate(faint) == 0
    button = page.locator(".entry").first
    button.focus()
    page.keyboard.press("Space")
    assert button.get_attribute("aria-pressed") == "true"
    page.mouse.move(0, 0)
    until(page, f"{faint} === 9")
    button.click()
    page.mouse.move(0, 0)
    page.keyboard.press("Escape")
    page.locator("h1").click()
    until(page, f"{faint} === 0")


def test_headers_sort_by_click_and_by_keyboard(opened: Opener, rank_table: Table) -> None:
    page = unfolded(opened())
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
    page = unfolded(opened())
    heads = page.locator("table[data-table]").first.locator("thead button")
    heads.nth(6).click()
    heads.nth(6).click()
    assert column(page, 0, 0) == [row["net"] for row in sorted(rank_table.rows, key=lambda row: -row["bound"])]
    for _ in range(2):
        heads.nth(3).click()
        assert column(page, 0, 3)[-4:] == ["–"] * 4


def test_a_note_shows_on_keyboard_focus_and_leaves_on_escape(opened: Opener, rank_table: Table) -> None:
    page = unfolded(opened())
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
    rows = list(csv.DictReader(io.StringIO(saved(page, "#table-1", "[data-download=csv]"))))
    assert [row["net"] for row in rows] == [row["net"] for row in rank_table.rows]
    assert [int(row["bound"]) for row in rows] == [row["bound"] for row in rank_table.rows]
    assert [float(row["seconds"]) for row in rows] == [row["seconds"] for row in rank_table.rows]
    assert [row["heads"] for row in rows][1] == ""
    table = json.loads(saved(page, "#table-1", "[data-download=json]"))
    assert table["rows"][0]["exact"] is True
    assert table["command"] == rank_table.command
    found = list(csv.DictReader(io.StringIO(saved(page, "#figure-1", "[data-download=csv]"))))
    assert len(found) == 3 * 4 * 6
    assert found[0]["series"] == "self-attention, measured"
    figure = json.loads(saved(page, "#figure-1", "[data-download=json]"))
    assert figure["series"][0]["y"] == list(rank_figure.panels[0].series[0].y)
    whole = json.loads(saved(page, "footer", "[data-of=page]"))
    assert [section["id"] for section in whole["sections"]] == ["rank", "learning"]
    assert whole["provenance"]["seed"] == "6917529027641081855"
    drawing = ElementTree.fromstring(saved(page, "#figure-1", "[data-svg]"))
    words = "".join(drawing.itertext())
    assert all(name in words for name in ("separation rank", "width 32", "recurrent, predicted", rank_figure.title))
    assert "var(" not in ElementTree.tostring(drawing, encoding="unicode")


def test_a_command_can_be_copied(opened: Opener, rank_figure: Figure) -> None:
    page = opened(permissions=["clipboard-read", "clipboard-write"])
    page.locator("#figure-1 .menu summary").click()
    page.locator("#figure-1 [data-copy]").click()
    until(page, "document.querySelector('#figure-1 [data-copy]').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == rank_figure.command


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_until_the_button_is_used(opened: Opener, scheme: str) -> None:
    page = opened(color_scheme=scheme)
    background = "getComputedStyle(document.body).backgroundColor"
    light, dark = "rgb(255, 255, 255)", "rgb(21, 24, 27)"
    before, after = (light, dark) if scheme == "light" else (dark, light)
    assert page.evaluate(background) == before
    page.locator("#theme").click()
    assert page.evaluate(background) == after
    ink = "getComputedStyle(document.querySelector('.plot text')).fill"
    assert page.evaluate(ink) == page.evaluate("getComputedStyle(document.body).color")
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
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    until(page, "document.querySelector('.figure-data td')")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    wide = page.locator("table[data-table]").first.locator("xpath=..")
    assert wide.evaluate("(e) => e.getBoundingClientRect().right <= innerWidth")
    phone = width < 640  # where every row of it is a card; else it scrolls in its frame
    assert wide.evaluate("(e) => e.scrollWidth <= e.clientWidth") == phone
    cells = page.locator("table[data-table]").first.locator("tbody tr").first.locator("td:visible")
    if phone:
        assert cells.evaluate_all("(all) => all.every((e) => e.getBoundingClientRect().right <= innerWidth)")
        assert cells.first.evaluate("(e) => getComputedStyle(e, '::before').content").strip('" ')
    assert page.evaluate("[...document.querySelectorAll('.plot')].every((s) => s.clientWidth <= innerWidth)")


def test_header_texts_do_not_run_into_each_other(opened: Opener) -> None:
    page = opened()
    overlaps = page.evaluate(
        """() => [...document.querySelectorAll("table[data-table] thead button")]
          .filter((button) => button.scrollWidth > button.clientWidth).map((button) => button.textContent)"""
    )
    assert overlaps == []


# Texts of one plot that lie on each other; a line of text has three pixels of air.
OVERLAPS = """() => [...document.querySelectorAll(".plot")].flatMap((plot) => {
  const texts = [...plot.querySelectorAll("text")]
    .map((e) => [e.textContent, e.getBoundingClientRect()]).filter(([, r]) => r.width > 0);
  return texts.flatMap(([a, p], i) => texts.slice(i + 1)
    .filter(([, q]) => p.left < q.right && q.left < p.right && p.top + 3 < q.bottom && q.top + 3 < p.bottom)
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
    picture = page.locator(".matrix")
    box = picture.bounding_box()
    assert picture.locator("thead th").count() == 1 + len(NETS)
    assert box["x"] >= 0
    assert box["y"] + (box["height"] if width > 1000 else 300) <= height
    lines = page.locator(".sentences li")
    assert lines.count() == 3
    assert all(text.endswith(".") for text in lines.all_inner_texts())
    if width > 1000:  # beside the picture, without scrolling
        last = lines.nth(2).bounding_box()
        assert last["x"] > box["x"] + box["width"]
        assert last["y"] + last["height"] <= height
    assert page.locator(".plot .label").count() > 10
    assert page.evaluate(OVERLAPS) == []
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=screenshots / f"report-{name}.png", full_page=True)


def test_an_answer_leads_to_its_section_and_a_failure_tells_its_reason(opened: Opener, survey_file: Path) -> None:
    page = opened(survey_file)
    failed = page.locator(".cell.failed a")
    assert failed.count() == 1
    failed.hover()
    page.locator("#tip").wait_for(state="visible")
    assert REASON in page.locator("#tip").inner_text()
    page.mouse.move(0, 0)
    page.locator("#tip").wait_for(state="hidden")
    page.evaluate(
        """() => {
          const cell = document.querySelector(".matrix .failed");
          cell.parentElement.cells[cell.cellIndex - 1].querySelector("a").focus();
        }"""
    )
    page.keyboard.press("ArrowRight")
    page.locator("#tip").wait_for(state="visible")
    assert REASON in page.locator("#tip").inner_text()
    page.keyboard.press("Enter")
    until(page, "document.getElementById('section-symmetry').getBoundingClientRect().top < innerHeight")
    assert page.evaluate("location.hash") == "#section-symmetry"


def test_with_many_nets_the_matrix_scrolls_in_its_box_and_keeps_the_questions_in_sight(
    opened: Opener, tmp_path: Path
) -> None:
    many = [f"network-number-{i}" for i in range(14)]
    answers = [Answer(net, f"Can it do {q}?", "yes", "8 of 8 seeds") for net in many for q in range(5)]
    path = tmp_path / "many.html"
    path.write_text(render_page("t", "", [RenderedSection("a", "A", Summary("h", answers=answers))], {}, []), "utf-8")
    page = opened(path)
    box = page.locator(".picture > .scroll")
    assert box.evaluate("(e) => e.scrollWidth > e.clientWidth + 200 && e.matches('.more-right')")
    before = page.locator(".matrix tbody th").first.bounding_box()["x"]
    box.focus()
    box.evaluate("(e) => { e.scrollLeft = 400; }")
    assert page.locator(".matrix tbody th").first.bounding_box()["x"] == pytest.approx(before, abs=1)
    assert page.locator(".matrix tbody td").first.bounding_box()["x"] < before
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_whole_survey_never_scrolls_sideways(opened: Opener, survey_file: Path) -> None:
    page = opened(survey_file, width=360)
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    until(page, "document.querySelectorAll('.figure-data td').length > 100")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_keyboard_reaches_every_control(opened: Opener, survey_file: Path) -> None:
    page = opened(survey_file)
    controls = page.evaluate(
        """() => {
          const shown = [...document.querySelectorAll("button, a[href], summary, [tabindex='0']")]
            .filter((e) => e.checkVisibility() && e.tabIndex === 0);
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
    assert controls > 40
    assert page.locator(".matrix a[tabindex='0']").count() == 1  # one stop; arrow keys go on
    assert {str(i) for i in range(controls)} <= reached


def test_answers_and_dots_can_be_downloaded(opened: Opener, survey_file: Path) -> None:
    page = opened(survey_file)
    rows = list(csv.DictReader(io.StringIO(saved(page, ".answers", "[data-download=csv]"))))
    assert len(rows) == 8 * len(NETS)
    assert [row["net"] for row in rows if row["answer"] == "failed"] == [MINE]
    assert sum(row["agrees"] == "false" for row in rows) == 3
    found = list(csv.DictReader(io.StringIO(saved(page, "#figure-2", "[data-download=csv]"))))
    assert [row["x"] for row in found[: len(TASKS)]] == list(TASKS)
    figure = survey_sections()[1].summary.figures[0]
    assert [float(row["y"]) for row in found] == [y for series in figure.panels[0].series for y in series.y]
    whole = json.loads(saved(page, "footer", "[data-of=page]"))
    assert whole["verdicts"]["rows"][0]["net"] == NETS[0]


def test_what_is_printed_has_every_plot_and_no_table_is_cut(opened: Opener, survey_file: Path) -> None:
    page = opened(survey_file, width=720, java_script_enabled=False, color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    cut = """[...document.querySelectorAll(".scroll")].filter((e) => e.checkVisibility()
      && getComputedStyle(e).overflowY !== "visible").length"""
    assert page.evaluate(cut) == 0
    assert page.evaluate(
        "[...document.querySelectorAll('.plot')].every((e) => e.getBoundingClientRect().right <= innerWidth)"
    )
    assert page.evaluate("document.querySelector('.answers table').checkVisibility()")  # what is folded on a screen
    assert page.evaluate(
        "[...document.querySelectorAll('table')].every((e) => e.getBoundingClientRect().right <= innerWidth)"
    )
    broken = """() => [...document.querySelectorAll("td.number")].filter((cell) => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return range.getClientRects().length > 1;
    }).map((cell) => cell.textContent)"""
    assert page.evaluate(broken) == []  # no number goes on in the next line
    assert not page.locator(".menu").first.is_visible()


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
    page.evaluate("document.querySelector('.figure-data').open = true")
    until(page, "document.querySelector('.figure-data td')")
    assert page.evaluate("window.hurt") is None
    assert page.locator("h1").inner_text() == evil
    assert page.locator("img").count() == 0
