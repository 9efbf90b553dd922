import dataclasses
import html
import itertools
import json
import re
from html.parser import HTMLParser
from typing import Any

from theodolite.report import Answer, Column, Figure, Panel, Series, Summary, Table
from theodolite.report.answer import MARKS
from theodolite.report.page.page import RenderedSection, render_page

from .survey_example import MINE, NETS, REASON, survey_page, survey_sections

EVIL = "</script><script>window.hurt=1</script><img src=x onerror=hurt()>\"'&"


class Elements(HTMLParser):
    """Every start tag with its attributes, and the text of the embedded data."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = dict(attrs).get("id") == "data"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.data += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = False


def evil_page() -> str:
    table = Table(EVIL, [Column(EVIL, EVIL, EVIL, numeric=False)], [{EVIL: EVIL}], EVIL, EVIL)
    figure = Figure(
        EVIL, EVIL, EVIL, EVIL, [Panel(EVIL, [Series(EVIL, [EVIL], [1], hover=[EVIL], group=EVIL)])], False, False, EVIL
    )
    section = RenderedSection(
        EVIL, EVIL, Summary(EVIL, [table], [figure], [EVIL], [Answer(EVIL, EVIL, "failed", EVIL, EVIL)])
    )
    return render_page(EVIL, EVIL, [section], {EVIL: EVIL}, [EVIL], nets=[EVIL, "b"], command=EVIL)


def test_no_text_becomes_markup_or_script() -> None:
    page = Elements(evil_page())
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 4  # theme, data, plotly, page
    document: dict[str, Any] = json.loads(page.data)
    assert document["title"] == EVIL
    assert document["sections"][0]["tables"][0]["rows"] == [[EVIL]]
    assert document["sections"][0]["figures"][0]["plots"][0]["data"][0]["meta"]["name"] == EVIL


def test_the_page_is_small_and_points_nowhere_else(example_page: str) -> None:
    assert len(example_page.encode()) < 8_000_000
    page = Elements(example_page)
    for tag, attributes in page.tags:
        for name in ("src", "href", "action", "srcset", "data", "poster"):
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:")), f"<{tag} {name}={target}>"
    policy = next(a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a)
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    styles = re.findall(r"<style>.*?</style>", example_page, re.DOTALL)
    assert "url(" not in styles[0]
    assert "@import" not in styles[0]


def test_plotly_is_part_of_the_page_only_where_something_is_drawn(learning_table: Table) -> None:
    page = render_page("t", "", [RenderedSection("a", "A", Summary("h", [learning_table]))], {}, [])
    assert "plotly.js v" not in page
    assert len(page) < 100_000


def test_every_name_of_the_page_is_unique_and_every_reference_has_its_target(example_page: str) -> None:
    tags = Elements(example_page).tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    for _, attributes in tags:
        for name in ("aria-labelledby", "aria-describedby"):
            assert attributes.get(name) in {None, *ids}
        href = attributes.get("href") or ""
        assert not href.startswith("#") or href[1:] in ids


def test_figures_have_alternative_text_and_regeneration_commands(example_page: str, rank_figure: Figure) -> None:
    tags = Elements(example_page).tags
    plots = [attributes for _, attributes in tags if attributes.get("class") == "plot"]
    assert len(plots) == 3
    assert all(rank_figure.alt in (plot["aria-label"] or "") and plot["role"] == "img" for plot in plots)
    commands = [attributes["data-copy"] for _, attributes in tags if "data-copy" in attributes]
    assert rank_figure.command in commands
    assert len(commands) == 3


def blocks(page: str, opening: str, closing: str) -> list[str]:
    return [part[: part.index(closing)] for part in page.split(opening)[1:]]


def test_no_figure_and_no_table_is_without_the_command_that_makes_it_again(survey: str) -> None:
    figures = blocks(survey, "<figure id=", "</figure>")
    tables = blocks(survey, '<div class="table" id=', "\n</div>\n</section>")
    verdicts = blocks(survey, '<div id="verdicts"', "</header>")
    assert (len(figures), len(tables), len(verdicts)) == (3, 2, 1)
    for block in (*figures, *tables, *verdicts):
        command = re.search(r'data-copy="([^"]+)"', block)
        assert command is not None
        assert command[1].startswith("theodolite ")
    document = json.loads(Elements(survey).data)
    for section in document["sections"]:
        for item in (*section["tables"], *section["figures"]):
            assert item["command"].startswith("theodolite ")


def test_the_matrix_has_every_answer_once_and_each_leads_to_its_section(survey: str) -> None:
    (matrix,) = blocks(survey, '<div class="scroll matrix"', "</table>")
    answers = [(s, answer) for s in survey_sections() for answer in s.summary.answers]
    cells = matrix.split("<td")[1:]
    assert len(cells) == 8 * len(NETS)
    by_cell = dict(zip(itertools.product(dict.fromkeys(a.question for _, a in answers), NETS), cells, strict=True))
    for section, answer in answers:
        cell = html.unescape(by_cell.pop((answer.question, answer.net)))
        mark, word = MARKS[answer.standing]
        assert f'<span aria-hidden="true">{mark}</span> {word}<' in cell
        assert f'href="#section-{section.id}"' in cell
        assert answer.text in cell
        assert answer.predicted in cell
        assert ("✓ agrees" in cell, "✗ differs" in cell) == (answer.agrees is True, answer.agrees is False)
    assert len(by_cell) == 3  # never asked
    assert all("does not apply" in cell for cell in by_cell.values())


def test_a_failed_instrument_is_told_in_its_section_once(survey: str) -> None:
    (failures,) = blocks(survey, '<ul class="notes failures"', "</ul>")
    assert f"{MINE}: {REASON}" in failures.replace("<wbr>", "")
    section = next(s for s in survey_sections() if s.id == "symmetry")
    told = dataclasses.replace(section.summary, notes=[f"{MINE}: {REASON}"])
    page = render_page("t", "", [RenderedSection("symmetry", "S", told)], {}, [])
    assert page.count("notes failures") == 0


def test_one_net_is_a_card_without_a_matrix_and_no_answers_mean_no_verdicts(example_page: str) -> None:
    page = survey_page(("transformer",))
    assert '<div class="scroll matrix"' not in page
    assert page.count('<div class="card"') == 1
    assert "Verdicts" not in example_page
    assert 'id="verdicts"' not in example_page


def test_agreement_is_a_mark_and_a_word_and_silence_is_said(survey: str) -> None:
    (table,) = blocks(survey, '<div class="table" id="table-1"', "</table>")
    assert table.count(">✓ agrees<") == 31
    assert table.count(">✗ differs<") == 1
    assert table.count(">no prediction<") == 8


def test_a_survey_of_this_size_is_small(survey: str) -> None:
    assert len(survey.encode()) < 8_000_000
    ids = [a["id"] for _, a in Elements(survey).tags if "id" in a]
    assert len(set(ids)) == len(ids)
    assert survey.count('"trained lengths"') == 4  # one for each panel, in the data alone


def test_a_page_with_nothing_measured_still_says_why() -> None:
    page = render_page("t", "", [], {}, ["Symmetry: no group acts on its inputs."])
    assert "Symmetry: no group acts on its inputs." in page


def test_rounded_numbers_keep_their_digits_within_reach(example_page: str) -> None:
    assert 'title="100000000000"' in example_page  # 1e11 in the table
    assert "6917529027641081855" in example_page


def test_the_legend_can_draw_every_symbol() -> None:
    series = [Series(f"s{i}", [1], [1], dashed=i % 2 == 1) for i in range(20)]
    figure = Figure("f", "alt", "x", "y", [Panel("p", series)])
    page = render_page("t", "", [RenderedSection("a", "A", Summary("h", (), [figure]))], {}, [])
    assert page.count('class="swatch"') == 20
