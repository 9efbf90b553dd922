import dataclasses
import hashlib
import html
import itertools
import json
import re
from base64 import b64encode
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
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 3  # theme, data, page
    document: dict[str, Any] = json.loads(page.data)
    assert document["title"] == EVIL
    assert document["sections"][0]["tables"][0]["rows"] == [[EVIL]]
    assert document["sections"][0]["figures"][0]["series"][0]["name"] == EVIL


def test_the_page_is_small_and_points_nowhere_else(example_page: str) -> None:
    assert len(example_page.encode()) < 150_000
    page = Elements(example_page)
    for tag, attributes in page.tags:
        for name in ("src", "href", "action", "srcset", "data", "poster"):
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:")), f"<{tag} {name}={target}>"
    styles = re.findall(r"<style>.*?</style>", example_page, re.DOTALL)
    assert len(styles) == 1
    assert "url(" not in styles[0]
    assert "@import" not in styles[0]


def test_the_policy_allows_the_pages_own_style_and_scripts_by_their_hashes_and_nothing_else(example_page: str) -> None:
    page = Elements(example_page)
    policy = next(a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a)
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert "unsafe" not in policy
    scripts = re.findall(r"<script>(.*?)</script>", example_page, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", example_page, re.DOTALL)
    for kind, texts in (("script-src", scripts), ("style-src", styles)):
        hashes = [f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts]
        assert rules[kind].split() == hashes
    assert not [attributes for _, attributes in page.tags if "style" in attributes]  # the policy would refuse it


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
    plots = [attributes for tag, attributes in tags if tag == "svg" and attributes.get("class") == "plot"]
    assert len(plots) == 3
    assert all(rank_figure.alt in (plot["aria-label"] or "") and plot["role"] == "img" for plot in plots)
    commands = [attributes["data-copy"] for _, attributes in tags if "data-copy" in attributes]
    assert rank_figure.command in commands
    assert len(commands) == 3


def blocks(page: str, opening: str, closing: str) -> list[str]:
    return [part[: part.index(closing)] for part in page.split(opening)[1:]]


def test_no_figure_and_no_table_is_without_the_command_that_makes_it_again(survey: str) -> None:
    figures = blocks(survey, "<figure id=", "</figure>")
    tables = re.findall(r'<div class="table[^>]*>.*?</table>', survey, re.DOTALL)
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


def test_the_picture_has_every_answer_once_with_its_mark_and_each_leads_to_its_section(survey: str) -> None:
    (matrix,) = blocks(survey, '<table class="matrix">', "</table>")
    answers = [(s, answer) for s in survey_sections() for answer in s.summary.answers]
    cells = matrix.split("<td")[1:]
    assert len(cells) == 8 * len(NETS)
    by_cell = dict(zip(itertools.product(dict.fromkeys(a.question for _, a in answers), NETS), cells, strict=True))
    for section, answer in answers:
        cell = html.unescape(by_cell.pop((answer.question, answer.net)))
        mark, word = MARKS[answer.standing]
        assert f'<span class="sign" aria-hidden="true">{mark}</span><span class="hidden">{word}</span>' in cell
        assert f'class="cell {answer.standing}' in cell
        assert f'href="#section-{section.id}"' in cell
        assert answer.text in cell
        assert answer.predicted in cell
        assert ("✓ agrees" in cell, "✗ differs" in cell) == (answer.agrees is True, answer.agrees is False)
        assert ("≠ theory" in cell) == (answer.agrees is False)
    assert len(by_cell) == 3  # never asked
    assert all("does not apply" in cell for cell in by_cell.values())


def test_every_answer_stands_in_full_below_the_picture(survey: str) -> None:
    (table,) = blocks(survey, '<table aria-labelledby="verdicts-title"', "</table>")
    rows = [html.unescape(re.sub(r"<[^>]+>", " ", row.replace("<wbr>", ""))) for row in table.split("<tr")[2:]]
    assert len(rows) == 8 * len(NETS)
    for section in survey_sections():
        for answer in section.summary.answers:
            assert any(answer.text in row and answer.predicted in row for row in rows)


def test_the_users_network_is_marked_wherever_it_stands(survey: str) -> None:
    (matrix,) = blocks(survey, '<table class="matrix">', "</table>")
    assert matrix.count('<span class="yours">yours</span>') == 1
    assert len(re.findall(r'<td class="cell [a-z]+ own"', matrix)) == 8
    table = re.findall(r'<div class="table[^>]*>.*?</table>', survey, re.DOTALL)[0]
    assert table.count(">yours<") == table.count('<tr class="own">') == table.count("MyGatedThing") == 8
    assert survey.count('class="entry own"') >= 2


def test_an_ability_has_the_fields_name_its_explanation_and_its_number() -> None:
    answer = Answer(
        "lstm",
        "Can it add?",
        "no",
        "0.54 (0.5–0.6)",
        ability="length generalisation on parity",
        explains="Right on strings longer than those trained on.",
        value="0.54",
        published="1.00 (elsewhere)",
    )
    page = render_page("t", "", [RenderedSection("a", "A", Summary("h", answers=[answer]))], {}, [])
    (matrix,) = blocks(page, '<table class="matrix">', "</table>")
    assert 'title="Right on strings longer than those trained on."' in matrix
    assert ">Length generalisation on parity</a>" in matrix
    assert '<span class="value" aria-hidden="true">0.54</span>' in matrix
    assert "published: 1.00 (elsewhere)" in matrix
    assert "published elsewhere" in page
    assert '<dd id="ability-0">Right on strings longer than those trained on.</dd>' in page


def test_a_failed_instrument_is_told_in_its_section_once(survey: str) -> None:
    (failures,) = blocks(survey, '<ul class="notes failures"', "</ul>")
    assert f"{MINE}: {REASON}" in failures.replace("<wbr>", "")
    section = next(s for s in survey_sections() if s.id == "symmetry")
    told = dataclasses.replace(section.summary, notes=[f"{MINE}: {REASON}"])
    page = render_page("t", "", [RenderedSection("symmetry", "S", told)], {}, [])
    assert page.count("notes failures") == 0


def test_one_net_shows_its_answers_at_once_and_no_answers_mean_no_picture(example_page: str) -> None:
    assert '<details class="answers" open>' in survey_page(("transformer",))
    assert '<details class="answers">' in survey_page()
    assert 'id="verdicts"' not in example_page


def test_agreement_is_a_mark_and_a_word_and_silence_is_said(survey: str) -> None:
    table = re.findall(r'<div class="table[^>]*id="table-1">.*?</table>', survey, re.DOTALL)[0]
    assert table.count(">✓ agrees<") == 31
    assert table.count(">✗ differs<") == 1
    assert table.count(">no prediction<") == 8


def test_a_survey_of_this_size_is_small_and_names_each_thing_once(survey: str) -> None:
    assert len(survey.encode()) < 400_000
    ids = [a["id"] for _, a in Elements(survey).tags if "id" in a]
    assert len(set(ids)) == len(ids)
    assert survey.count(">trained lengths<") == 4  # one for each panel


def test_a_broad_table_stands_beside_a_figure_that_would_stand_alone(rank_figure: Figure, rank_table: Table) -> None:
    narrow = dataclasses.replace(rank_figure, panels=rank_figure.panels[:1])
    for count, broad in ((1, False), (2, True)):
        short = dataclasses.replace(rank_table, rows=rank_table.rows[:6])
        section = RenderedSection("a", "A", Summary("h", [short], [narrow] * count))
        page = render_page("t", "", [section], {}, [])
        assert ('<div class="table broad"' in page) is broad
    assert '<figure id="figure-1" class="broad"' in render_page(
        "t", "", [RenderedSection("a", "A", Summary("h", (), [rank_figure]))], {}, []
    )


def test_a_long_table_is_folded_below_what_is_drawn_of_it(rank_figure: Figure, rank_table: Table) -> None:
    short = dataclasses.replace(rank_table, rows=rank_table.rows[:6])
    for figures, table, folded in (
        ([rank_figure], rank_table, True), ([], rank_table, False), ([rank_figure], short, False),
    ):  # fmt: skip
        page = render_page("t", "", [RenderedSection("a", "A", Summary("h", [table], figures))], {}, [])
        assert (f"{len(table.rows)} rows behind the figure" in page) is folded
        assert page.count("<tr") >= len(table.rows)  # there in any case


def test_a_word_of_a_header_breaks_only_where_it_must() -> None:
    table = Table("t", [Column("a", "para- meters - all", "how many")], [{"a": 1}])
    page = render_page("t", "", [RenderedSection("a", "A", Summary("h", [table]))], {}, [])
    assert page.count("para\u00admeters - all") == 3  # header, cell and glossary
    assert '"label":"parameters - all"' in page


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
