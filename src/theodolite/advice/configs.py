"""Hugging Face configurations, read by hand: load a `config.json`, read its model's shape, write another shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from theodolite.advice.reading import read_config
from theodolite.advice.rescale import reshape
from theodolite.errors import BadInput
from theodolite.files import json_fault, refuse_endless

__all__ = ["load_config", "read_config", "reshape"]

LARGEST_FILE = 10 * 2**20


def load_config(path: str | Path) -> dict[str, Any]:
    """The configuration in a file, or in the `config.json` of a folder."""
    path = Path(path)
    if path.is_dir():
        path = path / "config.json"
        if not path.is_file():
            raise BadInput(f"the folder {path.parent} holds no config.json: pass a model's folder or its config.json")
    refuse_endless(path)
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise BadInput(
                f"{path} is larger than {LARGEST_FILE // 2**20} MB, which no configuration is: pass a config.json"
            )
        config = json.loads(content.decode("utf-8-sig"))
    except FileNotFoundError:
        raise BadInput(f"there is no file {path}: pass a model's config.json") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror or error}): pass a model's config.json") from None
    except (ValueError, RecursionError) as error:  # of JSON, of the encoding, of a number too long
        raise BadInput(f"{path} is not JSON ({json_fault(error)}): pass a model's config.json") from None
    if not isinstance(config, dict):
        raise BadInput(f"{path} holds a JSON {_kind(config)} instead of an object: pass a model's config.json")
    return config


def _kind(value: object) -> str:
    kinds = {list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
    return kinds.get(type(value), "null")
