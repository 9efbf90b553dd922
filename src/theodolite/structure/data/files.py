"""Columns out of files: .csv, .tsv and .parquet, as people write them."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from theodolite.errors import BadInput
from theodolite.structure.data.columns import MISSING, Column, of_strings, of_values, row_place
from theodolite.structure.data.source import Array

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_WITH_COMMA = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?")


def of_file(path: Path, header: bool) -> tuple[list[Column], Callable[[int], str]]:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    zipped = suffixes[-1:] == [".gz"]
    kind = (suffixes[-2:-1] if zipped else suffixes[-1:]) or [""]
    if kind[0] not in _SEPARATORS and (kind[0] not in (".parquet", ".pq") or zipped):
        raise BadInput(f"'{path}' is no table that can be read: give a file in .csv, .tsv (also .gz) or .parquet")
    if path.is_dir():
        raise BadInput(f"'{path}' is a folder: give the path of a table")
    if not path.is_file():
        raise BadInput(f"there is no file '{path}': give the path of a table")
    if kind[0] in _SEPARATORS:
        return _of_text(path, _text_of(path, zipped), _SEPARATORS[kind[0]], header)
    if not header:
        raise BadInput(f"'{path}' names its own columns: use --no-header only with .csv and .tsv")
    return _of_parquet(path), row_place


def _text_of(path: Path, zipped: bool) -> str:
    try:
        content = path.read_bytes()
        return (gzip.decompress(content) if zipped else content).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise BadInput(f"'{path}' cannot be read as a table of text in UTF-8 ({error}): check the file") from error


def _of_text(path: Path, text: str, separator: str, header: bool) -> tuple[list[Column], Callable[[int], str]]:
    if separator == ",":
        separator = _separator(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    rows, lines = [], []
    try:
        for row in reader:
            if row and (len(row) > 1 or row[0].strip()):  # blank lines are nothing
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise BadInput(f"'{path}' breaks off in line {reader.line_num} ({error}): check the file") from error
    if not rows:
        raise BadInput(f"'{path}' is empty: give a table with a line of names and rows of numbers")
    if header and all(_is_number(entry) for entry in rows[0]):
        raise BadInput(
            f"the first line of '{path}' holds numbers and no names: put a line of column names above it, or use "
            "--no-header (header=False in Python), which calls the columns x1, x2, …"
        )
    names = [name.strip() for name in rows[0]] if header else [f"x{i + 1}" for i in range(len(rows[0]))]
    body, lines = (rows[1:], lines[1:]) if header else (rows, lines)
    if not body:
        raise BadInput(f"'{path}' has a line of names and no rows: give a table with rows of numbers")
    for row, line in zip(body, lines, strict=True):
        if len(row) != len(names):
            raise BadInput(f"line {line} of '{path}' has {len(row)} entries where {len(names)} are named: mend it")
    columns = [
        of_strings(name or f"column {i + 1}", _with_points(entries) if separator != "," else list(entries))
        for i, (name, entries) in enumerate(zip(names, zip(*body, strict=True), strict=True))
    ]
    if not names[0] and _counts(columns[0].numbers):
        columns = columns[1:]  # the row numbers that pandas writes unless told not to
    return columns, lambda row: f"line {lines[row]}"


def _separator(text: str) -> str:
    """Of a .csv: what stands equally often, outside quotes, in its first two lines; a comma in any doubt."""
    bare = re.sub(r'"[^"]*"', "", "\n".join(text.lstrip(" \r\n").split("\n", 2)[:2])).splitlines()
    if len(bare) == 2:
        for separator in (";", "\t"):
            if 0 < bare[0].count(separator) == bare[1].count(separator):
                return separator
    return ","


def _with_points(entries: Sequence[str]) -> list[str]:
    """Decimal commas as points, where a whole column is written with them; '1,234' alone could mean a thousand."""
    known = [entry.strip() for entry in entries if entry.strip().lower() not in MISSING]
    digits = {len(re.split("[eE]", entry.partition(",")[2])[0]) for entry in known if "," in entry}
    if not digits or digits == {3} or not all(_WITH_COMMA.fullmatch(entry) for entry in known):
        return list(entries)
    return [entry.replace(",", ".") for entry in entries]


def _is_number(entry: str) -> bool:
    try:
        float(entry)
    except ValueError:
        return False
    return True


def _counts(numbers: Array) -> bool:
    return bool(np.array_equal(numbers - numbers[0], np.arange(len(numbers)))) and numbers[0] in (0.0, 1.0)


def _of_parquet(path: Path) -> list[Column]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise BadInput(
            f"reading '{path}' needs pyarrow: install it (pip install pyarrow), or save the table as .csv"
        ) from None
    try:
        table = parquet.read_table(path)
    except (ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise BadInput(f"'{path}' is no Parquet file, or it is damaged ({reason}): give another") from error
    if not table.num_rows or not table.num_columns:
        raise BadInput(f"'{path}' is empty: give a table with rows of numbers")
    written = zip(table.column_names, table.columns, strict=True)
    return [of_values(name, column.to_numpy()) for name, column in written if name != "__index_level_0__"]
