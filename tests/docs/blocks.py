"""Reads the fenced blocks of the documentation, and runs and compares them."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    output: str | None = None  # the text block that directly follows


def blocks(page: Path) -> list[Block]:
    source = page.read_text(encoding="utf-8")
    found = list(_BLOCK.finditer(source))
    result = []
    for place, match in enumerate(found):
        output = None
        if place + 1 < len(found):
            following = found[place + 1]
            adjacent = not source[match.end() : following.start()].strip()
            if adjacent and following[1] in ("text", "output"):
                output = following[2]
        result.append(Block(match[1], match[2], source[: match.start()].count("\n") + 1, output))
    return result


def agrees(expected: str, printed: str) -> bool:
    """Equal line by line, trailing spaces aside; `...` stands for anything in a line, alone on it for any lines."""
    lines = [line.rstrip() for line in expected.strip("\n").splitlines()]
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n" for line in lines
    )
    found = "".join(line.rstrip() + "\n" for line in printed.strip("\n").splitlines())
    return re.fullmatch(pattern, found) is not None


def run_python(page: Path, block: Block, namespace: dict[str, Any]) -> str:
    printed = io.StringIO()
    # Leading newlines, so that a traceback names the line of the page.
    code = compile("\n" * block.line + block.text, str(page), "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def commands(block: Block) -> list[tuple[str, str]]:
    """(command, expected output) of a console block; a command stands on one line after `$ `."""
    parts = re.split(r"^\$ (.*)$", block.text, flags=re.MULTILINE)
    assert not parts[0].strip(), f"a console block begins with '$ ', not with {parts[0]!r}"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def run_command(command: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command prints on stdout; theodolite's own run in this process, through its entry point."""
    words = shlex.split(command)
    assert words[0] in ("theodolite", "python"), f"a console block may run theodolite and python, not '{command}'"
    if words[0] == "python":
        done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout
    from theodolite.cli.main import run

    printed, complaints = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "argv", words)
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complaints):
        code = _exit_code(run)
    assert code == 0, f"'{command}' exits with {code}: {complaints.getvalue()}"
    return printed.getvalue()


def _exit_code(run: Callable[[], None]) -> object:
    try:
        run()
    except SystemExit as stopped:
        return stopped.code or 0
    return 0


def command_tree() -> dict[str, Any]:
    """Every command by its full name, `theodolite claims check`, as click knows it; groups left out."""
    import typer.main

    from theodolite.cli.main import app

    def walk(name: str, command: Any) -> dict[str, Any]:
        if not hasattr(command, "commands"):
            return {name: command}
        return {key: value for n, c in command.commands.items() for key, value in walk(f"{name} {n}", c).items()}

    return walk("theodolite", typer.main.get_command(app))
