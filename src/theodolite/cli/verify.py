"""`theodolite verify`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from theodolite.cli.groups import Computing, Device, grouped
from theodolite.cli.options import print_json
from theodolite.cli.progress import progress_bar
from theodolite.cli.terminal import terminal
from theodolite.loading import loading

if TYPE_CHECKING:
    from theodolite.claims.tensors.graded_certificate import GradedVerified
    from theodolite.claims.tensors.growth_certificate import GrowthVerified
    from theodolite.instruments.rank.certificate import Verified


@grouped
def verify(
    output: Computing,
    paths: Annotated[
        list[Path], Argument(metavar="FILE…", help="Certificates; in a .jsonl file one a line; folders of both.")
    ],
    net: Annotated[str | None, Option("--net", help="file.py:Name, for a certificate about a net of your own.")] = None,
    device: Device = "cpu",
) -> None:
    """Check certificates of separation ranks: exit 0 if each proves what it states, 1 if one is refused."""
    from theodolite.claims.certificates import files
    from theodolite.instruments.rank.document import read

    documents = [(file, number, document) for file in files(paths) for number, document in enumerate(read(file), 1)]
    if len(documents) == 1:
        _one(documents[0][2], net, device, output.json)
    else:
        _many(documents, net, device, output.json)


def _one(document: Any, net: str | None, device: str, as_json: bool) -> None:
    with loading():
        from theodolite.claims.certificates import verify as check
        from theodolite.errors import CertificateRefused

    try:
        with progress_bar() as bar:
            verified = check(document, net, device, bar.step)
    except CertificateRefused as error:
        if as_json:
            print_json({"valid": False, "reason": str(error)})
        raise
    if as_json:
        print_json(verified.to_json())
        return
    show(verified)


def show(verified: Verified | GradedVerified | GrowthVerified) -> None:
    from theodolite.instruments.rank.certificate import Verified as OfRank

    def say(text: str) -> None:
        terminal().print(text, markup=False, highlight=False, soft_wrap=True)

    if isinstance(verified, OfRank):
        shape = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in verified.shape.items())
        proven = "so it is exact" if verified.exact else "the exact value is not claimed"
        cap = "no cap is known" if verified.cap is None else f"the cap is {verified.cap:,}"
        say(f"valid: {verified.net} ({shape}), partition {verified.partition}")
        if verified.source:
            say(f"a net of your own: its file has SHA-256 {verified.source}")
        say(f"separation rank ≥ {verified.lower_bound:,} for almost all weights; {cap}, {proven}")
    else:
        say(f"valid: {verified.statement}")
    say(f"checked by {verified.method}, modulo {verified.prime}, in {verified.seconds:.2f} s")


def _many(documents: list[tuple[Path, int, Any]], net: str | None, device: str, as_json: bool) -> None:
    from theodolite.claims.certificates import verify as check
    from theodolite.errors import CertificateRefused, TheodoliteError

    started, rows, refused = time.perf_counter(), [], 0
    with progress_bar() as bar:
        for done, (file, number, document) in enumerate(documents):
            bar.count(done, len(documents), f"{file.name}, certificate {number}")
            where = {"file": str(file), "number": number}
            try:
                verified = check(document, net, device)
                rows.append({**where, **verified.to_json()})
            except TheodoliteError as error:
                refused += 1
                rows.append({**where, "valid": False, "reason": str(error)})
                if not as_json:
                    typer.echo(f"refused: {file}, certificate {number}: {error}")
    if as_json:
        print_json({"valid": not refused, "certificates": rows})
    exact = sum(bool(row.get("exact")) for row in rows)
    told = f"{len(rows) - refused} of {len(rows)} certificates are valid, {exact} of them prove an exact rank"
    if refused:
        raise CertificateRefused(f"{told}, {refused} refused")
    if not as_json:
        typer.echo(f"{told}, in {time.perf_counter() - started:.0f} s")
