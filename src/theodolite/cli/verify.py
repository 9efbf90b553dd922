"""`theodolite verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from theodolite.cli.groups import Computing, Device, grouped
from theodolite.cli.options import print_json, progress_bar


@grouped
def verify(
    output: Computing,
    file: Annotated[Path, Argument(metavar="FILE", help="A certificate written by 'theodolite rank'.")],
    net: Annotated[str | None, Option("--net", help="file.py:Name, for a certificate about a net of your own.")] = None,
    device: Device = "cpu",
) -> None:
    """Check a certificate of a separation rank: exit 0 if it proves its lower bound, 1 if it is refused."""
    from theodolite.errors import CertificateRefused
    from theodolite.files import read_json
    from theodolite.instruments.rank.certificate import verify as check

    document = read_json(file, "a certificate")
    try:
        with progress_bar() as bar:
            verified = check(document, net, device, bar.step)
    except CertificateRefused as error:
        if output.json:
            print_json({"valid": False, "reason": str(error)})
        raise
    if output.json:
        print_json(verified.to_json())
        return
    shape = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in verified.shape.items())
    proven = "so it is exact" if verified.exact else "the exact value is not claimed"
    cap = "no cap is known" if verified.cap is None else f"the cap is {verified.cap:,}"
    typer.echo(f"valid: {verified.net} ({shape}), partition {verified.partition}")
    typer.echo(f"separation rank ≥ {verified.lower_bound:,} for almost all weights; {cap}, {proven}")
    typer.echo(f"checked by {verified.method}, modulo {verified.prime}, in {verified.seconds:.2f} s")
