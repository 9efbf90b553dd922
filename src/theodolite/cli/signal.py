"""`theodolite signal`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from theodolite.cli.groups import Computing, Device, Seed, Shape, grouped
from theodolite.cli.options import labelled, print_json, refuse_own_names
from theodolite.cli.progress import progress_bar
from theodolite.cli.terminal import terminal
from theodolite.errors import BadInput
from theodolite.loading import loading

if TYPE_CHECKING:
    from theodolite.instruments.gradient.signal import Signal

_SHAPE, _OTHER = "Shape of the net", "Classes other than parity"


@grouped
def signal(
    shape: Shape,
    output: Computing,
    net: Annotated[str, Option(help="A built-in net (see 'theodolite nets') or file.py:Name.")] = "mlp",
    family: Annotated[
        str, Option("--class", help="parity, linear-periodic, random, graph, scrambled, or file.py:Name of a function.")
    ] = "parity",
    bits: Annotated[int, Option(min=1, help="Bits, or dimensions, of the input.")] = 10,
    loss: Annotated[str, Option(help="square, hinge (also called margin) or logistic.")] = "square",
    subclass: Annotated[
        str, Option(help="Which parities: all, degree=3, prefixes, or subsets of bits: 0,1|2,4,5.")
    ] = "all",
    draws: Annotated[int, Option(min=1, help="Draws of the weights that are averaged over.")] = 1,
    members: Annotated[
        int | None, Option(rich_help_panel=_OTHER, min=2, help="Functions drawn from the class, 256 unless given.")
    ] = None,
    radius: Annotated[
        float | None, Option(rich_help_panel=_OTHER, help="Norm of v in cos⟨v, x⟩, 4 unless given.")
    ] = None,
    inputs: Annotated[str | None, Option(rich_help_panel=_OTHER, help="cube (all ±1 bits) or normal (drawn).")] = None,
    samples: Annotated[
        int | None, Option(rich_help_panel=_OTHER, min=32, help="Inputs that are drawn, 16384 unless given.")
    ] = None,
    dtype: Annotated[str, Option(help="float32 or float64.")] = "float32",
    seed: Seed = 0,
    device: Device = "cpu",
) -> None:
    """Gradient signal: how much the gradient at the start says about which function is to be learnt.

    The variance of the gradient over a class of targets, beside the bound that Theorem 1 of Shalev-Shwartz et al. 2017
    puts on it. For parities exact, over all 2^bits of them at once.
    """
    with loading():
        from theodolite.instruments.gradient.signal import signal as measure

    drawn = {"members": members, "radius": radius, "inputs": inputs, "samples": samples}
    drawn = {name: value for name, value in drawn.items() if value is not None}
    if family == "parity" and drawn:
        raise BadInput(f"--{next(iter(drawn))} has no part in parities, all of which are taken: use another --class")
    if radius is not None and family != "linear-periodic":
        raise BadInput(f"--radius has no part in the class '{family}': use it with --class linear-periodic")
    arguments = shape.arguments()
    refuse_own_names(arguments, measure)
    with progress_bar() as bar:
        result = measure(
            net,
            family=family,
            bits=bits,
            loss=loss,
            subclass=subclass,
            draws=draws,
            dtype=dtype,
            seed=seed,
            device=device,
            progress=bar.step,
            **drawn,
            **arguments,
        )
    if output.json:
        print_json(result.to_json())
    else:
        show(result)


def show(result: Signal) -> None:
    from rich.table import Table as Grid

    grid = labelled()
    for label, text in _lines(result):
        grid.add_row(label, text)
    console = terminal()
    console.print(grid)
    if result.by_degree is None or result.share_by_degree is None:
        return
    console.print("\nSignal of a parity by the number of its bits (mean of ‖E[χ g]‖², logarithmic bars):")
    spectrum = Grid(show_header=True, box=None, padding=(0, 2, 0, 0))
    for column in ("bits", "signal", "of all power"):
        spectrum.add_column(column, justify="right", no_wrap=True)
    spectrum.add_column("", no_wrap=True)
    for degree, (value, share) in enumerate(zip(result.by_degree, result.share_by_degree, strict=True)):
        spectrum.add_row(str(degree), f"{value:.2e}", f"{share:.2%}", _bar(value, result.by_degree))
    console.print(spectrum)
    console.print("The lower the bar, the less the gradient says of such a parity where training starts.")


def _lines(result: Signal) -> list[tuple[str, str]]:
    if result.exact and result.identity_error is not None:
        how = f"exact: all {2**result.bits:,} inputs; Parseval's identity holds to {result.identity_error:.0e}"
    elif result.exact:
        how = f"exact over all {2**result.bits:,} inputs"
    else:
        how = f"estimated from {result.details['inputs']:,} drawn inputs"
    if result.interval is not None:
        low, high = result.interval
        how += f"; 95 % between {low:.3g} and {high:.3g}"
    variance = f"[bold]{result.variance:.4g}[/bold]  ({how})"
    if not result.details.get("resolved", True):
        variance += "; the noise of the drawn inputs swamps it"
    bound = f"{result.bound:.4g} = G²/|H|" if result.applies else f"{result.bound:.4g} = λ·G²/|H|"
    why = "orthogonal members: Theorem 1 applies"
    if not result.applies:
        d = result.details
        why = (
            f"not orthogonal (correlations up to {d['largest_correlation']:.2g}), so λ = {d['largest_eigenvalue']:.3g}"
        )
    chosen = "" if result.subclass == "all" else f", {result.subclass}"
    lines = [
        ("net", f"{result.net}, {result.parameters:,} parameters"),
        ("class", f"{result.family}{chosen}: {result.members:,} targets of {result.bits} inputs, {result.loss} loss"),
        ("variance", variance),
        ("bound", f"{bound}  ({why})"),
        ("ratio", f"{result.ratio:.4g}"),
        ("G²", f"{result.gradient_power:.4g}, the mean squared gradient of the output"),
    ]
    if result.details.get("whole_family") is not None:
        lines.append(("whole class", f"{result.details['whole_family']:.4g}, of which the members are a sample"))
    return [*lines, ("time", f"{result.seconds:.2f} s on {result.provenance.device}")]


def _bar(value: float, all_values: tuple[float, ...]) -> str:
    """Thirty blocks for the largest, none for what is a hundred millionth of it."""
    from math import log10

    top = max(all_values)
    if value <= 0 or top <= 0:
        return ""
    return "█" * max(1, round(30 * (1 + log10(value / top) / 8))) if value > top * 1e-8 else "▏"
