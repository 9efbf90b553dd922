"""`theodolite express`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from theodolite.cli.groups import Arguments, Computing, Seed, grouped
from theodolite.cli.options import labelled, parse_arguments, print_json, refuse_own_names
from theodolite.cli.terminal import terminal
from theodolite.loading import loading

if TYPE_CHECKING:
    from theodolite.witness.express import Expression

_ANSWERS = {
    True: "yes, it can",
    False: "no, no choice of weights does",
    None: "unknown",
}


@grouped
def express(
    output: Computing,
    task: Annotated[str, Argument(help="A task (see 'theodolite tasks').")],
    net: Annotated[
        str,
        Option(help="A built-in net, or threshold, nand, linear, recurrent-threshold, recurrent-tent, soft-attention."),
    ],
    task_arg: Annotated[
        list[str] | None, Option("--task-arg", metavar="KEY=VALUE", help="A field of the task; may be repeated.")
    ] = None,
    arg: Arguments = None,
    samples: Annotated[int | None, Option(min=1, help="Inputs to draw where not all can be looked at.")] = None,
    seed: Seed = 0,
) -> None:
    """Say whether an architecture can compute a task, with explicit weights that are checked on its inputs.

    This asks what weights exist, not what training finds.
    """
    with loading():
        from theodolite.witness.express import express as find

    shape = parse_arguments(arg)
    refuse_own_names(shape, find)
    options: dict[str, Any] = {} if samples is None else {"samples": samples}
    result = find(task, net, task_args=parse_arguments(task_arg, "--task-arg"), seed=seed, **options, **shape)
    if output.json:
        print_json(result.to_json())
    else:
        show(result)


def show(result: Expression) -> None:
    from rich.text import Text

    console = terminal()
    fields = ", ".join(f"{name}={value}" for name, value in result.task_args.items())
    lines = [("can it?", _ANSWERS[result.expressible]), ("why", result.reason)]
    if result.witness is not None:
        arguments = ", ".join(f"{name}={value}" for name, value in result.shape.items())
        lines.append(("network", result.witness + (f" ({arguments})" if arguments else "")))
        lines += [(name, _count(result, name)) for name in ("parameters", "units", "depth")]
        lines.append(("checked", f"{result.criterion}, on {result.domain}"))
        if result.errors is not None:
            lines.append(("errors", f"{result.errors:,} of {result.verified_on:,}"))
        if result.margin is not None:
            lines.append(("margin", f"{result.margin:.4g}: how far the nearest answer is from being wrong"))
        if result.explained_variance is not None:
            lines.append(("explained", f"{result.explained_variance:.6g} of the answers' variance"))
    elif result.checked:
        lines.append(("checked", f"in {result.checked.get('arithmetic', 'the way the reason says')}"))
    if result.source:
        lines.append(("source", result.source))
    console.print(f"{result.task} ({fields}) by {result.net}", style="bold", markup=False)
    grid = labelled(gap=1)
    for name, text in lines:
        grid.add_row(f"  {name}", Text(text))
    console.print(grid)


_MEANING = {
    "units": ("node with a nonlinearity", "nodes with a nonlinearity"),
    "depth": ("layer of them", "layers of them"),
    "parameters": ("number in it", "numbers in it"),
}


def _count(result: Expression, name: str) -> str:
    counted = getattr(result, name)
    theory = ""
    if name in result.predicted:
        theory = f" (theory: {result.predicted[name]:,})"
    elif name in result.at_most:
        theory = f" (theory: at most {result.at_most[name]:,})"
    meaning = _MEANING[name][counted != 1]
    if name == "parameters":
        from theodolite.nets.contract import nets

        meaning += ", zeros included" if result.net in nets else ": weights that are not 0, and biases"
    return f"{counted:,} {meaning}{theory}"
