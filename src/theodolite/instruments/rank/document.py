"""Certificates as JSON documents: a header of whole numbers under a digest, whatever it is that is certified."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from theodolite.errors import BadInput, CertificateRefused
from theodolite.field.draw import RULE
from theodolite.files import json_fault, refuse_endless
from theodolite.measurement import canonical

LARGEST = 1 << 63


def digest(body: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical text. It detects damage; it is not a signature."""
    try:
        return hashlib.sha256(canonical(body).encode()).hexdigest()
    except ValueError:
        raise BadInput("the certificate holds numbers that are not finite: it is damaged") from None


def seal(kind: str, version: int, **body: Any) -> dict[str, Any]:
    return {"format": kind, "version": version, **body, "digest": digest(body)}


def opened(document: Any, kind: str, version: int, parts: tuple[str, ...], fields: set[str]) -> dict[str, Any]:
    """The header of a document of this kind, once its frame, its digest and the names of its fields are right."""
    if not isinstance(document, dict) or document.get("format") != kind:
        raise BadInput("this file is not a certificate: give one written by 'theodolite rank --certificate FILE'")
    if type(document.get("version")) is not int or document["version"] != version:
        raise BadInput(f"a certificate of version {document.get('version')!r} cannot be read: this reads {version}")
    if set(document) != {"format", "version", "digest", *parts}:
        raise BadInput("the certificate is incomplete or holds fields it should not: it may be truncated")
    if digest({name: document[name] for name in parts}) != document["digest"]:
        raise CertificateRefused("the digest does not fit the content: the file was changed after it was written")
    header = document["header"]
    if not isinstance(header, dict) or set(header) != fields:
        raise CertificateRefused("the header does not have the fields of a certificate")
    if type(header["draw_rule"]) is not int or header["draw_rule"] != RULE:
        raise CertificateRefused(f"draw rule {header['draw_rule']} is unknown: this version knows rule {RULE}")
    return header


def whole(header: Mapping[str, Any], names: Iterable[str]) -> None:
    """Refuse a header whose fields of these names are not whole numbers from 0 to 2⁶³."""
    for name in names:
        if type(header[name]) is not int or header[name] < 0:
            raise CertificateRefused(f"the field '{name}' is {header[name]!r}, not a whole number")
        if header[name] >= LARGEST:
            raise CertificateRefused(f"the field '{name}' is {header[name]}, larger than any that is drawn with")


def read(path: str | Path) -> list[Any]:
    """The certificates of a file: one document, or one a line in a file named .jsonl."""
    path = Path(path)
    refuse_endless(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInput(f"there is no file '{path}': give the path of a certificate") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"'{path}' cannot be read ({error}): give the path of a certificate") from error
    lines = [line for line in text.splitlines() if line.strip()] if path.suffix == ".jsonl" else [text]
    try:
        return [json.loads(line, object_pairs_hook=_once) for line in lines]
    except CertificateRefused as error:
        raise CertificateRefused(f"in '{path}' {error}") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"'{path}' is not a certificate, or it is truncated ({json_fault(error)})") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A name that stands twice says two things; which of them is read depends on the reader."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise CertificateRefused("a field stands twice, so that two readers could read two certificates")
    return found
