"""Which code this is: the version, read by the build, and what every row's provenance says besides it."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

__version__ = "0.2.0"

_PACKAGE = Path(__file__).resolve().parent


@cache
def package_hash() -> str:
    """The first 16 digits of SHA-256 over the package's files as they are; edits that nobody committed change it."""
    digest = hashlib.sha256()
    for file in sorted(_PACKAGE.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            digest.update(f"{file.relative_to(_PACKAGE).as_posix()}\0{file.stat().st_size}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


@cache
def commit() -> str | None:
    """The commit that is checked out where the package runs from its own repository, else None."""
    root = _PACKAGE.parent.parent  # of `src/theodolite`; a .git further up would be another project's
    if _PACKAGE.parent.name != "src" or not (root / "pyproject.toml").is_file():
        return None
    try:
        return _head(root / ".git")
    except (OSError, ValueError):
        return None


def _head(git: Path) -> str | None:
    """What HEAD stands for, read without git; in a linked worktree `.git` is a file that says where the folder is."""
    if git.is_file():
        git = git.parent / git.read_text().removeprefix("gitdir:").strip()
    head = (git / "HEAD").read_text().strip()
    if not head.startswith("ref:"):
        return head
    name = head.removeprefix("ref:").strip()
    common = git / (git / "commondir").read_text().strip() if (git / "commondir").is_file() else git
    if (common / name).is_file():
        return (common / name).read_text().strip()
    packed = (common / "packed-refs").read_text().splitlines()
    return next((line.split()[0] for line in packed if line.endswith(f" {name}")), None)
