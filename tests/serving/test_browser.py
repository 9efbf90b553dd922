"""The page as a reader meets it: every part is driven in a browser, which must not complain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.bench.members import member, stored
from theodolite.serving.calculator import Busy, Calculator
from theodolite.serving.serve import Served, serve

from .conftest import SECRET
from .test_tables import made

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def tab(chromium: Any, page: Served) -> Iterator[Any]:
    """One tab that stays open; at the end nothing was asked of any other machine, and the policy was never broken."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    requests: list[str] = []
    complaints: list[str] = []
    opened.on("request", lambda request: requests.append(request.url))
    opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(page.address)
    yield opened
    context.close()
    own = f"http://127.0.0.1:{page.port}/"
    assert {url for url in requests if not url.startswith(("data:", own))} == set()
    refused = [text for text in complaints if "400 (Bad Request)" not in text]  # sentences to what was asked wrongly
    assert refused == []


def turn(tab: Any, part: str) -> Any:
    tab.click(f"nav a[href='#{part}']")
    section = tab.locator(f"section#{part}")
    section.wait_for(state="visible")
    return section


def says(section: Any, words: str, answer: str = "") -> None:
    section.locator(f".answer[data-answer='{answer}'] >> text={words}").first.wait_for(timeout=60_000)


def put(section: Any, name: str, value: str) -> None:
    section.locator(f"input[name={name}]").fill(value)


def test_the_token_leaves_the_address(tab, page):
    assert "token" not in tab.url
    assert tab.title().endswith("Theodolite")
    (cookie,) = tab.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    tab.reload()
    tab.locator(".place").first.wait_for()


def test_runs_are_chosen_filtered_and_compared(tab, folder):
    section = turn(tab, "runs")
    section.locator("[data-runs=runs]").click()
    section.locator("#lines tbody tr").nth(2).wait_for()
    boxes = section.locator("#lines input[type=checkbox]")
    boxes.nth(1).click()
    boxes.nth(0).click()
    section.locator("#compared >> text=B higher").wait_for()
    boxes.nth(2).click()  # the two last chosen count: another task now
    section.locator("#compared .trouble >> text=different tasks").wait_for()
    section.locator("#runs-net").select_option("rnn")
    section.locator("#counted >> text=4 runs").wait_for()
    section.locator("#runs-lines").select_option("members")
    section.locator("#lines tbody tr").nth(3).wait_for()
    section.locator("#runs-where").fill("sed=1")
    section.locator("#lines .trouble >> text=did you mean").wait_for()


def test_runs_appear_while_the_page_is_open(tab, folder):
    section = turn(tab, "runs")
    stored(folder / "late", [member(seed=0)])
    section.locator("[data-runs=late]").click(timeout=10_000)
    section.locator("#counted >> text=1 run in 1 line").wait_for()
    stored(folder / "late", [member(seed=1)])
    section.locator("#counted >> text=2 runs").wait_for(timeout=10_000)


def test_a_server_with_too_much_to_do_is_asked_again_until_it_answers(chromium, folder, monkeypatch):
    refused = []

    class Occupied(Calculator):
        async def ask(self, function: Any, key: Any = None) -> Any:
            if len(refused) < 12:
                refused.append(key)
                raise Busy("too much to do: ask again in a moment")
            return await super().ask(function, key)

    monkeypatch.setattr("theodolite.serving.app.Calculator", Occupied)
    with serve(folder, port=0, wait=False) as occupied:
        context = chromium.new_context()
        opened = context.new_page()
        opened.goto(occupied.address)
        section = turn(opened, "sawtooth")
        section.locator(".answer[data-waiting]").wait_for()
        says(section, "up to 16 pieces")
        assert len(refused) == 12
        assert section.locator("[data-waiting], .trouble").count() == 0
        context.close()


def test_reports_are_read_side_by_side_in_a_sandbox(tab):
    section = turn(tab, "runs")
    for name in ("survey", "older"):
        section.locator(f"[data-report={name}]").click()
        tab.frame_locator(f"iframe[title='report of {name}']").locator(f"text=the report of {name}").wait_for()
    frames = section.locator("iframe")
    assert [frame.get_attribute("sandbox") for frame in frames.all()] == ["allow-scripts allow-downloads"] * 2
    assert SECRET not in tab.content()


def test_the_advisor_follows_its_slider(tab):
    section = turn(tab, "advisor")
    says(section, "For 1.3B parameters")
    slider = section.locator("input[type=range]").first
    slider.focus()
    for _ in range(5):
        tab.keyboard.press("ArrowRight")
    assert section.locator("input[name=params]").input_value() != "1.3e9"
    put(section, "params", "7e9")
    says(section, "For 7B parameters")
    assert section.locator("img").evaluate("image => image.decode().then(() => image.clientWidth)") > 500
    put(section, "params", "seven")
    section.locator(".trouble >> text=is not possible here").wait_for()


