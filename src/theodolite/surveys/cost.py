"""The section on cost: parameters, operations, memory of the past, activations and time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from theodolite.lab.cell import Cell, Row
from theodolite.report import Answer, Column, Standing, Summary, Table
from theodolite.surveys.answers import Ability, failures, spelt
from theodolite.surveys.candidate import Candidate
from theodolite.surveys.section import Preset, Section, Setting

_ABILITY = Ability(
    "constant state size",
    "Is the state that it carries from token to token of constant size?",
    "how many numbers of the past reach the future; constant for a recurrence, growing with the length for attention",
)
_TOKENS = {"quick": 32, "standard": 128, "full": 512}
_QUANTITIES = {
    "parameters": "parameters",
    "flops_per_token": "operations",
    "state_size": "state",
    "activation_bytes_per_token": "activations",
    "forward_seconds_per_token": "forward",
    "training_seconds_per_token": "training step",
}
_UNITS = {
    "parameters": "",
    "flops_per_token": "per token",
    "state_size": "numbers",
    "activation_bytes_per_token": "bytes per token",
    "forward_seconds_per_token": "µs per token",
    "training_seconds_per_token": "µs per token",
}
_BUSY = 0.5  # of the fastest run: how far above it the median may lie
_MEANING = (
    "Operations count matrix products and convolutions only, two for a multiplication and addition. The state is how "
    "many numbers of the past reach the future, measured as the rank of the outputs' derivatives. Times are the "
    "fastest of several runs on this machine while other measurements ran, with their median where it lies more than a "
    "half above: they compare networks, they do not benchmark them."
)
_COLUMNS = (
    Column("net", "network", numeric=False),
    Column("quantity", "quantity", numeric=False),
    Column("value", "measured"),
    Column("unit", "unit", numeric=False),
    Column("predicted", "predicted", "counted from the shape"),
    Column("agrees", "theory", "whether measurement and formula meet", False, "agreement"),
    Column("formula", "formula", numeric=False),
)


class CostSection(Section):
    id = "cost"
    title = "Parameters, state and cost"

    def plan(self, net: Candidate | None, preset: Preset) -> Sequence[Cell]:
        assert net is not None
        return [Cell("cost", {**net.named(), "shape": net.measured(_TOKENS[preset])})]

    def seconds(self, cell: Cell) -> float:
        return 2.0 if "tokens" in cell.config["shape"] else 0.5

    def summarise(self, rows: Sequence[Row], setting: Setting) -> Summary:
        good = [row for row in rows if not row.error]
        answers = _ABILITY.failures(rows, setting)
        answers += [_answer(row) for row in good if "state_size" in row.result]
        body = [line for row in good for line in _lines(row)]
        facts = {row.cell.config["net"]: _facts(row) for row in good}
        return Summary(
            _headline(facts),
            [Table("Costs", _COLUMNS, body, _caption(good))] if body else [],
            (),
            (_MEANING, *failures(rows, setting)),
            answers,
            facts,
        )


def _caption(rows: Sequence[Row]) -> str:
    tokens = next((row.cell.config["shape"]["tokens"] for row in rows if "tokens" in row.cell.config["shape"]), None)
    return "" if tokens is None else f"On inputs of {tokens} tokens of 4 features, batch 8, float32."


def _facts(row: Row) -> dict[str, Any]:
    """What stands under a net's name."""
    per = row["flops_per_token"]["diagnostics"]["per"]
    found = {"parameters": row["parameters"]["value"], f"operations per {per}": row["flops_per_token"]["value"]}
    if "training_seconds_per_token" in row.result:
        micro = 1e6 * row["training_seconds_per_token"]["value"]
        found["training"] = f"{micro:.3g} µs per {per}"
    return found


def _headline(facts: Mapping[str, Mapping[str, Any]]) -> str:
    if not facts:
        return "No network could be measured."
    counts = {net: known["parameters"] for net, known in facts.items()}
    least, most = min(counts, key=lambda net: counts[net]), max(counts, key=lambda net: counts[net])
    if counts[least] == counts[most]:
        return f"{counts[least]:,} parameters{' each' if len(counts) > 1 else ''}."
    return f"{counts[least]:,} ({least}) to {counts[most]:,} ({most}) parameters."


