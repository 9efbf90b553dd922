"""Every Python and console block of the documentation runs, and prints what the page says it prints."""

from __future__ import annotations

import re
import shlex
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from .blocks import PAGES, ROOT, agrees, blocks, command_tree, commands, run_command, run_python


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder of its own, a terminal of 80 columns, and registries that forget what a page registers."""
    from theodolite.claims.contract import claims
    from theodolite.measures import measures
    from theodolite.nets import nets
    from theodolite.surveys.run import sections
    from theodolite.tasks import tasks

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    registries = (nets, tasks, claims, sections, measures)
    before = [{name: registry._items[name] for name in registry} for registry in registries]  # read, so that all are in
    yield
    for registry, items in zip(registries, before, strict=True):
        registry._items.clear()
        registry._items.update(items)  # pyright: ignore[reportCallIssue]


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_run_and_print_what_the_page_says(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType(f"documentation_{page.stem.lower()}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in blocks(page):
        if block.language == "python":
            if named := re.match(r"# (\w+\.py)\n", block.text):  # a file that the reader saves, for commands to name
                Path(named[1]).write_text(block.text, encoding="utf-8")
            printed = run_python(page, block, module.__dict__)
            assert printed or block.output is None, f"{page.name}:{block.line} shows output and prints none"
            assert not printed or block.output is not None, f"{page.name}:{block.line} prints and shows no output"
            if block.output is not None:
                assert agrees(block.output, printed), f"{page.name}:{block.line} prints\n{printed}"
        elif block.language == "console":
            for command, expected in commands(block):
                printed = run_command(command, monkeypatch)
                assert agrees(expected, printed), f"{page.name}:{block.line}: '{command}' prints\n{printed}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_are_not_run_still_parse(page: Path) -> None:
    tree = command_tree()
    for block in blocks(page):
        assert block.language in ("python", "console", "sh", "text", "output"), f"{page.name}:{block.line}"
        for line in block.text.replace("\\\n", "").splitlines() if block.language == "sh" else ():
            words = shlex.split(line, comments=True)
            if words[:1] != ["theodolite"]:
                continue
            name = max((n for n in tree if f"{line} ".startswith(f"{n} ")), key=len, default=None)
            assert name, f"{page.name}:{block.line}: no such command: {line}"
            tree[name].make_context(name, words[len(name.split()) :])


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a\nb\n", "a  \nb\n", True),
        ("a\n", "a\nb\n", False),
        ("a\nb\n", "a\n", False),
        ("in ... s\n", "in 0.3 s\n", True),
        ("in ... s\n", "in 0.3 m\n", False),
        ("a\n...\n", "a\nb\nc\n", True),
        ("a\n...\n", "b\nc\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_the_comparison_can_fail(expected: str, printed: str, same: bool) -> None:
    assert agrees(expected, printed) is same


def test_make_lines_name_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    shell = {page: "".join(b.text for b in blocks(page) if b.language == "sh") for page in PAGES}
    named = {page.name: re.findall(r"^make (\w+)$", text, re.MULTILINE) for page, text in shell.items()}
    assert {"survey", "test"} <= set(named["README.md"])
    for target in {target for targets in named.values() for target in targets}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"the Makefile has no target '{target}'"


def test_readme_has_an_example_with_output() -> None:
    shown = [block for block in blocks(ROOT / "README.md") if block.language == "python"]
    assert shown
    assert shown[0].output
    assert len(shown[0].text.splitlines()) <= 10