def test_tokens_are_moved_from_side_to_side(tab):
    section = turn(tab, "partition")
    says(section, "separation rank 18")
    section.locator("[data-token='3']").click()
    says(section, "0,1,2,3|4,5")
    assert section.locator("[data-token='3']").get_attribute("data-side") == "A"
    put(section, "tokens", "4")
    says(section, "move one to the empty side")
    section.locator("[data-token='0']").focus()
    tab.keyboard.press("Enter")
    says(section, "1,2,3|0")


def test_an_iteration_is_stepped(tab):
    section = turn(tab, "iteration")
    says(section, "After 8 steps")
    says(section, "repeats with period 2", "ends")
    section.locator("#step-on").click()
    says(section, "After 9 steps")
    section.locator("#step-back").click()
    section.locator("#step-back").click()
    says(section, "After 7 steps")
    section.locator("#play").click()
    section.locator("#play[aria-pressed=true]").wait_for()
    tab.wait_for_timeout(1200)
    section.locator("#play").click()
    reached = int(section.locator("input[name=step]").input_value())
    assert reached > 8
    says(section, f"After {reached} steps")
    section.locator("select[name=map]").select_option("newton")
    says(section, "it converges", "ends")


def test_depth_makes_pieces(tab):
    section = turn(tab, "sawtooth")
    says(section, "up to 16 pieces")
    put(section, "depth", "1")
    says(section, "No network")
    assert section.locator(".drawing > svg").count() == 2


def test_a_network_is_built_and_its_gradient_seen(tab):
    section = turn(tab, "spectrum")
    says(section, "times more of one bit")
    section.locator("select[name=net]").select_option("lstm")
    put(section, "bits", "4")
    says(section, "parity of all 4")
    says(section, "speaks of the majority", "task")


def test_the_valley_says_that_there_is_none(tab):
    says(turn(tab, "valley"), "no valley to draw")


def test_a_table_is_dropped_cancelled_and_its_graph_appears(tab, tmp_path):
    section = turn(tab, "table")
    for name, content in (("none.csv", b"\xff\xfe\x00"), ("small.csv", made(60))):
        (tmp_path / name).write_bytes(content)
    files = section.locator("#table-file")
    files.set_input_files(tmp_path / "none.csv")
    section.locator(".trouble >> text=none.csv").wait_for()
    files.set_input_files(tmp_path / "small.csv")
    section.locator("text=60 rows, 4 columns").wait_for()
    assert section.locator("#table-target").input_value() == "y"
    section.locator("#table-begin").click()
    section.locator("progress").wait_for()
    section.locator("#table-cancel").click()
    section.locator("text=Cancelled").wait_for()
    files.set_input_files(tmp_path / "small.csv")
    section.locator("text=60 rows, 4 columns").wait_for()
    section.locator("#table-seconds").fill("5")
    section.locator("#table-begin").click()
    section.locator("#table-found img").wait_for(timeout=120_000)
    assert section.locator("#table-found .says").text_content().startswith(("Graph found", "Abstained"))


def test_a_phone_shows_a_run_without_scrolling_sideways_and_keeps_what_is_compared_in_sight(chromium, page):
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    phone = context.new_page()
    phone.goto(page.address)
    phone.locator("[data-runs=runs]").click()
    boxes = phone.locator("#lines input[type=checkbox]")
    boxes.nth(1).wait_for()
    frame = phone.locator("#lines .framed")
    assert frame.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    score = phone.locator("#lines td[data-name='mean score']").first
    assert score.bounding_box()["x"] + score.bounding_box()["width"] <= 390
    boxes.nth(0).click()
    boxes.nth(1).click()
    found = phone.locator("#compared >> text=Pair by pair")
    found.wait_for()
    assert phone.locator("#compared").bounding_box()["y"] + 100 < 844
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_part_is_wider_than_a_phone(chromium, page, scheme):
    context = chromium.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    phone = context.new_page()
    phone.goto(page.address)
    for link in phone.locator("nav a").all():
        link.click()
        phone.wait_for_timeout(150)
        wide = phone.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, link.text_content()
    assert (
        phone.evaluate("getComputedStyle(document.body).backgroundColor")
        == {
            "light": "rgb(255, 255, 255)",
            "dark": "rgb(21, 24, 27)",
        }[scheme]
    )
    context.close()


def test_everything_is_reached_with_the_keyboard(tab):
    tab.reload()
    reached = set()
    for _ in range(14):
        tab.keyboard.press("Tab")
        reached.add(tab.evaluate("document.activeElement.textContent.trim()"))
    assert {"To the content", "Advisor", "Fixed points", "Table to graph"} <= reached
