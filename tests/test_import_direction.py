"""Imports point one way: a folder knows itself and what lies below it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import theodolite.version

PACKAGE = Path(theodolite.version.__file__).parent
FOUNDATION = (
    "errors",
    "registry",
    "measures",
    "measurement",
    "partition",
    "statistics",
    "device",
    "files",
    "loading",
    "notebook",
    "graphs",
    "version",
    "standalone_verifier",
)
ORDER = [
    FOUNDATION,
    (
        "field",
        "theory",
        "report",
        "kernels",
    ),  # report draws plain values: what knows a command's result is in cli/views
    ("nets", "tasks"),
    ("witness",),
    ("training",),
    ("instruments",),
    ("lab",),
    ("bench",),
    ("scaling",),
    ("structure", "claims", "advice"),
    ("surveys",),
    ("serving",),
    ("cli",),
]
LEVEL = {name: level for level, names in enumerate(ORDER) for name in names}


def owner(path: Path, root: Path) -> str:
    """The folder or foundation module a file belongs to; the package's own front door belongs to nobody."""
    return path.relative_to(root).parts[0].removesuffix(".py")


def imports(path: Path, root: Path) -> list[tuple[int, str]]:
    """(line, what of the package is imported), wherever in the file, also inside functions."""
    found = []
    package = ("theodolite", *path.relative_to(root).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            base = ".".join(part for part in (base, node.module) if part)
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        found += [(node.lineno, name.split(".")[1]) for name in names if name.startswith("theodolite.")]
    return found


def violations(root: Path) -> list[str]:
    wrong = []
    for path in sorted(root.rglob("*.py")):
        here = owner(path, root)
        if here in ("__init__", "__main__"):
            continue
        if here not in LEVEL:
            wrong.append(f"{path.relative_to(root)}: '{here}' has no place in the order")
            continue
        for line, there in imports(path, root):
            if there not in LEVEL:
                if there != "__version__":
                    wrong.append(f"{path.relative_to(root)}:{line} imports '{there}', which has no place in the order")
            elif there != here and LEVEL[there] >= LEVEL[here] and not {here, there} <= set(FOUNDATION):
                wrong.append(f"{path.relative_to(root)}:{line} imports '{there}', which is not below '{here}'")
    return wrong


def test_imports_point_one_way():
    assert violations(PACKAGE) == []


def picture() -> str:
    """The order as the pages show it: what stands lower may import what stands above it."""
    return "\n".join(f"{'' if not level else '  ← '}{', '.join(names)}" for level, names in enumerate(ORDER))


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_the_pages_show_this_order(page):
    text = (Path(__file__).parents[1] / page).read_text(encoding="utf-8")
    assert f"```text\n{picture()}\n```" in text, f"{page} should show\n{picture()}"


def test_there_is_something_to_look_at():
    seen = {there for path in PACKAGE.rglob("*.py") for _, there in imports(path, PACKAGE)}
    assert {"errors", "field", "nets", "instruments"} <= seen


@pytest.mark.parametrize(
    ("file", "text", "wrong"),
    [
        ("nets/a.py", "from theodolite.tasks import b", True),
        ("nets/a.py", "import theodolite.lab.store.store", True),
        ("nets/a.py", "def f():\n    from theodolite.cli import main", True),
        ("nets/a.py", "if True:\n    from theodolite import instruments", True),
        ("nets/a.py", "from ..tasks import b", True),
        ("nets/deep/a.py", "from ...instruments import rank", True),
        ("errors.py", "from theodolite.field import rank", True),
        ("errors.py", "from .nets import load", True),
        ("claims/a.py", "from theodolite.surveys import c", True),
        ("surveys/a.py", "from theodolite.claims import c", False),
        ("surveys/a.py", "from theodolite.report import Table", False),
        ("report/a.py", "from theodolite.instruments import rank", True),
        ("report/a.py", "from theodolite.surveys import section", True),
        ("report/a.py", "from theodolite.graphs import CompositionalGraph", False),
        ("gadgets/a.py", "", True),
        ("nets/a.py", "from theodolite.gadgets import b", True),
        ("nets/a.py", "from theodolite.nets.b import c", False),
        ("nets/a.py", "from . import b\nfrom .c import d", False),
        ("nets/deep/a.py", "from ..b import c", False),
        ("nets/a.py", "from theodolite.field import rank\nimport torch\nfrom theodolite.errors import BadInput", False),
        ("cli/a.py", "from theodolite.report import page\nfrom theodolite.surveys import section", False),
        ("registry.py", "from theodolite.errors import BadInput", False),
        ("__init__.py", "from theodolite.cli import main", False),
    ],
)
def test_the_test_can_fail(tmp_path, file, text, wrong):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert bool(violations(tmp_path)) == wrong
