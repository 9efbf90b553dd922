"""python -m benchmarks.advise_descriptions --folder found --table table.json.gz: see the package's first lines."""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.advise_descriptions.answer import answer

from theodolite.advice.building.library import quiet, transformers


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.advise_descriptions", description=__doc__)
    parser.add_argument("types", nargs="*", help="only these; all that transformers knows without them")
    parser.add_argument(
        "--folder", type=Path, required=True, help="a file for each type; those there are not made again"
    )
    parser.add_argument("--part", default="0/1", help="of the types: 0/2 and 1/2 are the two halves")
    parser.add_argument("--table", type=Path, help="where the table goes, once every type is in the folder")
    parser.add_argument("--report", type=Path, help="where it goes why types are left out")
    options = parser.parse_args()
    every = sorted(transformers().CONFIG_MAPPING.keys())
    if unknown := set(options.types) - set(every):
        sys.exit(f"transformers {transformers().__version__} knows no {', '.join(sorted(unknown))}")
    options.folder.mkdir(parents=True, exist_ok=True)
    part, parts = map(int, options.part.split("/"))
    names = sorted(options.types or every, key=lambda name: (_of_parts(name), name))[part::parts]
    for name in names:
        if not file_of(options.folder, name).exists():
            _make(options.folder, name)
    if options.types or not (options.table or options.report):
        return
    if missing := [name for name in every if not file_of(options.folder, name).exists()]:
        sys.exit(
            f"{len(missing)} types are not in {options.folder} yet, the first is {missing[0]}: no table is written"
        )
    described, left_out = merged(options.folder, every)
    if options.table:
        options.table.write_bytes(packed(described))
    if options.report:
        about = {"transformers": transformers().__version__, "types": len(every), "described": len(described)}
        options.report.write_text(json.dumps({**about, "left out": left_out}, indent=1) + "\n", encoding="utf-8")


def file_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def merged(folder: Path, names: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Descriptions by type, and why others have none."""
    found = {name: json.loads(file_of(folder, name).read_text(encoding="utf-8")) for name in names}
    described = {name: one["description"] for name, one in found.items() if one["description"] is not None}
    return described, {name: one["why"] for name, one in found.items() if one["description"] is None}


def packed(described: dict[str, Any]) -> bytes:
    """The same bytes for the same descriptions."""
    text = json.dumps(described, sort_keys=True, separators=(",", ":"))
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def _make(folder: Path, name: str) -> None:
    started = time.perf_counter()
    description, why = answer(name)
    document = json.dumps({"description": description, "why": why}, sort_keys=True)
    file_of(folder, name).write_text(document + "\n", encoding="utf-8")
    print(f"{name}: {why or 'described'} ({time.perf_counter() - started:.1f} s)", file=sys.stderr, flush=True)


def _of_parts(name: str) -> bool:
    """Whether it is made of other models: those take longest and come last."""
    with quiet():
        return bool(getattr(transformers().CONFIG_MAPPING[name], "sub_configs", None))


if __name__ == "__main__":
    main()