def _answer(row: Row) -> Answer:
    state = row["state_size"]
    diagnostics = state["diagnostics"]
    growth = diagnostics.get("growth_per_token")
    predicted, agrees = _state_prediction(state)
    standing: Standing = "unknown"
    text, number = diagnostics.get("reason", "not measured"), None
    if state["value"] is not None and _bounded(diagnostics):
        standing, number = "yes", float(state["value"])
        text = f"{'' if diagnostics.get('resolved', True) else 'at most '}{state['value']:,} numbers"
    elif state["value"] is not None:
        text = f"at least {diagnostics['at_least']:,} numbers, not resolved"
    elif growth:
        standing = "no"
        cache = diagnostics.get("cache_per_token")
        text = f"grows by {growth:.4g} numbers a token" + (f" (cache: {cache:,})" if cache else "")
    return _ABILITY.answer(
        row.cell.config["net"],
        standing,
        text,
        predicted=predicted,
        agrees=agrees,
        value=_measured_state(state) or "",
        number=number,
        setting=spelt({"tokens": row.cell.config.get("shape", {}).get("tokens")}),
    )


def _time(found: Mapping[str, Any]) -> float | str:
    """In µs; with the median of all runs where the machine was too busy to say one number."""
    micro, spread = 1e6 * found["value"], found["diagnostics"].get("spread", 0.0)
    return micro if spread <= _BUSY else f"{micro:.3g} (median {micro * (1 + spread):.3g})"


def _bounded(diagnostics: Mapping[str, Any]) -> bool:
    """Whether the measurement ends the state from above; a rank alone is a bound from below."""
    return diagnostics.get("resolved", True) or diagnostics.get("at_most") is not None


def _measured_state(state: Mapping[str, Any]) -> str | None:
    diagnostics, size = state["diagnostics"], state["value"]
    growth, least = diagnostics.get("growth_per_token"), diagnostics.get("at_least")
    if size is not None and _bounded(diagnostics):
        return f"{'' if diagnostics.get('resolved', True) else '≤ '}{size:,}"
    if size is None and growth:
        return f"{growth:.4g} a token"
    return f"≥ {least:,}" if least else None


def _state_prediction(state: Mapping[str, Any]) -> tuple[str, bool | None]:
    diagnostics = state["diagnostics"]
    fixed, growing = diagnostics.get("predicted"), diagnostics.get("predicted_per_token")
    if fixed is not None and not growing:
        return f"{fixed:,} numbers", diagnostics["agrees"]
    return (f"{growing:,} a token", diagnostics["agrees"]) if growing else ("", None)


def _lines(row: Row) -> list[dict[str, Any]]:
    lines = []
    for name, label in _QUANTITIES.items():
        if name not in row.result:
            continue
        found = row[name]
        diagnostics = found["diagnostics"]
        line: dict[str, Any] = {
            "net": row.cell.config["net"],
            "quantity": label,
            "unit": _UNITS[name].replace("token", diagnostics.get("per", "token")),
        }
        if name == "state_size":
            text, agrees = _state_prediction(found)
            line |= {
                "value": _measured_state(found),
                "predicted": text or None,
                "agrees": agrees,
                "formula": diagnostics.get("formula"),
            }
        elif name.endswith("seconds_per_token"):
            line |= {"value": _time(found)}
        else:
            predicted = diagnostics.get("predicted")
            agrees = None if predicted is None else abs(found["value"] - predicted) <= 1e-9 * predicted
            line |= {
                "value": found["value"],
                "predicted": predicted,
                "agrees": agrees,
                "formula": _own_part(diagnostics.get("formula"), name),
            }
        lines.append(line)
    return lines


def _own_part(formula: str | None, name: str) -> str | None:
    """A family's formula is of its parameters and then of its operations: what this line is about."""
    parts = (formula or "").split("; ")
    return parts[name != "parameters"] if len(parts) == 2 else formula


section = CostSection()
