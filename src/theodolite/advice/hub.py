"""A model by its name on the Hugging Face hub: found in the local cache, never fetched."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from theodolite.advice.configs import load_config
from theodolite.errors import BadInput

HOSTS = ("huggingface.co", "www.huggingface.co", "hf.co")
_WORD = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_ID = re.compile(rf"{_WORD}(?:/{_WORD})?")
_NOT_MODELS = ("datasets", "spaces", "docs", "papers", "blog", "collections")


def load(given: str | Path) -> dict[str, Any]:
    """The configuration of a file, of a folder, or of a model in the cache."""
    return load_config(locate(given))


def locate(given: str | Path) -> Path:
    """The file or folder that was named; the cached configuration of a hub id or of a page of the hub."""
    path = Path(given)
    text = str(given)
    if re.match(r"[a-z][a-z0-9+.-]*:/", text, re.IGNORECASE):
        return _of_page(text)
    if path.exists() or path.suffix.lower() == ".json" or not _ID.fullmatch(text):
        return path
    found = cached(text)
    if found is None:
        raise BadInput(
            f"there is no file '{text}', and the local Hugging Face cache ({cache_folder()}) has no config.json of a "
            f"model of that name: pass the path of a config.json, or fetch it first with 'hf download {text} "
            "config.json'"
        )
    return found


def cached(name: str, revision: str = "main") -> Path | None:
    """The configuration of a model in the local cache, at a branch, a tag or a commit."""
    folder = cache_folder() / f"models--{name.replace('/', '--')}"
    ref = folder / "refs" / revision
    try:
        commit = ref.read_text(encoding="utf-8").strip() if ref.is_file() else revision
        found = folder / "snapshots" / commit / "config.json"
        return found if re.fullmatch(r"[\w.-]+", commit) and found.is_file() else None
    except (OSError, ValueError):
        return None


def cache_folder() -> Path:
    """Where the hub's own library keeps it, by the same variables."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return Path(os.environ[variable]).expanduser()
    if os.environ.get("HF_HOME"):
        return Path(os.environ["HF_HOME"]).expanduser() / "hub"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "huggingface" / "hub"


def _of_page(text: str) -> Path:
    """https://huggingface.co/owner/name, or a file of it at a revision."""
    fixed = re.sub(r"^([A-Za-z]+):/+", r"\1://", text)  # a path loses the second stroke
    parts = urlsplit(fixed)
    words = [unquote(word) for word in parts.path.split("/") if word]
    if parts.scheme.lower() not in ("http", "https") or (parts.hostname or "") not in HOSTS or not words:
        raise BadInput(
            f"'{fixed}' is not a model's page on huggingface.co, and nothing is downloaded: save its config.json and "
            "pass the path of that"
        )
    marks = [index for index, word in enumerate(words) if word in ("blob", "resolve", "tree", "raw")]
    end = marks[0] if marks else len(words)
    name = "/".join(words[:end])
    revision = words[end + 1] if len(words) > end + 1 else "main"
    if words[0] in _NOT_MODELS or end > 2 or not _ID.fullmatch(name):
        raise BadInput(f"'{fixed}' is not a model's page: pass https://huggingface.co/owner/name, or a config.json")
    found = cached(name, revision)
    if found is None:
        raise BadInput(
            f"the local Hugging Face cache ({cache_folder()}) has no config.json of {name} at '{revision}', and "
            f"nothing is downloaded: fetch it first with 'hf download {name} config.json', or pass the path of one"
        )
    return found
